//! Combines the rows of a syscall with its variants, its numbers, and the tables and structs that it names.

use super::argument::{self, Argument};
use super::constant::Lookup;
use super::fault::Fault;
use super::kind::{self, ArgumentKind, Return, Vocabulary};
use super::numbers::{COMMON_FROM, NumberRow};
use super::syscalls::SyscallRow;
use super::variants::{self, Variant};
use std::collections::{BTreeMap, BTreeSet};

/// A syscall with its variants.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    pub event: String,
    pub numbers: [Option<u32>; 4],
    pub args: Vec<Argument>,
    pub returns: Return,
    pub groups: Vec<String>,
    pub does: &'static str,
    pub variants: Vec<Variant>,
}

/// The groups that a row may name with `%`.
const GROUPS: [&str; 17] = [
    "file",
    "desc",
    "process",
    "network",
    "signal",
    "ipc",
    "memory",
    "creds",
    "clock",
    "stat",
    "lstat",
    "fstat",
    "statfs",
    "fstatfs",
    "stat_like",
    "statfs_like",
    "pure",
];

/// Returns the syscalls, sorted by name.
pub fn calls(rows: &[SyscallRow], numbers: &[NumberRow], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> Vec<Call> {
    let by_name: BTreeMap<&str, &NumberRow> = numbers.iter().map(|row| (row.name.as_str(), row)).collect();
    let mut calls: BTreeMap<&str, (&SyscallRow, Call)> = BTreeMap::new();
    for row in rows {
        let plain = calls.get_mut(row.name.as_str());
        let result = match (row.chosen_by.is_empty(), plain) {
            (false, Some((_, call))) => variants::add(row, (&call.args, &call.returns), &mut call.variants, known, value),
            (false, None) => Err(format!("this variant of {} has no plain row before it", row.name)),
            (true, Some((first, _))) => Err(format!("{} already has a row: {}:{}", row.name, first.location.file, first.location.line)),
            (true, None) => call(row, &by_name, known, value).map(|call| drop(calls.insert(&row.name, (row, call)))),
        };
        if let Err(text) = result {
            faults.push(row.location.fault(text));
        }
    }
    let mut events: BTreeSet<&str> = BTreeSet::new();
    for (row, call) in calls.values() {
        if !events.insert(&row.event) {
            faults.push(row.location.fault(format!("{} has the same event as another row: {}", call.name, call.event)));
        }
    }
    calls.into_values().map(|(_, call)| call).collect()
}

/// Reports duplicate names and numbers in `arch/numbers.tbl`, and syscalls of x86-64 without a row.
pub fn check_numbers(numbers: &[NumberRow], calls: &[Call], faults: &mut Vec<Fault>) {
    let mut taken: [BTreeMap<u32, &str>; 4] = Default::default();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for row in numbers {
        if !names.insert(&row.name) {
            faults.push(row.location.fault(format!("{} is listed twice", row.name)));
        }
        for (abi, number) in row.numbers.iter().enumerate() {
            if let Some(other) = number.and_then(|number| taken[abi].insert(number, &row.name)) {
                faults.push(row.location.fault(format!("{} has the same number as {other}", row.name)));
            }
        }
        if row.numbers[0].is_some() && !calls.iter().any(|call| call.name == row.name) {
            faults.push(row.location.fault(format!("{} is a syscall of x86-64, but has no row in syscalls/", row.name)));
        }
    }
}

fn call(row: &SyscallRow, numbers: &BTreeMap<&str, &NumberRow>, known: &Vocabulary, value: &Lookup) -> Result<Call, String> {
    let numbers = match (row.number, numbers.get(row.name.as_str())) {
        (Some(number), None) if number >= COMMON_FROM => [Some(number); 4],
        (Some(_), None) => return Err(format!("numbers below {COMMON_FROM} differ per ABI: add {} to arch/numbers.tbl", row.name)),
        (Some(_), Some(_)) => return Err(format!("{} has a number here and in arch/numbers.tbl: remove one", row.name)),
        (None, Some(row)) => row.numbers,
        (None, None) => return Err(format!("{} has no number: add @N here or a line to arch/numbers.tbl", row.name)),
    };
    Ok(Call { numbers, ..without_number(row, known, value)? })
}

/// Resolves a row that has no number of its own.
pub fn without_number(row: &SyscallRow, known: &Vocabulary, value: &Lookup) -> Result<Call, String> {
    if let Some(group) = row.groups.iter().find(|group| !GROUPS.contains(&group.as_str())) {
        return Err(format!("%{group} is not a group"));
    }
    Ok(Call {
        name: row.name.clone(),
        event: row.event.clone(),
        numbers: [None; 4],
        args: argument::arguments(row, &[], known, value)?,
        returns: kind::of_return(row.returns.as_deref().unwrap_or_default(), known)?,
        groups: row.groups.clone(),
        does: row.does,
        variants: Vec::new(),
    })
}

/// Returns the names of the tables and of the structs that the syscalls use.
pub fn named<'a>(calls: impl Iterator<Item = &'a Call> + Clone) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut tables, mut structs) = (BTreeSet::new(), BTreeSet::new());
    let mut rows: Vec<(&[Argument], &Return)> = calls.clone().map(|call| (&call.args[..], &call.returns)).collect();
    let mut variants: Vec<&Variant> = calls.flat_map(|call| &call.variants).collect();
    while let Some(variant) = variants.pop() {
        rows.push((&variant.args, &variant.returns));
        variants.extend(&variant.variants);
    }
    for (args, returns) in rows {
        if let Return::Table(table) = returns {
            tables.insert(table.clone());
        }
        for argument in args {
            match &argument.kind {
                ArgumentKind::Table(table) => tables.insert(table.clone()),
                ArgumentKind::Struct(name) | ArgumentKind::StructArray(name) => structs.insert(name.clone()),
                _ => continue,
            };
        }
    }
    (tables, structs)
}
