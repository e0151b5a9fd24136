//! The outline of a recording: which programs ran, what they used, and how their calls ended.
//!
//! An outline has no times of day, addresses, numbers of tasks and descriptors, and no order of calls: in two runs of
//! the same command, threads and processes take turns differently. Processes of one parent that run the same program
//! with the same arguments are one node, and equal calls of a node are counted. The size of an outline is therefore
//! that of what is different in a recording, and not that of the recording.

use super::file_state::FileState;
use super::words::Word;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The outline of one recording.
#[derive(Debug)]
pub struct Outline {
    /// The nodes. A node stands behind its parent; the first is the root, which is no process.
    pub nodes: Vec<Node>,
    /// The number of calls that are left out, because the outline would become too large.
    pub left_out: u64,
    /// The files that a process opened for writing or replaced.
    pub written: FxHashSet<Word>,
    /// The files that a process created and that did not exist before, and whether only their owners may use them.
    pub created: FxHashMap<Word, bool>,
    /// The numbers of the processes.
    pub pids: FxHashSet<i32>,
}

/// The processes with the same parent and the same image.
#[derive(Debug)]
pub struct Node {
    /// What they run.
    pub image: Image,
    /// The index of the parent.
    pub parent: usize,
    /// The indices of the children, in the order of their first start.
    pub children: Vec<usize>,
    /// The number of processes. It is 0 if what is compared has none of them, but may have descendants of them.
    pub processes: u64,
    /// What they did.
    pub uses: FxHashMap<Use, Tally>,
    /// What they learnt first about files, by the object of the call.
    pub files: FxHashMap<Word, FileState>,
    /// How they ended, and how many of them.
    pub ends: BTreeMap<End, u64>,
    /// The first line that they wrote to standard error, as far as the recording has it.
    pub complaint: Option<Vec<u8>>,
}

/// What a process runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Image {
    /// The program is not known, because it was executed before the recording. This is the comm.
    Unknown(Word),
    /// The program of the parent, which created the process.
    Forked,
    /// A program that the process executed.
    Program {
        /// The path.
        path: Word,
        /// The arguments, as far as the recording has them.
        args: Vec<Word>,
    },
}

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The name of the call, or of another event.
    pub call: Word,
    /// What it is about: the path, or the file behind the descriptor. Empty if it is about no file.
    pub object: Word,
    /// The flags, commands and addresses among the arguments.
    pub detail: Word,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It succeeded.
    Success,
    /// It succeeded and read nothing.
    NoData,
    /// It failed with this errno.
    Errno(i32),
}

/// The calls of one kind.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The place of the first call among the events of the recording.
    pub first: u64,
    /// The number of calls.
    pub calls: u64,
    /// The outcomes with their numbers of calls. Calls that only had to be repeated, or did not return, are not in
    /// them.
    pub outcomes: SmallVec<[(Outcome, u64); 1]>,
    /// The total duration in nanoseconds of the calls whose durations are compared.
    pub time: u64,
    /// The calls are compared, and not only their durations.
    pub is_compared: bool,
    /// The calls use the file, and do not only close its descriptor or hand it on.
    pub uses_file: bool,
    /// The calls have a path that the recording does not have.
    pub lacks_path: bool,
}

impl Tally {
    /// Returns a tally without calls.
    pub fn new(first: u64, is_compared: bool, uses_file: bool) -> Tally {
        Tally { first, calls: 0, outcomes: SmallVec::new(), time: 0, is_compared, uses_file, lacks_path: false }
    }

    /// Adds all calls of another tally.
    pub fn join(&mut self, other: &Tally) {
        self.first = self.first.min(other.first);
        self.calls += other.calls;
        self.time = self.time.saturating_add(other.time);
        self.is_compared |= other.is_compared;
        self.uses_file |= other.uses_file;
        self.lacks_path |= other.lacks_path;
        other.outcomes.iter().for_each(|(outcome, calls)| self.add(*outcome, *calls));
    }

    /// Adds calls with an outcome.
    pub fn add(&mut self, outcome: Outcome, calls: u64) {
        match self.outcomes.iter_mut().find(|(other, _)| *other == outcome) {
            Some((_, count)) => *count += calls,
            None => self.outcomes.push((outcome, calls)),
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl Node {
    /// Returns a node of which nothing is known yet.
    pub fn new(image: Image, parent: usize) -> Node {
        Node {
            image,
            parent,
            children: Vec::new(),
            processes: 0,
            uses: FxHashMap::default(),
            files: FxHashMap::default(),
            ends: BTreeMap::new(),
            complaint: None,
        }
    }
}

impl Outline {
    /// Returns an outline that has only these nodes.
    pub fn new(nodes: Vec<Node>) -> Outline {
        Outline { nodes, left_out: 0, written: FxHashSet::default(), created: FxHashMap::default(), pids: FxHashSet::default() }
    }

    /// Returns the program of a node: its path, or its comm if no more is known.
    pub fn program(&self, node: usize) -> Option<Word> {
        let mut at = node;
        while let Some(node) = self.nodes.get(at).filter(|_| at > 0) {
            match &node.image {
                Image::Program { path, .. } => return Some(*path),
                Image::Unknown(comm) => return Some(*comm),
                Image::Forked => at = node.parent,
            }
        }
        None
    }
}
