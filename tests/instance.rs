//! Records by a tracefs instance of rtrace's own, from a running kernel: ordinary tracepoints take the way here that only event probes and synthetic events have to take, so
//! that every kernel can show it. As root; skipped with a word where there is no tracefs to write to.

use rtrace::arm;
use rtrace::arm::live::Drain;
use rtrace::cli::{self, Parsed};
use rtrace::engine::{Engine, Settings};
use rtrace::event::{Event, What};
use rtrace::kernel::tracefs::{EventName, TracePath, Tracefs};
use rtrace::plan::{self, Plan};
use rtrace::probe::made::Made;
use rtrace::request::{Engine as By, Request, Trace};
use rtrace::session::{Role, Scope, Session, Whom};
use rtrace::source::Round;
use rtrace::source::instance::{Instance, Size, Whose, left};
use rtrace::source::look::{self, Live};
use rtrace::stack::library::Closed;
use rustix::fs::OFlags;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A process has one instance.
static ONE: Mutex<()> = Mutex::new(());

/// The right to make it, and tracefs; `None`, said loudly, where there is none.
fn tracefs() -> Option<(MutexGuard<'static, ()>, Tracefs)> {
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = Tracefs::find().ok().filter(|tracefs| tracefs.root().join("set_event_pid").open(OFlags::WRONLY | OFlags::APPEND).is_ok());
    if found.is_none() {
        let required = std::env::var_os("RTRACE_REQUIRE_LIVE").is_some();
        assert!(!required, "RTRACE_REQUIRE_LIVE is set, and tracefs cannot be written");
        let _ = writeln!(std::io::stderr(), "SKIPPED instances: no tracefs that may be written; nothing was tested");
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

/// A shell that does each line it is given, and says when it is done.
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

/// What is planned for these words.
fn planned(tracefs: &Tracefs, words: &[&str]) -> Plan {
    let argv = ["rtrace", "--no-config"].iter().chain(words).map(Into::into);
    let Parsed::Request(Request::Trace(trace)) = cli::parse(argv, &cli::environment()) else { panic!("{words:?} is no trace") };
    let trace: Trace = *trace;
    plan::build(&trace, tracefs, &mut Made::default(), &[], By::Tracepoint).unwrap()
}

/// All of these events come by the instance.
fn by_instance(plan: &mut Plan, name: &str) {
    let event = plan.events.iter_mut().find(|event| event.spec.name == name).unwrap();
    (event.spec.sample_type, event.spec.role) = (0, Role::Tracepoint);
}

/// Everything that is armed, and what makes events of it.
struct Tracer {
    drain: Drain,
    session: Session,
    engine: Engine,
    events: Vec<Event>,
}

impl Tracer {
    fn new(plan: &Plan, child: Option<i32>) -> Tracer {
        let armed = arm::arm(plan, child, None, rtrace::bpf::user::Objects::default()).unwrap();
        let session = Session { events: armed.table.clone(), scope: Scope::System, excluded: plan.left_out(), ..Session::default() };
        let settings = Settings { pending_after: None, fd_paths: false, signals: false, cgroups: false };
        let engine = Engine::new(&session, settings, Box::new(Closed));
        let mut drain = Drain::new(armed);
        drain.enable_side_band().unwrap();
        if let Whom::Tasks { tids, .. } = &plan.whom {
            let mut looks = look::Tasks::new(false);
            tids.iter().filter_map(|&tid| looks.look(rtrace::kernel::procfs::task(tid)?)).for_each(|note| drain.note(note));
        }
        drain.enable().unwrap();
        Tracer { drain, session, engine, events: Vec::new() }
    }

    fn round(&mut self) -> usize {
        let round = self.drain.round();
        let bytes = round.bytes();
        self.take(round);
        bytes
    }

    fn take(&mut self, round: Round) {
        self.engine.round(&self.session, round, &mut Live::default(), &mut self.events);
        self.drain.recycle(self.engine.spent());
    }

    /// As `run.rs` ends.
    fn end(&mut self) {
        self.drain.disable().unwrap();
        self.round();
        self.drain.take_counts();
        self.round();
        self.engine.end(&self.session, &mut self.events);
        self.drain.remove_instance().unwrap();
    }

    /// The names of the events that came, with the task of each.
    fn seen(&self) -> Vec<(&str, i32)> {
        let name = |event: &Event| match &event.what {
            What::Tracepoint { event: index, .. } => Some(self.session.events.get(*index)?.name.as_str()),
            _ => None,
        };
        self.events.iter().filter_map(|event| Some((name(event)?, event.task.tid))).collect()
    }

    fn count(&self, name: &str) -> usize {
        self.seen().iter().filter(|seen| seen.0 == name).count()
    }

    fn lost_lines(&self) -> u64 {
        self.events.iter().filter_map(|event| if let What::Lost(loss) = event.what { loss.records } else { None }).sum()
    }
}

const FORK: &str = "sched:sched_process_fork";
const NEW_TASK: &str = "task:task_newtask";

#[test]
fn records_stand_in_time_order_among_perfs() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let mut shell = Shell::new();
    let pid = shell.child.id().to_string();
    let mut plan = planned(&tracefs, &["-e", "task:task_newtask,sched:sched_process_fork", "-p", &pid]);
    by_instance(&mut plan, FORK);
    let mut tracer = Tracer::new(&plan, None);
    assert_eq!(own(&tracefs).len(), 1);
    for _ in 0..20 {
        // Children make children of their own, all of them followed.
        shell.run("for i in 1 2 3 4 5; do (true; (true)& wait); done");
        tracer.round();
    }
    tracer.end();
    let ledger = tracer.engine.ledger();
    assert_eq!((ledger.instance.disagrees(), ledger.disagreements().count(), ledger.lost_records()), (false, 0, 0));
    // The kernel writes first the one, then the other (copy_process() and kernel_clone() in kernel/fork.c).
    let seen = tracer.seen();
    assert!(seen.len() >= 400 && tracer.count(FORK) == tracer.count(NEW_TASK), "{seen:?}");
    for task in seen.iter().map(|seen| seen.1).collect::<std::collections::BTreeSet<_>>() {
        let names: Vec<&str> = seen.iter().filter(|seen| seen.1 == task).map(|seen| seen.0).collect();
        assert!(names.chunks(2).all(|pair| pair == [NEW_TASK, FORK]), "task {task}: {names:?}");
    }
    assert!(tracer.events.iter().all(|event| event.comm.is_some()), "who a thread is, the stream says");
    assert!(own(&tracefs).is_empty());
}

#[test]
fn a_page_that_is_not_full_is_given_at_once() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let mut shell = Shell::new();
    let pid = shell.child.id().to_string();
    let mut plan = planned(&tracefs, &["-e", FORK, "-p", &pid]);
    by_instance(&mut plan, FORK);
    let mut tracer = Tracer::new(&plan, None);
    for done in 1..=10 {
        shell.run("(:)");
        // One look has it, the next two prove that nothing older comes.
        tracer.round();
        tracer.round();
        tracer.round();
        assert_eq!(tracer.count(FORK), done);
    }
    tracer.end();
    assert_eq!(tracer.engine.ledger().instance.received, 10);
}

/// Some of its records leave room in a page to say how many were lost before it; those of raw_syscalls fill it to the last byte.
const READ: &str = "syscalls:sys_enter_read";
/// `dd` reads and writes so often; beyond that, sh and it make some calls to begin and end.
const BLOCKS: u64 = 50_000;

#[test]
fn what_the_smallest_buffer_cannot_hold_is_counted() {
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
    assert_eq!(tracer.lost_lines(), lost, "all of it stands where it is missing, for records came after it");
}

#[test]
fn at_a_high_rate_nothing_is_unaccounted_for() {
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
                // As a run does between two rounds, if shorter.
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        tracer.end();
        let ledger = tracer.engine.ledger();
        let account = ledger.instance;
        assert!(!account.disagrees() && account.issued.unwrap() > 2 * BLOCKS, "{size}: {account:?}");
        assert_eq!(ledger.unreadable, 0, "{size}");
        // A virtual CPU may stand still between a record's stamp and its end for longer than two rounds take: that record is late then, and counted.
        assert!(ledger.late < account.received / 1000, "{size}: {} late, {account:?}", ledger.late);
        assert!(tracer.events.is_sorted_by_key(|event| event.time), "{size}");
    }
}

#[test]
fn everybody_but_rtrace_itself() {
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
    // (Threads of this process that were made later are other tests', and wait.)
    assert!(!seen.iter().any(|seen| seen.1 == rustix::thread::gettid().as_raw_nonzero().get()), "reading the buffers would fill them");
    assert!(!tracer.engine.ledger().instance.disagrees());
}

#[test]
fn triggers_are_taken_back() {
    let Some((_guard, tracefs)) = tracefs() else { return };
    let size = Size { cpus: &[0], bytes: 8 << 10 };
    let mut instance = Instance::make(&tracefs, size, Whose::Everyone).unwrap();
    let event = EventName::new("sched", "sched_process_fork");
    let file = tracefs.root().join("instances").join(&own(&tracefs)[0]).join("events/sched/sched_process_fork/trigger");
    instance.trigger(&event, "traceoff:5").unwrap();
    assert!(file.read_to_string().unwrap().contains("traceoff"));
    let error = format!("{:#}", instance.trigger(&event, "nonsense").unwrap_err());
    assert!(error.contains("the kernel refuses the trigger \"nonsense\" of sched:sched_process_fork"), "{error}");
    instance.remove().unwrap();
    assert!(own(&tracefs).is_empty());
}

#[test]
fn what_a_dead_run_left_is_taken_away_and_what_a_living_one_has_is_not() {
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
    left::remove(&tracefs);
    assert!(!dead.exists() && living.len() == 1 && living[0].exists());
    drop(tracer);
    assert!(!living[0].exists(), "whoever forgets it leaves nothing either");
}
