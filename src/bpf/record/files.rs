//! Decodes the files of descriptors in a record.

use super::ARG_RETURN;
use super::pieces::{ARG_FILE, ARG_INSIDE};
use crate::event::{FdPlace, Piece};

/// `sizeof(struct file_info)`, `sizeof(struct socket_info)`, and the size of the protocol's name that follows.
pub const FILE_INFO_BYTES: usize = 24;
/// `sizeof(struct socket_info)`, without the `struct socket_names` that follows it.
pub const SOCKET_INFO_BYTES: usize = 56;
pub(super) const PROTOCOL_BYTES: usize = 32;

/// The file of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFile<'a> {
    /// Where the call has the descriptor: its argument, in memory, or the return value.
    pub place: FdPlace,
    /// The identifier of the file and its name, the same in all records of a task.
    pub id: u64,
    /// The file's name, in the first record with this identifier.
    pub info: Option<FileInfo<'a>>,
}

/// `struct file_info` and the names that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo<'a> {
    /// The inode number, which is unique only within a file system.
    pub inode: u64,
    /// The magic number of the file system (include/uapi/linux/magic.h).
    pub magic: u32,
    /// Whether the file was removed from its directory, or never had a name there (O_TMPFILE). It is false for sockets,
    /// pipes and other files that have no directory.
    pub unlinked: bool,
    /// The type of the file (S_IFMT).
    pub file_type: u16,
    /// The number of a device as the kernel has it (include/linux/kdev_t.h), otherwise 0.
    pub device: u32,
    /// What the file is, with its name.
    pub is: FileName<'a>,
}

/// The name of a file. The names of the path's components follow each other from the file up, each with a NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName<'a> {
    /// A path from the task's root.
    Rooted(&'a [u8]),
    /// The end of a path whose beginning did not fit.
    Cut(&'a [u8]),
    /// The single name of a file that is in no directory. If it is a pidfd, the pid of its process, otherwise 0.
    Pathless(&'a [u8], i32),
    Socket(SocketInfo<'a>),
}

/// `struct socket_info` and `struct socket_names`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo<'a> {
    /// `AF_*`
    pub family: u16,
    /// The protocol of socket(2) in the socket's family. For a packet socket it is the `ETH_P_*` (linux/if_ether.h) in
    /// host byte order.
    pub protocol: u32,
    /// The address in network byte order: one word of IPv4, four of IPv6. Other families have a number here.
    pub local: [u32; 4],
    /// The peer's address in the same form. It is zero for an Internet socket that was never connected, and for
    /// families without such an address.
    pub remote: [u32; 4],
    /// The port in host byte order, for IPv4, IPv6 and AF_VSOCK; 0 for other families.
    pub local_port: u32,
    /// The peer's port in the same form.
    pub remote_port: u32,
    /// The inode of a UNIX socket's peer.
    pub peer: u64,
    /// The kernel's name of the protocol, for example `TCPv6`.
    pub protocol_name: &'a [u8],
    /// Of a UNIX socket, the bytes after the family in its `struct sockaddr_un`.
    pub address: &'a [u8],
}

impl<'a> FileInfo<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Option<FileInfo<'a>> {
        let (head, rest) = raw.split_first_chunk::<FILE_INFO_BYTES>()?;
        let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        let is = match head[16] {
            0 => FileName::Rooted(rest),
            1 => FileName::Cut(rest),
            2 => FileName::Pathless(rest, half(12) as i32),
            3 => FileName::Socket(SocketInfo::parse(rest)?),
            _ => return None,
        };
        let inode = u64::from_le_bytes(head[..8].try_into().unwrap_or_default());
        let file_type = u16::from_le_bytes([head[18], head[19]]);
        Some(FileInfo { inode, magic: half(8), unlinked: head[17] != 0, file_type, device: half(20), is })
    }
}

impl<'a> SocketInfo<'a> {
    fn parse(raw: &'a [u8]) -> Option<SocketInfo<'a>> {
        let (head, rest) = raw.split_first_chunk::<SOCKET_INFO_BYTES>()?;
        let (protocol_name, address) = rest.split_first_chunk::<PROTOCOL_BYTES>()?;
        let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        Some(SocketInfo {
            family: u16::from_le_bytes([head[0], head[1]]),
            protocol: half(4),
            local: std::array::from_fn(|i| half(8 + 4 * i)),
            remote: std::array::from_fn(|i| half(24 + 4 * i)),
            local_port: half(40),
            remote_port: half(44),
            peer: u64::from_le_bytes(head[48..56].try_into().unwrap_or_default()),
            protocol_name: protocol_name.split(|&byte| byte == 0).next().unwrap_or_default(),
            address,
        })
    }
}

impl<'a> RecordedFile<'a> {
    pub(super) fn new(piece: &Piece, bytes: &'a [u8]) -> Option<RecordedFile<'a>> {
        let place = match piece.arg & !ARG_FILE {
            ARG_RETURN => FdPlace::Return,
            arg @ ..ARG_RETURN => FdPlace::Arg(arg),
            inside if inside & !ARG_INSIDE < ARG_RETURN => FdPlace::Inside { arg: inside & !ARG_INSIDE, fd: piece.address as i32 },
            _ => return None,
        };
        let info = if bytes.is_empty() { None } else { Some(FileInfo::parse(bytes)?) };
        Some(RecordedFile { place, id: piece.wanted, info })
    }
}
