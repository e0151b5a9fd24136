use super::super::test_files::name_at;
use super::*;
use proptest::prelude::*;

/// Builds a table of symbols with name, address and size. A size of 0 stands for a label in a section that ends at
/// 0x1000.
fn table(symbols: &[(&str, u64, u64)]) -> SymbolTable {
    let mut builder = Builder::default();
    for (name, start, size) in symbols {
        let strings = builder.strings(format!("{name}\0").into_bytes());
        let extent = if *size == 0 { Extent::UpTo(0x1000) } else { Extent::Size(*size) };
        builder.add(*start, extent, Binding::Global, strings, 0);
    }
    builder.finish()
}

#[test]
fn a_symbol_names_the_addresses_within_its_size() {
    let table = table(&[("second", 0x200, 0x10), ("first", 0x100, 0x20)]);
    let at = |address| name_at(&table, address);
    assert_eq!((at(0xff), at(0x100), at(0x11f), at(0x120)), (None, Some("first+0x0".into()), Some("first+0x1f".into()), None));
    assert_eq!((at(0x20f), at(0x210), at(u64::MAX)), (Some("second+0xf".into()), None, None));
    assert_eq!(super::SymbolTable::default().at(0), None);
}

#[test]
fn the_innermost_of_nested_symbols_names_an_address() {
    let table = table(&[("outer", 0x100, 0x100), ("inner", 0x120, 0x40), ("innermost", 0x130, 0x8), ("sticks_out", 0x1f0, 0x20)]);
    let at = |address| name_at(&table, address).unwrap();
    assert_eq!(at(0x11f), "outer+0x1f");
    assert_eq!(at(0x137), "innermost+0x7");
    assert_eq!(at(0x138), "inner+0x18");
    assert_eq!(at(0x160), "outer+0x60");
    assert_eq!(at(0x200), "sticks_out+0x10");
    assert_eq!(table.at(0x210), None);
}

#[test]
fn a_label_outside_of_symbols_extends_to_the_next_symbol() {
    let table = table(&[("sized", 0x100, 0x20), ("jump_target", 0x110, 0), ("label", 0x120, 0), ("next", 0x140, 0), ("last", 0xff0, 0)]);
    let at = |address| name_at(&table, address);
    assert_eq!(at(0x111).unwrap(), "sized+0x11");
    assert_eq!((at(0x13f).unwrap(), at(0x140).unwrap()), ("label+0x1f".into(), "next+0x0".into()));
    assert_eq!((at(0xfff).unwrap(), at(0x1000)), ("last+0xf".into(), None));
}

#[test]
fn a_symbol_version_is_no_part_of_the_name() {
    let table = table(&[("memcpy@@GLIBC_2.14", 0x100, 8), ("write@plt", 0x200, 8), ("@odd", 0x300, 8), ("", 0x400, 8)]);
    assert_eq!(name_at(&table, 0x100).unwrap(), "memcpy+0x0");
    assert_eq!(name_at(&table, 0x200).unwrap(), "write@plt+0x0");
    assert_eq!(name_at(&table, 0x300).unwrap(), "@odd+0x0");
    assert_eq!(table.len(), 3);
}

#[test]
fn symbols_more_than_4_gib_apart_are_found() {
    let far = 0x7fff_0000_0000;
    let table = table(&[("near", 0x10, 8), ("all", 0x100, 1 << 40), ("far", far, 8), ("end", u64::MAX - 3, 100)]);
    assert_eq!(name_at(&table, 0x17).unwrap(), "near+0x7");
    assert_eq!(name_at(&table, far + 7).unwrap(), "far+0x7");
    assert_eq!(name_at(&table, 0x1_0000_0000).unwrap(), "all+0xffffff00");
    assert_eq!(table.at(0x2_0000_0000), None, "a size of more than 4 GiB is cut");
    assert_eq!(name_at(&table, u64::MAX - 1).unwrap(), "end+0x2");
    assert_eq!(table.at(far - 1), None);
}

#[test]
fn a_million_symbols_take_less_than_14_mb() {
    let mut builder = Builder::default();
    let strings = builder.strings(b"f\0".to_vec());
    for i in 0..1_000_000 {
        builder.add(i * 16, Extent::Size(16), Binding::Global, strings, 0);
    }
    let table = builder.finish();
    assert_eq!(table.len(), 1_000_000);
    assert!(table.footprint() < 14_000_000, "{}", table.footprint());
}

proptest! {
    /// The result is compared with that of a search through the list of symbols.
    #[test]
    fn the_innermost_of_many_symbols_is_found(symbols in proptest::collection::vec((0u64..200, 1u64..64), 0..40)) {
        let named: Vec<(String, u64, u64)> = symbols.iter().map(|(start, size)| (format!("s{start}_{size}"), *start, *size)).collect();
        let table = table(&named.iter().map(|(name, start, size)| (name.as_str(), *start, *size)).collect::<Vec<_>>());
        for address in 0..300 {
            let holding = symbols.iter().filter(|(start, size)| (*start..start + size).contains(&address));
            let best = holding.max_by_key(|(start, size)| (*start, Reverse(*size)));
            let expected = best.map(|(start, size)| format!("s{start}_{size}+{:#x}", address - start));
            prop_assert_eq!(name_at(&table, address), expected);
        }
    }
}
