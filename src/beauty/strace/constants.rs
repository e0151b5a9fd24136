//! Prints constants and flags: full names, in strace's order, and a comment where a number has no name.

use super::forms;
use crate::beauty::row::ConstantTable;
use crate::beauty::table::FlagPart;
use crate::beauty::value::Value;
use crate::show::strace::Constants;
use crate::text::number;
use smallvec::SmallVec;

/// Writes a number as `%#llx` of C does: 0 has no prefix.
pub fn hex(out: &mut Vec<u8>, value: u64) {
    if value == 0 { out.push(b'0') } else { number::hex(out, value) }
}

/// Writes a number by its name, as the number, or as both. `write_name` writes the number in its own way if it has no
/// name.
pub fn in_style(
    out: &mut Vec<u8>,
    style: Constants,
    has_name: bool,
    write_number: impl FnOnce(&mut Vec<u8>),
    write_name: impl FnOnce(&mut Vec<u8>),
) {
    match style {
        Constants::Raw => write_number(out),
        Constants::Verbose if has_name => {
            write_number(out);
            out.extend_from_slice(b" /* ");
            write_name(out);
            out.extend_from_slice(b" */");
        }
        Constants::Abbreviated | Constants::Verbose => write_name(out),
    }
}

/// Appends flags in the style of constants. In some tables, a bit field is a number of its own.
pub fn styled_flags(out: &mut Vec<u8>, style: Constants, table: &'static ConstantTable, bits: u64) {
    let whole = |out: &mut Vec<u8>, bits: u64| {
        in_style(out, style, have_names(table, bits), |out| hex(out, bits), |out| flags(out, table, bits));
    };
    let is_apart = style != Constants::Abbreviated && forms::of_table(table.name).is_some_and(|form| form.apart);
    let (Some(field), true) = (table.fields.first(), is_apart) else { return whole(out, bits) };
    let (value, rest) = (bits & field.mask, bits & !field.mask);
    let name = field.table.name(value);
    if rest == 0 || value == 0 && name.is_none() {
        return whole(out, bits);
    }
    let others =
        |out: &mut Vec<u8>| in_style(out, style, have_names(table, rest), |out| hex(out, rest), |out| parts(out, table, rest, false));
    let part = |out: &mut Vec<u8>| match (style, value) {
        // strace writes nothing for a field of zero.
        (Constants::Raw, 0) => {}
        _ => in_style(out, style, name.is_some(), |out| number_of(out, field.table, value), |out| constant(out, field.table, value)),
    };
    let is_first = forms::place_of_field(table.name) == 0;
    if is_first {
        part(out);
        out.push(b'|');
    }
    others(out);
    if !is_first {
        out.push(b'|');
        part(out);
    }
}

/// Returns whether flags have at least one name.
fn have_names(table: &'static ConstantTable, bits: u64) -> bool {
    table.flags(bits).any(|part| matches!(part, FlagPart::Constant { .. }))
}

/// Appends a constant as a number.
pub fn number_of(out: &mut Vec<u8>, table: &'static ConstantTable, value: u64) {
    match forms::of_table(table.name).map_or("", |form| form.unnamed) {
        "decimal" if table.bits == 32 => number::int(out, i64::from(value as u32 as i32)),
        "decimal" => number::uint(out, value),
        _ => hex(out, if table.bits == 32 { u64::from(value as u32) } else { value }),
    }
}

/// Appends the names of flags.
pub fn flags(out: &mut Vec<u8>, table: &'static ConstantTable, bits: u64) {
    parts(out, table, bits, true);
}

/// Appends the names of flags, with the values of bit fields or without.
fn parts(out: &mut Vec<u8>, table: &'static ConstantTable, bits: u64, with_fields: bool) {
    let mut has_names = false;
    let is_of_field = |part: &FlagPart| matches!(part, FlagPart::Constant { table: of, .. } if of.name != table.name);
    let mut parts: SmallVec<[FlagPart; 8]> = table.flags(bits).filter(|part| with_fields || !is_of_field(part)).collect();
    if let Some(form) = forms::of_table(table.name).filter(|form| !form.without.is_empty()) {
        split(&mut parts, table, form.without);
    }
    parts.sort_by_key(|part| match part {
        FlagPart::Constant { table: of, .. } if of.name != table.name => forms::place_of_field(table.name),
        FlagPart::Constant { name, .. } => forms::place_of_flag(table.name, name),
        FlagPart::Rest(_) => usize::MAX,
    });
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            out.push(b'|');
        }
        match part {
            FlagPart::Constant { name, table } => {
                has_names = true;
                out.extend_from_slice(forms::name_of_constant(table.name, name).as_bytes());
            }
            FlagPart::Rest(0) => out.push(b'0'),
            FlagPart::Rest(rest) => {
                number::hex(out, rest);
                if !has_names {
                    unknown(out, table);
                }
            }
        }
    }
}

/// Replaces flags that strace does not have by others with their bits, and by a number.
fn split(parts: &mut SmallVec<[FlagPart; 8]>, table: &'static ConstantTable, without: &[&str]) {
    let mut rest = 0;
    parts.retain(|part| match part {
        FlagPart::Constant { name, .. } if without.contains(name) => {
            rest |= table.entries.iter().find(|entry| entry.name == *name).map_or(0, |entry| entry.value);
            false
        }
        FlagPart::Rest(unnamed) => {
            rest |= *unnamed;
            false
        }
        FlagPart::Constant { .. } => true,
    });
    for entry in table.entries.iter().filter(|entry| entry.value != 0 && !without.contains(&entry.name)) {
        if rest & entry.value == entry.value {
            rest &= !entry.value;
            parts.push(FlagPart::Constant { table, name: entry.name });
        }
    }
    if rest != 0 || parts.is_empty() {
        parts.push(FlagPart::Rest(rest));
    }
}

/// Appends the values of bit fields, a bar, and the flags, of which there may be none: `B38400|CS8|CREAD`, `B0|CS5|`.
pub fn bar(out: &mut Vec<u8>, style: Constants, table: &'static ConstantTable, bits: u64) {
    let is_field = |part: &FlagPart| matches!(part, FlagPart::Constant { table: of, .. } if of.name != table.name);
    let mut rest = bits;
    for field in table.fields {
        rest &= !field.mask;
        let value = bits & field.mask;
        if let Some(name) = field.table.name(value) {
            in_style(out, style, true, |out| hex(out, value), |out| out.extend_from_slice(name.as_bytes()));
            out.push(b'|');
        }
    }
    if rest != 0 && style != Constants::Abbreviated {
        in_style(out, style, have_names(table, rest), |out| hex(out, rest), |out| flags(out, table, rest));
    } else if rest != 0 {
        let mut text = Vec::new();
        flags(&mut text, table, bits);
        let fields = table.flags(bits).filter(is_field).count();
        let names: Vec<&[u8]> = text.split(|byte| *byte == b'|').skip(fields).collect();
        out.extend(names.join(&b'|'));
    }
}

/// Writes a command and its flags, with `_PRIVATE` behind the name of the command in place of the flag of that name.
pub fn private(out: &mut Vec<u8>, table: &'static ConstantTable, bits: u64) {
    let mut text = Vec::new();
    flags(&mut text, table, bits);
    let parts = || text.split(|byte| *byte == b'|');
    let is_private = |part: &[u8]| part.ends_with(b"_PRIVATE_FLAG");
    for (at, part) in parts().filter(|part| !is_private(part)).enumerate() {
        out.extend_from_slice(if at > 0 { b"|" } else { b"" });
        out.extend_from_slice(part);
        out.extend_from_slice(if at == 0 && parts().any(is_private) { b"_PRIVATE" } else { b"" });
    }
}

/// Appends the name of a constant, or its number.
pub fn constant(out: &mut Vec<u8>, table: &'static ConstantTable, value: u64) {
    if let Some(name) = table.name(value) {
        return out.extend_from_slice(forms::name_of_constant(table.name, name).as_bytes());
    }
    number_of(out, table, value);
    if forms::of_table(table.name).is_none_or(|form| form.unnamed.is_empty()) {
        unknown(out, table);
    }
}

/// Writes which constants have no such value: ` /* O_??? */`.
pub fn unknown(out: &mut Vec<u8>, table: &'static ConstantTable) {
    out.extend_from_slice(b" /* ");
    match forms::of_table(table.name).map(|form| form.unknown).filter(|unknown| !unknown.is_empty()) {
        Some(unknown) => out.extend_from_slice(unknown.as_bytes()),
        None => {
            out.extend_from_slice(table.prefix.as_bytes());
            out.extend_from_slice(b"???");
        }
    }
    out.extend_from_slice(b" */");
}

/// Returns whether a value is the constant of this name, or this number.
pub fn is_called(value: &Value, name: &str) -> bool {
    match value {
        Value::Symbol { table, value } => match table.name(*value) {
            Some(known) => known.split(" or ").any(|known| known == name),
            None => name == "?" || name.parse() == Ok(*value),
        },
        Value::Flags { table, bits } => table.name(*bits) == Some(name),
        Value::Macro { name: known, .. } => *known == name,
        Value::Hex(value) => name == "?" || name.parse() == Ok(*value),
        Value::Uint(value) => name.parse() == Ok(*value),
        Value::Fd { fd, .. } | Value::DirFd { fd, .. } => name.parse() == Ok(*fd),
        Value::Int(value) => name.parse() == Ok(*value),
        Value::Address(0) | Value::Unread(0) => name == "NULL",
        _ => false,
    }
}

/// Returns whether a value has one of these flags, whose names have bars between them.
pub fn has_flag(value: &Value, names: &str) -> bool {
    let Value::Flags { table, bits } = value else { return false };
    let is_set = |name| table.constant(name).is_some_and(|flag| i128::from(bits & flag.mask) == flag.value);
    names.split('|').any(is_set)
}

/// Returns whether a value is 0, or a null pointer.
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) | Value::Address(0) | Value::Unread(0) => true,
        Value::Flags { bits, .. } => *bits == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables::constants::{INOTIFY_MASK, MMAP_FLAGS, TERMIOS_CONTROL, WAIT_OPTIONS};

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn flags_have_the_order_and_the_names_of_strace() {
        let flags = |table, bits| text(|out| flags(out, table, bits));
        assert_eq!(flags(&MMAP_FLAGS, 0x22), "MAP_PRIVATE|MAP_ANONYMOUS");
        assert_eq!(flags(&WAIT_OPTIONS, 0xa), "WSTOPPED|WCONTINUED");
        assert_eq!(flags(&WAIT_OPTIONS, 0x100), "0x100 /* W??? */");
        assert!(flags(&INOTIFY_MASK, 0xfff).starts_with("IN_ACCESS|IN_MODIFY|"), "IN_ALL_EVENTS is written as its parts");
    }

    #[test]
    fn fields_and_flags_have_a_bar_between_them() {
        assert_eq!(text(|out| bar(out, Constants::Abbreviated, &TERMIOS_CONTROL, 0)), "B0|CS5|");
        assert_eq!(text(|out| bar(out, Constants::Abbreviated, &TERMIOS_CONTROL, 0xbf)), "B38400|CS8|CREAD");
    }
}
