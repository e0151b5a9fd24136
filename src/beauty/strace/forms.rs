//! Looks up the rows of `beauty/strace.tbl`.

use crate::beauty::row::{Form, Part, Parts, TableForm, When};
use crate::beauty::tables::{ATTRIBUTE_FORMS, CALL_FORMS, FLAG_ORDERS, PACKED_FORMS, RESULT_FORMS, STRUCT_FORMS, TABLE_FORMS, WHEN_FORMS};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Rows by their names.
type ByName<T> = LazyLock<FxHashMap<&'static str, T>>;

/// How strace writes a call.
#[derive(Clone, Copy, Default)]
pub struct CallForm {
    /// The arguments in strace's order; `None` if it shows all of them in that of the registers.
    pub parts: Option<&'static [Part]>,
    /// How it writes the arguments if some have certain values.
    pub when: &'static [When],
    /// How it writes the result, if a row says so: as a `number`, or with a `constant` behind it.
    pub result: &'static str,
}

static CALLS: ByName<CallForm> = LazyLock::new(|| {
    let mut calls: FxHashMap<&str, CallForm> = FxHashMap::default();
    CALL_FORMS.iter().for_each(|row| calls.entry(row.name).or_default().parts = Some(row.parts));
    WHEN_FORMS.chunk_by(|a, b| a.name == b.name).for_each(|rows| calls.entry(rows[0].name).or_default().when = rows);
    RESULT_FORMS.iter().for_each(|(name, form)| calls.entry(name).or_default().result = form);
    calls
});
static STRUCTS: ByName<&[Part]> = LazyLock::new(|| by_name(STRUCT_FORMS));
static PACKED: ByName<&[Part]> = LazyLock::new(|| by_name(PACKED_FORMS));
static ATTRIBUTES: ByName<&[Part]> = LazyLock::new(|| by_name(ATTRIBUTE_FORMS));
static TABLES: ByName<&TableForm> = LazyLock::new(|| TABLE_FORMS.iter().map(|row| (row.name, row)).collect());
static ORDERS: ByName<&[&str]> = LazyLock::new(|| FLAG_ORDERS.iter().copied().collect());

fn by_name(all: &'static [Parts]) -> FxHashMap<&'static str, &'static [Part]> {
    all.iter().map(|row| (row.name, row.parts)).collect()
}

/// Returns the members of a struct in strace's order; `None` if it shows all of them in the order of memory.
pub fn of_struct(name: &str) -> Option<&'static [Part]> {
    STRUCTS.get(name).copied()
}

/// Returns how strace writes a call.
pub fn of_call(name: &str) -> CallForm {
    CALLS.get(name).copied().unwrap_or_default()
}

/// Returns how strace writes a number that packs several values: the macro or `|`, and the values.
pub fn of_packed(name: &str) -> Option<&'static [Part]> {
    PACKED.get(name).copied()
}

/// Returns how strace writes the content of a netlink attribute.
pub fn of_attribute(table: &str, name: &str) -> Form {
    let parts = ATTRIBUTES.get(table).copied().unwrap_or_default();
    parts.iter().find(|part| part.name == name).map_or(Form::Plain, |part| part.form)
}

/// Returns how the constants of a table are written, if this differs from their names.
pub fn of_table(name: &str) -> Option<&'static TableForm> {
    TABLES.get(name).copied()
}

/// Returns strace's name of a constant.
pub fn name_of_constant(table: &str, name: &'static str) -> &'static str {
    let names = of_table(table).map_or(&[][..], |form| form.names);
    names.iter().find(|(known, _)| *known == name).map_or(name, |(_, label)| label)
}

/// The word that stands for the values of bit fields.
const FIELDS: &str = "*";

fn order(table: &str) -> &'static [&'static str] {
    ORDERS.get(table).copied().unwrap_or_default()
}

/// Returns the place of a flag in strace's order. Flags that no row names stand behind the others, in the order of
/// their values.
pub fn place_of_flag(table: &str, name: &str) -> usize {
    let order = order(table);
    1 + order.iter().position(|known| *known == name).unwrap_or(order.len())
}

/// Returns the place of the values of bit fields, which is the first unless a row says otherwise.
pub fn place_of_field(table: &str) -> usize {
    order(table).iter().position(|known| *known == FIELDS).map_or(0, |at| 1 + at)
}
