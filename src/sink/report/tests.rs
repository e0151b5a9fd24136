use super::*;
use crate::beauty::samples;
use crate::event::frame::Frame;
use crate::event::verdict::CallsVerdict;
use crate::event::{Call, Comm, ExitState, Stack, Time, Verdict};
use crate::request::{Color, Order, Output as Request, Sink as To};
use crate::session::Session;
use crate::sink::output::Output;
use crate::stack::name::{NamedFrame, Names};
use crate::task::Tasks;
use std::sync::Arc;

/// The functions of the tests. An address is an index.
const FUNCTIONS: [&str; 5] = ["main", "copy", "walk", "entry_SYSCALL_64", "step\n"];

struct Functions;

impl Names for Functions {
    fn frames(&self, _: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame)) {
        for (at, frame) in stack.frames.iter().enumerate() {
            let function = Some(FUNCTIONS[frame.avma as usize].as_bytes());
            each(NamedFrame { function, kernel: at < stack.kernel, ..NamedFrame::default() });
        }
    }

    fn function(&self, _: i32, _: &Frame) -> Option<(Box<[u8]>, u64)> {
        None
    }

    fn kernel(&self, _: u64) -> Option<(Box<[u8]>, u64)> {
        None
    }
}

const WANTED: request::Report = request::Report { order: Order::Time, is_inverted: false, frames_max: None, share_min: 0.5 };

struct Run {
    sink: Report,
    session: Session,
    tasks: Tasks,
    verdict: Verdict,
}

impl Run {
    fn new(wanted: request::Report) -> Run {
        let output = Request { to: To::File("/dev/null".into()), separately: false, color: Color::Never, rotation: None };
        let sink = Report::new(wanted, Style::Perf, Output::open(&output).unwrap().shared());
        Run { sink, session: Session::default(), tasks: Tasks::default(), verdict: Verdict::default() }
    }

    /// Emits a call with this number that took so many microseconds, or did not return, from these functions, innermost
    /// first.
    fn call(&mut self, comm: &str, nr: i64, microseconds: Option<u64>, functions: &[u64], end: Option<StackEnd>) {
        let call = samples::call([0; 6], 0);
        let exit = microseconds.map_or(ExitState::Never, |time| ExitState::Returned { at: Time(call.id.start.0 + time * 1000), ret: 0 });
        let frame = |avma: &u64| Frame { avma: *avma, svma: *avma, image: None, is_after: true };
        let kernel = functions.iter().filter(|avma| **avma == 3).count();
        let stack = Stack { frames: functions.iter().map(frame).collect(), kernel, end, copied: 0 };
        let stack = (!functions.is_empty()).then(|| Arc::new(stack));
        let comm: Comm = Arc::from(comm.as_bytes());
        let event = Event { comm: Some(comm), ..samples::event(Time(0), EventKind::Call(Box::new(Call { nr, exit, stack, ..call }))) };
        let view = View { session: &self.session, tasks: &self.tasks, now: Time(0), names: &Functions };
        self.sink.event(&event, &view).unwrap();
    }

    fn text(&self) -> String {
        String::from_utf8(text::report(&self.sink.tree, &self.sink.wanted, &self.sink.totals, &self.verdict)).unwrap()
    }

    /// Returns the lines of the table without its head, each with single blanks.
    fn rows(&self) -> Vec<String> {
        let text = self.text();
        let (_, rows) = text.split_once("call path\n").unwrap();
        rows.lines().filter(|line| !line.is_empty()).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }
}

fn sample(wanted: request::Report) -> Run {
    let mut run = Run::new(wanted);
    for _ in 0..3 {
        run.call("sh", 0, Some(200), &[3, 1, 0], Some(StackEnd::Root));
    }
    run.call("sh", 1, Some(300), &[2, 0], Some(StackEnd::Root));
    run.call("sh", 231, None, &[0], Some(StackEnd::Root));
    run.call("cat", 0, Some(100), &[4, 0], Some(StackEnd::Truncated));
    run
}

#[test]
fn paths_branch_where_calls_do() {
    let expected = "
 Call paths of 6 calls, which took 1.000 ms:
 1 call has no known duration, because it did not return or a record is missing: it counts, and has no time.
 1 call has unknown outermost callers.

    share       total ms       calls     average ms  call path
    90.0%          0.900           5          0.225  sh
                                                     main
    60.0%          0.600           3          0.200    copy
    60.0%          0.600           3          0.200    read(...)
    30.0%          0.300           1          0.300    walk
    30.0%          0.300           1          0.300    write(...)
     0.0%              ?           1              ?    [1 branch below 0.5%]
    10.0%          0.100           1          0.100  cat
                                                     [callers unknown]
                                                     main
                                                     step\\n
    10.0%          0.100           1          0.100  read(...)

";
    assert_eq!(sample(WANTED).text(), expected);
}

#[test]
fn inverted_paths_begin_with_the_syscall() {
    let rows = sample(request::Report { is_inverted: true, frames_max: Some(1), share_min: 0.0, ..WANTED }).rows();
    let expected = [
        "70.0% 0.700 4 0.175 read(...)",
        "60.0% 0.600 3 0.200 copy",
        "sh",
        "10.0% 0.100 1 0.100 step\\n",
        "cat",
        "30.0% 0.300 1 0.300 write(...)",
        "walk",
        "sh",
        "0.0% ? 1 ? exit_group(...)",
        "main",
        "sh",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn the_order_decides_what_a_share_is_of() {
    let by_count = sample(request::Report { order: Order::Count, frames_max: Some(1), ..WANTED }).rows();
    let expected = [
        "83.3% 0.900 5 0.225 sh",
        "main",
        "50.0% 0.600 3 0.200 read(...)",
        "16.7% 0.300 1 0.300 write(...)",
        "16.7% ? 1 ? exit_group(...)",
        "16.7% 0.100 1 0.100 cat",
        "[callers unknown]",
        "main",
        "16.7% 0.100 1 0.100 read(...)",
    ];
    assert_eq!(by_count, expected);
    let first = |order: Order| sample(request::Report { order, ..WANTED }).rows()[0].clone();
    assert!(first(Order::Name).ends_with(" cat") && first(Order::Average).ends_with(" sh"));
    // Without any time, the number of calls decides.
    let mut run = Run::new(WANTED);
    run.call("sh", 231, None, &[], None);
    assert_eq!(run.rows(), ["100.0% ? 1 ? sh", "100.0% ? 1 ? exit_group(...)"]);
}

#[test]
fn what_is_missing_is_in_the_head() {
    let mut run = Run::new(WANTED);
    assert_eq!(run.text(), "\n Call paths of 0 calls, which took 0.000 ms:\n");
    run.call("sh", 0, Some(1), &[], None);
    assert!(run.text().contains("\n No call has a stack ("), "{}", run.text());
    run.call("sh", 0, Some(1), &[3], None);
    run.call("sh", 0, Some(1), &[0], None);
    run.verdict.lost_records = 7;
    let text = run.text();
    assert!(text.contains("\n 2 calls have no stack:") && text.contains("\n 7 records were lost:") && !text.contains("No call"), "{text}");
    run.verdict.calls = Some(CallsVerdict { issued: 4, shown: 3, lost: 1, ..CallsVerdict::default() });
    assert!(run.text().contains("\n 1 further call was lost, "), "{}", run.text());
}

#[test]
fn objects_have_all_paths_innermost_function_first() {
    for is_inverted in [false, true] {
        let run = sample(request::Report { is_inverted, share_min: 50.0, ..WANTED });
        let text = String::from_utf8(json::objects(&run.sink.tree, &run.sink.wanted).unwrap()).unwrap();
        let expected = [
            r#"{"type":"report_path","comm":"sh","name":"read","calls":3,"timed":3,"total":600000,"stack":["copy","main"]}"#,
            r#"{"type":"report_path","comm":"sh","name":"write","calls":1,"timed":1,"total":300000,"stack":["walk","main"]}"#,
            r#"{"type":"report_path","comm":"cat","name":"read","calls":1,"timed":1,"total":100000,"stack":["step\n","main"],"callers_unknown":true}"#,
            r#"{"type":"report_path","comm":"sh","name":"exit_group","calls":1,"timed":0,"total":0,"stack":["main"]}"#,
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_rows_add_up_to_all_calls() {
    let run = sample(request::Report { share_min: 20.0, ..WANTED });
    let summed = run.sink.tree.summed();
    let rows = rows::rows(&summed, &rows::Scale::new(&run.sink.wanted, run.sink.totals.sums));
    let top: u64 = rows.iter().filter(|row| row.level == 0 && !row.is_continued).map(|row| row.sums.calls).sum();
    let ends: u64 = rows
        .iter()
        .filter(|row| matches!(row.what, rows::What::LeftOut(_) | rows::What::Node(_, NodeKind::Syscall)))
        .map(|row| row.sums.calls)
        .sum();
    assert_eq!((top, ends, run.sink.totals.sums.calls), (6, 6, 6));
}

#[test]
fn a_deep_path_takes_no_stack_of_rtrace() {
    let mut run = Run::new(WANTED);
    run.call("sh", 0, Some(1), &[1; 20_000], Some(StackEnd::Root));
    assert_eq!(run.rows().len(), 20_002);
}
