//! Typed values: what an argument or a return means, before any style has printed it.
//!
//! Decoders make these and never fail; styles print them and decode nothing.

use super::row::Table;
use crate::event::{Comm, File};
use std::borrow::Cow;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Int(i64),
    Uint(u64),
    Hex(u64),
    Octal(u64),
    /// A user-space address; 0 is NULL.
    Address(u64),
    /// An address of the kernel's code.
    Code(u64),
    /// Constants of a table ORed together; every style walks it with [`Table::flags`].
    Flags {
        table: &'static Table,
        bits: u64,
    },
    /// One constant of a table; every style looks it up with [`Table::name`].
    Symbol {
        table: &'static Table,
        value: u64,
    },
    /// A descriptor and what it was, if that is known.
    Fd {
        fd: i32,
        file: Option<&'a File>,
    },
    /// A directory's descriptor: AT_FDCWD is CWD.
    DirFd {
        fd: i32,
        file: Option<&'a File>,
    },
    /// A task and its name at that time. Where the call has another number for it than rtrace (in a pid namespace below),
    /// `here` is rtrace's.
    Pid {
        pid: i32,
        here: Option<i32>,
        comm: Option<Comm>,
    },
    /// A user or group of another user namespace; in the first one it is `here`.
    Id {
        id: u32,
        here: u32,
    },
    /// A signal's number.
    Signal(i32),
    /// A device number as user space encodes it.
    Dev {
        major: u32,
        minor: u32,
    },
    /// Text from the traced process, unescaped; `cut` when there was more; `altered` when some of its dots may be the kernel's, for unprintable bytes.
    Str {
        bytes: Cow<'a, [u8]>,
        cut: bool,
        altered: bool,
    },
    /// Words for a number or bytes that no table of rtrace's names, but the kernel's own print format does (`S|D`, an IP address): shown without quotes.
    Words {
        text: String,
        number: Option<u64>,
    },
    /// Memory that could not be read, or that this engine does not read: where it is.
    Unread(u64),
    /// The permissions of a file, and what kind of file it is (`st_mode`).
    FileMode(u32),
    /// Members by name, in order; `more` when the call names more of it than is here.
    Struct {
        members: Vec<(&'static str, Value<'a>)>,
        more: bool,
    },
    Array {
        items: Vec<Value<'a>>,
        more: bool,
    },
    /// All values but these: a set that is told by what it lacks.
    AllBut(Vec<Value<'a>>),
    /// `old => new`: what the call changed.
    Change(Box<Value<'a>>, Box<Value<'a>>),
    /// Registers that nobody saw.
    Unknown,
}

/// What a call returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned<'a> {
    Value(Value<'a>),
    /// poll and its like: no descriptor was ready in time.
    Timeout,
    /// -1 and an errno.
    Error(i32),
    /// The kernel's own codes for restarting a call (512..=516), that the program never sees.
    Restart(i32),
    /// It does not return.
    Never,
    /// It was not seen.
    Unseen,
    /// It is in flight.
    Pending,
}
