//! Compares the tables of this build with the reviewed list, and checks properties that all tables must have.

use crate::files::Headers;
use crate::generator::generate::is_ahead;
use crate::generator::header::Target;
use crate::generator::library::Library;
use rtrace::tables::{Abi, BY_NUMBER, SYSCALLS, TABLES, TableConstant, TableKind};
use std::collections::{HashMap, HashSet};

/// All tables, all names, all values: reviewed like code.
const REVIEWED: &str = include_str!("../snapshots/tables.txt");

/// The same list of this build.
const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/tables.txt"));

#[test]
fn every_reviewed_line_is_generated() {
    let generated: HashSet<&str> = GENERATED.lines().collect();
    let reviewed = tables(REVIEWED).into_iter().filter(|table| !lacks_header(table));
    let missing: Vec<&str> = reviewed.flat_map(str::lines).filter(|line| !generated.contains(line)).collect();
    assert!(missing.is_empty(), "in tests/snapshots/tables.txt, but not in this build: {missing:#?}");
}

#[test]
fn the_generated_tables_are_the_reviewed_ones() {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    if is_ahead(&Library::new(&load, Target::X86_64, HashMap::new())) {
        eprintln!("SKIPPED: the headers are newer than the rows, so tables may contain constants that were not reviewed");
        return;
    }
    let (generated, reviewed) = (compared(GENERATED), compared(REVIEWED));
    let difference = generated.lines().zip(reviewed.lines()).position(|(generated, reviewed)| generated != reviewed);
    let (generated_lines, reviewed_lines) = (generated.lines().count(), reviewed.lines().count());
    let line = difference.or((generated_lines != reviewed_lines).then_some(generated_lines.min(reviewed_lines)));
    if let Some(line) = line {
        let show = |text: &str| text.lines().nth(line).unwrap_or("(its end)").to_string();
        panic!(
            "the tables differ from tests/snapshots/tables.txt, first in line {}:\n  reviewed:  {}\n  generated: {}\n\
             if the change is intended: cp {}/tables.txt tests/snapshots/tables.txt, and review the output of git diff",
            line + 1,
            show(&reviewed),
            show(&generated),
            env!("OUT_DIR")
        );
    }
}

/// The version of the headers whose ioctl commands were reviewed. The tables have all commands of the installed
/// headers, so that those of other versions have others.
const COMMANDS_REVIEWED: i128 = 6 << 16 | 1 << 8;

/// Returns the text of each table of a list.
fn tables(list: &str) -> Vec<&str> {
    let starts = list.match_indices('\n').map(|(at, _)| at + 1).filter(|at| list[*at..].starts_with(|c: char| c != ' '));
    let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    let ends = starts.iter().skip(1).copied().chain([list.len()]);
    starts.iter().zip(ends).map(|(start, end)| &list[*start..end]).collect()
}

fn is_of_commands(table: &str) -> bool {
    table.starts_with("ioctl_")
}

/// Returns whether a header of a table of ioctl commands is not installed: newer kernels lack some.
fn lacks_header(table: &str) -> bool {
    let headers = Headers::from_env();
    let names = table.split(' ').nth(2).unwrap_or_default();
    let lacks = |name: &str| name.ends_with(".h") && !name.starts_with("drm/") && headers.load(name).is_none();
    is_of_commands(table) && names.split(',').any(lacks)
}

/// Returns whether the headers are those with which the ioctl commands were reviewed.
pub fn has_reviewed_headers() -> bool {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    let version = Library::new(&load, Target::X86_64, HashMap::new()).in_header("linux/version.h", "LINUX_VERSION_CODE", &[]);
    version.is_some_and(|version| version.is_ok_and(|version| version.value >> 8 == COMMANDS_REVIEWED >> 8))
}

/// Returns the part of a list that is compared with the reviewed list for these headers.
fn compared(list: &str) -> String {
    let is_reviewed = has_reviewed_headers();
    if !is_reviewed {
        eprintln!("SKIPPED: the names of ioctl commands were reviewed for the headers of Linux 6.1");
    }
    tables(list).into_iter().filter(|table| is_reviewed || !is_of_commands(table)).collect()
}

#[test]
fn every_syscall_of_linux_7_2_has_a_row() {
    let count = SYSCALLS.iter().filter(|row| row.numbers[Abi::X86_64 as usize].is_some()).count();
    assert_eq!(count, 385);
}

#[test]
fn syscall_numbers_differ_per_abi() {
    let name =
        |abi: Abi, number: usize| BY_NUMBER[abi as usize].get(number).and_then(|&row| SYSCALLS.get(usize::from(row))).map(|row| row.name);
    assert_eq!(name(Abi::X86_64, 257), Some("openat"));
    assert_eq!(name(Abi::Aarch64, 56), Some("openat"));
    assert_eq!(name(Abi::I386, 295), Some("openat"));
    assert_eq!((name(Abi::X32, 13), name(Abi::X32, 512)), (None, Some("rt_sigaction")));
    assert!(Abi::ALL.into_iter().all(|abi| name(abi, 470) == Some("listns")));
}

#[test]
fn composites_come_before_their_parts_and_values_are_unique() {
    for table in TABLES.iter().flat_map(|table| table.per_abi.iter().map(|(_, twin)| *twin).chain([*table])) {
        for (at, entry) in table.entries.iter().enumerate() {
            for later in &table.entries[at + 1..] {
                assert_ne!(entry.value, later.value, "{}: {} and {}", table.name, entry.name, later.name);
                if table.kind == TableKind::Flags {
                    let is_hidden = later.value & entry.value == entry.value && entry.value != 0;
                    assert!(!is_hidden, "{}: {} hides {}", table.name, entry.name, later.name);
                } else {
                    assert!(entry.value < later.value, "{}: {} before {}", table.name, entry.name, later.name);
                }
            }
            assert_ne!(entry.name, table.prefix, "the prefix of {} is the whole name", table.name);
        }
    }
}

#[test]
fn an_abi_with_other_values_has_its_own_table() {
    let open_flags = TABLES.iter().find(|table| table.name == "open_flags").expect("open_flags");
    let (_, aarch64) = open_flags.per_abi.iter().find(|(abi, _)| *abi == Abi::Aarch64).expect("a table of aarch64");
    let value = |entries: &[TableConstant], name| entries.iter().find(|entry| entry.name == name).map(|entry| entry.value);
    assert_eq!(value(open_flags.entries, "O_DIRECTORY"), Some(0o200000));
    assert_eq!(value(aarch64.entries, "O_DIRECTORY"), Some(0o40000));
    assert_eq!(value(aarch64.entries, "O_TMPFILE"), Some(0o20040000));
}
