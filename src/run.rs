//! One run: arm, start, drain, print, clean up.
//!
//! Two threads. This one waits for signals, for the command and for the rings, and empties the rings; the other ([`worker`]) makes events of what came and prints them. A queue
//! bounded in bytes lies between: when it is full the rings wait, and what no longer fits into them the kernel counts as lost.

pub mod verdict;
pub mod worker;

use crate::arm::left;
use crate::arm::live::Drain;
use crate::arm::{self, Armed};
use crate::beauty::signal;
use crate::bpf::user::Objects;
use crate::event::{Note, TaskId, Time};
use crate::interrupt;
use crate::kernel::carriers::{self, Carrier};
use crate::kernel::elsewhere::Guarded;
use crate::kernel::{cgroups, descriptors, elf, machine, procfs, tracefs::Tracefs};
use crate::plan::{self, Plan, own_only};
use crate::probe::made::Made;
use crate::request::{self, Target, Trace, Who};
use crate::say;
use crate::session::{Scope, Session, Whom};
use crate::sink::output::Output;
use crate::source::instance::Instance;
use crate::source::look;
use crate::source::queue::{Sender, queue};
use crate::stream::is_given_up;
use crate::sys::exit_code::ExitCode;
use crate::sys::signals::Came;
use crate::sys::spawn::{Child, Refused};
use crate::sys::turn::First;
use crate::sys::{caller, clock, closer, lent, perf, rights};
use crate::text::plain::without_numbers;
use anyhow::Context;
use rustix::event::epoll;
use rustix::process::{Pid, Rlimit, Signal, kill_process};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use worker::Outcome;

/// The pause between two looks at the rings, milliseconds, while records came in the last rounds: a record is printed two rounds after it was written.
const PAUSE_BUSY_MS: i64 = 20;
/// The same when the last rounds were empty. Together: 50 + 2 * 20 ms is within the latency bound of 100 ms.
const PAUSE_IDLE_MS: i64 = 50;
/// No ring is filled faster than with so many bytes a nanosecond. Until one may be full, nobody looks again: each task
/// that ends wakes rtrace up, which comes before whoever runs.
const FILL_RATE: u64 = 2;
/// A longer pause gains nothing.
const REST: Duration = Duration::from_millis(2);
/// The pause between two looks for calls in flight that no record tells of, nanoseconds: a look costs some 100 ns a task of the machine.
const PENDING_LOOK_NS: u64 = 100_000_000;

/// Runs a trace from the request to the exit status.
///
/// # Errors
/// rtrace itself could not do what was asked; the command, if there is one, was not started.
pub fn trace(request: &Trace) -> anyhow::Result<ExitCode> {
    let before = descriptors::raise()?;
    carry_out(request, before).map_err(descriptors::explain)
}

/// `before`: how many files rtrace might have open when it was started.
fn carry_out(request: &Trace, before: Rlimit) -> anyhow::Result<ExitCode> {
    interrupt::take().context("cannot wait for signals")?;
    own_only::check_request(request)?;
    if !matches!(request.target, Target::There { who: Who::All | Who::User(_), .. }) {
        perf::get_ready_to_follow();
    }
    let tracefs = Tracefs::find().unwrap_or_else(Tracefs::absent);
    let tidying = tracefs.why_absent().is_none().then(|| left::remove_beside(&tracefs)).flatten();
    // Before all that may hold a descriptor of theirs, so that it is gone before they are taken away.
    let mut made = Made::make(&tracefs, plan::probes(request))?;
    let mut objects = Objects::open(&request.what.items, &tracefs)?;
    let (mut plan, programs) = arm::choose(request, &tracefs, &mut made, objects.outputs())?;
    own_only::check_plan(&plan)?;
    objects.load(&plan.whom, plan.outputs_inherit(), programs.as_ref())?;
    // Whoever is lent rtrace's privileges has no other events anyhow.
    if let Some(why) = tracefs.why_absent().filter(|_| !lent::is_lent()) {
        say!("rtrace: there are only syscalls, no signals and no other events: {why}");
    }
    let command = match &request.target {
        Target::Command(command) => Some(command),
        Target::There { timer, .. } => timer.as_ref(),
    };
    let program = match command.map(plan::program).transpose() {
        Ok(program) => program,
        Err(refused) => {
            say!("rtrace: {}", without_numbers(&refused.to_string()));
            return Ok(refused.exit_code());
        }
    };
    let child = program.as_ref().map(Child::fork).transpose().context("cannot fork the command")?;
    child.iter().for_each(|child| descriptors::give_back(child.pid, before));
    let traced = matches!(request.target, Target::Command(_)).then(|| child.as_ref().map(|c| c.pid)).flatten();

    let output = Output::open(&request.output)?;
    plan.leave_out(carriers(request, &output));
    let files = Guarded::default();
    if plan.maps && plan.whom.is_anyone() {
        plan.leave_out(files.start_ahead().map(|pid| Carrier { pid, comm: b"rtrace-reader".to_vec(), reason: "reads files for rtrace" }));
    }
    plan.show_pending(request.show.pending.unwrap_or_else(|| output.is_watched()));
    let plan = plan;
    if request.run.verbose > 0 {
        say::list("plan: ", &plan.to_string());
    }
    if !request.run.quiet {
        request.notices.iter().chain(&plan.remarks).for_each(|notice| say!("rtrace: {notice}"));
    }
    let (sender, receiver) = queue(plan.buffers.queue);
    let enough = Arc::new(AtomicBool::new(false));
    let worker = worker::start(request, &plan, output, receiver, Arc::clone(&enough), files)?;
    let armed = arm::arm(&plan, traced, programs, objects).map_err(|error| made.refusal(&tracefs).unwrap_or(error))?;
    let session = Arc::new(session(&plan, &armed));
    let mut run = Run {
        request,
        plan: &plan,
        drain: Drain::new(armed),
        made,
        names_missed: 0,
        names_dropped: 0,
        queue: Some(sender),
        enough,
        child,
        traced,
        status: None,
        verbose: request.run.verbose > 0,
        draining: Duration::ZERO,
    };
    worker.begin(session);
    interrupt::tracing();
    let started = run.go(program.as_ref());
    interrupt::over();
    let ended = run.end();
    let outcome = worker.join();
    started.and(ended)?;
    let code = run.exit_code(&outcome?);
    // So that whoever looks after this run finds nothing of those that were killed before it.
    tidying.map(JoinHandle::join);
    Ok(code)
}

/// Who carries the output, and so would be traced for what is traced.
fn carriers(request: &Trace, output: &Output) -> Vec<Carrier> {
    match request.output.to {
        request::Sink::Stderr => carriers::output_carriers(std::io::stderr().as_fd()),
        request::Sink::Stdout => carriers::output_carriers(std::io::stdout().as_fd()),
        request::Sink::Pipe(_) => {
            output.reader().map(|pid| Carrier { pid, comm: b"sh".to_vec(), reason: "reads rtrace's output" }).into_iter().collect()
        }
        request::Sink::File(_) => Vec::new(),
    }
}

fn session(plan: &Plan, armed: &Armed) -> Session {
    let cgroups_from_root = procfs::cgroups_from_root();
    Session {
        started: clock::now(),
        realtime_offset: clock::realtime_offset(),
        abi: machine::NATIVE_ABI,
        release: machine::release().unwrap_or_default(),
        events: armed.table.clone(),
        scope: match plan.whom {
            Whom::Command => Scope::Command,
            Whom::Tasks { .. } => Scope::Tasks,
            Whom::Everyone | Whom::Cgroup(_) | Whom::User(_) => Scope::System,
        },
        processes: armed.processes().map(<[i32]>::to_vec),
        fds_complete: plan.fds.is_ok(),
        namespaces_complete: plan.namespaces_complete,
        names: plan.names.iter().cloned().collect(),
        excluded: plan.left_out().into_iter().chain(procfs::numbers_outside().iter().copied()).collect(),
        frames_max: plan.frames_max.clone(),
        copied_bytes: plan.copied_bytes,
        cgroups_from_root,
        of_cgroup: matches!(plan.whom, Whom::Cgroup(_)) && plan.bpf.is_none(),
        cgroups: if plan.engine.cgroups && !cgroups_from_root { cgroups::by_number() } else { Vec::new() },
        fields_have_other_numbers: !procfs::is_in_first_pid_namespace(),
    }
}

struct Run<'a> {
    request: &'a Trace,
    plan: &'a Plan,
    drain: Drain,
    /// The events of `--probe`: behind the descriptors of them, which go first.
    made: Made,
    /// How many path names at most are addresses because the probe that reads them was missed.
    names_missed: u64,
    /// The same, because histograms had no room for their threads.
    names_dropped: u64,
    /// The way to the worker; `None` once everything was sent.
    queue: Option<Sender>,
    /// The worker wants no more: enough was printed, or nobody reads.
    enough: Arc<AtomicBool>,
    child: Option<Child>,
    /// The child is what is traced; otherwise it is only the timer.
    traced: Option<i32>,
    /// The child's wait(2) status.
    status: Option<std::process::ExitStatus>,
    verbose: bool,
    /// CPU time that it took to empty the rings, and to wait.
    draining: Duration,
}

/// Why the main loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The targets are gone, or the timer's time is over.
    Done,
    /// The user wants it to.
    Asked,
    /// The command was asked to end, and takes longer than whoever asked may want to wait.
    Late,
    /// Enough was printed, or nobody reads any more: the command runs on.
    Enough,
}

/// How far the user was answered who asked for the end while a command runs.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// The first signal came, which is the command's.
    once: bool,
    /// When it was sent on to the command. Whoever sent it may send no second one (timeout(1)).
    passed_on: Option<Instant>,
}

impl Asked {
    fn too_long_ago(&self) -> bool {
        self.passed_on.is_some_and(|at| at.elapsed() >= interrupt::PATIENCE)
    }
}

const SIGNALS: u64 = u64::MAX;

impl Run<'_> {
    /// What was there before the first record.
    fn first_notes(&mut self, program: Option<&crate::sys::spawn::Program>) {
        if let Err(why) = self.drain.enable_moves() {
            say!("rtrace: who is moved between cgroups is not seen: {why:#}");
        }
        // System-wide, the timer's set-up is seen as well.
        let seen = self.child.as_ref().filter(|_| !matches!(self.plan.whom, Whom::Tasks { .. })).map(|child| child.pid);
        if let (Some(pid), Some(program)) = (seen, program) {
            let task = TaskId { pid, tid: pid };
            let argv = program.argv.iter().map(|a| a.to_bytes().to_vec()).collect();
            let fds = if self.plan.fds.is_ok() {
                procfs::fds_over_exec(pid).into_iter().filter(|(fd, _)| !caller::was_closed(*fd)).collect()
            } else {
                Vec::new()
            };
            let nested = procfs::status(pid).is_none_or(|status| status.is_nested);
            self.drain.note(Note::Spawned { task, path: program.path.to_bytes().to_vec(), argv, fds, cgroup: procfs::cgroup(pid), nested });
        }
        let mut looks = look::Tasks::new(self.plan.engine.cgroups);
        for task in self.plan.whom.tasks() {
            // What becomes of the task while it is looked at comes as a record of a later time.
            let before = clock::now();
            if let Some(note) = looks.look(task) {
                self.drain.note_at(before, note);
            }
        }
    }

    /// The command has begun. Where everybody is traced who is in a cgroup or has a user, it may become one of those later, so that its execve is not seen.
    fn note_executed(&mut self, at: Time) {
        let pid = self.child.as_ref().filter(|_| self.plan.whom.is_anyone()).map(|child| child.pid);
        if let Some((pid, comm)) = pid.and_then(|pid| Some((pid, procfs::comm(pid)?))) {
            self.drain.note_at(at, Note::Executed { task: TaskId { pid, tid: pid }, comm });
        }
    }

    /// What the targets have mapped: what they map from now on comes as records.
    fn note_maps(&mut self) {
        if self.plan.maps {
            self.plan.whom.processes().into_iter().filter_map(look::maps).for_each(|note| self.drain.note(note));
        }
    }

    /// Switches the events on. Where no BPF program tells of calls that are in flight by then, the targets are looked at.
    fn enable(&mut self) -> anyhow::Result<()> {
        self.drain.enable().context("cannot switch the events on")?;
        rights::when_armed(self.plan.events.iter().any(|event| event.spec.format.is_some()));
        if !matches!(self.plan.whom, Whom::Tasks { .. }) || self.plan.bpf.is_some() || !self.plan.traces_calls() {
            return Ok(());
        }
        let wants_stacks = self.plan.events.iter().any(|event| event.stack.sample_type() != 0);
        for task in self.plan.whom.tasks() {
            let abi = || match elf::program_of_thread(task) {
                Ok(elf::Program::Elf(abi)) => abi,
                _ => machine::NATIVE_ABI,
            };
            let wanted = |note: &Note| matches!(note, Note::Sleeping { nr, .. } if self.plan.gate.selects(abi(), *nr));
            if let Some((time, note)) = look::sleeping(task, wants_stacks).filter(|(_, note)| wanted(note)) {
                self.drain.note_at(time, note);
            }
        }
        Ok(())
    }

    /// Everything between arming and disarming.
    fn go(&mut self, program: Option<&crate::sys::spawn::Program>) -> anyhow::Result<()> {
        let arming = "cannot switch the events on";
        // Whoever is made from here on comes as a record, whoever was made before is found by a look.
        self.drain.enable_side_band().context(arming)?;
        self.first_notes(program);
        self.note_maps();
        let enable_at = self.plan.delay.map(|delay| clock::now().0 + delay);
        // Before the right to ask for it is given up.
        let first = First::take();
        if enable_at.is_none() {
            self.enable()?;
        }
        self.look_for_programs();
        if let (Some(signal), Some(_)) = (interrupt::first().and_then(signal::name), &self.child) {
            say!("rtrace: the command was not started, since {signal} came before");
            return Ok(());
        }
        match self.child.as_mut().map(Child::start) {
            Some(Ok(executed)) => self.note_executed(executed),
            Some(Err(refused)) => return self.not_started(refused),
            None => {}
        }
        let before = clock::of_thread();
        let end = self.watch_first(first, enable_at)?;
        self.draining = clock::of_thread() - before;
        self.look_for_programs();
        match end {
            End::Enough if self.verbose => say!("rtrace: no more is wanted; the command runs on, untraced"),
            End::Late => self.say_late(),
            _ => {}
        }
        Ok(())
    }

    /// The exec failed: the status says so, and what was traced of it is printed like anything else.
    fn not_started(&mut self, refused: Refused) -> anyhow::Result<()> {
        let name = match &self.request.target {
            Target::Command(command) => command.argv.first(),
            Target::There { timer, .. } => timer.as_ref().and_then(|c| c.argv.first()),
        };
        let name = name.map(|n| n.to_string_lossy()).unwrap_or_default();
        say!("rtrace: {name}: {}", without_numbers(&refused.to_string()));
        self.reap(true);
        Ok(())
    }

    /// Empties the rings before anything else gets the CPU: when thousands of threads are about to run, as many have
    /// their turn before a thread that just woke up.
    fn watch_first(&mut self, first: io::Result<First>, enable_at: Option<u64>) -> anyhow::Result<End> {
        if let (Err(error), true) = (&first, self.verbose) {
            say!(
                "rtrace: the rings are emptied in their turn, so more may be lost while all CPUs are busy: no real-time priority ({error})"
            );
        }
        self.watch(enable_at)
    }

    /// Waits, and empties the rings, until there is a reason to end.
    fn watch(&mut self, mut enable_at: Option<u64>) -> anyhow::Result<End> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        self.drain.watch(&epoll)?;
        if let Some(signals) = interrupt::as_fd() {
            epoll::add(&epoll, signals, epoll::EventData::new_u64(SIGNALS), epoll::EventFlags::IN)?;
        }
        let mut asked = Asked::default();
        let mut busy_rounds = 0;
        let mut waits_said = false;
        let mut looked = clock::now();
        let smallest = self.drain.armed().rings.iter().map(|of_cpu| of_cpu.ring.bytes() as u64).min().unwrap_or_default();
        let rest = Duration::from_nanos(smallest / FILL_RATE).min(REST);
        loop {
            interrupt::wait(rest);
            self.wait(&epoll, if busy_rounds > 0 { PAUSE_BUSY_MS } else { PAUSE_IDLE_MS })?;
            if enable_at.is_some_and(|at| clock::now().0 >= at) {
                enable_at = None;
                self.enable()?;
            }
            // Signals are taken before the child is asked for: the one that says that it is gone may come between the two, and would be waited for.
            let signals: Vec<Came> = std::iter::from_fn(interrupt::next).collect();
            // Whether the targets are gone is asked before the rings are looked at, so that their last records are in this round or an earlier one.
            let reaped = self.reap(false);
            let gone = (reaped || self.traced.is_none()) && self.drain.targets_gone();
            self.drain.look_beside()?;
            if self.plan.shows_pending() && clock::now().since(looked) >= PENDING_LOOK_NS {
                looked = clock::now();
                self.drain.look_for_pending()?;
            }
            let had = self.round()?;
            busy_rounds = if had { 2 } else { busy_rounds.max(1) - 1 };
            if self.enough.load(Ordering::Relaxed) {
                return Ok(End::Enough);
            }
            if gone || (reaped && (self.traced.is_none() || asked.once || !self.request.run.wait)) {
                return Ok(End::Done);
            }
            let may_end_the_command = self.traced.is_some() && !reaped;
            if self.answer(signals, may_end_the_command, &mut asked) {
                return Ok(End::Asked);
            }
            if asked.too_long_ago() {
                return Ok(End::Late);
            }
            if reaped && !waits_said && !self.request.run.quiet {
                waits_said = true;
                say!("rtrace: the command has ended; waiting for what it left running (Ctrl-C ends the trace, --no-wait does not wait)");
            }
        }
    }

    /// Answers signals. The first one is for the command, if there is one; true if rtrace has to end.
    fn answer(&self, signals: Vec<Came>, may_end_the_command: bool, asked: &mut Asked) -> bool {
        signals.into_iter().filter(|came| came.signal != libc::SIGCHLD).any(|came| {
            let is_for_us = asked.once || !may_end_the_command;
            if !is_for_us {
                asked.once = true;
                asked.passed_on = self.pass_on(came).then(Instant::now);
            }
            is_for_us
        })
    }

    /// Sends a signal on to the command, if a process sent it: to rtrace alone then. The terminal tells everyone in the foreground.
    fn pass_on(&self, came: Came) -> bool {
        let pid = self.traced.filter(|_| came.sent).and_then(Pid::from_raw);
        let Some((pid, signal)) = pid.zip(Signal::from_named_raw(came.signal)) else { return false };
        let _ = kill_process(pid, signal);
        true
    }

    /// Sleeps until a ring is full enough, a signal comes, or the pause is over.
    fn wait(&self, epoll: &OwnedFd, pause_ms: i64) -> anyhow::Result<()> {
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: pause_ms * 1_000_000 };
        let mut ready = Vec::with_capacity(16);
        match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut ready), Some(&pause)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error).context("cannot wait for the rings"),
        }
        for event in ready {
            let flags = event.flags;
            if event.data.u64() != SIGNALS && flags.contains(epoll::EventFlags::HUP) {
                self.drain.unwatch(epoll, event.data.u64() as usize)?;
            }
        }
        Ok(())
    }

    /// One round into the queue, if there is room; true if it held records.
    fn round(&mut self) -> anyhow::Result<bool> {
        let Some(queue) = &self.queue else { return Ok(false) };
        while let Some(used) = queue.spare() {
            self.drain.recycle(used);
        }
        if !queue.has_room() {
            return Ok(true);
        }
        let round = self.drain.round();
        let had = round.bytes() > 0;
        queue.push(round)?;
        if !had {
            self.look_for_programs();
        }
        Ok(had)
    }

    /// Says it where another tracer's BPF program may keep records from us: no count would show that.
    fn look_for_programs(&mut self) {
        for (event, ids) in self.drain.look_for_programs() {
            let ids = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            say!(
                "rtrace: a BPF program of another tracer (id {ids}) is on {event}: if it returns 0 there, records are kept from rtrace that nobody counts (`bpftool prog show id N` says whose it is)"
            );
        }
    }

    /// Waits for the command, which runs on untraced, or until signals ask rtrace to end as they do while it traces.
    fn wait_for_command(&mut self) {
        let mut asked = Asked::default();
        while !self.reap(false) {
            interrupt::wait(Duration::from_millis(PAUSE_IDLE_MS as u64));
            let signals = std::iter::from_fn(interrupt::next).collect();
            if self.answer(signals, true, &mut asked) {
                return;
            }
            if asked.too_long_ago() {
                return self.say_late();
            }
        }
    }

    fn say_late(&self) {
        let pid = self.traced.unwrap_or_default();
        let name = interrupt::first().and_then(signal::name).unwrap_or("a signal");
        say!("rtrace: the command (pid {pid}) has not ended within a second of the {name} that was passed on to it; it runs on, untraced");
    }

    /// Asks for the child's status; true once it is gone.
    fn reap(&mut self, wait: bool) -> bool {
        let Some(child) = &self.child else { return false };
        if self.status.is_none() {
            self.status = child.try_wait(wait);
            if let Some(status) = self.status {
                self.drain.note(Note::Reaped { pid: child.pid, status: status.into_raw() });
            }
        }
        self.status.is_some()
    }

    /// Switches everything off, brings the rest of the records and the kernel's counts to the worker, and hands the events to the closer.
    fn end(&mut self) -> anyhow::Result<()> {
        let off = self.drain.disable().context("cannot switch the events off");
        let last = self.drain.round();
        self.drain.take_counts();
        let counts = self.drain.round();
        if let Some(queue) = self.queue.take() {
            for round in [last, counts] {
                queue.push(round)?;
            }
        }
        self.names_dropped = self.drain.armed().instance().map_or(0, Instance::dropped);
        let instance = self.drain.remove_instance();
        self.end_probes();
        off.and(instance)
    }

    /// Closes the events of `--probe` and takes them away: whoever looks after this run finds none.
    fn end_probes(&mut self) {
        let in_tracefs = self.made.events().iter().filter(|event| event.device.is_none());
        let names: HashSet<String> = in_tracefs.map(|event| event.name.to_string()).collect();
        if names.is_empty() {
            return;
        }
        self.names_missed = self.made.misses();
        self.drain.armed_mut().close(|event| names.contains(&event.name));
        if let Err(error) = self.made.remove() {
            say!("rtrace: {}", without_numbers(&format!("{error:#}")));
        }
    }

    /// Calls that nobody was shown because of whose they were.
    fn withheld(&self) -> Option<String> {
        let calls = self.drain.armed().withheld();
        (calls > 0).then(|| {
            format!(
                "{calls} calls are not shown, and are in no count: programs made them that are not yours alone (set-user-ID, with capabilities, \
                 of another user namespace, or not dumpable); root may trace them (sudo rtrace ...)"
            )
        })
    }

    /// The exit status, when the worker is done. A command that still runs untraced is waited for: its status is ours.
    fn exit_code(&mut self, outcome: &Outcome) -> ExitCode {
        if self.traced.is_some() && self.enough.load(Ordering::Relaxed) {
            self.wait_for_command();
        }
        let mut shortages = self.drain.armed().shortages();
        for (names, of_whom) in [(self.names_missed, "calls named one at once"), (self.names_dropped, "threads of this machine named one")]
        {
            if names > 0 {
                shortages.push(format!("{names} path names at most are not known: more {of_whom} than the kernel had room for"));
            }
        }
        for sentence in shortages.iter().chain(&self.withheld()) {
            say!("rtrace: {sentence}");
        }
        if let Some(sentence) = verdict::of_unanswered(&outcome.unanswered) {
            say!("rtrace: {sentence}");
        }
        closer::hand_over(self.drain.armed().slow_to_close(), procfs::is_in_first_pid_namespace());
        if self.verbose {
            let (draining, lines) = (self.draining.as_secs_f64(), outcome.cpu.as_secs_f64());
            say!("rtrace: {draining:.3} s of CPU time to empty the rings, {lines:.3} s to make of it what is shown");
        }
        let failed = outcome.failed.as_ref().filter(|_| !outcome.is_quiet());
        if let Some(error) = failed {
            say!("rtrace: {}", without_numbers(&format!("{error:#}")));
        }
        for sentence in verdict::sentences(self.request, self.plan, outcome) {
            say!("rtrace: {sentence}");
        }
        if failed.is_some_and(|error| !error.downcast_ref().is_some_and(is_given_up)) {
            return ExitCode::Failed;
        }
        if self.request.run.strict && (outcome.ledger.lost_records() > 0 || outcome.given_up > 0 || !shortages.is_empty()) {
            return ExitCode::Lost;
        }
        match (self.traced, self.status) {
            (Some(_), Some(status)) => ExitCode::from_wait_status(status.into_raw()),
            (Some(_), None) => ExitCode::CommandKilled(interrupt::first().unwrap_or(libc::SIGINT) as u8),
            (None, _) => ExitCode::Success,
        }
    }
}
