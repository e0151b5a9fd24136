//! Names that are not an ELF file's: of just-in-time compiled code, of the kernel; mangled names; what files say of their debug files; packed bytes.
//!
//! The first byte chooses.

use rtrace::stack::symbols::build_id::BuildId;
use rtrace::stack::symbols::demangle::demangle;
use rtrace::stack::symbols::jitdump::Jitdump;
use rtrace::stack::symbols::kallsyms::Kallsyms;
use rtrace::stack::symbols::order::ByteOrder;
use rtrace::stack::symbols::packed::Packing;
use rtrace::stack::symbols::perf_map::{Made, PerfMap};
use rtrace::stack::symbols::separate::{Link, Shared};
use std::path::Path;

pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 8 {
        0 => {
            let mut map = PerfMap::default();
            bytes.split_inclusive(|byte| *byte == 1).for_each(|part| map.append(part));
            ask(map.made());
        }
        1 => {
            let mut dump = Jitdump::default();
            let half = &bytes[..bytes.len() / 2];
            let _ = (dump.read_on(&half), dump.read_on(&bytes));
            ask(dump.made());
        }
        2 => {
            let Ok(symbols) = Kallsyms::parse(bytes.to_vec()) else { return };
            for address in [0, 1, 0xffff_ffff_8100_0000, 0xffff_ffff_c000_0010, u64::MAX] {
                let _ = symbols.at(address);
            }
        }
        3 => {
            let _ = demangle(bytes);
        }
        4 => {
            let _ = (BuildId::in_notes(bytes, ByteOrder::Little), BuildId::in_notes(bytes, ByteOrder::Big));
            let _ = Link::parse(bytes, ByteOrder::Little).map(|link| link.paths(Path::new("/usr/bin/x")));
            let _ = Shared::parse(bytes).map(|shared| shared.paths(Path::new("/usr/bin/x")));
        }
        5 => unpack(Packing::Zlib, bytes),
        6 => unpack(Packing::Zstd, bytes),
        _ => unpack(Packing::Xz, bytes),
    }
}

fn ask(made: &Made) {
    for address in [0, 1, 0x1000, 0x7f00, 0x5000, u64::MAX - 1, u64::MAX] {
        if let Some(found) = made.at(address) {
            assert!(found.offset <= address, "a function that begins below the address");
        }
    }
}

fn unpack(packing: Packing, bytes: &[u8]) {
    const MOST: u64 = 1 << 20;
    if let Ok(unpacked) = packing.unpack(bytes, MOST) {
        assert!(unpacked.len() as u64 <= MOST);
    }
}
