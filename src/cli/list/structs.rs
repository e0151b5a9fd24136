//! A struct's row, as text.

use super::row::{kind, length};
use crate::beauty::row::{Condition, Counted, Flow, Form, Layout, Member, Number, Struct};
use crate::event::Abi;
use crate::kernel::machine::NATIVE_ABI;
use std::io::{self, Write};

/// `NAME MEMBERS struct SOURCE`, for a struct whose inside is known.
pub fn line(of: &Struct, out: &mut Vec<u8>) -> io::Result<()> {
    let count = match &of.layout {
        Layout::Opaque => return Ok(()),
        Layout::Members(members) => members[NATIVE_ABI as usize].len().to_string(),
        Layout::Number(_) => "1".to_owned(),
        Layout::Decoder(_) => "-".to_owned(),
    };
    let source = if of.source.is_empty() { "-" } else { of.source };
    writeln!(out, "{:<24} {count:>4} struct {source}", of.name)
}

/// The line, and everything else the row says.
pub fn whole(of: &Struct, out: &mut Vec<u8>) -> io::Result<()> {
    line(of, out)?;
    if matches!(of.layout, Layout::Opaque) {
        return Ok(());
    }
    let size = |abi: Abi| format!("{} {}", abi.name(), of.sizes[abi as usize]);
    writeln!(out, "    bytes     {}", Abi::ALL.map(size).join(", "))?;
    match of.counted {
        Counted::Bytes => {}
        Counted::Bits => writeln!(out, "    [length]  in bits")?,
        Counted::Nodes => writeln!(out, "    [length]  in bits, and one more")?,
        Counted::Pages => writeln!(out, "    [length]  in bytes of memory, a byte for each page")?,
        Counted::Tail => writeln!(out, "    [length]  in bytes of what follows")?,
        Counted::Entries => writeln!(out, "    [length]  in bytes of all entries")?,
    }
    if let (true, Layout::Members([[first, ..], ..])) = (of.has_length, &of.layout) {
        writeln!(out, "    length    in {}", first.name)?;
    }
    match &of.layout {
        Layout::Members(all) => members(all, out),
        Layout::Number(forms) => writeln!(out, "    is        {}", form(&forms[NATIVE_ABI as usize], &[])),
        Layout::Decoder(_) | Layout::Opaque => writeln!(out, "    members   depend on what stands in it"),
    }
}

/// The members of this machine's ABI, and of the others where they are elsewhere.
fn members(all: &[&'static [Member]; 4], out: &mut Vec<u8>) -> io::Result<()> {
    let own = all[NATIVE_ABI as usize];
    for member in own {
        let flow = if member.flow == Flow::Out { "out " } else { "" };
        let used = if let Condition::If { text, .. } = member.used { format!(", if {text}") } else { String::new() };
        writeln!(out, "    at {:<6} {}: {flow}{}{used}", member.offset, member.name, form(&member.form, own))?;
    }
    for abi in Abi::ALL.into_iter().filter(|abi| *abi != NATIVE_ABI) {
        let places = |members: &[Member]| members.iter().map(|member| format!("{} {}", member.name, member.offset)).collect::<Vec<_>>();
        let other = places(all[abi as usize]);
        if other != places(own) {
            writeln!(out, "    in {}: {}", abi.name(), other.join(", "))?;
        }
    }
    Ok(())
}

/// A member's type, and after a slash its meaning, as the row files write them.
fn form(form: &Form, siblings: &[Member]) -> String {
    match form {
        Form::Number(number) => self::number(number, siblings),
        Form::Text(0) => "char[]".to_owned(),
        Form::Text(bytes) => format!("char[{bytes}]"),
        Form::Bytes(0) => "byte[]".to_owned(),
        Form::Bytes(bytes) => format!("byte[{bytes}]"),
        Form::Struct(of) => of.name.to_owned(),
        Form::Array { element, count: 0, .. } => format!("{}[]", self::form(element, siblings)),
        Form::Array { element, count, .. } => format!("{}[{count}]", self::form(element, siblings)),
    }
}

fn number(number: &Number, siblings: &[Member]) -> String {
    let sign = match (number.big_endian, number.signed) {
        (true, _) => "be",
        (false, true) => "s",
        (false, false) => "u",
    };
    let meaning = format!("{}{}", kind(&number.kind), length(number.length, |at| siblings.get(at).map(|member| member.name)));
    let plain = matches!(meaning.as_str(), "long" | "ulong");
    format!("{sign}{}{}", u32::from(number.bytes) * 8, if plain { String::new() } else { format!("/{meaning}") })
}
