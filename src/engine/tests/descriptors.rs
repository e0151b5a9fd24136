//! Files of descriptors: they may be unknown, but never wrong.

use super::fixture::*;
use super::random::Dice;
use crate::beauty::row::{Arg, ArgumentKind, Groups, Return, Special, Syscall};
use crate::beauty::samples::arg;
use crate::event::{Call, Event, FdPlace, Synthesized, TaskId, Time};
use crate::task::ProcReader;
use proptest::prelude::*;
use rustc_hash::FxHashMap;

const fn row(name: &'static str, number: u32, args: &'static [Arg], returns: Return) -> Syscall {
    Syscall {
        name,
        event: name,
        numbers: [Some(number), None, None, None],
        args,
        returns,
        groups: Groups::empty(),
        does: Special::Plain,
        variants: &[],
    }
}

const FD: Arg = arg("fd", ArgumentKind::Fd);
const INT: Arg = arg("int", ArgumentKind::Int);
const PATH: Arg = arg("path", ArgumentKind::Path);

/// The rows that these tests need.
pub static ROWS: &[Syscall] = &[
    row("read", 0, &[FD, INT, INT], Return::Size),
    row("close", 3, &[FD], Return::Int),
    row("pipe", 22, &[INT], Return::Int),
    row("dup", 32, &[FD], Return::Fd),
    row("dup2", 33, &[FD, FD], Return::Fd),
    row("execve", 59, &[PATH, INT, INT], Return::Int),
    row("kill", 62, &[arg("pid", ArgumentKind::Pid), INT], Return::Int),
    row("readlink", 89, &[PATH, INT, INT], Return::Size),
    row("rename", 82, &[PATH, PATH], Return::Int),
    row("openat", 257, &[arg("dfd", ArgumentKind::DirFd), PATH, INT, INT], Return::Fd),
];

const PIPE: u64 = 22;
pub(super) const KILL: u64 = 62;
const CLOSE_RANGE: u64 = 436;
const EBADF: i64 = -9;
pub(super) const AT_FDCWD: u64 = 0xffff_ff9c;

/// Answers reads of /proc from memory; each read takes from `from` to `time`.
#[derive(Default)]
struct ProcFiles {
    from: u64,
    time: u64,
    tables: FxHashMap<i32, FxHashMap<i32, u64>>,
    reads: usize,
}

fn path_of(file: u64) -> Vec<u8> {
    format!("/file/{file}").into_bytes()
}

impl ProcReader for ProcFiles {
    fn fd(&mut self, pid: i32, fd: i32) -> Option<(Time, Synthesized)> {
        self.reads += 1;
        let path = self.tables.get(&pid).and_then(|fds| fds.get(&fd)).map(|&file| path_of(file));
        Some((Time(self.time), Synthesized::Fd { pid, fd, path, from: Time(self.from) }))
    }

    fn task(&mut self, tid: i32) -> Option<(Time, Synthesized)> {
        let record = Synthesized::Task {
            task: task(tid, tid),
            comm: b"other".to_vec(),
            ppid: 1,
            started: Time(0),
            cgroup: None,
            abi: None,
            nested: false,
        };
        Some((Time(self.time), if tid == 77 { record } else { Synthesized::NoTask { tid } }))
    }
}

/// Begins a ring with the fork of a process, so that its descriptors are known from the start.
pub(super) fn ring_with_process<'a>(session: &'a crate::session::Session, child: TaskId) -> Ring<'a> {
    let mut ring = Ring::new(session, 0);
    ring.fork(1, child, task(1, 1));
    ring
}

/// Returns the name of a call's file.
pub(super) fn file(call: &Call, place: FdPlace) -> Option<String> {
    call.file(place).map(|file| String::from_utf8_lossy(&crate::beauty::file::name(file)).into_owned())
}

/// Processes the rings in rounds, with requested reads between them.
fn run_rounds(rings: Vec<(u64, Ring)>, files: &mut ProcFiles, session: &crate::session::Session) -> Vec<Event> {
    let mut run = Run::new(session);
    for (started, mut ring) in rings {
        (files.from, files.time) = (started + 1, started + 2);
        run.round(started, vec![ring.chunk()], vec![], files);
    }
    run.end().0
}

#[test]
fn an_unchanged_descriptor_gets_its_path_from_proc() {
    let session = session();
    let a = task(7, 7);
    let mut first = ring_with_process(&session, a);
    first.call(100, a, OPENAT, &[AT_FDCWD, 0], 3).call(200, a, READ, &[3], 5);
    let mut files = ProcFiles::default();
    files.tables.entry(7).or_default().insert(3, 42);
    let mut last = Ring::new(&session, 0);
    last.call(5_000, a, READ, &[3], 5).call(6_000, a, CLOSE, &[3], 0).call(7_000, a, READ, &[3], EBADF);
    let rings = vec![(1_000, first), (2_000, Ring::new(&session, 0)), (3_000, Ring::new(&session, 0)), (9_000, last)];
    let events = run_rounds(rings, &mut files, &session);
    let calls = calls(&events);
    assert_eq!(file(calls[0], FdPlace::Return).as_deref(), Some("/file/42"));
    for call in &calls[1..4] {
        assert_eq!(file(call, FdPlace::Arg(0)).as_deref(), Some("/file/42"), "{call:?}");
    }
    assert!(calls[4].files.is_empty());
    assert_eq!(files.reads, 1);
}

#[test]
fn a_change_before_the_read_leaves_the_path_unknown() {
    let session = session();
    let a = task(7, 7);
    for change in [(CLOSE, [3, 0]), (DUP2, [9, 3]), (CLOSE_RANGE, [0, 100]), (EXECVE, [0, 0])] {
        let mut first = ring_with_process(&session, a);
        first.call(100, a, OPENAT, &[AT_FDCWD, 0], 3).call(200, a, READ, &[3], 5);
        let mut files = ProcFiles::default();
        files.tables.entry(7).or_default().insert(3, 42);
        let mut changing = Ring::new(&session, 0);
        changing.enter(1_500, a, change.0, &change.1);
        let rings = vec![(1_000, first), (2_000, changing), (3_000, Ring::new(&session, 0)), (4_000, Ring::new(&session, 0))];
        let events = run_rounds(rings, &mut files, &session);
        assert!(calls(&events).iter().all(|call| call.files.is_empty()), "{change:?}");
        assert!(files.reads > 0, "{change:?}");
    }
}

#[test]
fn duplicated_descriptors_have_the_path_of_the_original() {
    let session = session();
    let a = task(7, 7);
    let mut first = ring_with_process(&session, a);
    first.call(100, a, OPENAT, &[AT_FDCWD, 0], 3);
    let mut files = ProcFiles::default();
    files.tables.entry(7).or_default().insert(3, 42);
    let mut last = Ring::new(&session, 0);
    last.call(5_000, a, DUP2, &[3, 1], 1).call(6_000, a, READ, &[1], 5);
    let rings = vec![(1_000, first), (2_000, Ring::new(&session, 0)), (3_000, Ring::new(&session, 0)), (9_000, last)];
    let events = run_rounds(rings, &mut files, &session);
    let calls = calls(&events);
    assert_eq!(file(calls[1], FdPlace::Return).as_deref(), Some("/file/42"));
    assert_eq!(file(calls[2], FdPlace::Arg(0)).as_deref(), Some("/file/42"));
}

#[test]
fn unknown_tasks_are_read_once() {
    let session = session();
    let a = task(7, 7);
    let mut first = ring_with_process(&session, a);
    first.call(100, a, KILL, &[77, 0], 0).call(200, a, KILL, &[78, 0], -3).call(300, a, KILL, &[77, 0], 0);
    let mut run = Run::new(&session);
    let mut files = ProcFiles { from: 1_001, time: 1_002, ..ProcFiles::default() };
    run.round(1_000, vec![first.chunk()], vec![], &mut files).round(1_100, vec![], vec![], &mut files);
    assert_eq!(call_lines(&run.events).len(), 0);
    run.round(1_200, vec![], vec![], &mut files);
    assert_eq!(call_lines(&run.events).len(), 3);
    assert_eq!(run.engine.tasks().comm_at(77, Time(100)).as_deref(), Some(&b"other"[..]));
}

/// The files of each call's descriptors when the call used them, by thread and start.
type ExpectedFiles = FxHashMap<(i32, u64), Vec<(FdPlace, Option<u64>)>>;

/// Simulated processes whose threads share descriptor tables.
struct Simulation<'a> {
    session: &'a crate::session::Session,
    dice: Dice,
    ring: Ring<'a>,
    now: u64,
    threads: Vec<SimulatedThread>,
    next_task: i32,
    next_file: u64,
    files: ProcFiles,
    expected: ExpectedFiles,
    lossy: bool,
    losing: bool,
}

struct SimulatedThread {
    task: TaskId,
    call: Option<InFlight>,
}

struct InFlight {
    nr: u64,
    args: [u64; 2],
    start: u64,
    /// The return value, once the call has taken effect.
    done: Option<i64>,
    /// The call does not use its descriptors.
    skips_descriptors: bool,
    child: Option<TaskId>,
}

impl<'a> Simulation<'a> {
    fn new(session: &'a crate::session::Session, seed: u64, lossy: bool) -> Simulation<'a> {
        let mut simulation = Simulation {
            session,
            dice: Dice(seed),
            ring: ring_with_process(session, task(10, 10)),
            now: 100,
            threads: vec![SimulatedThread { task: task(10, 10), call: None }],
            next_task: 11,
            next_file: 1,
            files: ProcFiles::default(),
            expected: FxHashMap::default(),
            lossy,
            losing: false,
        };
        simulation.files.tables.insert(10, FxHashMap::default());
        simulation
    }

    /// Simulates one step: an entry, an effect, or an exit.
    fn step(&mut self) {
        self.now += 5 + self.dice.below(20);
        let at = self.dice.below(self.threads.len() as u64) as usize;
        match &self.threads[at].call {
            None => self.enter(at),
            Some(call) if call.done.is_none() => self.take_effect(at),
            Some(_) => self.exit(at),
        }
        if self.lossy && self.dice.below(150) == 0 {
            // From here on records are dropped, or written again.
            self.losing = !self.losing;
            if !self.losing {
                self.ring.lost(self.now, 1);
            }
        }
    }

    fn fd(&mut self) -> u64 {
        self.dice.below(5)
    }

    fn enter(&mut self, at: usize) {
        let task = self.threads[at].task;
        let nr = [READ, READ, READ, READ, READ, READ, OPENAT, OPENAT, CLOSE, DUP2, 32, PIPE, CLONE, EXECVE, CLOSE_RANGE]
            [self.dice.below(15) as usize];
        let alone = self.threads.iter().filter(|thread| thread.task.pid == task.pid).count() == 1;
        if (nr == CLONE && (self.threads.len() > 6 || self.dice.below(3) > 0))
            || (nr == EXECVE && (!alone || self.dice.below(3) > 0))
            || (nr == CLOSE_RANGE && self.dice.below(3) > 0)
        {
            return;
        }
        let args = [self.fd(), self.fd()];
        let skips_descriptors = nr == READ && self.dice.below(6) == 0;
        let now = self.now;
        self.write(|ring| _ = ring.enter(now, task, nr, &args));
        self.threads[at].call = Some(InFlight { nr, args, start: self.now, done: None, skips_descriptors, child: None });
    }

    fn take_effect(&mut self, at: usize) {
        let task = self.threads[at].task;
        let Some(InFlight { nr, args, start, skips_descriptors, .. }) = self.threads[at].call else { return };
        if nr == CLONE {
            return self.take_clone_effect(at);
        }
        let file = self.next_file;
        self.next_file += 1;
        let table = self.files.tables.get_mut(&task.pid).unwrap();
        let free = (0..).find(|fd| !table.contains_key(fd)).unwrap();
        let (fds, other) = ([args[0] as i32, args[1] as i32], table.get(&(args[1] as i32)).copied());
        let first = table.get(&fds[0]).copied();
        let mut seen = vec![(FdPlace::Arg(0), first), (FdPlace::Arg(1), other)];
        let ret = match nr {
            READ if skips_descriptors => -22,
            READ => first.map_or(EBADF, |_| 1),
            OPENAT => {
                table.insert(free, file);
                seen.push((FdPlace::Return, Some(file)));
                i64::from(free)
            }
            PIPE => {
                table.insert(free, file);
                0
            }
            CLOSE => table.remove(&fds[0]).map_or(EBADF, |_| 0),
            DUP2 | 32 => match first {
                Some(first) => {
                    let to = if nr == DUP2 { fds[1] } else { free };
                    table.insert(to, first);
                    seen.push((FdPlace::Return, Some(first)));
                    i64::from(to)
                }
                None => EBADF,
            },
            CLOSE_RANGE => {
                table.retain(|fd, _| !(fds[0]..=fds[1]).contains(fd));
                0
            }
            EXECVE if args[0] == 0 => -2,
            EXECVE => {
                table.retain(|fd, _| *fd != args[1] as i32);
                0
            }
            _ => 0,
        };
        self.expected.insert((task.tid, start), seen);
        let now = self.now;
        if nr == EXECVE && ret == 0 {
            self.now += 3;
            self.write(|ring| _ = ring.exec(now + 3, task, task.tid, b"/bin/x"));
        }
        self.threads[at].call.as_mut().unwrap().done = Some(ret);
    }

    /// Copies the table first, and writes the record of it in a later step.
    fn take_clone_effect(&mut self, at: usize) {
        let task_now = self.threads[at].task;
        let is_thread = self.dice.below(2) == 0;
        let tid = self.next_task;
        let pending = self.threads[at].call.as_ref().and_then(|call| call.child);
        let Some(child) = pending else {
            self.next_task += 1;
            let child = if is_thread { task(task_now.pid, tid) } else { task(tid, tid) };
            if !is_thread {
                let copy = self.files.tables[&task_now.pid].clone();
                self.files.tables.insert(tid, copy);
            }
            self.threads[at].call.as_mut().unwrap().child = Some(child);
            return;
        };
        let now = self.now;
        let flags = if child.pid == task_now.pid { 0x10f00 } else { 0 };
        self.write(|ring| _ = ring.fork(now, child, task_now).new_task(now + 1, task_now, child.tid, flags).exit(now + 2, child, CLONE, 0));
        self.now += 2;
        self.threads[at].call.as_mut().unwrap().done = Some(i64::from(child.tid));
        self.threads.push(SimulatedThread { task: child, call: None });
    }

    fn exit(&mut self, at: usize) {
        let task = self.threads[at].task;
        let Some(InFlight { nr, done: Some(ret), .. }) = self.threads[at].call.take() else { return };
        let now = self.now;
        self.write(|ring| _ = ring.exit(now, task, nr, ret));
    }

    fn write(&mut self, record: impl FnOnce(&mut Ring)) {
        let mut dropped = Ring::new(self.session, 0);
        record(if self.losing { &mut dropped } else { &mut self.ring });
    }

    /// Lets time pass until all calls in flight have returned.
    fn settle(&mut self) {
        while self.threads.iter().any(|thread| thread.call.is_some()) {
            self.now += 10;
            for at in 0..self.threads.len() {
                match &self.threads[at].call {
                    Some(call) if call.done.is_none() => self.take_effect(at),
                    Some(_) => self.exit(at),
                    None => {}
                }
            }
        }
        self.now += 2_000_000_000;
    }
}

/// Counts the correct and the unknown descriptors; a wrong one fails the test.
fn compare(events: &[Event], expected: &ExpectedFiles) -> (usize, usize) {
    let (mut right, mut unknown) = (0, 0);
    for call in calls(events) {
        // A call that had not taken effect at the end has no expected files.
        let Some(seen) = expected.get(&(call.id.tid, call.id.start.0)) else { continue };
        for (place, file) in seen {
            match call.file(*place) {
                Some(known) => {
                    assert_eq!(Some(&crate::beauty::file::name(known)[..]), file.map(path_of).as_deref(), "{place:?} of {call:?}");
                    right += 1;
                }
                None => unknown += 1,
            }
        }
    }
    (right, unknown)
}

fn run_simulation(seed: u64, lossy: bool) -> (usize, usize) {
    let session = session();
    let mut simulation = Simulation::new(&session, seed, lossy);
    let mut run = Run::new(&session);
    for _ in 0..60 {
        for _ in 0..1 + simulation.dice.below(30) {
            simulation.step();
        }
        if simulation.dice.below(12) == 0 {
            simulation.settle();
        }
        // A read takes some time, during which the simulation goes on.
        simulation.now += 1;
        simulation.files.from = simulation.now.saturating_sub(simulation.dice.below(60));
        simulation.files.time = simulation.now + simulation.dice.below(60);
        let chunk = simulation.ring.chunk();
        let (now, full) = (simulation.now, std::mem::take(&mut simulation.losing));
        if full {
            simulation.ring.lost(now + 1, 1);
        }
        let full = full.then_some((Time(now), Synthesized::Full { cpu: 0 }));
        run.round(now, vec![chunk], full.into_iter().collect(), &mut simulation.files);
        simulation.now += 1;
    }
    let (events, _) = run.end();
    compare(&events, &simulation.expected)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_descriptor_has_a_wrong_path(seed: u64, lossy: bool) {
        run_simulation(seed, lossy);
    }
}

#[test]
fn many_descriptors_have_a_path() {
    let (right, unknown) = (0..200).map(|seed| run_simulation(seed, false)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(right * 50 > unknown, "{right} right, {unknown} unknown");
}
