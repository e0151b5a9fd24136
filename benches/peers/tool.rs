//! The tracers that are compared, and the command line of each for every case.

use crate::case::Case;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rtrace,
    Perf,
    Strace,
}

/// The CPUs on which a tool and its program run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the scheduler puts them.
    Free,
    /// Both on one CPU: they take turns, and no other CPU has to be woken.
    Pinned,
}

impl Placement {
    pub const BOTH: [Placement; 2] = [Placement::Free, Placement::Pinned];

    pub fn name(self) -> &'static str {
        match self {
            Placement::Free => "free",
            Placement::Pinned => "pinned",
        }
    }

    /// Returns the command with this placement.
    pub fn place(self, words: Vec<String>) -> Vec<String> {
        match self {
            Placement::Free => words,
            Placement::Pinned => ["taskset", "-c", "0"].map(str::to_owned).into_iter().chain(words).collect(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Tool {
    pub kind: Kind,
    /// The name, with the version.
    pub name: String,
    pub program: String,
    /// The options for every case.
    options: &'static [&'static str],
}

/// Returns rtrace and the installed peers: the system's perf, and the newer perf and strace of `benches/fetch-peers`.
pub fn present() -> Vec<Tool> {
    let newer = std::env::var("RTRACE_PEERS").unwrap_or_else(|_| "/var/tmp/peers".into());
    // Another build of rtrace, to compare with.
    let other = std::env::var("RTRACE_OTHER").unwrap_or_default();
    let candidates = [
        (Kind::Rtrace, env!("CARGO_BIN_EXE_rtrace").to_owned(), &["--engine", "bpf"][..]),
        (Kind::Rtrace, env!("CARGO_BIN_EXE_rtrace").to_owned(), &["--engine", "tracepoint"]),
        (Kind::Perf, "/usr/bin/perf".to_owned(), &[]),
        (Kind::Perf, format!("{newer}/tools/perf"), &[]),
        // With these ring buffers, perf loses nothing in case (g).
        (Kind::Perf, "/usr/bin/perf".to_owned(), &["-m", "256M"]),
        (Kind::Perf, format!("{newer}/tools/perf"), &["-m", "256M"]),
        (Kind::Strace, format!("{newer}/tools/strace"), &[]),
    ];
    let another = (!other.is_empty()).then_some((Kind::Rtrace, other.clone(), &["--engine", "bpf"][..]));
    let tools = candidates.into_iter().chain(another).filter_map(|(kind, program, options)| {
        if !Path::new(&program).exists() {
            eprintln!("not installed, left out: {program}");
            return None;
        }
        let build = if program == other { ", the other build" } else { "" };
        let name = named(kind, &program) + &options.iter().skip(1).map(|word| format!(", {word}")).collect::<String>() + build;
        Some(Tool { kind, name, program, options })
    });
    tools.collect()
}

fn named(kind: Kind, program: &str) -> String {
    let output = Command::new(program).arg("--version").output().map(|o| o.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or("?");
    match kind {
        Kind::Rtrace => format!("rtrace {version}"),
        Kind::Perf => format!("perf trace {version}"),
        Kind::Strace => format!("strace {version}"),
    }
}

impl Tool {
    /// Whether the tool is compared in a case. strace was built without the library that its `-k` needs.
    pub fn is_for(&self, case: Case) -> bool {
        match case {
            Case::Stacks => self.kind != Kind::Strace,
            Case::TrueWithStacks => self.kind != Kind::Strace && !self.has_large_ring(),
            _ => !self.has_large_ring(),
        }
    }

    fn has_large_ring(&self) -> bool {
        self.options.first() == Some(&"-m")
    }

    /// Returns the words before the traced command. The tool writes its lines to `output`.
    pub fn words(&self, case: Case, output: Option<&str>) -> Vec<String> {
        let mut words = vec![self.program.clone()];
        words.extend(self.follow(case).iter().chain(self.options).map(|word| (*word).to_owned()));
        if let Some(output) = output {
            words.extend(["-o".to_owned(), output.to_owned()]);
        }
        words.push("--".to_owned());
        words
    }

    fn follow(&self, case: Case) -> &'static [&'static str] {
        match (self.kind, case) {
            (Kind::Rtrace, Case::NothingMatches) => &["-v", "-e", "acct"],
            (Kind::Rtrace, Case::Summary) => &["-v", "-s"],
            // This is without -v, which prints messages before the first line.
            (Kind::Rtrace, Case::True) => &[],
            (Kind::Rtrace, Case::GccFiltered) => &["-v", "-e", "openat,execve"],
            (Kind::Perf, Case::GccFiltered) => &["trace", "-e", "openat,execve"],
            (Kind::Strace, Case::GccFiltered) => &["-f", "-T", "-r", "--seccomp-bpf", "-e", "trace=openat,execve"],
            (Kind::Rtrace, Case::Stacks) => &["-v", "-e", "openat,close", "--call-graph", "dwarf"],
            (Kind::Rtrace, Case::TrueWithStacks) => &["--call-graph", "dwarf"],
            (Kind::Rtrace, _) => &["-v"],
            (Kind::Perf, Case::NothingMatches) => &["trace", "-e", "acct"],
            (Kind::Perf, Case::Summary) => &["trace", "-s"],
            (Kind::Perf, Case::Stacks) => &["trace", "-e", "openat,close", "--call-graph", "dwarf"],
            (Kind::Perf, Case::TrueWithStacks) => &["trace", "--call-graph", "dwarf"],
            (Kind::Perf, _) => &["trace"],
            (Kind::Strace, Case::NothingMatches) => &["-f", "--seccomp-bpf", "-e", "trace=acct"],
            (Kind::Strace, Case::Summary) => &["-f", "-c"],
            (Kind::Strace, _) => &["-f", "-T", "-r"],
        }
    }
}
