//! Records from a tracefs instance of rtrace's own, on the running kernel. Only event probes and synthetic events need
//! an instance; the tests read ordinary tracepoints through it, which all kernels have. The tests need root, and are
//! skipped with a message without a writable tracefs.

use rtrace::events::{Event, EventKind};
use rtrace::program::{self, Parsed, Request, Trace};
use rtrace::recordings::{About, AttrNumbers, Begin, Reader, Writer};
use rtrace::records::{Input, Role, Round, Scope, Session, Targets};
use rtrace::tracing::{
    self, Closed, Drain, Engine, EngineChoice, EventName, Instance, LiveProcReader, Objects, Plan, ProcReader, RunEvents, Size, TaskFilter,
    TaskReader, TracePath, Tracefs,
};
use rustix::fs::OFlags;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A process can have one instance, so the tests run one after the other.
static ONE: Mutex<()> = Mutex::new(());

/// Returns the lock for the instance, and tracefs. Returns `None` with a message if tracefs is not writable.
fn tracefs() -> Option<(MutexGuard<'static, ()>, Tracefs)> {
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = Tracefs::find().ok().filter(|tracefs| tracefs.root().join("set_event_pid").open(OFlags::WRONLY | OFlags::APPEND).is_ok());
    if found.is_none() {
        let required = std::env::var_os("RTRACE_REQUIRE_LIVE").is_some();
        assert!(!required, "RTRACE_REQUIRE_LIVE is set, and tracefs cannot be written");
        let _ = writeln!(std::io::stderr(), "SKIPPED instances: tracefs is not writable; nothing was tested");
    }
    found.map(|tracefs| (guard, tracefs))
}

fn instances(tracefs: &Tracefs) -> Vec<String> {
    let names = tracefs.root().join("instances").directories().unwrap();
    names.into_iter().filter(|name| name.starts_with("rtrace_")).collect()
}

fn own(tracefs: &Tracefs) -> Vec<String> {
    instances(tracefs).into_iter().filter(|name| name.starts_with(&format!("rtrace_{}_", std::process::id()))).collect()
}

/// A shell that executes lines one by one.
struct Shell {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Shell {
    fn new() -> Shell {
        let script = "while read -r line; do eval \"$line\"; echo done; done";
        let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Shell { child, stdin, stdout }
    }

    /// Executes a line and waits for its end.
    fn run(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
        let mut answer = String::new();
        self.stdout.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the plan for a command line.
fn planned(tracefs: &Tracefs, words: &[&str]) -> Plan {
    let argv = ["rtrace", "--no-config"].iter().chain(words).map(Into::into);
    let Parsed::Request(Request::Trace(trace)) = program::parse(argv, &program::environment()) else { panic!("{words:?} is not a trace") };
    let trace: Trace = *trace;
    tracing::build_plan(&trace, tracefs, &RunEvents::default(), &[], EngineChoice::Tracepoint).unwrap()
}

/// Changes the plan so that the events of this name are read through the instance.
fn by_instance(plan: &mut Plan, name: &str) {
    let event = plan.events.iter_mut().find(|event| event.spec.name == name).unwrap();
    (event.spec.sample_type, event.spec.role) = (0, Role::Tracepoint);
}

/// The armed plan, and the engine that turns its records into events.
struct Tracer {
    drain: Drain,
    session: Session,
    engine: Engine,
    events: Vec<Event>,
    /// The engine's input.
    inputs: Vec<Input>,
}

impl Tracer {
    fn new(plan: &Plan, child: Option<i32>) -> Tracer {
        let armed = tracing::arm(plan, child, None, Objects::default()).unwrap();
        let session = Session { events: armed.table.clone(), scope: Scope::System, excluded: plan.left_out(), ..Session::default() };
        let engine = Engine::new(&session, None, Box::new(Closed));
        let mut drain = Drain::new(armed, Vec::new());
        drain.enable_side_band().unwrap();
        if let Targets::Tasks { tids, .. } = &plan.targets {
            let mut reader = TaskReader::new(false);
            tids.iter().filter_map(|&tid| reader.read(tracing::proc_task(tid)?)).for_each(|record| drain.synthesized(record));
        }
        drain.enable(|_| Vec::new()).unwrap();
        Tracer { drain, session, engine, events: Vec::new(), inputs: Vec::new() }
    }

    fn round(&mut self) -> usize {
        let round = self.drain.round();
        let bytes = round.bytes();
        self.take(round);
        bytes
    }

    fn take(&mut self, round: Round) {
        self.pass(Input::Round(round));
        let answers = LiveProcReader::default().answer(&self.engine.take_reads());
        self.pass(Input::Answers(answers));
        self.drain.recycle(self.engine.spent());
    }

    fn pass(&mut self, input: Input) {
        self.inputs.push(input.clone());
        self.engine.input(&self.session, input, &mut self.events);
    }

    /// Ends the trace as `run.rs` does, and checks that another engine makes the same events of the same input, without
    /// /proc, and of a recording of it.
    fn end(&mut self) {
        self.drain.disable().unwrap();
        let last = self.drain.last_rounds();
        let rest = self.drain.rest();
        last.into_iter().chain(rest).for_each(|round| self.take(round));
        self.engine.end(&self.session, &mut self.events);
        self.drain.remove_instance().unwrap();
        let replayed = |session: &Session, inputs: &mut dyn Iterator<Item = Input>| {
            let (mut replay, mut events) = (Engine::new(session, None, Box::new(Closed)), Vec::new());
            inputs.for_each(|input| replay.input(session, input, &mut events));
            replay.end(session, &mut events);
            format!("{events:?}")
        };
        let live = format!("{:?}", self.events);
        assert_eq!(replayed(&self.session, &mut self.inputs.iter().cloned()), live);
        let mut recording = self.recording();
        let session = recording.begin().session.clone();
        assert_eq!(replayed(&session, &mut std::iter::from_fn(|| recording.next_input())), live);
        assert_eq!((recording.damages(), recording.unreadable()), (&[][..], 0));
    }

    /// Returns a recording of the input.
    fn recording(&self) -> Reader {
        let file = tempfile::NamedTempFile::new().unwrap();
        let begin = Begin { session: self.session.clone(), ..Begin::default() };
        let attrs = vec![AttrNumbers::default(); self.session.events.events.len()];
        let mut writer = Writer::new(file.reopen().unwrap(), begin, &attrs, About::default()).unwrap();
        self.inputs.iter().for_each(|input| writer.input(input).unwrap());
        writer.finish().unwrap();
        Reader::open(file.path()).unwrap()
    }

    /// Returns the names and the tasks of the emitted tracepoint events.
    fn seen(&self) -> Vec<(&str, i32)> {
        let name = |event: &Event| match &event.kind {
            EventKind::Tracepoint { event: index, .. } => Some(self.session.events.get(*index)?.name.as_str()),
            _ => None,
        };
        self.events.iter().filter_map(|event| Some((name(event)?, event.task.tid))).collect()
    }

    fn count(&self, name: &str) -> usize {
        self.seen().iter().filter(|seen| seen.0 == name).count()
    }

    fn lost_lines(&self) -> u64 {
        self.events.iter().filter_map(|event| if let EventKind::Lost(loss) = event.kind { loss.records } else { None }).sum()
    }
}

const FORK: &str = "sched:sched_process_fork";
const NEW_TASK: &str = "task:task_newtask";

#[test]
fn records_are_merged_with_those_of_perf_by_time() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let mut shell = Shell::new();
    let pid = shell.child.id().to_string();
    let mut plan = planned(&tracefs, &["-e", "task:task_newtask,sched:sched_process_fork", "-p", &pid]);
    by_instance(&mut plan, FORK);
    let mut tracer = Tracer::new(&plan, None);
    assert_eq!(own(&tracefs).len(), 1);
    for _ in 0..20 {
        // The children fork, too, and all of them are followed.
        shell.run("for i in 1 2 3 4 5; do (true; (true)& wait); done");
        tracer.round();
    }
    tracer.end();
    let ledger = tracer.engine.ledger();
    assert_eq!((ledger.instance.disagrees(), ledger.disagreements().count(), ledger.lost_records()), (false, 0, 0));
    // The kernel writes task_newtask first, then sched_process_fork (copy_process() and kernel_clone() in
    // kernel/fork.c).
    let seen = tracer.seen();
    assert!(seen.len() >= 400 && tracer.count(FORK) == tracer.count(NEW_TASK), "{seen:?}");
    for task in seen.iter().map(|seen| seen.1).collect::<std::collections::BTreeSet<_>>() {
        let names: Vec<&str> = seen.iter().filter(|seen| seen.1 == task).map(|seen| seen.0).collect();
        assert!(names.chunks(2).all(|pair| pair == [NEW_TASK, FORK]), "task {task}: {names:?}");
    }
    assert!(tracer.events.iter().all(|event| event.comm.is_some()), "the stream has the comm of each thread");
    assert!(own(&tracefs).is_empty());
}

#[test]
fn records_of_a_partly_filled_page_are_emitted_at_once() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let mut shell = Shell::new();
    let pid = shell.child.id().to_string();
    let mut plan = planned(&tracefs, &["-e", FORK, "-p", &pid]);
    by_instance(&mut plan, FORK);
    let mut tracer = Tracer::new(&plan, None);
    for done in 1..=10 {
        shell.run("(:)");
        // The first round reads the record. After two more, no older record can follow, so it is emitted.
        tracer.round();
        tracer.round();
        tracer.round();
        assert_eq!(tracer.count(FORK), done);
    }
    tracer.end();
    assert_eq!(tracer.engine.ledger().instance.received, 10);
}

/// An event whose records leave room in a page for the number of records that were lost before it. Those of
/// raw_syscalls fill a page to the last byte.
const READ: &str = "syscalls:sys_enter_read";
/// The number of read and of write calls of `dd`. sh and dd make some more calls at their start and end.
const BLOCKS: u64 = 50_000;

#[test]
fn records_that_the_smallest_buffer_loses_are_counted() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let mut shell = Shell::new();
    let pid = shell.child.id().to_string();
    let mut plan = planned(&tracefs, &["-m", "8K", "-e", READ, "-p", &pid]);
    by_instance(&mut plan, READ);
    let mut tracer = Tracer::new(&plan, None);
    for _ in 0..4 {
        shell.run(&format!("dd if=/dev/zero of=/dev/null bs=1 count={BLOCKS} status=none"));
        tracer.round();
    }
    tracer.end();
    let ledger = tracer.engine.ledger();
    let account = ledger.instance;
    let (issued, lost) = (account.issued.unwrap(), account.lost.unwrap());
    assert!((4 * BLOCKS..4 * BLOCKS + 2_000).contains(&issued), "{account:?}");
    assert!(lost > issued / 2 && account.received > 0, "{account:?}");
    assert_eq!(account.received + lost, issued, "{account:?}");
    assert_eq!((ledger.unreadable, tracer.count(READ) as u64), (0, account.received));
    assert_eq!(tracer.lost_lines(), lost, "LOST events report all lost records, because records follow each gap");
}

#[test]
fn at_a_high_rate_all_records_are_accounted_for() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let mut shell = Shell::new();
    let pid = shell.child.id() as i32;
    for size in ["8K", "64K", "1M"] {
        let mut plan = planned(&tracefs, &["-m", size, "-e", "raw_syscalls:sys_enter", "--", "true"]);
        by_instance(&mut plan, "raw_syscalls:sys_enter");
        let mut tracer = Tracer::new(&plan, Some(pid));
        let line = format!("dd if=/dev/zero of=/dev/null bs=1 count={BLOCKS} status=none");
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| shell.run(&line));
            while !writing.is_finished() {
                tracer.round();
                // A run also sleeps between two rounds, but longer.
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        tracer.end();
        let ledger = tracer.engine.ledger();
        let account = ledger.instance;
        assert!(!account.disagrees() && account.issued.unwrap() > 2 * BLOCKS, "{size}: {account:?}");
        assert_eq!(ledger.unreadable, 0, "{size}");
        // A virtual CPU may be stopped for longer than two rounds while it writes a record, after the time stamp was
        // taken. That record is late, and counted.
        assert!(ledger.late < account.received / 1000, "{size}: {} late, {account:?}", ledger.late);
        assert!(tracer.events.is_sorted_by_key(|event| event.time), "{size}");
    }
}

#[test]
fn a_system_wide_trace_excludes_rtrace_itself() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let mut shell = Shell::new();
    let mut plan = planned(&tracefs, &["-a", "-e", "raw_syscalls:sys_enter"]);
    by_instance(&mut plan, "raw_syscalls:sys_enter");
    let mut tracer = Tracer::new(&plan, None);
    for _ in 0..5 {
        shell.run("(:)");
        tracer.round();
    }
    tracer.end();
    let seen = tracer.seen();
    assert!(seen.iter().any(|seen| seen.1 == shell.child.id() as i32));
    // (Threads of this process that were created later belong to other tests, which wait for the lock.)
    assert!(!seen.iter().any(|seen| seen.1 == rustix::thread::gettid().as_raw_nonzero().get()), "reading the buffers would fill them");
    assert!(!tracer.engine.ledger().instance.disagrees());
}

#[test]
fn triggers_are_removed_with_the_instance() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let size = Size { cpus: &[0], bytes: 8 << 10 };
    let mut instance = Instance::make(&tracefs, size, TaskFilter::All).unwrap();
    let event = EventName::new("sched", "sched_process_fork");
    let file = tracefs.root().join("instances").join(&own(&tracefs)[0]).join("events/sched/sched_process_fork/trigger");
    instance.trigger(&event, "traceoff:5").unwrap();
    assert!(file.read_to_string().unwrap().contains("traceoff"));
    let error = format!("{:#}", instance.trigger(&event, "nonsense").unwrap_err());
    assert!(error.contains("the kernel rejects the trigger \"nonsense\" of sched:sched_process_fork"), "{error}");
    instance.remove().unwrap();
    assert!(own(&tracefs).is_empty());
}

#[test]
fn stale_instances_are_removed_and_instances_in_use_are_not() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let dead = {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        tracefs.root().join(format!("instances/rtrace_{}_1", child.id()))
    };
    dead.create_dir().unwrap();
    let write = |file: &str, text: &[u8]| dead.join(file).open(OFlags::WRONLY).unwrap().write_all(text).unwrap();
    write("events/sched/sched_process_fork/enable", b"1");
    write("events/sched/sched_process_exit/trigger", b"traceoff:1");
    let shell = Shell::new();
    let mut plan = planned(&tracefs, &["-e", FORK, "-p", &shell.child.id().to_string()]);
    by_instance(&mut plan, FORK);
    let tracer = Tracer::new(&plan, None);
    let living: Vec<TracePath> = own(&tracefs).iter().map(|name| tracefs.root().join("instances").join(name)).collect();
    tracing::remove_stale(&tracefs);
    assert!(!dead.exists() && living.len() == 1 && living[0].exists());
    drop(tracer);
    assert!(!living[0].exists(), "dropping the drain removes the instance");
}
