//! Names of just-in-time compiled code and of the kernel, mangled names, links to debug files, and compressed data.
//!
//! The first byte chooses the kind of input.

use rtrace::symbols::{BuildId, ByteOrder, Compression, DebugAltLink, DebugLink, JitFunctions, Jitdump, Kallsyms, PerfMap, demangle};
use std::path::Path;

pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 8 {
        0 => {
            let mut map = PerfMap::default();
            bytes.split_inclusive(|byte| *byte == 1).for_each(|part| map.append(part));
            check(map.functions());
        }
        1 => {
            let mut dump = Jitdump::default();
            let half = &bytes[..bytes.len() / 2];
            let _ = (dump.read_on(&half), dump.read_on(&bytes));
            check(dump.functions());
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
            let _ = DebugLink::parse(bytes, ByteOrder::Little).map(|link| link.paths(Path::new("/usr/bin/x")));
            let _ = DebugAltLink::parse(bytes).map(|shared| shared.paths(Path::new("/usr/bin/x")));
        }
        5 => decompress(Compression::Zlib, bytes),
        6 => decompress(Compression::Zstd, bytes),
        _ => decompress(Compression::Xz, bytes),
    }
}

fn check(functions: &JitFunctions) {
    for address in [0, 1, 0x1000, 0x7f00, 0x5000, u64::MAX - 1, u64::MAX] {
        if let Some(found) = functions.at(address) {
            assert!(found.offset <= address, "the function begins at or below the address");
        }
    }
}

fn decompress(algorithm: Compression, bytes: &[u8]) {
    const LIMIT: u64 = 1 << 20;
    if let Ok(contents) = algorithm.decompress(bytes, LIMIT) {
        assert!(contents.len() as u64 <= LIMIT);
    }
}
