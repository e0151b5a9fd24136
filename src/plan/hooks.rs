//! Whether the BPF programs can be on the `syscalls:` events of the calls that are wanted, and which these are.

use crate::beauty::row::Syscall;
use crate::bpf::{self, OwnEvents};
use crate::kernel::machine::{self, NATIVE_ABI};
use crate::kernel::tracefs::Tracefs;
use crate::request::select::Selection;
use crate::sys::lent;
use crate::syscall::special::Special;

/// From here on the kernel counts how often it skipped a program on an event (trace_call_bpf() in kernel/trace/bpf_trace.c): before, a call could be missing without a trace.
const COUNTS_SKIPPED: (u32, u32) = (6, 7);

/// The events of these calls.
///
/// # Errors
/// Why there would be calls that they do not show.
pub fn own(armed: &[&'static Syscall], selection: &Selection, tracefs: &Tracefs) -> Result<Vec<OwnEvents>, &'static str> {
    if lent::is_lent() {
        return Err("rtrace gives up its privileges before it can know of a 32-bit program, which takes more programs");
    }
    let version = machine::release().ok().and_then(|release| machine::version(&release));
    if version.is_none_or(|version| version < COUNTS_SKIPPED) {
        return Err("this kernel does not count the programs that it skips on events of single syscalls (6.7 does)");
    }
    if bpf::may_be_interrupted() {
        return Err("this kernel may interrupt programs on events of single syscalls, and skips them for others meanwhile");
    }
    if armed.iter().any(|call| call.does == Special::SigReturn) {
        return Err("the return of rt_sigreturn has no event of its own");
    }
    if !selection.others.is_empty() {
        return Err("some syscalls asked for have no events of their own");
    }
    let id = |kind: &str, call: &Syscall| tracefs.id("syscalls", &format!("sys_{kind}_{}", call.event));
    let native = armed.iter().filter(|call| call.numbers[NATIVE_ABI as usize].is_some());
    let events = native.map(|call| Ok(OwnEvents { enter: id("enter", call)?, exit: id("exit", call)? }));
    let events: Result<Vec<OwnEvents>, crate::kernel::tracefs::EventError> = events.collect();
    match events {
        Ok(events) if events.len() == armed.len() => Ok(events),
        _ => Err("some syscalls asked for have no events of their own"),
    }
}
