//! Typed values: the decoded meaning of an argument or a return value, before a style prints it.
//!
//! Decoders produce these values and never fail; styles print them and decode nothing. A value holds all that is known
//! about the argument. Each style decides what to omit, shorten or combine.

use super::row::ConstantTable;
use super::tables::constants::FILE_TYPE;
use crate::event::{Comm, File, Port};
use crate::kernel::print_fmt::NamedNumber;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The decoded value of an argument, a return, a struct member, an array element or a tracepoint field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Int(i64),
    Uint(u64),
    Hex(u64),
    Octal(u64),
    /// A user-space address; 0 is NULL.
    Address(u64),
    /// An address in the kernel's code.
    Code(u64),
    /// Constants of a table ORed together. Styles split `bits` with [`ConstantTable::flags`].
    Flags {
        table: &'static ConstantTable,
        bits: u64,
    },
    /// One constant of a table. Styles look up its name with [`ConstantTable::name`].
    Symbol {
        table: &'static ConstantTable,
        value: u64,
    },
    /// A call of a macro of a header as the name of a number (`EVIOCGNAME(256)`).
    Macro {
        name: &'static str,
        parameters: Vec<Value<'a>>,
        value: u64,
    },
    /// A file descriptor, and the file that it referred to at the call, if that is known.
    Fd {
        fd: i32,
        file: Option<&'a File>,
    },
    /// A descriptor of a directory, or AT_FDCWD.
    DirFd {
        fd: i32,
        file: Option<&'a File>,
    },
    /// A task, with its comm at the time of the call. `pid` is the number that the call used. If the caller runs in a
    /// pid namespace below rtrace's, `translated` is the task's number in rtrace's namespace.
    Pid {
        pid: i32,
        translated: Option<i32>,
        comm: Option<Comm>,
    },
    /// A user or group ID of another user namespace; `initial` is the same user or group in the initial namespace.
    Id {
        id: u32,
        initial: u32,
    },
    /// A signal number.
    Signal(i32),
    /// A device number as user space encodes it.
    Dev {
        major: u32,
        minor: u32,
    },
    /// Text or bytes from the traced process.
    Str(Text<'a>),
    /// An IPv4 or IPv6 address.
    Ip(IpAddr),
    /// The port in the address of a socket.
    Port(Port),
    /// The `si_code` of a signal; positive codes have a meaning of their own for each signal.
    SignalCode {
        signal: i32,
        code: i32,
    },
    /// The status of a child as wait4(2) reports it.
    WaitStatus(WaitStatus),
    /// The number of a tracepoint field, with the names that the event's print format has for it (`S|D`).
    Named(NamedNumber),
    /// A character that a probe fetched.
    Char(u8),
    /// Bytes of a tracepoint field.
    Bytes(FieldBytes),
    /// An IPv4 or IPv6 address and a port.
    SocketAddress(SocketAddr),
    /// A string that a probe should fetch and that the kernel could not read.
    UnreadText,
    /// An array of strings (argv, envp) whose strings were counted but not copied.
    Uncopied {
        /// Address of the array.
        address: u64,
        /// Number of copied pointers before NULL.
        count: u64,
        /// No NULL was among the copied pointers, so the array may have more strings.
        or_more: bool,
    },
    /// The address of memory that could not be read, or that this engine does not read; 0 is NULL.
    Unread(u64),
    /// The type and the permissions of a file (`st_mode`).
    FileMode(u32),
    /// A struct in memory.
    Struct(StructValue<'a>),
    /// A number that packs several values (an I/O priority: class and level).
    Packed {
        /// Name of the function in [`super::custom`] that decoded it.
        name: &'static str,
        raw: u64,
        members: Vec<(&'static str, Value<'a>)>,
    },
    Array(ArrayValue<'a>),
    /// The complement of a set: every value except these.
    AllBut(ArrayValue<'a>),
    /// The brief form of directory entries: their number, and the names of the first ones.
    Entries {
        count: u64,
        /// Whether there may be more entries, because not all were copied.
        or_more: bool,
        first: ArrayValue<'a>,
    },
    /// An error in memory, which holds the negative of this errno (`nlmsgerr`).
    Errno(i32),
    /// The result of a call that returned no value, in the event at its exit.
    Failure(Failure),
    /// A value that was not recorded: the registers of a call whose entry was not seen, or a field that lies beyond the
    /// end of its record.
    Unknown,
}

/// Why a call returned no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// As [`Returned::Timeout`].
    Timeout,
    /// As [`Returned::Error`].
    Error(i32),
    /// As [`Returned::Restart`].
    Restart(i32),
}

/// Bytes of a tracepoint field that are not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldBytes {
    /// The bytes in the order of memory, from the first of the field.
    pub bytes: Vec<u8>,
    /// What the bytes are, which determines the separators that they are printed with.
    pub form: BytesForm,
    /// Whether the field has more bytes.
    pub more: bool,
}

/// The meaning of a field's bytes, by the event's print format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BytesForm {
    Plain,
    /// The address of a network interface.
    Mac,
    Uuid,
}

/// Writes two hexadecimal digits for each byte, with the separators of the form: colons in the address of an interface,
/// and hyphens in a UUID (RFC 9562).
impl fmt::Display for FieldBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.bytes.iter().enumerate() {
            f.write_str(match self.form {
                BytesForm::Mac if at > 0 => ":",
                BytesForm::Uuid if matches!(at, 4 | 6 | 8 | 10) => "-",
                _ => "",
            })?;
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A wait status: how a child exited, stopped or continued (wait(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitStatus {
    /// The status word as the kernel encodes it.
    pub raw: u32,
    /// What the status word says about the child.
    pub change: StateChange,
}

/// The change of a child's state. Signals are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    Exited {
        status: u32,
    },
    Killed {
        signal: i32,
        dumped: bool,
    },
    /// `event` is the `PTRACE_EVENT_*` of ptrace(2) that stopped the child, if there was one.
    Stopped {
        signal: i32,
        event: Option<u32>,
    },
    Continued,
}

impl WaitStatus {
    /// Decodes a status word as the macros of wait(2) do.
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

/// Splits a file mode into the name of the file type (`S_IFMT`) and the remaining bits. Returns all bits if the type is
/// 0 or has no name.
pub fn file_mode(mode: u32) -> (Option<&'static str>, u32) {
    const TYPE_MASK: u32 = 0o170_000;
    match FILE_TYPE.name(u64::from(mode & TYPE_MASK)).filter(|_| mode & TYPE_MASK != 0) {
        Some(file_type) => (Some(file_type), mode & !TYPE_MASK),
        None => (None, mode),
    }
}

/// Text or bytes from the traced process, unescaped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text<'a> {
    /// The bytes that were copied, up to the limit for strings; without the NUL that ends a string.
    pub bytes: Cow<'a, [u8]>,
    /// Address in the process's memory; 0 if the text is a field of a record.
    pub address: u64,
    /// The length in bytes that the call specifies, if it specifies one.
    pub wanted: Option<u64>,
    /// The text is longer than `bytes`.
    pub cut: bool,
    /// The kernel replaces unprintable bytes with dots, so a dot in `bytes` may stand for another byte.
    pub altered: bool,
}

/// A struct of the kernel's ABI in the traced process's memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructValue<'a> {
    /// The struct's name in `beauty/structs/`; empty if no row describes it.
    pub name: &'static str,
    /// Address in the process's memory; 0 if the struct was put together from several parts.
    pub address: u64,
    /// Names and values of the members, in the order of their offsets.
    pub members: Vec<(&'static str, Value<'a>)>,
    /// The struct of the call is longer than `members`.
    pub more: bool,
}

/// An array of values of one type in the traced process's memory, or in a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayValue<'a> {
    /// Address in the process's memory; 0 if the array is a field of a record.
    pub address: u64,
    /// The elements that were decoded, from the first. They may be fewer than those that were copied.
    pub items: Vec<Value<'a>>,
    /// The array of the call has more elements than `items`.
    pub more: bool,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned<'a> {
    Value(Value<'a>),
    /// poll, select and similar calls returned 0: no descriptor was ready before the timeout.
    Timeout,
    /// The call failed with this errno.
    Error(i32),
    /// The call returned one of the kernel's internal codes 512..=516, most of which restart the call. The program
    /// never sees them.
    Restart(i32),
    /// The call does not return (`exit_group`).
    Never,
    /// The exit of the call was not seen.
    Unseen,
    /// The call is in flight.
    Pending,
}
