//! One run of rtrace and its results: lines, notices, verdict, status.

use crate::line::{self, Line};
use crate::machine::{self, Machine};
use regex::Regex;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The longest time that a run may take; a test that hangs fails after it. `RTRACE_TEST_PATIENCE` sets it in seconds,
/// for a slow machine.
pub static PATIENCE: LazyLock<Duration> = LazyLock::new(|| {
    let asked = std::env::var("RTRACE_TEST_PATIENCE").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(120))
});

/// The results of a finished run.
#[derive(Debug, Default)]
pub struct Trace {
    pub status: i32,
    /// The content of the file of `-o`.
    pub text: String,
    pub stdout: String,
    pub stderr: String,
}

/// The numbers of `rtrace: N calls issued, P printed, L lost`, with `, H held back as asked` if a condition held back
/// calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub issued: u64,
    pub printed: u64,
    pub lost: u64,
    pub held_back: u64,
    pub given_up: u64,
}

impl Verdict {
    /// Whether the numbers add up.
    pub fn adds_up(&self) -> bool {
        self.printed + self.lost + self.held_back + self.given_up == self.issued
    }
}

/// A run in progress. Its lines go to a file, and its verdict to stderr (`-v`).
pub struct Running<'m> {
    machine: &'m Machine,
    child: Child,
    name: String,
}

/// Runs `rtrace -v -o FILE` with these options on this command, and waits for its end.
pub fn trace(machine: &Machine, options: &[&str], command: &[&str]) -> Trace {
    start(machine, options, command).finish()
}

/// Does the same on `workload` with these words.
pub fn workload(machine: &Machine, options: &[&str], words: &str) -> Trace {
    start_workload(machine, options, words).finish()
}

/// Does the same with an rtrace that takes no real-time priority, because the caller has set its policy, so that a tiny
/// ring is overrun.
pub fn overrun(machine: &Machine, options: &[&str], words: &str) -> Trace {
    let name = new_name();
    let program = machine::workload();
    let command: Vec<&str> = std::iter::once(program.as_str()).chain(words.split_whitespace()).collect();
    let mut all: Vec<String> = ["--batch", "0", machine::rtrace()].map(str::to_owned).to_vec();
    all.extend(traced(machine, &name, options, &command));
    spawn(machine, Place::Background, "chrt", &all, name).finish()
}

pub fn start_workload<'m>(machine: &'m Machine, options: &[&str], words: &str) -> Running<'m> {
    let program = machine::workload();
    let command: Vec<&str> = std::iter::once(program.as_str()).chain(words.split_whitespace()).collect();
    start(machine, options, &command)
}

/// Starts rtrace in its own process group, as a shell would.
pub fn start<'m>(machine: &'m Machine, options: &[&str], command: &[&str]) -> Running<'m> {
    let name = new_name();
    let words = traced(machine, &name, options, command);
    spawn(machine, Place::Background, machine::rtrace(), &words, name)
}

/// Starts rtrace as the foreground of its own terminal, and returns the terminal's other side: text that is written
/// there is typed.
pub fn start_on_a_terminal<'m>(machine: &'m Machine, options: &[&str], command: &[&str]) -> (Running<'m>, File) {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there are pseudoterminals");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours");
    let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("it is unlocked");
    let name = new_name();
    let words = traced(machine, &name, options, command);
    (spawn(machine, Place::Terminal(theirs), machine::rtrace(), &words, name), ours.into())
}

/// Returns the words for `rtrace -v -o FILE` with these options on this command.
fn traced(machine: &Machine, name: &str, options: &[&str], command: &[&str]) -> Vec<String> {
    let lines = machine.path(&format!("{name}.lines"));
    let engine = machine::engine_asked_for().filter(|_| !options.contains(&"--engine"));
    let mut words = vec!["-v".to_string(), "-o".to_string(), lines];
    words.extend(engine.into_iter().flat_map(|engine| ["--engine".to_string(), engine]));
    words.extend(options.iter().map(ToString::to_string));
    if !command.is_empty() {
        words.push("--".to_string());
        words.extend(command.iter().map(ToString::to_string));
    }
    words
}

/// Runs rtrace with exactly these words.
pub fn plain(machine: &Machine, words: &[&str]) -> Trace {
    spawn(machine, Place::Background, machine::rtrace(), words, new_name()).finish()
}

/// Runs a shell line in which `$rtrace` and `$workload` are the paths of these programs, and `$dir` is the directory of
/// the test.
pub fn shell(machine: &Machine, script: &str) -> Trace {
    start_shell(machine, script).finish()
}

/// Runs a shell line in which `$engine` is also defined, as the option for the engine under test. The text of the
/// result is its standard output, instead of the file of `-o`.
pub fn shell_with_engine(machine: &Machine, script: &str) -> Trace {
    let engine = machine::engine_asked_for().map(|engine| format!("--engine {engine}")).unwrap_or_default();
    let trace = shell(machine, &format!("engine='{engine}'; export engine; {script}")).succeeded();
    Trace { text: trace.stdout.clone(), ..trace }
}

/// Starts such a shell line.
pub fn start_shell<'m>(machine: &'m Machine, script: &str) -> Running<'m> {
    spawn(machine, Place::Background, "sh", &["-c", script], new_name())
}

fn new_name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("run{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The session and process group of a run.
enum Place {
    /// In its own process group.
    Background,
    /// In its own session, as the foreground of this terminal.
    Terminal(OwnedFd),
}

fn spawn<'m>(machine: &'m Machine, place: Place, program: &str, words: &[impl AsRef<OsStr>], name: String) -> Running<'m> {
    let file = |ending: &str| File::create(machine.path(&format!("{name}.{ending}"))).expect("the test's directory is writable");
    let mut command = match place {
        Place::Background => {
            let mut command = Command::new("env");
            command.stdin(Stdio::null()).process_group(0);
            command
        }
        Place::Terminal(terminal) => {
            let mut command = Command::new("setsid");
            command.args(["--ctty", "env"]).stdin(terminal);
            command
        }
    };
    // A shell that runs the tests in the background makes them ignore SIGINT and SIGQUIT.
    let child = command
        .args(["--default-signal=INT,QUIT", program])
        .args(words)
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .env_remove("RTRACE_OPTS")
        .env_remove("PERF_CONFIG")
        .env("XDG_CONFIG_HOME", machine.dir())
        .env("rtrace", machine::rtrace())
        .env("workload", machine::workload())
        .env("dir", machine.dir())
        .spawn()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    Running { machine, child, name }
}

impl Running<'_> {
    pub fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Waits until the lines written so far fulfil a condition.
    pub fn wait_for(&mut self, what: &str, condition: impl Fn(&[Line]) -> bool) {
        self.wait_until(what, |run| condition(&line::parse(&run.read("lines"))));
    }

    /// Waits until the messages printed so far fulfil a condition.
    pub fn wait_for_text(&mut self, what: &str, condition: impl Fn(&str) -> bool) {
        self.wait_until(what, |run| condition(&run.read("lines")));
    }

    /// The condition that there is any line.
    pub fn has_lines(&self) -> bool {
        !self.read("lines").is_empty()
    }

    /// Waits until the output of the command is exactly this.
    pub fn wait_for_output(&mut self, text: &str) {
        self.wait_until(text, |run| run.read("stdout") == text);
    }

    /// Waits until the output of the command so far fulfils a condition, or the command has ended.
    pub fn wait_for_stdout(&mut self, condition: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !condition(&self.read("stdout")) && start.elapsed() < *PATIENCE {
            if self.child.try_wait().expect("the child is ours").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            let ended = self.child.try_wait().expect("the child is ours");
            let hopeless = ended.is_some() && !condition(self) || start.elapsed() > *PATIENCE;
            assert!(!hopeless, "no {what}, {ended:?}:\n{}\n{}", self.read("lines"), self.read("stderr"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end of the run.
    pub fn finish(mut self) -> Trace {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                break status;
            }
            assert!(start.elapsed() < *PATIENCE, "no end in sight:\n{}\n{}", self.read("lines"), self.read("stderr"));
            std::thread::sleep(Duration::from_millis(5));
        };
        Trace { status: code(status), text: self.read("lines"), stdout: self.read("stdout"), stderr: self.read("stderr") }
    }

    fn read(&self, ending: &str) -> String {
        let bytes = std::fs::read(self.machine.path(&format!("{}.{ending}", self.name))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Kills processes that rtrace did not wait for, or that a failed test has left.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(self.pid(), rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Returns the status as a shell reports it: 128 plus the signal's number for a death by signal.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

impl Trace {
    pub fn lines(&self) -> Vec<Line> {
        line::parse(&self.text)
    }

    /// Returns the verdict, which is the last line on stderr.
    pub fn verdict(&self) -> Verdict {
        let verdict = self.stderr.lines().rev().find_map(verdict);
        verdict.unwrap_or_else(|| panic!("no verdict, status {}, stderr:\n{}", self.status, self.stderr))
    }

    /// Checks that the numbers add up with the test's own count of the lines, and returns the verdict.
    pub fn conserved(&self) -> Verdict {
        let verdict = self.verdict();
        let lines = self.lines();
        assert_eq!(line::calls(&lines).len() as u64, verdict.printed, "lines counted against {verdict:?}\n{}", self.stderr);
        assert!(verdict.adds_up(), "{verdict:?}\n{}", self.stderr);
        verdict
    }

    /// Returns the sorted tags of the tagged calls that have a line.
    pub fn tags(&self) -> Vec<u64> {
        let lines = self.lines();
        let tagged = line::calls(&lines).into_iter().filter(|(_, call)| call.name == "lseek");
        let mut tags: Vec<u64> = tagged.filter_map(|(_, call)| call.number("offset")).collect();
        tags.sort_unstable();
        tags
    }

    /// Returns how many calls of this name have a line.
    pub fn count(&self, name: &str) -> u64 {
        line::calls(&self.lines()).iter().filter(|(_, call)| call.name == name).count() as u64
    }

    pub fn succeeded(self) -> Trace {
        assert_eq!(self.status, 0, "stderr:\n{}", self.stderr);
        self
    }

    /// Returns how many calls of this name `workload` issued, as it printed itself.
    pub fn issued(&self, name: &str) -> u64 {
        let fact = self.stdout.lines().find_map(|l| l.strip_prefix("issued ")?.strip_prefix(name)?.trim().parse().ok());
        fact.unwrap_or_else(|| panic!("no count of {name} in {:?}, stderr:\n{}", self.stdout, self.stderr))
    }
}

fn verdict(line: &str) -> Option<Verdict> {
    static VERDICT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            "^rtrace: ([0-9]+) calls issued, ([0-9]+) printed, ([0-9]+) lost(?:, ([0-9]+) held back as asked)?(?:, ([0-9]+) given up)?",
        )
        .expect("the pattern is right")
    });
    let counts = VERDICT.captures(line)?;
    let count = |i: usize| counts.get(i).map_or(Ok(0), |m| m.as_str().parse());
    let [issued, printed, lost, held_back, given_up] = [1, 2, 3, 4, 5].map(|i| count(i).ok());
    Some(Verdict { issued: issued?, printed: printed?, lost: lost?, held_back: held_back?, given_up: given_up? })
}
