//! Emits the sets of attributes and the messages of protocols as Rust text, with the types of `src/beauty/row.rs`.

use super::attributes::{Choice, Content, Message, Messages, Protocol, ProtocolKind, Set};
use super::emit::memory_type;
use std::fmt::{self, Write};

/// Appends the text. All names that it refers to are of the modules that `emit` writes.
pub fn emit(messages: &Messages) -> Result<String, fmt::Error> {
    let mut out = String::new();
    writeln!(
        out,
        "/// The sets of attributes and of control messages, each by its name.\npub mod sets {{\nuse super::*;\nuse super::structs::*;"
    )?;
    for set in &messages.sets {
        emit_set(&mut out, set)?;
    }
    writeln!(out, "}}\n/// The sets of control messages, by their levels.\npub static CONTROL_LEVELS: &[(u32, &AttributeSet)] = &[")?;
    for (set, level) in messages.sets.iter().filter_map(|set| Some((set, set.level?))) {
        writeln!(out, "    ({level:#x}, &sets::{}),", set.name.to_uppercase())?;
    }
    writeln!(out, "];\n/// The structs that sets of attributes follow.\npub static ATTRIBUTES_AFTER: &[(&Struct, &AttributeSet)] = &[")?;
    for set in &messages.sets {
        for of in &set.after {
            writeln!(out, "    (&structs::{}, &sets::{}),", of.to_uppercase(), set.name.to_uppercase())?;
        }
    }
    writeln!(out, "];")?;
    for (kind, text, name) in [
        (ProtocolKind::Netlink, "The protocols of netlink", "NETLINK_PROTOCOLS"),
        (ProtocolKind::Subsystem, "The subsystems of netfilter", "NETFILTER_SUBSYSTEMS"),
        (ProtocolKind::Generic, "The generic families, by the names that the kernel has for them", "GENERIC_FAMILIES"),
    ] {
        writeln!(out, "/// {text}.\npub static {name}: &[NetlinkProtocol] = &[")?;
        messages.protocols.iter().filter(|protocol| protocol.kind == kind).try_for_each(|protocol| emit_protocol(&mut out, protocol))?;
        writeln!(out, "];")?;
    }
    Ok(out)
}

fn emit_protocol(out: &mut String, protocol: &Protocol) -> fmt::Result {
    let types = reference("constants", protocol.types.as_ref());
    writeln!(out, "    NetlinkProtocol {{ number: {:#x}, name: {:?}, types: {types}, messages: &[", protocol.number, protocol.name)?;
    protocol.messages.iter().try_for_each(|message| emit_message(out, message))?;
    let replies = reference("constants", protocol.replies.as_ref().map(|(table, _)| table));
    writeln!(out, "    ], reply_types: {replies}, replies: &[")?;
    protocol.replies.iter().flat_map(|(_, messages)| messages).try_for_each(|message| emit_message(out, message))?;
    writeln!(out, "    ] }},")
}

fn emit_set(out: &mut String, set: &Set) -> fmt::Result {
    let (name, table) = (set.name.to_uppercase(), set.table.to_uppercase());
    // The type of a nested attribute has flags besides its number.
    writeln!(
        out,
        "static {name}_TYPES: ConstantTable = ConstantTable {{ name: {:?}, kind: TableKind::Flags, bits: 32, header: {:?}, prefix: constants::ATTRIBUTE_FLAGS.prefix, entries: constants::ATTRIBUTE_FLAGS.entries, fields: &[BitField {{ mask: 0x3fff, table: &constants::{table} }}], per_abi: &[] }};",
        format!("{}_types", set.name),
        "linux/netlink.h",
    )?;
    writeln!(
        out,
        "/// set {}\npub static {name}: AttributeSet = AttributeSet {{ name: {:?}, table: &constants::{table}, types: &{name}_TYPES, attributes: &[",
        set.name, set.name
    )?;
    for (number, of) in &set.attributes {
        writeln!(out, "    ({number:#x}, AttributeContent::{}),", content(of))?;
    }
    writeln!(out, "], choices: &[")?;
    for Choice { by, bytes, attribute, content: of } in &set.choices {
        let by = by.map_or("AttributeChoice::FAMILY".to_string(), |by| format!("{by:#x}"));
        writeln!(
            out,
            "    AttributeChoice {{ by: {by}, bytes: &{bytes:?}, attribute: {attribute:#x}, content: AttributeContent::{} }},",
            content(of)
        )?;
    }
    writeln!(out, "] }};")
}

fn content(of: &Content) -> String {
    match of {
        Content::Memory(of) => format!("Memory({})", memory_type(of)),
        Content::Set(set) => format!("Set(&{})", set.to_uppercase()),
        Content::Each(inner) => format!("Each(&AttributeContent::{})", content(inner)),
    }
}

fn emit_message(out: &mut String, message: &Message) -> fmt::Result {
    let flags = reference("constants", message.flags.as_ref());
    let [request, reply] = [&message.request, &message.reply].map(|of| reference("structs", of.as_ref()));
    let set = reference("sets", message.set.as_ref());
    writeln!(
        out,
        "        NetlinkMessage {{ types: &{:?}, flags: {flags}, request: {request}, reply: {reply}, set: {set} }},",
        message.types
    )
}

fn reference(module: &str, name: Option<&String>) -> String {
    name.map_or("None".to_string(), |name| format!("Some(&{module}::{})", name.to_uppercase()))
}
