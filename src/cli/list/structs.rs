//! Prints the row of a struct.

use super::row::{kind, length};
use crate::beauty::row::{
    ArgumentKind, BriefMember, Condition, Flow, LengthUnit, MemoryNumber, MemoryType, Shown, Struct, StructLayout, StructMember,
};
use crate::event::Abi;
use crate::kernel::machine::NATIVE_ABI;
use std::io::{self, Write};

/// Writes `NAME MEMBERS struct SOURCE`; nothing for a struct whose members are not known.
pub fn line(of: &Struct, out: &mut Vec<u8>) -> io::Result<()> {
    let count = match &of.layout {
        StructLayout::Opaque => return Ok(()),
        StructLayout::Members(members) => members[NATIVE_ABI as usize].len().to_string(),
        StructLayout::Number(_) => "1".to_owned(),
        StructLayout::Decoder(_) => "-".to_owned(),
    };
    let source = if of.source.is_empty() { "-" } else { of.source };
    writeln!(out, "{:<24} {count:>4} struct {source}", of.name)
}

/// Writes the line of [`line()`], and below it the other facts of the row.
pub fn full(of: &Struct, out: &mut Vec<u8>) -> io::Result<()> {
    line(of, out)?;
    if matches!(of.layout, StructLayout::Opaque) {
        return Ok(());
    }
    let size = |abi: Abi| format!("{} {}", abi.name(), of.sizes[abi as usize]);
    writeln!(out, "    bytes     {}", Abi::ALL.map(size).join(", "))?;
    match of.counted {
        LengthUnit::Bytes => {}
        LengthUnit::Bits | LengthUnit::Files => writeln!(out, "    [length]  in bits")?,
        LengthUnit::Nodes => writeln!(out, "    [length]  in bits, plus one")?,
        LengthUnit::Pages => writeln!(out, "    [length]  in bytes of memory; the array has a byte for each page")?,
        LengthUnit::Tail => writeln!(out, "    [length]  in bytes of the data that follows the struct")?,
        LengthUnit::Elements => writeln!(out, "    [length]  in elements of the array that follows the struct")?,
        LengthUnit::Entries => writeln!(out, "    [length]  in bytes of all entries")?,
    }
    if let (Some(at), StructLayout::Members([members, ..])) = (of.length_at, &of.layout)
        && let Some(member) = members.iter().find(|member| member.offset == at.offset)
    {
        writeln!(out, "    length    in {}", member.name)?;
    }
    match &of.layout {
        StructLayout::Members(all) => {
            members(all, out)?;
            choice(of, all[NATIVE_ABI as usize], out)?;
            brief(of, all[NATIVE_ABI as usize], out)
        }
        StructLayout::Number(forms) => writeln!(out, "    is        {}", form(&forms[NATIVE_ABI as usize], &[])),
        StructLayout::Decoder(_) | StructLayout::Opaque => writeln!(out, "    members   depend on the struct's contents"),
    }
}

/// Writes the members in this machine's ABI, and their offsets in the other ABIs where those differ.
fn members(all: &[&'static [StructMember]; 4], out: &mut Vec<u8>) -> io::Result<()> {
    let own = all[NATIVE_ABI as usize];
    for member in own {
        let flow = if member.flow == Flow::Out { "out " } else { "" };
        let used = if let Condition::If { text, .. } = member.used { format!(", if {text}") } else { String::new() };
        writeln!(out, "    at {:<6} {}: {flow}{}{used}", member.offset, member.name, form(&member.memory_type, own))?;
    }
    for abi in Abi::ALL.into_iter().filter(|abi| *abi != NATIVE_ABI) {
        let offsets =
            |members: &[StructMember]| members.iter().map(|member| format!("{} {}", member.name, member.offset)).collect::<Vec<_>>();
        let other = offsets(all[abi as usize]);
        if other != offsets(own) {
            writeln!(out, "    in {}: {}", abi.name(), other.join(", "))?;
        }
    }
    Ok(())
}

/// Writes the structs that a member selects.
fn choice(of: &Struct, members: &[StructMember], out: &mut Vec<u8>) -> io::Result<()> {
    let Some(choice) = &of.choice else { return Ok(()) };
    let member = &members[usize::from(choice.member)];
    for (value, chosen) in choice.structs {
        let constant = match &member.memory_type {
            MemoryType::Number(MemoryNumber { kind: ArgumentKind::Table(table), .. }) => table.name(*value),
            _ => None,
        };
        writeln!(out, "    if        {}={}: {}", member.name, constant.map_or_else(|| value.to_string(), str::to_owned), chosen.name)?;
    }
    Ok(())
}

/// Writes the members of a struct that lines show without `--full`. Writes nothing if lines show all members.
fn brief(of: &Struct, members: &[StructMember], out: &mut Vec<u8>) -> io::Result<()> {
    let Some(lists) = of.brief.members else { return Ok(()) };
    let text = |BriefMember { index, shown }: &BriefMember| {
        let member = &members[usize::from(*index)];
        let condition = match shown {
            Shown::Always | Shown::If(Condition::Always | Condition::Never) => return member.name.to_owned(),
            Shown::If(Condition::If { text, .. }) => (*text).to_owned(),
            Shown::NotZero { offset, .. } if *offset == member.offset => "it is not 0".to_owned(),
            Shown::NotZero { offset, .. } => {
                let tested = members.iter().find(|other| other.offset == *offset);
                format!("{} is not 0", tested.map_or("?", |tested| tested.name))
            }
        };
        format!("{} if {condition}", member.name)
    };
    let shown: Vec<String> = lists[NATIVE_ABI as usize].iter().map(text).collect();
    writeln!(out, "    lines     have {}; with --full, all members", shown.join(", "))
}

/// Returns a member's type, and after a slash its meaning, as the row files spell them.
fn form(form: &MemoryType, siblings: &[StructMember]) -> String {
    match form {
        MemoryType::Number(number) => self::number(number, siblings),
        MemoryType::Text(0) => "char[]".to_owned(),
        MemoryType::Text(bytes) => format!("char[{bytes}]"),
        MemoryType::Bytes(0) => "byte[]".to_owned(),
        MemoryType::Bytes(bytes) => format!("byte[{bytes}]"),
        MemoryType::Struct(of) => of.name.to_owned(),
        MemoryType::Array { element, count: 0, .. } => format!("{}[]", self::form(element, siblings)),
        MemoryType::Array { element, count, .. } => format!("{}[{count}]", self::form(element, siblings)),
    }
}

fn number(number: &MemoryNumber, siblings: &[StructMember]) -> String {
    let sign = match (number.big_endian, number.signed) {
        (true, _) => "be",
        (false, true) => "s",
        (false, false) => "u",
    };
    let meaning = format!("{}{}", kind(&number.kind), length(number.length, |at| siblings.get(at).map(|member| member.name)));
    let plain = matches!(meaning.as_str(), "long" | "ulong");
    format!("{sign}{}{}", u32::from(number.bytes) * 8, if plain { String::new() } else { format!("/{meaning}") })
}
