//! Finds the members of a struct that perf style shows by default (`brief=`), and resolves their conditions.

use super::argument::Argument;
use super::condition::ConditionRow;
use super::constant::{Condition, Lookup};
use super::fault::Fault;
use super::kind::ArgumentKind;
use super::layout::{MemoryType, StructLayout, StructMember};
use super::link::Call;
use super::structs::{ABI_WORDS, BriefRow, ShownRow, StructRow};
use super::variants::Variant;

/// A member that perf style shows by default, from which a `row::BriefMember` is emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BriefMember {
    /// The index of the member in the layout.
    pub index: usize,
    pub shown: Shown,
}

/// The condition under which the member is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    Always,
    /// One of these bytes of the struct is not 0.
    NotZero {
        offset: u32,
        bytes: u32,
    },
    /// A condition on the arguments of the call.
    If(Condition),
}

/// The shown members for each ABI, in the order of the layout; `None` if all members are shown.
pub type BriefMembers = Option<[Vec<BriefMember>; 4]>;

/// Returns the shown members of each struct, in the order of the rows.
pub fn briefs(
    structs: &[StructRow],
    layouts: &[StructLayout],
    calls: &[Call],
    value: &Lookup,
    faults: &mut Vec<Fault>,
) -> Vec<BriefMembers> {
    let signatures = signatures(calls);
    let resolve = |(row, layout): (&StructRow, &StructLayout)| {
        brief(row, layout, structs, &signatures, value).unwrap_or_else(|text| {
            faults.push(row.location.fault(format!("{}, brief=: {text}", row.name)));
            None
        })
    };
    structs.iter().zip(layouts).map(resolve).collect()
}

/// Returns the arguments of all syscalls and of all their variants.
fn signatures(calls: &[Call]) -> Vec<&[Argument]> {
    let mut signatures: Vec<&[Argument]> = calls.iter().map(|call| &call.args[..]).collect();
    let mut variants: Vec<&Variant> = calls.iter().flat_map(|call| &call.variants).collect();
    while let Some(variant) = variants.pop() {
        signatures.push(&variant.args);
        variants.extend(&variant.variants);
    }
    signatures
}

fn brief(
    row: &StructRow,
    layout: &StructLayout,
    structs: &[StructRow],
    signatures: &[&[Argument]],
    value: &Lookup,
) -> Result<BriefMembers, String> {
    if row.brief.is_empty() {
        return Ok(None);
    }
    let StructLayout::Members(by_abi) = layout else { return Err("the struct has no fields".into()) };
    let mut lists: [Vec<BriefMember>; 4] = Default::default();
    for (abi, (list, members)) in lists.iter_mut().zip(by_abi).enumerate() {
        for BriefRow { name, shown } in &row.brief {
            let first = position(name, members, abi)?;
            if list.iter().any(|known: &BriefMember| known.index == first) {
                return Err(format!("{name} is named twice"));
            }
            let shown = match shown {
                ShownRow::Always => Shown::Always,
                ShownRow::NotZero(tested) => {
                    let StructMember { offset, memory_type, .. } = &members[position(tested, members, abi)?];
                    match size(memory_type, abi, structs) {
                        0 => return Err(format!("{tested} has no fixed size, so that it cannot be compared with 0")),
                        bytes => Shown::NotZero { offset: *offset, bytes },
                    }
                }
                ShownRow::If(condition) => Shown::If(tested_arguments(condition, row, signatures, value)?),
            };
            // The fields of a union may have one name.
            let named = members.iter().enumerate().filter(|(_, member)| member.name == *name);
            list.extend(named.map(|(index, _)| BriefMember { index, shown: shown.clone() }));
        }
        list.sort_by_key(|member| member.index);
    }
    let is_all = |(list, members): (&Vec<BriefMember>, &Vec<StructMember>)| {
        list.len() == members.len() && list.iter().all(|member| member.shown == Shown::Always)
    };
    if lists.iter().zip(by_abi).all(is_all) {
        return Err("all fields are named, which is the default: leave it out".into());
    }
    Ok(Some(lists))
}

fn position(name: &str, members: &[StructMember], abi: usize) -> Result<usize, String> {
    let index = members.iter().position(|member| member.name == name);
    index.ok_or_else(|| format!("there is no field {name} in {}", ABI_WORDS[abi]))
}

/// Returns the size of a member in bytes; 0 if it extends to the end of the struct.
fn size(of: &MemoryType, abi: usize, structs: &[StructRow]) -> u32 {
    match of {
        MemoryType::Number { bytes, .. } => u32::from(*bytes),
        MemoryType::Text(bytes) | MemoryType::Bytes(bytes) => *bytes,
        MemoryType::Struct(name) => structs.iter().find(|row| row.name == *name).map_or(0, |row| row.sizes[abi]),
        MemoryType::Array { stride, count, .. } => stride * count,
    }
}

/// Resolves a condition on arguments, which must have the same indices in all calls that have the struct.
fn tested_arguments(tested: &ConditionRow, row: &StructRow, signatures: &[&[Argument]], value: &Lookup) -> Result<Condition, String> {
    let is_of_struct = |argument: &Argument| match &argument.kind {
        ArgumentKind::Struct(name) | ArgumentKind::StructArray(name) => *name == row.name,
        _ => false,
    };
    let mut found = None;
    for args in signatures.iter().filter(|args| args.iter().any(is_of_struct)) {
        let named: Vec<(&str, &ArgumentKind)> = args.iter().map(|argument| (argument.name.as_str(), &argument.kind)).collect();
        let condition = tested.resolve(&named, value)?.ok_or("a table could not be read")?;
        if found.as_ref().is_some_and(|other| *other != condition) {
            return Err("the calls that have this struct have the tested argument in different places".into());
        }
        found = Some(condition);
    }
    found.ok_or_else(|| "no call has this struct as an argument, so that there is no argument to test".into())
}
