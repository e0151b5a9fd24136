//! `--max-size` and `--rotate`: a file that has reached its maximum size is replaced by a new one, and old files are
//! kept as FILE.1 (the newest) to FILE.N.
//!
//! A file ends with a complete line. A line that is longer than the maximum size has a file of its own. Each file
//! begins with the header of the output, if it has one.

use super::path;
use crate::interrupt::Waiter;
use crate::request::Rotation;
use crate::stream::{Stream, Unwritten};
use anyhow::bail;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A rotating output file.
#[derive(Debug)]
pub struct Rotating {
    path: PathBuf,
    rotation: Rotation,
    /// The text that each file begins with.
    header: Vec<u8>,
    /// The size of the present file in bytes.
    written: u64,
    /// The sizes of the old files in bytes, the newest first.
    old: Vec<u64>,
    /// The total size in bytes of deleted files.
    deleted: u64,
}

impl Rotating {
    /// Starts rotation of the open file at this path.
    ///
    /// # Errors
    /// The file is a device or a pipe, which cannot be rotated.
    pub fn new(path: &Path, file: &File, rotation: Rotation) -> anyhow::Result<Rotating> {
        if !file.metadata()?.is_file() {
            bail!("--max-size needs a regular file, and {} is a device or a pipe", path.display());
        }
        // The absolute path stays valid if rtrace changes its directory.
        let path = std::path::absolute(path)?;
        Ok(Rotating { path, rotation, header: Vec::new(), written: 0, old: Vec::new(), deleted: 0 })
    }

    /// Sets the text that each file begins with.
    pub fn begin_files_with(&mut self, header: &[u8]) {
        self.header = header.to_vec();
    }

    /// Writes lines, and starts a new file between lines where the present one would become too large.
    pub fn write(&mut self, stream: &mut Stream, bytes: &[u8]) -> Result<(), Unwritten> {
        let mut written = 0;
        while written < bytes.len() {
            if self.written == 0 && !self.header.is_empty() {
                stream.write_all(&self.header).map_err(|unwritten| Unwritten { written, ..unwritten })?;
                self.written = self.header.len() as u64;
            }
            let rest = &bytes[written..];
            let room = self.rotation.max_size.saturating_sub(self.written);
            let fits = lines_within(rest, room);
            if fits == 0 && self.written > self.header.len() as u64 {
                *stream = self.rotate().map_err(|error| Unwritten { error, written })?;
                continue;
            }
            // A line longer than the maximum size gets a file of its own.
            let now = if fits == 0 { first_line(rest) } else { fits };
            stream.write_all(&rest[..now]).map_err(|unwritten| Unwritten { written: written + unwritten.written, ..unwritten })?;
            self.written += now as u64;
            written += now;
        }
        Ok(())
    }

    /// Returns a message for the end of the trace if old files were deleted.
    pub fn deleted(&self, name: &str) -> Option<String> {
        (self.deleted > 0).then(|| {
            let (bytes, keep) = (self.deleted, self.rotation.keep);
            format!(
                "the oldest {bytes} bytes of the output were deleted as --max-size and --rotate {keep} require; {name} has the newest lines"
            )
        })
    }

    fn rotate(&mut self) -> io::Result<Stream> {
        for number in (0..self.rotation.keep).rev() {
            let (from, to) = (self.numbered(number), self.numbered(number + 1));
            match fs::rename(&from, &to) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let sentence = format!("cannot rename {} to {}: {error}", from.display(), to.display());
                    return Err(io::Error::new(error.kind(), sentence));
                }
                Ok(()) => {}
            }
        }
        self.old.insert(0, std::mem::take(&mut self.written));
        self.deleted += self.old.drain((self.rotation.keep as usize).min(self.old.len())..).sum::<u64>();
        Stream::own(path::create(&self.path)?, Waiter::Worker)
    }

    fn numbered(&self, number: u32) -> PathBuf {
        if number == 0 {
            return self.path.clone();
        }
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Returns the number of bytes of the complete lines that have room.
fn lines_within(bytes: &[u8], room: u64) -> usize {
    if bytes.len() as u64 <= room {
        return bytes.len();
    }
    memchr::memrchr(b'\n', &bytes[..room as usize]).map_or(0, |end| end + 1)
}

fn first_line(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rotated_file_begins_with_the_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let file = path::create(&path).unwrap();
        let mut output = Rotating::new(&path, &file, Rotation { max_size: 20, keep: 9 }).unwrap();
        output.begin_files_with(b"header\n");
        let mut stream = Stream::own(file, Waiter::Worker).unwrap();
        output.write(&mut stream, b"12345\n12345\n12345\n").unwrap();
        output.write(&mut stream, b"a line that is longer than a file\n12345\n").unwrap();
        let read = |number| fs::read_to_string(output.numbered(number)).unwrap();
        let files: Vec<String> = (0..=3).rev().map(read).collect();
        let expected = ["12345\n12345\n", "12345\n", "a line that is longer than a file\n", "12345\n"];
        assert_eq!(files, expected.map(|lines| format!("header\n{lines}")));
        assert!(!output.numbered(4).exists());
    }

    #[test]
    fn rotated_files_have_complete_lines_without_gaps() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let file = path::create(&path).unwrap();
        let mut output = Rotating::new(&path, &file, Rotation { max_size: 100, keep: 3 }).unwrap();
        let mut stream = Stream::own(file, Waiter::Worker).unwrap();
        let line = |i: usize| format!("{i} {}\n", "x".repeat(if i == 20 { 300 } else { i % 17 }));
        for i in (0..40).step_by(4) {
            output.write(&mut stream, (i..i + 4).map(line).collect::<String>().as_bytes()).unwrap();
        }
        let read = |number| fs::read_to_string(output.numbered(number)).unwrap();
        let files: Vec<String> = (0..=3).rev().map(read).collect();
        assert!(files.iter().all(|text| text.ends_with('\n') && (text.len() <= 100 || text.lines().count() == 1)), "{files:?}");
        let all: String = (0..40).map(line).collect();
        assert!(all.ends_with(&files.concat()), "{files:?}");
        assert_eq!(output.deleted as usize + files.concat().len(), all.len());
        assert!(!output.numbered(4).exists() && output.deleted("lines").is_some());
    }
}
