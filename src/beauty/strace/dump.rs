//! Prints all data that a call read or wrote (`-e read=`, `-e write=`), below its line.

use crate::beauty::decode::Decoded;
use crate::beauty::row::ArgumentKind;
use crate::beauty::value::{Returned, Text, Value};
use crate::show::strace::Lines;
use std::io::Write;

/// The bytes of a line.
const BYTES: usize = 16;

/// Appends the data of a call on a descriptor that one of the sets has.
pub fn write(out: &mut Vec<u8>, decoded: &Decoded, lines: &Lines) {
    let Returned::Value(returned) = decoded.returned() else { return };
    let moved = match returned {
        Value::Int(moved @ 1..) => moved as usize,
        Value::Uint(moved @ 1..) => moved as usize,
        _ => return,
    };
    let descriptor = decoded.args().find_map(|argument| match (argument.row()?.kind, argument.registers()) {
        (ArgumentKind::Fd, [fd, ..]) => Some(*fd as i32),
        _ => None,
    });
    let Some(fd) = descriptor.filter(|fd| lines.read.contains(*fd) || lines.written.contains(*fd)) else { return };
    for argument in decoded.args() {
        let values = argument.values();
        let data = match (values.exit(), values.entry()) {
            (Some(read), _) if lines.read.contains(fd) => read,
            (None, Some(written)) if lines.written.contains(fd) => written,
            _ => continue,
        };
        match data {
            Value::Str(text) if argument.row().is_some_and(|row| matches!(row.kind, ArgumentKind::Bytes)) => block(out, text, moved),
            Value::Array(of) => buffers(out, &of.items, moved),
            _ => {}
        }
    }
}

/// Appends the data of the buffers of readv(2) and the like, each with its number and size.
fn buffers(out: &mut Vec<u8>, items: &[Value], moved: usize) {
    let mut rest = moved;
    for (at, item) in items.iter().enumerate() {
        let Value::Struct(of) = item else { return };
        let member = |name: &str| of.members.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let (Some(base), Some(Value::Uint(length))) = (member("iov_base"), member("iov_len")) else { return };
        let size = rest.min(*length as usize);
        if size == 0 {
            return;
        }
        // Writing to a Vec does not fail.
        _ = writeln!(out, " * {size} bytes in buffer {at}");
        if let Value::Str(text) = base {
            block(out, text, size);
        }
        rest -= size;
    }
}

/// Appends lines with the bytes in hexadecimal and as text, and one that says how many were not copied.
fn block(out: &mut Vec<u8>, text: &Text, size: usize) {
    let bytes = &text.bytes[..text.bytes.len().min(size)];
    for (at, row) in bytes.chunks(BYTES).enumerate() {
        // Writing to a Vec does not fail.
        _ = write!(out, " | {:05x} ", at * BYTES);
        for place in 0..BYTES {
            out.extend_from_slice(if place % 8 == 0 { b" " } else { b"" });
            _ = match row.get(place) {
                Some(byte) => write!(out, "{byte:02x} "),
                None => write!(out, "   "),
            };
        }
        out.push(b' ');
        let shown = |byte: &u8| if matches!(byte, b' '..=b'~') { *byte } else { b'.' };
        out.extend(row.iter().map(shown).chain(std::iter::repeat(b' ')).take(BYTES));
        out.extend_from_slice(b" |\n");
    }
    if bytes.len() < size {
        _ = writeln!(out, " | {:05x}  {} more bytes were not copied |", bytes.len(), size - bytes.len());
    }
}
