//! By which tracepoints syscalls are seen, and the kernel's filters for it.

use crate::beauty::row::Syscall;
use crate::event::Abi;
use crate::kernel::tracefs::Tracefs;

/// Up to so many syscalls arm their own events. Each costs two events on every CPU and target, and a switch between traced tasks pays for each (some 60 ns); a filter on
/// `raw_syscalls` costs every other call 107-121 ns where an unarmed `syscalls:` event costs 17.
const OWN_EVENTS_MAX: usize = 16;

/// The way syscalls are seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// No syscalls are traced.
    None,
    /// `syscalls:sys_enter_X` and `sys_exit_X` of each.
    OwnEvents { why: String },
    /// All calls: `raw_syscalls:sys_enter` and `sys_exit`, with a filter by number unless all are wanted; or the BPF programs there.
    Raw { why: String },
}

/// What the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// There are `syscalls:` events; if not, why.
    pub own_events: Result<(), &'static str>,
    /// A 32-bit program is among the targets: `syscalls:` events never see its calls.
    pub compat: bool,
    /// Frames of the kernel are wanted and no BPF programs are there: the `syscalls:` events know only where user space was.
    pub kernel_frames: bool,
}

/// Whether syscalls have events of their own here.
///
/// # Errors
/// Why they have none.
pub fn own_events(tracefs: &Tracefs) -> Result<(), &'static str> {
    if tracefs.has("syscalls", "sys_enter_read") {
        return Ok(());
    }
    Err(match tracefs.why_absent() {
        Some(_) => "the syscalls: events cannot be found without tracefs",
        None => "this kernel has no syscalls: events (CONFIG_FTRACE_SYSCALLS)",
    })
}

/// Chooses for this many armed syscalls, of all that there are.
pub fn choose(armed: &[&'static Syscall], everything: bool, facts: Facts) -> Mechanism {
    let n = armed.len();
    if n == 0 {
        return Mechanism::None;
    }
    let why = if everything {
        "all syscalls are wanted".to_owned()
    } else if let Err(why) = facts.own_events {
        why.to_owned()
    } else if facts.compat {
        "a 32-bit program is traced, whose calls the syscalls: events do not see".to_owned()
    } else if facts.kernel_frames {
        "frames of the kernel are wanted, which the syscalls: events do not have".to_owned()
    } else if n > OWN_EVENTS_MAX {
        format!("{n} syscalls are more than pay for events of their own ({OWN_EVENTS_MAX})")
    } else {
        return Mechanism::OwnEvents {
            why: format!("{n} of all syscalls have events of their own, so that the others pass almost untouched"),
        };
    };
    Mechanism::Raw { why }
}

/// The numbers by which `raw_syscalls` knows these calls.
fn numbers(armed: &[&'static Syscall], native: Abi, compat: bool) -> Vec<u32> {
    let abis: &[Abi] = match (native, compat) {
        (Abi::X86_64, true) => &[Abi::X86_64, Abi::I386],
        (Abi::X86_64, false) => &[Abi::X86_64],
        (Abi::Aarch64, _) => &[Abi::Aarch64],
        (Abi::I386 | Abi::X32, _) => &[Abi::I386],
    };
    let mut numbers: Vec<u32> = armed.iter().flat_map(|s| abis.iter().filter_map(|&abi| s.numbers[abi as usize])).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The filter for `raw_syscalls:sys_enter` (and, with `exit`, `sys_exit`) that lets only these calls through.
pub fn raw_filter(armed: &[&'static Syscall], native: Abi, compat: bool, exit: bool) -> String {
    let test = |(first, last)| if first == last { format!("id == {first}") } else { format!("(id >= {first} && id <= {last})") };
    runs(armed, native, compat, exit).map(test).collect::<Vec<_>>().join(" || ")
}

/// The numbers by which the entries or exits of these calls are told, in runs.
fn runs(calls: &[&'static Syscall], native: Abi, compat: bool, exit: bool) -> impl Iterator<Item = (i64, i64)> {
    let runs = ranges(&numbers(calls, native, compat)).into_iter().map(|(first, last)| (i64::from(first), i64::from(last)));
    // rt_sigreturn replaces the registers, and its exit has lost the number.
    let nameless = exit && calls.iter().any(|s| s.name == "rt_sigreturn");
    runs.chain(nameless.then_some((-1, -1)))
}

/// The filter for `raw_syscalls` that lets all but these calls through.
pub fn all_but(calls: &[&'static Syscall], native: Abi, compat: bool, exit: bool) -> String {
    let test = |(first, last)| if first == last { format!("id != {first}") } else { format!("(id < {first} || id > {last})") };
    runs(calls, native, compat, exit).map(test).collect::<Vec<_>>().join(" && ")
}

/// Runs of consecutive numbers.
fn ranges(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &n in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => ranges.push((n, n)),
        }
    }
    ranges
}

/// A filter that also leaves these threads out.
pub fn without(filter: Option<String>, tids: &[i32]) -> Option<String> {
    let out = tids.iter().map(|tid| format!("common_pid != {tid}")).collect::<Vec<_>>().join(" && ");
    match (filter, out.is_empty()) {
        (filter, true) => filter,
        (None, false) => Some(out),
        (Some(filter), false) => Some(format!("({filter}) && {out}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables::SYSCALLS;

    #[test]
    fn runs_of_numbers_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), [(0, 2), (5, 5), (7, 8)]);
        assert_eq!(ranges(&[]), []);
    }

    #[test]
    fn filters_for_calls_and_for_all_others() {
        let rows: Vec<&'static Syscall> =
            SYSCALLS.iter().filter(|row| ["read", "write", "close", "rt_sigreturn"].contains(&row.name)).collect();
        let (one, other) = (|exit| raw_filter(&rows, Abi::X86_64, false, exit), |exit| all_but(&rows, Abi::X86_64, false, exit));
        assert_eq!(one(false), "(id >= 0 && id <= 1) || id == 3 || id == 15");
        assert_eq!(other(false), "(id < 0 || id > 1) && id != 3 && id != 15");
        assert!(one(true).ends_with(" || id == -1") && other(true).ends_with(" && id != -1"));
        assert_eq!(raw_filter(&[], Abi::X86_64, false, true), "");
    }

    #[test]
    fn tasks_are_taken_out_of_any_filter() {
        assert_eq!(without(None, &[]), None);
        assert_eq!(without(None, &[7]).as_deref(), Some("common_pid != 7"));
        assert_eq!(
            without(Some("id == 1 || id == 2".into()), &[7, 8]).as_deref(),
            Some("(id == 1 || id == 2) && common_pid != 7 && common_pid != 8")
        );
    }
}
