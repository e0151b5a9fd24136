//! The types of the tables that build.rs generates from `beauty/*.tbl`.
//!
//! This module has only data and types. `decode` decodes values by these rows, and styles print the values.

pub use super::attribute::*;
pub use super::condition::{BitTest, Comparison, Condition};
use super::errno::is_restart;
pub use super::form::*;
pub use super::shape::*;
pub use super::special::Special;
use crate::event::Abi;

bitflags::bitflags! {
    /// The groups of syscalls that `-e %name` selects, with the same meaning as in strace(1).
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
    /// The possible outcomes of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Outcomes: u8 {
        /// The call returned 0.
        const ZERO = 1;
        /// The call returned more than 0.
        const POSITIVE = 2;
        const SUCCEEDED = 3;
        /// A signal interrupted the call: it failed with EINTR, or the kernel restarts it.
        const INTERRUPTED = 4;
        /// The call failed with E2BIG, after which some calls say how much room they need.
        const TOO_BIG = 16;
        /// The call failed with EOVERFLOW, likewise.
        const OVERFLOW = 32;
        /// The call failed, with whatever error.
        const FAILED = 60;
    }
}

impl Outcomes {
    /// Returns the outcome of a call that returned `ret`: one of [`Outcomes::ZERO`], [`Outcomes::POSITIVE`],
    /// [`Outcomes::INTERRUPTED`], [`Outcomes::TOO_BIG`], [`Outcomes::OVERFLOW`], or the outcome of other failures.
    pub fn of(ret: i64) -> Outcomes {
        const EINTR: i32 = 4;
        const E2BIG: i64 = 7;
        const EOVERFLOW: i64 = 75;
        match -ret {
            0 => Outcomes::ZERO,
            errno @ 1..=4095 if errno as i32 == EINTR || is_restart(errno as i32) => Outcomes::INTERRUPTED,
            E2BIG => Outcomes::TOO_BIG,
            EOVERFLOW => Outcomes::OVERFLOW,
            1..=4095 => Outcomes::FAILED.difference(Outcomes::INTERRUPTED | Outcomes::TOO_BIG | Outcomes::OVERFLOW),
            _ => Outcomes::POSITIVE,
        }
    }
}

bitflags::bitflags! {
    /// Further properties of arguments that rows declare.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Traits: u8 {
        /// Most callers pass zero, so a zero carries no information and a style may omit it.
        const OPTIONAL = 1;
        /// Pointers in the argument's memory are not followed: they point to memory that is not the caller's, or that
        /// the call does not access.
        const SHALLOW = 2;
        /// The kernel writes the argument's memory, but reads the memory that pointers in it point to.
        const SENDS = 4;
        /// The strings of the array are counted and not copied, since they are many and rarely needed (an environment).
        const COUNTED = 8;
        /// The length of the struct varies: a struct that is shorter than its row is decoded as far as it goes. Without
        /// this trait, memory that is shorter than its struct is shown as bytes.
        const VARIES = 16;
        /// The length counts the bytes of an array of the struct.
        const ARRAY = 32;
        /// The ioctl command contains the direction and the size of the memory.
        const ENCODED = 64;
        /// On i386 and aarch64, the argument is in the register of the other one with this trait, which stands beside
        /// it (`CONFIG_CLONE_BACKWARDS` in the kernel's arch/Kconfig).
        const BACKWARDS = 128;
    }
}

/// A syscall: a row of `beauty/syscalls/*.tbl`.
#[derive(Debug)]
pub struct Syscall {
    /// The name in the kernel's syscall table (`newfstatat`, `umount2`).
    pub name: &'static str,
    /// The X of `syscalls:sys_enter_X` (`newstat` for stat, `umount` for umount2).
    pub event: &'static str,
    /// The number in each ABI, indexed by `Abi as usize`; `None` if the ABI does not have the syscall. The numbers of
    /// x32 are without bit 30.
    pub numbers: [Option<u32>; 4],
    /// The arguments in the order of the registers, at most six.
    pub args: &'static [Arg],
    /// The kind of the value that the syscall returns if it succeeds.
    pub returns: Return,
    /// The groups of `-e %GROUP` that the syscall belongs to.
    pub groups: Groups,
    /// What the syscall does to the state that rtrace follows, such as creating a task.
    pub does: Special,
    /// Arguments and returns that replace `args` and `returns` for some values of one argument. All variants test the
    /// same argument, and a value selects at most one variant.
    pub variants: &'static [Variant],
}

/// The arguments and the return of a syscall for some values of one argument (a command of `fcntl`, a level of
/// `setsockopt`).
#[derive(Debug)]
pub struct Variant {
    /// Index of the argument that selects the variant.
    pub arg: u8,
    /// The bits of that argument's register that are compared with `values`.
    pub mask: u64,
    /// The values of these bits that select the variant.
    pub values: &'static [u64],
    /// The arguments, in place of the syscall's.
    pub args: &'static [Arg],
    /// The kind of the value that a call that succeeds returns, in place of the syscall's.
    pub returns: Return,
    /// The variants of this variant, which another argument selects (an option of the level). All of them test the same
    /// argument, as in [`Syscall`].
    pub variants: &'static [Variant],
}

/// A request of io_uring: a row of `beauty/requests.tbl`.
#[derive(Debug)]
pub struct RequestRow {
    /// IORING_OP_*
    pub opcode: u8,
    /// The member of the request that contains each argument, in the order of the arguments.
    pub fields: &'static [SqeField],
    /// The names of the syscalls that do the same as the request.
    pub twins: &'static [&'static str],
    /// The arguments and the result, as those of a syscall without numbers. The name is as in lines
    /// (`io_uring:openat`).
    pub call: Syscall,
}

/// A member of struct io_uring_sqe (include/uapi/linux/io_uring.h) that contains an argument. `enum sqe_field` in
/// `src/bpf/plan.h` has the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SqeField {
    Fd = 1,
    Off,
    Addr,
    Len,
    OpFlags,
    Addr3,
    FileIndex,
    SpliceFdIn,
    BufIndex,
    AddrLen,
    CmdOp,
}

/// An argument of a syscall.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// The kernel's name for the argument, as in the event's format file.
    pub name: &'static str,
    /// The width and the meaning of the register, or what it points to.
    pub kind: ArgumentKind,
    /// The direction of the memory that the argument points to.
    pub flow: Flow,
    /// The outcomes of the call after which the kernel has written the memory that the argument points to.
    pub written: Outcomes,
    /// Further properties of the argument.
    pub traits: Traits,
    /// For a file descriptor of another process: the index of the argument that identifies that process, by its pid or
    /// by a pidfd.
    pub fd_of: Option<u8>,
    /// For bytes that are written to a socket or read from it: the index of the argument that is the socket's
    /// descriptor. The bytes are decoded as messages of the socket's protocol.
    pub socket: Option<u8>,
    /// The source of the length of the memory.
    pub length: Length,
    /// The condition under which the call uses the argument (openat uses `mode` only with O_CREAT).
    pub used: Condition,
}

/// The direction in which the memory of an argument or member is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The kernel reads it; rtrace copies it at entry.
    In,
    /// The kernel writes it; rtrace copies it at exit.
    Out,
    /// The kernel reads and writes it.
    InOut,
}

/// The source of the length of the memory that an argument or member points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The type determines the length.
    OfType,
    /// The argument with this index has the length; for a member, the member with this index. Unit: bytes, or elements
    /// of an array.
    Arg(u8),
    /// The return value is the length.
    Ret,
    /// The length is this number.
    Fixed(u64),
}

/// The kind of an argument, or of a number in memory: its width and its meaning.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentKind {
    /// Signed, 32 bits.
    Int,
    /// Unsigned, 32 bits.
    Uint,
    /// Signed, the ABI's word.
    Long,
    /// Unsigned, the ABI's word.
    Ulong,
    /// Unsigned, the ABI's word, printed in hexadecimal.
    Hex,
    /// A count of bytes.
    Size,
    /// A file offset, as wide as the ABI's registers (`off_t`).
    Offset,
    /// A file offset, signed, 64 bits in every ABI (`loff_t`); i386 splits it over two registers.
    Loff,
    /// A file descriptor.
    Fd,
    /// A descriptor of a directory, or AT_FDCWD.
    DirFd,
    /// A process or thread id (pid_t).
    Pid,
    /// A user ID of the caller's user namespace (uid_t); -1 means that it stays as it is.
    Uid,
    /// A group ID of the caller's user namespace (gid_t); -1 means that it stays as it is.
    Gid,
    /// A signal number.
    Signal,
    /// File permissions (umode_t), printed in octal.
    Mode,
    /// A device number.
    Dev,
    /// The port in the address of a socket.
    Port,
    /// A user-space address whose memory is not shown (brk, mmap, futex words).
    Address,
    /// Constants of a table: flags or one value, according to the table.
    Table(&'static ConstantTable),
    /// A pointer to a path name: a string that ends with NUL, and that the limit for strings does not cut.
    Path,
    /// A pointer to a string that ends with NUL.
    Str,
    /// A pointer to bytes, whose number is the argument's length.
    Bytes,
    /// A pointer to an array of strings that ends with a null pointer (argv, envp).
    StrArray,
    /// A pointer to a struct (a row of `beauty/structs/*.tbl`). If the argument has a length, it is the struct's.
    Struct(&'static Struct),
    /// A pointer to an array of structs, whose number is the argument's length.
    StructArray(&'static Struct),
    /// A pointer to a number, or to an array of numbers if the argument has a length.
    Number {
        /// The size of one number: 1, 2, 4 or 8.
        bytes: u8,
        /// Whether the number is negative if its highest bit is set.
        signed: bool,
    },
    /// A pointer to memory that no row describes.
    Pointer,
    /// A function of `crate::beauty::custom` that decodes a number which a row cannot describe, and the constants that
    /// the function prints.
    Custom(CustomDecoder, &'static [super::constant::PackedField]),
}

/// A function of `crate::beauty::custom`: decodes the value of the register with an index.
pub type CustomDecoder = fn(&[u64; 6], usize, Abi) -> super::value::Value<'static>;

/// The kind of the value that a successful syscall returns.
#[derive(Clone, Copy, Debug)]
pub enum Return {
    Int,
    /// An int of which the kernel's function returns only the lower half (modify_ldt).
    Int32,
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
    /// A number of ready descriptors (poll, select and similar calls); 0 is printed as a timeout.
    Ready,
    /// The syscall does not return.
    Never,
    Table(&'static ConstantTable),
    /// A function that decodes the value, and the constants that it prints, as for an argument.
    Custom(CustomDecoder, &'static [super::constant::PackedField]),
}

/// A table of constants: a row of `beauty/tables/*.tbl` with the values from the headers.
#[derive(Debug)]
pub struct ConstantTable {
    /// The name of the row (`open_flags`), by which tables are compared.
    pub name: &'static str,
    /// Whether a number is one of the constants, or an OR of some of them.
    pub kind: TableKind,
    /// Number of low bits of a register that the kernel reads (32 or 64).
    pub bits: u8,
    /// The headers that define the constants, as in `#include` (`linux/mount.h`), separated by commas; for constants of
    /// an overlay, the file of the kernel's sources.
    pub header: &'static str,
    /// The common prefix of the names, which perf style omits (`O_`). It may be empty, and a name may lack it (FASYNC
    /// among `O_*`).
    pub prefix: &'static str,
    /// The constants, each value once. In a table of flags, a composite precedes its parts, and the name of 0, if there
    /// is one, is last. In an enum, the values ascend. All values have at most `bits` bits: a negative value of 32 bits
    /// is not sign-extended.
    pub entries: &'static [TableConstant],
    /// The bit fields of a flag word whose values are constants of other tables.
    pub fields: &'static [BitField],
    /// The tables of the ABIs in which some values differ (aarch64's O_DIRECTORY).
    pub per_abi: &'static [(Abi, &'static ConstantTable)],
}

/// A table of ioctl commands.
#[derive(Debug)]
pub struct CommandTable {
    /// The numbers and the names of the commands.
    pub table: &'static ConstantTable,
    /// The files whose commands these are: globs of their names (`/dev/v4l-subdev*`, `UNIX*` for sockets). Empty for a
    /// table of commands of any file.
    pub files: &'static [&'static str],
}

/// A macro of a header that makes ioctl commands of parameters (`EVIOCGNAME(len)`).
#[derive(Debug)]
pub struct CommandMacro {
    /// The name in the header, without the parameters (`EVIOCGNAME`).
    pub name: &'static str,
    /// Index of its table of commands in `COMMAND_TABLES`.
    pub table: u16,
    /// The command of which all parameters are 0, indexed by `Abi as usize`.
    pub first: [u32; 4],
    /// The parameters in the order in which a call of the macro has them.
    pub parameters: &'static [CommandParameter],
}

/// What the parameter of a macro does to the ioctl command.
#[derive(Debug)]
pub enum CommandParameter {
    /// The size of the memory, which the command contains, is the parameter multiplied by this number of bytes.
    Size { unit: u32 },
    /// The parameter, which is less than `count`, is added to the number of the command. A table may name its values.
    Added { count: u32, table: Option<&'static ConstantTable> },
}

/// How a number consists of a table's constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// The number is an OR of constants.
    Flags,
    /// The number is one of the constants.
    Enum,
}

/// A constant of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableConstant {
    /// The value in the header, with at most as many bits as the table has.
    pub value: u64,
    /// The full name in the header (`O_CLOEXEC`).
    pub name: &'static str,
}

/// The bits of a flag word that contain a value of another table.
#[derive(Debug)]
pub struct BitField {
    /// The bits of the flag word that belong to the field.
    pub mask: u64,
    /// The values of the field, as they are under the mask: they are not shifted.
    pub table: &'static ConstantTable,
}

/// Each table is one static, so tables with equal names are the same.
impl PartialEq for ConstantTable {
    fn eq(&self, other: &ConstantTable) -> bool {
        self.name == other.name
    }
}
