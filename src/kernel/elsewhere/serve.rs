//! The process that reads: it answers one request after the other, until nobody is there any more who asks.

use super::ask::{Answer, Ask, BYTES_MAX, MESSAGE_MAX, Request, Wish};
use super::helper;
use crate::kernel::mounts;
use crate::kernel::objects::{self, Mapped, ObjectFile, Reach};
use crate::stack::symbols::ReadAt;
use crate::sys::{apart, lent};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use std::collections::HashMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;

/// Is this process where it was started to read files (by the module `helper`): its whole life, and how it ends. `None` for all others, which may from then on start such a process, since they run this program.
///
/// A program that has privileges of its own does not read for others: whoever starts it as such a process may be anybody, and would be given what he may not read. Then there is nobody who reads, and files are
/// opened as they would be anywhere.
pub fn serve_if_asked() -> Option<ExitCode> {
    let is_asked = std::env::args_os().next().is_some_and(|name| name == helper::NAME);
    match (is_asked, lent::is_privileged_program()) {
        (true, false) => {}
        (true, true) => return Some(ExitCode::FAILURE),
        (false, privileged) => {
            helper::can_be_started(!privileged);
            return None;
        }
    }
    apart::from_terminal_and_descriptors();
    let stdin = std::io::stdin();
    Some(if serve(stdin.as_fd()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(socket: BorrowedFd) -> Result<(), Errno> {
    say(socket, &Answer::Ready.to_message(&[]), None)?;
    let mut held = HashMap::new();
    let mut message = vec![0; MESSAGE_MAX];
    loop {
        let length = match recv(socket, &mut message[..], RecvFlags::empty()) {
            Ok((_, 0)) => return Ok(()),
            Ok((_, length)) => length,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        let Ok(request) = serde_json::from_slice::<Request>(&message[..length]) else { return Err(Errno::PROTO) };
        answer(socket, &mut held, &request)?;
    }
}

/// Files stay open, so that those that are deleted meanwhile can be read on.
fn answer(socket: BorrowedFd, held: &mut HashMap<Ask, ObjectFile>, Request { ask, wish }: &Request) -> Result<(), Errno> {
    if *wish == Wish::Open {
        held.remove(ask);
    }
    if !held.contains_key(ask) {
        let Some(file) = open(ask) else { return say(socket, &Answer::Refused.to_message(&[]), None) };
        if *wish == Wish::Open && mounts::is_local_place(&file, ask.seen_by()) {
            return say(socket, &Answer::Local(file.identity()).to_message(&[]), Some(file.as_fd()));
        }
        held.insert(ask.clone(), file);
    }
    let file = &held[ask];
    let message = match wish {
        Wish::Open => Answer::Opened(file.identity()).to_message(&[]),
        Wish::Size => match rustix::fs::fstat(file) {
            Ok(stat) => Answer::Size(stat.st_size as u64).to_message(&[]),
            Err(_) => Answer::Refused.to_message(&[]),
        },
        Wish::Read { identity, offset, bytes } => {
            let mut into = vec![0; (*bytes).min(BYTES_MAX)];
            let is_it = identity.is_none_or(|identity| identity == file.identity());
            if is_it && file.read_at(*offset, &mut into).is_ok() { Answer::Read.to_message(&into) } else { Answer::Refused.to_message(&[]) }
        }
    };
    say(socket, &message, None)
}

/// Opens a file here, however long that takes.
pub fn open(ask: &Ask) -> Option<ObjectFile> {
    match ask {
        Ask::Mapped { pid, addresses, path, device, inode } => {
            let mapped = Mapped { pid: *pid, addresses: *addresses, path, device: *device, inode: *inode };
            objects::open_mapped(&mapped, Reach::Everywhere).ok()
        }
        Ask::Path { seen_by, .. } => objects::open_at(ask.path(), *seen_by, Reach::Everywhere).ok(),
        Ask::Own { pid, .. } => objects::open_own(*pid, ask.path(), Reach::Everywhere).ok(),
    }
}

fn say(socket: BorrowedFd, message: &[u8], file: Option<BorrowedFd>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd> = file.into_iter().collect();
    if !files.is_empty() {
        rights.push(SendAncillaryMessage::ScmRights(&files));
    }
    sendmsg(socket, &[IoSlice::new(message)], &mut rights, SendFlags::NOSIGNAL).map(drop)
}
