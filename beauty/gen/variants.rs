//! Arranges the variants of syscalls as a tree. A variant is a row that applies to some values of arguments.
//!
//! All variants of a plain row test the same argument. A row that tests two arguments (`level=SOL_SOCKET
//! optname=SO_LINGER`) is a variant of the variant that tests only the first one, and so on. rtrace and the BPF
//! programs therefore look up one value for each tested argument.

use super::argument::{self, Argument};
use super::condition;
use super::constant::{self, Lookup};
use super::fault::Location;
use super::kind::{self, Return, Vocabulary};
use super::syscalls::SyscallRow;

/// The arguments and return value of a syscall for some values of an argument.
#[derive(Clone, Debug)]
pub struct Variant {
    pub location: Location,
    /// The index of the argument that selects the variant, and the bits of it that are compared.
    pub arg: usize,
    pub mask: u64,
    pub values: Vec<u64>,
    pub args: Vec<Argument>,
    pub returns: Return,
    /// The variants of this one, which another argument selects.
    pub variants: Vec<Variant>,
}

/// Adds a row to the variants of its syscall. `args` and `returns` are those of the plain row.
pub fn add(
    row: &SyscallRow,
    (args, returns): (&[Argument], &Return),
    variants: &mut Vec<Variant>,
    known: &Vocabulary,
    value: &Lookup,
) -> Result<(), String> {
    let same_names = row.args.iter().zip(args).all(|(own, plain)| own.name == plain.name);
    if row.args.len() > args.len() || !same_names {
        return Err(format!("the arguments of this variant of {} have other names than those of its plain row", row.name));
    }
    insert(&Adding { row, known, value }, &row.chosen_by, variants, args, returns)
}

/// A row that is added, and the tables that resolve its words.
struct Adding<'a> {
    row: &'a SyscallRow,
    known: &'a Vocabulary,
    value: &'a Lookup<'a>,
}

/// Adds the row to the variants of a row with these arguments and this return. `selectors` are the tested arguments
/// that no variant in the path to this row tests, with their values.
fn insert(
    adding: &Adding,
    selectors: &[(usize, Vec<String>)],
    variants: &mut Vec<Variant>,
    args: &[Argument],
    returns: &Return,
) -> Result<(), String> {
    let (Some(((arg, words), deeper)), row) = (selectors.split_first(), adding.row) else { return Ok(()) };
    let chosen_by = args.get(*arg).ok_or_else(|| format!("this row is a variant of a row that does not have {}", row.args[*arg].name))?;
    let Some((values, mask)) = selected(words, &row.args[*arg].bits, chosen_by, adding.value)? else { return Ok(()) };
    // A variant that compares fewer bits than the first one follows those that compare all of them.
    if let Some(other) = variants.first().filter(|other| other.arg != *arg || mask & !other.mask != 0) {
        let (by, at) = (&args[other.arg].name, place(&other.location));
        return Err(format!("other bits or another argument ({by}) select the variants of {} before this one: {at}", row.name));
    }
    if deeper.is_empty() {
        let known = |(word, number): &(String, u64)| {
            let other = variants.iter().find(|other| other.mask == mask && other.values.contains(number))?;
            Some(format!("{word} already selects an earlier variant of {}: {}", row.name, place(&other.location)))
        };
        if let Some(text) = values.iter().find_map(known) {
            return Err(text);
        }
        let place = variants.iter().take_while(|other| mask & !other.mask == 0).count();
        variants.insert(place, variant(adding, *arg, mask, &values, args, returns)?);
        return Ok(());
    }
    let missing = values.iter().find(|(_, number)| !variants.iter().any(|other| other.values.contains(number)));
    if let Some((word, _)) = missing {
        return Err(format!("no row of {} before this one has {}={word} without {}", row.name, chosen_by.name, tested(deeper, row)));
    }
    let is_named = |number: &u64| values.iter().any(|(_, named)| named == number);
    for parent in variants.iter_mut().filter(|parent| parent.values.iter().any(is_named)) {
        if !parent.values.iter().all(is_named) {
            let at = place(&parent.location);
            return Err(format!("name all values of {} for which the row at {at} applies, or split that row", chosen_by.name));
        }
        insert(adding, deeper, &mut parent.variants, &parent.args, &parent.returns)?;
    }
    Ok(())
}

fn place(location: &Location) -> String {
    format!("{}:{}", location.file, location.line)
}

/// Returns the names of the arguments that the row tests.
fn tested(selectors: &[(usize, Vec<String>)], row: &SyscallRow) -> String {
    selectors.iter().map(|(arg, _)| row.args[*arg].name.as_str()).collect::<Vec<_>>().join(" and ")
}

/// The values that select a variant, each with its word in the row, and the bits of the argument that are compared.
type Selected = (Vec<(String, u64)>, u64);

/// Resolves the values that select a variant. If the row names `bits` of the argument, only these are compared. Returns
/// `None` if a table could not be resolved.
fn selected(words: &[String], bits: &[String], chosen_by: &Argument, value: &Lookup) -> Result<Option<Selected>, String> {
    let mut mask = u64::from(u32::MAX);
    let mut values: Vec<(String, u64)> = Vec::new();
    let mut named = 0;
    for word in bits {
        let Some((number, _)) = constant::constant(word, (&chosen_by.name, &chosen_by.kind), value)? else { return Ok(None) };
        named |= number;
    }
    for word in words {
        let Some((numbers, bits)) = constant::constants(word, (&chosen_by.name, &chosen_by.kind), value)? else { return Ok(None) };
        if condition::number(word).is_none() {
            mask = bits;
        }
        for number in numbers {
            if u32::try_from(number).is_err() {
                return Err(format!("{word} has more than 32 bits: a variant is selected by the lower 32 bits of {}", chosen_by.name));
            }
            if let Some((first, _)) = values.iter().find(|(_, known)| *known == number) {
                return Err(format!("{first} and {word} are the same value"));
            }
            if named != 0 && number & !named != 0 {
                return Err(format!("{word} has bits outside the mask {named:#x}, so that it is never equal"));
            }
            values.push((word.clone(), number));
        }
    }
    Ok(Some((values, if named == 0 { mask } else { named })))
}

fn variant(
    adding: &Adding,
    arg: usize,
    mask: u64,
    values: &[(String, u64)],
    plain: &[Argument],
    returns: &Return,
) -> Result<Variant, String> {
    let Adding { row, known, value } = adding;
    let mut args = argument::arguments(row, plain, known, value)?;
    // An argument that is optional in the plain row is optional in its variants.
    for (own, plain) in args.iter_mut().zip(plain) {
        let is_new = |word: &&&str| **word == "OPTIONAL" && !own.traits.contains(*word);
        let inherited: Vec<&'static str> = plain.traits.iter().filter(is_new).copied().collect();
        own.traits.extend(inherited);
    }
    let returns = row.returns.as_ref().map_or(Ok(returns.clone()), |word| kind::of_return(word, known))?;
    let values = values.iter().map(|(_, number)| *number).collect();
    Ok(Variant { location: row.location.clone(), arg, mask, values, args, returns, variants: Vec::new() })
}
