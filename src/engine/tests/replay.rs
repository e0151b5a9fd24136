//! A replay: the recorded input of an engine gives the same events without /proc. [`Run::end`] checks this for every
//! run of the other tests; here, it is shown that the answers to reads of /proc are what makes the difference.

use super::descriptors::{AT_FDCWD, KILL, file, ring_with_process};
use super::fixture::*;
use crate::event::{Event, FdPlace, Synthesized, Time};
use crate::source::proc_reader::LiveProcReader;
use crate::source::{Input, Round};
use crate::sys::clock;
use crate::task::ProcRead;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::parent_id;

/// Returns the paths of the files that the calls returned.
fn opened(events: &[Event]) -> Vec<Option<String>> {
    calls(events).iter().map(|call| file(call, FdPlace::Return)).collect()
}

#[test]
fn the_answers_of_this_machine_are_replayed_without_it() {
    let session = session();
    let own = std::process::id() as i32;
    let (a, parent) = (task(own, own), parent_id());
    let program = File::open("/proc/self/exe").unwrap();
    let begun = clock::now().0 - 1_000_000;
    let mut run = Run::new(&session);
    let mut proc = LiveProcReader::default();
    let mut ring = ring_with_process(&session, a);
    ring.call(begun + 100, a, OPENAT, &[AT_FDCWD], program.as_raw_fd().into()).call(begun + 200, a, KILL, &[parent.into(), 0], 0);
    run.round(begun + 1_000, vec![ring.chunk()], vec![], &mut proc);
    assert!(matches!(run.inputs.last(), Some(Input::Answers(none)) if none.is_empty()), "no record is due yet");
    run.round(begun + 2_000, vec![], vec![], &mut proc);
    let Some(Input::Answers(answers)) = run.inputs.last() else { panic!("the answers follow the round") };
    let is_of_parent = |answer: &Synthesized| matches!(answer, Synthesized::Task { task, .. } if task.tid == parent as i32);
    assert!(answers.iter().any(|(_, answer)| matches!(answer, Synthesized::Fd { path: Some(_), .. })), "{answers:?}");
    assert!(answers.iter().any(|(_, answer)| is_of_parent(answer)), "{answers:?}");
    assert!(
        answers.is_sorted_by_key(|(time, _)| *time) && answers.iter().all(|(time, _)| *time > Time(begun + 2_000)),
        "they are younger than the round before them"
    );
    drop(program);
    for _ in 0..2 {
        run.round(clock::now().0 + 1, vec![], vec![], &mut proc);
    }
    let inputs = run.inputs.clone();
    let (events, engine) = run.end();
    let path = std::env::current_exe().unwrap();
    assert_eq!(opened(&events), [Some(path.to_string_lossy().into_owned()), None]);
    let comm = std::fs::read(format!("/proc/{parent}/comm")).unwrap();
    assert_eq!(engine.tasks().comm_at(parent as i32, Time(begun + 200)).as_deref(), comm.strip_suffix(b"\n"));

    // The same events, because the input has the answers, and not because nobody needs them.
    let rounds = inputs.into_iter().filter(|input| matches!(input, Input::Round(_))).collect();
    let events = replay(&session, None, rounds);
    assert_eq!(opened(&events), [None, None]);
}

#[test]
fn reads_that_nobody_performs_do_not_accumulate() {
    let session = session();
    let a = task(7, 7);
    let mut run = Run::new(&session);
    let mut ring = ring_with_process(&session, a);
    ring.call(100, a, OPENAT, &[AT_FDCWD], 3);
    let round = |started: u64, chunks| Input::Round(Round { started: Time(started), chunks, synthesized: Vec::new() });
    run.engine.input(&session, round(1_000, vec![ring.chunk()]), &mut run.events);
    run.engine.input(&session, round(2_000, vec![]), &mut run.events);
    assert_eq!(run.engine.reads, [ProcRead::Fd { pid: 7, fd: 3 }]);
    run.engine.input(&session, round(3_000, vec![]), &mut run.events);
    assert_eq!(run.engine.take_reads(), []);
}
