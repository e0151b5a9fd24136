//! Finds the structs as which the memory of a struct is decoded for some values of a field (`sockaddr sa_family=AF_INET
//! sockaddr_in`).

use super::constant::{self, Lookup};
use super::fault::Fault;
use super::kind::ArgumentKind;
use super::layout::{MemoryType, StructLayout, StructMember};
use super::structs::{ABI_WORDS, ChoiceRow, StructRow};

/// The structs that a member of a struct selects, from which a `row::StructChoice` is emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The index of the member in the layouts of all ABIs.
    pub member: usize,
    /// The values of the member, each with the name of its struct.
    pub structs: Vec<(u64, String)>,
}

/// Returns the choices of the structs, in the order of the rows.
pub fn choices(structs: &[StructRow], layouts: &[StructLayout], value: &Lookup, faults: &mut Vec<Fault>) -> Vec<Option<Choice>> {
    let resolve = |(row, layout): (&StructRow, &StructLayout)| {
        let mut choice: Option<Choice> = None;
        for line in &row.choices {
            if let Err(text) = add(&mut choice, line, row, layout, structs, value) {
                faults.push(line.location.fault(format!("{}: {text}", row.name)));
            }
        }
        choice
    };
    structs.iter().zip(layouts).map(resolve).collect()
}

fn add(
    choice: &mut Option<Choice>,
    line: &ChoiceRow,
    row: &StructRow,
    layout: &StructLayout,
    structs: &[StructRow],
    value: &Lookup,
) -> Result<(), String> {
    let StructLayout::Members(members) = layout else { return Err("only a struct with fields may have a choice".into()) };
    let (member, kind) = selector(&line.field, members)?;
    let of = structs.iter().find(|other| other.name == line.of).ok_or_else(|| format!("there is no struct {}", line.of))?;
    if let Some(abi) = (0..ABI_WORDS.len()).find(|abi| of.sizes[*abi] > row.sizes[*abi]) {
        return Err(format!("{} is larger than {} in {}", of.name, row.name, ABI_WORDS[abi]));
    }
    let choice = choice.get_or_insert(Choice { member, structs: Vec::new() });
    if choice.member != member {
        return Err(format!("another field than {} selects the structs before this one", line.field));
    }
    for word in &line.values {
        let Some((number, _)) = constant::constant(word, (&line.field, kind), value)? else { continue };
        if let Some((_, first)) = choice.structs.iter().find(|(known, _)| *known == number) {
            return Err(format!("{word} already selects {first}"));
        }
        choice.structs.push((number, of.name.clone()));
    }
    Ok(())
}

/// Returns the index and the kind of the field, which must be the same in all ABIs.
fn selector<'a>(name: &str, members: &'a [Vec<StructMember>; 4]) -> Result<(usize, &'a ArgumentKind), String> {
    let found = |members: &'a Vec<StructMember>| {
        let at = members.iter().position(|member| member.name == name)?;
        if let MemoryType::Number { kind, .. } = &members[at].memory_type { Some((at, kind)) } else { None }
    };
    let first = found(&members[0]).ok_or_else(|| format!("there is no field {name} that is a number"))?;
    match members.iter().all(|own| found(own) == Some(first)) {
        true => Ok(first),
        false => Err(format!("{name} is another field in some ABIs")),
    }
}
