//! With random options, loads and ends, every issued call is printed, lost, held back or given up, and each of these is
//! counted.
//!
//! `RTRACE_TEST_RANDOM_RUNS` is the number of runs (24), and `RTRACE_TEST_RANDOM_SEED` the number of the first one. The
//! same number makes the same run, so that a failed one can be repeated alone. A thousand runs:
//! `RTRACE_TEST_RANDOM_RUNS=1000 cargo test --test live -- random::`.

use crate::cgroup::Cgroup;
use crate::line;
use crate::machine::{self, Machine};
use crate::trace::{Trace, shell};

/// A pseudorandom sequence of numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_of<'a>(&mut self, rows: &[&'a str]) -> &'a str {
        rows[self.roll(rows.len() as u64) as usize]
    }

    /// Chooses the first row as often as all others together.
    fn rarely<'a>(&mut self, rows: &[&'a str]) -> &'a str {
        if self.roll(2) == 0 { rows[0] } else { self.one_of(rows) }
    }
}

const EVENTS: [&str; 9] = [
    "",
    "-e lseek",
    "-e getppid,lseek,read",
    "-e %file",
    "-e %process",
    "-e '!read'",
    "-e '*at*,close'",
    "-e /^r/",
    "-e lseek,execve -e sched:sched_process_exit",
];
const MODES: [&str; 8] = [
    "",
    "-s",
    "-S",
    "-s --summary-mode thread",
    "-s --by comm",
    "--call-graph fp",
    "-S --errno-summary --histogram",
    "-s --interval 100ms",
];
const LIMITS: [&str; 9] = [
    "",
    "--failure",
    "--duration 1",
    "--filter 'ret < 0'",
    "--filter 'duration > 100us'",
    "--path /etc",
    "--signals",
    "-q",
    "--string-limit 4096",
];
const RINGS: [&str; 4] = ["", "-m 8K", "-m 64K", "-m 1M"];
const LOADS: [&str; 16] = [
    "$workload calls lseek 1 20000",
    "$workload calls lseek 4 5000",
    "$workload calls getppid 2 40000",
    "$workload calls read 3 4000 40000",
    "$workload forks 300",
    "$workload threads 300",
    "$workload exec leader",
    "$workload exec thread",
    "$workload seccomp 500",
    "$workload signals many",
    "$workload slow 60",
    "$workload zoo $dir/zoo",
    "$workload outlive 50 0",
    "sh -c 'for i in 1 2 3 4 5 6 7 8 9; do (true; true) & done; wait; cat /etc/passwd /nonexistent'",
    "unshare -p -f sh -c 'true & cat /etc/passwd; true'",
    "sh -c 'for group in $b $a $b $a; do echo $$ >$group/cgroup.procs; $workload calls lseek 1 50; done'",
];

/// One run: the command line, and what happens during the trace.
struct Mix {
    options: String,
    /// The words before rtrace. With a scheduling policy set by the caller, rtrace takes no real-time priority.
    turn: &'static str,
    /// How the load becomes the target of the trace.
    whom: &'static str,
    load: String,
    end: End,
}

#[derive(Debug)]
enum End {
    Itself,
    Signals(String),
    FullDisk,
    GoneReader,
    Enough,
    Rotation,
}

impl Mix {
    fn new(seed: u64) -> Mix {
        let mut dice = Dice(seed);
        let engine = machine::engine_asked_for().unwrap_or_else(|| dice.one_of(&["auto", "bpf", "tracepoint"]).to_owned());
        let parts = [dice.one_of(&EVENTS), dice.rarely(&MODES), dice.rarely(&LIMITS), dice.rarely(&RINGS)];
        let options = format!("-v --engine {engine} {}", parts.join(" "));
        let whom = dice.rarely(&["command", "-p", "-a", "-u root", "-G"]);
        let load = dice.one_of(&LOADS).to_owned();
        let end = match dice.roll(10) {
            0..4 => End::Itself,
            4..7 => {
                let signals: Vec<&str> = (0..=dice.roll(3)).map(|_| dice.one_of(&["INT", "TERM", "HUP", "QUIT"])).collect();
                End::Signals(format!(
                    "sleep .{:03}; for s in {}; do kill -$s $!; sleep .0{}; done",
                    dice.roll(600),
                    signals.join(" "),
                    dice.roll(10)
                ))
            }
            7 => [End::FullDisk, End::Rotation].into_iter().nth(dice.roll(2) as usize).unwrap_or(End::FullDisk),
            8 => End::GoneReader,
            _ => End::Enough,
        };
        let turn = dice.one_of(&["", "chrt --batch 0 "]);
        Mix { options, turn, whom, load, end }
    }

    /// Returns the script, which runs in its own mount namespace. The output of the load is discarded, the messages of
    /// rtrace go to stderr, and its lines to `$dir/lines`.
    fn script(&self) -> String {
        let Mix { options, turn, whom, load, end } = self;
        let to = match end {
            End::FullDisk => "-o $dir/small/lines",
            End::GoneReader => "-o '|head -n 7 >$dir/lines'",
            End::Enough => "-o $dir/lines --max-events 100",
            End::Rotation => "-o $dir/lines --max-size 16K --rotate 3",
            _ => "-o $dir/lines",
        };
        let rtrace = match *whom {
            "command" => format!("{turn}$rtrace {options} {to} -- {load}"),
            "-p" => format!("{turn}$rtrace {options} {to} -p $load"),
            "-G" => format!("{turn}$rtrace {options} {to} -G $a sh -c 'echo $$ >$a/cgroup.procs; {}'", load.replace('\'', r"'\''")),
            whom => format!("{turn}$rtrace {options} {to} {whom} {load}"),
        };
        let begun = if *whom == "-p" { format!("(sleep .2; {load}; sleep .2) >/dev/null 2>&1 & load=$!") } else { String::new() };
        let ends = match end {
            End::Signals(script) => script.as_str(),
            _ => "true",
        };
        format!(
            "mkdir $dir/small $dir/zoo; mount -t tmpfs -o size=32k none $dir/small\n{begun}\n{rtrace} >/dev/null 2>$dir/said &\n{ends}\nwait $!; echo status $?; wait"
        )
    }
}

#[test]
fn every_call_is_accounted_for() {
    let number = |name: &str, default: u64| std::env::var(name).ok().map_or(default, |value| value.parse().expect(name));
    let first = number("RTRACE_TEST_RANDOM_SEED", 1);
    let mut faults = Vec::new();
    for seed in first..first + number("RTRACE_TEST_RANDOM_RUNS", 24) {
        let Some(machine) = Machine::shared() else { return };
        let groups = ["a", "b"].map(|name| Cgroup::new(&machine, name));
        let mix = Mix::new(seed);
        let accounted = account(&machine, &mix, &groups);
        let said = std::fs::read_to_string(machine.path("said")).unwrap_or_default();
        // This is visible with --nocapture.
        println!("{seed}: {} | {} | {:?} | {}", mix.options, mix.load, mix.end, said.lines().next_back().unwrap_or_default());
        if let Err(fault) = accounted {
            faults.push(format!("RTRACE_TEST_RANDOM_SEED={seed} RTRACE_TEST_RANDOM_RUNS=1: {fault}\n{}\n{said}", mix.script()));
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n\n"));
}

fn account(machine: &Machine, mix: &Mix, [a, b]: &[Cgroup; 2]) -> Result<(), String> {
    let script = format!("export a={} b={}\n{}", a.dir.display(), b.dir.display(), mix.script());
    std::fs::write(machine.path("script"), script).expect("the test's directory is writable");
    let run = shell(machine, "timeout -s KILL 100 unshare -m sh $dir/script");
    let said = std::fs::read_to_string(machine.path("said")).unwrap_or_default();
    let text = std::fs::read(machine.path("lines")).unwrap_or_default();
    let trace = Trace { text: String::from_utf8_lossy(&text).into_owned(), stderr: said, ..run };
    let status: u32 = trace
        .stdout
        .trim()
        .strip_prefix("status ")
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| format!("no status: {trace:?}"))?;
    if trace.stderr.contains("does not add up") || trace.stderr.contains("panicked at src/") || [101, 134, 137, 139].contains(&status) {
        return Err(format!("status {status}"));
    }
    if !trace.stderr.contains(" calls issued, ") {
        // A refused run prints a sentence and traces nothing. Before rtrace blocks signals, they have their default
        // effect.
        if trace.stderr.is_empty() && [129, 130, 131, 143].contains(&status) {
            return Ok(());
        }
        let refused = status == 125 && trace.stderr.contains("rtrace: ") || trace.stderr.contains("was not started");
        return if refused { Ok(()) } else { Err(format!("no verdict, status {status}")) };
    }
    let verdict = trace.verdict();
    if !verdict.adds_up() {
        return Err(format!("{verdict:?}"));
    }
    let has_all_lines = matches!(mix.end, End::Itself | End::Signals(_) | End::Enough) && !mix.options.contains(" -s");
    let lines = line::calls(&trace.lines()).len() as u64;
    if has_all_lines && lines != verdict.printed {
        return Err(format!("{lines} lines, {verdict:?}"));
    }
    Ok(())
}
