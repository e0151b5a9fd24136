//! Combines the rows of a syscall with its variants, its numbers, and the tables and structs that it names.

use super::condition;
use super::constant::{self, Condition, Lookup};
use super::fault::Fault;
use super::kind::{self, ArgumentKind, Return, Vocabulary};
use super::numbers::{COMMON_FROM, NumberRow};
use super::syscalls::{ArgumentRow, FlowRow, LengthRow, SyscallRow};
use std::collections::{BTreeMap, BTreeSet};

/// A syscall with its variants.
#[derive(Debug)]
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

/// The arguments and return value of a syscall for some values of one argument.
#[derive(Debug)]
pub struct Variant {
    /// The index of the argument that selects the variant, and the bits of it that are compared.
    pub arg: usize,
    pub mask: u64,
    pub values: Vec<u64>,
    pub args: Vec<Argument>,
    pub returns: Return,
}

#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    pub kind: ArgumentKind,
    pub flow: FlowRow,
    pub written: Vec<&'static str>,
    pub traits: Vec<&'static str>,
    pub fd_of: Option<usize>,
    pub length: Length,
    pub used: Option<Condition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    OfType,
    Argument(usize),
    Ret,
    Fixed(u64),
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
        let result = match (&row.chosen_by, plain) {
            (Some((arg, values)), Some((plain_row, call))) => {
                variant(row, *arg, values, plain_row, call, known, value).map(|variant| call.variants.push(variant))
            }
            (Some(_), None) => Err(format!("this variant of {} has no plain row before it", row.name)),
            (None, Some((first, _))) => Err(format!("{} already has a row: {}:{}", row.name, first.location.file, first.location.line)),
            (None, None) => call(row, &by_name, known, value).map(|call| drop(calls.insert(&row.name, (row, call)))),
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
    if let Some(group) = row.groups.iter().find(|group| !GROUPS.contains(&group.as_str())) {
        return Err(format!("%{group} is not a group"));
    }
    Ok(Call {
        name: row.name.clone(),
        event: row.event.clone(),
        numbers,
        args: arguments(row, None, known, value)?,
        returns: kind::of_return(row.returns.as_deref().unwrap_or_default(), known)?,
        groups: row.groups.clone(),
        does: row.does,
        variants: Vec::new(),
    })
}

fn variant(
    row: &SyscallRow,
    arg: usize,
    values: &[String],
    plain_row: &SyscallRow,
    plain: &Call,
    known: &Vocabulary,
    value: &Lookup,
) -> Result<Variant, String> {
    let same_names = row.args.iter().zip(&plain_row.args).all(|(own, plain)| own.name == plain.name);
    if row.args.len() > plain_row.args.len() || !same_names {
        return Err(format!("the arguments of this variant of {} have other names than those of its plain row", row.name));
    }
    let chosen_by = plain.args[arg].clone();
    let mut mask = u64::from(u32::MAX);
    let mut resolved = Vec::new();
    for word in values {
        let Some((numbers, bits)) = constant::constants(word, (&chosen_by.name, &chosen_by.kind), value)? else { continue };
        if condition::number(word).is_none() {
            mask = bits;
        }
        let is_taken = |number: &u64| plain.variants.iter().any(|other| other.arg == arg && other.values.contains(number));
        if numbers.iter().any(is_taken) {
            return Err(format!("{word} already selects an earlier variant of {}", row.name));
        }
        resolved.extend(numbers);
    }
    let mut args = arguments(row, Some((arg, &chosen_by)), known, value)?;
    // An argument that is optional in the plain row is optional in its variants.
    for (own, plain) in args.iter_mut().zip(&plain.args) {
        let is_new = |word: &&&str| **word == "OPTIONAL" && !own.traits.contains(*word);
        let inherited: Vec<&'static str> = plain.traits.iter().filter(is_new).copied().collect();
        own.traits.extend(inherited);
    }
    let returns = row.returns.as_ref().map_or(Ok(plain.returns.clone()), |word| kind::of_return(word, known))?;
    Ok(Variant { arg, mask, values: resolved, args, returns })
}

fn arguments(row: &SyscallRow, chosen_by: Option<(usize, &Argument)>, known: &Vocabulary, value: &Lookup) -> Result<Vec<Argument>, String> {
    let linked = row
        .args
        .iter()
        .enumerate()
        .map(|(at, argument)| match chosen_by {
            Some((arg, plain)) if arg == at => Ok(plain.clone()),
            _ => link(argument, row, known).map_err(|text| format!("{}, {}: {text}", row.name, argument.name)),
        })
        .collect::<Result<Vec<Argument>, String>>()?;
    let mut args = linked.clone();
    let named: Vec<(&str, &ArgumentKind)> = linked.iter().map(|argument| (argument.name.as_str(), &argument.kind)).collect();
    for (at, argument) in row.args.iter().enumerate() {
        if let Some(used) = &argument.used {
            let condition = used.resolve(&named, value);
            args[at].used = condition.map_err(|text| format!("{}, {}: {text}", row.name, argument.name))?;
        }
    }
    Ok(args)
}

fn link(argument: &ArgumentRow, row: &SyscallRow, known: &Vocabulary) -> Result<Argument, String> {
    let length = match &argument.length {
        LengthRow::OfType => Length::OfType,
        LengthRow::Ret => Length::Ret,
        LengthRow::Fixed(number) => Length::Fixed(*number),
        LengthRow::Argument(name) => {
            let at = row.args.iter().position(|other| other.name == *name);
            Length::Argument(at.ok_or_else(|| format!("there is no argument {name}"))?)
        }
    };
    Ok(Argument {
        name: argument.name.clone(),
        kind: kind::of_argument(argument, known)?,
        flow: argument.flow,
        written: argument.written.clone(),
        traits: argument.traits.clone(),
        fd_of: argument.fd_of.as_ref().and_then(|owner| row.args.iter().position(|other| other.name == *owner)),
        length,
        used: None,
    })
}

/// Returns the names of the tables and of the structs that the syscalls use.
pub fn named(calls: &[Call]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut tables, mut structs) = (BTreeSet::new(), BTreeSet::new());
    for call in calls {
        let rows = call.variants.iter().map(|variant| (&variant.args, &variant.returns)).chain([(&call.args, &call.returns)]);
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
    }
    (tables, structs)
}
