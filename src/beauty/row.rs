//! The shape of the generated tables: what `beauty/*.tbl` says, as build.rs emits it.
//!
//! Only data and its types stand here. How a value is told from a row is `decode`'s, how it looks is a style's.

pub use super::condition::{Condition, How, Test};
pub use super::shape::*;
pub use super::special::Special;
use crate::event::Abi;

bitflags::bitflags! {
    /// The groups that `-e %name` selects, with the meaning strace(1) gives them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Groups: u32 {
        const FILE = 1 << 0;
        const DESC = 1 << 1;
        const PROCESS = 1 << 2;
        const NETWORK = 1 << 3;
        const SIGNAL = 1 << 4;
        const IPC = 1 << 5;
        const MEMORY = 1 << 6;
        const CREDS = 1 << 7;
        const CLOCK = 1 << 8;
        const STAT = 1 << 9;
        const LSTAT = 1 << 10;
        const FSTAT = 1 << 11;
        const STATFS = 1 << 12;
        const FSTATFS = 1 << 13;
        const STAT_LIKE = 1 << 14;
        const STATFS_LIKE = 1 << 15;
        const PURE = 1 << 16;
    }
}

bitflags::bitflags! {
    /// How a call may end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Outcomes: u8 {
        /// It returned 0.
        const ZERO = 1;
        /// It returned more than 0.
        const POSITIVE = 2;
        const SUCCEEDED = 3;
        /// A signal interrupted it: it failed with EINTR, or is restarted.
        const INTERRUPTED = 4;
        /// It failed, interrupted or not.
        const FAILED = 12;
    }
}

bitflags::bitflags! {
    /// What else rows say of arguments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Traits: u8 {
        /// Zero says nothing: most callers leave it at that, and a style may leave it out.
        const OPTIONAL = 1;
        /// What pointers in its memory point to is not the caller's, or not what the call looks at.
        const SHALLOW = 2;
        /// The call reads what pointers in its memory point to, though it writes the memory itself.
        const SENDS = 4;
        /// Its strings are counted and not copied: they are many and seldom asked for.
        const COUNTED = 8;
    }
}

/// One syscall: a row of `beauty/syscalls/*.tbl`.
#[derive(Debug)]
pub struct Syscall {
    /// The name as the kernel's table has it (`newfstatat`, `umount2`).
    pub name: &'static str,
    /// The X of `syscalls:sys_enter_X` (`newstat` for stat, `umount` for umount2).
    pub event: &'static str,
    /// The number in each ABI, by `Abi as usize`; `None` where the ABI does not have it. x32's without bit 30.
    pub numbers: [Option<u32>; 4],
    pub args: &'static [Arg],
    pub returns: Return,
    pub groups: Groups,
    pub does: Special,
    /// Rows chosen by one argument's value, first match wins.
    pub variants: &'static [Variant],
}

/// A row that holds for some values of one argument only.
#[derive(Debug)]
pub struct Variant {
    /// Which argument chooses.
    pub arg: u8,
    /// The bits of it that are compared.
    pub mask: u64,
    pub values: &'static [u64],
    pub args: &'static [Arg],
    pub returns: Return,
}

/// One argument of a syscall.
#[derive(Debug)]
pub struct Arg {
    /// The kernel's name for it, as in the event's format file.
    pub name: &'static str,
    pub kind: Kind,
    pub flow: Flow,
    /// How the call ends when the kernel wrote what the argument points to.
    pub written: Outcomes,
    pub traits: Traits,
    /// It is a descriptor of the process that this argument names: by its number, or by a descriptor.
    pub fd_of: Option<u8>,
    pub length: Length,
    /// When the call uses the argument at all (`mode` of openat without O_CREAT is not).
    pub used: Condition,
}

/// Which way an argument's memory goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The kernel reads it: look at entry.
    In,
    /// The kernel writes it: look at exit.
    Out,
    /// Both.
    InOut,
}

/// How long what an argument points to is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Its type says it.
    OfType,
    /// As another argument says, or for a struct's member another member, by its place: bytes, or elements of an array.
    Arg(u8),
    /// As the return value says.
    Ret,
    Fixed(u64),
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Signed, 32 bits.
    Int,
    /// Unsigned, 32 bits.
    Uint,
    /// Signed, the ABI's word.
    Long,
    /// Unsigned, the ABI's word.
    Ulong,
    /// Unsigned, the ABI's word, best read in hexadecimal.
    Hex,
    /// A count of bytes.
    Size,
    /// A file offset, as wide as the ABI's registers (`off_t`).
    Offset,
    /// A file offset, signed, 64 bits in every ABI (`loff_t`); i386 splits it over two registers.
    Loff,
    /// A file descriptor.
    Fd,
    /// A directory's descriptor or AT_FDCWD.
    DirFd,
    /// A process or thread id (pid_t).
    Pid,
    Uid,
    Gid,
    /// A signal's number.
    Signal,
    /// File permissions (umode_t), octal.
    Mode,
    /// A device number.
    Dev,
    /// A user-space address that is only an address (brk, mmap, futex words).
    Address,
    /// A table's constants: flags or one value, as the table says.
    Table(&'static Table),
    /// A path name: a string that no limit cuts.
    Path,
    /// A string that ends with NUL.
    Str,
    /// Bytes, counted by the argument's length.
    Bytes,
    /// An array of strings that ends with a null pointer (argv, envp).
    StrArray,
    /// A struct (a row of `beauty/structs/*.tbl`); with a length, as many bytes of it as that says.
    Struct(&'static Struct),
    /// As many of a struct as the argument's length says.
    StructArray(&'static Struct),
    /// A pointer to one number.
    Number {
        bytes: u8,
        signed: bool,
    },
    /// A pointer to what nothing more is known of.
    Pointer,
    /// A function of `crate::beauty::custom`, for what rows cannot say, and the constants that it prints.
    Custom(fn(&[u64; 6], usize, Abi) -> super::value::Value<'static>, &'static [super::constant::Place]),
}

/// What a syscall returns when it did not fail.
#[derive(Clone, Copy, Debug)]
pub enum Return {
    Int,
    Uint,
    Long,
    Size,
    Offset,
    Hex,
    Address,
    Fd,
    Pid,
    Uid,
    Gid,
    Mode,
    /// poll, select and their like: 0 is "Timeout".
    Ready,
    /// Does not return.
    Never,
    Table(&'static Table),
}

/// A table of constants: a row of `beauty/tables/*.tbl`, resolved from the headers.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub kind: TableKind,
    /// How many bits of a register the kernel looks at (32 or 64).
    pub bits: u8,
    /// The headers the values came from, as `#include` has them (`linux/mount.h`), with commas; for overlays the kernel's file.
    pub header: &'static str,
    /// What names begin with and perf style leaves out (`O_`); may be empty, and a name may lack it (FASYNC among `O_*`).
    pub prefix: &'static str,
    /// Flags: composites before their parts, each value once, the name of 0 last if there is one. Values: in ascending order, each once.
    /// All within `bits`: a negative value of 32 bits is `0xffff...`, not sign-extended.
    pub entries: &'static [Entry],
    /// Bits of a flag word that are one enum.
    pub fields: &'static [Field],
    /// Other values in other ABIs (aarch64's O_DIRECTORY).
    pub per_abi: &'static [(Abi, &'static Table)],
}

/// How a table's number is made of its constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// An OR of constants.
    Flags,
    /// One of them.
    Enum,
}

/// One constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub value: u64,
    pub name: &'static str,
}

/// Bits of a flag word that are a value of another table.
#[derive(Debug)]
pub struct Field {
    pub mask: u64,
    pub table: &'static Table,
}

/// Tables are statics: the same name is the same table.
impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        self.name == other.name
    }
}
