//! Decodes the pieces of a record: copied memory, files of descriptors, and translated pids and ids.

use super::files::RecordedFile;
use crate::event::{Call, Piece, PieceState, PieceTime};

/// `sizeof(struct piece)`.
pub const PIECE_BYTES: usize = 24;

/// `ARG_FILE`, `ARG_INSIDE` and `ARG_RETURN`.
pub(super) const ARG_FILE: u8 = 0x80;
pub(super) const ARG_INSIDE: u8 = 0x40;
pub(in crate::bpf) const ARG_RETURN: u8 = 6;
/// `ARG_NUMBER`
const ARG_NUMBER: u8 = 0x20;
/// `ARG_USER`
const ARG_USER: u8 = 0x10;

/// `ARG_PARTS`
pub(super) const ARG_PARTS: u8 = 0x40;

/// Adds the copied memory to a call, and passes on the files of its descriptors.
#[inline]
pub fn add_pieces<'a>(pieces: &'a [u8], call: &mut Call, mut each_file: impl FnMut(&mut Call, RecordedFile<'a>)) {
    let mut rest = pieces;
    while let Some((head, behind)) = rest.split_first_chunk::<PIECE_BYTES>() {
        let Some(piece) = piece(head, call.payload.len()) else { break };
        let length = piece.len as usize;
        let Some(bytes) = behind.get(..length) else { break };
        if piece.arg & ARG_FILE != 0 {
            if let Some(file) = RecordedFile::new(&piece, bytes) {
                each_file(call, file);
            }
        } else if head[23] != 0 {
            append_to_piece(call, &piece, bytes);
        } else if piece.arg & !7 == ARG_NUMBER {
            call.pids.add(piece.address as i32, piece.wanted as i32);
        } else if piece.arg & !7 == ARG_USER {
            call.ids.push((piece.arg & 7, piece.wanted as u32));
        } else if piece.arg != ARG_PARTS {
            call.payload.extend_from_slice(bytes);
            call.pieces.push(piece);
        }
        rest = behind.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
}

/// Appends bytes to the earlier piece that they continue. If that piece is missing because a record was lost, the bytes
/// are dropped.
fn append_to_piece(call: &mut Call, more: &Piece, bytes: &[u8]) {
    let ends_there = |piece: &Piece| {
        let is_same = piece.arg == more.arg && (piece.when == PieceTime::Exit) == (more.when == PieceTime::Exit);
        is_same && piece.address.wrapping_add(piece.len.into()) == more.address
    };
    let Some(at) = call.pieces.iter().rposition(ends_there) else { return };
    let mut piece = call.pieces[at];
    if (piece.start + piece.len) as usize != call.payload.len() {
        // Other pieces were added in between, so that the bytes are moved to the end.
        let (start, range) = (call.payload.len() as u32, piece.start as usize..(piece.start + piece.len) as usize);
        call.payload.extend_from_within(range);
        piece.start = start;
    }
    call.payload.extend_from_slice(bytes);
    piece.wanted = u64::from(piece.len).saturating_add(more.wanted);
    piece.len += more.len;
    piece.state = more.state;
    call.pieces[at] = piece;
}

/// Decodes the head of a piece whose bytes will be at `start` in the payload of the call.
pub(super) fn piece(head: &[u8; PIECE_BYTES], start: usize) -> Option<Piece> {
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    Some(Piece {
        arg: head[20],
        when: [PieceTime::Entry, PieceTime::Exit, PieceTime::Retry].get(usize::from(head[21])).copied()?,
        address: word(0),
        wanted: word(8),
        start: u32::try_from(start).ok()?,
        len: u32::from_le_bytes([head[16], head[17], head[18], head[19]]),
        state: [PieceState::Ok, PieceState::Cut, PieceState::Fault].get(usize::from(head[22])).copied()?,
    })
}
