//! The syntax tree of a line. No name in it has been looked up.

use std::path::PathBuf;

/// One line of a file of dynamic events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Make(Probe),
    Remove(Removal),
}

/// `-:[GROUP/][EVENT]`; without an event it removes all events of the group. At least one of the two is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// If `None`, the event is removed from all groups that have it.
    pub group: Option<String>,
    /// If `None`, all events of the group are removed.
    pub event: Option<String>,
}

/// A dynamic event to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// If `None`, the kernel chooses a group by the kind of probe. Synthetic and user events are always in `synthetic`
    /// and `user_events`.
    pub group: Option<String>,
    /// If `None`, the kernel makes up a name. Synthetic and user events always have one.
    pub event: Option<String>,
    /// The kind of the probe, with its place, or with its fields if it has no place.
    pub place: ProbePoint,
    /// The fetch arguments; empty for synthetic and user events, which have fields instead.
    pub args: Vec<Arg>,
}

/// The kind of a probe, and the place that is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbePoint {
    /// `p`, `r`: an instruction of the kernel (kprobe, kretprobe).
    Kernel { at: KernelPlace, when: When },
    /// `p`, `r` with a path: an instruction of a program or library (uprobe, uretprobe).
    File { path: PathBuf, at: FilePlace, when: When, reference_counter: Option<u64> },
    /// `f`: a function of the kernel, probed by ftrace (Documentation/trace/fprobetrace.rst); the name may be a glob.
    Function { name: String, when: When },
    /// `t`: a raw tracepoint, with the arguments that the kernel's code passes to it.
    Tracepoint { name: String },
    /// `e`: an event probe, which is attached to another event (Documentation/trace/eprobetrace.rst).
    Event { subsystem: String, event: String, filter: Option<String> },
    /// `s`: a synthetic event (Documentation/trace/events.rst, "In-kernel trace event API", and histogram.rst).
    Synthetic { fields: Vec<Field> },
    /// `u`: a user event (Documentation/trace/user_events.rst). The flags are unparsed: `persist`, `multi_format`.
    User { flags: Vec<String>, fields: Vec<Field> },
    /// `usdt`: a USDT tracepoint, which is described by a note in the section `.note.stapsdt`.
    Usdt { path: PathBuf, provider: String, name: String },
}

impl ProbePoint {
    /// Returns whether this is a return probe.
    pub fn is_return(&self) -> bool {
        match self {
            ProbePoint::Kernel { when, .. } | ProbePoint::File { when, .. } | ProbePoint::Function { when, .. } => {
                matches!(when, When::Return { .. })
            }
            _ => false,
        }
    }
}

/// Whether a probe is hit at a function's entry or at its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Entry,
    /// `maxactive`: how many calls are followed at a time, 1 to 4096 (kretprobes and fprobes only).
    Return {
        maxactive: Option<u32>,
    },
}

/// An address in the kernel's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelPlace {
    Symbol {
        module: Option<String>,
        symbol: String,
        offset: i64,
    },
    Address(u64),
    /// `function:line`, with lines counted from the function's first, or `file.c:line`; needs debug information.
    Line(SourceLine),
}

/// An address in the code of a program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// An offset in the file in bytes, as the kernel expects it.
    Offset(u64),
    Symbol {
        symbol: String,
        offset: i64,
    },
    Line(SourceLine),
}

/// A source line: `file.c:72`, or `function:3`, counted from the function's first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The name of a file, the end of its path, or the name of a function. A text with a dot or a slash is a file. A
    /// source file of the kernel has no slash (`open.c`).
    pub of: String,
    /// The number of the line: from 1 in a file, and from 0 in a function.
    pub line: u32,
}

/// `[NAME=]VALUE[:TYPE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    /// The name of the event's field. If `None`, rtrace derives one from the variable that is read, and the kernel
    /// makes up all others.
    pub name: Option<String>,
    /// What is read when the probe is hit.
    pub value: Fetch,
    /// If `None`, the kernel chooses the type: a machine word in hexadecimal, or the type from its BTF.
    pub kind: Option<Type>,
}

/// The value that a fetch argument reads.
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
    /// `@+OFFSET`: static data of the probed file.
    AtFileOffset(u64),
    /// `$argN`
    Argument(u32),
    /// `$arg*`
    Arguments,
    /// `$retval`, `$retval->member`: the function's return value.
    Return(Vec<PathStep>),
    /// `$comm`
    Comm,
    /// `$NAME`: a field of the event that an event probe is attached to.
    Field(String),
    /// `+|-[u]OFFSET(...)`: memory behind an address; `user`: user memory.
    Memory { user: bool, offset: i64, of: Box<Fetch> },
    /// `\NUMBER`
    Immediate(i64),
    /// `\"TEXT"`: a text without blanks, colons, quotes, `#`, and without a backslash at its end.
    ImmediateText(String),
    /// `name`, `name->member.other[3]`: an argument or variable, looked up in BTF or debug information.
    Variable { name: String, path: Vec<PathStep> },
}

/// One step of a path into a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// `->name`
    Arrow(String),
    /// `.name`, `.0`
    Dot(String),
    /// `[N]`
    Index(i64),
}

/// The type of a fetch argument: how the value is stored and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type of the value; of an array, the type of each element.
    pub base: BasicType,
    /// `[N]`: 1 to 64.
    pub array: Option<u32>,
}

/// The kernel's basic types of fetch arguments (Documentation/trace/kprobetrace.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasicType {
    /// `u8`...`u64`; the number is the size in bits.
    Unsigned(u8),
    /// `s8`...`s64`
    Signed(u8),
    /// `x8`...`x64`
    Hex(u8),
    Char,
    String,
    /// `ustring`: a string in user memory.
    UserString,
    /// `symbol`: an address, shown as symbol and offset. `symstr` is the same, resolved when the event is recorded.
    Symbol,
    SymbolText,
    /// `%pd`, `%pD`: the name of a `struct dentry` or a `struct file`.
    Dentry,
    File,
    /// `bWIDTH@OFFSET/CONTAINER`: a bit field; all three are in bits.
    Bits {
        width: u8,
        offset: u8,
        container: u8,
    },
}

impl BasicType {
    /// All basic types except bit fields, with their names.
    pub const NAMED: [(&str, BasicType); 19] = [
        ("u8", BasicType::Unsigned(8)),
        ("u16", BasicType::Unsigned(16)),
        ("u32", BasicType::Unsigned(32)),
        ("u64", BasicType::Unsigned(64)),
        ("s8", BasicType::Signed(8)),
        ("s16", BasicType::Signed(16)),
        ("s32", BasicType::Signed(32)),
        ("s64", BasicType::Signed(64)),
        ("x8", BasicType::Hex(8)),
        ("x16", BasicType::Hex(16)),
        ("x32", BasicType::Hex(32)),
        ("x64", BasicType::Hex(64)),
        ("char", BasicType::Char),
        ("string", BasicType::String),
        ("ustring", BasicType::UserString),
        ("symbol", BasicType::Symbol),
        ("symstr", BasicType::SymbolText),
        ("%pd", BasicType::Dentry),
        ("%pD", BasicType::File),
    ];
}

/// A field of a synthetic or user event, declared as in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The type as it is written: `u32`, `char[20]`, `__rel_loc char[]`, `struct name`.
    pub kind: String,
    /// The name that the field has in the event's format.
    pub name: String,
    /// The size of a struct in bytes (user events only).
    pub size: Option<u32>,
}
