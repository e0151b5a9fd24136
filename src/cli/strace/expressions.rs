//! What the expressions of `-e` say.

use super::calls::{self, Personalities};
use super::options::Options;
use super::{Refused, values};
use crate::beauty::signal;
use crate::show::Outcomes;
use crate::show::descriptors::Descriptors;
use crate::show::strace::{CallSet, Files};
use bitflags::{Flags, bitflags};
use std::ffi::OsString;

/// What the expressions of a command line say.
#[derive(Debug)]
pub struct Expressions {
    /// The last `trace=`, as it was written.
    traced: String,
    /// Words of rtrace's own command line that choose the calls.
    pub selection: Vec<OsString>,
    /// The calls of each personality that are shown; `None` if the selection does not differ between them.
    pub personalities: Option<Personalities>,
    /// Words of rtrace's own command line that change calls.
    pub injections: Vec<OsString>,
    /// The signals that are shown, as bits.
    pub signals: u128,
    /// How the calls that are shown end.
    pub outcomes: Outcomes,
    /// The descriptors whose calls are shown; `None` if all are.
    pub descriptors: Option<Descriptors>,
    /// `abbrev=`; `None` without it.
    pub abbreviated: Option<CallSet>,
    /// `verbose=`
    pub dereferenced: CallSet,
    /// `raw=`
    pub raw: CallSet,
    /// `read=`
    pub read: Descriptors,
    /// `write=`
    pub written: Descriptors,
    /// `decode-fds=`
    pub files: Files,
    /// Whether there is a `decode-fds=`.
    pub has_files: bool,
    /// `decode-pids=`
    pub pids: Pids,
    /// `quiet=`
    pub quiet: Quiet,
    /// Whether there is a `quiet=`.
    pub has_quiet: bool,
}

bitflags! {
    /// Kinds of lines that are not printed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Quiet: u8 {
        /// Messages about processes that strace attaches to and detaches from.
        const ATTACH = 1;
        /// Lines about ends of tasks.
        const EXIT = 2;
        /// Lines about the ABI of a task's calls.
        const PERSONALITY = 4;
        /// Lines about threads whose number another thread takes over.
        const SUPERSEDED = 8;
        /// Lines that rtrace never prints.
        const OTHERS = 16;
    }

    /// What is shown of the numbers of tasks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Pids: u8 {
        /// Their comms.
        const COMM = 1;
        /// The numbers that they have for rtrace.
        const PIDNS = 2;
    }
}

impl Expressions {
    /// Reads the expressions, `-q` and `-y`.
    ///
    /// # Errors
    /// A word is wrong, or asks for what rtrace does not have.
    pub fn read(options: &Options) -> Result<Expressions, Refused> {
        let mut expressions = Expressions {
            traced: String::new(),
            selection: Vec::new(),
            personalities: None,
            injections: Vec::new(),
            signals: u128::MAX,
            outcomes: Outcomes::all(),
            descriptors: None,
            abbreviated: None,
            dereferenced: CallSet::all(),
            raw: CallSet::none(),
            read: Descriptors::none(),
            written: Descriptors::none(),
            files: [Files::empty(), Files::PATH, Files::all()][usize::from(options.files.min(2))],
            has_files: false,
            pids: Pids::empty(),
            quiet: QUIETER[usize::from(options.quieter.min(3))],
            has_quiet: false,
        };
        for expression in &options.expression {
            let (name, value) = expression.split_once('=').unwrap_or(("trace", expression));
            if !expressions.one(name, value)? {
                // Names of calls may have an equals sign only in a regular expression.
                expressions.trace(expression)?;
            }
        }
        if options.detach_on.is_some() && !expressions.selection.is_empty() {
            expressions.add_execve()?;
        }
        // If the output is a file, strace does not say on stderr that it attaches to processes of the command.
        if options.output.is_some() && !options.command.is_empty() && !expressions.has_quiet {
            expressions.quiet |= Quiet::ATTACH;
        }
        Ok(expressions)
    }

    /// Applies an expression, and returns whether there is one of this name.
    fn one(&mut self, name: &str, value: &str) -> Result<bool, Refused> {
        let unsupported = |text: String| Err(Refused::Wrong(text));
        match name {
            "trace" | "t" => self.trace(value)?,
            "signal" | "signals" | "s" => self.signals = signals(value)?,
            "status" => self.outcomes = flags("status", &OUTCOMES, value)?,
            "trace-fds" | "trace-fd" | "fd" | "fds" => self.descriptors = Some(descriptors(value)?),
            "abbrev" | "a" => self.abbreviated = Some(calls::set(value)?),
            "verbose" | "v" => self.dereferenced = calls::set(value)?,
            "raw" | "x" => self.raw = calls::set(value)?,
            "read" | "reads" | "r" => self.read = descriptors(value)?,
            "write" | "writes" | "w" => self.written = descriptors(value)?,
            "quiet" | "silent" | "silence" | "q" => (self.quiet, self.has_quiet) = (flags("quiet", &QUIET, value)?, true),
            "decode-fds" | "decode-fd" => (self.files, self.has_files) = (flags("decode-fds", &FILES, value)?, true),
            "decode-pids" | "decode-pid" => self.pids |= flags("decode-pids", &PIDS, value)?,
            "inject" | "fault" => self.injections.extend(calls::injection(name, value)?),
            "kvm" if !matches!(value, "vcpu" | "vcpu+") => return Err(values::wrong("kvm", value)),
            "namespace" if value != "new" => return Err(values::wrong("namespace", value)),
            "kvm" => return unsupported(format!("-e kvm={value} is not supported: rtrace does not read the memory of virtual CPUs")),
            "namespace" => {
                return unsupported("-e namespace=new is not supported: rtrace does not read which namespaces a call enters".to_owned());
            }
            "secontext" => return unsupported("SELinux context printing (--secontext option) is not supported by rtrace".to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds the calls that execute programs to those that are traced, and shows them only if they were traced before.
    fn add_execve(&mut self) -> Result<(), Refused> {
        if self.personalities.is_none() {
            let shown = calls::set(&self.traced)?;
            self.personalities = Some(std::array::from_fn(|_| shown.clone()));
        }
        self.selection = calls::selection_with(&self.traced, "/^execve(at)?$/")?;
        Ok(())
    }

    /// Applies a set of calls that are traced.
    fn trace(&mut self, set: &str) -> Result<(), Refused> {
        (self.selection, self.personalities) = (calls::selection(set)?, calls::personalities(set)?);
        set.clone_into(&mut self.traced);
        Ok(())
    }
}

/// Returns the signals of a set, as bits.
fn signals(set: &str) -> Result<u128, Refused> {
    let (is_negated, list) = values::set(set);
    let bits = match list {
        "all" => u128::MAX,
        "none" => 0,
        _ => list.split(',').try_fold(0, |bits, name| {
            let number = name.parse().ok().or_else(|| signal::number(&name.to_uppercase())).filter(|number| (1..128).contains(number));
            number.map(|number| bits | 1 << number).ok_or_else(|| Refused::Wrong(format!("invalid signal '{name}'")))
        })?,
    };
    Ok(if is_negated { !bits } else { bits })
}

/// The words of `status=`.
const OUTCOMES: [(&str, Outcomes); 7] = [
    ("all", Outcomes::all()),
    ("none", Outcomes::empty()),
    ("successful", Outcomes::SUCCESSFUL),
    ("failed", Outcomes::FAILED),
    ("unfinished", Outcomes::UNFINISHED),
    ("unavailable", Outcomes::UNAVAILABLE),
    ("detached", Outcomes::UNAVAILABLE),
];

/// The words of `quiet=`.
const QUIET: [(&str, Quiet); 9] = [
    ("all", Quiet::all()),
    ("none", Quiet::empty()),
    ("attach", Quiet::ATTACH),
    ("exit", Quiet::EXIT),
    ("exits", Quiet::EXIT),
    ("path-resolution", Quiet::OTHERS),
    ("superseded", Quiet::SUPERSEDED),
    ("personality", Quiet::PERSONALITY),
    ("thread-execve", Quiet::SUPERSEDED),
];

/// What `-q`, `-qq` and `-qqq` hide, and what is hidden without them.
const QUIETER: [Quiet; 4] =
    [Quiet::empty(), Quiet::ATTACH.union(Quiet::PERSONALITY), Quiet::ATTACH.union(Quiet::PERSONALITY).union(Quiet::EXIT), Quiet::all()];

/// The words of `decode-pids=`.
const PIDS: [(&str, Pids); 4] = [("all", Pids::all()), ("none", Pids::empty()), ("comm", Pids::COMM), ("pidns", Pids::PIDNS)];

/// The words of `decode-fds=`. All but `path` imply nothing else.
const FILES: [(&str, Files); 8] = [
    ("all", Files::all()),
    ("none", Files::empty()),
    ("path", Files::PATH),
    ("socket", Files::SOCKET),
    ("dev", Files::DEVICE),
    ("eventfd", Files::EVENTFD),
    ("pidfd", Files::PIDFD),
    ("signalfd", Files::SIGNALFD),
];

/// Returns the flags that the words of a set stand for. `kind` is what the set is of.
fn flags<F: Flags + Copy>(kind: &str, words: &[(&str, F)], set: &str) -> Result<F, Refused> {
    let (is_negated, list) = values::set(set);
    let flag = |word: &str| words.iter().find(|(known, _)| *known == word).map(|(_, flag)| *flag);
    let flags = list.split(',').try_fold(F::empty(), |flags, word| match flag(word) {
        Some(flag) => Ok(flags.union(flag)),
        None => Err(Refused::Wrong(format!("invalid {kind} '{word}'"))),
    })?;
    Ok(if is_negated { flags.complement() } else { flags })
}

/// Returns the descriptors of a set.
fn descriptors(set: &str) -> Result<Descriptors, Refused> {
    let (is_negated, list) = values::set(set);
    let descriptors = match list {
        "all" => Descriptors::none().negated(),
        "none" => Descriptors::none(),
        _ => {
            let number = |word: &str| word.parse().ok().filter(|number| *number >= 0);
            let numbers = list.split(',').map(|word| number(word).ok_or_else(|| Refused::Wrong(format!("invalid descriptor '{word}'"))));
            Descriptors::of(numbers.collect::<Result<_, _>>()?)
        }
    };
    Ok(if is_negated { descriptors.negated() } else { descriptors })
}
