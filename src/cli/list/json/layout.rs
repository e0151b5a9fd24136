//! The object of a struct.

use super::syscall::{Kind, Length, NamedValue, condition};
use super::{ByAbi, Serialize, by_abi};
use crate::beauty::row::{self, ArgumentKind, BriefMember, Flow, LengthUnit, MemoryNumber, MemoryType, Shown, StructLayout, StructMember};
use crate::kernel::machine::NATIVE_ABI;
use std::ops::Not;

/// A struct of the kernel's ABI.
#[derive(Serialize)]
pub struct Struct {
    name: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    source: &'static str,
    /// The sizes in bytes.
    sizes: ByAbi<u32>,
    /// The unit of the length argument, if it is not bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    length_in: Option<&'static str>,
    /// The member that has the length of the struct.
    #[serde(skip_serializing_if = "Option::is_none")]
    length_member: Option<&'static str>,
    #[serde(flatten)]
    contents: Contents,
    /// The structs as which the memory is decoded for some values of a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<Choice>,
    /// The members that lines show without `--full`; absent if lines show all members.
    #[serde(skip_serializing_if = "Option::is_none")]
    brief: Option<ByAbi<Vec<Brief>>>,
    /// The number of elements of an array of the struct that lines show without `--full`.
    brief_elements: u32,
}

#[derive(Serialize)]
struct Choice {
    member: &'static str,
    structs: Vec<Chosen>,
}

#[derive(Serialize)]
struct Chosen {
    #[serde(flatten)]
    value: NamedValue,
    name: &'static str,
}

/// A member that lines show without `--full`.
#[derive(Serialize)]
struct Brief {
    name: &'static str,
    /// The condition on the arguments of the call under which the member is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    used_if: Option<&'static str>,
    /// The member that must not be 0, so that this one is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_zero: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Contents {
    Members(ByAbi<Vec<Member>>),
    /// The struct is a single value of this type.
    Value(ByAbi<Memory>),
    /// The members depend on the struct's contents.
    Varies(bool),
}

#[derive(Serialize)]
struct Member {
    name: &'static str,
    /// The distance from the beginning of the struct in bytes.
    offset: u32,
    #[serde(flatten)]
    memory: Memory,
    /// The kernel writes the member, and does not read it.
    #[serde(skip_serializing_if = "Not::not")]
    out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_if: Option<&'static str>,
}

/// The type of a value in memory.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Memory {
    Number(Number),
    /// Text of this many bytes, which a NUL may end earlier; `null` if it extends to the end of the memory.
    Text {
        bytes: Option<u32>,
    },
    /// A number of bytes; `null` if they extend to the end of the memory.
    Bytes {
        bytes: Option<u32>,
    },
    Struct {
        name: &'static str,
    },
    /// The number of elements; `null` if they extend to the end of the memory.
    Array {
        count: Option<u32>,
        element: Box<Memory>,
    },
}

#[derive(Serialize)]
struct Number {
    bits: u32,
    signed: bool,
    #[serde(skip_serializing_if = "Not::not")]
    big_endian: bool,
    /// The meaning of the number, unless it is a plain number.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<Length>,
}

impl Struct {
    pub fn new(of: &'static row::Struct) -> Struct {
        let has_length = match &of.layout {
            StructLayout::Members([members, ..]) => members.iter().find(|member| of.length_at.is_some_and(|at| at.offset == member.offset)),
            _ => None,
        };
        let contents = match &of.layout {
            StructLayout::Members(all) => Contents::Members(by_abi(|abi| members(all[abi as usize]))),
            StructLayout::Number(forms) => Contents::Value(by_abi(|abi| memory(&forms[abi as usize], &[]))),
            StructLayout::Decoder(_) | StructLayout::Opaque => Contents::Varies(true),
        };
        Struct {
            name: of.name,
            source: of.source,
            sizes: by_abi(|abi| of.sizes[abi as usize]),
            length_in: unit(of.counted),
            length_member: has_length.map(|member| member.name),
            contents,
            choice: choice(of),
            brief: of.brief.members.and_then(|lists| match &of.layout {
                StructLayout::Members(all) => Some(by_abi(|abi| brief(lists[abi as usize], all[abi as usize]))),
                _ => None,
            }),
            brief_elements: of.brief.elements,
        }
    }
}

fn choice(of: &'static row::Struct) -> Option<Choice> {
    let (Some(choice), StructLayout::Members(all)) = (&of.choice, &of.layout) else { return None };
    let member = all[NATIVE_ABI as usize].get(usize::from(choice.member))?;
    let constant = |value: u64| match &member.memory_type {
        MemoryType::Number(MemoryNumber { kind: ArgumentKind::Table(table), .. }) => table.name(value).map(str::to_owned),
        _ => None,
    };
    let chosen = |(value, of): &(u64, &'static row::Struct)| Chosen { value: NamedValue::new(constant(*value), *value), name: of.name };
    Some(Choice { member: member.name, structs: choice.structs.iter().map(chosen).collect() })
}

fn brief(list: &'static [BriefMember], members: &'static [StructMember]) -> Vec<Brief> {
    let at = |offset: u32| members.iter().find(|member| member.offset == offset).map(|member| member.name);
    let object = |BriefMember { index, shown }: &'static BriefMember| {
        let (used_if, not_zero) = match shown {
            Shown::Always => (None, None),
            Shown::If(of) => (condition(of), None),
            Shown::NotZero { offset, .. } => (None, at(*offset)),
        };
        Some(Brief { name: members.get(usize::from(*index))?.name, used_if, not_zero })
    };
    list.iter().filter_map(object).collect()
}

fn unit(unit: LengthUnit) -> Option<&'static str> {
    match unit {
        LengthUnit::Bytes => None,
        LengthUnit::Bits | LengthUnit::Files => Some("bits"),
        LengthUnit::Nodes => Some("bits_plus_one"),
        LengthUnit::Pages => Some("bytes_of_pages"),
        LengthUnit::Tail => Some("bytes_after_struct"),
        LengthUnit::Elements => Some("elements_after_struct"),
        LengthUnit::Entries => Some("bytes_of_entries"),
    }
}

fn members(all: &'static [StructMember]) -> Vec<Member> {
    let member = |member: &'static StructMember| Member {
        name: member.name,
        offset: member.offset,
        memory: memory(&member.memory_type, all),
        out: member.flow == Flow::Out,
        used_if: condition(&member.used),
    };
    all.iter().map(member).collect()
}

fn memory(of: &MemoryType, siblings: &'static [StructMember]) -> Memory {
    let known = |count: u32| Some(count).filter(|count| *count > 0);
    match of {
        MemoryType::Number(of) => Memory::Number(number(of, siblings)),
        MemoryType::Text(bytes) => Memory::Text { bytes: known(*bytes) },
        MemoryType::Bytes(bytes) => Memory::Bytes { bytes: known(*bytes) },
        MemoryType::Struct(of) => Memory::Struct { name: of.name },
        MemoryType::Array { element, count, .. } => Memory::Array { count: known(*count), element: Box::new(memory(element, siblings)) },
    }
}

fn number(number: &MemoryNumber, siblings: &'static [StructMember]) -> Number {
    let member = |index: u8| siblings.get(usize::from(index)).map(|member| Length::Member(member.name));
    let is_plain = matches!(number.kind, ArgumentKind::Long | ArgumentKind::Ulong);
    Number {
        bits: u32::from(number.bytes) * 8,
        signed: number.signed,
        big_endian: number.big_endian,
        meaning: (!is_plain).then(|| Kind::of(&number.kind)),
        length: Length::of(number.length, member),
    }
}
