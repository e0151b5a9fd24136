//! Compares rtrace with perf trace and strace: the same programs, interleaved runs, medians. Prints the tables of
//! `benches/RESULTS.md`.
//!
//! `benches/README.md` says how to run it and describes the columns.
#![allow(unsafe_code, reason = "wait4(2) returns a child's CPU time and memory, and the standard library has no function for it")]

mod case;
mod machine;
mod run;
mod table;
mod tool;

use anyhow::Context as _;
use case::Case;
use run::Measured;
use tool::{Placement, Tool};

/// The measurements of one tool in one case: for each placement, one per round.
struct Row {
    case: Case,
    tool: Option<Tool>,
    placed: Vec<(Placement, Vec<Measured>)>,
}

impl Row {
    fn new(case: Case, tool: Option<Tool>) -> Row {
        Row { case, tool, placed: case.placements().iter().map(|placement| (*placement, Vec::new())).collect() }
    }
}

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [word, file, command @ ..] = words.as_slice()
        && word == "usage"
    {
        return run::report_usage(file, command);
    }
    run::adopt_orphans();
    let rounds: usize = std::env::var("RTRACE_BENCH_ROUNDS").map_or(Ok(5), |n| n.parse())?;
    let tools = tool::present();
    let mut rows: Vec<Row> = Vec::new();
    for case in asked_for(&words)? {
        let with_untraced = std::iter::once(None).chain(tools.iter().filter(|tool| tool.is_for(case)).cloned().map(Some));
        rows.extend(with_untraced.map(|tool| Row::new(case, tool)));
    }
    for round in 1..=rounds {
        for row in &mut rows {
            for (placement, measured) in &mut row.placed {
                let name = row.tool.as_ref().map_or("untraced", |tool| &tool.name);
                eprintln!("round {round} of {rounds}: {}, {name}, {}", row.case.title(), placement.name());
                measured.push(row.case.measure(row.tool.as_ref(), *placement)?);
            }
        }
    }
    print!("{}", table::markdown(&rows, &tools, rounds));
    Ok(())
}

/// Returns the cases with these letters, or all cases if there are no letters.
fn asked_for(letters: &[String]) -> anyhow::Result<Vec<Case>> {
    if letters.is_empty() {
        return Ok(Case::ALL.to_vec());
    }
    let by_letter = |letter: &String| Case::ALL.into_iter().find(|case| case.title().starts_with(&format!("({letter})")));
    letters.iter().map(|letter| by_letter(letter).with_context(|| format!("there is no case `{letter}`; choose from a to k"))).collect()
}
