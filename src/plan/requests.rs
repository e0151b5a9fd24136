//! Adds the events of the kernel that show requests of io_uring.

use super::events::{EventAdder, Tracepoint};
use crate::beauty::lookup::requests;
use crate::bpf;
use crate::kernel::tracefs::Tracefs;
use crate::request::select::Selection;
use crate::session::Role;
use crate::show::Mode;
use anyhow::anyhow;

/// The events that show submissions. Linux 6.3 has renamed the first; the kernel writes the last one instead of it for
/// a request that it refuses.
const SUBMITTED: [&str; 3] = ["io_uring_submit_req", "io_uring_submit_sqe", "io_uring_req_failed"];
/// The events that show completions: in the ring, and where the ring has no room for them.
const COMPLETED: [&str; 2] = ["io_uring_complete", "io_uring_cqe_overflow"];

/// Adds the events.
///
/// # Errors
/// This kernel does not have them.
pub fn add(add: &mut EventAdder) -> anyhow::Result<()> {
    let submitted = SUBMITTED.iter().map(|name| (*name, Role::RequestSubmitted));
    let completed = COMPLETED.iter().map(|name| (*name, Role::RequestCompleted));
    let canceled = [("io_uring_fail_link", Role::RequestCanceled)];
    let (before, tracefs) = (add.events.len(), add.tracefs);
    for (name, role) in submitted.chain(completed).chain(canceled).filter(|(name, _)| tracefs.has("io_uring", name)) {
        // The kernel counts what begins here as it counts the entries of calls.
        let shown = role == Role::RequestSubmitted;
        add.tracepoint(Tracepoint { shown, ..Tracepoint::helper("io_uring", name, role) })?;
    }
    let has = |role: Role| add.events[before..].iter().any(|event| event.spec.role == role);
    match has(Role::RequestSubmitted) && has(Role::RequestCompleted) {
        true => Ok(()),
        false => Err(anyhow!("this kernel has no events of io_uring, so its requests cannot be traced (`rtrace check` says what it has)")),
    }
}

/// Returns the requests whose arguments the BPF programs read: the selected ones, if lines are shown.
pub fn with_arguments(selection: &Selection, mode: Mode, tracefs: &Tracefs) -> bpf::Requests {
    let [name, old_name, _] = SUBMITTED.map(|name| tracefs.has("io_uring", name));
    if mode == Mode::Summary || !(name || old_name) {
        return bpf::Requests::default();
    }
    let selected = (0..=u8::MAX).zip(&selection.requests).filter(|(_, by)| !by.is_empty());
    bpf::Requests { opcodes: selected.map(|(opcode, _)| opcode).collect(), old_name: !name }
}

/// Returns the names of the requests that are not selected, if any are selected.
pub fn others(selection: &Selection) -> Vec<String> {
    let all = if selection.has_requests() { &selection.requests[..] } else { &[] };
    (0..).zip(all).filter(|(_, selected_by)| selected_by.is_empty()).map(|(opcode, _)| requests::name(opcode)).collect()
}
