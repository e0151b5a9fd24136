//! Writes to outputs that other processes read, so that they cannot block rtrace: a write passes as much as fits, and
//! waits for the rest as described in [`interrupt`].
//!
//! stderr and stdout are shared with the command and with rtrace's caller. Making them non-blocking would change them
//! for all of these processes. So a pipe or a terminal is opened again through /proc/self/fd, and a socket gets a flag
//! at each write. Regular files are written as they are.

use crate::interrupt::{self, GivenUp, Waiter, is_ready};
use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, open};
use rustix::net::{SendFlags, send};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The number of bytes that a pipe or a terminal takes without blocking once it is writable: a page (PIPE_BUF). It is
/// used if the file could not be opened again.
const PIECE: usize = 4096;

/// An open file, pipe, terminal or socket.
#[derive(Debug)]
pub struct Stream {
    file: File,
    mode: WriteMode,
    waiter: Waiter,
}

/// How writes avoid blocking in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteMode {
    /// Writes never block for another process, or the file is non-blocking (O_NONBLOCK).
    Plain,
    /// Each write has a flag (MSG_DONTWAIT).
    Socket,
    /// Each write is small enough to fit.
    Pieces,
}

/// The error of a write, with the number of bytes that were written.
#[derive(Debug)]
pub struct Unwritten {
    /// The error of write(2), or the one for a write that was given up.
    pub error: io::Error,
    /// The number of bytes that were written.
    pub written: usize,
}

impl Stream {
    /// Opens a stream on a file that other processes have open, too.
    ///
    /// # Errors
    /// The descriptor is closed, or there are no more descriptors.
    pub fn shared(fd: BorrowedFd, waiter: Waiter) -> io::Result<Stream> {
        let duplicate = || fd.try_clone_to_owned().map(File::from);
        let again = || {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).map(File::from)
        };
        let (file, mode) = match FileType::from_raw_mode(fstat(fd)?.st_mode) {
            FileType::Socket => (duplicate()?, WriteMode::Socket),
            FileType::Fifo => {
                again().map(|file| (file, WriteMode::Plain)).or_else(|_| duplicate().map(|file| (file, WriteMode::Pieces)))?
            }
            FileType::CharacterDevice if fd.is_terminal() => {
                again().map(|file| (file, WriteMode::Plain)).or_else(|_| duplicate().map(|file| (file, WriteMode::Pieces)))?
            }
            _ => (duplicate()?, WriteMode::Plain),
        };
        Ok(Stream { file, mode, waiter })
    }

    /// Opens a stream on a file that only rtrace has open. Pipes are made non-blocking.
    ///
    /// # Errors
    /// The errors of fcntl(2).
    pub fn own(file: File, waiter: Waiter) -> io::Result<Stream> {
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            rustix::fs::fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        }
        Ok(Stream { file, mode: WriteMode::Plain, waiter })
    }

    /// Returns the file that the stream writes to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// The errors of write(2), or [`GivenUp`] ([`is_given_up`]), with the number of bytes that were written.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        let mut written = 0;
        while written < bytes.len() {
            match self.write_some(&bytes[written..]) {
                Ok(0) => return Err(Unwritten { error: ErrorKind::WriteZero.into(), written }),
                Ok(some) => written += some,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    interrupt::patiently(self.waiter, |step| is_ready(&self.file, PollFlags::OUT, step).then_some(()))
                        .map_err(|given_up| Unwritten { error: io::Error::other(given_up), written })?;
                }
                Err(error) => return Err(Unwritten { error, written }),
            }
        }
        Ok(())
    }

    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.mode {
            WriteMode::Plain => self.file.write(bytes),
            WriteMode::Socket => Ok(send(&self.file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?),
            WriteMode::Pieces if !is_ready(&self.file, PollFlags::OUT, Duration::ZERO) => Err(ErrorKind::WouldBlock.into()),
            WriteMode::Pieces => self.file.write(&bytes[..bytes.len().min(PIECE)]),
        }
    }
}

impl Unwritten {
    /// Adds the file's name to the error. The errors of a closed reader and of a given-up wait stay unchanged, so that
    /// callers recognize them.
    pub fn named(self, name: &str) -> Unwritten {
        let limit = getrlimit(Resource::Fsize).current;
        let sentence = match (self.error.kind(), limit) {
            (ErrorKind::BrokenPipe, _) => return self,
            _ if is_given_up(&self.error) => return self,
            (_, Some(bytes)) if self.error.raw_os_error() == Some(libc::EFBIG) => {
                format!("it would become larger than {bytes} bytes, the limit for files (ulimit -f)")
            }
            _ => self.error.to_string(),
        };
        Unwritten { error: io::Error::new(self.error.kind(), format!("cannot write to {name}: {sentence}")), ..self }
    }
}

impl From<Unwritten> for io::Error {
    fn from(unwritten: Unwritten) -> io::Error {
        unwritten.error
    }
}

/// Returns whether an error only means that a wait was given up.
pub fn is_given_up(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<GivenUp>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    /// Writes more than a pipe or a socket holds, while a reader reads it slowly.
    fn arrives(mut stream: Stream, mut reader: impl Read + Send) {
        let sent: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
        let got = std::thread::scope(|scope| {
            let reading = scope.spawn(move || {
                let mut got = Vec::new();
                reader.read_to_end(&mut got).unwrap();
                got
            });
            stream.write_all(&sent).unwrap();
            drop(stream);
            reading.join().unwrap()
        });
        assert!(got == sent);
    }

    #[test]
    fn all_bytes_arrive_in_every_write_mode() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        arrives(Stream::own(File::from(writer), Waiter::Worker).unwrap(), File::from(reader));
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let stream = Stream::shared(writer.as_fd(), Waiter::Worker).unwrap();
        assert!(!fcntl_getfl(&writer).unwrap().contains(OFlags::NONBLOCK), "other holders of the pipe see no change");
        drop(writer);
        arrives(stream, File::from(reader));
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        arrives(Stream { file: File::from(writer), mode: WriteMode::Pieces, waiter: Waiter::Worker }, File::from(reader));
        let (reader, writer) = UnixStream::pair().unwrap();
        let stream = Stream::shared(writer.as_fd(), Waiter::Worker).unwrap();
        drop(writer);
        arrives(stream, reader);
    }

    #[test]
    fn a_broken_pipe_has_the_number_of_written_bytes() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let mut stream = Stream::own(File::from(writer), Waiter::Worker).unwrap();
        stream.write_all(b"a line\n").unwrap();
        drop(reader);
        let unwritten = stream.write_all(b"another\n").unwrap_err();
        assert_eq!((unwritten.error.kind(), unwritten.written), (ErrorKind::BrokenPipe, 0));
        assert!(!is_given_up(&unwritten.error));
    }
}
