//! Path names from a probe in the kernel, and the calls and arguments that they belong to.
//!
//! A name is added to the task's open call only if no gap since the entry makes it possible that this call has ended.
//! If the probe records the address that the name was copied from, the name belongs to every path argument with that
//! address. Otherwise only calls with one path get a name: which of two paths is copied first differs between kernels
//! (`rename`). If the argument is not certain, it remains an address.
//!
//! A name that is read at the call's return has its record shortly before or after that of the exit: the order depends
//! on which of the two the kernel calls first, and so on which was enabled first. So a completed call waits for the
//! name, until its task makes another call. Memory that the call itself may have overwritten, as readlink does if both
//! arguments are the same buffer, is not taken as a name.

use super::{Follower, RecordContext};
use crate::beauty::lookup;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{Arg, ArgumentKind, Flow, Length};
use crate::event::{Abi, Call, Event, ExitState, PieceState, Time};
use crate::syscall::behavior::Behavior;
use crate::syscall::gaps::{GapMark, Gaps};
use crate::syscall::layout::add_piece;
use crate::syscall::path_name::{PathName, PathNameLayout};
use crate::task::fds::Ticket;
use crate::task::tasks::Slot;
use std::collections::VecDeque;

/// The longest time that a call waits for its names, in nanoseconds of the stream's time. The task may have been
/// preempted between the two records.
const WAIT_MAX: u64 = 100_000_000;

/// Completed calls that wait for names, the oldest first; at most one per task.
#[derive(Debug, Default)]
pub(super) struct UnnamedCalls(VecDeque<UnnamedCall>);

#[derive(Clone, Copy, Debug)]
struct UnnamedCall {
    slot: Slot,
    ticket: Ticket,
    /// Bit i: argument i is a path.
    paths: u8,
    /// The gap counters at the call's exit.
    mark: GapMark,
    end: Time,
}

impl UnnamedCalls {
    fn position(&self, slot: Slot) -> Option<usize> {
        self.0.iter().position(|call| call.slot == slot)
    }
}

/// Returns the path arguments of a completed call whose names are read at the exit and have not arrived.
pub(super) fn missing_names(call: &Call, behavior: &Behavior) -> u8 {
    let failed = matches!(call.exit, ExitState::Returned { ret: ..0, .. });
    // No names are read for 32-bit programs, whose calls the events of single syscalls do not record, nor after an
    // execve has replaced the memory.
    match call.abi == Abi::I386 || behavior.special.path_argument().is_some() && !failed {
        true => 0,
        false => unread_paths(call, behavior.paths),
    }
}

fn unread_paths(call: &Call, paths: u8) -> u8 {
    (0..6).filter(|arg| paths & 1 << arg != 0 && !is_known(call, *arg)).map(|arg| 1 << arg).sum()
}

impl Follower {
    pub(super) fn path_name(&mut self, context: RecordContext, layout: PathNameLayout, raw: &[u8], events: &mut Vec<Event>) {
        let Some(name) = layout.read(raw) else { return };
        let mark = self.gaps.mark(context.cpu);
        match self.threads[context.slot.index()].open.as_mut() {
            Some(open) if Gaps::can_pair(open.mark, open.call.id.start, mark, context.time) => {
                add_name(&mut open.call, open.behavior.paths, name, layout.at_exit);
            }
            None if layout.at_exit => self.late_name(context, mark, name, events),
            _ => {}
        }
    }

    /// Handles a name of a completed call.
    fn late_name(&mut self, context: RecordContext, mark: GapMark, name: PathName, events: &mut Vec<Event>) {
        let Some(at) = self.unnamed_calls.position(context.slot) else { return };
        let Some(&UnnamedCall { ticket, paths, mark: of_exit, end, .. }) = self.unnamed_calls.0.get(at) else { return };
        let Some(call) = self.outbox.call(ticket) else { return };
        if !Gaps::can_pair(of_exit, end, mark, context.time) {
            return;
        }
        add_name(call, paths, name, true);
        if unread_paths(call, paths) == 0 {
            self.unnamed_calls.0.remove(at);
            self.outbox.release_one(ticket, events);
        }
    }

    /// Makes a completed call wait for the names of these arguments.
    pub(super) fn await_names(&mut self, context: RecordContext, paths: u8, ticket: Ticket) {
        let mark = self.gaps.mark(context.cpu);
        self.unnamed_calls.0.push_back(UnnamedCall { slot: context.slot, ticket, paths, mark, end: context.time });
    }

    /// Releases the call that waits for names, because its task makes another call.
    pub(super) fn release_unnamed(&mut self, slot: Slot, events: &mut Vec<Event>) {
        if let Some(call) = self.unnamed_calls.position(slot).and_then(|at| self.unnamed_calls.0.remove(at)) {
            self.outbox.release_one(call.ticket, events);
        }
    }

    /// Releases the calls that have waited too long.
    pub(super) fn expire_unnamed(&mut self, events: &mut Vec<Event>) {
        while let Some(call) = self.unnamed_calls.0.front().filter(|call| self.now.since(call.end) > WAIT_MAX) {
            self.outbox.release_one(call.ticket, events);
            self.unnamed_calls.0.pop_front();
        }
    }
}

/// Adds a name to its arguments, among those with their bit in `paths`.
fn add_name(call: &mut Call, paths: u8, mut name: PathName, at_exit: bool) {
    let Some(args) = call.args else { return };
    let mask = if call.abi == Abi::I386 { u64::from(u32::MAX) } else { u64::MAX };
    let points_there = |arg: u8| paths & 1 << arg != 0 && args.get(usize::from(arg)).is_some_and(|at| Some(at & mask) == name.address);
    let found: u8 = match name.address {
        Some(_) => (0..6).filter(|arg| points_there(*arg)).map(|arg| 1 << arg).sum(),
        // The first name is the argument. Later ones can be copies of it, or other names.
        None if paths.count_ones() == 1 && !is_known(call, paths.trailing_zeros() as u8) => paths,
        None => 0,
    };
    if at_exit && may_be_overwritten(call, &name) {
        (name.bytes, name.state) = (b"", PieceState::Fault);
    }
    for arg in (0..6).filter(|arg| found & 1 << arg != 0) {
        // Two arguments have the same address, and the memory changed between the two reads, so it is not known which
        // name belongs to which.
        let is_doubtful =
            found.count_ones() > 1 && is_known(call, arg) && call.piece(usize::from(arg)).is_some_and(|p| call.bytes(p) != name.bytes);
        if name.state == PieceState::Fault && call.piece(usize::from(arg)).is_some() {
            continue;
        }
        call.pieces.retain(|piece| piece.arg != arg);
        match is_doubtful || name.state == PieceState::Fault {
            true => add_piece(call, arg, 0, b"", PieceState::Fault),
            false => add_piece(call, arg, name.bytes.len() as u64 + u64::from(name.state == PieceState::Ok), name.bytes, name.state),
        }
    }
}

/// Returns whether a probe has recorded this argument already.
fn is_known(call: &Call, arg: u8) -> bool {
    call.piece(usize::from(arg)).is_some_and(|piece| !matches!(piece.state, PieceState::Altered { .. }))
}

/// Returns whether the call itself has, or may have, overwritten the memory of this name.
fn may_be_overwritten(call: &Call, name: &PathName) -> bool {
    let (Some(args), Some(row), Some(begin)) = (call.args, lookup::row(call.abi, call.nr), name.address) else { return false };
    let end = begin.saturating_add(name.bytes.len() as u64 + 1);
    let signature = row.signature_of(&args);
    signature.args.iter().enumerate().filter(|(_, arg)| arg.flow != Flow::In).any(|(at, arg)| {
        let start = signature.word(at, call.abi).map_or(0, |word| word.raw(&args));
        start < end && begin < start.saturating_add(bytes_written(call.abi, &args, &signature, at, arg))
    })
}

/// Returns the maximum number of bytes that the kernel writes through the argument at `at`.
fn bytes_written(abi: Abi, args: &[u64; 6], signature: &Signature, at: usize, arg: &Arg) -> u64 {
    let count = match arg.length {
        // The next argument limits the return value.
        Length::Ret => signature.word(at + 1, abi).map(|room| room.unsigned(args)),
        _ => signature.length(at, abi, args, None),
    };
    match (arg.kind, count) {
        (ArgumentKind::Struct(of), Some(count)) => of.bytes(count, abi),
        (ArgumentKind::Struct(of), None) => u64::from(of.sizes[abi as usize]),
        (ArgumentKind::StructArray(of), count) => count.unwrap_or(1).saturating_mul(u64::from(of.sizes[abi as usize])),
        (ArgumentKind::Number { bytes, .. }, count) => count.unwrap_or(1).saturating_mul(u64::from(bytes)),
        (_, count) => count.unwrap_or(size_of::<u64>() as u64),
    }
}
