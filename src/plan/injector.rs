//! Decides who changes the calls of `--inject`: the BPF programs, or a supervisor that a seccomp filter asks.

use super::Plan;
use crate::beauty::lookup;
use crate::bpf::{self, Effects};
use crate::event::Abi;
use crate::inject::Rules;
use crate::kernel::machine::NATIVE_ABI;
use crate::kernel::syscall_functions::SyscallFunctions;
use crate::request::Trace;
use crate::request::inject::InjectBy;
use crate::session::{InjectedCalls, Targets};
use crate::sys::file_capabilities;
use crate::syscall::special::Special;
use anyhow::anyhow;
use std::collections::BTreeSet;
use std::fmt;

/// Who changes calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Injector {
    /// Nobody.
    #[default]
    None,
    /// The BPF programs, in the calling task. It applies to running tasks, too.
    Programs(Effects),
    /// A process that a seccomp filter of the command asks. The reason is a clause.
    Supervisor {
        /// Why the BPF programs do not do it.
        why: String,
    },
}

impl Injector {
    /// Decides for these rules. `by_bpf` says whether the BPF engine traces.
    ///
    /// # Errors
    /// The user asks for the programs, or the targets are running tasks, and the programs cannot change these calls; or
    /// the user asks for the supervisor, and it cannot.
    pub fn choose(rules: &Rules, request: &Trace, targets: &Targets, by_bpf: bool) -> anyhow::Result<Injector> {
        if rules.calls.is_empty() {
            return Ok(Injector::None);
        }
        let asked = request.run.inject_by;
        let effects = match asked {
            InjectBy::Seccomp => Err("--inject-by seccomp asks for it".to_owned()),
            InjectBy::Auto | InjectBy::Override if !by_bpf => Err("the BPF engine does not trace".to_owned()),
            InjectBy::Auto | InjectBy::Override => by_programs(rules),
        };
        let why = match effects {
            Ok(effects) => return Ok(Injector::Programs(effects)),
            Err(why) => why,
        };
        Injector::supervisor(why, request, targets)
    }

    fn supervisor(why: String, request: &Trace, targets: &Targets) -> anyhow::Result<Injector> {
        match (request.run.inject_by, targets) {
            (InjectBy::Override, _) => Err(anyhow!("--inject-by override: {why}")),
            (_, Targets::Command) if request.what.delay.is_none() => Ok(Injector::Supervisor { why }),
            (_, Targets::Command) => Err(anyhow!(
                "--inject: a seccomp filter changes these calls, because {why}; it changes them from the first one on, so leave -D out"
            )),
            _ => Err(anyhow!(
                "--inject: the calls of running tasks cannot be changed here, because {why}; only a command that rtrace starts can have a seccomp filter"
            )),
        }
    }

    /// Returns these settings of the BPF programs with their part in it: they change the calls, or they complete the
    /// calls that the supervisor has answered, and send the signals for it.
    pub fn in_programs(&self, settings: bpf::Settings, rules: &Rules) -> bpf::Settings {
        let effects = if let Injector::Programs(effects) = self { Some(effects.clone()) } else { None };
        let sends_signals = self.is_supervisor() && rules.effects.iter().any(|effect| effect.signal.is_some());
        bpf::Settings { effects, answered: self.is_supervisor(), sends_signals, ..settings }
    }

    /// Returns whether a supervisor changes calls.
    pub fn is_supervisor(&self) -> bool {
        matches!(self, Injector::Supervisor { .. })
    }
}

/// The lines of `-v`.
impl fmt::Display for Injector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Injector::None => Ok(()),
            Injector::Programs(Effects { functions, .. }) if functions.is_empty() => {
                writeln!(f, "plan: --inject by the BPF program at the entry of calls, which sends the signals")
            }
            Injector::Programs(Effects { functions, missing, .. }) => {
                let count = functions.len();
                writeln!(f, "plan: --inject by a BPF program on {count} functions of the kernel, which overrides their results")?;
                if *missing > 0 {
                    writeln!(f, "plan: {missing} calls of --inject are not in this kernel, and fail with ENOSYS as without rtrace")?;
                }
                Ok(())
            }
            Injector::Supervisor { why } => {
                writeln!(
                    f,
                    "plan: --inject by a seccomp filter and a process that answers, because {why}; each call of --inject waits for it"
                )
            }
        }
    }
}

impl Plan {
    /// Returns what the session says of changed calls.
    pub fn injected(&self) -> InjectedCalls {
        let Rules { effects, calls } = &self.injections;
        let means_value = |call: &&(Abi, u32, u16)| effects.get(usize::from(call.2)).is_some_and(|effect| effect.is_value());
        let of = |call: &(Abi, u32, u16)| (call.0, call.1);
        InjectedCalls {
            supervised: calls.iter().filter(|_| self.injector.is_supervisor()).map(of).collect(),
            as_value: calls.iter().filter(means_value).map(of).collect(),
        }
    }

    /// Lets a supervisor change calls, because the programs cannot: `why` is a clause.
    ///
    /// # Errors
    /// The user asks for the programs, or the targets are running tasks.
    pub fn leave_to_supervisor(&mut self, request: &Trace, why: String) -> anyhow::Result<()> {
        self.injector = Injector::supervisor(why, request, &self.targets)?;
        let bpf = self.bpf.take();
        self.bpf = bpf.map(|bpf| self.injector.in_programs(bpf, &self.injections));
        Ok(())
    }
}

/// Returns what the BPF programs are to do, or why they cannot do it: a clause.
fn by_programs(rules: &Rules) -> Result<Effects, String> {
    if let Some(why) = Effects::why_not(rules) {
        return Err(why.to_owned());
    }
    if file_capabilities::are_present() {
        return Err("rtrace has its privileges from file capabilities, which are for observing only".to_owned());
    }
    let answered: Vec<(Abi, u32)> = rules.calls.iter().filter(|call| is_answered(rules, call.2)).map(|call| (call.0, call.1)).collect();
    if answered.is_empty() {
        return Ok(Effects { rules: rules.clone(), functions: Vec::new(), missing: 0 });
    }
    // The caller of the function of an exit has no code behind the call (`noreturn` in the kernel's syscall tables).
    let exits = answered
        .iter()
        .filter_map(|call| lookup::row(call.0, call.1.into()))
        .find(|row| matches!(row.does, Special::Exit | Special::ExitGroup));
    if let Some(row) = exits {
        return Err(format!("the kernel's function of {} never returns, so that its result cannot be overridden", row.name));
    }
    if !bpf::may_override() {
        return Err("this kernel does not let BPF programs override results (CONFIG_BPF_KPROBE_OVERRIDE)".to_owned());
    }
    let named = |(abi, nr): (Abi, u32)| match lookup::row(abi, nr.into()) {
        Some(row) => Some((abi, row.name, row.event)),
        None => lookup::other_name(abi, nr.into()).map(|name| (abi, name, name)),
    };
    let functions = SyscallFunctions::read(answered.iter().filter_map(|call| named(*call)))
        .map_err(|error| format!("the functions of syscalls are not known: {error}"))?;
    let of = |call: (Abi, u32)| named(call).map_or_else(Vec::new, |(abi, name, event)| functions.of(abi, name, event));
    for (effect, _) in (0u16..).zip(&rules.effects).filter(|(effect, _)| is_answered(rules, *effect)) {
        let mut of_rule = rules.calls.iter().filter(|call| call.2 == effect).peekable();
        if of_rule.peek().is_some() && of_rule.all(|call| of((call.0, call.1)).is_empty()) {
            return Err("this kernel has no function for any call of a rule".to_owned());
        }
    }
    let missing = answered.iter().filter(|call| call.0 == NATIVE_ABI && of(**call).is_empty()).count();
    let functions: BTreeSet<u64> = answered.iter().flat_map(|call| of(*call)).collect();
    Ok(Effects { rules: rules.clone(), functions: functions.into_iter().collect(), missing })
}

fn is_answered(rules: &Rules, effect: u16) -> bool {
    rules.effects.get(usize::from(effect)).is_some_and(|effect| effect.returns.is_some())
}
