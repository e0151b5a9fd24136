//! Puts calls together: rows with their variants, numbers, kinds, and the tables and structs that they name.

use super::condition;
use super::constant::{self, Condition, Lookup};
use super::fault::Fault;
use super::kind::{self, Kind, Return, Vocabulary};
use super::numbers::{COMMON_FROM, NumberRow};
use super::syscalls::{ArgumentRow, FlowRow, LengthRow, SyscallRow};
use std::collections::{BTreeMap, BTreeSet};

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

#[derive(Debug)]
pub struct Variant {
    pub arg: usize,
    pub mask: u64,
    pub values: Vec<u64>,
    pub args: Vec<Argument>,
    pub returns: Return,
}

#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    pub kind: Kind,
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

/// The groups that a row may name.
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

/// Calls by name, in that order.
pub fn calls(rows: &[SyscallRow], numbers: &[NumberRow], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> Vec<Call> {
    let by_name: BTreeMap<&str, &NumberRow> = numbers.iter().map(|row| (row.name.as_str(), row)).collect();
    let mut calls: BTreeMap<&str, (&SyscallRow, Call)> = BTreeMap::new();
    for row in rows {
        let plain = calls.get_mut(row.name.as_str());
        let result = match (&row.chosen_by, plain) {
            (Some((arg, values)), Some((plain_row, call))) => {
                variant(row, *arg, values, plain_row, call, known, value).map(|variant| call.variants.push(variant))
            }
            (Some(_), None) => Err(format!("a variant of {}, whose plain row must come first", row.name)),
            (None, Some((first, _))) => Err(format!("{} has a row already: {}:{}", row.name, first.place.file, first.place.line)),
            (None, None) => call(row, &by_name, known, value).map(|call| drop(calls.insert(&row.name, (row, call)))),
        };
        if let Err(text) = result {
            faults.push(row.place.fault(text));
        }
    }
    let mut events: BTreeSet<&str> = BTreeSet::new();
    for (row, call) in calls.values() {
        if !events.insert(&row.event) {
            faults.push(row.place.fault(format!("{} has an event that another row has too: {}", call.name, call.event)));
        }
    }
    calls.into_values().map(|(_, call)| call).collect()
}

/// Faults of the list of numbers: double names and numbers, and calls of x86-64 that no row tells of.
pub fn check_numbers(numbers: &[NumberRow], calls: &[Call], faults: &mut Vec<Fault>) {
    let mut taken: [BTreeMap<u32, &str>; 4] = Default::default();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for row in numbers {
        if !names.insert(&row.name) {
            faults.push(row.place.fault(format!("{} stands here twice", row.name)));
        }
        for (abi, number) in row.numbers.iter().enumerate() {
            if let Some(other) = number.and_then(|number| taken[abi].insert(number, &row.name)) {
                faults.push(row.place.fault(format!("{} has the number of {other}", row.name)));
            }
        }
        if row.numbers[0].is_some() && !calls.iter().any(|call| call.name == row.name) {
            faults.push(row.place.fault(format!("{} is a call of x86-64 and has no row in syscalls/", row.name)));
        }
    }
}

fn call(row: &SyscallRow, numbers: &BTreeMap<&str, &NumberRow>, known: &Vocabulary, value: &Lookup) -> Result<Call, String> {
    let numbers = match (row.number, numbers.get(row.name.as_str())) {
        (Some(number), None) if number >= COMMON_FROM => [Some(number); 4],
        (Some(_), None) => return Err(format!("numbers below {COMMON_FROM} differ per ABI: write {} into arch/numbers.tbl", row.name)),
        (Some(_), Some(_)) => return Err(format!("{} has a number here and in arch/numbers.tbl", row.name)),
        (None, Some(row)) => row.numbers,
        (None, None) => return Err(format!("{} has no number: neither @N nor a line in arch/numbers.tbl", row.name)),
    };
    if let Some(group) = row.groups.iter().find(|group| !GROUPS.contains(&group.as_str())) {
        return Err(format!("%{group} is no group"));
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
        return Err(format!("the arguments of this variant of {} are not called as in its plain row", row.name));
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
            return Err(format!("{word} chooses an earlier variant of {} already", row.name));
        }
        resolved.extend(numbers);
    }
    let mut args = arguments(row, Some((arg, &chosen_by)), known, value)?;
    // Where zero says nothing in the plain row, it says nothing in variants.
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
    let named: Vec<(&str, &Kind)> = linked.iter().map(|argument| (argument.name.as_str(), &argument.kind)).collect();
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
            Length::Argument(at.ok_or_else(|| format!("{name} is no argument"))?)
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

/// The tables and structs that calls name.
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
                    Kind::Table(table) => tables.insert(table.clone()),
                    Kind::Struct(name) | Kind::StructArray(name) => structs.insert(name.clone()),
                    _ => continue,
                };
            }
        }
    }
    (tables, structs)
}
