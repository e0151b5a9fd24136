//! Finds the calls from which nothing follows for later records, so that a reader may pass over them.

use super::pieces::{ARG_FILE, ARG_PARTS, PIECE_BYTES};
use super::{ABI, CallRecord, RecordKind};
use crate::syscall::stateless::is_stateless;

/// In a piece: the offsets of its length and of its argument.
const LENGTH: usize = 16;
const ARG: usize = 20;

/// Returns whether a record is that of a call from which nothing follows: it has returned, no record of its task was
/// lost before, it names no file for the first time, has no parts in other records, and has no effect on what rtrace
/// follows.
pub fn is_plain(raw: &[u8]) -> bool {
    let Some(call) = CallRecord::parse(raw) else { return false };
    let is_usual = raw.get(super::BITS).is_some_and(|bits| bits & !ABI == 0);
    is_usual && call.kind == RecordKind::Returned && call.lost == 0 && is_stateless(call.abi, call.nr) && has_plain_pieces(call.pieces)
}

fn has_plain_pieces(mut pieces: &[u8]) -> bool {
    while let Some((head, behind)) = pieces.split_first_chunk::<PIECE_BYTES>() {
        let length = u32::from_le_bytes([head[LENGTH], head[LENGTH + 1], head[LENGTH + 2], head[LENGTH + 3]]) as usize;
        // A file has a name only where its task uses it for the first time.
        if head[ARG] == ARG_PARTS || head[ARG] & ARG_FILE != 0 && length > 0 {
            return false;
        }
        let Some(rest) = behind.get(length.next_multiple_of(8)..) else { return false };
        pieces = rest;
    }
    pieces.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{piece_bytes, returned, written};
    use super::*;

    #[test]
    fn a_call_with_an_effect_on_others_is_not_plain() {
        // read(2), and openat(2)
        let (read, open) = (returned(7, 0, 5, 9), returned(7, 257, 5, 9));
        let known = [piece_bytes(1, 1, b"x", [1, 1, 0]), piece_bytes(0, 12, b"", [0x80, 0, 0])].concat();
        assert!(is_plain(&written(&read, &known)) && is_plain(&written(&read, b"")));
        assert!(!is_plain(&written(&open, &known)), "it returns a descriptor");
        assert!(!is_plain(&written(&read, &piece_bytes(0, 12, b"its name", [0x80, 0, 0]))), "it names a file");
        assert!(!is_plain(&written(&read, &piece_bytes(0, 2, b"", [ARG_PARTS, 0, 0]))), "it has parts");
        for other in [
            CallRecord { kind: RecordKind::Never, ..read },
            CallRecord { lost: 1, ..read },
            CallRecord { shown: true, ..read },
            CallRecord { no_entry: true, ..read },
        ] {
            assert!(!is_plain(&written(&other, b"")), "{other:?}");
        }
        assert!(!is_plain(&written(&read, b"")[..90]));
    }
}
