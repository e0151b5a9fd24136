//! Decides whether the BPF programs can be attached to the `syscalls:` events of the traced calls, and finds these
//! events.

use crate::beauty::row::Syscall;
use crate::bpf::{self, OwnEvents};
use crate::kernel::machine::{self, NATIVE_ABI};
use crate::kernel::tracefs::Tracefs;
use crate::request::select::Selection;
use crate::sys::file_capabilities;
use crate::syscall::special::Special;

/// The first kernel version that counts how often it skipped a program on an event (trace_call_bpf() in
/// kernel/trace/bpf_trace.c). On older kernels a call could be missing without any count of it.
const COUNTS_SKIPPED: (u32, u32) = (6, 7);

/// Returns the events of these calls.
///
/// # Errors
/// The reason why some calls would not be traced by such events.
pub fn own(armed: &[&'static Syscall], selection: &Selection, tracefs: &Tracefs) -> Result<Vec<OwnEvents>, &'static str> {
    if file_capabilities::are_present() {
        return Err("rtrace drops its privileges before a 32-bit program may start, which would need further BPF programs");
    }
    let version = machine::release().ok().and_then(|release| machine::version(&release));
    if version.is_none_or(|version| version < COUNTS_SKIPPED) {
        return Err("this kernel does not count the programs that it skips on events of single syscalls (6.7 does)");
    }
    if bpf::may_be_interrupted() {
        return Err("this kernel may preempt programs on events of single syscalls, and skips them for other tasks meanwhile");
    }
    if armed.iter().any(|call| call.does == Special::SigReturn) {
        return Err("the return of rt_sigreturn has no event of its own");
    }
    if !selection.others.is_empty() {
        return Err("some of the traced syscalls have no events of their own");
    }
    let id = |kind: &str, call: &Syscall| tracefs.id("syscalls", &format!("sys_{kind}_{}", call.event));
    let native = armed.iter().filter(|call| call.numbers[NATIVE_ABI as usize].is_some());
    let events = native.map(|call| Ok(OwnEvents { enter: id("enter", call)?, exit: id("exit", call)? }));
    let events: Result<Vec<OwnEvents>, crate::kernel::tracefs::EventError> = events.collect();
    match events {
        Ok(events) if events.len() == armed.len() => Ok(events),
        _ => Err("some of the traced syscalls have no events of their own"),
    }
}
