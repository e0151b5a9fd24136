//! The main function of the reader: it responds to one request after the other, until rtrace closes the socket.

use super::protocol::{BYTES_MAX, FileRef, MESSAGE_MAX, Operation, Request, Response};
use super::reader;
use crate::kernel::mounts;
use crate::kernel::objects::{self, Mapped, ObjectFile, Reach};
use crate::stack::symbols::ReadAt;
use crate::sys::{file_capabilities, helper};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

/// Runs the reader, if this process was started as the reader (by the module `reader`), and returns its exit code.
/// Otherwise returns `None`, and from then on this process can start a reader, because its program calls this function.
///
/// A program with file capabilities or the set-user-ID bit has no reader, and opens all files itself: any user could
/// start it as the reader, and would get files that he may not read.
pub fn serve_if_started_as_reader() -> Option<ExitCode> {
    let served = helper::serve_if_started_as(reader::NAME, |socket| serve(socket).is_ok());
    if served.is_none() {
        reader::can_be_started(!file_capabilities::is_privileged_program());
    }
    served
}

fn serve(socket: BorrowedFd) -> Result<(), Errno> {
    respond(socket, &Response::Ready.to_message(&[]), None)?;
    let mut open_files = HashMap::new();
    let mut message = vec![0; MESSAGE_MAX];
    loop {
        let (length, _) = helper::receive(socket, &mut message)?;
        if length == 0 {
            return Ok(());
        }
        let Ok(request) = serde_json::from_slice::<Request>(&message[..length]) else { return Err(Errno::PROTO) };
        handle(socket, &mut open_files, &request)?;
    }
}

/// Handles a request. Files stay open, so that a file that is deleted meanwhile can still be read.
fn handle(socket: BorrowedFd, open_files: &mut HashMap<FileRef, ObjectFile>, request: &Request) -> Result<(), Errno> {
    let Request { file: wanted, operation } = request;
    if *operation == Operation::Open {
        open_files.remove(wanted);
    }
    if !open_files.contains_key(wanted) {
        let Some(file) = open(wanted) else { return respond(socket, &Response::Refused.to_message(&[]), None) };
        if *operation == Operation::Open && mounts::is_local_file(&file, wanted.seen_by()) {
            return respond(socket, &Response::Local(file.identity()).to_message(&[]), Some(file.as_fd()));
        }
        open_files.insert(wanted.clone(), file);
    }
    let file = &open_files[wanted];
    let message = match operation {
        Operation::Open => Response::Opened(file.identity()).to_message(&[]),
        Operation::Size => match rustix::fs::fstat(file) {
            Ok(stat) => Response::Size(stat.st_size as u64).to_message(&[]),
            Err(_) => Response::Refused.to_message(&[]),
        },
        Operation::Read { identity, offset, bytes } => {
            let mut into = vec![0; (*bytes).min(BYTES_MAX)];
            let is_it = identity.is_none_or(|identity| identity == file.identity());
            if is_it && file.read_at(*offset, &mut into).is_ok() {
                Response::Read.to_message(&into)
            } else {
                Response::Refused.to_message(&[])
            }
        }
    };
    respond(socket, &message, None)
}

/// Opens a file in this process, however long that takes.
pub fn open(file: &FileRef) -> Option<ObjectFile> {
    match file {
        FileRef::Mapped { pid, addresses, path, device, inode } => {
            let mapped = Mapped { pid: *pid, addresses: *addresses, path, device: *device, inode: *inode };
            objects::open_mapped(&mapped, Reach::Everywhere).ok()
        }
        FileRef::Path { seen_by, .. } => objects::open_at(file.path(), *seen_by, Reach::Everywhere).ok(),
        FileRef::Own { pid, .. } => objects::open_own(*pid, file.path(), Reach::Everywhere).ok(),
    }
}

fn respond(socket: BorrowedFd, message: &[u8], file: Option<BorrowedFd>) -> Result<(), Errno> {
    helper::send(socket, message, file.as_slice())
}
