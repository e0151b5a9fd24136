//! Measures what the lines of real programs cost in each style: the calls of the programs are recorded in this process,
//! and then decoded and printed again and again. Needs root, as a trace does.
//!
//! ```text
//! cargo bench --bench mix             # all programs
//! cargo bench --bench mix -- git tar  # two of them
//! ```
//! Each figure is the best of many passes over all events of a program, divided by the number of its calls. The engine
//! is the one that rtrace chooses on this machine.

use rtrace::events::{Event, EventKind};
use rtrace::output::{Nameless, StyleContext, create_style};
use rtrace::program::{self, Parsed, Request, Trace};
use rtrace::records::{Input, Session};
use rtrace::tracing::{
    self, Closed, Drain, Engine, LiveProcReader, Objects, ProcReader, RunEvents, TaskReader, Tracefs, choose_engine, describe_session,
};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The programs, as lines of a shell.
const PROGRAMS: [(&str, &str); 6] = [
    ("ls", "ls -lR /usr/include/linux"),
    ("git", "git log --stat -n 20"),
    ("python3", "python3 -c 'import asyncio, email.message, json, unittest, xml.etree.ElementTree'"),
    ("cc", "echo 'int main(void) { return 0; }' | cc -x c -c -o /dev/null -"),
    ("tar", "tar cf - beauty src | cat"),
    ("bash", "bash -c 'for i in 1 2 3 4 5 6 7 8; do echo $i | sort | wc -l; done'"),
];

/// The styles, and the options that choose them. The first one is what the others are compared with.
const STYLES: [(&str, &[&str]); 3] = [("perf", &[]), ("JSON", &["--json"]), ("strace", &["--style", "strace"])];

/// The number of passes over the events of a program.
const PASSES: usize = 30;

fn main() {
    // cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (mut calls, mut sums) = (0, [Duration::ZERO; STYLES.len()]);
    for (name, line) in PROGRAMS {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == name) {
            continue;
        }
        let (session, events) = record(line);
        let count = events.iter().filter(|event| matches!(event.kind, EventKind::Call(_))).count() as u32;
        let times = STYLES.map(|(_, options)| best_pass(&session, &events, options));
        print_costs(name, count, &times);
        calls += count;
        sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
    }
    print_costs("all of them", calls, &sums);
}

fn print_costs(name: &str, calls: u32, times: &[Duration; STYLES.len()]) {
    let cost = |time: Duration| time.as_nanos() as f64 / f64::from(calls);
    let costs = STYLES.iter().zip(times).map(|((style, _), time)| {
        let cost = cost(*time);
        format!("{style} {cost:.0} ns ({:.2})", cost / (times[0].as_nanos() as f64 / f64::from(calls)))
    });
    println!("{name}: {calls} calls, each {}", costs.collect::<Vec<_>>().join(", "));
}

/// Returns the time of the fastest pass over the events in a style.
fn best_pass(session: &Session, events: &[Event], options: &[&str]) -> Duration {
    let words = [&["rtrace", "--no-config"], options, &["true"]].concat();
    let context = StyleContext { session, comm: &|_| None, cgroup: &|_| None, names: &Nameless };
    let mut out = Vec::with_capacity(1 << 20);
    let pass = |_| {
        let mut style = create_style(&request(&words).show, session, false);
        let begin = Instant::now();
        for event in events {
            style.event(&mut out, event, &context);
            if out.len() > 1 << 19 {
                out.clear();
            }
        }
        begin.elapsed()
    };
    (0..PASSES).map(pass).min().unwrap_or_default()
}

/// Traces the line of a shell with everything that its processes do, and returns the events.
fn record(line: &str) -> (Session, Vec<Event>) {
    let script = "read -r go && eval \"$1\" > /dev/null; echo done; read -r end";
    let mut shell = Command::new("sh")
        .args(["-c", script, "sh", line])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let (mut stdin, stdout) = (shell.stdin.take().expect("is a pipe"), BufReader::new(shell.stdout.take().expect("is a pipe")));
    let request = request(&["rtrace", "--no-config", "-p", &shell.id().to_string()]);
    let tracefs = Tracefs::find().unwrap_or_else(Tracefs::absent);
    let (plan, programs) = choose_engine(&request, &tracefs, &mut RunEvents::default(), &[]).expect("a trace needs root");
    let armed = tracing::arm(&plan, None, programs, Objects::default()).expect("the plan can be carried out");
    let session = describe_session(&plan, &armed, false);
    let (mut engine, mut drain, mut events) = (Engine::new(&session, None, Box::new(Closed)), Drain::new(armed, Vec::new()), Vec::new());
    drain.enable_side_band().expect("the events can be enabled");
    let mut reader = TaskReader::new(false);
    plan.targets.tasks().into_iter().filter_map(|task| reader.read(task)).for_each(|record| drain.synthesized(record));
    drain.enable(|_| Vec::new()).expect("the events can be enabled");
    let mut take = |engine: &mut Engine, round| {
        engine.input(&session, Input::Round(round), &mut events);
        let answers = LiveProcReader::default().answer(&engine.take_reads());
        engine.input(&session, Input::Answers(answers), &mut events);
    };
    std::thread::scope(|scope| {
        writeln!(stdin, "go").expect("the shell reads");
        let ended = scope.spawn(|| stdout.lines().next());
        while !ended.is_finished() {
            take(&mut engine, drain.round());
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    drain.disable().expect("the events can be disabled");
    let last = drain.last_rounds();
    let rest = drain.rest();
    last.into_iter().chain(rest).for_each(|round| take(&mut engine, round));
    engine.end(&session, &mut events);
    drop(stdin);
    let _ = shell.wait();
    assert_eq!(engine.ledger().lost_records(), 0, "{line}: some calls were lost; record them on a quieter machine");
    (session, events)
}

/// Parses a command line for a trace.
fn request(words: &[&str]) -> Trace {
    match program::parse(words.iter().map(Into::into), &program::environment()) {
        Parsed::Request(Request::Trace(trace)) => *trace,
        _ => unreachable!("these are words for a trace"),
    }
}
