//! The object of a syscall.

use super::{ByAbi, Integer, Serialize};
use crate::beauty::row::{self, ArgumentKind, Condition, Flow, Return, Traits};
use crate::cli::list::row::{constant, kind, outcome_names, returned};
use crate::cli::list::{SeenBy, group_names};
use crate::event::Abi;
use crate::text::json::Hex;
use std::ops::Not;

/// A syscall. If rtrace has no row for it, the object has only the name and the event.
#[derive(Serialize)]
pub struct Syscall<'a> {
    name: &'a str,
    /// The tracepoint of its entries.
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_by: Option<&'static str>,
    #[serde(flatten)]
    row: Option<Row>,
}

/// The facts about a syscall in rtrace's tables.
#[derive(Serialize)]
struct Row {
    numbers: ByAbi<u32>,
    groups: Vec<String>,
    arguments: Vec<Argument>,
    returns: Kind,
    /// The effect on the state that rtrace tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    does: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variants: Vec<Variant>,
}

/// The arguments and the return that replace those of the syscall if an argument has one of these values.
#[derive(Serialize)]
struct Variant {
    argument: &'static str,
    /// The bits of the argument that are compared.
    mask: Hex,
    values: Vec<NamedValue>,
    arguments: Vec<Argument>,
    returns: Kind,
    /// The variants that another argument selects within this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    variants: Vec<Variant>,
}

/// A value, and the name of the constant that has it.
#[derive(Serialize)]
pub struct NamedValue {
    constant: Option<String>,
    value: Integer,
}

#[derive(Serialize)]
struct Argument {
    name: &'static str,
    #[serde(flatten)]
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<Length>,
    flow: &'static str,
    /// The outcomes of the call with which it writes the memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    written: Vec<&'static str>,
    #[serde(skip_serializing_if = "Not::not")]
    optional: bool,
    #[serde(skip_serializing_if = "Not::not")]
    shallow: bool,
    #[serde(skip_serializing_if = "Not::not")]
    sends: bool,
    #[serde(skip_serializing_if = "Not::not")]
    counted: bool,
    #[serde(skip_serializing_if = "Not::not")]
    varies: bool,
    #[serde(skip_serializing_if = "Not::not")]
    array: bool,
    /// The argument that names the process whose descriptor this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    fd_of: Option<&'static str>,
    /// The argument that is the socket whose messages the bytes are.
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<&'static str>,
    #[serde(skip_serializing_if = "Not::not")]
    unused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_if: Option<&'static str>,
}

/// The kind of a value.
#[derive(Serialize)]
pub struct Kind {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'static str>,
    #[serde(rename = "struct", skip_serializing_if = "Option::is_none")]
    struct_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed: Option<bool>,
}

/// The source of a length that the type does not determine.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    Argument(&'static str),
    Member(&'static str),
    /// The call returns the length.
    Returned(bool),
    Count(Integer),
}

impl<'a> Syscall<'a> {
    pub fn new(row: &'a row::Syscall, seen_by: Option<SeenBy>) -> Syscall<'a> {
        let number = |abi: Abi| Some((abi.name(), row.numbers[abi as usize]?));
        Syscall {
            name: row.name,
            event: event(row.event),
            seen_by: seen_by.map(|seen_by| match seen_by {
                SeenBy::Event => "event",
                SeenBy::RawSyscalls => "raw_syscalls",
            }),
            row: Some(Row {
                numbers: Abi::ALL.into_iter().filter_map(number).collect(),
                groups: group_names(row.groups),
                arguments: arguments(row.args),
                returns: Kind::of_return(&row.returns),
                does: row.does.described().map(|(word, _)| word),
                variants: row.variants.iter().map(|variant| Variant::new(variant, row.args)).collect(),
            }),
        }
    }

    /// Returns the object of a syscall that has an event in this kernel, but no row in rtrace's tables.
    pub fn without_row(name: &'a str) -> Syscall<'a> {
        Syscall { name, event: event(name), seen_by: Some("event"), row: None }
    }
}

fn event(name: &str) -> String {
    format!("syscalls:sys_enter_{name}")
}

impl NamedValue {
    pub fn new(constant: Option<String>, value: u64) -> NamedValue {
        NamedValue { constant, value: Integer(value) }
    }
}

impl Variant {
    /// `args` are the arguments of the row to which the variant belongs.
    fn new(variant: &row::Variant, args: &[row::Arg]) -> Variant {
        let chooser = args.get(usize::from(variant.arg));
        let named = |value: &u64| NamedValue::new(constant(chooser, *value), *value);
        Variant {
            argument: chooser.map_or("", |arg| arg.name),
            mask: Hex(variant.mask),
            values: variant.values.iter().map(named).collect(),
            arguments: arguments(variant.args),
            returns: Kind::of_return(&variant.returns),
            variants: variant.variants.iter().map(|own| Variant::new(own, variant.args)).collect(),
        }
    }
}

fn arguments(args: &'static [row::Arg]) -> Vec<Argument> {
    let name = |index: u8| args.get(usize::from(index)).map(|arg| arg.name);
    let argument = |arg: &row::Arg| Argument {
        name: arg.name,
        kind: Kind::of(&arg.kind),
        length: Length::of(arg.length, |index| name(index).map(Length::Argument)),
        flow: flow(arg.flow),
        written: if arg.flow == Flow::In { Vec::new() } else { outcome_names(arg.written) },
        optional: arg.traits.contains(Traits::OPTIONAL),
        shallow: arg.traits.contains(Traits::SHALLOW),
        sends: arg.traits.contains(Traits::SENDS),
        counted: arg.traits.contains(Traits::COUNTED),
        varies: arg.traits.contains(Traits::VARIES),
        array: arg.traits.contains(Traits::ARRAY),
        fd_of: arg.fd_of.and_then(name),
        socket: arg.socket.and_then(name),
        unused: arg.used == Condition::Never,
        used_if: condition(&arg.used),
    };
    args.iter().map(argument).collect()
}

/// Returns the word for a direction: the kernel reads the memory of `in`, and writes the memory of `out`.
pub fn flow(flow: Flow) -> &'static str {
    match flow {
        Flow::In => "in",
        Flow::Out => "out",
        Flow::InOut => "inout",
    }
}

/// Returns a condition as the row files write it, unless it always or never holds.
pub fn condition(condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::If { text, .. } => Some(text),
        Condition::Always | Condition::Never => None,
    }
}

impl Kind {
    /// Returns a kind that needs no member other than its name.
    fn named(kind: impl Into<String>) -> Kind {
        Kind { kind: kind.into(), table: None, struct_name: None, bits: None, signed: None }
    }

    /// Returns the kind of an argument or of a number, with what it refers to: a table, a struct, or a size in bits.
    pub fn of(of: &ArgumentKind) -> Kind {
        match of {
            ArgumentKind::Table(table) => Kind { table: Some(table.name), ..Kind::named("table") },
            ArgumentKind::Struct(of) => Kind { struct_name: Some(of.name), ..Kind::named("struct") },
            ArgumentKind::StructArray(of) => Kind { struct_name: Some(of.name), ..Kind::named("structs") },
            ArgumentKind::Number { bytes, signed } => {
                Kind { bits: Some(u32::from(*bytes) * 8), signed: Some(*signed), ..Kind::named("number") }
            }
            plain => Kind::named(kind(plain)),
        }
    }

    fn of_return(returns: &Return) -> Kind {
        match returns {
            Return::Table(table) => Kind { table: Some(table.name), ..Kind::named("table") },
            plain => Kind::named(returned(plain)),
        }
    }
}

impl Length {
    /// Returns the source of a length. `by` returns the argument or member with an index.
    pub fn of(length: row::Length, by: impl Fn(u8) -> Option<Length>) -> Option<Length> {
        match length {
            row::Length::OfType => None,
            row::Length::Arg(index) => by(index),
            row::Length::Ret => Some(Length::Returned(true)),
            row::Length::Fixed(count) => Some(Length::Count(Integer(count))),
        }
    }
}
