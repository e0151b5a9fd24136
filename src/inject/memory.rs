//! Reads the memory of a waiting call that its row names: strings, and memory whose length is known at the entry.
//!
//! The BPF programs copy the memory of answered calls at their exit, if its pages are present, which is what reading it
//! here achieves. Without the BPF programs, these copies are all that is known of it.

use crate::beauty::lookup;
use crate::beauty::row::{Arg, ArgumentKind, Flow, Length, Traits};
use crate::event::synthesized::MemoryCopy;
use crate::sys::remote_memory;
use crate::sys::seccomp::Waiting;

/// The maximum number of bytes of a path, with its NUL (PATH_MAX in linux/limits.h).
const PATH_MAX: usize = 4096;
/// The maximum number of bytes of anything else.
const BYTES_MAX: usize = 8192;

/// Copies the memory that the arguments of a call point to, as far as the kernel would read it. `string_limit` is the
/// maximum number of bytes of a string that is not a path, and of a buffer.
pub fn copies(call: &Waiting, string_limit: usize) -> Vec<MemoryCopy> {
    let string_limit = string_limit.min(BYTES_MAX);
    let Some(row) = lookup::row(call.abi, call.nr.into()) else { return Vec::new() };
    let signature = row.signature_of(&call.args);
    let register = |at: usize| call.args.get(usize::from(signature.word(at, call.abi)?.register)).copied();
    let mut copies = Vec::new();
    for (at, arg) in signature.args.iter().enumerate().take(6) {
        let Some(address) = register(at).filter(|address| *address != 0) else { continue };
        let length = match arg.length {
            Length::Arg(of) => register(of.into()),
            Length::Fixed(length) => Some(length),
            Length::OfType | Length::Ret => None,
        };
        let Some((wanted, is_text)) = wanted(arg, length, call, string_limit) else { continue };
        let mut bytes = vec![0; wanted];
        let read = remote_memory::read(call.tid, address, &mut bytes);
        bytes.truncate(read);
        let end = bytes.iter().position(|byte| *byte == 0).filter(|_| is_text);
        if let Some(end) = end {
            bytes.truncate(end);
        }
        let is_whole = end.is_some() || !is_text && read == wanted;
        copies.push(MemoryCopy { arg: at as u8, wanted: length.unwrap_or(bytes.len() as u64 + u64::from(is_text)), bytes, is_whole });
    }
    copies
}

/// Returns how many bytes are read of an argument's memory, and whether it is a string that ends with NUL.
fn wanted(arg: &Arg, length: Option<u64>, call: &Waiting, string_limit: usize) -> Option<(usize, bool)> {
    let bounded = |limit: usize| length.map(|length| usize::try_from(length).unwrap_or(limit).min(limit));
    match arg.kind {
        ArgumentKind::Path => Some((PATH_MAX, true)),
        ArgumentKind::Str if length.is_none() => Some((string_limit + 1, true)),
        _ if arg.flow == Flow::Out || arg.traits.contains(Traits::ENCODED) => None,
        ArgumentKind::Str | ArgumentKind::Bytes => Some((bounded(string_limit)?, false)),
        ArgumentKind::Struct(of) => {
            let size = of.sizes[call.abi as usize] as usize;
            Some((if arg.length == Length::OfType { size.min(BYTES_MAX) } else { bounded(size.max(string_limit).min(BYTES_MAX))? }, false))
        }
        _ => None,
    }
}
