//! Compares the tables of this build with the reviewed list, and checks properties that all tables must have.

use crate::files::Headers;
use crate::reviewed;
use rtrace::tables::{Abi, BY_NUMBER, SYSCALLS, TABLES, TableConstant, TableKind};
use std::collections::{HashMap, HashSet};

/// All tables, all names, all values: reviewed like code.
const REVIEWED: &str = include_str!("../snapshots/tables.txt");

/// The same list of this build.
const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/tables.txt"));

/// How a list of tables differs from the reviewed one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Differences {
    /// Constants and tables that only this build has.
    new: Vec<String>,
    /// Constants that only the reviewed list has.
    lacking: Vec<String>,
    /// All other lines of the reviewed list that this build does not have: constants with other values, and tables with
    /// other properties.
    wrong: Vec<String>,
}

fn differences(generated: &str, reviewed: &str) -> Differences {
    let by_name = |list| tables(list).into_iter().map(|table: &str| (first_word(table), table)).collect::<HashMap<_, _>>();
    let (own, known) = (by_name(generated), by_name(reviewed));
    let mut found = Differences::default();
    for table in tables(reviewed) {
        let name = first_word(table);
        let built: Vec<&str> = own.get(name).map(|table| table.lines().collect()).unwrap_or_default();
        for line in table.lines().filter(|line| !built.contains(line)) {
            let is_lacking = line.starts_with(' ') && !built.iter().any(|own| first_word(own) == first_word(line));
            let list = if is_lacking && !built.is_empty() { &mut found.lacking } else { &mut found.wrong };
            list.push(format!("{name}: {}", line.trim()));
        }
    }
    for table in tables(generated) {
        let name = first_word(table);
        let before: HashSet<&str> = known.get(name).map(|table| table.lines().map(first_word).collect()).unwrap_or_default();
        let new = table.lines().filter(|line| !before.contains(first_word(line)));
        found.new.extend(new.map(|line| format!("{name}: {}", line.trim())));
    }
    found
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

#[test]
fn differences_of_lists_are_told_apart() {
    let reviewed = "a enum a.h 32 bits\n    A_ONE 0x1\n    A_TWO 0x2\nb flags b.h 32 bits\n    B_ONE 0x1\n    0x6: a\n";
    let of = |generated: &str| differences(generated, reviewed);
    let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(of(reviewed), Differences::default());
    let found = of(&reviewed.replace("    A_TWO 0x2", "    A_TWO 0x3\n    A_THREE 0x4"));
    assert_eq!(found, Differences { new: lines(&["a: A_THREE 0x4"]), lacking: vec![], wrong: lines(&["a: A_TWO 0x2"]) });
    let found = of(&reviewed.replace("    A_TWO 0x2\n", "").replace("b flags b.h 32", "b flags b.h 64"));
    assert_eq!(found, Differences { new: vec![], lacking: lines(&["a: A_TWO 0x2"]), wrong: lines(&["b: b flags b.h 32 bits"]) });
    let found = of("a enum a.h 32 bits\n    A_ONE 0x1\n    A_TWO 0x2\n");
    assert_eq!(found.wrong, lines(&["b: b flags b.h 32 bits", "b: B_ONE 0x1", "b: 0x6: a"]));
}

#[test]
fn the_generated_tables_have_what_was_reviewed() {
    let of_headers = |list| tables(list).into_iter().filter(|table| !lacks_header(table)).collect::<String>();
    let found = differences(&of_headers(GENERATED), &of_headers(REVIEWED));
    assert!(found.wrong.is_empty(), "in tests/snapshots/tables.txt, but in this build with other values: {:#?}", found.wrong);
    // The rows have all constants of the kernels from 6.1 on that they know.
    let may_lack = !reviewed::are_of(6, 1) || reviewed::are_ahead();
    assert!(found.lacking.is_empty() || may_lack, "in tests/snapshots/tables.txt, but not in this build: {:#?}", found.lacking);
    reviewed::lacks("constants of tests/snapshots/tables.txt", &found.lacking);
    let advice = format!("cp {}/tables.txt tests/snapshots/tables.txt, and review the output of git diff", env!("OUT_DIR"));
    // All commands of the installed headers are in the tables of commands, so that other headers have others.
    let (commands, constants): (Vec<String>, Vec<String>) = found.new.into_iter().partition(|line| is_of_commands(line));
    reviewed::brings("constants of tables that are not in tests/snapshots/tables.txt", &advice, &constants);
    reviewed::brings("ioctl commands that are not in tests/snapshots/tables.txt", &advice, &commands);
}

#[test]
fn the_generated_list_is_the_reviewed_one() {
    if !reviewed::are_reviewed() {
        let version = reviewed::version();
        reviewed::report(&format!(
            "SKIPPED: the lists are not compared byte for byte: the headers of Linux {version} are not those that were reviewed"
        ));
        return;
    }
    let difference = GENERATED.lines().zip(REVIEWED.lines()).position(|(generated, reviewed)| generated != reviewed);
    let (generated_lines, reviewed_lines) = (GENERATED.lines().count(), REVIEWED.lines().count());
    let line = difference.or((generated_lines != reviewed_lines).then_some(generated_lines.min(reviewed_lines)));
    if let Some(line) = line {
        let show = |text: &str| text.lines().nth(line).unwrap_or("(its end)").to_string();
        panic!(
            "the tables differ from tests/snapshots/tables.txt, first in line {}:\n  reviewed:  {}\n  generated: {}\n\
             if the change is intended: cp {}/tables.txt tests/snapshots/tables.txt, and review the output of git diff",
            line + 1,
            show(REVIEWED),
            show(GENERATED),
            env!("OUT_DIR")
        );
    }
}

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
