//! Facts: what a replay needs and the kernel does not write into the rings.
//!
//! In the file, a fact is a sample of an event that rtrace adds and that never happens in the kernel, so tools that do
//! not know rtrace pass over it. Its raw bytes have the fact in the form of MessagePack, with the names of fields and
//! variants, so that another version of rtrace reads it. A sample has at most 65,535 bytes; a larger fact is in several
//! samples, one after the other.

use super::files::SeenFile;
use crate::bpf::record::packed::CallLayout;
use crate::event::{Synthesized, Time};
use crate::session::Session;
use serde::{Deserialize, Serialize};

/// The name of the event that has the facts.
pub const EVENT_NAME: &str = "rtrace:fact";

/// The identifier of this event. The kernel numbers its events from 1 on and reaches no such number.
pub const EVENT_ID: u64 = u64::from_le_bytes(*b"rtrace\0\x7f");

/// The most bytes of a fact in one sample. With the fields of the sample, they fit into a record.
const PART_MAX: usize = 65_000;

/// In the first byte of a part: another part follows.
const CONTINUES: u8 = 1;

/// A fact in a file.
#[derive(Debug, Serialize, Deserialize)]
pub enum Fact {
    /// How to read the stream. This fact comes first.
    Begin(Box<Begin>),
    /// A record of the round that follows ([`crate::source::Round::synthesized`]).
    Synthesized(Time, Synthesized),
    /// A record that answers a question of the engine ([`crate::source::Input::Answers`]).
    Answer(Time, Synthesized),
    /// Pages of a tracefs instance's buffer, which are in the round that follows.
    Pages {
        /// The CPU of the buffer.
        cpu: u32,
        /// The pages, as the kernel wrote them.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// The end of a round.
    Round {
        /// When the round began ([`crate::source::Round::started`]).
        started: Time,
    },
    /// A file of the traced machine that stacks need.
    File(SeenFile),
    /// /proc/kallsyms of the traced machine, for the kernel's stacks.
    KernelSymbols(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Records of the rings that could not be read, and are missing in the file.
    Unreadable(u64),
    /// The end of the recording.
    End,
}

/// How to read a recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Begin {
    /// The version of rtrace that wrote the file.
    pub version: String,
    /// The options that selected calls and events, as words of a command line.
    pub selection: Vec<String>,
    /// The events, the machine and the targets. The layouts of samples are those of the file, and of events whose
    /// records are packed, those of the ring.
    pub session: Session,
    /// How the records of BPF programs are packed.
    #[serde(default)]
    pub calls: CallLayout,
    /// The whole machine was traced, or some of its CPUs.
    #[serde(default)]
    pub of_all: bool,
    /// The recorder read what source lines need, of the files that processes mapped.
    #[serde(default)]
    pub has_lines: bool,
    /// The recorder had no engine, so nobody asked for what the stream lacks, and there is no [`Fact::Answer`].
    #[serde(default)]
    pub lacks_answers: bool,
}

impl Fact {
    /// Returns the parts of the fact, each the raw bytes of a sample.
    ///
    /// A part begins with a byte that says whether another one follows, an unused byte, and its length in two bytes.
    pub fn parts(&self) -> Vec<Vec<u8>> {
        // All types of a fact can be written: they have no maps with keys that MessagePack lacks.
        let bytes = rmp_serde::to_vec_named(self).unwrap_or_default();
        let count = bytes.len().div_ceil(PART_MAX).max(1);
        let part = |at: usize| {
            let content = &bytes[at * PART_MAX..bytes.len().min((at + 1) * PART_MAX)];
            let continues = if at + 1 < count { CONTINUES } else { 0 };
            let mut part = vec![continues, 0];
            part.extend((content.len() as u16).to_le_bytes());
            part.extend(content);
            part
        };
        (0..count).map(part).collect()
    }
}

/// A reader of facts from their parts.
#[derive(Debug, Default)]
pub struct Assembler {
    bytes: Vec<u8>,
}

/// Why a fact cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A part is shorter than it says, or the fact is larger than any fact that rtrace writes.
    #[error("has a part of an impossible size")]
    Size,
    /// The fact is not one that this version knows, or its bytes are damaged.
    #[error("is unknown to this version of rtrace, or damaged")]
    Content,
}

/// The largest fact: descriptions of some thousand events have some MiB.
const FACT_MAX: usize = 256 << 20;

impl Assembler {
    /// Takes the raw bytes of a sample. Returns the fact that it completes.
    ///
    /// # Errors
    /// The fact cannot be read. The next sample begins another one.
    pub fn part(&mut self, raw: &[u8]) -> Result<Option<Fact>, Unreadable> {
        let content = raw.split_first_chunk().and_then(|([flags, _, low, high], rest)| {
            let size = usize::from(u16::from_le_bytes([*low, *high]));
            Some((flags & CONTINUES != 0, rest.get(..size)?))
        });
        let Some((continues, content)) = content.filter(|(_, content)| self.bytes.len() + content.len() <= FACT_MAX) else {
            self.bytes.clear();
            return Err(Unreadable::Size);
        };
        self.bytes.extend(content);
        if continues {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.bytes);
        rmp_serde::from_slice(&bytes).map(Some).map_err(|_| Unreadable::Content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TaskId;
    use proptest::prelude::*;

    fn read(parts: &[Vec<u8>]) -> Vec<String> {
        let mut assembler = Assembler::default();
        parts.iter().filter_map(|part| assembler.part(part).unwrap()).map(|fact| format!("{fact:?}")).collect()
    }

    #[test]
    fn facts_of_any_size_are_read_as_they_were_written() {
        let task = TaskId { pid: 1, tid: 2 };
        let call = |bytes: usize| Synthesized::InFlight {
            task,
            call: (0..bytes).map(|n| n as u8).collect(),
            last: true,
            stack: None,
            copies: Vec::new(),
        };
        for bytes in [0, 1, PART_MAX - 200, PART_MAX, 3 * PART_MAX, 1 << 20] {
            let fact = Fact::Synthesized(Time(7), call(bytes));
            let parts = fact.parts();
            assert!(parts.iter().all(|part| part.len() <= PART_MAX + 4));
            assert_eq!(read(&parts), [format!("{fact:?}")]);
        }
        let begin = Fact::Begin(Box::new(Begin { version: "1".into(), selection: vec!["-e".into(), "open*".into()], ..Begin::default() }));
        assert_eq!(read(&begin.parts()), [format!("{begin:?}")]);
    }

    #[test]
    fn a_fact_of_another_version_is_an_error_and_the_next_one_is_read() {
        let unknown = rmp_serde::to_vec_named(&serde_json::json!({"Weather": {"sunny": true}})).unwrap();
        let mut part = vec![0, 0, unknown.len() as u8, 0];
        part.extend(unknown);
        let mut assembler = Assembler::default();
        assert_eq!(assembler.part(&part).unwrap_err(), Unreadable::Content);
        assert_eq!(assembler.part(&[0, 0, 9, 0]).unwrap_err(), Unreadable::Size);
        assert!(matches!(assembler.part(&Fact::End.parts()[0]), Ok(Some(Fact::End))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(parts: Vec<Vec<u8>>) {
            let mut assembler = Assembler::default();
            parts.iter().for_each(|part| _ = assembler.part(part));
        }
    }
}
