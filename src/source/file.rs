//! The chunk file: a stream's session and its rounds as they came, nothing decoded, for later.
//!
//! ```text
//! magic, u32 version, u32 length, session as JSON
//! then frames:   u32 kind, u64 length of what follows
//!   1 round      u64 started, u32 chunks, {u32 cpu:24 form:8, u32 length, records}..., u32 length, notes as JSON (length 0: none)
//!   2 notes      notes as JSON: learnt between rounds
//!   3 end        u64 rounds
//! ```
//!
//! Numbers are little-endian. The end is there so that a file that was cut short is known as such: its whole rounds are read, then comes an error that
//! says where. No length is believed before its bytes are there, so that memory is bounded by the file's size and by the limits below.

use super::Source;
use super::chunk::{Chunk, Form, Round};
use crate::event::{Note, Time};
use crate::session::Session;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"rtchunks";
const VERSION: u32 = 1;

/// What frames are.
mod frame {
    pub const ROUND: u32 = 1;
    pub const NOTES: u32 = 2;
    pub const END: u32 = 3;
}

/// Where a chunk's form stands beside its CPU.
const FORM_SHIFT: u32 = 24;
const CPU: u32 = (1 << FORM_SHIFT) - 1;

/// Larger than any ring is.
const CHUNK_BYTES_MAX: u64 = 1 << 30;
/// A session has about 1 MiB for all of the kernel's syscall events; notes are paths and names.
const JSON_BYTES_MAX: u64 = 1 << 28;
/// Writes and reads are at least as large, chunks that are larger go in one piece.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes a chunk file. Without [`Writer::finish`] it is one that was cut short; after an error nothing more may be written, and what is whole can be read.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    rounds: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file on `out`, which need not be buffered.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(out: W, session: &Session) -> io::Result<Writer<W>> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        write_sized(&mut out, &serde_json::to_vec(session)?)?;
        Ok(Writer { out, rounds: 0 })
    }

    /// # Errors
    /// `out` cannot be written.
    pub fn round(&mut self, round: &Round) -> io::Result<()> {
        let notes = if round.notes.is_empty() { Vec::new() } else { serde_json::to_vec(&round.notes)? };
        let bytes = 8 + 4 + 8 * round.chunks.len() + round.bytes() + 4 + notes.len();
        self.frame(frame::ROUND, bytes)?;
        self.out.write_all(&round.started.0.to_le_bytes())?;
        self.out.write_all(&length(round.chunks.len())?)?;
        for chunk in &round.chunks {
            self.out.write_all(&ring(chunk)?.to_le_bytes())?;
            write_sized(&mut self.out, &chunk.bytes)?;
        }
        self.rounds += 1;
        write_sized(&mut self.out, &notes)
    }

    /// Notes that came apart from rounds; the reader gives them with the next round.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn notes(&mut self, notes: &[(Time, Note)]) -> io::Result<()> {
        let notes = serde_json::to_vec(notes)?;
        self.frame(frame::NOTES, notes.len())?;
        self.out.write_all(&notes)
    }

    /// Writes the end and gives `out` back.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.frame(frame::END, 8)?;
        self.out.write_all(&self.rounds.to_le_bytes())?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }

    fn frame(&mut self, kind: u32, bytes: usize) -> io::Result<()> {
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&(bytes as u64).to_le_bytes())
    }
}

/// A chunk's CPU and form in one word.
fn ring(chunk: &Chunk) -> io::Result<u32> {
    let form = match chunk.form {
        Form::Records => 0,
        Form::Pages => 1,
    };
    match chunk.cpu {
        cpu @ 0..=CPU => Ok(cpu | form << FORM_SHIFT),
        cpu => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no CPU {cpu}"))),
    }
}

fn write_sized(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&length(bytes.len())?)?;
    out.write_all(bytes)
}

fn length(bytes: usize) -> io::Result<[u8; 4]> {
    u32::try_from(bytes).map(u32::to_le_bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a chunk of 4 GiB or more"))
}

/// A source that reads a chunk file.
#[derive(Debug)]
pub struct FileSource<R> {
    input: Input<R>,
    session: Session,
    rounds: u64,
    /// Learnt since the last round.
    notes: Vec<(Time, Note)>,
    last_started: Time,
    spare: Vec<Vec<u8>>,
    /// The end was read, or an error given.
    over: bool,
}

impl FileSource<File> {
    /// # Errors
    /// The file cannot be opened, or is no chunk file.
    pub fn open(path: &Path) -> anyhow::Result<FileSource<File>> {
        let open = || FileSource::new(File::open(path)?);
        open().with_context(|| format!("{}", path.display()))
    }
}

impl<R: Read> FileSource<R> {
    /// `input` need not be buffered.
    ///
    /// # Errors
    /// It is no chunk file, or one of another version.
    pub fn new(input: R) -> anyhow::Result<FileSource<R>> {
        let mut input = Input { inner: BufReader::with_capacity(BUFFER_BYTES, input), offset: 0, left: u64::MAX };
        ensure!(
            input.array().is_ok_and(|magic: [u8; 8]| magic == MAGIC),
            "not a recording of rtrace: it does not begin with {:?}",
            MAGIC.escape_ascii().to_string()
        );
        let version = input.u32()?;
        ensure!(version == VERSION, "a recording of version {version}, this rtrace reads version {VERSION}");
        let len = u64::from(input.u32()?);
        let session = input.json(len, "the session")?;
        Ok(FileSource { input, session, rounds: 0, notes: Vec::new(), last_started: Time(0), spare: Vec::new(), over: false })
    }

    fn read_frames(&mut self) -> anyhow::Result<Option<Round>> {
        loop {
            self.input.left = u64::MAX;
            let (kind, len) = (self.input.u32()?, self.input.u64()?);
            self.input.left = len;
            let round = match kind {
                frame::ROUND => Some(self.read_round()?),
                frame::NOTES => {
                    let notes: Vec<(Time, Note)> = self.input.json(len, "notes")?;
                    self.notes.extend(notes);
                    None
                }
                frame::END => {
                    let rounds = self.input.u64()?;
                    ensure!(rounds == self.rounds, "the recording has {} rounds, its end says {rounds}", self.rounds);
                    self.over = true;
                    let notes = std::mem::take(&mut self.notes);
                    return Ok((!notes.is_empty()).then_some(Round { started: self.last_started, chunks: Vec::new(), notes }));
                }
                _ => bail!("byte {} of the recording: there is no frame of kind {kind}", self.input.offset - 12),
            };
            ensure!(self.input.left == 0, "byte {} of the recording: a frame has {} bytes too many", self.input.offset, self.input.left);
            if round.is_some() {
                return Ok(round);
            }
        }
    }

    fn read_round(&mut self) -> anyhow::Result<Round> {
        let mut round = Round { started: Time(self.input.u64()?), ..Round::default() };
        for _ in 0..self.input.u32()? {
            let ring = self.input.u32()?;
            let form = match ring >> FORM_SHIFT {
                0 => Form::Records,
                1 => Form::Pages,
                other => bail!("byte {} of the recording: there is no form {other} of records", self.input.offset - 4),
            };
            let len = u64::from(self.input.u32()?);
            let mut bytes = self.spare.pop().unwrap_or_default();
            self.input.bytes(len, CHUNK_BYTES_MAX, &mut bytes)?;
            round.chunks.push(Chunk { cpu: ring & CPU, form, bytes });
        }
        let notes_len = u64::from(self.input.u32()?);
        round.notes = std::mem::take(&mut self.notes);
        if notes_len > 0 {
            let notes: Vec<(Time, Note)> = self.input.json(notes_len, "notes")?;
            round.notes.extend(notes);
        }
        self.rounds += 1;
        self.last_started = round.started;
        Ok(round)
    }
}

impl<R: Read> Source for FileSource<R> {
    fn session(&self) -> &Session {
        &self.session
    }

    fn next_round(&mut self) -> anyhow::Result<Option<Round>> {
        if self.over {
            return Ok(None);
        }
        self.read_frames().inspect_err(|_| self.over = true)
    }

    fn recycle(&mut self, round: Round) {
        self.spare = round.chunks.into_iter().map(|chunk| chunk.bytes).collect();
    }
}

/// A reader that knows where it is and where its frame ends.
#[derive(Debug)]
struct Input<R> {
    inner: BufReader<R>,
    offset: u64,
    /// Bytes of the frame that were not read.
    left: u64,
}

impl<R: Read> Input<R> {
    /// Replaces what is in `into`, which grows only as bytes are there.
    fn bytes(&mut self, len: u64, most: u64, into: &mut Vec<u8>) -> anyhow::Result<()> {
        ensure!(len <= most.min(self.left), "byte {} of the recording: {len} bytes are said to follow, more than can", self.offset);
        into.clear();
        let read = (&mut self.inner).take(len).read_to_end(into);
        let read = read.with_context(|| format!("cannot read the recording after byte {}", self.offset))? as u64;
        self.offset += read;
        self.left -= read;
        ensure!(read == len, "the recording is cut short at byte {}: what is whole before was read", self.offset);
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        let mut bytes = Vec::with_capacity(N);
        self.bytes(N as u64, N as u64, &mut bytes)?;
        bytes.as_slice().try_into().context("a number is cut short")
    }

    fn u32(&mut self) -> anyhow::Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> anyhow::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self, len: u64, what: &str) -> anyhow::Result<T> {
        let start = self.offset;
        let mut bytes = Vec::new();
        self.bytes(len, JSON_BYTES_MAX, &mut bytes)?;
        serde_json::from_slice(&bytes).with_context(|| format!("byte {start} of the recording: {what} cannot be read"))
    }
}

#[cfg(test)]
mod tests;
