//! Decodes the bytes of a struct to the values of its members, by the rows of `beauty/structs/`.

use super::memory::{Memory, MemoryReader, load};
use super::row::{
    ArgumentKind, BriefMember, Condition, Flow, Length, LengthUnit, MemoryNumber, MemoryType, Shown, Struct, StructLayout, StructMember,
};
use super::scalar::{memory_constants, scalar};
use super::value::{ArrayValue, StructValue, Text, Value};
use std::borrow::Cow;

/// The name of the bytes that follow the members of a struct which is longer in the call than in its row.
const TAIL: &str = "tail";

/// The names and values of a struct's members, in the order of their offsets.
pub type Members<'a> = Vec<(&'static str, Value<'a>)>;

impl<'a> MemoryReader<'a> {
    /// Decodes a struct.
    pub fn structure(&mut self, of: &'static Struct, memory: Memory<'a>) -> Value<'a> {
        let abi = self.abi() as usize;
        if let Some(chosen) = chosen(of, memory, abi) {
            // Programs often pass the size of the largest struct that the member can select.
            return self.structure(chosen, memory.first(chosen.sizes[abi] as usize));
        }
        match &of.layout {
            StructLayout::Opaque => Value::Unread(memory.address),
            StructLayout::Decoder(decode) => decode(self, memory),
            StructLayout::Number(types) => self.typed(&types[abi], memory, None).unwrap_or(Value::Unread(memory.address)),
            StructLayout::Members(_) => {
                let (members, more) = self.members(of, memory);
                Value::Struct(StructValue { name: of.name, address: memory.address, members, more })
            }
        }
    }

    /// Decodes the members that were copied completely, or those of the brief form if the context asks for it. Returns
    /// them, and whether the struct has further members or bytes. A struct whose layout has no members yields none.
    pub fn members(&mut self, of: &'static Struct, memory: Memory<'a>) -> (Members<'a>, bool) {
        let abi = self.abi() as usize;
        let StructLayout::Members(layouts) = &of.layout else { return (Vec::new(), true) };
        let whole = of;
        let brief = of.brief.members.filter(|_| self.context.is_brief).map(|lists| lists[abi]);
        let (of, size) = (layouts[abi], of.sizes[abi]);
        let count = brief.map_or(of.len(), <[BriefMember]>::len);
        let mut members = Vec::with_capacity(count);
        let tail = if memory.wanted > u64::from(size) && !ends_open(of) { memory.part(size as usize, memory.bytes.len()) } else { None };
        // A struct without members to show, such as a key, has its bytes as what is not shown.
        let mut more = memory.is_cut() || of.is_empty();
        // The index behind the last member that was decoded or left out.
        let mut next = 0;
        for at in 0..count {
            let member = match brief {
                None => &of[at],
                Some(brief) => {
                    let BriefMember { index, shown } = &brief[at];
                    let index = usize::from(*index);
                    let is_shown = self.is_shown(shown, &of[index], memory);
                    let left_out = next..if is_shown { index } else { index + 1 };
                    more = more || of[left_out].iter().any(|member| self.is_there(member, of, memory));
                    next = index + 1;
                    if !is_shown {
                        continue;
                    }
                    &of[index]
                }
            };
            if !self.has_value(member, of, memory) {
                continue;
            }
            if let Some(raw) = plain(member, memory).filter(|_| self.spend_value()) {
                // The values are constructed in the vector, since moving a value that was just written in parts is
                // slow: a line with a struct stat takes 610 ns instead of 730.
                match raw {
                    PlainNumber::Signed(raw) => members.push((member.name, Value::Int(raw))),
                    PlainNumber::Unsigned(raw) => members.push((member.name, Value::Uint(raw))),
                }
                continue;
            }
            let bytes = match member.memory_type.size(self.abi()) as usize {
                0 => self.open_bytes(whole, member, memory),
                bytes => bytes,
            };
            // The call may specify a struct that is shorter than the row's.
            let Some(part) = memory.part(member.offset as usize, bytes) else { break };
            if !self.spend_value() {
                more = true;
                break;
            }
            if let Some(address) = unwritten_address(member, of, memory) {
                members.push((member.name, Value::Address(address)));
                continue;
            }
            let length = length(&member.memory_type, of, memory);
            match self.typed(&member.memory_type, part, length) {
                Some(value) => members.push((member.name, value)),
                None => {
                    more = true;
                    break;
                }
            }
        }
        more = more || brief.is_some() && of[next..].iter().any(|member| self.is_there(member, of, memory));
        // The kernel accepts members of newer kernels only if they are 0 (copy_struct_from_user() in
        // include/linux/uaccess.h).
        if let Some(tail) = tail.filter(|tail| tail.bytes.iter().any(|byte| *byte != 0)) {
            members.push((TAIL, self.text(tail, self.context.string_limit, false)));
        }
        (members, more)
    }

    /// Returns the number of bytes of the member at the end of a struct: those to the end of the memory, or those of
    /// the elements that the kernel says it has written.
    fn open_bytes(&self, of: &Struct, member: &StructMember, memory: Memory) -> usize {
        let rest = memory.bytes.len().saturating_sub(member.offset as usize);
        let (Some(at), MemoryType::Array { stride, .. }) = (of.length_at.and_then(|at| at.written), &member.memory_type) else {
            return rest;
        };
        let written = memory.number(at as usize, 4, false).filter(|_| !self.is_unwritten);
        written.map_or(rest, |count| usize::try_from(count.saturating_mul(u64::from(*stride))).unwrap_or(rest).min(rest))
    }

    /// Returns whether a member belongs to the brief form of its struct.
    fn is_shown(&self, shown: &Shown, member: &StructMember, memory: Memory) -> bool {
        let is_not_zero = |of: Memory, offset: usize, bytes: usize| of.bytes.iter().skip(offset).take(bytes).any(|byte| *byte != 0);
        match shown {
            Shown::Always => true,
            Shown::NotZero { offset, bytes } => {
                let (offset, bytes) = (*offset as usize, *bytes as usize);
                // A member that the call has set to 0 has changed.
                let was_not_zero = || self.at_entry(memory).is_some_and(|before| is_not_zero(before, offset, bytes));
                is_not_zero(memory, offset, bytes) || !member.is_only_written() && was_not_zero()
            }
            Shown::If(condition) => self.call.args.as_ref().is_none_or(|registers| condition.holds(registers)),
        }
    }

    /// Returns whether the kernel reads or has written a member of a struct with these members.
    #[inline]
    fn has_value(&self, member: &StructMember, of: &'static [StructMember], memory: Memory) -> bool {
        !(self.is_unwritten && member.is_only_written()) && is_valid(member, of, memory)
    }

    /// Returns whether the copied memory has the value of a member.
    fn is_there(&self, member: &StructMember, of: &'static [StructMember], memory: Memory) -> bool {
        (member.offset as usize) < memory.bytes.len() && self.has_value(member, of, memory)
    }

    /// Decodes a member or an array element of a type. `length` is the value of the member that has its length. Returns
    /// `None` for a number that was not copied completely.
    pub(super) fn typed(&mut self, of: &'static MemoryType, memory: Memory<'a>, length: Option<u64>) -> Option<Value<'a>> {
        Some(match of {
            MemoryType::Number(number) => self.number(number, memory, length)?,
            MemoryType::Struct(of) => self.structure(of, memory),
            MemoryType::Array { element, stride, .. } => self.array(element, *stride as usize, memory),
            MemoryType::Text(_) => self.text(memory, usize::MAX, true),
            MemoryType::Bytes(_) => self.text(memory, self.context.string_limit, false),
        })
    }

    #[inline]
    fn number(&mut self, number: &'static MemoryNumber, memory: Memory<'a>, length: Option<u64>) -> Option<Value<'a>> {
        self.number_of(number, memory.bytes.get(..usize::from(number.bytes))?, number.big_endian, length)
    }

    /// Decodes a number that is as wide as the memory, whatever the width of its row. Returns `None` if the memory is
    /// not as long as a number, or was not copied completely.
    pub(super) fn any_width(&mut self, number: &'static MemoryNumber, memory: Memory<'a>, big_endian: bool) -> Option<Value<'a>> {
        let is_number = memory.wanted == memory.bytes.len() as u64 && matches!(memory.wanted, 1 | 2 | 4 | 8);
        self.number_of(number, memory.bytes, number.big_endian || big_endian, None).filter(|_| is_number)
    }

    #[inline]
    fn number_of(&mut self, number: &'static MemoryNumber, bytes: &[u8], big_endian: bool, length: Option<u64>) -> Option<Value<'a>> {
        let raw = load(bytes, number.signed, big_endian)?;
        match number.kind {
            ArgumentKind::Table(table) => return Some(memory_constants(table, load(bytes, false, big_endian)?, self.abi())),
            ArgumentKind::Mode => return Some(Value::Octal(raw)),
            ArgumentKind::Fd if bytes.len() == 4 => return Some(Value::Fd { fd: raw as i32, file: self.file(raw as i32) }),
            _ if is_narrow(&number.kind) && i32::try_from(raw as i64).is_err() && u32::try_from(raw).is_err() => {
                return Some(Value::Hex(raw));
            }
            _ => {}
        }
        if let Some(value) = scalar(&number.kind, raw, self.abi(), self.context) {
            return Some(value);
        }
        Some(match (self.pointed(&number.kind, raw, length), number.kind) {
            (Value::Unread(address @ 1..), ArgumentKind::Struct(of)) if length == Some(0) && of.counted == LengthUnit::Entries => {
                Value::Array(ArrayValue { address, ..ArrayValue::default() })
            }
            // The length is 0, so there was nothing to copy.
            (Value::Unread(address @ 1..), ArgumentKind::Bytes) if length == Some(0) => {
                Value::Str(Text { bytes: Cow::Borrowed(b""), address, wanted: Some(0), ..Text::default() })
            }
            (value, _) => value,
        })
    }
}

/// Returns the struct that a member of this struct selects, if there is one.
pub(super) fn chosen(of: &'static Struct, memory: Memory, abi: usize) -> Option<&'static Struct> {
    let (Some(choice), StructLayout::Members(layouts)) = (&of.choice, &of.layout) else { return None };
    let value = number_of(layouts[abi].get(usize::from(choice.member))?, memory)?;
    choice.structs.iter().find(|(known, _)| *known == value).map(|(_, of)| *of)
}

/// Returns whether a member is valid by the values of the other members. A pointer to memory that the kernel does not
/// write in this case is an address.
fn is_valid(member: &StructMember, of: &'static [StructMember], memory: Memory) -> bool {
    member.used == Condition::Always || member.flow == Flow::Out || is_used(member, of, memory)
}

/// Returns whether the condition of a member holds.
fn is_used(member: &StructMember, of: &'static [StructMember], memory: Memory) -> bool {
    member.used.holds_for(|at| of.get(usize::from(at)).and_then(|other| number_of(other, memory)))
}

/// Returns the value of a pointer to memory that the kernel does not write, by the values of the other members. What is
/// there belongs to another pointer (glibc's clone3 passes one address for the pidfd and for the parent's copy of the
/// tid).
fn unwritten_address(member: &StructMember, of: &'static [StructMember], memory: Memory) -> Option<u64> {
    if member.flow != Flow::Out || member.used == Condition::Always || member.is_only_written() || is_used(member, of, memory) {
        return None;
    }
    number_of(member, memory)
}

/// Loads a member that is a number, without its sign.
fn number_of(member: &StructMember, memory: Memory) -> Option<u64> {
    let MemoryType::Number(number) = &member.memory_type else { return None };
    let part = memory.part(member.offset as usize, usize::from(number.bytes))?;
    load(part.bytes, false, number.big_endian).filter(|_| part.bytes.len() == usize::from(number.bytes))
}

/// A number without a special meaning, as most members are.
enum PlainNumber {
    Signed(i64),
    Unsigned(u64),
}

/// Loads a member that is a plain number in the machine's byte order.
fn plain(member: &StructMember, memory: Memory) -> Option<PlainNumber> {
    let MemoryType::Number(MemoryNumber { bytes, kind: ArgumentKind::Long | ArgumentKind::Ulong, signed, big_endian: false, .. }) =
        member.memory_type
    else {
        return None;
    };
    let raw = memory.number(member.offset as usize, usize::from(bytes), signed)?;
    Some(if signed { PlainNumber::Signed(raw as i64) } else { PlainNumber::Unsigned(raw) })
}

/// Returns whether the kind has 32 bits in a register, so that a wider number in memory may exceed its range.
fn is_narrow(kind: &ArgumentKind) -> bool {
    matches!(
        kind,
        ArgumentKind::Int
            | ArgumentKind::Uint
            | ArgumentKind::Fd
            | ArgumentKind::DirFd
            | ArgumentKind::Pid
            | ArgumentKind::Uid
            | ArgumentKind::Gid
            | ArgumentKind::Signal
            | ArgumentKind::Dev
            | ArgumentKind::Port
    )
}

/// Returns the length of the memory that a member points to, if it is fixed or another member has it.
fn length(of_pointer: &MemoryType, of: &'static [StructMember], memory: Memory) -> Option<u64> {
    let MemoryType::Number(number) = of_pointer else { return None };
    match number.length {
        Length::Fixed(length) => Some(length),
        Length::Arg(at) => number_of(of.get(usize::from(at))?, memory),
        Length::OfType | Length::Ret => None,
    }
}

/// Returns whether the last member extends to the end of the memory (a flexible array).
fn ends_open(members: &[StructMember]) -> bool {
    members.last().is_some_and(|last| match last.memory_type {
        MemoryType::Text(bytes) | MemoryType::Bytes(bytes) => bytes == 0,
        MemoryType::Array { count, .. } => count == 0,
        MemoryType::Number(_) | MemoryType::Struct(_) => false,
    })
}
