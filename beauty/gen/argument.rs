//! Resolves the arguments of a row: the tables and structs that they name, and the indices of other arguments that they
//! refer to.

use super::constant::{Condition, Lookup};
use super::kind::{self, ArgumentKind, Vocabulary};
use super::syscalls::{ArgumentRow, FlowRow, Inherited, LengthRow, SyscallRow};

#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    pub kind: ArgumentKind,
    pub flow: FlowRow,
    pub written: Vec<&'static str>,
    pub traits: Vec<&'static str>,
    pub fd_of: Option<usize>,
    pub socket: Option<usize>,
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

/// Returns the arguments of a row. `plain` are the arguments of the row to which a variant belongs, and is empty for a
/// plain row.
pub fn arguments(row: &SyscallRow, plain: &[Argument], known: &Vocabulary, value: &Lookup) -> Result<Vec<Argument>, String> {
    let linked = row.args.iter().enumerate().map(|(at, argument)| {
        let linked = match (argument.inherited, plain.get(at)) {
            (Inherited::All, Some(plain)) => inherited(plain, row),
            (Inherited::AllButKind, Some(plain)) => like(argument, plain, row, known),
            _ => link(argument, row, known),
        };
        linked.map_err(|text| format!("{}, {}: {text}", row.name, argument.name))
    });
    let linked = linked.collect::<Result<Vec<Argument>, String>>()?;
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

/// Returns an argument that a variant takes from its plain row as it is.
fn inherited(plain: &Argument, row: &SyscallRow) -> Result<Argument, String> {
    plain_length(plain, row)?;
    Ok(plain.clone())
}

/// Returns an argument that differs from that of the plain row only in its kind. The words `varies` and `array`, which
/// are about the length of a struct, belong to the kind.
fn like(argument: &ArgumentRow, plain: &Argument, row: &SyscallRow, known: &Vocabulary) -> Result<Argument, String> {
    let own = ArgumentRow { flow: plain.flow, written: plain.written.clone(), length: plain_length(plain, row)?, ..argument.clone() };
    let mut linked = link(&own, row, known)?;
    let is_of_kind = |word: &str| matches!(word, "VARIES" | "ARRAY" | "NUMBER");
    let more = plain.traits.iter().filter(|word| !argument.traits.contains(*word) && !is_of_kind(word));
    linked.traits.extend(more);
    linked.fd_of = plain.fd_of;
    linked.socket = plain.socket;
    Ok(linked)
}

/// Returns the length of an argument of the plain row in the form in which a variant would write it.
fn plain_length(plain: &Argument, row: &SyscallRow) -> Result<LengthRow, String> {
    Ok(match plain.length {
        Length::OfType => LengthRow::OfType,
        Length::Ret => LengthRow::Ret,
        Length::Fixed(number) => LengthRow::Fixed(number),
        Length::Argument(at) => {
            let counter = row.args.get(at).ok_or("the argument with its length is missing in this variant")?;
            LengthRow::Argument(counter.name.clone())
        }
    })
}

/// Returns the index of the argument with a name.
fn place(name: Option<&String>, row: &SyscallRow) -> Option<usize> {
    name.and_then(|name| row.args.iter().position(|other| other.name == *name))
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
    let kind = kind::of_argument(argument, known)?;
    if argument.traits.contains(&"NUMBER") && !kind.is_type_of_number() {
        return Err(format!("`number` is for kinds that are only types, and `{}` has a meaning", argument.kind));
    }
    Ok(Argument {
        name: argument.name.clone(),
        kind,
        flow: argument.flow,
        written: argument.written.clone(),
        traits: argument.traits.clone(),
        fd_of: place(argument.fd_of.as_ref(), row),
        socket: place(argument.socket.as_ref(), row),
        length,
        used: None,
    })
}
