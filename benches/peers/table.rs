//! Prints the measurements as Markdown tables.

use crate::case::{self, Case};
use crate::run::Measured;
use crate::tool::{Kind, Placement, Tool};
use crate::{Row, machine};
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// How many calls a tracer showed, and how many it reported as lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// The number of lines with a return value, or the sum of a summary's counts.
    pub shown: Option<u64>,
    /// Lost records for perf (two per call), lost calls for rtrace.
    pub lost: Option<u64>,
    /// The number of stacks that go back to the start of the thread.
    pub whole: Option<u64>,
}

impl Counts {
    /// Counts the calls in a tracer's output and its stderr. The files are read line by line, because memory that this
    /// process has used counts in the peak of its children.
    pub fn of(kind: Kind, case: Case, output: &str, errors: &str) -> anyhow::Result<Counts> {
        let mut counts = Counts::default();
        if case != Case::ToDevNull {
            counts.lost = (kind != Kind::Rtrace).then_some(0);
            for line in BufReader::new(File::open(output)?).lines() {
                counts.add(kind, case, &line?);
            }
        }
        if kind == Kind::Rtrace {
            counts.lost = said_lost(&std::fs::read_to_string(errors)?);
        }
        Ok(counts)
    }

    fn add(&mut self, kind: Kind, case: Case, line: &str) {
        if case == Case::Stacks && line.trim_start().trim_start_matches('_').starts_with("clone") {
            *self.whole.get_or_insert(0) += 1;
        }
        let shown = match case {
            Case::Summary => summary_calls(kind, line),
            Case::ToFile | Case::Stacks | Case::Gcc | Case::GccFiltered | Case::Sqlite => {
                (line.contains(") = ") || line.contains(")  ") && line.contains(" = ")).then_some(1)
            }
            _ => None,
        };
        if let Some(shown) = shown {
            *self.shown.get_or_insert(0) += shown;
        }
        if kind == Kind::Perf
            && let Some(lost) = line.strip_prefix("LOST ").and_then(|l| l.split(' ').next()?.parse::<u64>().ok())
        {
            *self.lost.get_or_insert(0) += lost;
        }
    }
}

/// Returns the number of calls in a row of a summary. perf and rtrace print `name calls errors ...`, strace prints `%
/// seconds usecs/call calls [errors] name`.
fn summary_calls(kind: Kind, line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase());
    match kind {
        Kind::Strace if words.last().is_some_and(|w| is_name(w) && *w != "total") => words.get(3)?.parse().ok(),
        Kind::Strace => None,
        _ if words.len() >= 8 && is_name(words[0]) && words[0] != "total" => words.get(1)?.parse().ok(),
        _ => None,
    }
}

/// Returns the number of lost calls in rtrace's verdict: `rtrace: N calls issued, P printed, L lost`.
fn said_lost(errors: &str) -> Option<u64> {
    let (before, _) = errors.rsplit_once(" lost")?;
    before.rsplit(' ').next()?.parse().ok()
}

pub fn markdown(rows: &[Row], tools: &[Tool], rounds: usize) -> String {
    let mut out = String::new();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let _ = writeln!(out, "{}; {}; medians of {rounds} interleaved runs.", machine::description(), names.join(", "));
    out.push_str(
        "Each tool ran with its program wherever the scheduler put them (free), and with it on one CPU (pinned, by `taskset`). All other\n\
         columns are of the placement that was better for that tool, whose wall time is bold.\n",
    );
    let of = |wanted: fn(&Row) -> bool| rows.iter().filter(|row| wanted(row)).collect::<Vec<_>>();
    let (starts, stacks, real) = (of(|row| row.case.is_start()), of(|row| row.case == Case::Stacks), of(|row| row.case.is_real()));
    let loads = of(|row| !row.case.is_start() && row.case != Case::Stacks && !row.case.is_real());
    if !real.is_empty() {
        out.push_str(&of_programs(&real));
    }
    if !loads.is_empty() {
        out.push_str(&of_loads(&loads));
    }
    if !starts.is_empty() {
        out.push_str(&of_starts(&starts));
    }
    if !stacks.is_empty() {
        out.push_str(&of_stacks(&stacks));
    }
    out
}

fn of_loads(rows: &[&Row]) -> String {
    let mut out = String::new();
    out.push_str("The program is `dd if=/dev/zero of=/dev/null bs=1`; × is the ratio to its own CPU time untraced, just before.\n\n");
    out.push_str("| | | calls made | program's CPU | tracer's CPU | wall, free | wall, pinned | calls shown | said lost | peak memory |\n");
    out.push_str("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for row in rows {
        let _ = writeln!(out, "{}", dd_row(row));
    }
    out
}

/// Returns the table of programs that people use, with the wall time of a run.
fn of_programs(rows: &[&Row]) -> String {
    let mut out = String::from("\n× is the ratio to the better wall time of the same program untraced.\n\n");
    out.push_str("| | | wall, free | wall, pinned | × | calls shown | said lost | peak memory |\n|---|---|--:|--:|--:|--:|--:|--:|\n");
    for row in rows {
        let alone = rows.iter().find(|other| other.case == row.case && other.tool.is_none());
        let alone = alone.map_or(0.0, |row| duration(row, |m| m.wall).as_secs_f64()).max(1e-9);
        let cells = [
            row.case.title().to_owned(),
            name(row).to_owned(),
            wall(row, Placement::Free),
            wall(row, Placement::Pinned),
            format!("{:.2}", duration(row, |m| m.wall).as_secs_f64() / alone),
            number(median(row, |m| m.counts.shown)),
            number(median(row, |m| m.counts.lost)),
            if row.tool.is_some() { peak(row) } else { "–".to_owned() },
        ];
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

fn of_starts(rows: &[&Row]) -> String {
    let mut out = String::from("\n| | | first line | whole, free | whole, pinned |\n|---|---|--:|--:|--:|\n");
    for row in rows {
        let first = median(row, |m| m.first_line).map_or("–".to_owned(), milliseconds);
        let whole = Placement::BOTH.map(|placement| at(row, placement, milliseconds));
        let _ = writeln!(out, "| {} | {} | {first} | {} | {} |", row.case.title(), name(row), whole[0], whole[1]);
    }
    out
}

fn of_stacks(rows: &[&Row]) -> String {
    let mut out =
        String::from("\nThe program opens and closes a file in a thread; times are per call, of program and tracer together.\n\n");
    out.push_str("| (g) call graphs, to a file | calls made | program's CPU | tracer's CPU | a call made | calls shown | with all frames | a call with all frames | said lost | peak memory |\n");
    out.push_str("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for row in rows {
        let _ = writeln!(out, "{}", stacks_row(row));
    }
    out
}

fn stacks_row(row: &Row) -> String {
    let seconds = |d: Duration| format!("{:.3} s", d.as_secs_f64());
    let of_each = |n: Option<u64>| {
        let n = n.filter(|n| *n > 0)?;
        let total = duration(row, |m| m.program_cpu + m.tracer_cpu);
        Some(format!("{:.1} us", total.as_secs_f64() * 1e6 / n as f64))
    };
    let made = case::calls(row.case, row.tool.as_ref());
    let whole = median(row, |m| m.counts.whole);
    let if_traced = |text: String| if row.tool.is_some() { text } else { "–".to_owned() };
    let cells = [
        name(row).to_owned(),
        made.to_string(),
        seconds(duration(row, |m| m.program_cpu)),
        if_traced(seconds(duration(row, |m| m.tracer_cpu))),
        of_each(Some(made)).unwrap_or_default(),
        number(median(row, |m| m.counts.shown)),
        number(whole),
        of_each(whole).unwrap_or("–".to_owned()),
        number(median(row, |m| m.counts.lost)),
        if_traced(peak(row)),
    ];
    format!("| {} |", cells.join(" | "))
}

fn dd_row(row: &Row) -> String {
    let seconds = |d: Duration| format!("{:.3} s", d.as_secs_f64());
    let untraced = duration(row, |m| m.untraced_cpu).as_secs_f64().max(1e-9);
    let times = |d: Duration| format!("{:.2} × ({})", d.as_secs_f64() / untraced, seconds(d));
    let is_traced = row.tool.is_some() && row.case != Case::Beside;
    let if_traced = |text: String| if is_traced { text } else { "–".to_owned() };
    let made = case::calls(row.case, row.tool.as_ref());
    let cells = [
        row.case.title().to_owned(),
        name(row).to_owned(),
        made.to_string(),
        times(duration(row, |m| m.program_cpu)),
        if_traced(times(duration(row, |m| m.tracer_cpu))),
        wall(row, Placement::Free),
        wall(row, Placement::Pinned),
        number(median(row, |m| m.counts.shown)),
        number(median(row, |m| m.counts.lost)),
        if_traced(peak(row)),
    ];
    format!("| {} |", cells.join(" | "))
}

fn number(n: Option<u64>) -> String {
    n.map_or("–".to_owned(), |n| n.to_string())
}

fn peak(row: &Row) -> String {
    format!("{:.1} MB", median(row, |m| Some(m.peak)).unwrap_or_default() as f64 / 1e6)
}

fn wall(row: &Row, placement: Placement) -> String {
    at(row, placement, |d| format!("{:.3} s", d.as_secs_f64()))
}

/// Returns the wall time of a placement, in bold if it is the better one of two.
fn at(row: &Row, placement: Placement, text: impl Fn(Duration) -> String) -> String {
    let Some((_, rounds)) = row.placed.iter().find(|(at, _)| *at == placement) else { return "–".to_owned() };
    let text = text(middle(rounds, |m| Some(m.wall)).unwrap_or_default());
    if row.placed.len() > 1 && best(row).0 == placement { format!("**{text}**") } else { text }
}

/// Returns the placement with the shortest wall time, and its rounds.
fn best(row: &Row) -> (Placement, &[Measured]) {
    let soonest = row.placed.iter().min_by_key(|(_, rounds)| middle(rounds, |m| Some(m.wall)));
    soonest.map_or((Placement::Free, &[][..]), |(placement, rounds)| (*placement, rounds))
}

fn name(row: &Row) -> &str {
    row.tool.as_ref().map_or("untraced", |tool| &tool.name)
}

fn milliseconds(d: Duration) -> String {
    format!("{:.1} ms", d.as_secs_f64() * 1e3)
}

fn duration(row: &Row, of: impl Fn(&Measured) -> Duration) -> Duration {
    median(row, |m| Some(of(m))).unwrap_or_default()
}

/// Returns the median over the rounds of the better placement.
fn median<T: Ord + Copy>(row: &Row, of: impl Fn(&Measured) -> Option<T>) -> Option<T> {
    middle(best(row).1, of)
}

/// Returns the median over the rounds that have this value.
fn middle<T: Ord + Copy>(rounds: &[Measured], of: impl Fn(&Measured) -> Option<T>) -> Option<T> {
    let mut values: Vec<T> = rounds.iter().filter_map(of).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
