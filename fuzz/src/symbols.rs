//! The symbols of a file and of its linkage table, its `.gnu_debugdata`, and its debug file.
//!
//! If the input contains a second ELF file, that is the debug file of the first. Otherwise the file is its own debug
//! file.

use rtrace::symbols::{CodeSymbols, ElfFile, Identity, Options, Origin, ReadAt, Resolver, SymbolTable, Want};
use std::path::PathBuf;

/// The maximum number of symbols whose addresses are resolved.
const ADDRESSES_MAX: usize = 64;

pub fn run(bytes: &[u8]) {
    let (file, debug) = split(bytes);
    let Ok(elf) = ElfFile::read(Box::new(file.to_vec())) else { return };
    for offset in [0, 0x1000, u64::MAX] {
        let _ = elf.svma_of_offset(offset);
    }
    let table = table(&elf);
    let addresses = addresses(&table);
    let files = |_: Want<'_>| Some(Box::new(debug.to_vec()) as Box<dyn ReadAt>);
    let mut resolver = Resolver::new(files, Options::default());
    let identity = Identity { device: 1, inode: 2, size: file.len() as u64, modified: (3, 4), owner: 0 };
    let origin = Origin { pid: 1, path: PathBuf::from("/usr/bin/x") };
    let object = resolver.object(identity, origin, Box::new(file.to_vec())).expect("it was read before");
    for address in addresses {
        let _ = resolver.resolve(object, address);
    }
}

/// Splits the input into a file and its debug file.
pub fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let second = bytes.windows(4).skip(1).position(|four| four == b"\x7fELF");
    second.map_or((bytes, bytes), |at| bytes.split_at(at + 1))
}

pub fn table(elf: &ElfFile) -> SymbolTable {
    let mut code = CodeSymbols::default();
    code.add(elf);
    code.add_stubs(elf);
    code.finish()
}

/// Returns the beginnings and ends of symbols, and addresses at the limits of integers.
pub fn addresses(table: &SymbolTable) -> Vec<u64> {
    let mut addresses = vec![0, 1, 0x1000, u64::from(u32::MAX), u64::MAX];
    for (start, size, _) in table.iter().take(ADDRESSES_MAX) {
        for address in [start, start.saturating_add(size / 2), start.saturating_add(size)] {
            if let Some(found) = table.at(address) {
                assert!(found.offset <= address, "the symbol begins at or below the address");
            }
            addresses.push(address);
        }
    }
    addresses
}
