//! Emits the tables as Rust text, with the types of `src/beauty/row.rs`.

use super::argument::{Argument, Length};
use super::brief::{BriefMember, BriefMembers, Shown};
use super::choice::Choice;
use super::condition::Comparison;
use super::constant::{BitTest, Condition};
use super::kind::{ArgumentKind, Return};
use super::layout::{self, MemoryType, StructLayout, StructMember};
use super::link::Call;
use super::numbers::NumberRow;
use super::requests::Request;
use super::resolve::{BitField, Resolved, TableConstant};
use super::structs::StructRow;
use super::syscalls::FlowRow;
use super::tables::TableKind;
use super::variants::Variant;
use std::fmt::{self, Write};

/// A table with the attributes of its row and the constants of the headers.
pub struct EmittedTable {
    pub name: String,
    pub kind: TableKind,
    pub bits: u8,
    pub header: String,
    pub prefix: String,
    pub base: Resolved,
    /// The tables of ABIs that differ from x86-64's, each with the ABI's index in `ABIS`.
    pub twins: Vec<(usize, Resolved)>,
}

/// A struct with its layout, and the members that perf style shows by default.
pub struct EmittedStruct {
    pub row: StructRow,
    pub layout: StructLayout,
    pub brief: BriefMembers,
    pub choice: Option<Choice>,
}

/// The variants of `event::Abi`, in their order.
pub const ABIS: [&str; 4] = ["X86_64", "I386", "X32", "Aarch64"];

pub fn emit(
    (calls, requests): (&[Call], &[Request]),
    tables: &[EmittedTable],
    structs: &[EmittedStruct],
    numbers: &[NumberRow],
) -> Result<String, fmt::Error> {
    let mut out = String::new();
    emit_tables(&mut out, tables)?;
    emit_structs(&mut out, structs)?;
    emit_calls(&mut out, calls)?;
    emit_requests(&mut out, requests)?;
    emit_numbers(&mut out, calls, numbers)?;
    Ok(out)
}

fn emit_tables(out: &mut String, tables: &[EmittedTable]) -> fmt::Result {
    writeln!(out, "/// The tables of constants, each by its name.\npub mod constants {{\nuse super::*;")?;
    for table in tables {
        for (abi, twin) in &table.twins {
            let name = format!("{}_{}", table.name.to_uppercase(), ABIS[*abi].to_uppercase());
            emit_table(out, &format!("static {name}"), table, twin, &[])?;
        }
        writeln!(out, "/// {} {} of {}", if table.kind == TableKind::Flags { "flags" } else { "values" }, table.name, table.header)?;
        emit_table(out, &format!("pub static {}", table.name.to_uppercase()), table, &table.base, &table.twins)?;
    }
    writeln!(out, "}}\n/// All tables, by name.\npub static TABLES: &[&ConstantTable] = &[")?;
    for table in tables {
        writeln!(out, "    &constants::{},", table.name.to_uppercase())?;
    }
    writeln!(out, "];")
}

fn emit_table(out: &mut String, item: &str, table: &EmittedTable, resolved: &Resolved, twins: &[(usize, Resolved)]) -> fmt::Result {
    let kind = if table.kind == TableKind::Flags { "Flags" } else { "Enum" };
    writeln!(out, "{item}: ConstantTable = ConstantTable {{")?;
    writeln!(
        out,
        "    name: {:?}, kind: TableKind::{kind}, bits: {}, header: {:?}, prefix: {:?},",
        table.name, table.bits, table.header, table.prefix
    )?;
    write!(out, "    entries: &[")?;
    for TableConstant { name, value } in &resolved.entries {
        write!(out, "\n        TableConstant {{ value: {value:#x}, name: {name:?} }},")?;
    }
    write!(out, "],\n    fields: &[")?;
    for BitField { mask, table } in &resolved.fields {
        write!(out, "BitField {{ mask: {mask:#x}, table: &{} }}, ", table.to_uppercase())?;
    }
    write!(out, "],\n    per_abi: &[")?;
    for (abi, _) in twins {
        let abi = ABIS[*abi];
        write!(out, "(Abi::{abi}, &{}_{}), ", table.name.to_uppercase(), abi.to_uppercase())?;
    }
    writeln!(out, "],\n}};")
}

fn emit_structs(out: &mut String, structs: &[EmittedStruct]) -> fmt::Result {
    writeln!(out, "/// The structs, each by its name.\npub mod structs {{\nuse super::*;")?;
    for EmittedStruct { row, layout, brief, choice } in structs {
        let name = row.name.to_uppercase();
        let (length_at, bytes_read) = (layout::length_at(row, layout), layout::bytes_read(row, layout));
        let layout = emit_layout(out, &name, layout)?;
        let brief = emit_brief(out, &name, brief)?;
        let choice = choice.as_ref().map_or("None".to_string(), |Choice { member, structs }| {
            let structs: Vec<String> = structs.iter().map(|(value, of)| format!("({value:#x}, &{})", of.to_uppercase())).collect();
            format!("Some(StructChoice {{ member: {member}, structs: &[{}] }})", structs.join(", "))
        });
        writeln!(out, "/// struct {}", row.name)?;
        writeln!(
            out,
            "pub static {name}: Struct = Struct {{ name: {:?}, sizes: {:?}, counted: LengthUnit::{}, copied: CopyMethod::{}, length_at: {:?}, bytes_read: {}, source: {:?}, layout: {layout}, brief: Brief {{ elements: {}, members: {brief} }}, choice: {choice} }};",
            row.name,
            row.sizes,
            row.counted,
            row.copied,
            length_at,
            bytes_read,
            row.source.as_deref().unwrap_or_default(),
            row.elements
        )?;
    }
    writeln!(out, "}}\n/// All structs, by name.\npub static STRUCTS: &[&Struct] = &[")?;
    for EmittedStruct { row, .. } in structs {
        writeln!(out, "    &structs::{},", row.name.to_uppercase())?;
    }
    writeln!(out, "];")
}

/// Emits the lists of members, and returns the expression of the layout that refers to them.
fn emit_layout(out: &mut String, name: &str, layout: &StructLayout) -> Result<String, fmt::Error> {
    let members = match layout {
        StructLayout::Opaque => return Ok("StructLayout::Opaque".into()),
        StructLayout::Decoder(function) => return Ok(format!("StructLayout::Decoder(crate::beauty::decoders::{function})")),
        StructLayout::Number(memory_types) => {
            return Ok(format!("StructLayout::Number([{}])", memory_types.each_ref().map(memory_type).join(", ")));
        }
        StructLayout::Members(members) => members,
    };
    let lists = emit_lists(out, name, "StructMember", members, |StructMember { name, offset, memory_type: of, flow, used }| {
        let (flow, used) = (emit_flow(*flow), used.as_ref().map_or("Always".to_string(), condition));
        let of = memory_type(of);
        format!("StructMember {{ name: {name:?}, offset: {offset}, memory_type: {of}, flow: Flow::{flow}, used: Condition::{used} }}")
    })?;
    Ok(format!("StructLayout::Members({lists})"))
}

/// Emits the lists of the members that perf style shows by default, and returns the expression that refers to them.
fn emit_brief(out: &mut String, name: &str, brief: &BriefMembers) -> Result<String, fmt::Error> {
    let Some(members) = brief else { return Ok("None".into()) };
    let lists = emit_lists(out, &format!("{name}_BRIEF"), "BriefMember", members, |BriefMember { index, shown }| {
        let shown = match shown {
            Shown::Always => "Always".to_string(),
            Shown::NotZero { offset, bytes } => format!("NotZero {{ offset: {offset}, bytes: {bytes} }}"),
            Shown::If(tested) => format!("If(Condition::{})", condition(tested)),
        };
        format!("BriefMember {{ index: {index}, shown: Shown::{shown} }}")
    })?;
    Ok(format!("Some({lists})"))
}

/// Emits a list for each ABI, equal ones only once, and returns the expression of the array that refers to them.
fn emit_lists<T: PartialEq>(
    out: &mut String,
    name: &str,
    element_type: &str,
    lists: &[Vec<T>; 4],
    element: impl Fn(&T) -> String,
) -> Result<String, fmt::Error> {
    let mut names = Vec::new();
    for (abi, list) in lists.iter().enumerate() {
        let first = lists.iter().position(|other| other == list).unwrap_or(abi);
        let list_name = format!("{name}_IN_{}", ABIS[first].to_uppercase());
        if first == abi {
            writeln!(out, "static {list_name}: [{element_type}; {}] = [", list.len())?;
            for member in list {
                writeln!(out, "    {},", element(member))?;
            }
            writeln!(out, "];")?;
        }
        names.push(format!("&{list_name}"));
    }
    Ok(format!("[{}]", names.join(", ")))
}

/// Returns the expression of a type.
pub fn memory_type(of: &MemoryType) -> String {
    match of {
        MemoryType::Number { bytes, signed, big_endian, kind: meaning, length: of } => format!(
            "MemoryType::Number(MemoryNumber {{ bytes: {bytes}, signed: {signed}, big_endian: {big_endian}, kind: ArgumentKind::{}, length: Length::{} }})",
            kind(meaning),
            length(*of)
        ),
        MemoryType::Text(bytes) => format!("MemoryType::Text({bytes})"),
        MemoryType::Bytes(bytes) => format!("MemoryType::Bytes({bytes})"),
        MemoryType::Struct(name) => format!("MemoryType::Struct(&{})", name.to_uppercase()),
        MemoryType::Array { element, stride, count } => {
            format!("MemoryType::Array {{ element: &{}, stride: {stride}, count: {count} }}", memory_type(element))
        }
    }
}

fn emit_calls(out: &mut String, calls: &[Call]) -> fmt::Result {
    writeln!(out, "/// All syscalls that have a row, by name.\npub static SYSCALLS: &[Syscall] = &[")?;
    for call in calls {
        emit_call(out, call)?;
        writeln!(out, ",")?;
    }
    writeln!(out, "];")
}

fn emit_requests(out: &mut String, requests: &[Request]) -> fmt::Result {
    writeln!(out, "/// The requests of io_uring that have a row, by opcode.\npub static REQUESTS: &[RequestRow] = &[")?;
    for request in requests {
        let fields: Vec<String> = request.fields.iter().map(|field| format!("SqeField::{field}")).collect();
        let (opcode, fields, twins) = (request.opcode, fields.join(", "), &request.twins);
        write!(out, "RequestRow {{ opcode: {opcode}, fields: &[{fields}], twins: &{twins:?}, call: ")?;
        emit_call(out, &request.call)?;
        writeln!(out, " }},")?;
    }
    writeln!(out, "];")
}

fn emit_call(out: &mut String, call: &Call) -> fmt::Result {
    let numbers = call.numbers;
    writeln!(out, "Syscall {{ name: {:?}, event: {:?}, numbers: {numbers:?}, args: &[", call.name, call.event)?;
    emit_arguments(out, &call.args)?;
    let groups: Vec<String> = call.groups.iter().map(|group| format!("Groups::{}", group.to_uppercase())).collect();
    let groups = match &groups[..] {
        [] => "Groups::empty()".to_string(),
        [one] => one.clone(),
        more => more[1..].iter().fold(more[0].clone(), |all, group| format!("{all}.union({group})")),
    };
    writeln!(out, "], returns: {}, groups: {groups}, does: Special::{}, variants: &[", returns(&call.returns), call.does)?;
    emit_variants(out, &call.variants)?;
    write!(out, "] }}")
}

fn emit_variants(out: &mut String, variants: &[Variant]) -> fmt::Result {
    for variant in variants {
        writeln!(out, "Variant {{ arg: {}, mask: {:#x}, values: &{:?}, args: &[", variant.arg, variant.mask, variant.values)?;
        emit_arguments(out, &variant.args)?;
        writeln!(out, "], returns: {}, variants: &[", returns(&variant.returns))?;
        emit_variants(out, &variant.variants)?;
        writeln!(out, "] }},")?;
    }
    Ok(())
}

fn emit_flow(flow: FlowRow) -> &'static str {
    match flow {
        FlowRow::In => "In",
        FlowRow::Out => "Out",
        FlowRow::InOut => "InOut",
    }
}

fn emit_arguments(out: &mut String, arguments: &[Argument]) -> fmt::Result {
    for argument in arguments {
        let flow = emit_flow(argument.flow);
        let written = argument.written[1..]
            .iter()
            .fold(format!("Outcomes::{}", argument.written[0]), |all, more| format!("{all}.union(Outcomes::{more})"));
        let traits: Vec<&str> = argument.traits.iter().filter(|word| **word != "NUMBER").copied().collect();
        let traits = match &traits[..] {
            [] => "Traits::empty()".to_string(),
            [first, more @ ..] => more.iter().fold(format!("Traits::{first}"), |all, more| format!("{all}.union(Traits::{more})")),
        };
        let (fd_of, socket, length) = (argument.fd_of, argument.socket, length(argument.length));
        let used = argument.used.as_ref().map_or("Always".to_string(), condition);
        writeln!(
            out,
            "    Arg {{ name: {:?}, kind: ArgumentKind::{}, flow: Flow::{flow}, written: {written}, length: Length::{length}, traits: {traits}, fd_of: {fd_of:?}, socket: {socket:?}, used: Condition::{used} }},",
            argument.name,
            kind(&argument.kind)
        )?;
    }
    Ok(())
}

fn condition(condition: &Condition) -> String {
    let test = |BitTest { arg, mask, comparison, values }: &BitTest| {
        let values = if values.is_empty() { String::new() } else { format!("(&{values:?})") };
        let comparison = match comparison {
            Comparison::SomeBit => "SomeBit",
            Comparison::NoBit => "NoBit",
            Comparison::OneOf => "OneOf",
            Comparison::NoneOf => "NoneOf",
        };
        format!("BitTest {{ arg: {arg}, mask: {mask:#x}, comparison: Comparison::{comparison}{values} }}")
    };
    match condition {
        Condition::Never => "Never".to_string(),
        Condition::If { text, any } => {
            format!("If {{ text: {text:?}, any: &[{}] }}", any.iter().map(test).collect::<Vec<_>>().join(", "))
        }
    }
}

fn length(length: Length) -> String {
    match length {
        Length::OfType => "OfType".to_string(),
        Length::Argument(at) => format!("Arg({at})"),
        Length::Ret => "Ret".to_string(),
        Length::Fixed(number) => format!("Fixed({number})"),
    }
}

fn kind(kind: &ArgumentKind) -> String {
    match kind {
        ArgumentKind::Plain(name) => (*name).to_string(),
        ArgumentKind::Table(name) => format!("Table(&constants::{})", name.to_uppercase()),
        ArgumentKind::Struct(name) => format!("Struct(&structs::{})", name.to_uppercase()),
        ArgumentKind::StructArray(name) => format!("StructArray(&structs::{})", name.to_uppercase()),
        ArgumentKind::Number { bytes, signed } => format!("Number {{ bytes: {bytes}, signed: {signed} }}"),
        ArgumentKind::Custom(function) => custom(function),
    }
}

fn custom(function: &str) -> String {
    format!("Custom(crate::beauty::custom::{function}, crate::beauty::custom_constants::{})", function.to_uppercase())
}

fn returns(of: &Return) -> String {
    match of {
        Return::Plain(name) => format!("Return::{name}"),
        Return::Table(name) => format!("Return::Table(&constants::{})", name.to_uppercase()),
        Return::Custom(function) => format!("Return::{}", custom(function)),
    }
}

fn emit_numbers(out: &mut String, calls: &[Call], numbers: &[NumberRow]) -> fmt::Result {
    writeln!(out, "/// Rows of `SYSCALLS` by number, per ABI; `u16::MAX` where there is none.\npub static BY_NUMBER: [&[u16]; 4] = [")?;
    for abi in 0..ABIS.len() {
        let count = calls.iter().filter_map(|call| call.numbers[abi]).max().map_or(0, |last| last as usize + 1);
        let mut rows = vec![u16::MAX; count];
        for (at, call) in calls.iter().enumerate() {
            if let Some(number) = call.numbers[abi] {
                rows[number as usize] = at as u16;
            }
        }
        writeln!(out, "    &{rows:?},")?;
    }
    writeln!(out, "];\n/// Names of numbers without a row, by ABI and number.\npub static OTHER_NAMES: &[(Abi, u32, &str)] = &[")?;
    for (abi, abi_name) in ABIS.iter().enumerate() {
        let rowless = numbers.iter().filter(|row| !calls.iter().any(|call| call.name == row.name));
        let mut others: Vec<(u32, &str)> = rowless.filter_map(|row| Some((row.numbers[abi]?, row.name.as_str()))).collect();
        others.sort_unstable();
        for (number, name) in others {
            writeln!(out, "    (Abi::{abi_name}, {number}, {name:?}),")?;
        }
    }
    writeln!(out, "];")
}
