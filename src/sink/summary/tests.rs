use super::*;
use crate::beauty::samples;
use crate::event::{Abi, Aggregate, Call, EntryState, EventIndex, ExitState, Fault, Sum, Times};
use crate::kernel::format::Format;
use crate::request::{self, Color, Output as Request};
use crate::session::{EventTable, Session};
use crate::show::SummaryBy;
use crate::sink::output::Output;
use crate::stack::name::Nameless;
use crate::task::Tasks;
use serde_json::{Value, json};
use std::sync::Arc;

const START: Time = Time(1_000_000_000);

struct Run {
    sink: Summary,
    session: Session,
    tasks: Tasks,
}

impl Run {
    fn new(by: SummaryBy) -> Run {
        let output =
            Output::open(&Request { to: request::Sink::File("/dev/null".into()), separately: false, color: Color::Never, rotation: None })
                .unwrap();
        let show = Show { summary_by: by, errno_summary: true, ..samples::show() };
        Run { sink: Summary::new(&show, output.shared()), session: Session::default(), tasks: Tasks::default() }
    }

    fn emit(&mut self, pid: i32, tid: i32, kind: EventKind) {
        let event = Event { task: TaskId { pid, tid }, ..samples::event(START, kind) };
        self.sink.event(&event, &View { session: &self.session, tasks: &self.tasks, now: START, names: &Nameless }).unwrap();
    }

    /// Emits a call of a syscall without a row that took this many microseconds.
    fn call(&mut self, pid: i32, tid: i32, nr: i64, microseconds: u64, ret: i64) {
        let exit = ExitState::Returned { at: Time(START.0 + microseconds * 1_000), ret };
        self.emit(pid, tid, EventKind::Call(Box::new(Call { nr, exit, ..samples::call([0; 6], 0) })));
    }

    fn text(&mut self) -> String {
        self.sink.text(&Ledger::default(), &self.tasks)
    }

    fn heads(&mut self) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(" events, ")).map(str::to_owned).collect()
    }
}

#[test]
fn a_thread_s_table_has_perf_s_columns() {
    let mut run = Run::new(SummaryBy::Thread);
    for (microseconds, ret) in [(2_000, 1), (4_000, -2), (4_000, -2), (6_000, -512)] {
        run.call(7, 7, 9990, microseconds, ret);
    }
    run.call(7, 7, 9991, 20_000, -9);
    run.emit(7, 7, EventKind::Call(Box::new(Call { nr: 9992, entry: EntryState::Unseen, ..samples::call([0; 6], 0) })));
    run.emit(7, 7, EventKind::Call(Box::new(Call { nr: 9993, exit: ExitState::Never, ..samples::call([0; 6], 0) })));
    assert_eq!(
        run.text(),
        "
 Summary of events:

 sh (7), 7 events, 100.0%

   syscall            calls  errors  total       min       avg       max       stddev       p50       p95       p99
                                     (msec)    (msec)    (msec)    (msec)        (%)    (msec)    (msec)    (msec)
   --------------- --------  ------ -------- --------- --------- ---------     ------ --------- --------- ---------
   syscall_9991           1      1    20.000    20.000    20.000    20.000      0.00%    20.000    20.000    20.000
\t\t\t\tEBADF: 1
   syscall_9990           4      2    16.000     2.000     4.000     6.000     20.41%     4.000     6.000     6.000
\t\t\t\tENOENT: 2
   syscall_9992           1      0         -         -         -         -          -         -         -         -
   syscall_9993           1      0         -         -         -         -          -         -         -         -
   (of these, 1 counted but not timed: their entry or exit was not seen)

"
    );
}

/// The table is the same for single calls and for aggregated calls.
#[test]
fn aggregated_and_single_calls_add_up() {
    let mut run = Run::new(SummaryBy::Thread);
    run.call(7, 7, 9990, 2_000, 1);
    let times = Times {
        total: 14_000_000,
        min: 4_000_000,
        max: 6_000_000,
        squares: 68_000_000_000_000,
        spread: vec![(4_000_000, 2), (6_000_000, 1)],
    };
    let sum = Sum { abi: Abi::X86_64, nr: 9990, calls: 3, times, errnos: vec![(2, 2), (512, 1)] };
    run.emit(7, 7, EventKind::Aggregate(Box::new(Aggregate { sums: vec![sum, Sum { nr: 9991, errnos: vec![(9, 1)], ..Sum::default() }] })));
    run.call(7, 7, 9991, 20_000, 0);
    let text = run.text();
    assert!(text.contains(" sh (7), 5 events, 100.0%"), "{text}");
    for row in [
        "   syscall_9991           1      1    20.000    20.000    20.000    20.000      0.00%    20.000    20.000    20.000\n\t\t\t\tEBADF: 1\n",
        "   syscall_9990           4      2    16.000     2.000     4.000     6.000     20.41%     4.000     6.000     6.000\n\t\t\t\tENOENT: 2\n",
    ] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn rows_beyond_the_limit_are_counted() {
    let mut run = Run::new(SummaryBy::Total);
    run.sink.options.max_rows = Some(1);
    (0..3).for_each(|i| run.call(1, 1, 9990 + i, 1 + i as u64, 0));
    let text = run.text();
    assert!(text.contains("   syscall_9992 ") && !text.contains("   syscall_9990 "), "{text}");
    assert!(text.contains("   and 2 more, 2 calls\n"), "{text}");
}

#[test]
fn the_table_of_all_tasks_has_shares_and_a_total() {
    let mut run = Run::new(SummaryBy::OneTable);
    run.sink.options.errnos = false;
    for (tid, microseconds, ret) in [(7, 2_000, 1), (8, 4_000, -2), (8, 4_000, -2), (9, 6_000, -512)] {
        run.call(7, tid, 9990, microseconds, ret);
    }
    run.call(7, 7, 9991, 84_000, -9);
    run.emit(7, 7, EventKind::Call(Box::new(Call { nr: 9993, exit: ExitState::Never, ..samples::call([0; 6], 0) })));
    assert_eq!(
        run.text(),
        "
 Summary of events:

   syscall            calls errors    total   time      avg      p50      p95      p99      max
                                       (ms)    (%)     (ms)     (ms)     (ms)     (ms)     (ms)
   --------------- -------- ------ -------- ------ -------- -------- -------- -------- --------
   syscall_9991           1      1   84.000  84.0%   84.000   84.000   84.000   84.000   84.000
   syscall_9990           4      2   16.000  16.0%    4.000    4.000    6.000    6.000    6.000
   syscall_9993           1      0        -      -        -        -        -        -        -
   --------------- -------- ------ -------- ------ -------- -------- -------- -------- --------
   total                  6      3  100.000 100.0%   20.000    4.000   84.000   84.000   84.000

"
    );
    run.sink.options.max_rows = Some(1);
    assert!(
        run.text().contains("   ... 2 rows more with 5 calls, 16.0% of the time (--max-summary 0 shows all)\n   ---"),
        "{}",
        run.text()
    );
}

/// Returns the JSON objects of the whole trace.
fn objects(run: &mut Run) -> Vec<Value> {
    run.sink.options.style = Style::Json;
    let view = View { session: &run.session, tasks: &run.tasks, now: Time(START.0 + 5), names: &Nameless };
    run.sink.print_trace(&Ledger::default(), &view).unwrap();
    let lines = std::mem::take(&mut run.sink.waiting);
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn rows_and_totals_are_objects_with_raw_numbers() {
    let mut run = Run::new(SummaryBy::Thread);
    for (microseconds, ret) in [(2_000, 1), (4_000, -2), (6_000, -2)] {
        run.call(7, 8, 9990, microseconds, ret);
    }
    run.call(7, 8, 9991, 1, 0);
    run.sink.options.max_rows = Some(1);
    run.sink.options.histogram = true;
    let objects = objects(&mut run);
    let time = |nanoseconds: u64| json!({"monotonic": nanoseconds.to_string(), "realtime": nanoseconds.to_string()});
    let durations = json!({
        "calls": 3, "total": 12_000_000, "min": 2_000_000, "average": 4_000_000, "max": 6_000_000,
        "p50": 4_000_000, "p95": 6_000_000, "p99": 6_000_000, "relative_error": objects[0]["durations"]["relative_error"]
    });
    let row = json!({
        "type": "summary", "span": "trace", "from": time(0), "to": time(START.0 + 5), "pid": 7, "tid": 8, "comm": "sh",
        "name": "syscall_9990", "abi": "x86_64", "number": 9990, "calls": 3, "errors": 2, "untimed": 0, "durations": durations,
        "errnos": [{"errno": 2, "name": "ENOENT", "calls": 2}],
        "histogram": [{"from": 1 << 20, "to": 1 << 21, "calls": 1}, {"from": 1 << 21, "to": 1 << 22, "calls": 1},
            {"from": 1 << 22, "to": 1 << 23, "calls": 1}]
    });
    assert_eq!(objects[0], row);
    let error = objects[0]["durations"]["relative_error"].as_f64().unwrap();
    assert!((error - (4.0f64 / 3.0).sqrt() / 4.0).abs() < 1e-9, "{error}");
    let of_total = ["type", "events", "calls", "errors", "left_out"].map(|member| objects[1][member].clone());
    assert_eq!(of_total, [json!("summary_total"), json!(4), json!(4), json!(2), json!({"rows": 1, "calls": 1, "total": 1_000})]);
    assert_eq!((objects.len(), &objects[1]["durations"]["total"]), (2, &json!(12_001_000)));
}

#[test]
fn a_trace_without_events_has_a_total_of_zero() {
    let objects = objects(&mut Run::new(SummaryBy::OneTable));
    assert_eq!((objects.len(), &objects[0]["type"], &objects[0]["events"]), (1, &json!("summary_total"), &json!(0)));
    assert_eq!((&objects[0]["durations"], &objects[0]["pid"]), (&Value::Null, &Value::Null));
}

#[test]
fn intervals_add_up_to_the_total() {
    let mut run = Run::new(SummaryBy::OneTable);
    let mut whole = Numbers::default();
    for i in 0..500u64 {
        let exit = ExitState::Returned { at: Time(START.0 + i * i), ret: 0 };
        let call = Call { nr: 9990 + (i % 3) as i64, exit, ..samples::call([0; 6], 0) };
        run.sink.numbers.call(0, objects::ObjectId::ANY, &call, false);
        if i % 50 == 0 {
            whole.add(&std::mem::take(&mut run.sink.numbers));
        }
    }
    whole.add(&run.sink.numbers);
    run.sink.numbers = whole;
    let text = run.text();
    assert!(text.contains("   total                500      0"), "{text}");
}

#[test]
fn the_busiest_group_comes_first() {
    let mut run = Run::new(SummaryBy::Thread);
    run.call(1, 1, 9990, 1, 0);
    (0..3).for_each(|_| run.call(1, 2, 9990, 1, 0));
    assert_eq!(run.heads(), [" sh (2), 3 events, 75.0%", " sh (1), 1 events, 25.0%"]);
}

#[test]
fn groups_are_threads_processes_or_all() {
    let heads = |by| {
        let mut run = Run::new(by);
        for (pid, tid) in [(1, 1), (1, 2), (3, 3)] {
            run.call(pid, tid, 9990, 1, 0);
        }
        run.heads().len()
    };
    assert_eq!([SummaryBy::Thread, SummaryBy::Process, SummaryBy::Total, SummaryBy::Cgroup].map(heads), [3, 2, 1, 1]);
    let mut run = Run::new(SummaryBy::Total);
    run.call(1, 1, 9990, 1, 0);
    run.call(2, 2, 9990, 1, 0);
    assert_eq!(run.heads(), [" total, 2 events, 100.0%"]);
    assert!(run.text().contains("   syscall_9990           2      0"));
}

#[test]
fn a_reused_tid_is_another_thread() {
    let mut run = Run::new(SummaryBy::Thread);
    run.call(7, 7, 9990, 1, 0);
    run.emit(1, 1, EventKind::Fork { child: TaskId { pid: 7, tid: 7 }, flags: None });
    run.call(7, 7, 9990, 1, 0);
    assert_eq!(run.heads(), [" sh (7), 1 events, 50.0%", " sh (7), 1 events, 50.0%"]);
}

#[test]
fn a_pending_call_is_counted_when_it_has_ended() {
    let mut run = Run::new(SummaryBy::Total);
    run.emit(1, 1, EventKind::Pending(Box::new(Call { nr: 9990, exit: ExitState::Pending, ..samples::call([0; 6], 0) })));
    assert!(run.heads().is_empty());
    run.call(1, 1, 9990, 1, 0);
    assert_eq!(run.heads(), [" total, 1 events, 100.0%"]);
}

#[test]
fn faults_and_cpu_time_are_in_the_head() {
    let mut run = Run::new(SummaryBy::Thread);
    let format = "name: sched_stat_runtime\nID: 1\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:u64 runtime;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";
    let spec = EventSpec {
        name: "sched:sched_stat_runtime".into(),
        role: Role::StatRuntime,
        sample_type: 0,
        format: Some(Format::parse(format).unwrap()),
        shown: false,
        terms: Default::default(),
    };
    run.session.events = EventTable { events: vec![spec], ..EventTable::default() };
    let fault = |major| EventKind::Fault(Box::new(Fault { major, ip: 0, address: 0, ip_at: None, address_at: None, stack: None }));
    let mut raw = vec![0; 40];
    raw[24] = 9;
    raw[32..].copy_from_slice(&1_500_000u64.to_le_bytes());
    run.emit(9, 9, fault(true));
    run.emit(9, 9, fault(false));
    run.emit(9, 9, fault(false));
    for _ in 0..2 {
        run.emit(9, 9, EventKind::Tracepoint { event: EventIndex(0), raw: raw.clone().into(), stack: None, caller: None, call: None });
    }
    run.emit(9, 9, EventKind::Tracepoint { event: EventIndex(0), raw: Box::from(&raw[..30]), stack: None, caller: None, call: None });
    assert_eq!(run.heads(), [" sh (9), 3 events, 100.0%, 1 majfaults, 2 minfaults, 3.000 msec"]);
}

#[test]
fn comms_are_escaped_in_the_head() {
    let mut run = Run::new(SummaryBy::Thread);
    let event = Event {
        comm: Some(Arc::from(&b"\x1b[31m\n"[..])),
        ..samples::event(START, EventKind::Call(Box::new(Call { nr: 9990, ..samples::call([0; 6], 0) })))
    };
    run.sink.event(&event, &View { session: &run.session, tasks: &run.tasks, now: START, names: &Nameless }).unwrap();
    assert_eq!(run.heads(), [r" \x1b[31m\n (20131), 1 events, 100.0%"]);
}

#[test]
fn a_partial_table_has_the_number_of_missing_calls() {
    let mut ledger = Ledger::default();
    *ledger.account(EventIndex(0)) = crate::syscall::ledger::EventAccount {
        received: 90,
        counted: 90,
        issued: Some(100),
        lost: Some(10),
        entries: true,
        ..Default::default()
    };
    let text = Run::new(SummaryBy::Total).sink.text(&ledger, &Tasks::default());
    assert!(text.contains(" PARTIAL: 10 calls are missing because their records were lost"), "{text}");
    ledger.account(EventIndex(0)).entries = false;
    let text = Run::new(SummaryBy::Total).sink.text(&ledger, &Tasks::default());
    assert!(text.contains(" PARTIAL: 10 records were lost"), "{text}");
    assert!(!Run::new(SummaryBy::Total).text().contains("PARTIAL"));
}
