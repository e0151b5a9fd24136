//! Decodes the records of a tracepoint to typed values, by the event's format file.
//!
//! [`TracepointDecoder::new`] determines once per event how each field is decoded; a record then costs a few loads for
//! each field. The decision depends on the type and the name of the field and on the print format of the event. For
//! `syscalls:` events, it depends on the syscall's row. A field beyond the end of a record is [`Value::Unknown`].

use super::row::{Arg, ArgumentKind, ConstantTable, Length, Return, Syscall, TableKind};
use super::tables::SYSCALLS;
use super::value::{ArrayValue, Text, Value};
use crate::event::{Abi, Comm};
use crate::kernel::ctype::CType;
use crate::kernel::fetched::{FetchResult, Fetched};
use crate::kernel::field::sign_extend;
use crate::kernel::format::{FieldPlace, Format, FormatField};
use crate::kernel::print_fmt::{Hint, PrintFormat, ValueNames};
use crate::kernel::syscall_event::{Copied, UserCopy};
use std::borrow::Cow;

mod bytes;
mod constants;
mod of_call;
mod probe;

pub use constants::constants;
pub use of_call::{Field, Part};

/// The maximum number of array elements that are shown.
const ITEMS_MAX: usize = 64;

/// A decoder for the records of one event.
#[derive(Debug)]
pub struct TracepointDecoder {
    fields: Vec<(FormatField, FieldDecoder)>,
    /// The argument registers of a `sys_enter_X` event.
    registers: Vec<FormatField>,
    is_probe: bool,
    /// For a tracepoint at the entry or exit of calls: which of the two.
    end: Option<of_call::End>,
    /// For a return probe: the fields with the addresses of the function and of the caller that it returns to.
    returns: Option<(FormatField, FormatField)>,
    abi: Abi,
    copy_limit: u32,
}

/// The method by which a field is decoded.
#[derive(Debug)]
enum FieldDecoder {
    Text,
    /// A string that a probe fetched. An empty field, without even a NUL, means that the kernel could not read the
    /// string.
    Fetched,
    /// An array of strings that a probe fetched.
    FetchedTexts,
    Char,
    Number(NumberFormat),
    Pid,
    Address,
    Code,
    /// `dev_t` in the kernel's own encoding: 12 bits of major and 20 bits of minor number.
    Dev,
    Signal,
    Fd,
    DirFd,
    Table(&'static ConstantTable),
    Custom(fn(&[u64; 6], usize, Abi) -> Value<'static>, usize),
    /// A number with names in the print format.
    Named(ValueNames, NumberFormat),
    Array(NumberFormat),
    Bytes(Option<Hint>),
    /// A field that a BPF program read from memory: decoded by the inner method if the program could read it.
    FromMemory(Fetched, Box<FieldDecoder>),
    /// The return value of a syscall. If `address`, values other than errors are printed in hexadecimal.
    Return {
        address: bool,
    },
    /// An argument whose memory the kernel copied. `count` is the index of the argument with the number of bytes.
    Copy {
        copy: UserCopy,
        count: Option<u8>,
    },
}

/// The width, signedness and radix of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberFormat {
    bytes: u8,
    signed: bool,
    radix: Radix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Radix {
    Decimal,
    Hexadecimal,
    Octal,
}

impl TracepointDecoder {
    /// Creates the decoder of an event. `function` is the function that a probe is on, if it is known. `copy_limit` is
    /// [`crate::kernel::syscall_event::copy_limit`] of the traced machine.
    pub fn new(format: &Format, function: Option<&str>, abi: Abi, copy_limit: u32) -> TracepointDecoder {
        let shown = || format.own_fields().filter(|field| !field.is_internal());
        let of_syscall = |prefix| format.name.strip_prefix(prefix).filter(|_| format.field("__syscall_nr").is_some());
        let is_probe = probe::is_probe(format);
        let (fields, registers) = if let Some(event) = of_syscall("sys_enter_") {
            (syscall_fields(format, event), format.syscall_arguments().cloned().collect())
        } else if let Some(event) = of_syscall("sys_exit_") {
            let address = returns_address(event);
            (shown().map(|field| (field.clone(), FieldDecoder::Return { address })).collect(), Vec::new())
        } else {
            let print = PrintFormat::parse(&format.print);
            let fields = if is_probe {
                let call = function.and_then(probe::syscall);
                let decoder = |field: &FormatField| probe::argument(call, field).unwrap_or_else(|| fetched(field, &print));
                shown().map(|field| (field.clone(), decoder(field))).collect()
            } else {
                event_fields(format, &print)
            };
            (fields, Vec::new())
        };
        TracepointDecoder { fields, registers, is_probe, end: of_call::end(format), returns: probe::returns(format), abi, copy_limit }
    }

    /// Returns the addresses of the function and of the caller that it returned to, from the record of a return probe.
    pub fn returned(&self, raw: &[u8]) -> Option<(u64, u64)> {
        let (function, caller) = self.returns.as_ref()?;
        Some((function.unsigned(raw)?, caller.unsigned(raw)?))
    }

    /// Returns the names and values of the event's fields, in the order of the format. `comm` returns the comm of a
    /// task at the time of the record.
    pub fn decode<'a>(&'a self, raw: &'a [u8], comm: &dyn Fn(i32) -> Option<Comm>) -> Vec<(&'a str, Value<'a>)> {
        self.fields.iter().map(|(field, how)| (field.name.as_str(), self.value(field, how, raw, comm).unwrap_or(Value::Unknown))).collect()
    }

    fn value<'a>(
        &'a self,
        field: &'a FormatField,
        how: &'a FieldDecoder,
        raw: &'a [u8],
        comm: &dyn Fn(i32) -> Option<Comm>,
    ) -> Option<Value<'a>> {
        let int = || field.unsigned(raw).map(|number| number as i32);
        Some(match how {
            FieldDecoder::Text => text(field.text(raw)?),
            FieldDecoder::Fetched => fetched_text(field.bytes(raw)?),
            FieldDecoder::FetchedTexts => {
                let items = field.places().map(|place| place.bytes(raw).map_or(Value::Unknown, fetched_text)).collect();
                Value::Array(ArrayValue { items, ..ArrayValue::default() })
            }
            FieldDecoder::Char => Value::Char(field.unsigned(raw)? as u8),
            FieldDecoder::Number(number) => number.value(field.unsigned(raw)?),
            FieldDecoder::Pid => Value::Pid { pid: int()?, translated: None, comm: comm(int()?) },
            FieldDecoder::Address => Value::Address(field.unsigned(raw)?),
            FieldDecoder::Code => Value::Code(field.unsigned(raw)?),
            FieldDecoder::Dev => {
                let dev = field.unsigned(raw)? as u32;
                Value::Dev { major: dev >> 20, minor: dev & 0xf_ffff }
            }
            FieldDecoder::Signal => Value::Signal(int()?),
            FieldDecoder::Fd => Value::Fd { fd: int()?, file: None },
            FieldDecoder::DirFd => Value::DirFd { fd: int()?, file: None },
            FieldDecoder::Table(table) => constant(table, self.abi, field.unsigned(raw)?),
            FieldDecoder::Custom(decode, index) => decode(&self.registers(raw)?, *index, self.abi),
            FieldDecoder::Return { address } => match field.unsigned(raw)? {
                ret if *address && !(-4095..0).contains(&(ret as i64)) => Value::Hex(ret),
                ret => Value::Int(ret as i64),
            },
            FieldDecoder::Named(names, number) => {
                let bits = field.unsigned(raw)?;
                names.named(number.bytes, &|name| self.number(name, raw)).map_or_else(|| number.value(bits), Value::Named)
            }
            FieldDecoder::Array(number) => {
                let mut elements = field.elements(raw)?;
                let items = elements.by_ref().take(ITEMS_MAX).map(|element| number.value(element)).collect();
                Value::Array(ArrayValue { items, more: elements.next().is_some(), ..ArrayValue::default() })
            }
            FieldDecoder::Bytes(hint) => bytes::decode(field.bytes(raw)?, *hint),
            FieldDecoder::FromMemory(fetched, how) => match fetched.result(raw, field.size)? {
                FetchResult::Failed(0) => Value::Address(0),
                FetchResult::Failed(address) => Value::Unread(address),
                FetchResult::Truncated if field.is_text() => {
                    Value::Str(Text { bytes: field.text(raw)?.into(), cut: true, ..Text::default() })
                }
                FetchResult::Truncated | FetchResult::Complete => self.value(field, how, raw, comm)?,
            },
            FieldDecoder::Copy { copy, count } => self.copied(field, copy, *count, raw)?,
        })
    }

    /// Returns a field's number with its sign, for the expressions in the print format.
    fn number(&self, name: &str, raw: &[u8]) -> Option<i128> {
        let (field, _) = self.fields.iter().find(|(field, _)| field.name == name)?;
        Some(if field.signed { i128::from(field.number(raw)?) } else { i128::from(field.unsigned(raw)?) })
    }

    fn registers(&self, raw: &[u8]) -> Option<[u64; 6]> {
        let mut registers = [0; 6];
        for (register, field) in registers.iter_mut().zip(&self.registers) {
            *register = field.unsigned(raw)?;
        }
        Some(registers)
    }

    fn copied<'a>(&self, field: &FormatField, copy: &UserCopy, count: Option<u8>, raw: &'a [u8]) -> Option<Value<'a>> {
        let address = field.unsigned(raw)?;
        Some(match copy.read(raw, self.copy_limit)? {
            Copied::Unread if address == 0 => Value::Address(0),
            Copied::Unread => Value::Unread(address),
            // The kernel replaces unprintable bytes with dots, so text without a dot is unaltered.
            Copied::Text { bytes, cut } => Value::Str(Text { altered: bytes.contains(&b'.'), bytes: bytes.into(), cut, ..Text::default() }),
            Copied::Bytes(bytes) => {
                let wanted = count.and_then(|arg| self.registers.get(usize::from(arg))?.unsigned(raw));
                let cut = wanted.map_or(bytes.len() >= self.copy_limit as usize, |wanted| wanted > bytes.len() as u64);
                Value::Str(Text { bytes: bytes.into(), cut, ..Text::default() })
            }
        })
    }
}

impl NumberFormat {
    /// Returns the format of a number as wide and signed as the field.
    fn of(field: &FormatField, radix: Radix) -> NumberFormat {
        NumberFormat { bytes: u8::try_from(field.size).unwrap_or(8).clamp(1, 8), signed: field.signed, radix }
    }

    /// Decodes a register or field, of which only the low `bytes` bytes are significant.
    fn value(self, bits: u64) -> Value<'static> {
        let bits = bits & (u64::MAX >> (64 - 8 * u32::from(self.bytes)));
        match self.radix {
            Radix::Hexadecimal => Value::Hex(bits),
            Radix::Octal => Value::Octal(bits),
            Radix::Decimal if self.signed => Value::Int(sign_extend(bits, self.bytes)),
            Radix::Decimal => Value::Uint(bits),
        }
    }
}

/// Returns the decoders for the fields of an event that is not a `syscalls:` event of the kernel.
fn event_fields(format: &Format, print: &PrintFormat) -> Vec<(FormatField, FieldDecoder)> {
    // The event of a user's BPF program at a syscall has some of the syscall's arguments, or its return value.
    let row = format.name.strip_prefix("sys_enter_").and_then(self::row);
    let returned = format.name.strip_prefix("sys_exit_").map(returns_address);
    let shown = format.fields.iter().enumerate().filter(|(_, field)| !field.is_common() && !field.is_internal());
    let read = |(at, field): (usize, &FormatField)| {
        let how = match &returned {
            Some(address) if field.name == "ret" && field.size == 8 => FieldDecoder::Return { address: *address },
            _ => row.and_then(|row| register_by_row(row, field)).unwrap_or_else(|| by_format(field, print)),
        };
        let how = match format.fetched(at) {
            Some(fetched) => FieldDecoder::FromMemory(fetched, Box::new(how)),
            None => how,
        };
        (field.clone(), how)
    };
    shown.map(read).collect()
}

/// Returns the decoder of a field that is the register of an argument, without the other arguments.
fn register_by_row(row: &Syscall, field: &FormatField) -> Option<FieldDecoder> {
    let is_register = field.size == 8 && field.array.is_none() && field.place == FieldPlace::Here;
    let arg = row.args.iter().find(|arg| is_register && arg.name == field.name)?;
    by_row(arg, 0).filter(|how| !matches!(how, FieldDecoder::Custom(..)))
}

/// Returns the decoder of a field by its type and name and by the event's print format.
fn by_format(field: &FormatField, print: &PrintFormat) -> FieldDecoder {
    let hint = print.hint(&field.name);
    let radix = match hint {
        Some(Hint::Hex) => Radix::Hexadecimal,
        Some(Hint::Octal) => Radix::Octal,
        _ => Radix::Decimal,
    };
    let ctype = field.ctype();
    if field.array.is_some() || field.place != FieldPlace::Here {
        return match ctype {
            CType::Char => FieldDecoder::Text,
            CType::Unsigned(1) | CType::Other => FieldDecoder::Bytes(hint),
            _ if matches!(hint, Some(Hint::Ip4 | Hint::Ip6 | Hint::SocketAddress | Hint::Mac | Hint::Uuid | Hint::HexBytes)) => {
                FieldDecoder::Bytes(hint)
            }
            _ => {
                let words = field.type_name.contains("unsigned long") || ctype == CType::Pointer;
                let signed = matches!(ctype, CType::Signed(_));
                FieldDecoder::Array(NumberFormat {
                    bytes: field.element_bytes().min(8),
                    signed,
                    radix: if words { Radix::Hexadecimal } else { radix },
                })
            }
        };
    }
    if !matches!(field.size, 1 | 2 | 4 | 8) {
        return FieldDecoder::Bytes(hint);
    }
    if let Some(names) = print.value_names(&field.name) {
        return FieldDecoder::Named(names.clone(), NumberFormat::of(field, radix));
    }
    match field.type_name.as_str() {
        "pid_t" => FieldDecoder::Pid,
        "dev_t" if field.size == 4 => FieldDecoder::Dev,
        "umode_t" => FieldDecoder::Number(NumberFormat::of(field, Radix::Octal)),
        "int" | "unsigned int" | "u32" | "__u32" if is_pid(&field.name) => FieldDecoder::Pid,
        "int" if field.name == "sig" => FieldDecoder::Signal,
        _ if hint == Some(Hint::Code) => FieldDecoder::Code,
        _ if ctype == CType::Pointer || hint == Some(Hint::Address) => FieldDecoder::Address,
        _ => FieldDecoder::Number(NumberFormat::of(field, radix)),
    }
}

/// Returns the decoder of a probe's field. Its type and the print format have the type that the probe's definition
/// requests.
fn fetched(field: &FormatField, print: &PrintFormat) -> FieldDecoder {
    let hint = print.hint(&field.name);
    match (field.ctype(), field.place) {
        (CType::Char, FieldPlace::DataLoc | FieldPlace::RelLoc) if field.size > 4 => FieldDecoder::FetchedTexts,
        (CType::Char, FieldPlace::DataLoc | FieldPlace::RelLoc) => FieldDecoder::Fetched,
        (CType::Unsigned(1), FieldPlace::Here) if hint == Some(Hint::Char) => {
            if field.array.is_some() {
                FieldDecoder::Text
            } else {
                FieldDecoder::Char
            }
        }
        (CType::Unsigned(1), FieldPlace::Here) if field.array.is_some() => FieldDecoder::Array(NumberFormat {
            bytes: 1,
            signed: false,
            radix: if hint == Some(Hint::Hex) { Radix::Hexadecimal } else { Radix::Decimal },
        }),
        (CType::Signed(_) | CType::Unsigned(_), FieldPlace::Here) if field.array.is_none() && is_pid(&field.name) => FieldDecoder::Pid,
        _ => by_format(field, print),
    }
}

fn is_pid(name: &str) -> bool {
    matches!(name, "pid" | "tid" | "tgid") || name.ends_with("_pid") || name.ends_with("_tgid")
}

/// Returns the decoders for the arguments of `sys_enter_X`: by the row of X, or by type and name if there is none.
fn syscall_fields(format: &Format, event: &str) -> Vec<(FormatField, FieldDecoder)> {
    let row = row(event);
    let copies = format.user_copies();
    let argument = |(index, field): (usize, &FormatField)| {
        let arg = row.and_then(|row| row.args.iter().find(|arg| arg.name == field.name));
        let copy = copies.iter().find(|copy| usize::from(copy.arg) == index);
        let how = match (copy, arg) {
            (Some(copy), _) => FieldDecoder::Copy { copy: copy.clone(), count: counted_by(arg) },
            (None, Some(arg)) => by_row(arg, index).unwrap_or_else(|| by_type(field)),
            (None, None) => by_type(field),
        };
        (field.clone(), how)
    };
    format.syscall_arguments().take(6).enumerate().map(argument).collect()
}

/// Returns the row for the X of `sys_enter_X`.
fn row(event: &str) -> Option<&'static Syscall> {
    SYSCALLS.iter().find(|syscall| syscall.event == event)
}

/// Returns whether the return value of X is an address, for the X of `sys_exit_X`.
fn returns_address(event: &str) -> bool {
    row(event).is_some_and(|row| matches!(row.returns, Return::Address | Return::Hex))
}

/// Returns the index of the argument that has the length of this one.
fn counted_by(arg: Option<&Arg>) -> Option<u8> {
    match arg?.length {
        Length::Arg(count) => Some(count),
        _ => None,
    }
}

fn by_row(arg: &Arg, index: usize) -> Option<FieldDecoder> {
    let number = |bytes, signed, radix| FieldDecoder::Number(NumberFormat { bytes, signed, radix });
    Some(match arg.kind {
        ArgumentKind::Fd => FieldDecoder::Fd,
        ArgumentKind::DirFd => FieldDecoder::DirFd,
        ArgumentKind::Pid => FieldDecoder::Pid,
        ArgumentKind::Signal => FieldDecoder::Signal,
        ArgumentKind::Mode => number(2, false, Radix::Octal),
        ArgumentKind::Table(table) => FieldDecoder::Table(table),
        ArgumentKind::Custom(decode, _) => FieldDecoder::Custom(decode, index),
        ArgumentKind::Int => number(4, true, Radix::Decimal),
        ArgumentKind::Uint => number(4, false, Radix::Decimal),
        ArgumentKind::Long | ArgumentKind::Offset => number(8, true, Radix::Decimal),
        ArgumentKind::Ulong | ArgumentKind::Size => number(8, false, Radix::Decimal),
        ArgumentKind::Hex => number(8, false, Radix::Hexadecimal),
        ArgumentKind::Address => FieldDecoder::Address,
        _ => return None,
    })
}

/// Returns the decoder of an argument's register by its C type. The kernel uses only as many bytes as the type has.
fn by_type(field: &FormatField) -> FieldDecoder {
    let ctype = field.ctype();
    match (ctype, field.name.as_str()) {
        (CType::Pointer, _) => FieldDecoder::Address,
        (_, _) if field.type_name == "pid_t" => FieldDecoder::Pid,
        (_, _) if field.type_name == "umode_t" => FieldDecoder::Number(NumberFormat { bytes: 2, signed: false, radix: Radix::Octal }),
        (CType::Signed(4), name) if name == "dirfd" || name.ends_with("dfd") => FieldDecoder::DirFd,
        (CType::Signed(4) | CType::Unsigned(_), name) if name.ends_with("fd") => FieldDecoder::Fd,
        (CType::Signed(4), "sig") => FieldDecoder::Signal,
        (CType::Signed(bytes), _) => FieldDecoder::Number(NumberFormat { bytes, signed: true, radix: Radix::Decimal }),
        (CType::Unsigned(bytes), _) => FieldDecoder::Number(NumberFormat { bytes, signed: false, radix: Radix::Decimal }),
        // An enum is an int; for unknown types, the whole register is shown.
        _ if field.type_name.contains("enum ") => FieldDecoder::Number(NumberFormat { bytes: 4, signed: true, radix: Radix::Decimal }),
        _ => FieldDecoder::Number(NumberFormat { bytes: 8, signed: false, radix: Radix::Hexadecimal }),
    }
}

fn constant(table: &'static ConstantTable, abi: Abi, register: u64) -> Value<'static> {
    let table = table.per_abi.iter().find(|(of, _)| *of == abi).map_or(table, |(_, table)| *table);
    let bits = if table.bits == 32 { register & 0xffff_ffff } else { register };
    match table.kind {
        TableKind::Flags => Value::Flags { table, bits },
        TableKind::Enum => Value::Symbol { table, value: bits },
    }
}

/// Decodes a string that a probe fetched, which has at least its NUL if the kernel could read it. (For a while, Linux
/// 6.1 to 6.4 wrote the text `(fault)` instead of an empty field.)
fn fetched_text(bytes: &[u8]) -> Value<'_> {
    match memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end]) {
        plain if bytes.is_empty() || plain == probe::UNREAD => Value::UnreadText,
        plain => text(plain),
    }
}

fn text(bytes: &[u8]) -> Value<'_> {
    Value::Str(Text { bytes: Cow::Borrowed(bytes), ..Text::default() })
}

#[cfg(test)]
mod tests;
