//! Writing to what others read, in such a way that they cannot keep rtrace: a write takes what there is room for, and waits for the rest as [`interrupt`] says.
//!
//! stderr and stdout are shared with the command and with whoever started rtrace. To make them non-blocking would change them for all of these, so a pipe or a terminal is
//! opened once more through /proc/self/fd, and a socket is told at each write. Files on disks are written as they are.

use crate::interrupt::{self, GivenUp, Waiter, is_ready};
use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, open};
use rustix::net::{SendFlags, send};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// As much as a pipe or a terminal takes without waiting, once it says that it takes something: a page of the kernel's (PIPE_BUF), where it could not be opened again.
const PIECE: usize = 4096;

/// An open file, pipe, terminal or socket.
#[derive(Debug)]
pub struct Stream {
    file: File,
    way: Way,
    waiter: Waiter,
}

/// How not to wait in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It never does for another process's sake, or is told not to (O_NONBLOCK).
    AsItIs,
    /// Each write says so.
    Socket,
    /// Only what there is surely room for.
    Pieces,
}

/// What came of a write that did not take all.
#[derive(Debug)]
pub struct Unwritten {
    pub error: io::Error,
    /// Bytes that were written.
    pub written: usize,
}

impl Stream {
    /// One that others have open, too.
    ///
    /// # Errors
    /// It is closed, or there are no more descriptors.
    pub fn shared(fd: BorrowedFd, waiter: Waiter) -> io::Result<Stream> {
        let duplicate = || fd.try_clone_to_owned().map(File::from);
        let again = || {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).map(File::from)
        };
        let (file, way) = match FileType::from_raw_mode(fstat(fd)?.st_mode) {
            FileType::Socket => (duplicate()?, Way::Socket),
            FileType::Fifo => again().map(|file| (file, Way::AsItIs)).or_else(|_| duplicate().map(|file| (file, Way::Pieces)))?,
            FileType::CharacterDevice if fd.is_terminal() => {
                again().map(|file| (file, Way::AsItIs)).or_else(|_| duplicate().map(|file| (file, Way::Pieces)))?
            }
            _ => (duplicate()?, Way::AsItIs),
        };
        Ok(Stream { file, way, waiter })
    }

    /// One that only rtrace has open. Pipes are made not to block.
    ///
    /// # Errors
    /// fcntl(2)'s.
    pub fn own(file: File, waiter: Waiter) -> io::Result<Stream> {
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            rustix::fs::fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        }
        Ok(Stream { file, way: Way::AsItIs, waiter })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// write(2)'s, or [`GivenUp`] ([`is_given_up`]); and how much was written by then.
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
        match self.way {
            Way::AsItIs => self.file.write(bytes),
            Way::Socket => Ok(send(&self.file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?),
            Way::Pieces if !is_ready(&self.file, PollFlags::OUT, Duration::ZERO) => Err(ErrorKind::WouldBlock.into()),
            Way::Pieces => self.file.write(&bytes[..bytes.len().min(PIECE)]),
        }
    }
}

impl Unwritten {
    /// With the file's name in the error. That a reader has gone, or is not waited for any longer, is told by the error itself.
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

/// Whether an error only means that rtrace did not wait any longer.
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

    /// More than a pipe or a socket holds, which a reader takes slowly.
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
    fn all_arrives_by_whichever_way() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        arrives(Stream::own(File::from(writer), Waiter::Worker).unwrap(), File::from(reader));
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let stream = Stream::shared(writer.as_fd(), Waiter::Worker).unwrap();
        assert!(!fcntl_getfl(&writer).unwrap().contains(OFlags::NONBLOCK), "who shares it sees no change");
        drop(writer);
        arrives(stream, File::from(reader));
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        arrives(Stream { file: File::from(writer), way: Way::Pieces, waiter: Waiter::Worker }, File::from(reader));
        let (reader, writer) = UnixStream::pair().unwrap();
        let stream = Stream::shared(writer.as_fd(), Waiter::Worker).unwrap();
        drop(writer);
        arrives(stream, reader);
    }

    #[test]
    fn how_much_was_written_is_known_when_the_reader_goes() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let mut stream = Stream::own(File::from(writer), Waiter::Worker).unwrap();
        stream.write_all(b"a line\n").unwrap();
        drop(reader);
        let unwritten = stream.write_all(b"another\n").unwrap_err();
        assert_eq!((unwritten.error.kind(), unwritten.written), (ErrorKind::BrokenPipe, 0));
        assert!(!is_given_up(&unwritten.error));
    }
}
