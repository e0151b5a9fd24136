//! Chooses the tracepoints by which syscalls are traced, and makes the kernel's filters for them.

use crate::beauty::row::{Special, Syscall};
use crate::event::Abi;
use crate::kernel::tracefs::Tracefs;

/// The maximum number of syscalls that are traced by their own events. Each of them costs two events on every CPU and
/// for every target, and a switch between traced tasks takes about 60 ns for each event. A filter on `raw_syscalls`
/// costs every other call 107 to 121 ns, where an unarmed `syscalls:` event costs 17 ns.
const OWN_EVENTS_MAX: usize = 16;

/// How syscalls are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// No syscalls are traced.
    None,
    /// By the events `syscalls:sys_enter_X` and `sys_exit_X` of each traced syscall.
    OwnEvents { why: String },
    /// By `raw_syscalls:sys_enter` and `sys_exit`, with a filter by number unless all syscalls are traced; or by the
    /// BPF programs on the tracepoints of all calls.
    Raw { why: String },
}

/// The facts that the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct MechanismInputs {
    /// `Ok` if this kernel has `syscalls:` events, otherwise the reason why not.
    pub own_events: Result<(), &'static str>,
    /// Whether a target executes a 32-bit program: `syscalls:` events never fire for its calls.
    pub compat: bool,
    /// Whether kernel stacks are recorded without BPF programs: `syscalls:` events record only the user-space
    /// registers.
    pub kernel_frames: bool,
}

/// Checks that this kernel has `syscalls:` events.
///
/// # Errors
/// The reason why it has none, or why they cannot be found.
pub fn own_events(tracefs: &Tracefs) -> Result<(), &'static str> {
    // Every kernel has read(2), and a kernel that has an event for one syscall has events for all.
    if tracefs.has("syscalls", "sys_enter_read") {
        return Ok(());
    }
    Err(match tracefs.why_absent() {
        Some(_) => "the syscalls: events cannot be found without tracefs",
        None => "this kernel has no syscalls: events (CONFIG_FTRACE_SYSCALLS)",
    })
}

/// Chooses how the `armed` syscalls are traced; `everything` says that all syscalls are.
pub fn choose(armed: &[&'static Syscall], everything: bool, facts: MechanismInputs) -> Mechanism {
    let n = armed.len();
    if n == 0 {
        return Mechanism::None;
    }
    let why = if everything {
        "all syscalls are traced".to_owned()
    } else if let Err(why) = facts.own_events {
        why.to_owned()
    } else if facts.compat {
        "a 32-bit program is traced, for whose calls the syscalls: events do not fire".to_owned()
    } else if facts.kernel_frames {
        "kernel stacks are requested, which the syscalls: events do not have".to_owned()
    } else if n > OWN_EVENTS_MAX {
        format!("events of single syscalls are efficient for up to {OWN_EVENTS_MAX} syscalls, and {n} are traced")
    } else {
        return Mechanism::OwnEvents { why: format!("only {n} syscalls are traced, and the others are hardly slowed down") };
    };
    Mechanism::Raw { why }
}

/// Returns the numbers that these calls have in the records of `raw_syscalls`, sorted.
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

/// Returns the filter for `raw_syscalls:sys_enter` (with `exit`, for `sys_exit`) that matches only these calls.
pub fn raw_filter(armed: &[&'static Syscall], native: Abi, compat: bool, exit: bool) -> String {
    let test = |(first, last)| if first == last { format!("id == {first}") } else { format!("(id >= {first} && id <= {last})") };
    runs(armed, native, compat, exit).map(test).collect::<Vec<_>>().join(" || ")
}

/// Returns the ranges of numbers that the entries or exits of these calls have.
fn runs(calls: &[&'static Syscall], native: Abi, compat: bool, exit: bool) -> impl Iterator<Item = (i64, i64)> {
    let runs = ranges(&numbers(calls, native, compat)).into_iter().map(|(first, last)| (i64::from(first), i64::from(last)));
    // sigreturn(2) replaces the registers of the task, so that its exit has the number -1.
    let nameless = exit && calls.iter().any(|call| call.does == Special::SigReturn);
    runs.chain(nameless.then_some((-1, -1)))
}

/// Returns the filter for `raw_syscalls` that matches all but these calls.
pub fn all_but(calls: &[&'static Syscall], native: Abi, compat: bool, exit: bool) -> String {
    let test = |(first, last)| if first == last { format!("id != {first}") } else { format!("(id < {first} || id > {last})") };
    runs(calls, native, compat, exit).map(test).collect::<Vec<_>>().join(" && ")
}

/// Joins consecutive numbers to ranges.
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

/// Extends a filter so that it excludes these threads.
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
    fn consecutive_numbers_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), [(0, 2), (5, 5), (7, 8)]);
        assert_eq!(ranges(&[]), []);
    }

    #[test]
    fn filters_match_calls_or_all_others() {
        let rows: Vec<&'static Syscall> =
            SYSCALLS.iter().filter(|row| ["read", "write", "close", "rt_sigreturn"].contains(&row.name)).collect();
        let (one, other) = (|exit| raw_filter(&rows, Abi::X86_64, false, exit), |exit| all_but(&rows, Abi::X86_64, false, exit));
        assert_eq!(one(false), "(id >= 0 && id <= 1) || id == 3 || id == 15");
        assert_eq!(other(false), "(id < 0 || id > 1) && id != 3 && id != 15");
        assert!(one(true).ends_with(" || id == -1") && other(true).ends_with(" && id != -1"));
        assert_eq!(raw_filter(&[], Abi::X86_64, false, true), "");
    }

    #[test]
    fn threads_are_excluded_from_any_filter() {
        assert_eq!(without(None, &[]), None);
        assert_eq!(without(None, &[7]).as_deref(), Some("common_pid != 7"));
        assert_eq!(
            without(Some("id == 1 || id == 2".into()), &[7, 8]).as_deref(),
            Some("(id == 1 || id == 2) && common_pid != 7 && common_pid != 8")
        );
    }
}
