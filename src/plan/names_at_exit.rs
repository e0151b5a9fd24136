//! Path names that are read when calls return: the events that rtrace needs in tracefs on kernels that accept no probes
//! in their code.
//!
//! ```text
//! syscalls:sys_enter_X ─ histogram: keeps each thread's address ─┐
//! syscalls:sys_exit_X  ─ histogram: finds it again ──────────────┴─▶ synthetic event: address
//!     synthetic event ─▶ event probe: address, string ─▶ tracefs instance
//! ```
//!
//! An event probe that reads at the entry of a call finds no string on a page that was never touched; at the exit the
//! kernel itself has touched it. Of execve and execveat only failed calls are read: a successful call replaces the
//! memory that had the path. (Documentation/trace/{histogram,eprobetrace}.rst.)

use crate::beauty::row::{ArgumentKind, Syscall};
use crate::kernel::features;
use crate::kernel::format::{FieldPlace, Format};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::grammar::{self, Line, Probe};
use crate::probe::owner::Owner;
use anyhow::{anyhow, bail};
use std::fmt;

/// The subsystem of the events of single syscalls.
const SYSCALLS: &str = "syscalls";
/// The number of threads that the histograms hold. A histogram never forgets a thread, and the names of further threads
/// are missed. `THREADS_OF_ALL` is for all histograms together; the other two are the bounds of one histogram.
const THREADS_OF_ALL: usize = 1 << 17;
const THREADS_MIN: usize = 1 << 11;
const THREADS_MAX: usize = 1 << 14;
/// The maximum number of threads that a filter names.
const ONLY_MAX: usize = 16;
/// Each call has a histogram at its entry and one at its exit.
const TRIGGERS_OF_CALL: usize = 2;

/// The calls and threads whose path names are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtExit {
    calls: Vec<PathArguments>,
    /// The traced threads, if no others can join them; otherwise `None`.
    only: Option<Vec<i32>>,
}

/// The events that are created to read the path names of these calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtExitEvents {
    calls: Vec<CallPaths>,
    only: Option<Vec<i32>>,
}

/// A syscall, and the arguments that are paths in its plain row or in any variant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathArguments {
    /// The X of `sys_enter_X`.
    call: &'static str,
    arguments: Vec<usize>,
    /// Whether the paths are still in memory at the exit only if the call failed.
    if_failed: bool,
}

/// A trigger of an event: a histogram by thread. Its text is the line that the event's file `trigger` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The event that hits.
    pub event: EventName,
    /// What a hit does.
    action: Action,
    /// The number of threads that the histogram holds.
    threads: usize,
    /// The threads whose hits count; empty for all.
    only: Vec<i32>,
    /// Whether only hits with a negative return value count.
    if_failed: bool,
}

/// What a hit of an event with a histogram does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// It keeps these fields as the thread's variables `path0`, `path1`...
    Keep { fields: Vec<String> },
    /// It writes an event for each variable that the histogram of another event keeps for the thread.
    Write { kept_by: EventName, variables: usize, event: String },
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hist:keys=common_pid")?;
        match &self.action {
            Action::Keep { fields } => {
                for (n, field) in fields.iter().enumerate() {
                    write!(f, "{}path{n}={field}", if n == 0 { ':' } else { ',' })?;
                }
            }
            Action::Write { kept_by: EventName { subsystem, name }, variables, event } => {
                for n in 0..*variables {
                    write!(f, ":onmatch({subsystem}.{name}).trace({event},$path{n})")?;
                }
            }
        }
        write!(f, ":size={}", self.threads)?;
        let only = self.only.iter().map(|tid| format!("common_pid == {tid}")).collect::<Vec<_>>().join(" || ");
        match (only.is_empty(), self.if_failed) {
            (true, false) => Ok(()),
            (true, true) => f.write_str(" if ret < 0"),
            (false, false) => write!(f, " if ({only})"),
            (false, true) => write!(f, " if ({only}) && ret < 0"),
        }
    }
}

/// A call and the fields of its entry event that hold paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CallPaths {
    /// The X of `sys_enter_X`.
    call: &'static str,
    fields: Vec<String>,
    /// Whether the paths are still in memory at the exit only if the call failed.
    if_failed: bool,
}

impl AtExit {
    /// Selects the calls in `shown` that have paths. `only` are the traced threads, if no others can join them.
    pub fn new(shown: &[&'static Syscall], only: Option<&[i32]>) -> AtExit {
        let of_call = |call: &&'static Syscall| {
            let (arguments, if_failed) = (path_args(call), call.does.path_argument().is_some());
            (!arguments.is_empty()).then_some(PathArguments { call: call.event, arguments, if_failed })
        };
        AtExit { calls: shown.iter().filter_map(of_call).collect(), only: only.map(<[i32]>::to_vec) }
    }

    /// Returns the number of syscalls that become slower. `triggers` are the triggers that were set, if the events
    /// exist.
    pub fn calls(&self, triggers: &[Trigger]) -> usize {
        if triggers.is_empty() { self.calls.len() } else { triggers.len() / TRIGGERS_OF_CALL }
    }

    /// Finds the fields of this kernel's events that have the paths, and returns the events to create for them.
    ///
    /// # Errors
    /// The kernel lacks a feature that these events need.
    pub fn events(&self, tracefs: &Tracefs) -> anyhow::Result<AtExitEvents> {
        if !features::has_histograms(tracefs) {
            bail!("this kernel was built without histograms of events (CONFIG_HIST_TRIGGERS)");
        }
        if !tracefs.root().join("instances").exists() {
            bail!("this kernel's tracefs has no instances");
        }
        if Owner::this().is_none_or(|owner| owner.is_of_other_namespace()) {
            bail!("a tracefs instance has the thread numbers of the first pid namespace, and rtrace is in another one");
        }
        let calls: Vec<CallPaths> = self.calls.iter().filter_map(|call| call.fields(tracefs)).collect();
        if calls.is_empty() {
            bail!("this kernel has no syscalls: events for the traced calls with paths (CONFIG_FTRACE_SYSCALLS)");
        }
        Ok(AtExitEvents { calls, only: self.only.clone() })
    }
}

impl AtExitEvents {
    /// Returns the synthetic event, which carries the address. The instance records it too. The kernel discards the
    /// record of an event that only triggers others, and the record that is read after the discarded one gets a time
    /// stamp that is too early (rb_update_read_stamp() in kernel/trace/ring_buffer.c skips such records).
    ///
    /// # Errors
    /// The definition is not in the language of probes, which is a mistake in rtrace.
    pub fn addresses(&self) -> anyhow::Result<Probe> {
        probe("s:path_address u64 address")
    }

    /// Returns the event probe on this synthetic event. It reads the string.
    ///
    /// # Errors
    /// The definition is not in the language of probes, which is a mistake in rtrace.
    pub fn names(&self, addresses: &EventName) -> anyhow::Result<Probe> {
        probe(&format!("e:path_name {}.{} address=$address:x64 name=+0($address):ustring", addresses.subsystem, addresses.name))
    }

    /// Returns the triggers that write this synthetic event, in the order in which they are to be set.
    pub fn triggers(&self, addresses: &EventName) -> Vec<Trigger> {
        triggers(&self.calls, &addresses.name, self.only.as_deref())
    }
}

fn probe(line: &str) -> anyhow::Result<Probe> {
    match grammar::parse(line) {
        Ok(Line::Make(probe)) => Ok(probe),
        _ => Err(anyhow!("`{line}` is not a probe definition")),
    }
}

impl PathArguments {
    /// Returns the fields with the paths; `None` if this kernel has no event for the call.
    fn fields(&self, tracefs: &Tracefs) -> Option<CallPaths> {
        let name = format!("sys_enter_{}", self.call);
        let format = tracefs.has(SYSCALLS, &name).then(|| tracefs.format(SYSCALLS, &name).ok()).flatten()?;
        let fields: Vec<String> = self.arguments.iter().filter_map(|arg| field(&format, *arg)).collect();
        (!fields.is_empty()).then_some(CallPaths { call: self.call, fields, if_failed: self.if_failed })
    }
}

/// Returns the indices of the arguments that are paths in any variant of the call.
fn path_args(call: &Syscall) -> Vec<usize> {
    let is_path =
        |at: &usize| call.signatures().any(|signature| signature.args.get(*at).is_some_and(|arg| matches!(arg.kind, ArgumentKind::Path)));
    (0..6).filter(is_path).collect()
}

/// Returns the name of an argument's field in the format of the entry event, where the arguments follow the number.
fn field(format: &Format, arg: usize) -> Option<String> {
    let number = format.fields.iter().position(|field| field.name == "__syscall_nr")?;
    let mut args = format.fields[number + 1..].iter().filter(|field| field.place == FieldPlace::Here);
    args.nth(arg).map(|field| field.name.clone())
}

fn triggers(calls: &[CallPaths], synthetic: &str, only: Option<&[i32]>) -> Vec<Trigger> {
    let threads = (THREADS_OF_ALL / (TRIGGERS_OF_CALL * calls.len().max(1))).clamp(THREADS_MIN, THREADS_MAX);
    let only = only.filter(|tids| tids.len() <= ONLY_MAX).unwrap_or_default();
    let of_call = |CallPaths { call, fields, if_failed }: &CallPaths| {
        let [enter, exit] = ["enter", "exit"].map(|end| EventName { subsystem: SYSCALLS.to_owned(), name: format!("sys_{end}_{call}") });
        let keep = Action::Keep { fields: fields.clone() };
        let write = Action::Write { kept_by: enter.clone(), variables: fields.len(), event: synthetic.to_owned() };
        [(enter, keep, false), (exit, write, *if_failed)].map(|(event, action, if_failed)| Trigger {
            event,
            action,
            threads,
            only: only.to_vec(),
            if_failed,
        })
    };
    calls.iter().flat_map(of_call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables;

    fn row(name: &str) -> &'static Syscall {
        tables::SYSCALLS.iter().find(|call| call.name == name).unwrap()
    }

    #[test]
    fn triggers_are_in_the_language_of_the_kernel() {
        let calls = [
            CallPaths { call: "openat", fields: vec!["filename".into()], if_failed: false },
            CallPaths { call: "rename", fields: vec!["oldname".into(), "newname".into()], if_failed: false },
        ];
        let lines: Vec<String> = triggers(&calls, "rtrace_1_2__x", None).iter().map(|t| format!("{} {t}", t.event)).collect();
        assert_eq!(
            lines,
            [
                "syscalls:sys_enter_openat hist:keys=common_pid:path0=filename:size=16384",
                "syscalls:sys_exit_openat hist:keys=common_pid:onmatch(syscalls.sys_enter_openat).trace(rtrace_1_2__x,$path0):size=16384",
                "syscalls:sys_enter_rename hist:keys=common_pid:path0=oldname,path1=newname:size=16384",
                "syscalls:sys_exit_rename hist:keys=common_pid:onmatch(syscalls.sys_enter_rename).trace(rtrace_1_2__x,$path0)\
                 :onmatch(syscalls.sys_enter_rename).trace(rtrace_1_2__x,$path1):size=16384",
            ]
        );
    }

    #[test]
    fn filters_name_few_threads_and_many_calls_get_small_histograms() {
        let calls = vec![CallPaths { call: "execve", fields: vec!["filename".into()], if_failed: true }; 60];
        let lines = |only: Option<&[i32]>| triggers(&calls, "x", only).iter().map(Trigger::to_string).take(2).collect::<Vec<_>>();
        let two = lines(Some(&[7, 8]));
        assert_eq!(two[0], "hist:keys=common_pid:path0=filename:size=2048 if (common_pid == 7 || common_pid == 8)");
        assert!(two[1].ends_with(".trace(x,$path0):size=2048 if (common_pid == 7 || common_pid == 8) && ret < 0"), "{}", two[1]);
        for many in [lines(Some(&[7; 17])), lines(Some(&[])), lines(None)] {
            assert!(many[0].ends_with(":size=2048") && many[1].ends_with(":size=2048 if ret < 0"), "{many:?}");
        }
    }

    #[test]
    fn path_arguments_of_all_variants_are_found() {
        assert_eq!(path_args(row("openat")), [1]);
        assert_eq!(path_args(row("renameat2")), [1, 3]);
        assert!(!path_args(row("fsconfig")).is_empty());
        assert!(path_args(row("read")).is_empty());
    }

    #[test]
    fn argument_fields_follow_the_syscall_number() {
        let text = "name: sys_enter_openat\nID: 600\nformat:\n\
                    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                    \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n\
                    \tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n\
                    \tfield:__data_loc char[] __filename_val;\toffset:48;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";
        let format = Format::parse(text).unwrap();
        assert_eq!((field(&format, 1), field(&format, 2)), (Some("filename".into()), None));
    }
}
