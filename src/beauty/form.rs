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

/// A member or an argument.
#[derive(Debug)]
pub struct Part {
    /// The name in the row of the struct or of the syscall.
    pub name: &'static str,
    /// The name in strace's text; empty for an argument that is shown without a name.
    pub label: &'static str,
    /// How the value is written.
    pub form: Form,
    /// When the value is shown.
    pub test: Test,
    /// The value is shown only with `-v`, and `...` stands for it otherwise.
    pub is_verbose: bool,
    /// The value after the call is shown behind the result.
    pub is_behind: bool,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As other values of its type.
    Plain,
    /// The address of the memory, whatever is known of its content.
    Address,
    /// An array whose elements are separated by blanks.
    Blanks,
    /// The value after the call.
    After,
    /// The value before the call.
    Before,
    /// A number of seconds, with the date in a comment.
    Date,
    /// A number without a sign, in decimal digits.
    Decimal,
    /// The address, and the number of elements in a comment; with `-v` the elements.
    Entries,
    /// A number in hexadecimal digits.
    Hex,
    /// A string in hexadecimal escapes.
    HexString,
    /// A number of bytes as a product with 1024, if it is one.
    Kib,
    /// A member that is not there is 0.
    OrZero,
    /// A constant whose name has `_PRIVATE` at its end if the flag of that name is set.
    Private,
    /// The elements of an array of struct pollfd that have events.
    Ready,
    /// The number of a signal.
    Signal,
    /// A string without the NUL at its end.
    Text,
}

/// When a member or an argument is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// If the call uses it.
    Always,
    /// Even if the call does not use it.
    Unused,
    /// If it is neither 0 nor a null pointer.
    NotZero,
    /// If the file that `st_mode` describes is a device, or if it is none.
    Device(bool),
    /// If the member or argument of the first name has the flag of the second name.
    Flag(&'static str, &'static str),
}
