//! Why a file could not be written, in words that name it.

use rustix::process::{Resource, getrlimit};
use std::io::{self, ErrorKind};

/// The error with the file's name. That a reader has gone is told by the kind, and needs no words.
pub fn unwritten(name: &str, error: io::Error) -> io::Error {
    let limit = getrlimit(Resource::Fsize).current;
    match (error.kind(), limit) {
        (ErrorKind::BrokenPipe, _) => error,
        (kind, Some(bytes)) if error.raw_os_error() == Some(libc::EFBIG) => {
            let sentence = format!("cannot write to {name}: it would become larger than {bytes} bytes, the limit for files (ulimit -f)");
            io::Error::new(kind, sentence)
        }
        (kind, _) => io::Error::new(kind, format!("cannot write to {name}: {error}")),
    }
}
