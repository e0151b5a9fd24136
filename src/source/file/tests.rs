//! Write, read back, and all the ways a file can be wrong.

use super::*;
use crate::event::EventIndex;
use crate::session::Role;
use crate::source::frame::field;
use crate::source::memory::RecordWriter;
use crate::source::merge::Merge;
use crate::source::record::tests::{TASK, table};

fn session() -> Session {
    let mut events = table(&[field::NEEDED | field::CPU | field::RAW]);
    events.events[0].role = Role::Enter { syscall: 3 };
    events.ids.insert(u64::MAX, EventIndex(0));
    Session { started: Time(u64::MAX), realtime_offset: -5, release: "6.18".into(), events, excluded: vec![1, 2], ..Session::default() }
}

fn note(fd: i32) -> (Time, Note) {
    (Time(fd as u64), Note::Fd { pid: 7, fd, from: Time(0), path: Some(b"/tmp/\xff\n".to_vec()) })
}

fn rounds(session: &Session) -> Vec<Round> {
    let mut ring = RecordWriter::new(&session.events, 1);
    ring.comm(TASK, Time(3), b"cat", true).sample(EventIndex(0), TASK, Time(4), b"abc");
    let mut first = ring.round(Time(10));
    first.chunks.push(Chunk { cpu: 70_000, form: Form::Pages, bytes: vec![1, 2, 3] });
    first.notes.push(note(3));
    vec![first, Round { started: Time(20), ..Round::default() }, ring.exit(TASK, TASK, Time(25)).round(Time(30))]
}

/// A file of three rounds, and the offsets at which each ends.
fn written() -> (Session, Vec<Round>, Vec<u8>, Vec<usize>) {
    let session = session();
    let rounds = rounds(&session);
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    let mut ends = Vec::new();
    for round in &rounds {
        writer.round(round).unwrap();
        writer.out.flush().unwrap();
        ends.push(writer.out.get_ref().len());
    }
    (session, rounds, writer.finish().unwrap(), ends)
}

/// The rounds that can be read, and the error after them.
fn read(bytes: &[u8]) -> (Vec<Round>, Option<String>) {
    let mut rounds = Vec::new();
    let error = FileSource::new(bytes).and_then(|mut source| {
        while let Some(round) = source.next_round()? {
            rounds.push(round);
        }
        Ok(())
    });
    (rounds, error.err().map(|error| format!("{error:#}")))
}

#[test]
fn what_was_written_is_read() {
    let (session, rounds, bytes, _) = written();
    assert_eq!(read(&bytes), (rounds, None));
    let source = FileSource::new(&bytes[..]).unwrap();
    assert_eq!(serde_json::to_value(source.session()).unwrap(), serde_json::to_value(&session).unwrap());
}

#[test]
fn notes_between_rounds_come_with_the_next_and_at_the_end_alone() {
    let session = session();
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    let mut round = Round { started: Time(10), chunks: Vec::new(), notes: vec![note(1)] };
    writer.round(&round).unwrap();
    writer.notes(&[note(2), note(3)]).unwrap();
    round.notes = vec![note(4)];
    writer.round(&round).unwrap();
    writer.notes(&[note(5)]).unwrap();
    let (read, error) = read(&writer.finish().unwrap());
    assert_eq!(error, None);
    let notes: Vec<_> = read.iter().map(|round| round.notes.clone()).collect();
    assert_eq!(notes, [vec![note(1)], vec![note(2), note(3), note(4)], vec![note(5)]]);
}

#[test]
fn a_file_cut_at_any_byte_gives_its_whole_rounds_and_says_where_it_ends() {
    let (_, rounds, bytes, ends) = written();
    for len in 0..bytes.len() {
        let (got, error) = read(&bytes[..len]);
        let whole = ends.iter().filter(|end| **end <= len).count();
        assert_eq!(got, rounds[..whole], "cut at {len}");
        let error = error.expect("a file that is cut is never a good one");
        let wanted = if len < MAGIC.len() { "not a recording".into() } else { format!("cut short at byte {len}:") };
        assert!(error.contains(&wanted), "cut at {len}: {error}");
    }
}

#[test]
fn after_an_error_there_is_nothing() {
    let (_, _, bytes, ends) = written();
    let mut source = FileSource::new(&bytes[..ends[0] + 3]).unwrap();
    assert!(source.next_round().unwrap().is_some());
    assert!(source.next_round().is_err());
    assert!(source.next_round().unwrap().is_none());
}

#[test]
fn any_changed_byte_is_read_without_panic() {
    let (session, _, bytes, _) = written();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let (rounds, _) = read(&changed);
            let mut merge = Merge::new();
            for round in rounds {
                merge.add(&session.events, round);
                merge.release(&session.events, |_| ());
            }
            merge.release_all(&session.events, |_| ());
        }
    }
}

#[test]
fn hostile_sizes_are_refused_with_their_offset() {
    let (_, _, bytes, ends) = written();
    let frame = ends[0]; // the empty round: kind, length, started, chunks, notes
    let with = |at: usize, value: &[u8]| {
        let mut changed = bytes.clone();
        changed[at..at + value.len()].copy_from_slice(value);
        read(&changed).1.unwrap()
    };
    assert!(with(8, &9u32.to_le_bytes()).contains("version 9"));
    assert!(with(12, &u32::MAX.to_le_bytes()).contains("byte 16 of the recording: 4294967295 bytes are said to follow"));
    assert!(with(frame, &77u32.to_le_bytes()).contains(&format!("byte {frame} of the recording: there is no frame of kind 77")));
    assert!(with(frame + 4, &u64::MAX.to_le_bytes()).contains("bytes too many"));
    assert!(with(frame + 4, &0u64.to_le_bytes()).contains(&format!("byte {} of the recording: 8 bytes are said to follow", frame + 12)));
    assert!(with(frame + 20, &u32::MAX.to_le_bytes()).contains("bytes are said to follow"));
    assert!(with(bytes.len() - 8, &9u64.to_le_bytes()).contains("3 rounds, its end says 9"));
}
