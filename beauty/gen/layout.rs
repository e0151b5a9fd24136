//! Computes the offsets and sizes of struct fields by C's rules, per ABI, and compares them with the sizes in the rows.

use super::argument::Length;
use super::constant::{Condition, Lookup};
use super::fault::Fault;
use super::field_type::{Count, Type};
use super::kind::{self, ArgumentKind, Vocabulary};
use super::structs::{ABI_WORDS, Body, FieldRow, StructRow};
use super::syscalls::{ArgumentRow, FlowRow, LengthRow};

/// The depth of nested structs beyond which a struct is reported as containing itself.
const DEPTH_MAX: u32 = 8;

/// The contents of a struct with the offsets of its members.
#[derive(Clone, Debug)]
pub enum StructLayout {
    Opaque,
    /// By ABI.
    Members([Vec<StructMember>; 4]),
    /// By ABI.
    Number([MemoryType; 4]),
    Decoder(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructMember {
    pub name: String,
    pub offset: u32,
    pub memory_type: MemoryType,
    /// `Out` if the kernel writes the member and never reads it; for a pointer, this is true of the memory that it
    /// points to. `InOut` if the kernel reads the member and writes it.
    pub flow: FlowRow,
    /// The condition under which the member is valid, or under which the kernel writes a member that it writes; `None`
    /// for always.
    pub used: Option<Condition>,
}

/// The type of a member, from which a `row::MemoryType` is emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryType {
    Number {
        bytes: u8,
        signed: bool,
        big_endian: bool,
        kind: ArgumentKind,
        length: Length,
    },
    Text(u32),
    Bytes(u32),
    Struct(String),
    /// `stride` is the size of an element in bytes. A `count` of 0 means as many elements as the memory has room for.
    Array {
        element: Box<MemoryType>,
        stride: u32,
        count: u32,
    },
}

/// Returns the layouts of the structs, in the order of the rows.
pub fn layouts(structs: &[StructRow], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> Vec<StructLayout> {
    structs.iter().map(|row| layout(row, structs, known, value, faults)).collect()
}

fn layout(row: &StructRow, structs: &[StructRow], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> StructLayout {
    match &row.body {
        Body::Unknown => StructLayout::Opaque,
        Body::Decoder { function, .. } => {
            if !known.decoders.contains(function) {
                faults.push(row.location.fault(format!("decoder.{function} is not a function of src/beauty/decoders/")));
            }
            StructLayout::Decoder(function.clone())
        }
        Body::Number(field) => StructLayout::Number([0, 1, 2, 3].map(|abi| {
            let bytes = element_size(&field.of, abi, structs, 0).map(|(bytes, _)| bytes).unwrap_or_default();
            if bytes != row.sizes[abi] {
                faults.push(row.location.fault(format!("{} has {bytes} bytes in {}, not {}", row.name, ABI_WORDS[abi], row.sizes[abi])));
            }
            memory_type(field, abi, std::slice::from_ref(field), structs, known).unwrap_or_else(|text| {
                faults.push(field.location.fault(text));
                MemoryType::Bytes(0)
            })
        })),
        Body::Fields { .. } => StructLayout::Members([0, 1, 2, 3].map(|abi| {
            members(row, abi, structs, known, value).unwrap_or_else(|fault| {
                faults.push(fault);
                Vec::new()
            })
        })),
    }
}

fn fields(row: &StructRow, abi: usize) -> Option<(&[FieldRow], bool)> {
    match &row.body {
        Body::Fields { packed, common, own } => Some((own[abi].as_ref().unwrap_or(common), *packed)),
        _ => None,
    }
}

fn members(row: &StructRow, abi: usize, structs: &[StructRow], known: &Vocabulary, value: &Lookup) -> Result<Vec<StructMember>, Fault> {
    let (fields, packed) = fields(row, abi).unwrap_or_default();
    let mut members: Vec<StructMember> = Vec::new();
    // The offsets at which the last union or field begins, and at which the fields so far end.
    let (mut begin, mut end) = (0u32, 0u32);
    let mut widest = 1;
    for field in fields {
        let fault = |text: String| field.location.fault(format!("{}, {}: {text}", row.name, field.name));
        let (size, align) = element_size(&field.of, abi, structs, 0).map_err(fault)?;
        let align = if packed { 1 } else { align };
        widest = widest.max(align);
        let offset = if field.overlaps { begin } else { end.next_multiple_of(align) };
        if !offset.is_multiple_of(align) {
            return Err(fault(format!("the fields of its union begin at {offset}, which is not a multiple of {align}: put it first")));
        }
        let count = match field.count {
            Count::One => 1,
            Count::Array(count) => count,
            Count::Open => 0,
        };
        (begin, end) = (offset, if field.overlaps { end.max(offset + size * count) } else { offset + size * count });
        if field.is_shown() {
            // The fields of a union may have one name, if they differ in their meaning only.
            let is_same = |member: &StructMember| field.overlaps && member.offset == offset;
            if members.iter().any(|member| member.name == field.name && !is_same(member)) {
                return Err(fault("another field has the same name".into()));
            }
            let memory_type = memory_type(field, abi, fields, structs, known).map_err(fault)?;
            members.push(StructMember { name: field.name.clone(), offset, memory_type, flow: field.flow, used: None });
        }
    }
    check_named_fields(&members, row)?;
    resolve_conditions(&mut members, fields, row, value)?;
    let size = end.next_multiple_of(widest);
    if size != row.sizes[abi] {
        let text = format!("the fields of {} have {size} bytes in {}, not {}", row.name, ABI_WORDS[abi], row.sizes[abi]);
        return Err(row.location.fault(text));
    }
    Ok(members)
}

/// Checks the fields that the row names with `length=` and `asks=`.
fn check_named_fields(members: &[StructMember], row: &StructRow) -> Result<(), Fault> {
    // The programs read 32 bits, of which the lower 16 are the number of elements if the field has no more.
    let is_wide = |bytes: u8| bytes >= 4 || bytes == 2 && row.counted == "Elements";
    let is_length = |member: &StructMember| {
        u8::try_from(member.offset).is_ok() && matches!(member.memory_type, MemoryType::Number { bytes, .. } if is_wide(bytes))
    };
    let has = |name: &str| members.iter().any(|member| member.name == name && is_length(member));
    if let Some(length) = &row.length
        && !length_of(length).is_some_and(|(name, _, written)| has(name) && written.is_none_or(has))
    {
        return Err(row.location.fault(format!("length={length}: {} has no such field of 32 bits in its first 256 bytes", row.name)));
    }
    if let Some(asked) = row.asked.as_ref().filter(|name| !members.iter().any(|member| member.name == **name)) {
        return Err(row.location.fault(format!("asks={asked}: {} has no field of this name", row.name)));
    }
    Ok(())
}

/// The field that contains the length of the struct; `row::LengthMember` is the same.
#[derive(Debug)]
pub struct LengthMember {
    /// Only the emitted text has the members.
    #[allow(dead_code, reason = "the text is made by Debug")]
    pub offset: u32,
    #[allow(dead_code, reason = "the text is made by Debug")]
    pub bytes: u8,
    #[allow(dead_code, reason = "the text is made by Debug")]
    pub of_zero: u8,
    #[allow(dead_code, reason = "the text is made by Debug")]
    pub written: Option<u32>,
}

/// Returns the field that the row names with `length=`, whose offset is the same in all ABIs.
pub fn length_at(row: &StructRow, layout: &StructLayout) -> Option<LengthMember> {
    let (Some((name, of_zero, written)), StructLayout::Members(members)) = (row.length.as_deref().and_then(length_of), layout) else {
        return None;
    };
    let named = |name: &str| members[0].iter().find(|member| member.name == name);
    let member = named(name)?;
    let MemoryType::Number { bytes, .. } = member.memory_type else { return None };
    Some(LengthMember { offset: member.offset, bytes, of_zero, written: written.and_then(named).map(|member| member.offset) })
}

/// Parses the text after `length=`: the name of the field, and the number of bytes for which 0 in it stands, after a
/// colon (0 if the row has none), and after `>` the name of the field with the number of elements that were written.
fn length_of(text: &str) -> Option<(&str, u8, Option<&str>)> {
    let (text, written) = text.split_once('>').map_or((text, None), |(text, written)| (text, Some(written)));
    text.split_once(':').map_or(Some((text, 0, written)), |(name, zero)| Some((name, zero.parse().ok()?, written)))
}

/// Returns how many bytes the kernel reads of a struct that it reads and writes: those up to the end of the field that
/// the row names with `asks=`, or 0 for the whole struct.
pub fn bytes_read(row: &StructRow, layout: &StructLayout) -> u32 {
    let (Some(name), StructLayout::Members(members)) = (&row.asked, layout) else { return 0 };
    let end = |member: &StructMember| match member.memory_type {
        MemoryType::Number { bytes, .. } => member.offset + u32::from(bytes),
        MemoryType::Text(bytes) | MemoryType::Bytes(bytes) => member.offset + bytes,
        MemoryType::Array { stride, count, .. } => member.offset + stride * count,
        MemoryType::Struct(_) => 0,
    };
    members[0].iter().find(|member| member.name == *name).map_or(0, end)
}

/// Resolves the conditions under which members are valid or written.
fn resolve_conditions(members: &mut [StructMember], fields: &[FieldRow], row: &StructRow, value: &Lookup) -> Result<(), Fault> {
    let plain = ArgumentKind::Plain("Ulong");
    let all = members.to_vec();
    let kind = |member: &StructMember| if let MemoryType::Number { kind, .. } = &member.memory_type { kind.clone() } else { plain.clone() };
    let kinds: Vec<ArgumentKind> = all.iter().map(kind).collect();
    let named: Vec<(&str, &ArgumentKind)> = all.iter().map(|member| member.name.as_str()).zip(&kinds).collect();
    for (member, field) in members.iter_mut().zip(fields.iter().filter(|field| field.is_shown())) {
        if let Some(used) = &field.used {
            let condition = used.resolve(&named, value);
            member.used = condition.map_err(|text| field.location.fault(format!("{}, {}: {text}", row.name, field.name)))?;
        }
    }
    Ok(())
}

/// Returns the size and the alignment of one element, in bytes.
fn element_size(of: &Type, abi: usize, structs: &[StructRow], depth: u32) -> Result<(u32, u32), String> {
    match of {
        Type::Number { bytes, .. } => {
            let bytes = u32::from(bytes[abi]);
            // The System V ABI of i386 aligns numbers to 4 bytes at most.
            Ok((bytes, if ABI_WORDS[abi] == "i386" { bytes.min(4) } else { bytes }))
        }
        Type::Char | Type::Byte => Ok((1, 1)),
        Type::Struct(name) => {
            let row = structs.iter().find(|row| row.name == *name).ok_or_else(|| format!("`{name}` is neither a type nor a struct"))?;
            if depth > DEPTH_MAX {
                return Err(format!("{name} contains itself"));
            }
            let align = match (fields(row, abi), &row.body) {
                (Some((_, true)), _) => 1,
                (Some((fields, false)), _) => {
                    let aligns: Result<Vec<u32>, String> =
                        fields.iter().map(|field| element_size(&field.of, abi, structs, depth + 1).map(|(_, align)| align)).collect();
                    aligns?.into_iter().max().unwrap_or(1)
                }
                (None, Body::Number(field)) => element_size(&field.of, abi, structs, depth + 1)?.1,
                (None, Body::Decoder { align, .. }) => align.unwrap_or([8, 4, 4, 8][abi]),
                _ => return Err(format!("the alignment of {name} is not known, because its row has no fields")),
            };
            Ok((row.sizes[abi], align))
        }
    }
}

/// Returns the type of a field in one ABI. `siblings` are the fields of its struct.
pub fn memory_type(
    field: &FieldRow,
    abi: usize,
    siblings: &[FieldRow],
    structs: &[StructRow],
    known: &Vocabulary,
) -> Result<MemoryType, String> {
    let (size, _) = element_size(&field.of, abi, structs, 0)?;
    let element = match (&field.of, field.count) {
        (Type::Char, Count::Array(count)) => return Ok(MemoryType::Text(count)),
        (Type::Char, Count::Open) => return Ok(MemoryType::Text(0)),
        (Type::Byte, Count::Array(count)) => return Ok(MemoryType::Bytes(count)),
        (Type::Byte, Count::Open) => return Ok(MemoryType::Bytes(0)),
        (Type::Char | Type::Byte, Count::One) => return Err("a single byte must have the type `u8`".into()),
        (Type::Struct(name), _) => MemoryType::Struct(name.clone()),
        (Type::Number { bytes, signed, big_endian, pointer }, _) => {
            let (kind, length) = meaning(field.meaning.as_ref(), *signed, *pointer, siblings, known)?;
            MemoryType::Number { bytes: bytes[abi], signed: *signed, big_endian: *big_endian, kind, length }
        }
    };
    Ok(match field.count {
        Count::One => element,
        Count::Array(count) => MemoryType::Array { element: Box::new(element), stride: size, count },
        Count::Open => MemoryType::Array { element: Box::new(element), stride: size, count: 0 },
    })
}

fn meaning(
    row: Option<&ArgumentRow>,
    signed: bool,
    pointer: bool,
    siblings: &[FieldRow],
    known: &Vocabulary,
) -> Result<(ArgumentKind, Length), String> {
    let Some(row) = row else {
        let plain = if pointer {
            "Address"
        } else if signed {
            "Long"
        } else {
            "Ulong"
        };
        return Ok((ArgumentKind::Plain(plain), Length::OfType));
    };
    let length = match &row.length {
        LengthRow::OfType => Length::OfType,
        LengthRow::Ret => return Err("the length of a field cannot be the return value of the call".into()),
        LengthRow::Fixed(number) => Length::Fixed(*number),
        LengthRow::Argument(name) => {
            let mut shown = siblings.iter().filter(|field| field.is_shown());
            Length::Argument(shown.position(|field| field.name == *name).ok_or_else(|| format!("there is no field {name}"))?)
        }
    };
    Ok((kind::of_argument(row, known)?, length))
}

/// Returns the names of the tables and of the structs that the layouts use.
pub fn named(layouts: &[StructLayout]) -> (Vec<&str>, Vec<&str>) {
    let (mut tables, mut structs) = (Vec::new(), Vec::new());
    for layout in layouts {
        let memory_types: Vec<&MemoryType> = match layout {
            StructLayout::Opaque | StructLayout::Decoder(_) => continue,
            StructLayout::Members(members) => members.iter().flatten().map(|member| &member.memory_type).collect(),
            StructLayout::Number(memory_types) => memory_types.iter().collect(),
        };
        for mut memory_type in memory_types {
            while let MemoryType::Array { element, .. } = memory_type {
                memory_type = element;
            }
            match memory_type {
                MemoryType::Struct(name) => structs.push(name.as_str()),
                MemoryType::Number { kind: ArgumentKind::Table(table), .. } => tables.push(table.as_str()),
                MemoryType::Number { kind: ArgumentKind::Struct(name) | ArgumentKind::StructArray(name), .. } => {
                    structs.push(name.as_str())
                }
                _ => {}
            }
        }
    }
    (tables, structs)
}
