//! Prints sets of bits as the words of memory that contain them.

use super::value::{Options, close};
use crate::beauty::decode::Argument;
use crate::beauty::row::Length;
use crate::beauty::value::{ArrayValue, Value};
use std::io::Write;

/// The bits of a word.
const BITS: u64 = 64;
/// The maximum number of words.
const WORDS_MAX: u64 = 64;

/// Returns a set of nodes (set_mempolicy(2)) as its words. The argument with its length has the number of its bits and
/// one more. `None`: the set is not known, or is too long.
pub fn of_nodes<'d, 'a: 'd>(
    nodes: &Argument<'d, 'a>,
    mut all: impl Iterator<Item = Argument<'d, 'a>>,
    set: &Value<'a>,
) -> Option<Value<'a>> {
    let (Value::Array(of), Length::Arg(length)) = (set, nodes.row()?.length) else { return None };
    let bits = all.nth(usize::from(length))?.registers().first()?.checked_sub(1)?;
    let count = bits.div_ceil(BITS);
    if of.more || count > WORDS_MAX {
        return None;
    }
    let mut words = vec![0u64; count as usize];
    for item in &of.items {
        let Value::Uint(node) = item else { return None };
        *words.get_mut((node / BITS) as usize)? |= 1 << (node % BITS);
    }
    let items = words.into_iter().map(Value::Hex).collect();
    Some(Value::Array(ArrayValue { address: of.address, more: false, items }))
}

/// Appends the words: `[0x00000000000005]`.
pub fn write(out: &mut Vec<u8>, of: &ArrayValue, options: Options) {
    let shown = if options.whole { of.items.len() } else { of.items.len().min(options.string_limit) };
    out.push(b'[');
    for (at, item) in of.items[..shown].iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        // `%#016lx` of C has no prefix before 0. Writing to a Vec does not fail.
        _ = match item {
            Value::Hex(0) => write!(out, "{:016}", 0),
            Value::Hex(word) => write!(out, "{word:#016x}"),
            _ => Ok(()),
        };
    }
    close(out, of.items.is_empty(), shown < of.items.len(), b']');
}
