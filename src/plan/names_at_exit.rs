//! Path names that are read when calls return: what is made in tracefs for that, where the kernel takes no probes in its code.
//!
//! ```text
//! syscalls:sys_enter_X ─ histogram: keeps each thread's address ─┐
//! syscalls:sys_exit_X  ─ histogram: finds it again ──────────────┴─▶ synthetic event: address ─▶ event probe: address, string ─▶ instance of tracefs
//! ```
//!
//! An event probe that reads at entry finds no string on a page that nobody has touched yet; at the exit, the kernel itself has. Of execve and execveat only those that fail are read: with the
//! others, the memory that had the path is gone. (Documentation/trace/{histogram,eprobetrace}.rst.)

use crate::beauty::row::{Kind, Syscall};
use crate::kernel::features;
use crate::kernel::format::{FieldPlace, Format};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::grammar::{self, Line, Probe};
use crate::probe::made::Made;
use crate::probe::owner::Owner;
use anyhow::{anyhow, bail};

/// The subsystem of the events of single calls.
const SYSCALLS: &str = "syscalls";
/// So many threads at most are known to each histogram, which never forgets one; of more, the names are missed. All histograms together have room for so many, but each for the least.
const THREADS_OF_ALL: usize = 1 << 17;
const THREADS_MIN: usize = 1 << 11;
const THREADS_MAX: usize = 1 << 14;
/// More threads than these are not named in a filter.
const ONLY_MAX: usize = 16;

/// What was made, and what is still to be set up in the instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtExit {
    /// The synthetic event. It is recorded as well: thrown away around the probe's records, as the kernel does with an event that only triggers others, it takes time with it, and what is read
    /// behind it is stamped too early (rb_update_read_stamp() in kernel/trace/ring_buffer.c passes such records over).
    pub addresses: EventName,
    /// The event probe.
    pub names: EventName,
    /// In the order in which they are set.
    pub triggers: Vec<Trigger>,
}

/// A trigger of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub event: EventName,
    pub line: String,
}

/// A call, and the fields of its entry that are paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Paths {
    /// The X of `sys_enter_X`.
    call: &'static str,
    fields: Vec<String>,
    /// They are there at the exit only if the call failed.
    if_failed: bool,
}

/// Makes the events. `shown`: of which calls; `only`: of which threads, if they are certain to be the only ones.
///
/// # Errors
/// This kernel lacks a part of it, or does not take it: why.
pub fn make(tracefs: &Tracefs, made: &mut Made, shown: &[&'static Syscall], only: Option<&[i32]>) -> anyhow::Result<AtExit> {
    if !features::has_histograms(tracefs) {
        bail!("this kernel was built without histograms of events (CONFIG_HIST_TRIGGERS)");
    }
    if !tracefs.root().join("instances").exists() {
        bail!("this kernel's tracefs has no instances");
    }
    if Owner::this().is_none_or(|owner| owner.is_of_other_namespace()) {
        bail!("a tracefs instance knows threads by their numbers in the first pid namespace, which rtrace is not in");
    }
    let calls: Vec<Paths> = shown.iter().filter_map(|call| paths(tracefs, call)).collect();
    if calls.is_empty() {
        bail!("none of the calls with paths has events of its own that return (CONFIG_FTRACE_SYSCALLS)");
    }
    let addresses = made.own(tracefs, &[probe("s:path_address u64 address")?])?;
    let line = format!("e:path_name {}.{} address=$address:x64 name=+0($address):ustring", addresses.subsystem, addresses.name);
    let names = made.own(tracefs, &[probe(&line)?]).inspect_err(|_| made.disown(&addresses))?;
    Ok(AtExit { triggers: triggers(&calls, &addresses.name, only), addresses, names })
}

fn probe(line: &str) -> anyhow::Result<Probe> {
    match grammar::parse(line) {
        Ok(Line::Make(probe)) => Ok(probe),
        _ => Err(anyhow!("`{line}` is no probe")),
    }
}

/// The paths of a call that has an event here.
fn paths(tracefs: &Tracefs, call: &'static Syscall) -> Option<Paths> {
    let args = path_args(call);
    if args.is_empty() {
        return None;
    }
    let name = format!("sys_enter_{}", call.event);
    let format = tracefs.has(SYSCALLS, &name).then(|| tracefs.format(SYSCALLS, &name).ok()).flatten()?;
    let fields: Vec<String> = args.into_iter().filter_map(|arg| field(&format, arg)).collect();
    let if_failed = call.does.path_argument().is_some();
    (!fields.is_empty()).then_some(Paths { call: call.event, fields, if_failed })
}

/// Which arguments may be paths, of any variant.
fn path_args(call: &Syscall) -> Vec<usize> {
    let is_path = |at: &usize| call.signatures().any(|signature| signature.args.get(*at).is_some_and(|arg| matches!(arg.kind, Kind::Path)));
    (0..6).filter(is_path).collect()
}

/// What an argument is called in the entry's records: they follow the number.
fn field(format: &Format, arg: usize) -> Option<String> {
    let number = format.fields.iter().position(|field| field.name == "__syscall_nr")?;
    let mut args = format.fields[number + 1..].iter().filter(|field| field.place == FieldPlace::Here);
    args.nth(arg).map(|field| field.name.clone())
}

fn triggers(calls: &[Paths], synthetic: &str, only: Option<&[i32]>) -> Vec<Trigger> {
    // Two histograms a call.
    let room = (THREADS_OF_ALL / (2 * calls.len().max(1))).clamp(THREADS_MIN, THREADS_MAX);
    let only = only.filter(|tids| (1..=ONLY_MAX).contains(&tids.len()));
    let of_these = |tids: &[i32]| tids.iter().map(|tid| format!("common_pid == {tid}")).collect::<Vec<_>>().join(" || ");
    let of_these = only.map(|tids| format!("({})", of_these(tids)));
    let trigger = |end: &str, call: &str, what: &str, if_failed: bool| {
        let filter: Vec<&str> = of_these.as_deref().into_iter().chain(if_failed.then_some("ret < 0")).collect();
        let filter = if filter.is_empty() { String::new() } else { format!(" if {}", filter.join(" && ")) };
        Trigger {
            event: EventName { subsystem: SYSCALLS.to_owned(), name: format!("sys_{end}_{call}") },
            line: format!("hist:keys=common_pid:{what}:size={room}{filter}"),
        }
    };
    let of_call = |Paths { call, fields, if_failed }: &Paths| {
        let numbered = || fields.iter().enumerate();
        let kept: Vec<String> = numbered().map(|(n, field)| format!("path{n}={field}")).collect();
        let given = numbered().map(|(n, _)| format!("onmatch({SYSCALLS}.sys_enter_{call}).trace({synthetic},$path{n})"));
        let given: Vec<String> = given.collect();
        [trigger("enter", call, &kept.join(","), false), trigger("exit", call, &given.join(":"), *if_failed)]
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
    fn the_triggers_are_the_kernels_own_language() {
        let calls = [
            Paths { call: "openat", fields: vec!["filename".into()], if_failed: false },
            Paths { call: "rename", fields: vec!["oldname".into(), "newname".into()], if_failed: false },
        ];
        let told: Vec<String> = triggers(&calls, "rtrace_1_2__x", None).iter().map(|t| format!("{} {}", t.event, t.line)).collect();
        assert_eq!(
            told,
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
    fn few_threads_are_named_and_many_calls_share_the_room() {
        let calls = vec![Paths { call: "execve", fields: vec!["filename".into()], if_failed: true }; 60];
        let lines = |only: Option<&[i32]>| triggers(&calls, "x", only).into_iter().map(|trigger| trigger.line).take(2).collect::<Vec<_>>();
        let two = lines(Some(&[7, 8]));
        assert_eq!(two[0], "hist:keys=common_pid:path0=filename:size=2048 if (common_pid == 7 || common_pid == 8)");
        assert!(two[1].ends_with(".trace(x,$path0):size=2048 if (common_pid == 7 || common_pid == 8) && ret < 0"), "{}", two[1]);
        for many in [lines(Some(&[7; 17])), lines(Some(&[])), lines(None)] {
            assert!(many[0].ends_with(":size=2048") && many[1].ends_with(":size=2048 if ret < 0"), "{many:?}");
        }
    }

    #[test]
    fn arguments_that_are_paths_in_any_variant() {
        assert_eq!(path_args(row("openat")), [1]);
        assert_eq!(path_args(row("renameat2")), [1, 3]);
        assert!(!path_args(row("fsconfig")).is_empty());
        assert!(path_args(row("read")).is_empty());
    }

    #[test]
    fn fields_are_found_behind_the_number() {
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
