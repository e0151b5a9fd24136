//! How lines of strace are printed, as the options of strace say.

/// The options about lines of strace. The default is what `strace -f -o FILE` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// `-t`, `-tt`, `-ttt`
    pub stamps: Stamps,
    /// `-r`: the time since the previous line.
    pub relative: bool,
    /// `-T`: how long each call took.
    pub durations: bool,
    /// How lines say whose they are.
    pub pids: Pids,
    /// `-x`, `-xx`
    pub hex: InHex,
    /// `-y`: the files behind descriptors.
    pub files: bool,
    /// `-yy`: also the addresses of sockets, and the numbers of devices.
    pub addresses: bool,
    /// Lines about new tasks: `strace: Process 7 attached`.
    pub attached: bool,
    /// Lines about ends of tasks, which `-qq` omits.
    pub ends: bool,
    /// `-e signal=`: bit N stands for signal N.
    pub signals: u128,
    /// `-n`: the numbers of system calls.
    pub numbers: bool,
    /// `-Y`: the comms of tasks.
    pub comms: bool,
    /// `-a`: the column in which results begin.
    pub column: usize,
    /// `-S`: the order of the rows of the summary.
    pub sort_by: SortBy,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines {
            stamps: Stamps::None,
            relative: false,
            durations: false,
            pids: Pids::Column,
            hex: InHex::Never,
            files: false,
            addresses: false,
            attached: false,
            ends: true,
            signals: u128::MAX,
            numbers: false,
            comms: false,
            column: 40,
            sort_by: SortBy::Time,
        }
    }
}

/// Time stamps in the machine's time zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// None.
    #[default]
    None,
    /// `-t`: the time of day in seconds.
    Seconds,
    /// `-tt`: the time of day in microseconds.
    Microseconds,
    /// `-ttt`: seconds since the beginning of 1970, with microseconds.
    Unix,
}

/// How a line says whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pids {
    /// Not at all.
    Never,
    /// The number is the first column.
    #[default]
    Column,
    /// The number is in brackets (`[pid     7] `) if several tasks are traced.
    Brackets,
}

/// Which strings are written in hexadecimal (`-x`, `-xx`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InHex {
    /// None: bytes that are not printable have octal escapes.
    #[default]
    Never,
    /// Those with a byte that is not printable ASCII.
    NotAscii,
    /// All.
    Always,
}

/// The order of the rows of the summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// The calls that took longest first.
    #[default]
    Time,
    /// The most frequent calls first.
    Calls,
    /// The calls with most errors first.
    Errors,
    /// By name.
    Name,
    /// In no particular order.
    Nothing,
}
