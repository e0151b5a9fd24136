//! Rows of `strace.tbl`: how strace's text differs from what the other rows say.

use super::emit::EmittedTable;
use super::fault::{Fault, Location, Row, rows};
use super::link::Call;
use super::structs::{Body, StructRow};
use std::fmt::{self, Write};

/// The words after a colon that say how a value is written, and the variants of `form::Form`.
const FORMS: [(&str, &str); 39] = [
    ("address", "Address"),
    ("bar", "Bar"),
    ("blanks", "Blanks"),
    ("boxed", "Boxed"),
    ("bytes", "Bytes"),
    ("comm", "Comm"),
    ("date", "Date"),
    ("decimal", "Decimal"),
    ("dots", "Dots"),
    ("elements", "Elements"),
    ("entries", "Entries"),
    ("field", "Field"),
    ("handle", "Handle"),
    ("hex", "Hex"),
    ("hex32", "Hex32"),
    ("hex8", "Hex8"),
    ("hex_string", "HexString"),
    ("htonl", "Htonl"),
    ("htons", "Htons"),
    ("int", "Int"),
    ("ioctl", "Ioctl"),
    ("kib", "Kib"),
    ("mac", "Mac"),
    ("null", "Null"),
    ("number", "Number"),
    ("option", "Option"),
    ("path", "Path"),
    ("private", "Private"),
    ("pton", "Pton"),
    ("ready", "Ready"),
    ("shifted", "Shifted"),
    ("single", "Single"),
    ("skid", "Skid"),
    ("success", "Success"),
    ("tail", "Tail"),
    ("text", "Text"),
    ("vars", "Vars"),
    ("whole", "Whole"),
    ("words", "Words"),
];

/// The words after a colon that say which value of memory that the call reads and writes is shown, and the variants of
/// `form::Side`.
const SIDES: [(&str, &str); 3] = [("after", "After"), ("before", "Before"), ("merged", "Merged")];

/// The word that stands for the values of bit fields among flags, and for all other members of a struct.
const OTHERS: &str = "*";

/// The end of the comment behind a number without a name.
const UNKNOWN: &str = "???";

/// The words that say how a result is written: 0 as a number, and not as a timeout; the number, and the constant behind
/// it.
const RESULTS: [&str; 2] = ["number", "constant"];

/// Members that no row has, because decoders add them: the bytes that follow a struct, and what a control message has.
const ADDED: [&str; 2] = ["tail", "cmsg_data"];

/// The words that say how a number without a name is written: in decimal or hexadecimal digits, without a comment.
const UNNAMED: [&str; 2] = ["decimal", "hex"];
/// The word of tables whose bit fields are numbers of their own where constants are numbers.
const APART: &str = "apart";

/// A row.
#[derive(Clone, Debug)]
pub struct FormRow {
    location: Location,
    kind: Kind,
    name: String,
    /// When the row applies: an argument, and the names of the values that it must have.
    tests: Vec<(String, Vec<String>)>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Struct,
    Call,
    When,
    Packed,
    Attributes,
    Result,
    Table,
}

/// The words that begin a row.
const KINDS: [(&str, Kind); 7] = [
    ("struct", Kind::Struct),
    ("call", Kind::Call),
    ("when", Kind::When),
    ("packed", Kind::Packed),
    ("attributes", Kind::Attributes),
    ("result", Kind::Result),
    ("table", Kind::Table),
];

/// A member, an argument or a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// The name in other rows.
    name: String,
    /// The name in strace's text; for an argument, empty if it has none.
    label: String,
    /// A variant of `form::Side`.
    side: &'static str,
    /// The Rust text of a `form::Form`.
    form: String,
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
            Some(last) if !KINDS.iter().any(|(word, _)| *word == row.fields[0]) => {
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
    let known = KINDS.iter().find(|(word, _)| word == kind).map(|(_, kind)| *kind);
    let words_of_kinds = || KINDS.map(|(word, _)| word).join(", ");
    let kind = known.ok_or_else(|| fault(format!("`{kind}` is none of {}", words_of_kinds())))?;
    let is_test = |word: &&&str| kind == Kind::When && word.contains("==") && (word.ends_with("==?") || !word.contains('?'));
    let tests = words.iter().take_while(is_test).filter_map(|word| word.split_once("=="));
    let tests: Vec<_> = tests.map(|(arg, values)| (arg.to_owned(), values.split('|').map(str::to_owned).collect())).collect();
    let parts = parts(row, &words[tests.len()..], kind)?;
    Ok(FormRow { location: row.location.clone(), kind, name: (*name).to_owned(), tests, parts })
}

fn part(word: &str, kind: Kind) -> Result<Part, String> {
    let condition_of = |word| str::split_once(word, '?').filter(|_| kind != Kind::Table);
    let (word, test) = condition_of(word).map_or((word, None), |(word, test)| (word, Some(test)));
    // A bracket around members is a part without a name.
    let bracket = word.strip_suffix('{').map(|label| (label, "Open")).or((word == "}").then_some(("", "Close")));
    if let Some((label, form)) = bracket {
        let (name, test) = (String::new(), test.map_or(Ok("Test::Always".to_owned()), condition)?);
        let form = format!("Form::{form}");
        return Ok(Part { name, label: label.to_owned(), side: "Both", form, test, is_verbose: false, is_behind: false });
    }
    let mut words = word.split(':');
    let word = words.next().unwrap_or_default();
    let (mut side, mut form) = ("Both", "Form::Plain".to_owned());
    for word in words {
        let find = |all: &[(&str, &'static str)]| all.iter().find(|(known, _)| *known == word).map(|(_, rust)| *rust);
        match (find(&SIDES), find(&FORMS), word.strip_prefix('.')) {
            (Some(found), ..) => side = found,
            (_, Some(found), _) => form = format!("Form::{found}"),
            (.., Some(variant)) => form = format!("Form::As({variant:?})"),
            _ => return Err(format!("there is no form `{word}`: use one of {}", FORMS.map(|(known, _)| known).join(", "))),
        }
    }
    let test = test.map_or(Ok("Test::Always".to_owned()), condition)?;
    let (is_verbose, word) = word.strip_prefix('-').map_or((false, word), |word| (true, word));
    let (is_behind, word) = word.strip_prefix('+').map_or((false, word), |word| (true, word));
    let (label, name) = word.split_once('=').unwrap_or((if kind == Kind::Struct { word } else { "" }, word));
    let (label, name) = name.split_once("<<").filter(|_| kind == Kind::Packed).map_or((label, name), |(name, shift)| (shift, name));
    let (name, bit) = name.split_once('&').map_or((name, None), |(name, bit)| (name, Some(bit)));
    let form = bit.map_or(form, |bit| format!("Form::Bit({bit:?})"));
    Ok(Part { name: name.to_owned(), label: label.to_owned(), side, form, test, is_verbose, is_behind })
}

/// Returns the Rust text of a condition.
fn condition(test: &str) -> Result<String, String> {
    Ok(match test {
        "nonzero" => "Test::NotZero".to_owned(),
        "always" => "Test::Unused".to_owned(),
        "device" => "Test::Device(true)".to_owned(),
        "file" => "Test::Device(false)".to_owned(),
        test => match (test.split_once("!="), test.split_once('&')) {
            (Some((member, value)), _) => format!("Test::IsNot({member:?}, {value:?})"),
            (_, Some((member, flag))) => format!("Test::Flag({member:?}, {flag:?})"),
            _ => return Err(format!("there is no condition `{test}`")),
        },
    })
}

/// Checks that what the rows name exists.
pub fn check(rows: &[FormRow], calls: &[Call], structs: &[StructRow], tables: &[EmittedTable], faults: &mut Vec<Fault>) {
    for row in rows {
        let known: Option<Vec<&str>> = match row.kind {
            // A function names what it packs.
            Kind::Packed => continue,
            Kind::Result => calls.iter().find(|call| call.name == row.name).map(|_| RESULTS.to_vec()),
            Kind::Call | Kind::When => {
                let call = calls.iter().find(|call| call.name == row.name);
                call.map(|call| call.args.iter().map(|arg| arg.name.as_str()).collect())
            }
            Kind::Struct => structs.iter().find(|one| Some(one.name.as_str()) == row.name.split('.').next()).map(|one| match &one.body {
                Body::Fields { common, own, .. } => {
                    let all = common.iter().chain(own.iter().flatten().flatten());
                    all.map(|field| field.name.as_str()).collect()
                }
                // A function names the members of what it decodes.
                Body::Decoder { .. } => row.parts.iter().map(|part| part.name.as_str()).collect(),
                Body::Unknown | Body::Number(_) => Vec::new(),
            }),
            Kind::Table | Kind::Attributes => {
                let table = tables.iter().find(|table| table.name == row.name);
                table.map(|table| table.base.entries.iter().map(|entry| entry.name.as_str()).collect())
            }
        };
        let Some(known) = known else {
            faults.push(row.location.fault(format!("there is no {} of the name {}", format!("{:?}", row.kind).to_lowercase(), row.name)));
            continue;
        };
        let is_field = |name: &str| {
            name == OTHERS
                || row.kind == Kind::Struct && ADDED.contains(&name)
                || row.kind == Kind::Table && (UNNAMED.contains(&name) || name == APART || name.ends_with(UNKNOWN))
        };
        let missing =
            row.parts.iter().filter(|part| !known.contains(&part.name.as_str()) && !is_field(&part.name) && !part.name.is_empty());
        let tested = row.tests.iter().filter(|(argument, _)| !known.contains(&argument.as_str()));
        faults.extend(tested.map(|(argument, _)| row.location.fault(format!("{} has no {argument}", row.name))));
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
    let of_kinds = [
        (Kind::Attributes, "ATTRIBUTE_FORMS", "the content of netlink attributes, by the table of their names"),
        (Kind::Struct, "STRUCT_FORMS", "structs, by name"),
        (Kind::Call, "CALL_FORMS", "arguments, by the name of the call"),
        (Kind::Packed, "PACKED_FORMS", "numbers with several values, by the name of their function"),
    ];
    for (kind, name, what) in of_kinds {
        writeln!(out, "/// How strace writes {what}.\npub static {name}: &[Parts] = &[")?;
        for row in of(kind) {
            writeln!(out, "Parts {{ name: {:?}, parts: &[{}] }},", row.name, emit_parts(row)?)?;
        }
        writeln!(out, "];")?;
    }
    writeln!(out, "/// How strace writes some arguments if others have certain values, by the name of the call.")?;
    writeln!(out, "pub static WHEN_FORMS: &[When] = &[")?;
    for row in of(Kind::When) {
        let tests: Vec<(&str, &[String])> = row.tests.iter().map(|(argument, values)| (argument.as_str(), &values[..])).collect();
        let tests: String = tests.iter().map(|(argument, values)| format!("({argument:?}, &{values:?}), ")).collect();
        writeln!(out, "When {{ name: {:?}, tests: &[{tests}], parts: &[{}] }},", row.name, emit_parts(row)?)?;
    }
    writeln!(out, "];")?;
    writeln!(
        out,
        "/// The order in which strace writes flags, by the name of their table.\npub static FLAG_ORDERS: &[(&str, &[&str])] = &["
    )?;
    for row in of(Kind::Table) {
        let names: Vec<&str> = row
            .parts
            .iter()
            .map(|part| part.name.as_str())
            .filter(|name| !UNNAMED.contains(name) && *name != APART && !name.ends_with(UNKNOWN))
            .collect();
        writeln!(out, "({:?}, &{names:?}),", row.name)?;
    }
    writeln!(out, "];")?;
    writeln!(out, "/// The names of constants that strace calls differently, and how it writes a number without a name.")?;
    writeln!(out, "pub static TABLE_FORMS: &[TableForm] = &[")?;
    for row in of(Kind::Table) {
        let names: Vec<(&str, &str)> =
            row.parts.iter().map(|part| (part.name.as_str(), part.label.as_str())).filter(|(_, label)| !label.is_empty()).collect();
        let unnamed = row.parts.iter().find(|part| UNNAMED.contains(&part.name.as_str())).map_or("", |part| part.name.as_str());
        let apart = row.parts.iter().any(|part| part.name == APART);
        let unknown = row.parts.iter().find(|part| part.name.ends_with(UNKNOWN)).map_or("", |part| part.name.as_str());
        let without: Vec<&str> = row.parts.iter().filter(|part| part.is_verbose).map(|part| part.name.as_str()).collect();
        if apart || !names.is_empty() || !unnamed.is_empty() || !without.is_empty() || !unknown.is_empty() {
            writeln!(
                out,
                "TableForm {{ name: {:?}, names: &{names:?}, unnamed: {unnamed:?}, without: &{without:?}, unknown: {unknown:?}, apart: {apart} }},",
                row.name
            )?;
        }
    }
    writeln!(out, "];")?;
    let results: Vec<(&str, &str)> =
        of(Kind::Result).iter().filter_map(|row| Some((row.name.as_str(), row.parts.first()?.name.as_str()))).collect();
    writeln!(out, "/// How strace writes the results of some calls.")?;
    writeln!(out, "pub static RESULT_FORMS: &[(&str, &str)] = &{results:?};")?;
    Ok(out)
}

fn emit_parts(row: &FormRow) -> Result<String, fmt::Error> {
    let mut out = String::new();
    for Part { name, label, side, form, test, is_verbose, is_behind } in &row.parts {
        writeln!(
            out,
            "Part {{ name: {name:?}, label: {label:?}, side: Side::{side}, form: {form}, test: {test}, is_verbose: {is_verbose}, is_behind: {is_behind} }},"
        )?;
    }
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
        let part =
            |at: usize| (row.parts[at].name.as_str(), row.parts[at].form.as_str(), row.parts[at].test.as_str(), row.parts[at].is_verbose);
        assert_eq!(part(0), ("st_dev", "Form::Plain", "Test::Always", true));
        assert_eq!(part(2), ("st_size", "Form::Plain", "Test::Device(false)", false));
        assert_eq!(part(4), ("st_atime", "Form::Date", "Test::Always", true));
        let row = parsed("call clone child_stack=newsp parent_tid=tid?flags&CLONE_PARENT_SETTID").expect("good");
        assert_eq!((row.parts[0].label.as_str(), row.parts[0].name.as_str()), ("child_stack", "newsp"));
        assert_eq!(row.parts[1].test, "Test::Flag(\"flags\", \"CLONE_PARENT_SETTID\")");
        let row = parsed("struct a bit=flags&A_B").map(|row| row.parts[0].form.clone());
        assert_eq!(row.as_deref(), Ok("Form::Bit(\"A_B\")"));
    }

    #[test]
    fn a_row_may_depend_on_the_values_of_arguments() {
        let row = parsed("when fcntl cmd==F_SETLK|F_SETLKW arg:before:.set").expect("good");
        assert_eq!(row.tests, [("cmd".to_owned(), vec!["F_SETLK".to_owned(), "F_SETLKW".to_owned()])]);
        assert_eq!((row.parts[0].side, row.parts[0].form.as_str()), ("Before", "Form::As(\"set\")"));
    }

    #[test]
    fn a_row_that_is_wrong_is_a_fault() {
        assert!(parsed("form stat").unwrap_err().contains("none of struct"));
        assert!(parsed("struct stat st_mode:red").unwrap_err().contains("there is no form `red`"));
        assert!(parsed("struct stat st_mode?red").unwrap_err().contains("there is no condition `red`"));
    }
}
