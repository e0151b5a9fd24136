use super::*;
use crate::beauty::samples;
use crate::event::{Call, ExitState, Loss, TaskEnd, TaskId, Time, Verdict};
use crate::request::{self, Color};
use crate::session::Session;
use crate::sink::output::Output;
use crate::stack::name::Nameless;
use crate::syscall::ledger::Ledger;
use crate::task::Tasks;
use std::path::{Path, PathBuf};

/// The path of an output file. Reading the file removes it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("rtrace-text-{}-{name}", std::process::id())))
    }

    fn text(&self, suffix: &str) -> String {
        let mut path = self.0.clone().into_os_string();
        path.push(suffix);
        let text = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        text
    }
}

fn sink(scratch: &Scratch, separately: bool) -> Text {
    let output =
        Output::open(&request::Output { to: request::Sink::File(scratch.0.clone()), separately, color: Color::Never, rotation: None })
            .unwrap();
    Text::new(&samples::show(), false, output.shared())
}

fn number(nr: i64, exit: ExitState) -> EventKind {
    EventKind::Call(Box::new(Call { nr, exit, ..samples::call([1, 2, 0, 0, 0, 0], 0) }))
}

const LINE: &str = "     0.000 (         ): sh/20131 +++ exited with 0 +++\n";

#[test]
fn lines_are_written_together_at_the_tick() {
    let scratch = Scratch::new("together");
    let mut sink = sink(&scratch, false);
    let (session, tasks) = (Session::default(), Tasks::default());
    let view = View { session: &session, tasks: &tasks, now: Time(0), names: &Nameless };
    let ended = samples::event(Time(1), EventKind::Exit(TaskEnd::Exited(0)));
    let unknown = samples::event(Time(2), number(9990, ExitState::Never));
    sink.event(&ended, &view).unwrap();
    assert_eq!(std::fs::read_to_string(&scratch.0).unwrap(), "", "not before the tick");
    sink.tick(&view).unwrap();
    assert_eq!(std::fs::read_to_string(&scratch.0).unwrap(), LINE);
    sink.event(&unknown, &view).unwrap();
    sink.end(&TraceResult { ledger: &Ledger::default(), verdict: &Verdict::default() }, &view).unwrap();
    let text = scratch.text("");
    assert!(text.starts_with(LINE) && text.contains("sh/20131 syscall_9990(0x1, 0x2, 0, 0, 0, 0)"), "{text}");
}

#[test]
fn a_full_batch_is_written_at_once() {
    let scratch = Scratch::new("batch");
    let mut sink = sink(&scratch, false);
    let (session, tasks) = (Session::default(), Tasks::default());
    let view = View { session: &session, tasks: &tasks, now: Time(0), names: &Nameless };
    let ended = samples::event(Time(1), EventKind::Exit(TaskEnd::Exited(0)));
    let lines = BATCH / LINE.len() + 1;
    (0..lines).for_each(|_| sink.event(&ended, &view).unwrap());
    assert_eq!(scratch.text("").len(), lines * LINE.len());
}

#[test]
fn separate_files_have_their_process_s_lines_and_gaps_are_common() {
    let scratch = Scratch::new("separate");
    let mut sink = sink(&scratch, true);
    let (session, tasks) = (Session::default(), Tasks::default());
    let view = View { session: &session, tasks: &tasks, now: Time(0), names: &Nameless };
    let mut ended = samples::event(Time(1), EventKind::Exit(TaskEnd::Exited(0)));
    sink.event(&ended, &view).unwrap();
    ended.task = TaskId { pid: 5, tid: 6 };
    sink.event(&ended, &view).unwrap();
    sink.tick(&view).unwrap();
    sink.event(&ended, &view).unwrap();
    sink.event(&samples::event(Time(1), EventKind::Lost(Loss { records: Some(2), after: None })), &view).unwrap();
    sink.end(&TraceResult { ledger: &Ledger::default(), verdict: &Verdict::default() }, &view).unwrap();
    assert_eq!(scratch.text(".20131"), LINE);
    assert_eq!(scratch.text(".5"), LINE.replace("20131", "6").repeat(2));
    assert_eq!(scratch.text(""), "     0.000 (         ): LOST 2 records on CPU 3 before 0.000\n");
}

#[test]
fn a_reader_that_has_ended_is_reported_as_a_quiet_end() {
    let output = Output::open(&request::Output {
        to: request::Sink::Pipe("exec true".into()),
        separately: false,
        color: Color::Never,
        rotation: None,
    })
    .unwrap();
    let mut sink = Text::new(&samples::show(), false, output.shared());
    let (session, tasks) = (Session::default(), Tasks::default());
    let view = View { session: &session, tasks: &tasks, now: Time(0), names: &Nameless };
    let ended = samples::event(Time(1), EventKind::Exit(TaskEnd::Exited(0)));
    let failed = (0..100_000).find_map(|_| sink.event(&ended, &view).err()).unwrap();
    assert!(crate::sink::output::is_quiet_end(&failed), "{failed}");
}

#[test]
fn losses_without_a_record_are_reported_at_the_end() {
    let scratch = Scratch::new("lost");
    let mut sink = sink(&scratch, false);
    let (session, tasks) = (Session::default(), Tasks::default());
    let verdict = Verdict { unplaced: 2, ..Verdict::default() };
    sink.end(
        &TraceResult { ledger: &Ledger::default(), verdict: &verdict },
        &View { session: &session, tasks: &tasks, now: Time(0), names: &Nameless },
    )
    .unwrap();
    assert_eq!(scratch.text(""), "         ? (         ): LOST 2 records at times that are not known\n");
}
