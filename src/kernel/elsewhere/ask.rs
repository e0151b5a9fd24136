//! What is asked of the process that reads files, and what it answers: a message each, on a socket that keeps their ends (SOCK_SEQPACKET).

use crate::kernel::objects::Mapped;
use crate::stack::symbols::Identity;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// So many bytes of a file one answer has at most. A file system that gives fewer within [`super::helper::ANSWER_MAX`] counts as silent.
pub const BYTES_MAX: usize = 64 << 10;
/// No message is longer: those bytes and what stands before them, or a path.
pub const MESSAGE_MAX: usize = BYTES_MAX + (32 << 10);

/// A file, as it is asked for. Every request names it anew, so that it makes no difference which process is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ask {
    /// What a process has mapped.
    Mapped { pid: i32, addresses: (u64, u64), path: Vec<u8>, device: (u32, u32), inode: u64 },
    /// What has this path in a process's root, or in rtrace's own.
    Path { path: Vec<u8>, seen_by: Option<i32> },
    /// What a process wrote itself, and may go on writing.
    Own { path: Vec<u8>, pid: i32 },
}

/// What is to be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    Open,
    /// How large it is now.
    Size,
    /// So many bytes of this file and no other. (One that is written on is another after each write.)
    Read {
        identity: Option<Identity>,
        offset: u64,
        bytes: usize,
    },
}

/// A message to the process that reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub ask: Ask,
    pub wish: Wish,
}

/// A message from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It has begun.
    Ready,
    /// The file is open there.
    Opened(Identity),
    /// The file is on a file system that answers by itself: its descriptor comes with the message.
    Local(Identity),
    Size(u64),
    /// The bytes stand behind this.
    Read,
    /// There is no such file (any more), or not so much of it.
    Refused,
}

impl Ask {
    pub fn mapped(mapped: &Mapped<'_>) -> Ask {
        let Mapped { pid, addresses, path, device, inode } = *mapped;
        Ask::Mapped { pid, addresses, path: path.to_vec(), device, inode }
    }

    pub fn path(&self) -> &Path {
        let (Ask::Mapped { path, .. } | Ask::Path { path, .. } | Ask::Own { path, .. }) = self;
        Path::new(OsStr::from_bytes(path))
    }

    /// The process that sees it so.
    pub fn seen_by(&self) -> Option<i32> {
        match self {
            Ask::Mapped { pid, .. } | Ask::Own { pid, .. } => Some(*pid),
            Ask::Path { seen_by, .. } => *seen_by,
        }
    }
}

impl Answer {
    /// The message: how long this is, this, and the bytes.
    pub fn to_message(self, bytes: &[u8]) -> Vec<u8> {
        // It is made of numbers, which always can be written.
        let head = serde_json::to_vec(&self).unwrap_or_default();
        [&(head.len() as u32).to_ne_bytes()[..], &head, bytes].concat()
    }

    /// `None` if it makes no sense.
    pub fn of_message(message: &[u8]) -> Option<(Answer, &[u8])> {
        let (length, rest) = message.split_first_chunk()?;
        let (head, bytes) = rest.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
        Some((serde_json::from_slice(head).ok()?, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_as_they_were_sent() {
        let identity = Identity { device: u64::MAX, inode: 1, size: 2, modified: (-1, 999_999_999), owner: 3 };
        for answer in [Answer::Ready, Answer::Opened(identity), Answer::Local(identity), Answer::Size(9), Answer::Read, Answer::Refused] {
            let message = answer.to_message(b"bytes");
            assert_eq!(Answer::of_message(&message), Some((answer, &b"bytes"[..])));
            for end in 0..message.len() - b"bytes".len() {
                assert_eq!(Answer::of_message(&message[..end]), None);
            }
        }
        let ask = Ask::Path { path: b"/a\xff\n".to_vec(), seen_by: Some(1) };
        let request = Request { ask, wish: Wish::Read { identity: Some(identity), offset: u64::MAX, bytes: BYTES_MAX } };
        let message = serde_json::to_vec(&request).unwrap();
        assert_eq!(serde_json::from_slice::<Request>(&message).unwrap(), request);
    }

    #[test]
    fn the_longest_messages_have_room() {
        let path = vec![0xff; libc::PATH_MAX as usize];
        let identity = Identity { device: u64::MAX, inode: u64::MAX, size: u64::MAX, modified: (i64::MIN, u32::MAX), owner: u32::MAX };
        let most = u64::MAX;
        let ask = Ask::Mapped { pid: i32::MIN, addresses: (most, most), path, device: (u32::MAX, u32::MAX), inode: most };
        let request = Request { ask, wish: Wish::Read { identity: Some(identity), offset: most, bytes: usize::MAX } };
        assert!(serde_json::to_vec(&request).unwrap().len() < MESSAGE_MAX);
        assert!(Answer::Opened(identity).to_message(&[0; BYTES_MAX]).len() < MESSAGE_MAX);
    }
}
