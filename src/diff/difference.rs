//! What one recording has and another has not.

use super::outline::End;
use super::slower::Timed;
use super::words::Word;
use std::collections::BTreeSet;

/// One of the two recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The first one of the command line.
    A,
    /// The second one.
    B,
}

impl Side {
    /// Both, with the second first: what is wrong is mostly there.
    pub const BOTH: [Side; 2] = [Side::B, Side::A];

    /// Returns the other recording.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }

    /// Returns the index in arrays about both.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The programs that it is about: their paths.
    pub programs: BTreeSet<Word>,
    /// What is different.
    pub what: What,
    /// The files that the calls are about. There are several if they are in the same directory and the difference is
    /// the same.
    pub objects: Vec<Word>,
    /// The place of the first such call in its recording.
    pub first: u64,
}

/// What is known of a file from calls like fstat(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// The size in bytes.
    Size,
    /// The permissions, and what else is in the mode (`st_mode`).
    Mode,
    /// The user who owns it.
    User,
    /// The group.
    Group,
}

impl Attribute {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Attribute::Size => "size",
            Attribute::Mode => "mode",
            Attribute::User => "user",
            Attribute::Group => "group",
        }
    }
}

/// A kind of difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A call fails in one recording, and succeeded in the other.
    Fails {
        /// Where it fails.
        side: Side,
        /// The name of the call.
        call: Word,
        /// The errors that the other recording does not have.
        errnos: BTreeSet<i32>,
        /// It never succeeds there.
        always: bool,
    },
    /// A call fails in both recordings, but with other errors.
    FailsOtherwise {
        /// The name of the call.
        call: Word,
        /// The errors of each recording.
        errnos: [BTreeSet<i32>; 2],
    },
    /// A call fails more often in one recording, and it is not known on which files.
    FailsMore {
        /// The name of the call.
        call: Word,
        /// The error.
        errno: i32,
        /// The numbers of calls that fail with it.
        calls: [u64; 2],
    },
    /// The processes end in other ways.
    Ends([BTreeSet<End>; 2]),
    /// A program writes to standard error in one recording only.
    Complains {
        /// Where it does so.
        side: Side,
        /// The beginning of what it writes.
        text: Vec<u8>,
    },
    /// A call reads nothing in one recording, and something in the other.
    NoData {
        /// Where it reads nothing.
        side: Side,
        /// The name of the call.
        call: Word,
    },
    /// A call takes much longer in one recording.
    Slower {
        /// Where it takes longer.
        side: Side,
        /// The name of the call.
        call: Word,
        /// How long the calls took.
        timed: Timed,
    },
    /// A file is not the same.
    File {
        /// What is different.
        attribute: Attribute,
        /// Its value in each recording.
        values: [u64; 2],
    },
    /// One recording only has processes that run a program.
    Runs {
        /// Which one.
        side: Side,
        /// The path of the program; `None` for processes that run on as copies of their parent.
        path: Option<Word>,
        /// The arguments of the program.
        args: Vec<Word>,
        /// The number of processes.
        processes: u64,
    },
    /// One recording only has calls on a file, all of which fail.
    Tries {
        /// Which one.
        side: Side,
        /// The names of the calls.
        calls: BTreeSet<Word>,
        /// The errors.
        errnos: BTreeSet<i32>,
        /// The program found a file of the same name in another directory.
        found: bool,
    },
    /// A program is executed with other arguments, or from another path.
    Arguments([Vec<Word>; 2]),
    /// One recording only has calls on a file.
    Uses {
        /// Which one.
        side: Side,
        /// The names of the calls.
        calls: BTreeSet<Word>,
    },
    /// One recording only has this call. The other has no call of this name on the file.
    Calls {
        /// Which one.
        side: Side,
        /// The names of the calls.
        calls: BTreeSet<Word>,
        /// The errors, if all of the calls fail.
        errnos: BTreeSet<i32>,
    },
    /// A call has other flags or addresses among its arguments.
    Details {
        /// The name of the call.
        call: Word,
        /// The details that only one recording has.
        details: [BTreeSet<Word>; 2],
    },
    /// A call is made far more often.
    More {
        /// Where it is made more often.
        side: Side,
        /// The name of the call.
        call: Word,
        /// The numbers of calls.
        calls: [u64; 2],
    },
}

impl What {
    /// Returns the place among all kinds of differences: smaller numbers say more about why one run works and another
    /// does not.
    pub fn rank(&self) -> u8 {
        match self {
            What::Fails { errnos, .. } if is_question(errnos) => 14,
            What::Fails { always: true, .. } => 1,
            What::Ends(_) => 2,
            What::Complains { .. } => 3,
            What::Fails { .. } | What::FailsMore { .. } => 4,
            What::FailsOtherwise { .. } => 5,
            What::NoData { .. } => 6,
            What::Slower { .. } => 7,
            What::File { .. } => 8,
            What::Runs { .. } => 9,
            What::Arguments(_) => 10,
            What::Tries { found: true, .. } => 18,
            What::Tries { side: Side::B, .. } => 11,
            What::Uses { .. } | What::Tries { .. } => 12,
            What::More { .. } => 13,
            What::Calls { .. } => 15,
            What::Details { .. } => 16,
        }
    }

    /// Returns the name of the kind in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            What::Fails { .. } => "fails",
            What::FailsOtherwise { .. } => "fails_otherwise",
            What::FailsMore { .. } => "fails_more",
            What::File { .. } => "file",
            What::Ends(_) => "ends",
            What::Complains { .. } => "complains",
            What::NoData { .. } => "no_data",
            What::Slower { .. } => "slower",
            What::Runs { .. } => "runs",
            What::Tries { .. } => "tries",
            What::Arguments(_) => "arguments",
            What::Uses { .. } => "uses",
            What::Calls { .. } => "calls",
            What::Details { .. } => "details",
            What::More { .. } => "more",
        }
    }
}

/// Returns whether these errors only answer a question: programs ask by an ioctl whether a file is a terminal.
fn is_question(errnos: &BTreeSet<i32>) -> bool {
    errnos.iter().all(|errno| *errno == libc::ENOTTY)
}
