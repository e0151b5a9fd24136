use super::super::test_files::{Directory, elf, name_at, run};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Every kind of symbol at a known address. It has no instructions, so it can be assembled for any machine.
const PLACED: &str = r#"
    .section .text, "ax"
    .globl _start
_start: .skip 16
    .globl sized, __sized, weak_alias
    .weak weak_alias
    .type sized, %function
    .type __sized, %function
    .type weak_alias, %function
sized:
__sized:
weak_alias:
    .skip 8
    .globl target
target: .skip 24
    .size sized, 32
    .size __sized, 32
    .size weak_alias, 32
    .skip 16
local_label: .skip 8
    .type data, %object
data: .skip 8
    .size data, 8
    .section .other, "ax"
    .globl other
other: .skip 4
    .section .rodata, "a"
    .globl constant
constant: .skip 8
"#;

fn table(file: &ElfFile) -> SymbolTable {
    let mut code = CodeSymbols::default();
    code.add(file);
    code.add_stubs(file);
    code.finish()
}

fn placed(directory: &Directory) -> std::path::PathBuf {
    let places = ["-Wl,-Ttext=0x10000", "-Wl,--section-start=.other=0x20000", "-Wl,--build-id=none"];
    directory.compile("placed.s", PLACED, &[&["-nostdlib", "-static", "-no-pie"][..], &places].concat())
}

#[test]
fn symbols_labels_and_aliases_name_their_addresses() {
    let directory = Directory::new();
    let table = table(&elf(&placed(&directory)));
    let at = |address| name_at(&table, address);
    assert_eq!(at(0x10000).unwrap(), "_start+0x0");
    assert_eq!(at(0x1000f).unwrap(), "_start+0xf");
    assert_eq!(at(0x10010).unwrap(), "sized+0x0");
    assert_eq!(at(0x1002f).unwrap(), "sized+0x1f", "a label within a function names nothing");
    assert_eq!(at(0x10030), None, "behind a function's size");
    assert_eq!(at(0x10040).unwrap(), "local_label+0x0");
    assert_eq!(at(0x20003).unwrap(), "other+0x3");
    assert_eq!(at(0x20004), None, "behind a section's end");
    assert!(table.iter().all(|(_, _, name)| ![&b"constant"[..], b"data", b"target", b"__sized"].contains(&name)));
}

/// Returns the addresses and names of the stubs that objdump prints, without those whose function is only known at run
/// time.
fn stubs_by_objdump(path: &Path) -> BTreeSet<(u64, String)> {
    let text = run(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(path));
    let labels = text.lines().filter_map(|line| line.strip_suffix("@plt>:")?.split_once(" <"));
    let address = |text: &str| u64::from_str_radix(text, 16).unwrap();
    labels.map(|(start, name)| (address(start), name.to_owned())).filter(|(_, name)| !name.starts_with("*ABS*")).collect()
}

#[test]
fn plt_stubs_of_all_layouts_have_names() {
    const SOURCE: &str = "#include <unistd.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
        void *taken = 0;\nint main(void) { taken = (void *)getenv; puts(\"x\"); getenv(\"x\"); return (int)write(1, \"\", 0); }\n";
    let directory = Directory::new();
    let layouts: [&[&str]; 10] = [
        &[],
        &["-no-pie"],
        &["-fcf-protection", "-Wl,-z,ibtplt"],
        &["-Wl,-z,now"],
        &["-Wl,-z,lazy", "-O2"],
        &["-Wl,-z,lazy", "-fcf-protection", "-Wl,-z,ibtplt", "-no-pie"],
        &["-m32"],
        &["-m32", "-no-pie"],
        &["-m32", "-Wl,-z,now"],
        &["-m32", "-fcf-protection", "-Wl,-z,lazy,-z,ibtplt"],
    ];
    for layout in layouts {
        let path = match directory.try_compile("stubs.c", SOURCE, layout) {
            Ok(path) => path,
            // Not every machine and compiler supports branch tracking and 32-bit programs.
            Err(_) if layout.iter().any(|argument| argument.contains("ibtplt") || *argument == "-m32") => {
                eprintln!("skipped: {layout:?}");
                continue;
            }
            Err(error) => panic!("{layout:?}: {error}"),
        };
        let table = table(&elf(&path));
        let expected = stubs_by_objdump(&path);
        assert!(expected.iter().any(|(_, name)| name == "write"), "{layout:?}: {expected:?}");
        for (address, name) in expected {
            assert_eq!(name_at(&table, address + 3), Some(format!("{name}@plt+0x3")), "{layout:?}");
        }
    }
}

#[test]
fn ifunc_stubs_of_a_static_program_have_names() {
    let directory = Directory::new();
    let source = "#include <string.h>\nint main(int n, char **v) { return (int)strlen(v[0]); }\n";
    let path = directory.compile("ifunc.c", source, &["-static"]);
    let table = table(&elf(&path));
    assert!(table.iter().any(|(_, _, name)| name == b"strlen@plt"), "the stub of an IFUNC");
    assert!(table.iter().any(|(_, _, name)| name == b"main"));
}

/// Assembles a source without linking it, so that addresses are offsets in a section. Returns `None` if clang cannot do
/// it.
fn foreign(directory: &Directory, target: &str, source: &str) -> Option<ElfFile> {
    let (from, to) = (directory.path(&format!("{target}.s")), directory.path(&format!("{target}.o")));
    std::fs::write(&from, source).unwrap();
    let status = Command::new("clang").args(["-c", &format!("--target={target}"), "-o"]).args([&to, &from]).status();
    status.is_ok_and(|status| status.success()).then(|| elf(&to))
}

#[test]
fn mapping_symbols_of_other_machines_are_skipped() {
    let directory = Directory::new();
    let source = ".globl f\n.type f, %function\nf: nop\n.word 0\nnop\n.size f, .-f\n.globl g\ng: nop\n";
    for (target, machine, length) in [("aarch64-linux-gnu", Machine::Aarch64, 12), ("i386-linux-gnu", Machine::I386, 4)] {
        let Some(file) = foreign(&directory, target, source) else {
            eprintln!("skipped: no clang for {target}");
            continue;
        };
        assert_eq!(file.machine(), machine);
        let table = table(&file);
        let names: Vec<(u64, u64, &[u8])> = table.iter().collect();
        assert_eq!(names.iter().map(|(_, _, name)| *name).collect::<Vec<_>>(), [b"f", b"g"], "no `$x` or `$d`");
        assert_eq!((names[0].1, names[1].0), (length, length));
    }
}

#[test]
fn the_symbol_of_write_is_found_in_this_tests_c_library() {
    let address = libc::write as *const () as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let (path, offset) = maps.lines().find_map(|line| mapped_at(line, address)).unwrap();
    let file = elf(Path::new(path));
    let svma = file.svma_of_offset(offset).unwrap();
    assert_eq!(name_at(&table(&file), svma + 1).unwrap(), "write+0x1");
    assert!(file.build_id().is_some());
}

/// Returns the file that a line of maps has at an address, and the offset in it.
fn mapped_at(line: &str, address: u64) -> Option<(&str, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, end) = fields[0].split_once('-').map(|(start, end)| (number(start), number(end)))?;
    (start..end).contains(&address).then(|| (fields[5], address - start + number(fields[2])))
}

#[test]
fn a_truncated_file_has_no_additional_symbols() {
    let directory = Directory::new();
    let whole = std::fs::read(placed(&directory)).unwrap();
    let named = |bytes: &[u8]| ElfFile::read(Box::new(bytes.to_vec())).map(|file| (file.build_id(), table(&file).len()));
    assert_eq!(named(&whole).unwrap().1, 4);
    for end in 0..whole.len() {
        if let Ok((_, symbols)) = named(&whole[..end]) {
            assert!(symbols <= 4, "cut at {end}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        let with_magic = [&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &bytes].concat();
        for bytes in [bytes, with_magic] {
            if let Ok(file) = ElfFile::read(Box::new(bytes)) {
                let _ = (table(&file), file.build_id(), file.svma_of_offset(100), file.contents(".debug_info"));
            }
        }
    }
}

#[test]
fn a_changed_byte_causes_no_panic() {
    let directory = Directory::new();
    let whole = std::fs::read(placed(&directory)).unwrap();
    // Headers, and of the rest all bytes that are not zero and every 64th: symbols, strings, section headers.
    let places = (0..whole.len()).filter(|at| *at < 0x200 || whole[*at] != 0 || at % 64 == 0);
    for at in places {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            if let Ok(file) = ElfFile::read(Box::new(bytes)) {
                let _ = (table(&file), file.build_id());
            }
        }
    }
}
