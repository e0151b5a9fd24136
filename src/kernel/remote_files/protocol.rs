//! The requests to the reader and its responses. Each is one message on a socket of type SOCK_SEQPACKET, which
//! preserves message boundaries.

use crate::kernel::objects::Mapped;
use crate::stack::symbols::Identity;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The greatest number of bytes of a file in one response. A file system that does not deliver them within
/// [`super::reader::RESPONSE_MAX`] counts as silent.
pub const BYTES_MAX: usize = 64 << 10;
/// The greatest length of a message: these bytes and the head of a response, or a path.
pub const MESSAGE_MAX: usize = BYTES_MAX + (32 << 10);

/// The file that a request is about. Every request has all of it, so that another reader can take over at any time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileRef {
    /// The file that a process has mapped.
    Mapped { pid: i32, addresses: (u64, u64), path: Vec<u8>, device: (u32, u32), inode: u64 },
    /// The file at a path in a process's root, or in rtrace's own.
    Path { path: Vec<u8>, seen_by: Option<i32> },
    /// A file that a process wrote itself, and may append to.
    Own { path: Vec<u8>, pid: i32 },
}

/// The operation on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    Open,
    /// Returns the present size.
    Size,
    /// Reads bytes, if the file still has this identity. A file that is being written to has a new identity after each
    /// write, so its `identity` is `None`.
    Read {
        identity: Option<Identity>,
        offset: u64,
        bytes: usize,
    },
}

/// A message to the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The file, which the reader opens unless it has it open from an earlier request.
    pub file: FileRef,
    /// What the reader shall do with the file.
    pub operation: Operation,
}

/// A message from the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// The reader has started.
    Ready,
    /// The reader has opened the file.
    Opened(Identity),
    /// The file is on a local file system. The message passes its descriptor.
    Local(Identity),
    Size(u64),
    /// The bytes follow in the message.
    Read,
    /// The file does not exist, was replaced, or is shorter than the requested range.
    Refused,
}

impl FileRef {
    /// Returns the reference by which the reader finds the file of a mapping.
    pub fn mapped(mapped: &Mapped<'_>) -> FileRef {
        let Mapped { pid, addresses, path, device, inode } = *mapped;
        FileRef::Mapped { pid, addresses, path: path.to_vec(), device, inode }
    }

    /// Returns the path in the root of the process that [`FileRef::seen_by`] returns.
    pub fn path(&self) -> &Path {
        let (FileRef::Mapped { path, .. } | FileRef::Path { path, .. } | FileRef::Own { path, .. }) = self;
        Path::new(OsStr::from_bytes(path))
    }

    /// Returns the process in whose root the path is; `None` for rtrace's own.
    pub fn seen_by(&self) -> Option<i32> {
        match self {
            FileRef::Mapped { pid, .. } | FileRef::Own { pid, .. } => Some(*pid),
            FileRef::Path { seen_by, .. } => *seen_by,
        }
    }
}

impl Response {
    /// Encodes the message: the length of the response, the response, and the bytes.
    pub fn to_message(self, bytes: &[u8]) -> Vec<u8> {
        // A response has only numbers, so its serialization cannot fail.
        let head = serde_json::to_vec(&self).unwrap_or_default();
        [&(head.len() as u32).to_ne_bytes()[..], &head, bytes].concat()
    }

    /// Decodes a message. Returns `None` if it is malformed.
    pub fn of_message(message: &[u8]) -> Option<(Response, &[u8])> {
        let (length, rest) = message.split_first_chunk()?;
        let (head, bytes) = rest.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
        Some((serde_json::from_slice(head).ok()?, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_decoded_as_they_were_encoded() {
        let identity = Identity { device: u64::MAX, inode: 1, size: 2, modified: (-1, 999_999_999), owner: 3 };
        let with_identity = [Response::Opened(identity), Response::Local(identity)];
        for response in [Response::Ready, Response::Size(9), Response::Read, Response::Refused].into_iter().chain(with_identity) {
            let message = response.to_message(b"bytes");
            assert_eq!(Response::of_message(&message), Some((response, &b"bytes"[..])));
            for end in 0..message.len() - b"bytes".len() {
                assert_eq!(Response::of_message(&message[..end]), None);
            }
        }
        let file = FileRef::Path { path: b"/a\xff\n".to_vec(), seen_by: Some(1) };
        let request = Request { file, operation: Operation::Read { identity: Some(identity), offset: u64::MAX, bytes: BYTES_MAX } };
        let message = serde_json::to_vec(&request).unwrap();
        assert_eq!(serde_json::from_slice::<Request>(&message).unwrap(), request);
    }

    #[test]
    fn the_longest_messages_are_within_the_limit() {
        let path = vec![0xff; libc::PATH_MAX as usize];
        let identity = Identity { device: u64::MAX, inode: u64::MAX, size: u64::MAX, modified: (i64::MIN, u32::MAX), owner: u32::MAX };
        let most = u64::MAX;
        let file = FileRef::Mapped { pid: i32::MIN, addresses: (most, most), path, device: (u32::MAX, u32::MAX), inode: most };
        let request = Request { file, operation: Operation::Read { identity: Some(identity), offset: most, bytes: usize::MAX } };
        assert!(serde_json::to_vec(&request).unwrap().len() < MESSAGE_MAX);
        assert!(Response::Opened(identity).to_message(&[0; BYTES_MAX]).len() < MESSAGE_MAX);
    }
}
