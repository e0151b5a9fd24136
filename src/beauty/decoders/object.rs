//! Decodes what depends on another object than the struct itself: the information about a BPF object, by the object's
//! kind, and capabilities, by the version in the header that the call passes before them.

use super::super::memory::{Memory, MemoryReader, load};
use super::super::row::Struct;
use super::super::tables::{constants, structs};
use super::super::value::{ArrayValue, StructValue, Value};
use crate::event::{Abi, File};

/// `_LINUX_CAPABILITY_VERSION_1`, in which each set has 32 bits, and `_2` and `_3`, in which it has 64. The kernel
/// accepts no others.
const CAPABILITY_VERSION_1: u64 = 0x1998_0330;
const CAPABILITY_VERSION_2: u64 = 0x2007_1026;
const CAPABILITY_VERSION_3: u64 = 0x2008_0522;

/// Decodes the information that BPF_OBJ_GET_INFO_BY_FD returns. The file behind `bpf_fd`, the first member of the
/// attributes, says which struct it is; if the file is not known, the information is shown as bytes. Before the kernel
/// has written them, these and the kind of a link are not known.
pub fn bpf_info<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    // The upper halves of a 32-bit program's registers are arbitrary.
    let mask = if reader.abi() == Abi::I386 { u64::from(u32::MAX) } else { u64::MAX };
    let attributes = reader.call.args.map_or(0, |registers| registers[1] & mask);
    let fd = reader.find(attributes, None, None).and_then(|attributes| attributes.number(0, 4, true));
    let of = fd.and_then(|fd| reader.file(fd as i32)).and_then(info_of);
    if reader.is_unwritten && of.is_none_or(|of| std::ptr::eq(of, &structs::BPF_LINK_INFO)) {
        return Value::Unread(memory.address);
    }
    match of {
        Some(of) => reader.structure(of, memory),
        None => reader.text(memory, reader.context.string_limit, false),
    }
}

/// Returns the struct of the information about a BPF object (kernel/bpf/syscall.c and btf.c name the files).
fn info_of(file: &File) -> Option<&'static Struct> {
    let File::Anonymous(name) = file else { return None };
    Some(match &name[..] {
        b"bpf-prog" => &structs::BPF_PROG_INFO,
        b"bpf-map" => &structs::BPF_MAP_INFO,
        b"bpf_link" | b"bpf-link" => &structs::BPF_LINK_INFO,
        b"btf" => &structs::BPF_BTF_INFO,
        _ => return None,
    })
}

/// Decodes the capabilities of capget and capset: one or two structs of three sets each, of which the second has the
/// upper halves. The first argument points to the header with the version; if that is not known, the sets are bytes.
pub fn capabilities<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    const SETS: [&str; 3] = ["effective", "permitted", "inheritable"];
    let header = reader.call.args.map_or(0, |registers| registers[0]);
    let mut headers = reader.call.pieces.iter().filter(|piece| piece.arg == 0 && piece.address == header);
    let is_short = match headers.find_map(|piece| load(reader.call.bytes(piece).get(..4)?, false, false)) {
        Some(CAPABILITY_VERSION_1) => true,
        Some(CAPABILITY_VERSION_2 | CAPABILITY_VERSION_3) => false,
        _ => return reader.text(memory, reader.context.string_limit, false),
    };
    let mut members = Vec::with_capacity(SETS.len());
    for (at, name) in SETS.into_iter().enumerate() {
        let Some(low) = memory.number(4 * at, 4, false) else { break };
        let high = if is_short { Some(0) } else { memory.number(4 * (at + SETS.len()), 4, false) };
        let Some(high) = high else { break };
        members.push((name, of_bits(low | high << 32, reader.context.is_brief)));
    }
    let more = members.len() < SETS.len();
    Value::Struct(StructValue { name: "capabilities", address: memory.address, members, more })
}

/// Decodes a set of capabilities of 64 bits.
pub fn capability_set<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    memory.number(0, 8, false).map_or(Value::Unread(memory.address), |set| of_bits(set, reader.context.is_brief))
}

/// Returns the capabilities of a set, in which bit N is capability N. The brief form of a set with more than half of
/// the known capabilities, and no others, is its complement.
fn of_bits(set: u64, is_brief: bool) -> Value<'static> {
    let known = constants::CAPABILITY.entries.iter().fold(0, |known, entry| known | 1u64 << entry.value);
    if is_brief && set & !known == 0 && set.count_ones() > known.count_ones() / 2 {
        return Value::AllBut(ArrayValue { items: capability_names(known & !set), ..ArrayValue::default() });
    }
    Value::Array(ArrayValue { items: capability_names(set), ..ArrayValue::default() })
}

fn capability_names(mut set: u64) -> Vec<Value<'static>> {
    let mut items = Vec::with_capacity(set.count_ones() as usize);
    while set != 0 {
        items.push(Value::Symbol { table: &constants::CAPABILITY, value: u64::from(set.trailing_zeros()) });
        set &= set - 1;
    }
    items
}
