//! From a struct's bytes to its members' values, by the rows of `beauty/structs/`.

use super::memory::{Memory, Reader, load};
use super::row::{Form, Kind, Layout, Length, Member, Number, Struct};
use super::scalar::{scalar, whole};
use super::value::{Record, Text, Value};
use std::borrow::Cow;

/// Names and values of a struct's members, in order.
pub type Members<'a> = Vec<(&'static str, Value<'a>)>;

impl<'a> Reader<'a> {
    /// A struct's value: the members that are whole, and whether the call names more than these.
    pub fn structure(&mut self, of: &'static Struct, memory: Memory<'a>) -> Value<'a> {
        let abi = self.abi() as usize;
        match &of.layout {
            Layout::Opaque => Value::Unread(memory.address),
            Layout::Decoder(decode) => decode(self, memory),
            Layout::Number(forms) => self.form(&forms[abi], memory, None).unwrap_or(Value::Unread(memory.address)),
            Layout::Members(_) => {
                let (members, more) = self.members(of, memory);
                Value::Struct(Record { name: of.name, address: memory.address, members, more })
            }
        }
    }

    /// The members that are whole, and whether the call names more of the struct; nothing of a struct without members.
    pub fn members(&mut self, of: &'static Struct, memory: Memory<'a>) -> (Members<'a>, bool) {
        let abi = self.abi() as usize;
        let Layout::Members(layouts) = &of.layout else { return (Vec::new(), true) };
        let (of, size) = (layouts[abi], of.sizes[abi]);
        let mut members = Vec::with_capacity(of.len());
        let mut more = memory.is_cut() || memory.wanted > u64::from(size) && !ends_open(of);
        for member in of {
            if self.is_unwritten && member.is_only_written() {
                continue;
            }
            if let Some(raw) = plain(member, memory).filter(|_| self.spend_value()) {
                // Made where they stay, because a value that was just written in parts is slow to move: 610 ns instead of 730 for a line with a struct stat.
                match raw {
                    Plain::Signed(raw) => members.push((member.name, Value::Int(raw))),
                    Plain::Unsigned(raw) => members.push((member.name, Value::Uint(raw))),
                }
                continue;
            }
            let bytes = match member.form.size(self.abi()) as usize {
                0 => memory.bytes.len().saturating_sub(member.offset as usize),
                bytes => bytes,
            };
            // Where a struct is shorter than rtrace knows it, the call names no more.
            let Some(part) = memory.part(member.offset as usize, bytes) else { break };
            if !self.spend_value() {
                more = true;
                break;
            }
            let length = length(&member.form, of, memory);
            match self.form(&member.form, part, length) {
                Some(value) => members.push((member.name, value)),
                None => {
                    more = true;
                    break;
                }
            }
        }
        (members, more)
    }

    /// A member's value; `None` if it is a number of which not all is here.
    pub(super) fn form(&mut self, form: &'static Form, memory: Memory<'a>, length: Option<u64>) -> Option<Value<'a>> {
        Some(match form {
            Form::Number(number) => self.number(number, memory, length)?,
            Form::Struct(of) => self.structure(of, memory),
            Form::Array { element, stride, .. } => self.array(element, *stride as usize, memory),
            Form::Text(_) => self.text(memory, usize::MAX, true),
            Form::Bytes(_) => self.text(memory, self.context.string_limit, false),
        })
    }

    #[inline]
    fn number(&mut self, number: &'static Number, memory: Memory<'a>, length: Option<u64>) -> Option<Value<'a>> {
        let bytes = memory.bytes.get(..usize::from(number.bytes))?;
        let raw = load(bytes, number.signed, number.big_endian)?;
        match number.kind {
            Kind::Table(table) => return Some(whole(table, load(bytes, false, number.big_endian)?, self.abi())),
            Kind::Mode => return Some(Value::Octal(raw)),
            Kind::Fd if number.bytes == 4 => return Some(Value::Fd { fd: raw as i32, file: self.file(raw as i32) }),
            _ if is_narrow(&number.kind) && i32::try_from(raw as i64).is_err() && u32::try_from(raw).is_err() => {
                return Some(Value::Hex(raw));
            }
            _ => {}
        }
        if let Some(value) = scalar(&number.kind, raw, self.abi(), self.context) {
            return Some(value);
        }
        Some(match (self.pointed(&number.kind, raw, length), number.kind) {
            // Nothing is named, so nothing had to be copied.
            (Value::Unread(address @ 1..), Kind::Bytes) if length == Some(0) => {
                Value::Str(Text { bytes: Cow::Borrowed(b""), address, wanted: Some(0), ..Text::default() })
            }
            (value, _) => value,
        })
    }
}

/// A number that is no more than a number, as most members are.
enum Plain {
    Signed(i64),
    Unsigned(u64),
}

fn plain(member: &Member, memory: Memory) -> Option<Plain> {
    let Form::Number(Number { bytes, kind: Kind::Long | Kind::Ulong, signed, big_endian: false, .. }) = member.form else { return None };
    let raw = memory.number(member.offset as usize, usize::from(bytes), signed)?;
    Some(if signed { Plain::Signed(raw as i64) } else { Plain::Unsigned(raw) })
}

/// Whether the kind has 32 bits in a register, so that a wider number in memory may say more.
fn is_narrow(kind: &Kind) -> bool {
    matches!(kind, Kind::Int | Kind::Uint | Kind::Fd | Kind::DirFd | Kind::Pid | Kind::Uid | Kind::Gid | Kind::Signal | Kind::Dev)
}

/// How long what a member points to is, as another member says.
fn length(form: &Form, of: &'static [Member], memory: Memory) -> Option<u64> {
    let Form::Number(number) = form else { return None };
    match number.length {
        Length::Fixed(length) => Some(length),
        Length::Arg(at) => {
            let other = of.get(usize::from(at))?;
            let Form::Number(number) = &other.form else { return None };
            memory.number(other.offset as usize, usize::from(number.bytes), false)
        }
        Length::OfType | Length::Ret => None,
    }
}

/// Whether the last member takes all bytes that there are.
fn ends_open(members: &[Member]) -> bool {
    members.last().is_some_and(|last| match last.form {
        Form::Text(bytes) | Form::Bytes(bytes) => bytes == 0,
        Form::Array { count, .. } => count == 0,
        Form::Number(_) | Form::Struct(_) => false,
    })
}
