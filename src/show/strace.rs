//! How lines of strace are printed, as the options of strace say.

use super::descriptors::Descriptors;
use bitflags::bitflags;

/// The options about lines of strace. The default is what `strace -f -o FILE` prints.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// `-t`, `-tt`, `-ttt`, `--absolute-timestamps`
    pub stamps: Option<Stamps>,
    /// `-r`: the time since the previous line.
    pub relative: Option<Precision>,
    /// `-T`: how long each call took.
    pub durations: Option<Precision>,
    /// How lines say whose they are.
    pub pids: Pids,
    /// `-x`, `-xx`, `--strings-in-hex`
    pub hex: InHex,
    /// `-X`: how constants are written.
    pub constants: Constants,
    /// `-s`: the maximum number of bytes of a string, if it is another one than [`super::Show::string_limit`].
    pub string_limit: Option<usize>,
    /// `-y`, `-yy`, `--decode-fds`: what is shown of descriptors.
    pub files: Files,
    /// `-Y`: the comms of tasks.
    pub comms: bool,
    /// `--decode-pids=pidns`: also the numbers that tasks have for rtrace.
    pub own_pids: bool,
    /// Lines about new tasks: `strace: Process 7 attached`.
    pub attached: bool,
    /// `-b execve`: processes are shown until they execute a program.
    pub detaches: bool,
    /// Lines about processes that are not shown any more: `strace: Process 7 detached`.
    pub detached: bool,
    /// `-D`: the message about the command that strace attaches to it.
    pub attaches: bool,
    /// Messages about the processes of `-p`, and about the end of a limited trace.
    pub targets: bool,
    /// Lines about ends of tasks, which `-qq` omits.
    pub ends: bool,
    /// Lines about a task's change to another ABI: `[ Process PID=7 runs in 32 bit mode. ]`.
    pub abis: bool,
    /// Lines about leaders that other threads replaced by execve: `+++ superseded by execve in pid 8 +++`.
    pub superseded: bool,
    /// `-e signal=`: bit N stands for signal N.
    pub signals: u128,
    /// `-e trace=NAME@32`: the calls of each ABI that are shown, by `Abi as usize`; `None` if the selection of calls
    /// does not differ between ABIs.
    pub calls: Option<[CallSet; 4]>,
    /// `-n`: the numbers of system calls.
    pub numbers: bool,
    /// `-N`: the names of arguments.
    pub names: bool,
    /// `-i`: the instruction pointer at the call, which is the only frame of its stack.
    pub instruction_pointers: bool,
    /// `-k`: the callers of each call, if its stack was asked for.
    pub stacks: bool,
    /// `-a`: the column in which results begin.
    pub column: usize,
    /// `-e abbrev=`: the calls whose structs are shortened although [`super::Show::full`] is set.
    pub abbreviated: CallSet,
    /// `-e verbose=`: the calls whose structs and arrays are shown, and not their addresses.
    pub dereferenced: CallSet,
    /// `-e raw=`: the calls whose arguments are numbers.
    pub raw: CallSet,
    /// `-e read=`: the descriptors of which all data that is read is shown.
    pub read: Descriptors,
    /// `-e write=`: the descriptors of which all data that is written is shown.
    pub written: Descriptors,
    /// `-c`, `-C`
    pub summary: Summary,
}

impl Lines {
    /// Returns whether lines of a signal are shown. All are whose numbers are too large for a set.
    pub fn shows(&self, signal: i32) -> bool {
        u32::try_from(signal).ok().and_then(|signal| self.signals.checked_shr(signal)).is_none_or(|bits| bits & 1 != 0)
    }
}

impl Default for Lines {
    fn default() -> Lines {
        Lines {
            stamps: None,
            relative: None,
            durations: None,
            pids: Pids::Column,
            hex: InHex::Never,
            constants: Constants::Abbreviated,
            string_limit: None,
            files: Files::empty(),
            comms: false,
            own_pids: false,
            attached: false,
            detaches: false,
            detached: false,
            attaches: false,
            targets: false,
            ends: true,
            abis: false,
            superseded: true,
            signals: u128::MAX,
            calls: None,
            numbers: false,
            names: false,
            instruction_pointers: false,
            stacks: true,
            column: 40,
            abbreviated: CallSet::none(),
            dereferenced: CallSet::all(),
            raw: CallSet::none(),
            read: Descriptors::none(),
            written: Descriptors::none(),
            summary: Summary::default(),
        }
    }
}

/// Time stamps, with so many digits of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// `-ttt`: seconds since the beginning of 1970, and not the time of day in the machine's time zone.
    pub is_unix: bool,
    /// The digits of a second.
    pub precision: Precision,
}

/// The precision of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Whole seconds.
    Seconds,
    /// Three digits of a second.
    Millis,
    /// Six digits of a second.
    Micros,
    /// Nine digits of a second.
    Nanos,
}

impl Precision {
    /// Returns the number of digits of a second.
    pub fn digits(self) -> usize {
        match self {
            Precision::Seconds => 0,
            Precision::Millis => 3,
            Precision::Micros => 6,
            Precision::Nanos => 9,
        }
    }
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

/// What is written in hexadecimal in strings (`-x`, `-xx`, `--strings-in-hex`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InHex {
    /// Nothing: bytes that are not printable have octal escapes.
    #[default]
    Never,
    /// The escapes of bytes that are not printable.
    Escapes,
    /// All of a string that has a byte which is not printable ASCII.
    NotAscii,
    /// All strings.
    Always,
}

/// How constants are written (`-X`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Constants {
    /// By their names.
    #[default]
    Abbreviated,
    /// As numbers.
    Raw,
    /// As numbers, with their names in comments.
    Verbose,
}

bitflags! {
    /// What is shown of descriptors (`--decode-fds`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Files: u8 {
        /// The path of the file.
        const PATH = 1;
        /// The addresses of sockets.
        const SOCKET = 2;
        /// The numbers of devices.
        const DEVICE = 4;
        /// The number of an eventfd.
        const EVENTFD = 8;
        /// The process of a pidfd.
        const PIDFD = 16;
        /// The signals of a signalfd.
        const SIGNALFD = 32;
    }
}

/// A set of system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSet {
    /// Whether the set has the calls of each row of [`crate::beauty::tables::SYSCALLS`].
    rows: Vec<bool>,
    /// Whether it has the calls of further rows, and those that have no row.
    others: bool,
}

impl CallSet {
    /// Returns the empty set.
    pub fn none() -> CallSet {
        CallSet::of(Vec::new(), false)
    }

    /// Returns the set of all calls.
    pub fn all() -> CallSet {
        CallSet::of(Vec::new(), true)
    }

    /// Returns the set of the calls of these rows, and of `others` if this is true.
    pub fn of(rows: Vec<bool>, others: bool) -> CallSet {
        CallSet { rows, others }
    }

    /// Returns whether the set has the calls of a row, or those without a row.
    pub fn contains(&self, row: Option<u16>) -> bool {
        row.and_then(|row| self.rows.get(usize::from(row)).copied()).unwrap_or(self.others)
    }
}

/// The table of `-c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// `-S`: the column by which the rows are ordered; `None` for the numbers of the calls.
    pub sort_by: Option<Column>,
    /// `-U`: the columns.
    pub columns: Vec<Column>,
    /// `-O`: nanoseconds that are taken off each call.
    pub overhead: u64,
}

impl Default for Summary {
    fn default() -> Summary {
        use Column::{AvgTime, Calls, Errors, Name, TimePercent, TotalTime};
        Summary { sort_by: Some(TotalTime), columns: vec![TimePercent, TotalTime, AvgTime, Calls, Errors, Name], overhead: 0 }
    }
}

/// A column of the table of `-c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The share of the time of all calls, in percent.
    TimePercent,
    /// The time of all calls of the name, in seconds.
    TotalTime,
    /// The shortest call, in seconds.
    MinTime,
    /// The longest call, in seconds.
    MaxTime,
    /// The mean time of a call, in microseconds.
    AvgTime,
    /// The time of all calls of the name by the clock on the wall, in seconds. rtrace measures no other.
    WallTotal,
    /// The shortest call by the clock on the wall, in seconds.
    WallMin,
    /// The longest call by the clock on the wall, in seconds.
    WallMax,
    /// The mean time of a call by the clock on the wall, in microseconds.
    WallAvg,
    /// The number of calls.
    Calls,
    /// The number of calls that failed.
    Errors,
    /// The name of the system call.
    Name,
}
