//! Where C puts the fields of a struct: offsets and sizes per ABI, checked against the bytes that the row says.

use super::constant::{Condition, Lookup};
use super::fault::Fault;
use super::field_type::{Count, Type};
use super::kind::{self, Kind, Vocabulary};
use super::link::Length;
use super::structs::{ABI_WORDS, Body, FieldRow, StructRow};
use super::syscalls::{ArgumentRow, LengthRow};

/// How deep structs may stand in each other before it is taken for a circle.
const DEPTH_MAX: u32 = 8;

/// A struct with its fields' places.
#[derive(Clone, Debug)]
pub enum Layout {
    Opaque,
    /// By ABI.
    Members([Vec<Member>; 4]),
    /// By ABI.
    Number([Form; 4]),
    Decoder(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub offset: u32,
    pub form: Form,
    /// The kernel writes it and never reads it; of a pointer, what it points to.
    pub written: bool,
    /// When the kernel writes it, if not always.
    pub used: Option<Condition>,
}

/// What `row::Form` will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    Number {
        bytes: u8,
        signed: bool,
        big_endian: bool,
        kind: Kind,
        length: Length,
    },
    Text(u32),
    Bytes(u32),
    Struct(String),
    /// `count` 0 for as many as there is memory for.
    Array {
        element: Box<Form>,
        stride: u32,
        count: u32,
    },
}

/// The layout of each struct, in the order of the rows.
pub fn layouts(structs: &[StructRow], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> Vec<Layout> {
    structs.iter().map(|row| layout(row, structs, known, value, faults)).collect()
}

fn layout(row: &StructRow, structs: &[StructRow], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> Layout {
    match &row.body {
        Body::Unknown => Layout::Opaque,
        Body::Decoder { function, .. } => {
            if !known.decoders.contains(function) {
                faults.push(row.place.fault(format!("decoder.{function} is no function of src/beauty/decoders/")));
            }
            Layout::Decoder(function.clone())
        }
        Body::Number(field) => Layout::Number([0, 1, 2, 3].map(|abi| {
            let bytes = element_size(&field.of, abi, structs, 0).map(|(bytes, _)| bytes).unwrap_or_default();
            if bytes != row.sizes[abi] {
                faults.push(row.place.fault(format!("{} has {bytes} bytes in {}, not {}", row.name, ABI_WORDS[abi], row.sizes[abi])));
            }
            form(field, abi, std::slice::from_ref(field), structs, known).unwrap_or_else(|text| {
                faults.push(field.place.fault(text));
                Form::Bytes(0)
            })
        })),
        Body::Fields { .. } => Layout::Members([0, 1, 2, 3].map(|abi| {
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

fn members(row: &StructRow, abi: usize, structs: &[StructRow], known: &Vocabulary, value: &Lookup) -> Result<Vec<Member>, Fault> {
    let (fields, packed) = fields(row, abi).unwrap_or_default();
    let mut members: Vec<Member> = Vec::new();
    let mut end = 0;
    let mut widest = 1;
    for field in fields {
        let fault = |text: String| field.place.fault(format!("{}, {}: {text}", row.name, field.name));
        let (size, align) = element_size(&field.of, abi, structs, 0).map_err(fault)?;
        let align = if packed { 1 } else { align };
        widest = widest.max(align);
        let offset = u32::next_multiple_of(end, align);
        end = offset
            + size
                * match field.count {
                    Count::One => 1,
                    Count::Array(count) => count,
                    Count::Open => 0,
                };
        if field.is_shown() {
            if members.iter().any(|member| member.name == field.name) {
                return Err(fault("there are two of that name".into()));
            }
            let form = form(field, abi, fields, structs, known).map_err(fault)?;
            members.push(Member { name: field.name.clone(), offset, form, written: field.written, used: None });
        }
    }
    check_named(&members, row)?;
    conditions(&mut members, fields, row, value)?;
    let size = end.next_multiple_of(widest);
    if size != row.sizes[abi] {
        let text = format!("the fields of {} make {size} bytes in {}, not {}", row.name, ABI_WORDS[abi], row.sizes[abi]);
        return Err(row.place.fault(text));
    }
    Ok(members)
}

/// Whether the fields that a struct's row names are where they must be.
fn check_named(members: &[Member], row: &StructRow) -> Result<(), Fault> {
    let is_length = |member: &Member| member.offset == 0 && matches!(member.form, Form::Number { bytes: 4, .. });
    if let Some(length) = row.length.as_ref().filter(|name| !members.first().is_some_and(|first| first.name == **name && is_length(first)))
    {
        return Err(row.place.fault(format!("length={length}: the length of {} must be its first field, of 32 bits", row.name)));
    }
    if let Some(asked) = row.asked.as_ref().filter(|name| !members.iter().any(|member| member.name == **name)) {
        return Err(row.place.fault(format!("asks={asked}: {} has no such field", row.name)));
    }
    Ok(())
}

/// How many bytes of a struct the kernel reads when it reads and writes it, or 0 for all: up to the field that the row
/// names.
pub fn asked(row: &StructRow, layout: &Layout) -> u32 {
    let (Some(name), Layout::Members(members)) = (&row.asked, layout) else { return 0 };
    let end = |member: &Member| match member.form {
        Form::Number { bytes, .. } => member.offset + u32::from(bytes),
        Form::Text(bytes) | Form::Bytes(bytes) => member.offset + bytes,
        Form::Array { stride, count, .. } => member.offset + stride * count,
        Form::Struct(_) => 0,
    };
    members[0].iter().find(|member| member.name == *name).map_or(0, end)
}

/// Finds out when the kernel writes members, as their fields say.
fn conditions(members: &mut [Member], fields: &[FieldRow], row: &StructRow, value: &Lookup) -> Result<(), Fault> {
    let plain = Kind::Plain("Ulong");
    let all = members.to_vec();
    let kind = |member: &Member| if let Form::Number { kind, .. } = &member.form { kind.clone() } else { plain.clone() };
    let kinds: Vec<Kind> = all.iter().map(kind).collect();
    let named: Vec<(&str, &Kind)> = all.iter().map(|member| member.name.as_str()).zip(&kinds).collect();
    for (member, field) in members.iter_mut().zip(fields.iter().filter(|field| field.is_shown())) {
        if let Some(used) = field.meaning.as_ref().and_then(|meaning| meaning.used.as_ref()) {
            let condition = used.resolve(&named, value);
            member.used = condition.map_err(|text| field.place.fault(format!("{}, {}: {text}", row.name, field.name)))?;
        }
    }
    Ok(())
}

/// Bytes and alignment of one element.
fn element_size(of: &Type, abi: usize, structs: &[StructRow], depth: u32) -> Result<(u32, u32), String> {
    match of {
        Type::Number { bytes, .. } => {
            let bytes = u32::from(bytes[abi]);
            // The System V ABI of i386 aligns nothing to more than a word.
            Ok((bytes, if ABI_WORDS[abi] == "i386" { bytes.min(4) } else { bytes }))
        }
        Type::Char | Type::Byte => Ok((1, 1)),
        Type::Struct(name) => {
            let row = structs.iter().find(|row| row.name == *name).ok_or_else(|| format!("`{name}` is no type and no struct"))?;
            if depth > DEPTH_MAX {
                return Err(format!("{name} holds itself"));
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
                _ => return Err(format!("{name} has no fields here, so that its alignment is not known")),
            };
            Ok((row.sizes[abi], align))
        }
    }
}

fn form(field: &FieldRow, abi: usize, siblings: &[FieldRow], structs: &[StructRow], known: &Vocabulary) -> Result<Form, String> {
    let (size, _) = element_size(&field.of, abi, structs, 0)?;
    let element = match (&field.of, field.count) {
        (Type::Char, Count::Array(count)) => return Ok(Form::Text(count)),
        (Type::Char, Count::Open) => return Ok(Form::Text(0)),
        (Type::Byte, Count::Array(count)) => return Ok(Form::Bytes(count)),
        (Type::Byte, Count::Open) => return Ok(Form::Bytes(0)),
        (Type::Char | Type::Byte, Count::One) => return Err("one byte alone is `u8`".into()),
        (Type::Struct(name), _) => Form::Struct(name.clone()),
        (Type::Number { bytes, signed, big_endian, pointer }, _) => {
            let (kind, length) = meaning(field.meaning.as_ref(), *signed, *pointer, siblings, known)?;
            Form::Number { bytes: bytes[abi], signed: *signed, big_endian: *big_endian, kind, length }
        }
    };
    Ok(match field.count {
        Count::One => element,
        Count::Array(count) => Form::Array { element: Box::new(element), stride: size, count },
        Count::Open => Form::Array { element: Box::new(element), stride: size, count: 0 },
    })
}

fn meaning(
    said: Option<&ArgumentRow>,
    signed: bool,
    pointer: bool,
    siblings: &[FieldRow],
    known: &Vocabulary,
) -> Result<(Kind, Length), String> {
    let Some(said) = said else {
        let plain = if pointer {
            "Address"
        } else if signed {
            "Long"
        } else {
            "Ulong"
        };
        return Ok((Kind::Plain(plain), Length::OfType));
    };
    let length = match &said.length {
        LengthRow::OfType => Length::OfType,
        LengthRow::Ret => return Err("a field's length cannot be what the call returns".into()),
        LengthRow::Fixed(number) => Length::Fixed(*number),
        LengthRow::Argument(name) => {
            let mut shown = siblings.iter().filter(|field| field.is_shown());
            Length::Argument(shown.position(|field| field.name == *name).ok_or_else(|| format!("{name} is no field"))?)
        }
    };
    Ok((kind::of_argument(said, known)?, length))
}

/// The tables and structs that structs name.
pub fn named(layouts: &[Layout]) -> (Vec<&str>, Vec<&str>) {
    let (mut tables, mut structs) = (Vec::new(), Vec::new());
    for layout in layouts {
        let forms: Vec<&Form> = match layout {
            Layout::Opaque | Layout::Decoder(_) => continue,
            Layout::Members(members) => members.iter().flatten().map(|member| &member.form).collect(),
            Layout::Number(forms) => forms.iter().collect(),
        };
        for mut form in forms {
            while let Form::Array { element, .. } = form {
                form = element;
            }
            match form {
                Form::Struct(name) => structs.push(name.as_str()),
                Form::Number { kind: Kind::Table(table), .. } => tables.push(table.as_str()),
                Form::Number { kind: Kind::Struct(name) | Kind::StructArray(name), .. } => structs.push(name.as_str()),
                _ => {}
            }
        }
    }
    (tables, structs)
}
