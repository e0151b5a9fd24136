//! Path names that a probe in the kernel saw being copied: which argument of which call each is.
//!
//! A name belongs to the call that its task is in, if that is certain: no gap since the entry, where the entry could be of an older call. Where the probe says from which address the
//! name was copied, it is that of every path argument that points there. Where it does not say, only a call with one path has a name: which of two is copied first differs
//! from kernel to kernel (`rename`). What is not certain stays an address.

use super::{Follower, Here};
use crate::event::{Abi, Call, PieceState};
use crate::syscall::gaps::Gaps;
use crate::syscall::layout::{PathName, PathNameLayout, add_piece};

impl Follower {
    pub(super) fn path_name(&mut self, here: Here, layout: PathNameLayout, raw: &[u8]) {
        let Some(name) = layout.read(raw) else { return };
        let mark = self.gaps.mark(here.cpu);
        let Some(open) = self.threads[here.slot.index()].open.as_mut() else { return };
        if Gaps::joins(open.mark, open.call.id.start, mark, here.time) {
            add_name(&mut open.call, open.behavior.paths, name);
        }
    }
}

/// Adds a name to the arguments that it is of, out of those with their bit in `paths`.
fn add_name(call: &mut Call, paths: u8, name: PathName) {
    let Some(args) = call.args else { return };
    let mask = if call.abi == Abi::I386 { u64::from(u32::MAX) } else { u64::MAX };
    let points_there = |arg: u8| paths & 1 << arg != 0 && args.get(usize::from(arg)).is_some_and(|at| Some(at & mask) == name.address);
    let found: u8 = match name.address {
        Some(_) => (0..6).filter(|arg| points_there(*arg)).map(|arg| 1 << arg).sum(),
        // The first is the argument; what comes after it may be the same once more, or anything.
        None if paths.count_ones() == 1 && !is_known(call, paths.trailing_zeros() as u8) => paths,
        None => 0,
    };
    for arg in (0..6).filter(|arg| found & 1 << arg != 0) {
        let state = if name.whole { PieceState::Ok } else { PieceState::Cut };
        // Two arguments with one address, and what stands there changed between the two: which had which is not known.
        let is_doubtful =
            found.count_ones() > 1 && is_known(call, arg) && call.piece(usize::from(arg)).is_some_and(|p| call.bytes(p) != name.bytes);
        call.pieces.retain(|piece| piece.arg != arg);
        match is_doubtful {
            true => add_piece(call, arg, 0, b"", PieceState::Fault),
            false => add_piece(call, arg, name.bytes.len() as u64 + u64::from(name.whole), name.bytes, state),
        }
    }
}

/// Whether a probe told of this argument before.
fn is_known(call: &Call, arg: u8) -> bool {
    call.piece(usize::from(arg)).is_some_and(|piece| !matches!(piece.state, PieceState::Altered { .. }))
}
