//! Adds the events of the kernel that show requests of io_uring.

use super::events::{EventAdder, Tracepoint};
use crate::beauty::lookup::{self, requests};
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

/// Returns the requests that concern the BPF programs. They read the arguments of the selected requests, if lines are
/// shown. If no request is selected, they count those that do the same as a selected syscall.
pub fn by_bpf(selection: &Selection, mode: Mode, tracefs: &Tracefs) -> bpf::Requests {
    let [name, old_name, _] = SUBMITTED.map(|name| tracefs.has("io_uring", name));
    let (mut opcodes, mut counted) = (Vec::new(), Vec::new());
    match selection.has_requests() {
        _ if !(name || old_name) => {}
        true if mode == Mode::Summary => {}
        true => opcodes.extend((0..=u8::MAX).zip(&selection.requests).filter(|(_, by)| !by.is_empty()).map(|(opcode, _)| opcode)),
        false => counted.extend((0..=u8::MAX).filter(|opcode| does_the_same(selection, (*opcode).into()))),
    }
    bpf::Requests { opcodes, counted, old_name: !name }
}

/// Returns whether a request does the same as a selected syscall. One that has no row may do so if all are selected.
fn does_the_same(selection: &Selection, opcode: u16) -> bool {
    let is_selected = |name: &&str| lookup::index_by_name(name).is_some_and(|row| selection.rows.get(usize::from(row)) == Some(&true));
    requests::request(opcode).map_or(selection.unknown, |row| row.twins.iter().any(is_selected))
}

/// Returns the names of the requests that are not selected, if any are selected.
pub fn others(selection: &Selection) -> Vec<String> {
    let all = if selection.has_requests() { &selection.requests[..] } else { &[] };
    (0..).zip(all).filter(|(_, selected_by)| selected_by.is_empty()).map(|(opcode, _)| requests::name(opcode)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables::SYSCALLS;
    use crate::request::select;

    #[test]
    fn requests_that_do_the_same_as_selected_syscalls_are_counted() {
        let counted = |items: &str| -> Vec<String> {
            let items = select::parse_list(items, 0).unwrap();
            let selection = select::resolve(&items, None, SYSCALLS, &[]).unwrap();
            (0..=u16::from(u8::MAX)).filter(|opcode| does_the_same(&selection, *opcode)).map(requests::name).collect()
        };
        assert_eq!(counted("openat,pread64"), ["read_fixed", "openat", "read", "read_multishot"]);
        assert_eq!(counted("getppid"), [""; 0]);
        let all = counted("!close");
        assert!(["openat", "write", "op_250"].iter().all(|name| all.iter().any(|one| one == name)), "{all:?}");
        assert!(["nop", "close", "timeout"].iter().all(|name| all.iter().all(|one| one != name)), "{all:?}");
    }
}
