use super::super::test_files::{Directory, elf, run};
use super::*;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "static volatile int sink;\n\
    static inline __attribute__((always_inline)) void innermost(int n) {\n\
    \x20   sink = n;\n\
    }\n\
    static inline __attribute__((always_inline)) void middle(int n) {\n\
    \x20   innermost(n + 1);\n\
    }\n\
    int main(int count, char **arguments) {\n\
    \x20   (void)arguments;\n\
    \x20   middle(count);\n\
    \x20   return 0;\n\
    }\n";

/// Returns the first address of the program's code whose innermost line is `line`.
fn address_of_line(file: &ElfFile, lines: &Lines, line: u32) -> u64 {
    let text = file.section(".text").unwrap();
    let is_there = |address: &u64| lines.at(*address).first().is_some_and(|frame| frame.line == Some(line));
    (text.sh_addr..text.sh_addr + text.sh_size).find(is_there).unwrap()
}

fn shown(frames: &[InlinedFrame]) -> Vec<(&str, &str, u32)> {
    let file = |frame: &'_ InlinedFrame| frame.file.as_deref().map(|file| file.len() - "inlined.c".len());
    frames
        .iter()
        .map(|frame| (frame.function.as_deref().unwrap(), &frame.file.as_deref().unwrap()[file(frame).unwrap()..], frame.line.unwrap()))
        .collect()
}

fn check(path: &Path) {
    let file = elf(path);
    let lines = Lines::read(&file, None).unwrap();
    let address = address_of_line(&file, &lines, 3);
    assert_eq!(shown(&lines.at(address)), [("innermost", "inlined.c", 3), ("middle", "inlined.c", 6), ("main", "inlined.c", 10)]);
    assert_eq!((lines.at(0), lines.at(u64::MAX)), (vec![], vec![]));
    assert!(lines.footprint() > 100);
}

#[test]
fn inlined_functions_are_found_in_all_compressions() {
    let directory = Directory::new();
    for arguments in [&["-g", "-O2"][..], &["-g", "-O2", "-gdwarf-4"], &["-g", "-O2", "-gz=zlib"]] {
        check(&directory.compile("inlined.c", SOURCE, arguments));
    }
    let plain = directory.compile("inlined.c", SOURCE, &["-g", "-O2"]);
    let compressed = directory.path("compressed");
    let by_zstd = Command::new("objcopy").arg("--compress-debug-sections=zstd").args([&plain, &compressed]).output().unwrap();
    if by_zstd.status.success() {
        check(&compressed);
    } else {
        eprintln!("skipped zstd: this objcopy does not support it");
    }
}

#[test]
fn dwarf_that_dwz_moved_to_a_shared_file_is_found() {
    let directory = Directory::new();
    let first = directory.compile("inlined.c", SOURCE, &["-g", "-O2"]);
    let second = directory.path("second");
    std::fs::copy(&first, &second).unwrap();
    let shared = directory.path("shared");
    let Ok(output) = Command::new("dwz").arg("-m").arg(&shared).args([&first, &second]).output() else {
        eprintln!("skipped: dwz is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = elf(&first);
    let lines = Lines::read(&file, Some(&elf(&shared))).unwrap();
    let address = address_of_line(&file, &lines, 3);
    assert_eq!(shown(&lines.at(address))[2], ("main", "inlined.c", 10));
}

#[test]
fn damaged_dwarf_causes_no_panic() {
    let directory = Directory::new();
    let path = directory.compile("inlined.c", SOURCE, &["-g", "-O2"]);
    let whole = std::fs::read(&path).unwrap();
    let text = elf(&path).section(".text").unwrap().sh_addr;
    let sections = run(Command::new("objdump").arg("-h").arg(&path));
    let debug_info = sections.lines().find(|line| line.contains(".debug_aranges")).unwrap();
    let start = usize::from_str_radix(debug_info.split_ascii_whitespace().nth(5).unwrap(), 16).unwrap();
    for at in (start..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        if let Ok(file) = ElfFile::read(Box::new(bytes))
            && let Ok(lines) = Lines::read(&file, None)
        {
            (text..text + 64).for_each(|address| _ = lines.at(address));
        }
    }
}
