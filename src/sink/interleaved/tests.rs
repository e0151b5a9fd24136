use super::*;
use crate::beauty::samples;
use crate::event::{ExitState, TaskId, Verdict};
use crate::session::Session;
use crate::stack::name::Nameless;
use crate::syscall::ledger::Ledger;
use crate::task::Tasks;

/// A sink that notes which events it gets.
#[derive(Default)]
struct Notes(Vec<String>);

impl Sink for Notes {
    fn event(&mut self, event: &Event, _: &View) -> io::Result<()> {
        let tid = event.task.tid;
        self.0.push(match &event.kind {
            EventKind::Call(call) if call.shown_pending => format!("{tid} resumed@{}", event.time.0),
            EventKind::Call(_) => format!("{tid} whole@{}", event.time.0),
            EventKind::Pending(_) => format!("{tid} unfinished@{}", event.time.0),
            EventKind::Exit(_) => format!("{tid} exited"),
            _ => format!("{tid} other"),
        });
        Ok(())
    }

    fn open(&mut self, event: &Event, _: &View) -> io::Result<()> {
        self.0.push(format!("{} opened@{}", event.task.tid, event.time.0));
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &TraceResult, _: &View) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the sink with the default options about lines.
struct Run {
    sink: Interleaved<Notes>,
    session: Session,
    tasks: Tasks,
}

impl Run {
    fn new(shows_open: bool) -> Run {
        let sink = Interleaved::new(Notes::default(), &Lines::default(), shows_open, None);
        Run { sink, session: Session::default(), tasks: Tasks::default() }
    }

    fn event(&mut self, tid: i32, time: u64, kind: EventKind) -> &mut Run {
        let event = Event { task: TaskId { pid: tid, tid }, ..samples::event(Time(time), kind) };
        self.sink.event(&event, &View { session: &self.session, tasks: &self.tasks, now: Time(time), names: &Nameless }).unwrap();
        self
    }

    fn call(&mut self, tid: i32, start: u64, end: u64) -> &mut Run {
        self.event(tid, end, EventKind::Call(Box::new(call(tid, start, ExitState::Never))))
    }

    fn pending(&mut self, tid: i32, start: u64, time: u64) -> &mut Run {
        self.event(tid, time, EventKind::Pending(Box::new(call(tid, start, ExitState::Pending))))
    }

    fn tick(&mut self, now: u64) -> Vec<String> {
        self.sink.tick(&View { session: &self.session, tasks: &self.tasks, now: Time(now), names: &Nameless }).unwrap();
        std::mem::take(&mut self.sink.inner.0)
    }

    fn end(&mut self) -> Vec<String> {
        let result = TraceResult { ledger: &Ledger::default(), verdict: &Verdict::default() };
        self.sink.end(&result, &View { session: &self.session, tasks: &self.tasks, now: Time(0), names: &Nameless }).unwrap();
        std::mem::take(&mut self.sink.inner.0)
    }
}

fn call(tid: i32, start: u64, exit: ExitState) -> Call {
    Call { id: CallId { tid, start: Time(start) }, exit, ..samples::call([0; 6], 0) }
}

#[test]
fn a_call_is_split_if_another_task_does_something_before_it_returns() {
    let mut run = Run::new(false);
    run.call(8, 20, 30).call(8, 35, 40).event(8, 50, EventKind::Exit(TaskEnd::Exited(0))).call(7, 10, 60);
    assert_eq!(run.end(), ["7 unfinished@10", "8 whole@30", "8 whole@40", "8 exited", "7 resumed@60"]);
}

#[test]
fn calls_that_overlap_are_both_split() {
    assert_eq!(
        Run::new(false).call(7, 10, 30).call(8, 20, 40).end(),
        ["7 unfinished@10", "8 unfinished@20", "7 resumed@30", "8 resumed@40"]
    );
}

#[test]
fn events_without_a_line_split_no_call() {
    let child = TaskId::default();
    let fork = EventKind::Fork { child, flags: None };
    assert_eq!(Run::new(false).event(7, 15, fork).call(7, 10, 20).end(), ["7 other", "7 whole@20"]);
}

#[test]
fn events_wait_until_older_calls_are_known_to_be_in_flight() {
    let mut run = Run::new(false);
    run.call(8, 120, 130);
    assert_eq!(run.tick(WAIT + 119), [""; 0], "a call that began before could still be in flight");
    run.pending(7, 100, WAIT);
    assert_eq!(run.tick(WAIT + 130), ["7 unfinished@100", "8 whole@130"]);
    assert_eq!(run.call(7, 100, WAIT + 200).end(), [format!("7 resumed@{}", WAIT + 200)]);
}

#[test]
fn a_call_that_is_known_too_late_has_one_line() {
    let mut run = Run::new(false);
    run.call(8, 120, 130);
    assert_eq!(run.tick(2 * WAIT), ["8 whole@130"]);
    assert_eq!(run.call(7, 100, 3 * WAIT).end(), [format!("7 whole@{}", 3 * WAIT)]);
}

#[test]
fn a_call_in_flight_is_shown_early_only_if_somebody_watches() {
    for (shows_open, shown) in [(true, vec!["7 opened@100"]), (false, vec![])] {
        let mut run = Run::new(shows_open);
        run.pending(7, 100, WAIT);
        assert_eq!(run.tick(3 * WAIT), shown);
        assert_eq!(run.tick(4 * WAIT), [""; 0], "once");
        assert_eq!(run.end().len(), usize::from(!shows_open), "at the end it is shown in any case");
    }
}

#[test]
fn a_line_that_has_begun_goes_on_unless_something_else_happens() {
    let opened = || {
        let mut run = Run::new(true);
        run.pending(7, 100, WAIT);
        assert_eq!(run.tick(3 * WAIT), ["7 opened@100"]);
        run
    };
    assert_eq!(opened().call(7, 100, 4 * WAIT).end(), [format!("7 whole@{}", 4 * WAIT)]);
    let (start, end) = (3 * WAIT + 1, 3 * WAIT + 2);
    let others = opened().call(8, start, end).call(7, 100, 4 * WAIT).end();
    assert_eq!(others, [format!("8 whole@{end}"), format!("7 resumed@{}", 4 * WAIT)]);
}

/// strace attaches to a process, and its call begins again.
#[test]
fn a_call_that_began_before_the_trace_is_shown_in_flight() {
    let mut run = Run::new(true);
    let before = Call { entry: EntryState::Unseen, ..call(7, 0, ExitState::Pending) };
    run.event(7, WAIT, EventKind::Pending(Box::new(before)));
    assert_eq!(run.tick(3 * WAIT), ["7 opened@0"]);
}

#[test]
fn of_the_calls_in_flight_at_the_end_the_last_one_ends_its_line() {
    let mut run = Run::new(false);
    let in_flight = |tid, start| EventKind::Call(Box::new(call(tid, start, ExitState::Pending)));
    run.pending(7, 10, WAIT).pending(8, 20, WAIT).event(7, 2 * WAIT, in_flight(7, 10)).event(8, 2 * WAIT, in_flight(8, 20));
    let end = 2 * WAIT;
    assert_eq!(run.end(), ["7 unfinished@10".to_owned(), format!("7 resumed@{end}"), format!("8 whole@{end}")]);
}

#[test]
fn nothing_waits_while_there_is_one_task() {
    let mut run = Run::new(false);
    run.sink.alive = Some(1);
    let child = TaskId { pid: 8, tid: 8 };
    run.call(7, 10, 20).event(7, 35, EventKind::Fork { child, flags: None });
    assert_eq!(run.sink.inner.0, ["7 whole@20", "7 other"]);
    run.call(7, 30, 40).call(8, 60, 70).event(8, 80, EventKind::Exit(TaskEnd::Exited(0))).call(7, 50, 90);
    assert_eq!(run.sink.inner.0.len(), 2, "the two tasks wait");
    assert_eq!(run.end()[2..], ["7 whole@40", "7 unfinished@50", "8 whole@70", "8 exited", "7 resumed@90"]);
    run.call(7, 100, 110);
    assert_eq!(run.sink.inner.0, ["7 whole@110"]);
}

#[test]
fn what_waits_is_limited() {
    let mut run = Run::new(false);
    (0..WAITING_MAX as u64).for_each(|at| _ = run.call(7, at * 10, at * 10 + 5));
    let passed = run.sink.inner.0.len();
    assert!((WAITING_MAX / 4..WAITING_MAX).contains(&passed), "{passed}");
    assert_eq!(run.end().len(), WAITING_MAX);
    assert_eq!(run.sink.unwritten(), 0);
}
