//! Prints numbers in forms of their own: hexadecimal, in network byte order, as a macro, with a date.

use super::constants::{hex, in_style, private};
use super::value::{Options, write};
use crate::beauty::row::Form;
use crate::beauty::value::Value;
use crate::show::strace::Constants;
use crate::text::number;
use std::io::Write;
use std::net::IpAddr;

/// Returns whether a form describes a number, so that it applies to each element of an array.
pub fn is_of_number(form: Form) -> bool {
    matches!(form, Form::Decimal | Form::Hex | Form::Hex8 | Form::Hex32 | Form::Htonl | Form::Kib | Form::Number)
}

/// Appends a number in a form of its own.
pub fn number_as(out: &mut Vec<u8>, value: &Value, form: Form, options: Options) {
    // Writing to a Vec does not fail.
    match (form, value) {
        (Form::Boxed, Value::Int(_) | Value::Uint(_) | Value::Hex(_)) => {
            out.push(b'[');
            write(out, value, options);
            out.push(b']');
        }
        (Form::Date, Value::Struct(of)) => {
            let number = |name: &str| of.members.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            // UTIME_NOW and UTIME_OMIT stand for the whole time.
            if let Some(word @ Value::Symbol { .. }) = number("tv_nsec") {
                return write(out, word, options);
            }
            let fraction = number("tv_nsec").and_then(raw);
            write(out, value, options);
            if let Some(second) = number("tv_sec") {
                date(out, second, fraction.unwrap_or_default(), options);
            }
        }
        (Form::Hex, Value::Int(value)) => hex(out, *value as u64),
        (Form::Hex, Value::Symbol { table, value: number }) if table.name(*number).is_some() => write(out, value, options),
        (Form::Hex, value) if raw(value).is_some() => hex(out, raw(value).unwrap_or_default()),
        (Form::Int, value) if raw(value).is_some() => number::int(out, i64::from(raw(value).unwrap_or_default() as i32)),
        (Form::Number, Value::Address(address)) => number::uint(out, *address),
        (Form::Null, Value::Uint(0) | Value::Int(0) | Value::Hex(0)) => out.extend_from_slice(b"NULL"),
        (Form::Single, Value::Flags { table, bits }) => write(out, &Value::Symbol { table, value: *bits }, options),
        (Form::Field, Value::Flags { table, bits }) => {
            let mask = table.fields.first().map_or(u64::MAX, |field| field.mask);
            number::uint(out, (bits & mask) >> mask.trailing_zeros());
        }
        (Form::Skid, Value::Flags { bits, .. }) => skid(out, *bits),
        (Form::Hex32, Value::Int(value)) => hex(out, u64::from(*value as u32)),
        (Form::Hex8, value) if raw(value).is_some() => match raw(value) {
            Some(0) | None => out.extend_from_slice(b"00000000"),
            Some(value) => _ = write!(out, "{:#08x}", value as u32),
        },
        (Form::Decimal | Form::Number, Value::Ip(IpAddr::V4(address))) => {
            number::int(out, i64::from(i32::from_ne_bytes(address.octets())));
        }
        (Form::Number, Value::Symbol { table, value }) if table.bits == 32 => number::int(out, i64::from(*value as u32 as i32)),
        (Form::Decimal | Form::Number, value) if raw(value).is_some() => number::uint(out, raw(value).unwrap_or_default()),
        (Form::Htonl, value) if raw(value).is_some() => _ = write!(out, "htonl({})", raw(value).unwrap_or_default()),
        (Form::Htons, value) => {
            out.extend_from_slice(b"htons(");
            write(out, value, options);
            out.push(b')');
        }
        (Form::Ioctl, Value::Hex(command)) => ioctl(out, *command as u32),
        (Form::Ioctl, Value::Symbol { table, value }) if table.name(*value).is_none() => ioctl(out, *value as u32),
        (Form::Kib, Value::Uint(value)) if *value > 1024 && value % 1024 == 0 => {
            let number = |out: &mut Vec<u8>| number::uint(out, *value);
            in_style(out, options.constants, true, number, |out| _ = write!(out, "{}*1024", value / 1024));
        }
        (Form::Kib, Value::Symbol { value: raw, .. }) if options.constants != Constants::Abbreviated => {
            let name = |out: &mut Vec<u8>| write(out, value, Options { constants: Constants::Abbreviated, ..options });
            in_style(out, options.constants, true, |out| number::uint(out, *raw), name);
        }
        (Form::Private, Value::Flags { table, bits }) => {
            in_style(out, options.constants, true, |out| hex(out, *bits), |out| private(out, table, *bits));
        }
        (Form::Pton, Value::Ip(IpAddr::V6(_))) => {
            out.extend_from_slice(b"inet_pton(AF_INET6, ");
            write(out, value, options);
            out.extend_from_slice(b", &sin6_addr)");
        }
        _ => write(out, value, options),
    }
}

/// Returns a number, whatever it means.
pub fn raw(value: &Value) -> Option<u64> {
    match value {
        Value::Uint(value) | Value::Hex(value) | Value::Octal(value) | Value::Symbol { value, .. } => Some(*value),
        Value::Flags { bits, .. } => Some(*bits),
        Value::Packed { raw, .. } => Some(*raw),
        Value::Port(port) => Some(u64::from(port.0)),
        Value::Int(value @ 0..) => Some(*value as u64),
        _ => None,
    }
}

/// Appends the date of a second in a comment.
pub fn date(out: &mut Vec<u8>, second: &Value, nanoseconds: u64, options: Options) {
    let second = match second {
        Value::Int(second) => *second,
        other => raw(other).unwrap_or_default() as i64,
    };
    super::date::comment(out, second, nanoseconds, options.zone);
}

/// Appends the precision of sampled addresses: two bits of the flags of struct perf_event_attr.
fn skid(out: &mut Vec<u8>, bits: u64) {
    const WORDS: [&str; 4] = ["arbitrary skid", "constant skid", "requested to have 0 skid", "must have 0 skid"];
    let precision = bits >> 15 & 3;
    // Writing to a Vec does not fail.
    _ = write!(out, "{precision} /* {} */", WORDS[precision as usize]);
}

/// Appends an ioctl command by its parts: `_IOC(_IOC_READ, 0x5a, 0x1, 0xc)`.
fn ioctl(out: &mut Vec<u8>, command: u32) {
    const DIRECTIONS: [&str; 4] = ["_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"];
    out.extend_from_slice(b"_IOC(");
    out.extend_from_slice(DIRECTIONS[(command >> 30) as usize].as_bytes());
    for part in [command >> 8 & 0xff, command & 0xff, command >> 16 & 0x3fff] {
        out.extend_from_slice(b", ");
        hex(out, u64::from(part));
    }
    out.push(b')');
}
