//! Compares the files of `beauty/` with the installed headers.

use crate::files::{self, Headers, rows};
use crate::generator::header::Target;
use crate::generator::library::Library;
use crate::generator::preprocess::read;
use crate::{report, reviewed};
use rtrace::tables::{Abi, BY_NUMBER, OTHER_NAMES, SYSCALLS};
use std::collections::HashMap;
use std::path::Path;

const X32_BIT: u32 = 1 << 30;

#[test]
fn syscall_numbers_are_those_of_the_headers() {
    let headers = Headers::from_env();
    let load = |name: &str| headers.load(name).map(|(_, text)| text);
    for (abi, file) in [(Abi::X86_64, "asm/unistd_64.h"), (Abi::I386, "asm/unistd_32.h"), (Abi::X32, "asm/unistd_x32.h")] {
        let Some(text) = load(file) else {
            eprintln!("SKIPPED: numbers of {abi:?}: {file} is not installed");
            continue;
        };
        let mut library = Library::new(&load, Target::X86_64, HashMap::new());
        library.add_fallback("__X32_SYSCALL_BIT", "0x40000000");
        let constants = read(&text, Target::X86_64).constants;
        let numbers = constants.iter().filter_map(|constant| Some((constant.name.strip_prefix("__NR_")?, &constant.name)));
        let (mut seen, mut new) = (0, Vec::new());
        for (name, constant) in numbers {
            let value = library.in_header(file, constant, &[]).expect(name).expect(name).value;
            let number = u32::try_from(value).expect(name) & !X32_BIT;
            seen += 1;
            match name_of(abi, number) {
                // A syscall of a newer kernel: without a row, rtrace prints it as unknown.
                None if number as usize >= BY_NUMBER[Abi::X86_64 as usize].len() => new.push(format!("{name} ({number})")),
                known => assert_eq!(known, Some(name), "{abi:?} {number}"),
            }
        }
        reviewed::brings(&format!("syscalls of {abi:?} without a row"), "add rows", &new);
        assert!(seen > 300, "{file} has only {seen} syscalls");
    }
}

/// Returns the name of a syscall number, whether the syscall has a row or not.
fn name_of(abi: Abi, number: u32) -> Option<&'static str> {
    let row = BY_NUMBER[abi as usize].get(number as usize).and_then(|&row| SYSCALLS.get(usize::from(row)));
    let other = || OTHER_NAMES.iter().find(|(other, rowless, _)| (*other, *rowless) == (abi, number)).map(|(_, _, name)| *name);
    row.map(|row| row.name).or_else(other)
}

#[test]
fn a_row_names_every_decoder() {
    let code = files::rust(Path::new("src/beauty/decoders")).expect("the decoders");
    let rows: String = rows(Path::new("beauty/structs")).expect("the rows").into_iter().map(|(_, text)| text).collect();
    let functions: Vec<&str> = code.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split(['(', '<']).next()).collect();
    let unused: Vec<&&str> =
        functions.iter().filter(|name| !rows.split_whitespace().any(|word| word == format!("decoder.{name}"))).collect();
    assert!(!functions.is_empty() && unused.is_empty(), "{unused:?}");
}

#[test]
fn a_table_mentions_every_newer_constant() {
    let parsed = crate::parsed_rows();
    let unused: Vec<String> = report::outdated(&parsed, &|_| None);
    assert!(unused.is_empty(), "{}", unused.join("\n"));
}
