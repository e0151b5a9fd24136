//! Reads the memory of a call in flight that its row names: strings, and memory whose length is known at the entry.
//!
//! There are two users. The supervisor of `--inject` reads the memory of calls that it answers: the BPF programs copy
//! it at their exit, if its pages are present, which is what reading it here achieves. And when rtrace attaches to
//! tasks, no BPF program has seen the beginning of the calls in which they sleep.

use crate::beauty::lookup;
use crate::beauty::memory::ELEMENTS_MAX;
use crate::beauty::row::{Arg, ArgumentKind, Flow, Length, LengthUnit, Traits};
use crate::event::Abi;
use crate::event::synthesized::MemoryCopy;
use crate::sys::remote_memory;

/// The maximum number of bytes of a path, with its NUL (PATH_MAX in linux/limits.h).
const PATH_MAX: usize = 4096;
/// The maximum number of bytes of anything else.
const BYTES_MAX: usize = 8192;

/// A call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInFlight {
    /// The thread that made it.
    pub tid: i32,
    /// The ABI of the call.
    pub abi: Abi,
    /// The number of the syscall in this ABI (x32's without bit 30).
    pub nr: i64,
    /// The argument registers.
    pub args: [u64; 6],
}

/// Copies the memory that the arguments of a call point to, as far as the kernel would read it. `string_limit` is the
/// maximum number of bytes of a string that is not a path, and of a buffer.
pub fn copies(call: &CallInFlight, string_limit: usize) -> Vec<MemoryCopy> {
    let string_limit = string_limit.min(BYTES_MAX);
    let Some(row) = lookup::row(call.abi, call.nr) else { return Vec::new() };
    let signature = row.signature_of(&call.args);
    let register = |at: usize| call.args.get(usize::from(signature.word(at, call.abi)?.register)).copied();
    let mut copies = Vec::new();
    for (at, arg) in signature.args.iter().enumerate().take(6) {
        let Some(address) = register(at).filter(|address| *address != 0) else { continue };
        let length = match arg.length {
            Length::Arg(of) => register(of.into()).and_then(|count| bytes_of(arg, count, call.abi)),
            Length::Fixed(count) => bytes_of(arg, count, call.abi),
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

/// Returns the number of bytes of an argument with this length, in the unit of its row; `None` if the length says
/// nothing about the memory that the kernel reads.
fn bytes_of(arg: &Arg, count: u64, abi: Abi) -> Option<u64> {
    match arg.kind {
        ArgumentKind::StructArray(of) => count.checked_mul(of.sizes[abi as usize].into()),
        ArgumentKind::Number { bytes, .. } => count.checked_mul(bytes.into()),
        ArgumentKind::Struct(of) => match of.counted {
            LengthUnit::Bytes => Some(count),
            LengthUnit::Bits | LengthUnit::Files => Some(count.div_ceil(64).checked_mul(8)?.min(of.sizes[abi as usize].into())),
            _ => None,
        },
        _ => Some(count),
    }
}

/// Returns how many bytes are read of an argument's memory, and whether it is a string that ends with NUL.
fn wanted(arg: &Arg, length: Option<u64>, call: &CallInFlight, string_limit: usize) -> Option<(usize, bool)> {
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
        ArgumentKind::StructArray(of) => {
            let size = of.sizes[call.abi as usize] as usize;
            Some((bounded(size.saturating_mul(ELEMENTS_MAX).min(BYTES_MAX))?, false))
        }
        ArgumentKind::Number { bytes, .. } if arg.length == Length::OfType => Some((bytes.into(), false)),
        ArgumentKind::Number { bytes, .. } => Some((bounded(usize::from(bytes) * ELEMENTS_MAX)?, false)),
        _ => None,
    }
}
