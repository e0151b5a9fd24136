//! Writing chunk files, reading them back, and reading invalid files.

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

fn synthesized(fd: i32) -> (Time, Synthesized) {
    (Time(fd as u64), Synthesized::Fd { pid: 7, fd, from: Time(0), path: Some(b"/tmp/\xff\n".to_vec()) })
}

fn rounds(session: &Session) -> Vec<Round> {
    let mut ring = RecordWriter::new(&session.events, 1);
    ring.comm(TASK, Time(3), b"cat", true).sample(EventIndex(0), TASK, Time(4), b"abc");
    let mut first = ring.round(Time(10));
    first.chunks.push(Chunk { cpu: 70_000, form: Form::Pages, bytes: vec![1, 2, 3] });
    first.synthesized.push(synthesized(3));
    vec![first, Round { started: Time(20), ..Round::default() }, ring.exit(TASK, TASK, Time(25)).round(Time(30))]
}

/// Returns a file of three rounds, and the offset at which each round ends.
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

/// Returns the rounds that can be read, and the error after them.
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
fn a_written_session_and_its_rounds_are_read_back() {
    let (session, rounds, bytes, _) = written();
    assert_eq!(read(&bytes), (rounds, None));
    let source = FileSource::new(&bytes[..]).unwrap();
    assert_eq!(serde_json::to_value(source.session()).unwrap(), serde_json::to_value(&session).unwrap());
}

#[test]
fn synthesized_records_between_rounds_join_the_next_round() {
    let session = session();
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    let mut round = Round { started: Time(10), chunks: Vec::new(), synthesized: vec![synthesized(1)] };
    writer.round(&round).unwrap();
    writer.synthesized(&[synthesized(2), synthesized(3)]).unwrap();
    round.synthesized = vec![synthesized(4)];
    writer.round(&round).unwrap();
    writer.synthesized(&[synthesized(5)]).unwrap();
    let (read, error) = read(&writer.finish().unwrap());
    assert_eq!(error, None);
    let by_round: Vec<_> = read.iter().map(|round| round.synthesized.clone()).collect();
    assert_eq!(by_round, [vec![synthesized(1)], vec![synthesized(2), synthesized(3), synthesized(4)], vec![synthesized(5)]]);
}

#[test]
fn a_truncated_file_yields_its_complete_rounds_and_an_offset() {
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
fn no_round_follows_an_error() {
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
fn invalid_sizes_are_rejected_with_their_offset() {
    let (_, _, bytes, ends) = written();
    let frame = ends[0]; // the empty round: kind, length, started, chunks, synthesized records
    let with = |at: usize, value: &[u8]| {
        let mut changed = bytes.clone();
        changed[at..at + value.len()].copy_from_slice(value);
        read(&changed).1.unwrap()
    };
    assert!(with(8, &9u32.to_le_bytes()).contains("version 9"));
    assert!(
        with(12, &u32::MAX.to_le_bytes()).contains("byte 16 of the recording: a length of 4294967295 bytes exceeds the frame or the limit")
    );
    assert!(with(frame, &77u32.to_le_bytes()).contains(&format!("byte {frame} of the recording: there is no frame of kind 77")));
    assert!(with(frame + 4, &u64::MAX.to_le_bytes()).contains("bytes too many"));
    assert!(
        with(frame + 4, &0u64.to_le_bytes())
            .contains(&format!("byte {} of the recording: a length of 8 bytes exceeds the frame or the limit", frame + 12))
    );
    assert!(with(frame + 20, &u32::MAX.to_le_bytes()).contains("bytes exceeds the frame or the limit"));
    assert!(with(bytes.len() - 8, &9u64.to_le_bytes()).contains("3 rounds, its end says 9"));
}
