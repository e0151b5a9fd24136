//! The chunk file: a session and its rounds, stored undecoded so that they can be read back later.
//!
//! ```text
//! magic, u32 version, u32 length, session as JSON
//! then frames:   u32 kind, u64 length of what follows
//!   1 round          u64 started, u32 chunks, {u32 cpu:24 form:8, u32 length, records}...,
//!                    u32 length, synthesized records as JSON (length 0: none)
//!   2 synthesized    records as JSON that were synthesized between rounds
//!   3 end            u64 rounds
//! ```
//!
//! Numbers are little-endian. The end frame distinguishes a complete file from a truncated one: the reader returns all
//! complete rounds of a truncated file, then an error with the offset at which it ends. The reader allocates memory
//! only as bytes arrive, not by a length field, so memory is bounded by the file's size and by the limits below.

use super::Source;
use super::chunk::{Chunk, Form, Round};
use crate::event::{Synthesized, Time};
use crate::session::Session;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"rtchunks";
const VERSION: u32 = 1;

/// The kinds of frames.
mod frame {
    pub const ROUND: u32 = 1;
    pub const SYNTHESIZED: u32 = 2;
    pub const END: u32 = 3;
}

/// In the word that holds a chunk's CPU and form, the form begins at this bit.
const FORM_SHIFT: u32 = 24;
const CPU: u32 = (1 << FORM_SHIFT) - 1;

/// A limit for the length of a chunk, larger than any ring.
const CHUNK_BYTES_MAX: u64 = 1 << 30;
/// A limit for the length of JSON. A session takes about 1 MiB for all of the kernel's syscall events; synthesized
/// records are paths and names.
const JSON_BYTES_MAX: u64 = 1 << 28;
/// The size of the read and write buffers. Chunks that are larger are read and written in one call.
const BUFFER_BYTES: usize = 1 << 20;

/// A writer of chunk files. Without [`Writer::finish`], readers report the file as truncated. After an error, nothing
/// more may be written; the rounds before it can be read.
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

    /// Writes a round.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn round(&mut self, round: &Round) -> io::Result<()> {
        let synthesized = if round.synthesized.is_empty() { Vec::new() } else { serde_json::to_vec(&round.synthesized)? };
        let bytes = 8 + 4 + 8 * round.chunks.len() + round.bytes() + 4 + synthesized.len();
        self.frame(frame::ROUND, bytes)?;
        self.out.write_all(&round.started.0.to_le_bytes())?;
        self.out.write_all(&length(round.chunks.len())?)?;
        for chunk in &round.chunks {
            self.out.write_all(&ring(chunk)?.to_le_bytes())?;
            write_sized(&mut self.out, &chunk.bytes)?;
        }
        self.rounds += 1;
        write_sized(&mut self.out, &synthesized)
    }

    /// Writes records that were synthesized between rounds. A reader returns them with the next round.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn synthesized(&mut self, synthesized: &[(Time, Synthesized)]) -> io::Result<()> {
        let synthesized = serde_json::to_vec(synthesized)?;
        self.frame(frame::SYNTHESIZED, synthesized.len())?;
        self.out.write_all(&synthesized)
    }

    /// Writes the end frame and returns `out`.
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

/// Packs a chunk's CPU and form into one word.
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
    /// Records that were synthesized since the last round.
    synthesized: Vec<(Time, Synthesized)>,
    last_started: Time,
    spare: Vec<Vec<u8>>,
    /// Whether the end frame was read, or an error returned.
    is_over: bool,
}

impl FileSource<File> {
    /// Opens a chunk file and reads its session.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a chunk file.
    pub fn open(path: &Path) -> anyhow::Result<FileSource<File>> {
        let open = || FileSource::new(File::open(path)?);
        open().with_context(|| format!("{}", path.display()))
    }
}

impl<R: Read> FileSource<R> {
    /// Reads the session from `input`, which need not be buffered.
    ///
    /// # Errors
    /// `input` is not a chunk file, or has another version.
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
        Ok(FileSource { input, session, rounds: 0, synthesized: Vec::new(), last_started: Time(0), spare: Vec::new(), is_over: false })
    }

    fn read_frames(&mut self) -> anyhow::Result<Option<Round>> {
        loop {
            self.input.left = u64::MAX;
            let (kind, len) = (self.input.u32()?, self.input.u64()?);
            self.input.left = len;
            let round = match kind {
                frame::ROUND => Some(self.read_round()?),
                frame::SYNTHESIZED => {
                    let synthesized: Vec<(Time, Synthesized)> = self.input.json(len, "the synthesized records")?;
                    self.synthesized.extend(synthesized);
                    None
                }
                frame::END => {
                    let rounds = self.input.u64()?;
                    ensure!(rounds == self.rounds, "the recording has {} rounds, its end says {rounds}", self.rounds);
                    self.is_over = true;
                    let synthesized = std::mem::take(&mut self.synthesized);
                    return Ok((!synthesized.is_empty()).then_some(Round { started: self.last_started, chunks: Vec::new(), synthesized }));
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
        let synthesized_len = u64::from(self.input.u32()?);
        round.synthesized = std::mem::take(&mut self.synthesized);
        if synthesized_len > 0 {
            let synthesized: Vec<(Time, Synthesized)> = self.input.json(synthesized_len, "the synthesized records")?;
            round.synthesized.extend(synthesized);
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
        if self.is_over {
            return Ok(None);
        }
        self.read_frames().inspect_err(|_| self.is_over = true)
    }

    fn recycle(&mut self, round: Round) {
        self.spare = round.chunks.into_iter().map(|chunk| chunk.bytes).collect();
    }
}

/// A reader that tracks its offset in the file and the bytes that are left of the current frame.
#[derive(Debug)]
struct Input<R> {
    inner: BufReader<R>,
    offset: u64,
    /// The bytes of the frame that were not read yet.
    left: u64,
}

impl<R: Read> Input<R> {
    /// Replaces the content of `into` by the next `len` bytes. `into` grows only as bytes are read.
    fn bytes(&mut self, len: u64, most: u64, into: &mut Vec<u8>) -> anyhow::Result<()> {
        ensure!(
            len <= most.min(self.left),
            "byte {} of the recording: a length of {len} bytes exceeds the frame or the limit",
            self.offset
        );
        into.clear();
        let read = (&mut self.inner).take(len).read_to_end(into);
        let read = read.with_context(|| format!("cannot read the recording after byte {}", self.offset))? as u64;
        self.offset += read;
        self.left -= read;
        ensure!(read == len, "the recording is cut short at byte {}: the complete rounds before it were read", self.offset);
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
