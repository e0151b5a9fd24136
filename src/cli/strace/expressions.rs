//! What `-e` and its long forms say.

use super::options::Options;
use super::{Refused, calls, values};
use crate::beauty::signal;
use crate::show::Outcomes;
use crate::show::descriptors::Descriptors;
use crate::show::strace::{CallSet, Files};
use bitflags::Flags;
use std::ffi::OsString;

/// What the expressions of a command line say.
#[derive(Debug)]
pub struct Expressions {
    /// Words of rtrace's own command line that choose the calls.
    pub selection: Vec<OsString>,
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
    /// `decode-pids=comm`
    pub comms: bool,
    /// `decode-pids=pidns`
    pub own_pids: bool,
    /// `quiet=attach`
    pub hides_attached: bool,
    /// `quiet=exit`
    pub hides_ends: bool,
    /// `quiet=personality`; `None` if no `quiet=` says it.
    pub hides_abis: Option<bool>,
    /// `quiet=superseded`
    pub hides_superseded: bool,
}

impl Expressions {
    /// Reads the expressions, `-q`, `-v`, `-y`, `-Y`, `-z` and `-Z`.
    ///
    /// # Errors
    /// A word is wrong, or asks for what rtrace does not have.
    pub fn read(options: &Options) -> Result<Expressions, Refused> {
        let mut expressions = Expressions {
            selection: Vec::new(),
            injections: Vec::new(),
            signals: u128::MAX,
            outcomes: Outcomes::all(),
            descriptors: None,
            abbreviated: (options.whole > 0).then(CallSet::none),
            dereferenced: CallSet::all(),
            raw: CallSet::none(),
            read: Descriptors::none(),
            written: Descriptors::none(),
            files: [Files::empty(), Files::PATH, Files::all()][usize::from(options.files.min(2))],
            comms: options.comms,
            own_pids: false,
            hides_attached: options.quieter > 0,
            hides_ends: options.quieter > 1,
            hides_abis: None,
            hides_superseded: options.quieter > 2,
        };
        for expression in &options.expression {
            let (name, value) = expression.split_once('=').unwrap_or(("trace", expression));
            if !expressions.one(name, value)? {
                // Names of calls may have an equals sign only in a regular expression.
                expressions.selection = calls::selection(expression)?;
            }
        }
        for (name, value) in long_forms(options) {
            expressions.one(name, value)?;
        }
        match (options.successful_only, options.failed_only) {
            (true, _) => expressions.outcomes = Outcomes::SUCCESSFUL,
            (_, true) => expressions.outcomes = Outcomes::FAILED,
            _ => {}
        }
        Ok(expressions)
    }

    /// Applies an expression, and returns whether there is one of this name.
    fn one(&mut self, name: &str, value: &str) -> Result<bool, Refused> {
        match name {
            "trace" | "t" => self.selection = calls::selection(value)?,
            "signal" | "signals" | "s" => self.signals = signals(value)?,
            "status" => self.outcomes = flags("status", &OUTCOMES, value)?,
            "trace-fds" | "trace-fd" | "fd" | "fds" => self.descriptors = Some(descriptors(value)?),
            "abbrev" | "a" => self.abbreviated = Some(calls::set(value)?),
            "verbose" | "v" => self.dereferenced = calls::set(value)?,
            "raw" | "x" => self.raw = calls::set(value)?,
            "read" | "reads" | "r" => self.read = descriptors(value)?,
            "write" | "writes" | "w" => self.written = descriptors(value)?,
            "quiet" | "silent" | "silence" | "q" => self.quiet(value)?,
            "decode-fds" | "decode-fd" => self.files = flags("decode-fds", &FILES, value)?,
            "decode-pids" | "decode-pid" => self.pids(value)?,
            "kvm" if !matches!(value, "vcpu" | "vcpu+") => return Err(Refused::Wrong(format!("invalid -e kvm= argument: '{value}'"))),
            "inject" | "fault" => self.injections.extend(calls::injection(name, value)?),
            "kvm" | "namespace" => {
                return Err(Refused::Wrong(format!("-e {name}={value} is not supported (rtrace has no such option)")));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Applies a set of kinds of lines that are not printed.
    fn quiet(&mut self, value: &str) -> Result<(), Refused> {
        (self.hides_attached, self.hides_ends, self.hides_abis, self.hides_superseded) = (false, false, Some(false), false);
        for word in value.split(',') {
            match word {
                "attach" => self.hides_attached = true,
                "exit" | "exits" => self.hides_ends = true,
                "personality" => self.hides_abis = Some(true),
                "thread-execve" | "superseded" => self.hides_superseded = true,
                "all" => (self.hides_attached, self.hides_ends, self.hides_abis, self.hides_superseded) = (true, true, Some(true), true),
                // rtrace never prints messages about paths.
                "none" | "path-resolution" | "path-resolve" => {}
                other => return Err(Refused::Wrong(format!("invalid quiet '{other}'"))),
            }
        }
        Ok(())
    }

    /// Applies what is shown of the numbers of tasks.
    fn pids(&mut self, value: &str) -> Result<(), Refused> {
        for word in value.split(',') {
            match word {
                "comm" => self.comms = true,
                "pidns" => self.own_pids = true,
                "all" => (self.comms, self.own_pids) = (true, true),
                "none" => (self.comms, self.own_pids) = (false, false),
                other => return Err(Refused::Wrong(format!("invalid decode-pids '{other}'"))),
            }
        }
        Ok(())
    }
}

/// Returns the expressions that have long options of their own.
fn long_forms(options: &Options) -> impl Iterator<Item = (&'static str, &str)> {
    let forms = [
        ("trace", &options.trace),
        ("trace-fds", &options.trace_fds),
        ("signal", &options.signal),
        ("status", &options.status),
        ("abbrev", &options.abbrev),
        ("verbose", &options.verbose),
        ("raw", &options.raw),
        ("read", &options.read),
        ("write", &options.write),
        ("quiet", &options.quiet),
        ("decode-fds", &options.decode_fds),
        ("decode-pids", &options.decode_pids),
    ];
    let changes = [("inject", &options.inject), ("fault", &options.fault)];
    let changes = changes.into_iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value.as_str())));
    forms.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).chain(changes)
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
