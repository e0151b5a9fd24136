//! A tracepoint's record → typed values, by its format file.
//!
//! How each field is read is settled once per event ([`Decoder::new`]); a record then costs a few loads a field. Everything is told from the type,
//! the name and the kernel's print format; for `syscalls:` events from the syscall's row. What a record is too short for is [`Value::Unknown`].

use super::row::{Arg, Kind, Length, Return, Syscall, Table, TableKind};
use super::tables::SYSCALLS;
use super::value::{List, Text, Value};
use crate::event::{Abi, Comm};
use crate::kernel::ctype::CType;
use crate::kernel::fetched::{Fetched, Got};
use crate::kernel::field::sign_extend;
use crate::kernel::format::{FieldPlace, Format, FormatField};
use crate::kernel::print_fmt::{Hint, Naming, PrintFormat};
use crate::kernel::syscall_event::{Copied, UserCopy};
use std::borrow::Cow;

mod bytes;
mod constants;
mod probe;

pub use constants::constants;

/// Elements of an array that are shown at most.
const ITEMS_MAX: usize = 64;

/// How to read one event's records.
#[derive(Debug)]
pub struct Decoder {
    fields: Vec<(FormatField, Reading)>,
    /// The argument registers of a `sys_enter_X` event.
    registers: Vec<FormatField>,
    is_of_probe: bool,
    /// Of a return probe: the function, and where it returns to.
    returns: Option<(FormatField, FormatField)>,
    abi: Abi,
    copy_limit: u32,
}

/// How one field is read.
#[derive(Debug)]
enum Reading {
    Text,
    /// Texts that a probe fetched: one without any byte could not be read.
    Fetched,
    FetchedTexts,
    Char,
    Number(Number),
    Pid,
    Address,
    Code,
    /// `dev_t` as the kernel itself has it: 12 bits of major, 20 of minor number.
    Dev,
    Signal,
    Fd,
    DirFd,
    Table(&'static Table),
    Custom(fn(&[u64; 6], usize, Abi) -> Value<'static>, usize),
    Named(Naming, Number),
    Array(Number),
    Bytes(Option<Hint>),
    /// As the other way says, if it could be read.
    FromMemory(Fetched, Box<Reading>),
    /// What a syscall returned: an errno is a negative number also where an address is expected.
    Return {
        address: bool,
    },
    /// An argument whose memory the kernel copied; `count`: the argument that says how many bytes there were.
    Copy {
        copy: UserCopy,
        count: Option<u8>,
    },
}

/// How a number is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    bytes: u8,
    signed: bool,
    base: Base,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Ten,
    Sixteen,
    Eight,
}

impl Decoder {
    /// Settles how the records of this event are read. `function`: what a probe is on, if that is known. `copy_limit`: [`crate::kernel::syscall_event::copy_limit`] of the
    /// traced machine.
    pub fn new(format: &Format, function: Option<&str>, abi: Abi, copy_limit: u32) -> Decoder {
        let shown = || format.own_fields().filter(|field| !field.is_internal());
        let of_syscall = |prefix| format.name.strip_prefix(prefix).filter(|_| format.field("__syscall_nr").is_some());
        let is_of_probe = probe::is_probe(format);
        let (fields, registers) = if let Some(event) = of_syscall("sys_enter_") {
            (syscall_fields(format, event), format.syscall_arguments().cloned().collect())
        } else if let Some(event) = of_syscall("sys_exit_") {
            let address = returned(event);
            (shown().map(|field| (field.clone(), Reading::Return { address })).collect(), Vec::new())
        } else {
            let print = PrintFormat::parse(&format.print);
            let fields = if is_of_probe {
                let call = function.and_then(probe::syscall);
                let reading = |field: &FormatField| probe::argument(call, field).unwrap_or_else(|| fetched(field, &print));
                shown().map(|field| (field.clone(), reading(field))).collect()
            } else {
                event_fields(format, &print)
            };
            (fields, Vec::new())
        };
        Decoder { fields, registers, is_of_probe, returns: probe::returns(format), abi, copy_limit }
    }

    /// Whether the records are a probe's.
    pub fn is_of_probe(&self) -> bool {
        self.is_of_probe
    }

    /// Of a return probe's record: where the function is, and where it returned to.
    pub fn returned(&self, raw: &[u8]) -> Option<(u64, u64)> {
        let (function, caller) = self.returns.as_ref()?;
        Some((function.unsigned(raw)?, caller.unsigned(raw)?))
    }

    /// The event's fields, by name, in the format's order. `comm` gives a task's name at the record's time.
    pub fn decode<'a>(&'a self, raw: &'a [u8], comm: &dyn Fn(i32) -> Option<Comm>) -> Vec<(&'a str, Value<'a>)> {
        self.fields.iter().map(|(field, how)| (field.name.as_str(), self.value(field, how, raw, comm).unwrap_or(Value::Unknown))).collect()
    }

    fn value<'a>(
        &'a self,
        field: &'a FormatField,
        how: &'a Reading,
        raw: &'a [u8],
        comm: &dyn Fn(i32) -> Option<Comm>,
    ) -> Option<Value<'a>> {
        let int = || field.unsigned(raw).map(|number| number as i32);
        Some(match how {
            Reading::Text => text(field.text(raw)?),
            Reading::Fetched => fetched_text(field.bytes(raw)?),
            Reading::FetchedTexts => {
                let items = field.places().map(|place| place.bytes(raw).map_or(Value::Unknown, fetched_text)).collect();
                Value::Array(List { items, ..List::default() })
            }
            Reading::Char => Value::Formatted { text: character(field.unsigned(raw)? as u8), number: field.unsigned(raw) },
            Reading::Number(number) => number.value(field.unsigned(raw)?),
            Reading::Pid => Value::Pid { pid: int()?, here: None, comm: comm(int()?) },
            Reading::Address => Value::Address(field.unsigned(raw)?),
            Reading::Code => Value::Code(field.unsigned(raw)?),
            Reading::Dev => {
                let dev = field.unsigned(raw)? as u32;
                Value::Dev { major: dev >> 20, minor: dev & 0xf_ffff }
            }
            Reading::Signal => Value::Signal(int()?),
            Reading::Fd => Value::Fd { fd: int()?, file: None },
            Reading::DirFd => Value::DirFd { fd: int()?, file: None },
            Reading::Table(table) => of_table(table, self.abi, field.unsigned(raw)?),
            Reading::Custom(decode, index) => decode(&self.registers(raw)?, *index, self.abi),
            Reading::Return { address } => match field.unsigned(raw)? {
                ret if *address && !(-4095..0).contains(&(ret as i64)) => Value::Hex(ret),
                ret => Value::Int(ret as i64),
            },
            Reading::Named(naming, number) => {
                let bits = field.unsigned(raw)?;
                match naming.text(number.bytes, &|name| self.exact(name, raw)) {
                    Some(text) => Value::Formatted { text, number: Some(bits) },
                    None => number.value(bits),
                }
            }
            Reading::Array(number) => {
                let mut elements = field.elements(raw)?;
                let items = elements.by_ref().take(ITEMS_MAX).map(|element| number.value(element)).collect();
                Value::Array(List { items, more: elements.next().is_some(), ..List::default() })
            }
            Reading::Bytes(hint) => Value::Formatted { text: bytes::words(field.bytes(raw)?, *hint), number: None },
            Reading::FromMemory(fetched, how) => match fetched.got(raw, field.size)? {
                Got::Nothing(0) => Value::Address(0),
                Got::Nothing(address) => Value::Unread(address),
                Got::Cut if field.is_text() => Value::Str(Text { bytes: field.text(raw)?.into(), cut: true, ..Text::default() }),
                Got::Cut | Got::Whole => self.value(field, how, raw, comm)?,
            },
            Reading::Copy { copy, count } => self.copied(field, copy, *count, raw)?,
        })
    }

    /// A field's number with its sign, for the print format's expressions.
    fn exact(&self, name: &str, raw: &[u8]) -> Option<i128> {
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
            // A dot may be the kernel's for a byte that is not printable: where there is none, nothing was replaced.
            Copied::Text { bytes, cut } => Value::Str(Text { altered: bytes.contains(&b'.'), bytes: bytes.into(), cut, ..Text::default() }),
            Copied::Bytes(bytes) => {
                let wanted = count.and_then(|arg| self.registers.get(usize::from(arg))?.unsigned(raw));
                let cut = wanted.map_or(bytes.len() >= self.copy_limit as usize, |wanted| wanted > bytes.len() as u64);
                Value::Str(Text { bytes: bytes.into(), cut, ..Text::default() })
            }
        })
    }
}

impl Number {
    /// Of a type whose width is known, else as wide and signed as the field.
    fn of(field: &FormatField, base: Base) -> Number {
        Number { bytes: u8::try_from(field.size).unwrap_or(8).clamp(1, 8), signed: field.signed, base }
    }

    /// The value of a register or field of which only so many bytes count.
    fn value(self, bits: u64) -> Value<'static> {
        let bits = bits & (u64::MAX >> (64 - 8 * u32::from(self.bytes)));
        match self.base {
            Base::Sixteen => Value::Hex(bits),
            Base::Eight => Value::Octal(bits),
            Base::Ten if self.signed => Value::Int(sign_extend(bits, self.bytes)),
            Base::Ten => Value::Uint(bits),
        }
    }
}

/// How the fields of an event are read that is not the kernel's own of a syscall.
fn event_fields(format: &Format, print: &PrintFormat) -> Vec<(FormatField, Reading)> {
    // A program's event at a syscall has some of its arguments, or what it returned.
    let row = format.name.strip_prefix("sys_enter_").and_then(self::row);
    let returned = format.name.strip_prefix("sys_exit_").map(returned);
    let shown = format.fields.iter().enumerate().filter(|(_, field)| !field.is_common() && !field.is_internal());
    let read = |(at, field): (usize, &FormatField)| {
        let how = match &returned {
            Some(address) if field.name == "ret" && field.size == 8 => Reading::Return { address: *address },
            _ => row.and_then(|row| register_by_row(row, field)).unwrap_or_else(|| reading(field, print)),
        };
        let how = match format.fetched(at) {
            Some(fetched) => Reading::FromMemory(fetched, Box::new(how)),
            None => how,
        };
        (field.clone(), how)
    };
    shown.map(read).collect()
}

/// How an argument's register is read that stands alone.
fn register_by_row(row: &Syscall, field: &FormatField) -> Option<Reading> {
    let is_register = field.size == 8 && field.array.is_none() && field.place == FieldPlace::Here;
    let arg = row.args.iter().find(|arg| is_register && arg.name == field.name)?;
    by_row(arg, 0).filter(|how| !matches!(how, Reading::Custom(..)))
}

/// How a field of an ordinary tracepoint is read.
fn reading(field: &FormatField, print: &PrintFormat) -> Reading {
    let hint = print.hint(&field.name);
    let base = match hint {
        Some(Hint::Hex) => Base::Sixteen,
        Some(Hint::Octal) => Base::Eight,
        _ => Base::Ten,
    };
    let ctype = field.ctype();
    if field.array.is_some() || field.place != FieldPlace::Here {
        return match ctype {
            CType::Char => Reading::Text,
            CType::Unsigned(1) | CType::Other => Reading::Bytes(hint),
            _ if matches!(hint, Some(Hint::Ip4 | Hint::Ip6 | Hint::SocketAddress | Hint::Mac | Hint::Uuid | Hint::HexBytes)) => {
                Reading::Bytes(hint)
            }
            _ => {
                let words = field.type_name.contains("unsigned long") || ctype == CType::Pointer;
                let signed = matches!(ctype, CType::Signed(_));
                Reading::Array(Number { bytes: field.element_bytes().min(8), signed, base: if words { Base::Sixteen } else { base } })
            }
        };
    }
    if !matches!(field.size, 1 | 2 | 4 | 8) {
        return Reading::Bytes(hint);
    }
    if let Some(naming) = print.naming(&field.name) {
        return Reading::Named(naming.clone(), Number::of(field, base));
    }
    match field.type_name.as_str() {
        "pid_t" => Reading::Pid,
        "dev_t" if field.size == 4 => Reading::Dev,
        "umode_t" => Reading::Number(Number::of(field, Base::Eight)),
        "int" | "unsigned int" | "u32" | "__u32" if is_pid(&field.name) => Reading::Pid,
        "int" if field.name == "sig" => Reading::Signal,
        _ if hint == Some(Hint::Code) => Reading::Code,
        _ if ctype == CType::Pointer || hint == Some(Hint::Address) => Reading::Address,
        _ => Reading::Number(Number::of(field, base)),
    }
}

/// How a field of a probe is read: as it was asked for, which its type and the kernel's print format say.
fn fetched(field: &FormatField, print: &PrintFormat) -> Reading {
    let hint = print.hint(&field.name);
    match (field.ctype(), field.place) {
        (CType::Char, FieldPlace::DataLoc | FieldPlace::RelLoc) if field.size > 4 => Reading::FetchedTexts,
        (CType::Char, FieldPlace::DataLoc | FieldPlace::RelLoc) => Reading::Fetched,
        (CType::Unsigned(1), FieldPlace::Here) if hint == Some(Hint::Char) => {
            if field.array.is_some() {
                Reading::Text
            } else {
                Reading::Char
            }
        }
        (CType::Unsigned(1), FieldPlace::Here) if field.array.is_some() => {
            Reading::Array(Number { bytes: 1, signed: false, base: if hint == Some(Hint::Hex) { Base::Sixteen } else { Base::Ten } })
        }
        (CType::Signed(_) | CType::Unsigned(_), FieldPlace::Here) if field.array.is_none() && is_pid(&field.name) => Reading::Pid,
        _ => reading(field, print),
    }
}

fn is_pid(name: &str) -> bool {
    matches!(name, "pid" | "tid" | "tgid") || name.ends_with("_pid") || name.ends_with("_tgid")
}

/// How the arguments of `sys_enter_X` are read: by X's row, and by type and name where there is none.
fn syscall_fields(format: &Format, event: &str) -> Vec<(FormatField, Reading)> {
    let row = row(event);
    let copies = format.user_copies();
    let argument = |(index, field): (usize, &FormatField)| {
        let arg = row.and_then(|row| row.args.iter().find(|arg| arg.name == field.name));
        let copy = copies.iter().find(|copy| usize::from(copy.arg) == index);
        let how = match (copy, arg) {
            (Some(copy), _) => Reading::Copy { copy: copy.clone(), count: counted_by(arg) },
            (None, Some(arg)) => by_row(arg, index).unwrap_or_else(|| by_type(field)),
            (None, None) => by_type(field),
        };
        (field.clone(), how)
    };
    format.syscall_arguments().take(6).enumerate().map(argument).collect()
}

/// The row of the X of `sys_enter_X`.
fn row(event: &str) -> Option<&'static Syscall> {
    SYSCALLS.iter().find(|syscall| syscall.event == event)
}

/// Whether what X returns is an address, for the X of `sys_exit_X`.
fn returned(event: &str) -> bool {
    row(event).is_some_and(|row| matches!(row.returns, Return::Address | Return::Hex))
}

fn counted_by(arg: Option<&Arg>) -> Option<u8> {
    match arg?.length {
        Length::Arg(count) => Some(count),
        _ => None,
    }
}

fn by_row(arg: &Arg, index: usize) -> Option<Reading> {
    let number = |bytes, signed, base| Reading::Number(Number { bytes, signed, base });
    Some(match arg.kind {
        Kind::Fd => Reading::Fd,
        Kind::DirFd => Reading::DirFd,
        Kind::Pid => Reading::Pid,
        Kind::Signal => Reading::Signal,
        Kind::Mode => number(2, false, Base::Eight),
        Kind::Table(table) => Reading::Table(table),
        Kind::Custom(decode, _) => Reading::Custom(decode, index),
        Kind::Int => number(4, true, Base::Ten),
        Kind::Uint => number(4, false, Base::Ten),
        Kind::Long | Kind::Offset => number(8, true, Base::Ten),
        Kind::Ulong | Kind::Size => number(8, false, Base::Ten),
        Kind::Hex => number(8, false, Base::Sixteen),
        Kind::Address => Reading::Address,
        _ => return None,
    })
}

/// An argument's register by its C type: the kernel looks at no more bytes than that has.
fn by_type(field: &FormatField) -> Reading {
    let ctype = field.ctype();
    match (ctype, field.name.as_str()) {
        (CType::Pointer, _) => Reading::Address,
        (_, _) if field.type_name == "pid_t" => Reading::Pid,
        (_, _) if field.type_name == "umode_t" => Reading::Number(Number { bytes: 2, signed: false, base: Base::Eight }),
        (CType::Signed(4), name) if name == "dirfd" || name.ends_with("dfd") => Reading::DirFd,
        (CType::Signed(4) | CType::Unsigned(_), name) if name.ends_with("fd") => Reading::Fd,
        (CType::Signed(4), "sig") => Reading::Signal,
        (CType::Signed(bytes), _) => Reading::Number(Number { bytes, signed: true, base: Base::Ten }),
        (CType::Unsigned(bytes), _) => Reading::Number(Number { bytes, signed: false, base: Base::Ten }),
        // An enum is an int; of other types the whole register is shown.
        _ if field.type_name.contains("enum ") => Reading::Number(Number { bytes: 4, signed: true, base: Base::Ten }),
        _ => Reading::Number(Number { bytes: 8, signed: false, base: Base::Sixteen }),
    }
}

fn of_table(table: &'static Table, abi: Abi, register: u64) -> Value<'static> {
    let table = table.per_abi.iter().find(|(of, _)| *of == abi).map_or(table, |(_, table)| *table);
    let bits = if table.bits == 32 { register & 0xffff_ffff } else { register };
    match table.kind {
        TableKind::Flags => Value::Flags { table, bits },
        TableKind::Enum => Value::Symbol { table, value: bits },
    }
}

/// A text that was fetched has at least its NUL. (Linux 6.1 to 6.4 wrote the kernel's words in place of it, for a while.)
fn fetched_text(bytes: &[u8]) -> Value<'_> {
    match memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end]) {
        plain if bytes.is_empty() || plain == probe::UNREAD.as_bytes() => Value::Formatted { text: probe::UNREAD.to_owned(), number: None },
        plain => text(plain),
    }
}

/// `'c'`, or the number of what is none; styles escape it.
fn character(byte: u8) -> String {
    if byte.is_ascii() { format!("'{}'", char::from(byte)) } else { format!("{byte:#x}") }
}

fn text(bytes: &[u8]) -> Value<'_> {
    Value::Str(Text { bytes: Cow::Borrowed(bytes), ..Text::default() })
}

#[cfg(test)]
mod tests;
