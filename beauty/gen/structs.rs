//! Rows of `structs/*.tbl`: a name, the sizes in x86-64, i386, x32 and aarch64, and the fields.

use super::condition::{self, ConditionRow};
use super::fault::{Fault, Location, Row, is_name, rows};
use super::field_type::{Count, Type, split_array, type_of};
use super::syscalls::{ArgumentRow, FlowRow};

/// The names of the ABIs in rows, in the order of the sizes.
pub const ABI_WORDS: [&str; 4] = ["x86_64", "i386", "x32", "aarch64"];

/// The units of lengths other than bytes: the words of `count=`, and the variants of `row::LengthUnit`.
const COUNTED: [(&str, &str); 7] = [
    ("bits", "Bits"),
    ("nodes", "Nodes"),
    ("files", "Files"),
    ("pages", "Pages"),
    ("tail", "Tail"),
    ("elements", "Elements"),
    ("entries", "Entries"),
];

/// Structs that the BPF programs copy with code of their own: the words of `copy=`, and the variants of
/// `row::CopyMethod`.
const COPIED: [(&str, &str); 6] =
    [("iovec", "Iovec"), ("msghdr", "Msghdr"), ("mmsghdr", "Mmsghdr"), ("pollfd", "Pollfd"), ("pointers", "Pointers"), ("fd", "Fd")];

/// The number of elements of an array that perf style shows by default, if the row has no `elements=`.
const ELEMENTS: u32 = 8;
/// The maximum number of elements that are decoded.
const ELEMENTS_MAX: u32 = 32;

#[derive(Clone, Debug)]
pub struct StructRow {
    pub location: Location,
    pub name: String,
    /// Bytes, by ABI.
    pub sizes: [u32; 4],
    /// The C header, and the struct's name there if it differs: `linux/uio.h` or `linux/stat.h:stat`.
    pub source: Option<String>,
    /// Rust code uses the struct, so that no row has to.
    pub used_by_rust: bool,
    /// The members without a meaning are plain numbers.
    pub numbers: bool,
    /// The unit of a length behind the struct's name: a variant of `row::LengthUnit`.
    pub counted: &'static str,
    /// How the BPF programs copy the struct, if not by its layout: a variant of `row::CopyMethod`.
    pub copied: &'static str,
    /// The field that contains the size of the struct; its offset is the same in all ABIs.
    pub length: Option<String>,
    /// The last field that the kernel reads of a struct that it reads and writes.
    pub asked: Option<String>,
    /// The fields that perf style shows by default; empty if it shows all fields.
    pub brief: Vec<BriefRow>,
    /// The number of elements of an array of the struct that perf style shows by default.
    pub elements: u32,
    /// The structs as which the memory is decoded for some values of a field.
    pub choices: Vec<ChoiceRow>,
    pub body: Body,
}

/// A line `sockaddr sa_family=AF_INET sockaddr_in`: the memory of a struct in which a field has one of these values is
/// another struct.
#[derive(Clone, Debug)]
pub struct ChoiceRow {
    pub location: Location,
    pub field: String,
    pub values: Vec<String>,
    pub of: String,
}

/// An entry of `brief=`: a field that perf style shows by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BriefRow {
    pub name: String,
    pub shown: ShownRow,
}

/// The condition under which perf style shows a field by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownRow {
    Always,
    /// `field?` or `field?other`: the field, or the other one, is not 0.
    NotZero(String),
    /// `field?argument&A|B`
    If(ConditionRow),
}

/// The contents of a struct.
#[derive(Clone, Debug)]
pub enum Body {
    Unknown,
    Fields {
        packed: bool,
        /// The fields in the ABIs that have none of their own, and the own fields of ABIs (`NAME@ABI`).
        common: Vec<FieldRow>,
        own: [Option<Vec<FieldRow>>; 4],
    },
    /// A single number.
    Number(Box<FieldRow>),
    /// A function of `src/beauty/decoders/`, and the alignment if it is not that of a word.
    Decoder {
        function: String,
        align: Option<u32>,
    },
}

/// A field: `name:type`, `name:type[4]`, or `name:type/meaning`.
#[derive(Clone, Debug)]
pub struct FieldRow {
    pub location: Location,
    /// The name. Fields that begin with one `_` are reserved and not shown.
    pub name: String,
    pub of: Type,
    pub count: Count,
    /// The meaning of a number, written like the kind of an argument.
    pub meaning: Option<ArgumentRow>,
    /// `Out` if the kernel writes the field and never reads it; for a pointer, this is true of the memory that it
    /// points to. `InOut` if the kernel reads the field and writes it.
    pub flow: FlowRow,
    /// The values of other fields with which the field is valid, or with which the kernel writes it; `None` for all.
    pub used: Option<ConditionRow>,
    /// The field begins where the first field of its union does (`|name:type`).
    pub overlaps: bool,
}

impl FieldRow {
    pub fn is_shown(&self) -> bool {
        !self.name.starts_with('_') || self.name.starts_with("__")
    }
}

/// Parses the structs of a file. A line that begins with a field or with `brief=` continues the struct of the line
/// before.
pub fn parse_file(file: &str, text: &str, faults: &mut Vec<Fault>) -> Vec<StructRow> {
    let mut structs: Vec<StructRow> = Vec::new();
    let mut open: Option<usize> = None;
    for row in rows(file, text) {
        let first = row.fields[0];
        let continues = first.starts_with("brief=") || first.contains(':') && !first.contains(".h");
        let result = if continues { continuation(&mut structs, open, &row) } else { first_line(&mut structs, &mut open, &row) };
        if let Err(text) = result {
            faults.push(row.location.fault(text));
        }
    }
    structs
}

/// Adds the fields of a line to the last struct, or the entries of `brief=`. `open` is the ABI whose own fields are
/// being read, if any.
fn continuation(structs: &mut [StructRow], open: Option<usize>, row: &Row) -> Result<(), String> {
    let lists: Vec<&str> = row.fields.iter().map_while(|word| word.strip_prefix("brief=")).collect();
    let fields = fields(&row.fields[lists.len()..], &row.location)?;
    let last = structs.last_mut().ok_or("fields without a struct before them")?;
    for list in lists {
        last.brief.extend(brief(list)?);
    }
    if fields.is_empty() {
        return Ok(());
    }
    match &mut last.body {
        Body::Fields { common, own, .. } => open.map_or(Some(common), |abi| own[abi].as_mut()).unwrap_or(&mut Vec::new()).extend(fields),
        Body::Unknown if open.is_none() => last.body = Body::Fields { packed: false, common: fields, own: Default::default() },
        _ => return Err(format!("{} has no fields that this line could continue", last.name)),
    }
    Ok(())
}

/// Parses the first line of a struct, or the first line of its fields in another ABI.
fn first_line(structs: &mut Vec<StructRow>, open: &mut Option<usize>, row: &Row) -> Result<(), String> {
    let (name, words) = row.fields.split_first().ok_or("the name of the struct is missing")?;
    if let [test, of] = words
        && let Some((field, values)) = test.split_once('=')
    {
        let values = values.split('|').map(str::to_string).collect();
        let choice = ChoiceRow { location: row.location.clone(), field: field.to_string(), values, of: of.to_string() };
        let last = structs.last_mut().filter(|last| last.name == **name);
        last.ok_or_else(|| format!("the choices of {name} must directly follow its fields"))?.choices.push(choice);
        return Ok(());
    }
    let Some((name, abi)) = name.split_once('@') else {
        *open = None;
        structs.push(struct_row(name, words, &row.location)?);
        return Ok(());
    };
    let abi = ABI_WORDS
        .iter()
        .position(|word| *word == abi)
        .ok_or_else(|| format!("`{abi}` is not an ABI: use one of {}", ABI_WORDS.join(", ")))?;
    match structs.last_mut() {
        Some(StructRow { name: known, body: Body::Fields { own, .. }, .. }) if known == name && own[abi].is_none() => {
            own[abi] = Some(fields(words, &row.location)?);
            *open = Some(abi);
            Ok(())
        }
        _ => Err(format!("the fields of {name} in one ABI must directly follow its fields in the others, once per ABI")),
    }
}

fn struct_row(name: &str, words: &[&str], location: &Location) -> Result<StructRow, String> {
    if !is_name(name) {
        return Err(format!("`{name}` is not a valid name of a struct"));
    }
    let sizes = words.get(..4).and_then(|sizes| sizes.iter().map(|size| size.parse().ok()).collect::<Option<Vec<u32>>>());
    let sizes = sizes.and_then(|sizes| sizes.try_into().ok());
    let sizes = sizes.ok_or_else(|| format!("{name} needs four sizes in bytes: in x86-64, i386, x32 and aarch64"))?;
    let (mut source, mut used_by_rust, mut packed, mut align, mut counted) = (None, false, false, None, "Bytes");
    let (mut copied, mut length, mut asked, mut numbers) = ("Plain", None, None, false);
    let (mut briefs, mut elements) = (Vec::new(), ELEMENTS);
    let mut rest = &words[4..];
    while let Some((word, after)) = rest.split_first() {
        match *word {
            "rust" => used_by_rust = true,
            "packed" => packed = true,
            "numbers" => numbers = true,
            word if word.starts_with("count=") => {
                let unit = COUNTED.iter().find(|(known, _)| *known == &word["count=".len()..]);
                let known = COUNTED.map(|(known, _)| known).join(", ");
                counted = unit.map(|(_, rust)| *rust).ok_or_else(|| format!("`{word}` is not known: use one of {known}"))?;
            }
            word if word.starts_with("copy=") => {
                let special = COPIED.iter().find(|(known, _)| *known == &word["copy=".len()..]);
                let known = COPIED.map(|(known, _)| known).join(", ");
                copied = special.map(|(_, rust)| *rust).ok_or_else(|| format!("`{word}` is not known: use one of {known}"))?;
            }
            word if word.starts_with("length=") => length = Some(word["length=".len()..].to_string()),
            word if word.starts_with("asks=") => asked = Some(word["asks=".len()..].to_string()),
            word if word.starts_with("brief=") => briefs.extend(brief(&word["brief=".len()..])?),
            word if word.starts_with("elements=") => {
                let count = word["elements=".len()..].parse().ok().filter(|count| (1..=ELEMENTS_MAX).contains(count));
                elements = count.ok_or_else(|| format!("`{word}` is not a number of elements: use 1 to {ELEMENTS_MAX}"))?;
            }
            word if word.contains(".h") => source = Some(word.to_string()),
            word if word.starts_with("align=") => {
                let power = word["align=".len()..].parse().ok().filter(|align: &u32| align.is_power_of_two());
                align = Some(power.ok_or_else(|| format!("`{word}` is not an alignment: use a power of two"))?);
            }
            _ => break,
        }
        rest = after;
    }
    let body = match rest {
        [] if packed => Body::Fields { packed, common: Vec::new(), own: Default::default() },
        [] => Body::Unknown,
        [decoder] if decoder.starts_with("decoder.") => Body::Decoder { function: decoder["decoder.".len()..].to_string(), align },
        [number] if !number.contains(':') => Body::Number(Box::new(field_row("value", number, location)?)),
        _ => Body::Fields { packed, common: fields(rest, location)?, own: Default::default() },
    };
    if align.is_some() && !matches!(body, Body::Decoder { .. }) {
        return Err(format!("{name}: `align=` is only for structs with a decoder"));
    }
    Ok(StructRow {
        location: location.clone(),
        name: name.to_string(),
        sizes,
        source,
        used_by_rust,
        numbers,
        counted,
        copied,
        length,
        asked,
        brief: briefs,
        elements,
        choices: Vec::new(),
        body,
    })
}

/// Parses the text after `brief=`: fields that are separated by commas, each with or without a condition.
fn brief(list: &str) -> Result<Vec<BriefRow>, String> {
    let entry = |entry: &str| {
        let (name, test) = entry.split_once('?').map_or((entry, None), |(name, test)| (name, Some(test)));
        if !is_name(name) {
            return Err(format!("brief=: `{entry}` should be `field`, `field?`, `field?other` or `field?argument&A|B`"));
        }
        let shown = match test {
            None => ShownRow::Always,
            Some("") => ShownRow::NotZero(name.to_string()),
            Some(other) if is_name(other) => ShownRow::NotZero(other.to_string()),
            Some(test) => ShownRow::If(condition::parse(test)?),
        };
        Ok(BriefRow { name: name.to_string(), shown })
    };
    list.split(',').map(entry).collect()
}

fn fields(words: &[&str], location: &Location) -> Result<Vec<FieldRow>, String> {
    let (mut fields, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        let (name, text) = word.split_once(':').ok_or_else(|| format!("`{word}` should be `field:type`"))?;
        let (name, overlaps) = name.strip_prefix('|').map_or((name, false), |name| (name, true));
        if !is_name(name) {
            return Err(format!("`{name}` is not a valid name of a field"));
        }
        let flow = match text {
            "out" => FlowRow::Out,
            "inout" => FlowRow::InOut,
            _ => FlowRow::In,
        };
        let of = if flow == FlowRow::In { text } else { words.next().ok_or_else(|| format!("no type after `{word}`"))? };
        fields.push(FieldRow { flow, overlaps, ..field_row(name, of, location)? });
    }
    Ok(fields)
}

/// Parses a field's type, and the meaning after a slash.
pub fn field_row(name: &str, text: &str, location: &Location) -> Result<FieldRow, String> {
    let (text, used) = text.split_once('?').map_or((text, None), |(text, used)| (text, Some(used)));
    let (of, meaning) = text.split_once('/').map_or((text, None), |(of, meaning)| (of, Some(meaning)));
    let (word, count) = split_array(of)?;
    let meaning = meaning.map(|meaning| ArgumentRow::of_field(name, meaning)).transpose()?;
    let used = used.map(condition::parse).transpose()?;
    let of = type_of(word)?;
    if meaning.is_some() && !matches!(of, Type::Number { .. }) {
        return Err(format!("{name}: `{word}` is not a number, so it cannot have a meaning after `/`"));
    }
    Ok(FieldRow { location: location.clone(), name: name.to_string(), of, count, meaning, flow: FlowRow::In, used, overlaps: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<StructRow>, String> {
        let mut faults = Vec::new();
        let rows = parse_file("s.tbl", text, &mut faults);
        faults.first().map_or(Ok(rows), |fault| Err(fault.to_string()))
    }

    #[test]
    fn a_struct_may_have_sizes_only() {
        let rows = parsed("timespec 16 8 16 16 # x\nmsgbuf 8 4 8 8 linux/msg.h").expect("good");
        assert_eq!((rows[0].sizes, rows[1].source.as_deref()), ([16, 8, 16, 16], Some("linux/msg.h")));
        assert!(matches!(rows[0].body, Body::Unknown));
    }

    #[test]
    fn fields_continue_in_further_lines_and_differ_per_abi() {
        let rows = parsed("a 16 8 16 16 x.h:b  f:long\n  g:u32/hex _:u32\na@i386 f:u16\n h:u16\nb 1 1 1 1 u8/hex\nc 8 8 8 8 decoder.c")
            .expect("good");
        let Body::Fields { common, own, packed: false } = &rows[0].body else { panic!("{rows:?}") };
        assert_eq!(
            common.iter().map(|field| (field.name.as_str(), field.is_shown())).collect::<Vec<_>>(),
            [("f", true), ("g", true), ("_", false)]
        );
        assert_eq!(common[1].meaning.as_ref().map(|meaning| meaning.kind.as_str()), Some("hex"));
        assert_eq!(own[1].as_ref().map(Vec::len), Some(2));
        let rows_out = parsed("a 12 12 12 12 f:out u32/hex g:inout u32 h:u32 |i:out u16").expect("good");
        let Body::Fields { common, .. } = &rows_out[0].body else { panic!("{rows_out:?}") };
        let attributes = common.iter().map(|field| (field.flow, field.overlaps)).collect::<Vec<_>>();
        assert_eq!(attributes, [(FlowRow::Out, false), (FlowRow::InOut, false), (FlowRow::In, false), (FlowRow::Out, true)]);
        assert!(matches!(&rows[1].body, Body::Number(_)) && matches!(&rows[2].body, Body::Decoder { function, .. } if function == "c"));
    }

    #[test]
    fn brief_names_fields_and_conditions_in_any_number_of_lists() {
        let rows =
            parsed("a 8 8 8 8 brief=f,g? elements=2 brief=h?f\n brief=i?flags&A|B f:u16\n g:u16 h:u16 i:u16\nb 1 1 1 1").expect("good");
        let shown: Vec<_> = rows[0].brief.iter().map(|entry| (entry.name.as_str(), &entry.shown)).collect();
        let tested = ShownRow::If(condition::parse("flags&A|B").expect("good"));
        assert_eq!(
            shown,
            [("f", &ShownRow::Always), ("g", &ShownRow::NotZero("g".into())), ("h", &ShownRow::NotZero("f".into())), ("i", &tested)]
        );
        let Body::Fields { common, .. } = &rows[0].body else { panic!("{rows:?}") };
        assert_eq!(common.len(), 4);
        assert_eq!((rows[0].elements, rows[1].elements, rows[1].brief.len()), (2, 8, 0));
    }

    #[test]
    fn a_field_may_choose_another_struct() {
        let rows = parsed("a 8 8 8 8 f:u16 _:byte[6]\na f=1|X b\na f=2 c").expect("good");
        let choices = rows[0].choices.iter().map(|choice| (choice.field.as_str(), choice.values.join(" "), choice.of.as_str()));
        assert_eq!(choices.collect::<Vec<_>>(), [("f", "1 X".to_string(), "b"), ("f", "2".to_string(), "c")]);
        assert_eq!(parsed("a f=1 b").err(), Some("s.tbl:1: the choices of a must directly follow its fields".into()));
    }

    #[test]
    fn faults_name_the_line_and_the_problem() {
        for (text, expected) in [
            ("timespec 16 8 16", "s.tbl:1: timespec needs four sizes"),
            ("timespec 16 8 x 16", "s.tbl:1: timespec needs four sizes"),
            ("1x 1 1 1 1", "s.tbl:1: `1x` is not a valid name of a struct"),
            ("f:long", "s.tbl:1: fields without a struct before them"),
            ("a 1 1 1 1 f:long x", "s.tbl:1: `x` should be `field:type`"),
            ("a 1 1 1 1 f-:long", "s.tbl:1: `f-` is not a valid name of a field"),
            ("a 1 1 1 1 f:u32[", "s.tbl:1: `u32[` has no closing bracket"),
            ("a 1 1 1 1 f:out", "s.tbl:1: no type after `f:out`"),
            ("a 1 1 1 1 f:u32/hex?g", "s.tbl:1: `?g` is not a condition"),
            ("a 1 1 1 1 f:char[4]/hex", "s.tbl:1: f: `char` is not a number"),
            ("a 1 1 1 1 f:u32/a-b", "s.tbl:1: `a-b` is not a kind"),
            ("a 1 1 1 1 f:u32\na@vax f:u32", "s.tbl:2: `vax` is not an ABI"),
            ("a 1 1 1 1\na@i386 f:u32", "s.tbl:2: the fields of a in one ABI must directly follow its fields in the others"),
            ("a 1 1 1 1 decoder.a\n f:u32", "s.tbl:2: a has no fields that this line could continue"),
            ("a 1 1 1 1 align=3 decoder.a", "s.tbl:1: `align=3` is not an alignment"),
            ("a 1 1 1 1 count=bytes", "s.tbl:1: `count=bytes` is not known: use one of bits"),
            ("a 1 1 1 1 copy=all", "s.tbl:1: `copy=all` is not known: use one of iovec"),
            ("a 1 1 1 1 align=4 f:u32", "s.tbl:1: a: `align=` is only for structs with a decoder"),
            ("a 1 1 1 1 brief=f,,g f:u32", "s.tbl:1: brief=: `` should be `field`"),
            ("a 1 1 1 1 brief=f-g f:u32", "s.tbl:1: brief=: `f-g` should be `field`"),
            ("a 1 1 1 1 brief=f?g& f:u32", "s.tbl:1: `?g&` is not a condition"),
            ("brief=f", "s.tbl:1: fields without a struct before them"),
            ("a 1 1 1 1 elements=0 f:u32", "s.tbl:1: `elements=0` is not a number of elements: use 1 to 32"),
            ("a 1 1 1 1 elements=33 f:u32", "s.tbl:1: `elements=33` is not a number of elements: use 1 to 32"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
