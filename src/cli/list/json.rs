//! The objects of `rtrace list --json`. Each has everything that is known about one thing.

mod layout;
mod syscall;

use super::{Found, Item, text};
use crate::beauty::row::{BitField, ConstantTable, TableConstant};
use crate::event::Abi;
use crate::kernel::format::{FieldPlace, Format, FormatField};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::program::usdt::UsdtTracepoint;
use crate::text::json::{Hex, Integer};
use serde::Serialize;
use std::collections::BTreeMap;

/// Values that may differ between ABIs, by the name of the ABI.
type ByAbi<T> = BTreeMap<&'static str, T>;

/// A listed thing.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Object<'a> {
    Syscall(syscall::Syscall<'a>),
    Group { name: String, syscalls: &'a [&'a str] },
    Table(Table),
    Constant { name: &'static str, value: Integer, table: &'static str, headers: Vec<&'static str> },
    Struct(layout::Struct),
    Tracepoint(Tracepoint<'a>),
    Usdt { provider: &'a str, name: &'a str, places: usize, arguments: Vec<&'a str> },
}

/// A table of constants.
#[derive(Serialize)]
pub struct Table {
    name: &'static str,
    kind: &'static str,
    bits: u8,
    headers: Vec<&'static str>,
    constants: Vec<Constant>,
    /// The bit fields whose values are constants of other tables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
    /// The constants whose values differ in other ABIs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    other_abis: ByAbi<Vec<Constant>>,
}

#[derive(Serialize)]
struct Constant {
    name: &'static str,
    value: Integer,
}

#[derive(Serialize)]
struct Field {
    mask: Hex,
    table: &'static str,
    constants: Vec<Constant>,
}

/// An event of tracefs.
#[derive(Serialize)]
pub struct Tracepoint<'a> {
    subsystem: &'a str,
    name: &'a str,
    /// The contents of the event's format file; no members if the file cannot be read.
    #[serde(flatten)]
    format: Option<TracepointFormat>,
}

#[derive(Serialize)]
struct TracepointFormat {
    id: Integer,
    fields: Vec<TracepointField>,
    print: String,
}

#[derive(Serialize)]
struct TracepointField {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    offset: u32,
    size: u32,
    signed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<u32>,
    /// How the field states where its bytes are, if they are not in the field itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'static str>,
}

/// Returns the objects of a list. The formats of events are read from tracefs.
pub fn objects<'a>(found: &'a Found<'a>, tracefs: Option<&'a Tracefs>) -> impl Iterator<Item = Object<'a>> {
    found.items.iter().map(move |item| object(item, tracefs))
}

/// Returns the object of a USDT tracepoint.
pub fn usdt(one: &UsdtTracepoint) -> Object<'_> {
    Object::Usdt { provider: &one.provider, name: &one.name, places: one.sites, arguments: one.arguments.split_whitespace().collect() }
}

fn object<'a>(item: &'a Item<'a>, tracefs: Option<&Tracefs>) -> Object<'a> {
    match item {
        Item::Syscall { row, seen_by, .. } => Object::Syscall(syscall::Syscall::new(row, *seen_by)),
        Item::SyscallWithoutRow { event } => Object::Syscall(syscall::Syscall::without_row(event)),
        Item::Group { name, members } => Object::Group { name: format!("%{name}"), syscalls: members },
        Item::Table { table, .. } => Object::Table(self::table(table)),
        Item::Constant { constant, table } => {
            Object::Constant { name: constant.name, value: Integer(constant.value), table: table.name, headers: headers(table) }
        }
        Item::Struct { of, .. } => Object::Struct(layout::Struct::new(of)),
        Item::Event(name) => Object::Tracepoint(tracepoint(name, tracefs)),
    }
}

fn table(table: &ConstantTable) -> Table {
    let field = |field: &BitField| Field { mask: Hex(field.mask), table: field.table.name, constants: constants(field.table.entries) };
    let differing = |twin: &ConstantTable| -> Vec<Constant> {
        twin.entries.iter().filter(|entry| !table.entries.contains(entry)).map(constant).collect()
    };
    Table {
        name: table.name,
        kind: text::kind(table),
        bits: table.bits,
        headers: headers(table),
        constants: constants(table.entries),
        fields: table.fields.iter().map(field).collect(),
        other_abis: table.per_abi.iter().map(|(abi, twin)| (abi.name(), differing(twin))).collect(),
    }
}

fn constants(entries: &[TableConstant]) -> Vec<Constant> {
    entries.iter().map(constant).collect()
}

fn constant(entry: &TableConstant) -> Constant {
    Constant { name: entry.name, value: Integer(entry.value) }
}

fn headers(table: &ConstantTable) -> Vec<&'static str> {
    table.header.split(',').map(str::trim).collect()
}

fn tracepoint<'a>(name: &'a EventName, tracefs: Option<&Tracefs>) -> Tracepoint<'a> {
    let format = tracefs.and_then(|tracefs| tracefs.format(&name.subsystem, &name.name).ok());
    Tracepoint { subsystem: &name.subsystem, name: &name.name, format: format.map(TracepointFormat::from) }
}

impl From<Format> for TracepointFormat {
    fn from(format: Format) -> TracepointFormat {
        let fields = format.own_fields().cloned().map(TracepointField::from).collect();
        TracepointFormat { id: Integer(format.id), fields, print: format.print }
    }
}

impl From<FormatField> for TracepointField {
    fn from(field: FormatField) -> TracepointField {
        let FormatField { name, type_name, offset, size, signed, array, place } = field;
        let place = match place {
            FieldPlace::Here => None,
            FieldPlace::DataLoc => Some("data_loc"),
            FieldPlace::RelLoc => Some("rel_loc"),
        };
        TracepointField { name, type_name, offset, size, signed, array, place }
    }
}

/// Returns the value of a function for each ABI.
fn by_abi<T>(of: impl Fn(Abi) -> T) -> ByAbi<T> {
    Abi::ALL.into_iter().map(|abi| (abi.name(), of(abi))).collect()
}
