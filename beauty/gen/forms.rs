//! Rows of `strace.tbl`: how strace's text differs from what the other rows say.

use super::emit::EmittedTable;
use super::fault::{Fault, Location, Row, rows};
use super::link::Call;
use super::structs::{Body, StructRow};
use std::fmt::{self, Write};

/// The words after a colon, and the variants of `form::Form`.
const FORMS: [(&str, &str); 15] = [
    ("address", "Address"),
    ("after", "After"),
    ("before", "Before"),
    ("blanks", "Blanks"),
    ("date", "Date"),
    ("decimal", "Decimal"),
    ("entries", "Entries"),
    ("hex", "Hex"),
    ("hex_string", "HexString"),
    ("kib", "Kib"),
    ("or_zero", "OrZero"),
    ("private", "Private"),
    ("ready", "Ready"),
    ("signal", "Signal"),
    ("text", "Text"),
];

/// The word that stands for the values of bit fields among flags.
const FIELDS: &str = "*";

/// A row.
#[derive(Clone, Debug)]
pub struct FormRow {
    location: Location,
    kind: Kind,
    name: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Struct,
    Call,
    Table,
}

/// A member, an argument or a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// The name in other rows.
    name: String,
    /// The name in strace's text; for an argument, empty if it has none.
    label: String,
    /// A variant of `form::Form`.
    form: &'static str,
    /// The condition under which it is shown, as the Rust text of a `form::Test`.
    test: String,
    /// It is shown only with `-v`.
    is_verbose: bool,
    /// It is shown behind the result.
    is_behind: bool,
}

/// Parses a file. A line that does not begin with the kind of a row continues the row before it.
pub fn parse_file(file: &str, text: &str, faults: &mut Vec<Fault>) -> Vec<FormRow> {
    let mut all: Vec<FormRow> = Vec::new();
    for row in rows(file, text) {
        let parsed = match all.last_mut() {
            Some(last) if !["struct", "call", "table"].contains(&row.fields[0]) => {
                parts(&row, &row.fields, last.kind).map(|more| last.parts.extend(more))
            }
            _ => parse(&row).map(|row| all.push(row)),
        };
        faults.extend(parsed.err());
    }
    all
}

fn parts(row: &Row, words: &[&str], kind: Kind) -> Result<Vec<Part>, Fault> {
    words.iter().map(|word| part(word, kind)).collect::<Result<_, _>>().map_err(|text| row.location.fault(text))
}

/// Parses the first line of a row.
fn parse(row: &Row) -> Result<FormRow, Fault> {
    let fault = |text: String| row.location.fault(text);
    let [kind, name, words @ ..] = &row.fields[..] else { return Err(fault("the name of what the row describes is missing".into())) };
    let kind = match *kind {
        "struct" => Kind::Struct,
        "call" => Kind::Call,
        "table" => Kind::Table,
        other => return Err(fault(format!("`{other}` is neither `struct`, `call` nor `table`"))),
    };
    let parts = parts(row, words, kind)?;
    Ok(FormRow { location: row.location.clone(), kind, name: (*name).to_owned(), parts })
}

fn part(word: &str, kind: Kind) -> Result<Part, String> {
    let (word, test) = word.split_once('?').map_or((word, None), |(word, test)| (word, Some(test)));
    let (word, form) = word.split_once(':').map_or((word, None), |(word, form)| (word, Some(form)));
    let form = form.map_or(Ok("Plain"), |form| {
        let known = FORMS.iter().find(|(known, _)| *known == form).map(|(_, rust)| *rust);
        known.ok_or_else(|| format!("there is no form `{form}`: use one of {}", FORMS.map(|(known, _)| known).join(", ")))
    })?;
    let test = match test {
        None => "Test::Always".to_owned(),
        Some("nonzero") => "Test::NotZero".to_owned(),
        Some("always") => "Test::Unused".to_owned(),
        Some("device") => "Test::Device(true)".to_owned(),
        Some("file") => "Test::Device(false)".to_owned(),
        Some(test) => {
            let (member, flag) = test.split_once('&').ok_or_else(|| format!("there is no condition `{test}`"))?;
            format!("Test::Flag({member:?}, {flag:?})")
        }
    };
    let (is_verbose, word) = word.strip_prefix('-').map_or((false, word), |word| (true, word));
    let (is_behind, word) = word.strip_prefix('+').map_or((false, word), |word| (true, word));
    let (label, name) = word.split_once('=').unwrap_or((if kind == Kind::Struct { word } else { "" }, word));
    Ok(Part { name: name.to_owned(), label: label.to_owned(), form, test, is_verbose, is_behind })
}

/// Checks that what the rows name exists.
pub fn check(rows: &[FormRow], calls: &[Call], structs: &[StructRow], tables: &[EmittedTable], faults: &mut Vec<Fault>) {
    for row in rows {
        let known: Option<Vec<&str>> = match row.kind {
            Kind::Call => {
                let call = calls.iter().find(|call| call.name == row.name);
                call.map(|call| call.args.iter().map(|arg| arg.name.as_str()).collect())
            }
            Kind::Struct => structs.iter().find(|one| one.name == row.name).map(|one| match &one.body {
                Body::Fields { common, own, .. } => {
                    let all = common.iter().chain(own.iter().flatten().flatten());
                    all.map(|field| field.name.as_str()).collect()
                }
                // A function names the members of what it decodes.
                Body::Decoder { .. } => row.parts.iter().map(|part| part.name.as_str()).collect(),
                Body::Unknown | Body::Number(_) => Vec::new(),
            }),
            Kind::Table => {
                let table = tables.iter().find(|table| table.name == row.name);
                table.map(|table| table.base.entries.iter().map(|entry| entry.name.as_str()).collect())
            }
        };
        let Some(known) = known else {
            faults.push(row.location.fault(format!("there is no {} of the name {}", format!("{:?}", row.kind).to_lowercase(), row.name)));
            continue;
        };
        let is_field = |name: &str| row.kind == Kind::Table && name == FIELDS;
        let missing = row.parts.iter().filter(|part| !known.contains(&part.name.as_str()) && !is_field(&part.name));
        faults.extend(missing.map(|part| row.location.fault(format!("{} has no {}", row.name, part.name))));
    }
}

/// Emits the rows as Rust text, sorted by name.
pub fn emit(rows: &[FormRow]) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let of = |kind: Kind| {
        let mut rows: Vec<&FormRow> = rows.iter().filter(|row| row.kind == kind).collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        rows
    };
    for (kind, name, what) in [(Kind::Struct, "STRUCT_FORMS", "structs"), (Kind::Call, "CALL_FORMS", "arguments of calls")] {
        writeln!(out, "/// How strace writes {what}, by name.\npub static {name}: &[Parts] = &[")?;
        for row in of(kind) {
            writeln!(out, "Parts {{ name: {:?}, parts: &[", row.name)?;
            for Part { name, label, form, test, is_verbose, is_behind } in &row.parts {
                writeln!(
                    out,
                    "Part {{ name: {name:?}, label: {label:?}, form: Form::{form}, test: {test}, is_verbose: {is_verbose}, is_behind: {is_behind} }},"
                )?;
            }
            writeln!(out, "] }},")?;
        }
        writeln!(out, "];")?;
    }
    writeln!(
        out,
        "/// The order in which strace writes flags, by the name of their table.\npub static FLAG_ORDERS: &[(&str, &[&str])] = &["
    )?;
    for row in of(Kind::Table) {
        let names: Vec<&str> = row.parts.iter().map(|part| part.name.as_str()).collect();
        writeln!(out, "({:?}, &{names:?}),", row.name)?;
    }
    writeln!(out, "];")?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    fn parsed(text: &str) -> Result<FormRow, String> {
        parse(&rows("r.tbl", text)[0]).map_err(|fault| fault.to_string())
    }

    #[test]
    fn members_have_forms_conditions_and_labels() {
        let row = parsed("struct stat -st_dev st_mode st_size?file st_rdev?device -st_atime:date").expect("good");
        let part = |at: usize| (row.parts[at].name.as_str(), row.parts[at].form, row.parts[at].test.as_str(), row.parts[at].is_verbose);
        assert_eq!(part(0), ("st_dev", "Plain", "Test::Always", true));
        assert_eq!(part(2), ("st_size", "Plain", "Test::Device(false)", false));
        assert_eq!(part(4), ("st_atime", "Date", "Test::Always", true));
        let row = parsed("call clone child_stack=newsp parent_tid=tid?flags&CLONE_PARENT_SETTID").expect("good");
        assert_eq!((row.parts[0].label.as_str(), row.parts[0].name.as_str()), ("child_stack", "newsp"));
        assert_eq!(row.parts[1].test, "Test::Flag(\"flags\", \"CLONE_PARENT_SETTID\")");
    }

    #[test]
    fn a_row_that_is_wrong_is_a_fault() {
        assert!(parsed("form stat").unwrap_err().contains("neither"));
        assert!(parsed("struct stat st_mode:red").unwrap_err().contains("there is no form `red`"));
        assert!(parsed("struct stat st_mode?red").unwrap_err().contains("there is no condition `red`"));
    }
}
