//! Prints members and arguments as the rows of `beauty/strace.tbl` say.

use super::constants::{bar, has_flag, hex, is_called, is_zero};
use super::forms;
use super::handle;
use super::numbers::{date, is_of_number, number_as, raw};
use super::quote;
use super::value::{self, Options, close, list, members_of, string, write};
use super::words;
use crate::beauty::row::{Form, Part, Side, Test};
use crate::beauty::table::FlagPart;
use crate::beauty::value::{ArrayValue, StructValue, Text, Value};
use crate::show::strace::{Files, InHex};
use crate::text::number;
use std::io::Write;

/// The number of bytes of the name of a task, without the NUL.
const COMM_MAX: usize = 15;

/// Asks for the value of a member or argument by its name: whether it is known, and the test holds.
pub type Holds<'h> = &'h dyn Fn(&str, &dyn Fn(&Value) -> bool) -> bool;

/// Appends a struct as the row `name` says.
pub fn structure(out: &mut Vec<u8>, of: &StructValue, name: &str, options: Options) {
    let Some(parts) = forms::of_struct(name) else { return members_of(out, &of.members, of.more, options) };
    let value_of = |name: &str| of.members.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let holds = |name: &str, test: &dyn Fn(&Value) -> bool| value_of(name).is_some_and(test);
    let mut more = of.more;
    let mut separator: &[u8] = b"";
    out.push(b'{');
    // The members in a bracket that is not shown.
    let mut is_hidden = false;
    for part in parts {
        match part.form {
            Form::Close if is_hidden => {
                is_hidden = false;
                continue;
            }
            Form::Open if !is_shown(part, &Value::Unknown, &holds) => is_hidden = true,
            _ if is_hidden => continue,
            _ if part.name == "*" => {
                let others = of.members.iter().filter(|(name, _)| parts.iter().all(|part| part.name != *name));
                for (name, value) in others {
                    out.extend_from_slice(std::mem::replace(&mut separator, b", "));
                    out.extend_from_slice(name.as_bytes());
                    out.push(b'=');
                    write(out, value, options);
                }
                continue;
            }
            Form::Open => {
                out.extend_from_slice(std::mem::take(&mut separator));
                out.extend_from_slice(part.label.as_bytes());
                out.push(b'{');
                continue;
            }
            Form::Close => {
                out.push(b'}');
                separator = b", ";
                continue;
            }
            _ => {}
        }
        if is_hidden {
            continue;
        }
        let absent = (part.test == Test::Unused).then_some(&Value::Uint(0));
        let value = value_of(part.name).or(absent).filter(|value| is_shown(part, value, &holds));
        let Some(value) = value else { continue };
        if part.form == Form::Dots || part.is_verbose && !options.whole {
            more = true;
            continue;
        }
        out.extend_from_slice(std::mem::replace(&mut separator, b", "));
        if !part.label.is_empty() {
            out.extend_from_slice(part.label.as_bytes());
            out.push(b'=');
        }
        match (part.form, value) {
            (Form::Tail, Value::Str(text)) => tail(out, text, of.address),
            (Form::Date, value) if raw(value).is_some() || matches!(value, Value::Int(_)) => {
                let fraction = value_of(&format!("{}_nsec", part.name)).and_then(raw);
                write(out, value, options);
                date(out, value, fraction.unwrap_or_default(), options);
            }
            _ => write_as(out, value, part.form, options),
        }
    }
    close(out, separator.is_empty(), more, b'}');
}

/// Returns whether a member or an argument is shown, by the others.
pub fn is_shown(part: &Part, value: &Value, holds: Holds) -> bool {
    const DEVICES: [u32; 2] = [0o020_000, 0o060_000];
    match part.test {
        Test::Always | Test::Unused => true,
        Test::NotZero => match (part.form, value) {
            (Form::Bit(flag), value) => has_flag(value, flag),
            (_, value) => !is_zero(value),
        },
        Test::Device(is_device) => {
            let is_of_device = |mode: &Value| matches!(mode, Value::FileMode(mode) if DEVICES.contains(&(mode & 0o170_000)));
            is_device == (holds("st_mode", &is_of_device) || holds("stx_mode", &is_of_device))
        }
        Test::Flag(member, names) => holds(member, &|value| has_flag(value, names)),
        Test::IsNot(member, names) => !holds(member, &|value| names.split('|').any(|name| is_called(value, name))),
    }
}

/// Appends a number that packs several values: as a macro with parameters, or as values with bars between them.
pub fn packed(out: &mut Vec<u8>, name: &str, members: &[(&'static str, Value)], options: Options) {
    let Some([first, parts @ ..]) = forms::of_packed(name) else { return members_of(out, members, false, options) };
    let is_macro = first.name != "|";
    if is_macro {
        out.extend_from_slice(first.name.as_bytes());
        out.push(b'(');
    }
    let holds = |name: &str, test: &dyn Fn(&Value) -> bool| members.iter().any(|(known, value)| *known == name && test(value));
    let shown = parts.iter().filter_map(|part| Some((part, members.iter().find(|(known, _)| *known == part.name)?)));
    let mut separator: &[u8] = b"";
    for (part, (_, value)) in shown.filter(|(part, (_, value))| is_shown(part, value, &holds)) {
        out.extend_from_slice(std::mem::replace(&mut separator, if is_macro { b", " } else { b"|" }));
        match value {
            // A number among values with bars has no comment.
            Value::Flags { table, bits } if !is_macro && table.flags(*bits).all(|part| matches!(part, FlagPart::Rest(_))) => {
                hex(out, *bits)
            }
            value => write_as(out, value, part.form, options),
        }
        if !part.label.is_empty() {
            out.extend_from_slice(b"<<");
            out.extend_from_slice(part.label.as_bytes());
        }
    }
    match (is_macro, separator.is_empty()) {
        (true, _) => out.push(b')'),
        (false, true) => out.push(b'0'),
        (false, false) => {}
    }
}

/// Returns the one struct that memory before and after a call is: the members after it, and those that are known only
/// of the memory before it.
pub fn merged<'v>(before: &Value<'v>, after: &Value<'v>) -> Value<'v> {
    match (before, after) {
        (Value::Struct(before), Value::Struct(after)) => {
            let mut members = before.members.clone();
            for (name, value) in &after.members {
                match members.iter_mut().find(|(known, _)| known == name) {
                    Some((_, old)) => *old = value.clone(),
                    None => members.push((name, value.clone())),
                }
            }
            Value::Struct(StructValue { members, more: after.more, ..before.clone() })
        }
        (Value::Array(before), Value::Array(after)) if before.items.len() == after.items.len() => {
            let items = before.items.iter().zip(&after.items).map(|(before, after)| merged(before, after)).collect();
            Value::Array(ArrayValue { items, ..after.clone() })
        }
        (_, after) => after.clone(),
    }
}

/// Appends the value of an argument or member on the side that its row asks for.
pub fn write_both(out: &mut Vec<u8>, both: &[Value; 2], part: &Part, options: Options) {
    let [before, after] = both;
    match part.side {
        Side::Before => write_as(out, before, part.form, options),
        Side::After => write_as(out, after, part.form, options),
        Side::Merged => write_as(out, &merged(before, after), part.form, options),
        Side::Both if part.form == Form::Plain => super::change::write(out, before, after, options),
        Side::Both if part.form == Form::Handle => handle::write_both(out, before, Some(after), options),
        Side::Both => {
            let (mut old, mut new) = (Vec::new(), Vec::new());
            write_as(&mut old, before, part.form, options);
            write_as(&mut new, after, part.form, options);
            out.extend_from_slice(&old);
            if old != new {
                out.extend_from_slice(b" => ");
                out.extend_from_slice(&new);
            }
        }
    }
}

/// Appends a value in a form of its own.
pub fn write_as(out: &mut Vec<u8>, value: &Value, form: Form, options: Options) {
    match (form, value) {
        (Form::Address, Value::Symbol { table, value }) if table.name(*value).is_none() => number::hex(out, *value),
        (Form::Address, Value::Uint(0) | Value::Int(0) | Value::Hex(0)) => out.extend_from_slice(b"NULL"),
        (Form::Address, Value::Uint(address)) => number::hex(out, *address),
        (Form::Address, value) => match address_of(value) {
            Some(address) => number::hex(out, address),
            None => write(out, value, options),
        },
        (Form::As(variant), Value::Struct(of)) => structure(out, of, &format!("{}.{variant}", of.name), options),
        (Form::Bar, Value::Flags { table, bits }) => bar(out, options.constants, table, *bits),
        (Form::Bit(flag), value) => out.push(if has_flag(value, flag) { b'1' } else { b'0' }),
        (Form::Blanks, Value::Array(of)) => list(out, of, b" ", options),
        (Form::Date, Value::Array(of)) => elements(out, of, form, options),
        (Form::Elements, Value::Array(of)) => elements(out, of, form, options),
        (Form::Entries, Value::Array(of)) if !options.whole => value::entries(out, of.address, of.items.len() as u64, of.more),
        (Form::HexString, Value::Str(text)) => string(out, text, InHex::Always, options),
        (Form::Mac, Value::Str(text)) => mac(out, &text.bytes),
        (Form::Path, Value::Str(text)) => path(out, text, options),
        (Form::Ready, Value::Array(of)) => ready(out, of, options),
        (Form::Int, Value::Str(Text { bytes, .. })) if bytes.len() >= 4 => {
            // Writing to a Vec does not fail.
            _ = write!(out, "[{}]", i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        }
        (Form::Option | Form::Int, Value::Str(Text { address: address @ 1.., bytes, .. })) if bytes.is_empty() => {
            number::hex(out, *address)
        }
        (Form::Comm, Value::Str(text)) => {
            quote::quoted(out, &text.bytes, options.hex);
            out.extend_from_slice(if text.cut || text.bytes.len() >= COMM_MAX { b"..." } else { b"" });
        }
        (Form::Option, Value::Str(text)) => option(out, text, options),
        (Form::Handle, Value::Struct(_)) => handle::write_both(out, value, None, options),
        (Form::Whole, Value::Str(Text { address: address @ 1.., .. })) => number::hex(out, *address),
        (Form::Shifted, Value::Array(of)) => shifted(out, of, options),
        (Form::Text, Value::Str(text)) => quote::quoted(out, text.bytes.strip_suffix(b"\0").unwrap_or(&text.bytes), options.hex),
        (Form::Words, Value::Array(of)) if matches!(of.items[..], [Value::Hex(_), ..]) => words::write(out, of, options),
        (Form::Vars, Value::Array(ArrayValue { address: address @ 1.., items, .. })) if !options.whole => {
            value::uncopied(out, *address, items.len() as u64, false);
        }
        (_, Value::Array(of)) if is_of_number(form) => elements(out, of, form, options),
        _ => number_as(out, value, form, options),
    }
}

/// Returns the address of the memory that a value was decoded from.
pub fn address_of(value: &Value) -> Option<u64> {
    let address = match value {
        Value::Struct(StructValue { address, .. }) | Value::Array(ArrayValue { address, .. }) | Value::Str(Text { address, .. }) => {
            *address
        }
        Value::AllBut(of) => of.address,
        _ => 0,
    };
    (address != 0).then_some(address)
}

/// Appends an array, whose elements have this form.
fn elements(out: &mut Vec<u8>, of: &ArrayValue, form: Form, options: Options) {
    out.push(b'[');
    for (at, item) in of.items.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        number_as(out, item, form, options);
    }
    close(out, of.items.is_empty(), of.more, b']');
}

/// Appends the value of a socket option, or its address if it was not copied.
fn option(out: &mut Vec<u8>, text: &Text, options: Options) {
    match <[u8; 4]>::try_from(&text.bytes[..]) {
        // Writing to a Vec does not fail.
        Ok(bytes) if !text.cut => _ = write!(out, "[{}]", i32::from_ne_bytes(bytes)),
        _ => string(out, text, options.hex, options),
    }
}

/// Appends a set of bits as flags.
fn shifted(out: &mut Vec<u8>, of: &ArrayValue, options: Options) {
    for (at, item) in of.items.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b"|1<<" } else { b"1<<" });
        write(out, item, options);
    }
    out.extend_from_slice(if of.items.is_empty() { b"0" } else { b"" });
}

/// Appends the bytes that follow a struct: `/* bytes 24..31 */ "\x61..."`.
fn tail(out: &mut Vec<u8>, text: &Text, begin: u64) {
    let first = text.address.saturating_sub(begin);
    // Writing to a Vec does not fail.
    _ = write!(out, "/* bytes {first}..{} */ ", first + text.bytes.len().saturating_sub(1) as u64);
    quote::quoted(out, &text.bytes, InHex::Always);
}

/// Appends a hardware address: `02:03:04:05:06:07`.
fn mac(out: &mut Vec<u8>, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        // Writing to a Vec does not fail.
        _ = write!(out, "{}{byte:02x}", if at > 0 { ":" } else { "" });
    }
}

/// Appends the path of a socket; `@` stands for the NUL before an abstract name.
fn path(out: &mut Vec<u8>, text: &Text, options: Options) {
    match text.bytes.split_first() {
        Some((0, name)) if !name.is_empty() => {
            out.push(b'@');
            quote::quoted(out, name, options.hex);
        }
        _ => string(out, text, options.hex, options),
    }
}

/// Writes the descriptors that have events, and these: `[{fd=3, revents=POLLIN}]`.
fn ready(out: &mut Vec<u8>, of: &ArrayValue, options: Options) {
    let result = |item: &Value<'_>| match item {
        Value::Struct(StructValue { members, .. }) => members.iter().any(|(name, value)| *name == "revents" && !is_zero(value)),
        _ => false,
    };
    out.push(b'[');
    let mut separator: &[u8] = b"";
    let most = if options.whole { usize::MAX } else { options.string_limit };
    for item in of.items.iter().filter(|item| result(item)).take(most) {
        let Value::Struct(StructValue { members, .. }) = item else { continue };
        out.extend_from_slice(std::mem::replace(&mut separator, b", "));
        let shown: Vec<_> = members.iter().filter(|(name, _)| *name != "events").cloned().collect();
        members_of(out, &shown, false, Options { files: Files::empty(), ..options });
    }
    let more = of.items.iter().filter(|item| result(item)).count() > most;
    close(out, separator.is_empty(), more, b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &Value, form: Form) -> String {
        let mut out = Vec::new();
        write_as(&mut out, value, form, Options { string_limit: 32, ..Options::default() });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_have_forms_of_their_own() {
        assert_eq!(text(&Value::Uint(8 << 20), Form::Kib), "8192*1024");
        assert_eq!(text(&Value::Uint(0), Form::Hex8), "00000000");
        assert_eq!(text(&Value::Uint(0x1000), Form::Hex8), "0x001000");
        assert_eq!(text(&Value::Hex(0xc0de4242), Form::Ioctl), "_IOC(_IOC_READ|_IOC_WRITE, 0x42, 0x42, 0xde)");
        assert_eq!(text(&Value::Uint(0), Form::Null), "NULL");
    }

    #[test]
    fn the_members_of_a_struct_after_a_call_join_those_before_it() {
        let of = |members: Vec<(&'static str, Value<'static>)>| Value::Struct(StructValue { members, ..StructValue::default() });
        let before = of(vec![("ifr_name", Value::Uint(1)), ("ifr_flags", Value::Uint(2))]);
        let after = of(vec![("ifr_flags", Value::Uint(3)), ("ifr_mtu", Value::Uint(4))]);
        assert_eq!(text(&merged(&before, &after), Form::Plain), "{ifr_name=1, ifr_flags=3, ifr_mtu=4}");
    }

    #[test]
    fn bytes_of_which_a_part_could_not_be_read_are_their_address() {
        let bytes = |wanted| Value::Str(Text { bytes: b"abc".into(), address: 0x1000, wanted: Some(wanted), cut: true, altered: false });
        assert_eq!(text(&bytes(8000), Form::Plain), "0x1000");
        assert_eq!(text(&bytes(3), Form::Plain), "\"abc\"...");
    }
}
