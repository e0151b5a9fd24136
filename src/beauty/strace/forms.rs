//! Looks up the rows of `beauty/strace.tbl`.

use crate::beauty::row::{Form, Part, Parts, TableForm, When};
use crate::beauty::tables::{ATTRIBUTE_FORMS, CALL_FORMS, FLAG_ORDERS, PACKED_FORMS, RESULT_FORMS, STRUCT_FORMS, TABLE_FORMS, WHEN_FORMS};

/// Returns the members of a struct in strace's order; `None` if it shows all of them in the order of memory.
pub fn of_struct(name: &str) -> Option<&'static [Part]> {
    parts(STRUCT_FORMS, name)
}

/// Returns the arguments of a syscall in strace's order; `None` if it shows all of them in that of the registers.
pub fn of_call(name: &str) -> Option<&'static [Part]> {
    parts(CALL_FORMS, name)
}

/// Returns how strace writes a number that packs several values: the macro or `|`, and the values.
pub fn of_packed(name: &str) -> Option<&'static [Part]> {
    parts(PACKED_FORMS, name)
}

/// Returns how strace writes the content of a netlink attribute.
pub fn of_attribute(table: &str, name: &str) -> Form {
    let parts = parts(ATTRIBUTE_FORMS, table).unwrap_or_default();
    parts.iter().find(|part| part.name == name).map_or(Form::Plain, |part| part.form)
}

/// Returns how strace writes the arguments of a syscall if some have certain values.
pub fn when(name: &str) -> &'static [When] {
    let begin = WHEN_FORMS.partition_point(|row| row.name < name);
    let rest = &WHEN_FORMS[begin..];
    &rest[..rest.partition_point(|row| row.name == name)]
}

/// Returns how the result of a call is written, if a row says so: as a `number`, or with a `constant` behind it.
pub fn of_result(call: &str) -> &'static str {
    RESULT_FORMS.binary_search_by_key(&call, |row| row.0).ok().map_or("", |at| RESULT_FORMS[at].1)
}

fn parts(all: &'static [Parts], name: &str) -> Option<&'static [Part]> {
    all.binary_search_by_key(&name, |row| row.name).ok().map(|at| all[at].parts)
}

/// Returns how the constants of a table are written, if this differs from their names.
pub fn of_table(name: &str) -> Option<&'static TableForm> {
    TABLE_FORMS.binary_search_by_key(&name, |row| row.name).ok().map(|at| &TABLE_FORMS[at])
}

/// Returns strace's name of a constant.
pub fn name_of_constant(table: &str, name: &'static str) -> &'static str {
    let names = of_table(table).map_or(&[][..], |form| form.names);
    names.iter().find(|(known, _)| *known == name).map_or(name, |(_, label)| label)
}

/// The word that stands for the values of bit fields.
const FIELDS: &str = "*";

fn order(table: &str) -> &'static [&'static str] {
    FLAG_ORDERS.binary_search_by_key(&table, |row| row.0).ok().map_or(&[][..], |at| FLAG_ORDERS[at].1)
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
