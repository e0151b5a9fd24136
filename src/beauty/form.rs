//! The types of the tables that build.rs generates from `beauty/strace.tbl`: how strace's text differs from what the
//! other rows say.

/// The members of a struct, or the arguments of a call, in strace's order.
#[derive(Debug)]
pub struct Parts {
    /// The name of the struct or of the syscall.
    pub name: &'static str,
    /// What strace shows of it. Members that are not here are never shown.
    pub parts: &'static [Part],
}

/// How arguments of a call are written if others have certain values.
#[derive(Debug)]
pub struct When {
    /// The name of the syscall.
    pub name: &'static str,
    /// Arguments, and the names of the values of which each must have one; `?` stands for a value without a name.
    pub tests: &'static [(&'static str, &'static [&'static str])],
    /// The arguments that are written differently.
    pub parts: &'static [Part],
}

/// How the constants of a table are written.
#[derive(Debug)]
pub struct TableForm {
    /// The name of the table.
    pub name: &'static str,
    /// Names of constants, and the names that strace has for them.
    pub names: &'static [(&'static str, &'static str)],
    /// How a number without a name is written: in `decimal` or `hex` digits, without a comment.
    pub unnamed: &'static str,
    /// Flags that strace does not have: those of several others are written as these, and others as numbers.
    pub without: &'static [&'static str],
    /// What the comment behind a number without a name says, if it is not the prefix of the names (`W???`).
    pub unknown: &'static str,
    /// Whether the values of bit fields are numbers of their own where constants are numbers (`-X`).
    pub apart: bool,
}

/// A member or an argument.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The name in the row of the struct or of the syscall.
    pub name: &'static str,
    /// The name in strace's text; empty for an argument that is shown without a name.
    pub label: &'static str,
    /// Which value of memory that the call reads and writes is shown.
    pub side: Side,
    /// How the value is written.
    pub form: Form,
    /// When the value is shown.
    pub test: Test,
    /// The value is shown only with `-v`, and `...` stands for it otherwise.
    pub is_verbose: bool,
    /// The value after the call is shown behind the result.
    pub is_behind: bool,
}

/// Which value of memory that the call reads and writes is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The value before the call, and what the call has changed.
    Both,
    /// The value after the call.
    After,
    /// The value before the call.
    Before,
    /// One struct, with the members after the call, and with those that only the value before the call has.
    Merged,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As other values of its type.
    Plain,
    /// The address of the memory, whatever is known of its content.
    Address,
    /// As the row of the struct with this word behind its name says.
    As(&'static str),
    /// The values of bit fields, a bar, and the flags, of which there may be none.
    Bar,
    /// Whether a flag is set: 0 or 1.
    Bit(&'static str),
    /// An array whose elements are separated by blanks.
    Blanks,
    /// A number in brackets.
    Boxed,
    /// The bytes of the memory, as text, if they mean something else to rtrace.
    Bytes,
    /// The end of the members that [`Form::Open`] begins.
    Close,
    /// The name of a task, which strace takes for cut if it is as long as it can be.
    Comm,
    /// A number of seconds, with the date in a comment.
    Date,
    /// A number without a sign, in decimal digits.
    Decimal,
    /// Dots that stand for the value.
    Dots,
    /// An array of signals as other arrays.
    Elements,
    /// The address, and the number of elements in a comment; with `-v` the elements.
    Entries,
    /// The number in a bit field of flags.
    Field,
    /// A file handle: the number of bytes that it has room for and, after the call, the number that it needs or has.
    Handle,
    /// A number in hexadecimal digits.
    Hex,
    /// The lower 32 bits in hexadecimal digits.
    Hex32,
    /// A number in hexadecimal digits, with zeros to eight characters.
    Hex8,
    /// A string in hexadecimal escapes.
    HexString,
    /// A number in network byte order: `htonl(1)`.
    Htonl,
    /// A constant in network byte order: `htons(ETH_P_ALL)`.
    Htons,
    /// The lower 32 bits, as a number with a sign.
    Int,
    /// An ioctl command without a name, as a macro with its parts.
    Ioctl,
    /// A number of bytes as a product with 1024, if it is one.
    Kib,
    /// The bytes of a hardware address with colons.
    Mac,
    /// The number 0 as a null pointer.
    Null,
    /// A constant as a number.
    Number,
    /// The beginning of members that have a bracket of their own.
    Open,
    /// The value of a socket option: a number if it has four bytes, and otherwise its bytes.
    Option,
    /// The path of a socket of AF_UNIX; `@` stands for the NUL before an abstract name.
    Path,
    /// A constant whose name has `_PRIVATE` at its end if the flag of that name is set.
    Private,
    /// An IPv6 address: `inet_pton(AF_INET6, "::1", &sin6_addr)`.
    Pton,
    /// The elements of an array of struct pollfd that have events.
    Ready,
    /// A set of bits as flags: `1<<CAP_CHOWN|1<<CAP_KILL`.
    Shifted,
    /// Flags as one constant: other numbers, 0 too, have a comment.
    Single,
    /// The precision of sampled addresses (`precise_ip` of struct perf_event_attr).
    Skid,
    /// The address, if the call has failed.
    Success,
    /// The bytes that follow a struct, with their offsets in a comment.
    Tail,
    /// A string without the NUL at its end.
    Text,
    /// The address of an array of strings, and their number.
    Vars,
    /// A struct, or its address if the memory is too short for it.
    Whole,
    /// A set of nodes, as the words of memory that contain it.
    Words,
}

/// When a member or an argument is shown. Members and arguments have their names in other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// If the call uses it.
    Always,
    /// Even if the call does not use it. A member that is not there is 0.
    Unused,
    /// If it is neither 0 nor a null pointer.
    NotZero,
    /// If the file that `st_mode` describes is a device, or if it is none.
    Device(bool),
    /// If the member or argument of the first name has one of these flags.
    Flag(&'static str, &'static str),
    /// Unless the member or argument of the first name has the value of the second name.
    IsNot(&'static str, &'static str),
}
