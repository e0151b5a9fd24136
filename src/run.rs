//! A trace from beginning to end: opens the events, starts the command, drains the rings, prints, and cleans up.
//!
//! There are two threads. The main thread waits for signals, for the command and for the rings, and drains the rings.
//! The worker ([`worker`]) turns records into events and prints them. Between them is a queue whose size in bytes is
//! bounded. While it is full the rings are not drained, and the kernel counts the records that no longer fit into them
//! as lost.

mod convert;
mod display;
mod end;
mod initial_state;
mod outline;
mod outline_of_trace;
mod programs;
mod progress;
mod read_ahead;
mod record;
mod recorder;
mod replay;
mod sentences;
pub mod session;
mod signals;
mod sinks;
mod snapshots;
mod supervise;
mod throttle;
mod verdict;
mod watch;
mod work;
pub mod worker;

pub use convert::convert;
pub use outline::outline;
pub use outline_of_trace::outline_of_trace;
pub use replay::replay;

use crate::arm;
use crate::arm::live::Drain;
use crate::arm::stale;
use crate::beauty::signal;
use crate::bpf::user::Objects;
use crate::event::{Notice, NoticeCode, Synthesized, Time};
use crate::interrupt;
use crate::kernel::output_readers::{self, OutputReader};
use crate::kernel::remote_files::Guarded;
use crate::kernel::tracefs::Tracefs;
use crate::kernel::{descriptors, procfs};
use crate::plan::{self, Plan, own_only};
use crate::probe::run_events::RunEvents;
use crate::request::{self, Target, TaskSelection, Trace};
use crate::say;
use crate::sink::output::Output;
use crate::source::queue::{Sender, queue};
use crate::sys::exit_code::ExitCode;
use crate::sys::priority::RealtimePriority;
use crate::sys::spawn::{Child, Program, StartError};
use crate::sys::{clock, file_capabilities, perf};
use crate::text::os_error::without_error_numbers;
use crate::throttle::{Throttle, remove_stale};
use anyhow::Context;
use rustix::process::Rlimit;
use snapshots::Snapshots;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;
use watch::End;

/// Runs a trace and returns the exit status.
///
/// # Errors
/// rtrace itself could not carry out the request. The command, if there is one, was not started.
pub fn trace(request: &Trace) -> anyhow::Result<ExitCode> {
    let before = descriptors::raise()?;
    carry_out(request, before).map_err(descriptors::explain)
}

/// Carries out a trace. `before` is the limit of open files with which rtrace was started.
fn carry_out(request: &Trace, before: Rlimit) -> anyhow::Result<ExitCode> {
    snapshots::block_signals(request).context("cannot wait for signals")?;
    own_only::check_request(request)?;
    if !matches!(request.target, Target::Running { tasks: TaskSelection::All | TaskSelection::User(_), .. }) {
        perf::get_ready_to_follow();
    }
    let tracefs = Tracefs::find().unwrap_or_else(Tracefs::absent);
    let stale_removal = tracefs.why_absent().is_none().then(|| stale::remove_in_thread(&tracefs)).flatten();
    remove_stale();
    // Created before everything that may hold descriptors of its events, so that it is dropped after them.
    let mut run_events = RunEvents::create(&tracefs, plan::probes(request))?;
    let mut objects = Objects::open(&request.what.items, &tracefs)?;
    let (mut plan, programs) = arm::choose(request, &tracefs, &mut run_events, objects.outputs())?;
    own_only::check_plan(&plan)?;
    objects.load(&plan.targets, plan.outputs_inherit(), programs.as_ref())?;
    let mut notices = Notices::default();
    notices.say_absent(&tracefs);
    let command = match &request.target {
        Target::Command(command) => Some(command),
        Target::Running { timer, .. } => timer.as_ref(),
    };
    let mut program = match command.map(|command| prepare(command, request)).transpose() {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    supervise::add_filter(&plan, program.as_mut());
    let child = program.as_ref().map(Child::fork).transpose().context("cannot fork the command")?;
    child.iter().for_each(|child| descriptors::restore(child.pid, before));
    let supervisor = supervise::supervise(request, &plan, programs.as_ref(), child.as_ref())?;
    let traced = matches!(request.target, Target::Command(_)).then(|| child.as_ref().map(|c| c.pid)).flatten();
    let throttle = traced.filter(|_| request.run.lossless).map(Throttle::create).transpose()?;

    let recording = record::create_now(request)?;
    let is_alone = request.recording.as_ref().is_some_and(|recording| recording.is_alone);
    let output = (!is_alone).then(|| open_output(request)).transpose()?;
    plan.leave_out(output.iter().flat_map(|output| output_readers(request, output)));
    let files = Guarded::default();
    plan.leave_out(file_reader(&plan, &files));
    plan.show_pending(sinks::shows_pending(request, output.as_ref()));
    let plan = plan;
    print_plan(request, &plan, &mut notices);
    let (sender, receiver) = queue(plan.buffers.queue);
    let enough = Arc::new(AtomicBool::new(false));
    let sinks = output.map(|output| sinks::Planned::new(request, output, &sinks::Tasks::of(request))).transpose()?;
    let worker = worker::start(request, &plan, sinks, receiver, Arc::clone(&enough), files)?;
    let armed = arm::arm(&plan, traced, programs, objects).map_err(|error| run_events.refusal(&tracefs).unwrap_or(error))?;
    let throttle = throttle.map(|throttle| throttle::start(throttle, &plan, &armed, &mut notices)).transpose()?;
    let session = Arc::new(session::session(&plan, &armed, request.show.time.is_local() || request.recording.is_some()));
    let shown = plan.bind(request, &session)?;
    let recording = recording.map(|(of, file)| record::head((request, of), &plan, &session, &tracefs).begin(file, &of.path)).transpose()?;
    let drain = Drain::new(armed, notices.0).supervised_by(supervisor);
    let (snapshots, snapshot_writer) = snapshots::prepare(request, &plan, &session, &tracefs, &drain).unzip();
    let mut run = Run {
        request,
        plan: &plan,
        drain,
        snapshots,
        run_events,
        queue: Some(sender),
        enough,
        child,
        traced,
        throttle,
        status: None,
        is_refused: false,
        verbose: request.run.verbose > 0,
        draining: Duration::ZERO,
    };
    worker.begin(worker::Begin { session, shown, recording, snapshots: snapshot_writer });
    interrupt::tracing();
    let started = run.run(program.as_ref());
    interrupt::over();
    let ended = run.end();
    let outcome = worker.join();
    started.and(ended)?;
    let code = run.exit_code(&outcome?);
    // Waits for the removal of stale events, so that none are left after this run.
    stale_removal.map(JoinHandle::join);
    Ok(code)
}

/// Opens the output. Under the name of strace, a file that cannot be opened has strace's message.
fn open_output(request: &Trace) -> anyhow::Result<Output> {
    Output::open(&request.output).map_err(|error| match &request.output.to {
        request::Sink::File(path) | request::Sink::Append(path) if request.run.as_strace && !request.output.separately => {
            anyhow::anyhow!("Can't fopen '{}': {}", path.display(), error.root_cause())
        }
        _ => error,
    })
}

/// Prepares the execution of the command. If it cannot be executed, prints why, and returns the exit status for that.
fn prepare(command: &request::Command, request: &Trace) -> Result<Program, ExitCode> {
    match plan::program(command) {
        // strace executes no script without an interpreter line.
        Ok(program) => Ok(Program { by_shell: program.by_shell && !request.run.as_strace, ..program }),
        Err(refused) if request.run.as_strace => {
            say!("strace: {}", refused.for_strace());
            Err(ExitCode::WrongForStrace)
        }
        Err(refused) => {
            say!("rtrace: {}", without_error_numbers(&refused.to_string()));
            Err(refused.exit_code())
        }
    }
}

/// The notices that were printed before the rings are drained, with their times.
#[derive(Debug, Default)]
struct Notices(Vec<(Time, Notice)>);

impl Notices {
    /// Says that there is no tracefs. With file capabilities, other events than syscalls are not permitted anyway.
    fn say_absent(&mut self, tracefs: &Tracefs) {
        if let Some(why) = tracefs.why_absent().filter(|_| !file_capabilities::are_present()) {
            self.say(NoticeCode::OnlySyscalls, format!("only syscalls are traced, without signals and other events: {why}"));
        }
    }

    /// Prints a notice, and keeps it for the stream.
    fn say(&mut self, code: NoticeCode, text: String) {
        self.0.push((clock::now(), say::notice(code, text)));
    }
}

/// Prints the plan with `-v`, and the notices of the request and the plan without `--quiet`.
fn print_plan(request: &Trace, plan: &Plan, notices: &mut Notices) {
    if request.run.verbose > 0 {
        say::list("plan: ", &plan.to_string());
    }
    if request.run.as_strace {
        request.notices.iter().for_each(|notice| say!("strace: {notice}"));
        plan.remarks.iter().for_each(|remark| notices.say(NoticeCode::Remark, remark.clone()));
    } else if !request.run.quiet {
        request.notices.iter().chain(&plan.remarks).for_each(|remark| notices.say(NoticeCode::Remark, remark.clone()));
    }
}

/// Returns the processes that read or show rtrace's output. Tracing them would trace the output of the trace.
fn output_readers(request: &Trace, output: &Output) -> Vec<OutputReader> {
    match request.output.to {
        request::Sink::Stderr => output_readers::output_readers(std::io::stderr().as_fd()),
        request::Sink::Stdout => output_readers::output_readers(std::io::stdout().as_fd()),
        request::Sink::Pipe(_) => {
            output.reader().map(|pid| OutputReader { pid, comm: b"sh".to_vec(), reason: "reads rtrace's output" }).into_iter().collect()
        }
        request::Sink::File(_) | request::Sink::Append(_) => Vec::new(),
    }
}

/// Returns the process that reads files for rtrace, if this trace needs one and must leave it out.
fn file_reader(plan: &Plan, files: &Guarded) -> Option<OutputReader> {
    let pid = (plan.maps && plan.targets.is_open_ended()).then(|| files.start_ahead()).flatten()?;
    Some(OutputReader { pid, comm: b"rtrace-reader".to_vec(), reason: "reads files for rtrace" })
}

/// A running trace: the state of the main thread.
struct Run<'a> {
    request: &'a Trace,
    plan: &'a Plan,
    drain: Drain,
    /// Takes snapshots, if the rings are overwritten.
    snapshots: Option<Snapshots>,
    /// The events of `--probe`. The field comes after those with descriptors of the events, since it must be dropped
    /// after them.
    run_events: RunEvents,
    /// The queue to the worker; `None` once everything was sent.
    queue: Option<Sender>,
    /// Set when the worker needs no more records: enough was printed, or the output has no reader.
    enough: Arc<AtomicBool>,
    child: Option<Child>,
    /// The PID of the child if it is traced. Otherwise the child is only the timer.
    traced: Option<i32>,
    /// Delays the command with `--lossless`.
    throttle: Option<Throttle>,
    /// The child's wait(2) status.
    status: Option<std::process::ExitStatus>,
    /// The command line was one of strace, and its command could not be executed.
    is_refused: bool,
    verbose: bool,
    /// The CPU time that draining the rings and waiting took.
    draining: Duration,
}

impl Run<'_> {
    /// Runs everything between the opening and the disabling of the events.
    fn run(&mut self, program: Option<&Program>) -> anyhow::Result<()> {
        let arming = "cannot enable the events";
        // Tasks that are created from now on are reported by records, those created before are read from /proc.
        self.drain.enable_side_band().context(arming)?;
        self.synthesize_first(program);
        self.synthesize_maps();
        let enable_at = self.plan.delay.map(|delay| clock::now().0 + delay);
        // Requested before the capability for it is dropped.
        let priority = RealtimePriority::acquire();
        if enable_at.is_none() {
            self.enable()?;
        }
        self.report_other_programs();
        if let (Some(signal), Some(_)) = (interrupt::first().and_then(signal::name), &self.child) {
            self.drain.notice(NoticeCode::CommandNotStarted, format!("the command was not started, because {signal} arrived first"));
            return Ok(());
        }
        match self.child.as_mut().map(Child::start) {
            Some(Ok(executed)) => self.synthesize_executed(executed),
            Some(Err(error)) => return self.report_failed_exec(error),
            None => {}
        }
        self.say_targets("attached");
        self.say_how_to_ask();
        let before = clock::of_thread();
        let end = self.watch_with_priority(priority, enable_at)?;
        self.draining = clock::of_thread() - before;
        self.report_other_programs();
        match end {
            End::Enough if self.request.run.as_strace && self.request.show.max_events.is_some() => {
                if self.request.show.strace.targets {
                    say!("strace: System call limit has been reached, detaching tracees");
                }
                self.say_targets("detached");
            }
            End::Requested if self.request.run.as_strace => self.say_targets("detached"),
            End::Enough if self.verbose => {
                self.drain.notice(NoticeCode::TraceComplete, "the trace is complete; the command continues untraced".to_owned());
            }
            End::Late => self.report_overdue(),
            _ => {}
        }
        Ok(())
    }

    /// Says in strace's words what became of the processes that it attaches to: those of `-p`, and the command if it is
    /// no longer traced.
    fn say_targets(&self, what: &str) {
        if !self.request.run.as_strace || !self.request.show.strace.targets {
            return;
        }
        let command = self.traced.filter(|_| what == "detached" || self.request.show.strace.attaches);
        let pids = match &self.request.target {
            Target::Running { tasks: TaskSelection::Pids(pids) | TaskSelection::Tids(pids), .. } => pids.as_slice(),
            _ => command.as_slice(),
        };
        let is_whole = matches!(self.request.target, Target::Running { tasks: TaskSelection::Pids(_), .. });
        for &pid in pids {
            match (what, if is_whole { procfs::threads(pid) } else { Vec::new() }) {
                ("attached", threads) if threads.len() > 1 => say!("strace: Process {pid} attached with {} threads", threads.len()),
                ("detached", threads) if threads.len() > 1 => threads.iter().rev().for_each(|tid| say!("strace: Process {tid} detached")),
                _ => say!("strace: Process {pid} {what}"),
            }
        }
    }

    /// Reports that the exec failed. The exit status has the failure, and the records until then are printed.
    fn report_failed_exec(&mut self, error: StartError) -> anyhow::Result<()> {
        let name = match &self.request.target {
            Target::Command(command) => command.argv.first(),
            Target::Running { timer, .. } => timer.as_ref().and_then(|c| c.argv.first()),
        };
        let name = name.map(|n| n.to_string_lossy()).unwrap_or_default();
        let why = without_error_numbers(&error.to_string());
        match self.request.run.as_strace {
            true => {
                match (&error, why.strip_prefix("cannot be executed: ")) {
                    (StartError::Execute(error), Some(why)) if error.kind() == io::ErrorKind::NotFound => {
                        say!("strace: Cannot stat '{name}': {why}");
                    }
                    (_, why_executed) => say!("strace: exec: {}", why_executed.unwrap_or(&why)),
                }
                self.is_refused = true;
            }
            false => self.drain.notice(NoticeCode::CommandNotExecuted, format!("{name}: {why}")),
        }
        self.reap(true);
        Ok(())
    }

    /// Reads the child's status. Returns true once the child has ended.
    fn reap(&mut self, wait: bool) -> bool {
        let Some(child) = &self.child else { return false };
        if self.status.is_none() {
            self.status = child.try_wait(wait);
            if let Some(status) = self.status {
                self.drain.synthesized(Synthesized::Reaped { pid: child.pid, status: status.into_raw() });
            }
        }
        self.status.is_some()
    }
}
