//! Typed values: what an argument or a return means, before any style has printed it.
//!
//! Decoders make these and never fail; styles print them and decode nothing. A value loses nothing of what is known: what a
//! style leaves out, shortens or puts together is the style's choice.

use super::row::Table;
use super::tables::constants::FILE_TYPE;
use crate::event::{Comm, File};
use std::borrow::Cow;
use std::net::IpAddr;

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
    /// Text or bytes from the traced process.
    Str(Text<'a>),
    /// An address of IPv4 or IPv6.
    Ip(IpAddr),
    /// The `si_code` of a signal: what it means depends on the signal.
    SignalCode {
        signal: i32,
        code: i32,
    },
    /// What wait4(2) tells of a child.
    WaitStatus(WaitStatus),
    /// A number or bytes in the words of the kernel's own print format (`S|D`), for a field of a tracepoint.
    Formatted {
        text: String,
        number: Option<u64>,
    },
    /// An array of strings of which none was copied: where it is, how many there are before its end, and whether the end
    /// was not reached, so that there may be more.
    Uncopied {
        address: u64,
        count: u64,
        or_more: bool,
    },
    /// Memory that could not be read, or that this engine does not read: where it is.
    Unread(u64),
    /// The permissions of a file, and what kind of file it is (`st_mode`).
    FileMode(u32),
    /// A struct in memory.
    Struct(Record<'a>),
    /// A number that is put together of several values (an I/O priority of class and level).
    Packed {
        /// What it is, in the name of a function of [`super::custom`].
        name: &'static str,
        raw: u64,
        members: Vec<(&'static str, Value<'a>)>,
    },
    Array(List<'a>),
    /// All values but these: a set that is told by what it lacks.
    AllBut(List<'a>),
    /// Registers that nobody saw.
    Unknown,
}

/// How a child ended, stopped or went on (wait(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitStatus {
    /// As the kernel encodes it.
    pub raw: u32,
    pub change: StateChange,
}

/// What became of a child. Signals are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    Exited {
        status: u32,
    },
    Killed {
        signal: i32,
        dumped: bool,
    },
    /// `event`: that of ptrace(2), `PTRACE_EVENT_*`, if it stopped for one.
    Stopped {
        signal: i32,
        event: Option<u32>,
    },
    Continued,
}

impl WaitStatus {
    /// By the macros of wait(2).
    pub fn new(raw: u32) -> WaitStatus {
        const DUMPED: u32 = 0x80;
        let (low, high) = (raw & 0x7f, raw >> 8 & 0xff);
        let change = match (raw, low) {
            (0xffff, _) => StateChange::Continued,
            (_, 0) => StateChange::Exited { status: high },
            (_, 0x7f) => match raw >> 16 {
                0 => StateChange::Stopped { signal: high as i32, event: None },
                event => StateChange::Stopped { signal: (high & 0x7f) as i32, event: Some(event) },
            },
            _ => StateChange::Killed { signal: low as i32, dumped: raw & DUMPED != 0 },
        };
        WaitStatus { raw, change }
    }
}

/// The kind of file in a mode, by its name if it has one, and the other bits; all of them where there is no kind.
pub fn file_mode(mode: u32) -> (Option<&'static str>, u32) {
    const KIND: u32 = 0o170_000;
    match FILE_TYPE.name(u64::from(mode & KIND)).filter(|_| mode & KIND != 0) {
        Some(kind) => (Some(kind), mode & !KIND),
        None => (None, mode),
    }
}

/// Text or bytes from the traced process, unescaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text<'a> {
    /// What is here of it; without the NUL that ends a string.
    pub bytes: Cow<'a, [u8]>,
    /// Where it is in the process's memory; 0 for what came with a record.
    pub address: u64,
    /// How many bytes the call names, where it names a number of them.
    pub wanted: Option<u64>,
    /// There was more.
    pub cut: bool,
    /// Some of its dots may be the kernel's, for bytes that cannot be printed.
    pub altered: bool,
}

/// A struct of the kernel's ABI in the traced process's memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record<'a> {
    /// Its name in `beauty/structs/`; empty where no row describes it.
    pub name: &'static str,
    pub address: u64,
    /// By name, in the order in which they are in memory.
    pub members: Vec<(&'static str, Value<'a>)>,
    /// The call names more of it than is here.
    pub more: bool,
}

/// Values of one type in the traced process's memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List<'a> {
    pub address: u64,
    pub items: Vec<Value<'a>>,
    /// The call names more of them than are here.
    pub more: bool,
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
