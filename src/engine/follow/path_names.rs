//! Path names that a probe in the kernel saw: which argument of which call each is.
//!
//! A name belongs to the call that its task is in, if that is certain: no gap since the entry, where the entry could be of an older call. Where the probe says from which address the
//! name was copied, it is that of every path argument that points there. Where it does not say, only a call with one path has a name: which of two is copied first differs
//! from kernel to kernel (`rename`). What is not certain stays an address.
//!
//! A name that is read when a call returns comes a moment before or after the record of the exit: whose part of the kernel is called first there is decided by who switched it on first. So a call
//! that is over waits for it, until its task makes another call. What may have been written over by the call itself, as readlink does with one buffer for both, is no name.

use super::{Follower, Here};
use crate::beauty::lookup;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{Arg, Flow, Kind, Length};
use crate::event::{Abi, Call, Event, Exit, PieceState, Time};
use crate::syscall::behavior::Behavior;
use crate::syscall::gaps::{Gaps, Mark};
use crate::syscall::layout::{PathName, PathNameLayout, add_piece};
use crate::task::fds::Ticket;
use crate::task::tasks::Slot;
use std::collections::VecDeque;

/// No call waits longer for its names, nanoseconds of the stream's time: its task may have been kept from the CPU between the two records.
const WAIT_MAX: u64 = 100_000_000;

/// Calls that are over and whose names are still to come, the oldest first; one a task.
#[derive(Debug, Default)]
pub(super) struct Unnamed(VecDeque<UnnamedCall>);

#[derive(Clone, Copy, Debug)]
struct UnnamedCall {
    slot: Slot,
    ticket: Ticket,
    /// Bit i: argument i is a path.
    paths: u8,
    /// Of its exit.
    mark: Mark,
    end: Time,
}

impl Unnamed {
    fn position(&self, slot: Slot) -> Option<usize> {
        self.0.iter().position(|call| call.slot == slot)
    }
}

/// The paths of a call that is over whose names are read at the exit and did not come yet.
pub(super) fn unknown(call: &Call, behavior: &Behavior) -> u8 {
    let failed = matches!(call.exit, Exit::Returned { ret: ..0, .. });
    // Nothing is read for programs of 32 bits, whose calls the events of single calls do not see, nor where a new program has taken the memory's place.
    match call.abi == Abi::I386 || behavior.special.path_argument().is_some() && !failed {
        true => 0,
        false => not_known(call, behavior.paths),
    }
}

fn not_known(call: &Call, paths: u8) -> u8 {
    (0..6).filter(|arg| paths & 1 << arg != 0 && !is_known(call, *arg)).map(|arg| 1 << arg).sum()
}

impl Follower {
    pub(super) fn path_name(&mut self, here: Here, layout: PathNameLayout, raw: &[u8], events: &mut Vec<Event>) {
        let Some(name) = layout.read(raw) else { return };
        let mark = self.gaps.mark(here.cpu);
        match self.threads[here.slot.index()].open.as_mut() {
            Some(open) if Gaps::joins(open.mark, open.call.id.start, mark, here.time) => {
                add_name(&mut open.call, open.behavior.paths, name, layout.at_exit);
            }
            None if layout.at_exit => self.late_name(here, mark, name, events),
            _ => {}
        }
    }

    /// A name of a call that is over.
    fn late_name(&mut self, here: Here, mark: Mark, name: PathName, events: &mut Vec<Event>) {
        let Some(at) = self.unnamed.position(here.slot) else { return };
        let Some(&UnnamedCall { ticket, paths, mark: of_exit, end, .. }) = self.unnamed.0.get(at) else { return };
        let Some(call) = self.outbox.call(ticket) else { return };
        if !Gaps::joins(of_exit, end, mark, here.time) {
            return;
        }
        add_name(call, paths, name, true);
        if not_known(call, paths) == 0 {
            self.unnamed.0.remove(at);
            self.outbox.release_one(ticket, events);
        }
    }

    /// A call that is over waits for the names of these arguments.
    pub(super) fn await_names(&mut self, here: Here, paths: u8, ticket: Ticket) {
        let mark = self.gaps.mark(here.cpu);
        self.unnamed.0.push_back(UnnamedCall { slot: here.slot, ticket, paths, mark, end: here.time });
    }

    /// A task makes another call: what has no name by now will not have one.
    pub(super) fn no_names_come(&mut self, slot: Slot, events: &mut Vec<Event>) {
        if let Some(call) = self.unnamed.position(slot).and_then(|at| self.unnamed.0.remove(at)) {
            self.outbox.release_one(call.ticket, events);
        }
    }

    /// Gives the calls that waited too long.
    pub(super) fn give_unnamed(&mut self, events: &mut Vec<Event>) {
        while let Some(call) = self.unnamed.0.front().filter(|call| self.now.since(call.end) > WAIT_MAX) {
            self.outbox.release_one(call.ticket, events);
            self.unnamed.0.pop_front();
        }
    }
}

/// Adds a name to the arguments that it is of, out of those with their bit in `paths`.
fn add_name(call: &mut Call, paths: u8, mut name: PathName, at_exit: bool) {
    let Some(args) = call.args else { return };
    let mask = if call.abi == Abi::I386 { u64::from(u32::MAX) } else { u64::MAX };
    let points_there = |arg: u8| paths & 1 << arg != 0 && args.get(usize::from(arg)).is_some_and(|at| Some(at & mask) == name.address);
    let found: u8 = match name.address {
        Some(_) => (0..6).filter(|arg| points_there(*arg)).map(|arg| 1 << arg).sum(),
        // The first is the argument; what comes after it may be the same once more, or anything.
        None if paths.count_ones() == 1 && !is_known(call, paths.trailing_zeros() as u8) => paths,
        None => 0,
    };
    if at_exit && may_be_overwritten(call, &name) {
        (name.bytes, name.state) = (b"", PieceState::Fault);
    }
    for arg in (0..6).filter(|arg| found & 1 << arg != 0) {
        // Two arguments with one address, and what stands there changed between the two: which had which is not known.
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

/// Whether a probe told of this argument before.
fn is_known(call: &Call, arg: u8) -> bool {
    call.piece(usize::from(arg)).is_some_and(|piece| !matches!(piece.state, PieceState::Altered { .. }))
}

/// Whether the call itself wrote, or may have written, where this name stands.
fn may_be_overwritten(call: &Call, name: &PathName) -> bool {
    let (Some(args), Some(row), Some(begin)) = (call.args, lookup::row(call.abi, call.nr), name.address) else { return false };
    let end = begin.saturating_add(name.bytes.len() as u64 + 1);
    let signature = row.signature_of(&args);
    signature.args.iter().enumerate().filter(|(_, arg)| arg.flow != Flow::In).any(|(at, arg)| {
        let start = signature.word(at, call.abi).map_or(0, |word| word.raw(&args));
        start < end && begin < start.saturating_add(bytes_written(call.abi, &args, &signature, at, arg))
    })
}

/// So many bytes at most does the kernel write through the argument at `at`.
fn bytes_written(abi: Abi, args: &[u64; 6], signature: &Signature, at: usize, arg: &Arg) -> u64 {
    let count = match arg.length {
        // What it may return at most stands behind it.
        Length::Ret => signature.word(at + 1, abi).map(|room| room.unsigned(args)),
        _ => signature.length(at, abi, args, None),
    };
    match (arg.kind, count) {
        (Kind::Struct(of), Some(count)) => of.bytes(count, abi),
        (Kind::Struct(of), None) => u64::from(of.sizes[abi as usize]),
        (Kind::StructArray(of), count) => count.unwrap_or(1).saturating_mul(u64::from(of.sizes[abi as usize])),
        (Kind::Number { bytes, .. }, count) => count.unwrap_or(1).saturating_mul(u64::from(bytes)),
        (_, count) => count.unwrap_or(size_of::<u64>() as u64),
    }
}
