//! What a line says, nothing looked up.

use std::path::PathBuf;

/// One line of a file of dynamic events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Make(Probe),
    Remove(Removal),
}

/// `-:[GROUP/][EVENT]`; without an event, all of the group. One of the two is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub group: Option<String>,
    pub event: Option<String>,
}

/// A dynamic event to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The kernel chooses one where there is none, by the kind; it is always `synthetic` and `user_events` for those.
    pub group: Option<String>,
    /// The kernel makes one up where there is none; synthetic and user events have one.
    pub event: Option<String>,
    pub place: Place,
    /// Fetch arguments; empty for what has fields instead.
    pub args: Vec<Arg>,
}

/// Where a probe is, and of which kind that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `p`, `r`: an instruction of the kernel.
    Kernel { at: KernelPlace, when: When },
    /// `p`, `r` with a path: an instruction of a file.
    File { path: PathBuf, at: FilePlace, when: When, reference_counter: Option<u64> },
    /// `f`: a function of the kernel, by ftrace (Documentation/trace/fprobetrace.rst); the name may be a glob.
    Function { name: String, when: When },
    /// `t`: a tracepoint as such, with the arguments that the kernel's code gives it.
    Tracepoint { name: String },
    /// `e`: an event that is there (Documentation/trace/eprobetrace.rst).
    Event { subsystem: String, event: String, filter: Option<String> },
    /// `s`: Documentation/trace/events.rst, "In-kernel trace event API", and histogram.rst.
    Synthetic { fields: Vec<Field> },
    /// `u`: Documentation/trace/user_events.rst. The flags are as they are written: `persist`, `multi_format`.
    User { flags: Vec<String>, fields: Vec<Field> },
    /// `usdt`: a note of `.note.stapsdt`.
    Usdt { path: PathBuf, provider: String, name: String },
}

impl Place {
    /// Whether the probe is where a function returns.
    pub fn is_return(&self) -> bool {
        match self {
            Place::Kernel { when, .. } | Place::File { when, .. } | Place::Function { when, .. } => matches!(when, When::Return { .. }),
            _ => false,
        }
    }
}

/// Which end of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Entry,
    /// `maxactive`: how many calls may be under way at once (kretprobes and fprobes only), 1 to 4096.
    Return {
        maxactive: Option<u32>,
    },
}

/// A place in the kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelPlace {
    Symbol {
        module: Option<String>,
        symbol: String,
        offset: i64,
    },
    Address(u64),
    /// `function:line`, lines counted from the function's first, or `file.c:line`: by debug information.
    Line(SourceLine),
}

/// A place in a file's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// Bytes from the file's beginning, as the kernel wants it.
    Offset(u64),
    Symbol {
        symbol: String,
        offset: i64,
    },
    Line(SourceLine),
}

/// A line of a source: `file.c:72`, or `function:3`, counted from the function's first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// A file's name or the end of its path, or a function's name: what has a dot or a slash is a file. In the kernel it has no slash (`open.c`).
    pub of: String,
    pub line: u32,
}

/// `[NAME=]VALUE[:TYPE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    pub name: Option<String>,
    pub value: Fetch,
    /// The kernel's own choice where there is none: the machine's word in hexadecimal, or what its type information says.
    pub kind: Option<Type>,
}

/// What is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// `%NAME`
    Register(String),
    /// `$stack`
    StackAddress,
    /// `$stackN`
    Stack(u32),
    /// `@ADDRESS`
    At(u64),
    /// `@SYMBOL[+-OFFSET]`
    AtSymbol { symbol: String, offset: i64 },
    /// `@+OFFSET`: in a file.
    AtFileOffset(u64),
    /// `$argN`
    Argument(u32),
    /// `$arg*`
    Arguments,
    /// `$retval`, `$retval->member`: what the function returns.
    Return(Vec<Step>),
    /// `$comm`
    Comm,
    /// `$NAME`: a field of the event that an event probe is on.
    Field(String),
    /// `+|-[u]OFFSET(...)`; `user`: what is pointed to is user memory.
    Memory { user: bool, offset: i64, of: Box<Fetch> },
    /// `\NUMBER`
    Immediate(i64),
    /// `\"TEXT"`; without blanks, colons, quotes, `#`, and a backslash at the end.
    ImmediateText(String),
    /// `name`, `name->member.other[3]`: an argument or variable, by type or debug information.
    Variable { name: String, path: Vec<Step> },
}

/// One step into a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `->name`
    Arrow(String),
    /// `.name`, `.0`
    Dot(String),
    /// `[N]`
    Index(i64),
}

/// How what is fetched is to be kept and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub base: Base,
    /// `[N]`: 1 to 64.
    pub array: Option<u32>,
}

/// The kernel's basic types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// `u8`...`u64`: bits.
    Unsigned(u8),
    /// `s8`...`s64`
    Signed(u8),
    /// `x8`...`x64`
    Hex(u8),
    Char,
    String,
    /// A string in user memory.
    UserString,
    /// An address as symbol and offset; `symstr` resolves it when the event is recorded.
    Symbol,
    SymbolText,
    /// `%pd`, `%pD`: the name that a dentry or a struct file stands for.
    Dentry,
    File,
    /// `bWIDTH@OFFSET/CONTAINER`: bits.
    Bits {
        width: u8,
        offset: u8,
        container: u8,
    },
}

impl Base {
    /// All but the bit fields, by their names.
    pub const NAMED: [(&str, Base); 19] = [
        ("u8", Base::Unsigned(8)),
        ("u16", Base::Unsigned(16)),
        ("u32", Base::Unsigned(32)),
        ("u64", Base::Unsigned(64)),
        ("s8", Base::Signed(8)),
        ("s16", Base::Signed(16)),
        ("s32", Base::Signed(32)),
        ("s64", Base::Signed(64)),
        ("x8", Base::Hex(8)),
        ("x16", Base::Hex(16)),
        ("x32", Base::Hex(32)),
        ("x64", Base::Hex(64)),
        ("char", Base::Char),
        ("string", Base::String),
        ("ustring", Base::UserString),
        ("symbol", Base::Symbol),
        ("symstr", Base::SymbolText),
        ("%pd", Base::Dentry),
        ("%pD", Base::File),
    ];
}

/// A field of a synthetic or a user event: C's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// As it is written: `u32`, `char[20]`, `__rel_loc char[]`, `struct name`.
    pub kind: String,
    pub name: String,
    /// Bytes of a struct (user events only).
    pub size: Option<u32>,
}
