//! A tracepoint's format file (`events/SUBSYSTEM/NAME/format` in tracefs): the fields of its records.
//!
//! This module parses the text only. [`super::field`] reads values out of records, [`super::print_fmt`] the `print
//! fmt:` line. The text may come from a recording of another machine: any text yields a format or an error, never a
//! panic.

use super::ctype::CType;

/// A parsed format file.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Format {
    /// The event's name without its subsystem.
    pub name: String,
    /// The event's number, the value for perf_event_open's `config`.
    pub id: u64,
    /// All fields, `common_*` first.
    pub fields: Vec<FormatField>,
    /// The `print fmt:` line, unparsed.
    pub print: String,
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FormatField {
    /// The name, `common_*` for the fields that every record begins with.
    pub name: String,
    /// The C type in the file's spelling, without array brackets (but `__data_loc char[]` has them).
    pub type_name: String,
    /// In bytes from the record's start.
    pub offset: u32,
    /// In bytes: of an array as a whole, and of a `__data_loc` or `__rel_loc` field without the bytes that it refers
    /// to.
    pub size: u32,
    /// Whether the number is signed; for an array, whether its elements are.
    pub signed: bool,
    /// The number of elements of an array of fixed length; 0 for one that extends to the record's end.
    pub array: Option<u32>,
    /// Where the value is: in the field itself, or elsewhere in the record.
    pub place: FieldPlace,
}

/// The place of a field's bytes in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FieldPlace {
    /// At the field's offset.
    Here,
    /// `__data_loc`: the field has length << 16 | offset from the record's start.
    DataLoc,
    /// `__rel_loc`: the field has length << 16 | offset from the end of this field.
    RelLoc,
}

/// The reason why a format file cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the event's format file: {what}")]
pub struct FormatError {
    /// The line number, from 1 on.
    pub line: usize,
    /// The problem, as a clause that follows the line number in the message.
    pub what: String,
}

impl Format {
    /// Parses the text of a format file.
    ///
    /// # Errors
    /// Fails if the name or the id is missing, or a field's line has no type, name, offset or size.
    pub fn parse(text: &str) -> Result<Format, FormatError> {
        let mut format = Format::default();
        let mut id = None;
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let fail = |what: String| FormatError { line: index + 1, what };
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = Some(number.trim().parse().map_err(|_| fail(format!("`{}` is not a number", number.trim())))?);
            } else if let Some(field) = line.strip_prefix("field:") {
                format.fields.push(parse_field(field).map_err(fail)?);
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                format.print = print.trim().to_owned();
                for (_, more) in lines.by_ref() {
                    format.print.push('\n');
                    format.print.push_str(more);
                }
                format.print.truncate(format.print.trim_end().len());
            }
        }
        let missing = |what: &str| FormatError { line: text.lines().count().max(1), what: format!("the file ends without `{what}`") };
        if format.name.is_empty() {
            return Err(missing("name:"));
        }
        format.id = id.ok_or_else(|| missing("ID:"))?;
        Ok(format)
    }

    /// Returns the field with a name.
    pub fn field(&self, name: &str) -> Option<&FormatField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the event's own fields, without the `common_*` ones that all events have.
    pub fn own_fields(&self) -> impl Iterator<Item = &FormatField> {
        self.fields.iter().filter(|field| !field.is_common())
    }
}

impl FormatField {
    /// Whether it is one of the `common_*` fields that every record begins with.
    pub fn is_common(&self) -> bool {
        self.name.starts_with("common_")
    }

    /// Whether it is a string: an array of char, at the field's offset or at another place of the record.
    pub fn is_text(&self) -> bool {
        (self.array.is_some() || self.place != FieldPlace::Here) && self.ctype() == CType::Char
    }

    /// Returns the kind of C type of its value, or of each of its elements.
    pub fn ctype(&self) -> CType {
        let element = self.type_name.trim_start_matches("__data_loc").trim_start_matches("__rel_loc");
        // A probe's field for two texts is `__data_loc char[][2]`.
        CType::of(element.split('[').next().unwrap_or(element))
    }
}

/// Parses the line of a field, without the leading `field:`: `TYPE NAME[N];\toffset:O;\tsize:S;\tsigned:B;`.
fn parse_field(line: &str) -> Result<FormatField, String> {
    let mut parts = line.split(';');
    let declaration = parts.next().unwrap_or_default().trim();
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        let Some((key, value)) = part.trim().split_once(':') else { continue };
        let number =
            || value.trim().parse::<u32>().map_err(|_| format!("`{}` of `{declaration}` is not a number: `{}`", key, value.trim()));
        match key {
            "offset" => offset = Some(number()?),
            "size" => size = Some(number()?),
            "signed" => signed = number()? != 0,
            _ => {}
        }
    }
    let offset = offset.ok_or_else(|| format!("`{declaration}` has no offset"))?;
    let size = size.ok_or_else(|| format!("`{declaration}` has no size"))?;
    let (type_name, name, brackets) = split_declaration(declaration).ok_or_else(|| format!("`{declaration}` has no type and name"))?;
    let place = match type_name.split_whitespace().next() {
        Some("__data_loc") => FieldPlace::DataLoc,
        Some("__rel_loc") => FieldPlace::RelLoc,
        _ => FieldPlace::Here,
    };
    let mut field = FormatField { name: name.to_owned(), type_name, offset, size, signed, array: None, place };
    field.array = brackets.map(|brackets| element_count(brackets, &field));
    Ok(field)
}

/// Splits a declaration into type, name and, for arrays, the text from the first bracket on (`[16]`).
fn split_declaration(declaration: &str) -> Option<(String, &str, Option<&str>)> {
    if let Some((before, rest)) = declaration.split_once("(*") {
        // A pointer to a function: `void (*name)(int)`.
        let (name, after) = rest.split_once(')')?;
        let name = name.trim();
        return (is_name(name) && !before.trim().is_empty()).then(|| (format!("{before}(*){after}"), name, None));
    }
    // `__data_loc char[] name` has its brackets before the name, an ordinary array after it.
    let (head, brackets) = match declaration.find('[') {
        Some(at) if declaration.trim_end().ends_with(']') => (declaration[..at].trim_end(), Some(declaration[at..].trim())),
        _ => (declaration, None),
    };
    let name_at = head.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    // Only a damaged file has characters of several bytes here; `rfind` yields the start of one, so `name_at` may be
    // inside it.
    let (type_name, name) = head.is_char_boundary(name_at).then(|| head.split_at(name_at))?;
    let type_name = type_name.trim();
    (is_name(name) && !type_name.is_empty()).then(|| (type_name.to_owned(), name, brackets))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns the number of elements of an array with brackets such as `[2][3]`. If a length is not a number
/// (`[TASK_COMM_LEN]` in some modules), it is computed from the size.
fn element_count(brackets: &str, field: &FormatField) -> u32 {
    let lengths = brackets.trim_matches(['[', ']']).split("][").map(|length| length.trim().parse::<u32>().ok());
    let product = lengths.into_iter().try_fold(1u32, |product, length| product.checked_mul(length?));
    match product {
        Some(count) if count == 0 || field.size.is_multiple_of(count) => count,
        _ => match field.ctype().bytes() {
            Some(bytes) => field.size / u32::from(bytes),
            None => 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHED_SWITCH: &str = include_str!("fixtures/sched_switch.format");

    #[test]
    fn a_format_file_is_parsed() {
        let format = Format::parse(SCHED_SWITCH).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_switch", 372));
        assert_eq!(format.fields.len(), 11);
        assert_eq!(format.own_fields().next().unwrap().name, "prev_comm");
        assert!(format.print.starts_with("\"prev_comm=%s") && format.print.ends_with("REC->next_prio"));
        let comm = format.field("next_comm").unwrap();
        assert_eq!((comm.type_name.as_str(), comm.offset, comm.size, comm.array), ("char", 40, 16, Some(16)));
    }

    fn field(declaration: &str, size: u32) -> FormatField {
        parse_field(&format!("{declaration};\toffset:8;\tsize:{size};\tsigned:0;")).unwrap()
    }

    #[test]
    fn all_forms_of_declarations_are_parsed() {
        let args = field("unsigned long args[6]", 48);
        assert_eq!((args.type_name.as_str(), args.name.as_str(), args.array), ("unsigned long", "args", Some(6)));
        let name = field("__data_loc char[] name", 4);
        assert_eq!((name.type_name.as_str(), name.array, name.place), ("__data_loc char[]", None, FieldPlace::DataLoc));
        let rel = field("__rel_loc u64[] addrs", 4);
        assert_eq!((rel.name.as_str(), rel.place, rel.ctype()), ("addrs", FieldPlace::RelLoc, CType::Unsigned(8)));
        let argv = field("const char *const * argv", 8);
        assert_eq!((argv.type_name.as_str(), argv.name.as_str(), argv.ctype()), ("const char *const *", "argv", CType::Pointer));
        let attr = field("const void *const attr", 8);
        assert_eq!((attr.name.as_str(), attr.ctype()), ("attr", CType::Pointer));
        let function = field("void (*fn)(struct work *)", 8);
        assert_eq!((function.name.as_str(), function.ctype()), ("fn", CType::Pointer));
        assert_eq!(field("char buf[]", 0).array, Some(0));
        assert_eq!(field("u32 pairs[4][2]", 32).array, Some(8));
        assert_eq!(field("u32 pairs[SOME_LENGTH]", 32).array, Some(8));
        assert_eq!(field("enum zone_type zone", 4).type_name, "enum zone_type");
    }

    #[test]
    fn errors_name_the_line_and_the_problem() {
        let error = |text: &str| Format::parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "line 1 of the event's format file: the file ends without `name:`");
        assert_eq!(error("name: x\nID: zwei\n"), "line 2 of the event's format file: `zwei` is not a number");
        assert_eq!(error("name: x\nID: 1\n\tfield:int a;\tsize:4;\n"), "line 3 of the event's format file: `int a` has no offset");
        assert_eq!(
            error("name: x\nID: 1\n\tfield:int;\toffset:0;\tsize:4;\n"),
            "line 3 of the event's format file: `int` has no type and name"
        );
        assert_eq!(
            error("name: x\nID: 1\n\tfield:int a;\toffset:0;\tsize:99999999999;\n"),
            "line 3 of the event's format file: `size` of `int a` is not a number: `99999999999`"
        );
    }

    proptest::proptest! {
        #[test]
        fn random_text_causes_no_panic(text in "(name: x\nID: 1\n)?(\tfield:[a-z_ *\\[\\]0-9()é]{0,20};\toffset:[0-9]{1,11};\tsize:[0-9]{1,11};\n){0,3}\\PC{0,40}") {
            let _ = Format::parse(&text);
        }
    }
}
