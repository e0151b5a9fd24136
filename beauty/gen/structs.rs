//! Rows of `structs/*.tbl`: a name, its bytes in x86-64, i386, x32 and aarch64, and what it is made of.

use super::fault::{Fault, Place, Row, is_name, rows};
use super::field_type::{Count, Type, split_array, type_of};
use super::syscalls::ArgumentRow;

/// The ABIs as rows write them, in the order of the sizes.
pub const ABI_WORDS: [&str; 4] = ["x86_64", "i386", "x32", "aarch64"];

/// What lengths count, if not bytes.
const COUNTED: [(&str, &str); 5] = [("bits", "Bits"), ("nodes", "Nodes"), ("pages", "Pages"), ("tail", "Tail"), ("entries", "Entries")];

/// Structs that the BPF programs know by themselves.
const COPIED: [(&str, &str); 5] =
    [("iovec", "Iovec"), ("msghdr", "Msghdr"), ("mmsghdr", "Mmsghdr"), ("pollfd", "Pollfd"), ("command", "Command")];

#[derive(Clone, Debug)]
pub struct StructRow {
    pub place: Place,
    pub name: String,
    pub sizes: [u32; 4],
    /// `linux/uio.h` or `linux/stat.h:stat`: where C finds it, and what it is called there.
    pub source: Option<String>,
    /// Rust code names it, so that no row needs to.
    pub used_by_rust: bool,
    /// What a length behind the struct's name counts: the name of a variant of `row::Counted`.
    pub counted: &'static str,
    /// How it is copied, where its layout does not say it: the name of a variant of `row::Copied`.
    pub copied: &'static str,
    /// The field that says how long it is.
    pub length: Option<String>,
    /// The last field that the kernel reads of what it reads and writes.
    pub asked: Option<String>,
    pub body: Body,
}

/// What is known of a struct's inside.
#[derive(Clone, Debug)]
pub enum Body {
    Unknown,
    Fields {
        packed: bool,
        /// The fields of an ABI for which the row says nothing else, and those of the ABIs (`NAME@ABI`) that differ.
        common: Vec<FieldRow>,
        own: [Option<Vec<FieldRow>>; 4],
    },
    /// It is one number.
    Number(FieldRow),
    /// A function of `src/beauty/decoders/`, and the alignment where it is not that of a word.
    Decoder {
        function: String,
        align: Option<u32>,
    },
}

/// `name:type`, `name:type[4]`, `name:type/meaning`.
#[derive(Clone, Debug)]
pub struct FieldRow {
    pub place: Place,
    /// Begins with `_` if nobody wants to see it.
    pub name: String,
    pub of: Type,
    pub count: Count,
    /// What the number is, in the words for arguments.
    pub meaning: Option<ArgumentRow>,
    /// The kernel writes it and never reads it; of a pointer, what it points to.
    pub written: bool,
}

impl FieldRow {
    pub fn is_shown(&self) -> bool {
        !self.name.starts_with('_')
    }
}

/// The structs of a file. Fields may go on in the next lines, which begin with a field.
pub fn parse_file(file: &str, text: &str, faults: &mut Vec<Fault>) -> Vec<StructRow> {
    let mut structs: Vec<StructRow> = Vec::new();
    let mut open: Option<usize> = None;
    for row in rows(file, text) {
        let continues = row.fields[0].contains(':') && !row.fields[0].contains(".h");
        let result = if continues { goes_on(&mut structs, open, &row) } else { begins(&mut structs, &mut open, &row) };
        if let Err(text) = result {
            faults.push(row.place.fault(text));
        }
    }
    structs
}

fn goes_on(structs: &mut [StructRow], open: Option<usize>, row: &Row) -> Result<(), String> {
    let fields = fields(&row.fields, &row.place)?;
    let last = structs.last_mut().ok_or("fields without a struct before them")?;
    match &mut last.body {
        Body::Fields { common, own, .. } => open.map_or(Some(common), |abi| own[abi].as_mut()).unwrap_or(&mut Vec::new()).extend(fields),
        Body::Unknown if open.is_none() => last.body = Body::Fields { packed: false, common: fields, own: Default::default() },
        _ => return Err(format!("{} is no struct of fields", last.name)),
    }
    Ok(())
}

/// A struct's first line, or the first of those that tell how it is in another ABI.
fn begins(structs: &mut Vec<StructRow>, open: &mut Option<usize>, row: &Row) -> Result<(), String> {
    let (name, said) = row.fields.split_first().ok_or("a struct needs a name")?;
    let Some((name, abi)) = name.split_once('@') else {
        *open = None;
        structs.push(plain(name, said, &row.place)?);
        return Ok(());
    };
    let abi = ABI_WORDS.iter().position(|word| *word == abi).ok_or_else(|| format!("`{abi}` is no ABI: {}", ABI_WORDS.join(", ")))?;
    match structs.last_mut() {
        Some(StructRow { name: known, body: Body::Fields { own, .. }, .. }) if known == name && own[abi].is_none() => {
            own[abi] = Some(fields(said, &row.place)?);
            *open = Some(abi);
            Ok(())
        }
        _ => Err(format!("the fields of {name} in one ABI must follow those of the others, once")),
    }
}

fn plain(name: &str, said: &[&str], place: &Place) -> Result<StructRow, String> {
    if !is_name(name) {
        return Err(format!("`{name}` cannot be a struct's name"));
    }
    let sizes = said.get(..4).and_then(|sizes| sizes.iter().map(|size| size.parse().ok()).collect::<Option<Vec<u32>>>());
    let sizes = sizes.and_then(|sizes| sizes.try_into().ok());
    let sizes = sizes.ok_or_else(|| format!("{name} needs four sizes: bytes in x86-64, i386, x32 and aarch64"))?;
    let (mut source, mut used_by_rust, mut packed, mut align, mut counted) = (None, false, false, None, "Bytes");
    let (mut copied, mut length, mut asked) = ("Plain", None, None);
    let mut rest = &said[4..];
    while let Some((word, after)) = rest.split_first() {
        match *word {
            "rust" => used_by_rust = true,
            "packed" => packed = true,
            word if word.starts_with("count=") => {
                let said = COUNTED.iter().find(|(known, _)| *known == &word["count=".len()..]);
                counted = said
                    .map(|(_, rust)| *rust)
                    .ok_or_else(|| format!("`{word}`: a length counts bits, nodes, pages, the tail or entries"))?;
            }
            word if word.starts_with("copy=") => {
                let said = COPIED.iter().find(|(known, _)| *known == &word["copy=".len()..]);
                let known = COPIED.map(|(known, _)| known).join(", ");
                copied = said.map(|(_, rust)| *rust).ok_or_else(|| format!("`{word}`: the BPF programs know {known}"))?;
            }
            word if word.starts_with("length=") => length = Some(word["length=".len()..].to_string()),
            word if word.starts_with("asks=") => asked = Some(word["asks=".len()..].to_string()),
            word if word.contains(".h") => source = Some(word.to_string()),
            word if word.starts_with("align=") => {
                let said = word["align=".len()..].parse().ok().filter(|align: &u32| align.is_power_of_two());
                align = Some(said.ok_or_else(|| format!("`{word}` is no alignment"))?);
            }
            _ => break,
        }
        rest = after;
    }
    let body = match rest {
        [] if packed => Body::Fields { packed, common: Vec::new(), own: Default::default() },
        [] => Body::Unknown,
        [decoder] if decoder.starts_with("decoder.") => Body::Decoder { function: decoder["decoder.".len()..].to_string(), align },
        [number] if !number.contains(':') => Body::Number(typed("value", number, place)?),
        _ => Body::Fields { packed, common: fields(rest, place)?, own: Default::default() },
    };
    if align.is_some() && !matches!(body, Body::Decoder { .. }) {
        return Err(format!("{name}: only what has a decoder needs `align=`"));
    }
    Ok(StructRow { place: place.clone(), name: name.to_string(), sizes, source, used_by_rust, counted, copied, length, asked, body })
}

fn fields(words: &[&str], place: &Place) -> Result<Vec<FieldRow>, String> {
    let (mut fields, mut words) = (Vec::new(), words.iter());
    while let Some(word) = words.next() {
        let (name, said) = word.split_once(':').ok_or_else(|| format!("`{word}` should be `field:type`"))?;
        if !is_name(name) {
            return Err(format!("`{name}` cannot be a field's name"));
        }
        let written = said == "out";
        let of = if written { words.next().ok_or_else(|| format!("`{word}` has no type after it"))? } else { said };
        let field = FieldRow { written, ..typed(name, of, place)? };
        if !written && field.meaning.as_ref().is_some_and(|meaning| meaning.used.is_some()) {
            return Err(format!("{name}: `?` says when the kernel writes a field, and this one is not `out`"));
        }
        fields.push(field);
    }
    Ok(fields)
}

fn typed(name: &str, text: &str, place: &Place) -> Result<FieldRow, String> {
    let (of, meaning) = text.split_once('/').map_or((text, None), |(of, meaning)| (of, Some(meaning)));
    let (word, count) = split_array(of)?;
    let meaning = meaning.map(|meaning| ArgumentRow::of_field(name, meaning)).transpose()?;
    let of = type_of(word)?;
    if meaning.is_some() && !matches!(of, Type::Number { .. }) {
        return Err(format!("{name}: `{word}` is no number, so that nothing can be said of it after `/`"));
    }
    Ok(FieldRow { place: place.clone(), name: name.to_string(), of, count, meaning, written: false })
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
    fn fields_go_on_in_further_lines_and_differ_per_abi() {
        let rows = parsed("a 16 8 16 16 x.h:b  f:long\n  g:u32/hex _:u32\na@i386 f:u16\n h:u16\nb 1 1 1 1 u8/hex\nc 8 8 8 8 decoder.c")
            .expect("good");
        let Body::Fields { common, own, packed: false } = &rows[0].body else { panic!("{rows:?}") };
        assert_eq!(
            common.iter().map(|field| (field.name.as_str(), field.is_shown())).collect::<Vec<_>>(),
            [("f", true), ("g", true), ("_", false)]
        );
        assert_eq!(common[1].meaning.as_ref().map(|meaning| meaning.kind.as_str()), Some("hex"));
        assert_eq!(own[1].as_ref().map(Vec::len), Some(2));
        let rows_out = parsed("a 8 8 8 8 f:out u32/hex g:u32").expect("good");
        let Body::Fields { common, .. } = &rows_out[0].body else { panic!("{rows_out:?}") };
        assert_eq!(common.iter().map(|field| field.written).collect::<Vec<_>>(), [true, false]);
        assert!(matches!(&rows[1].body, Body::Number(_)) && matches!(&rows[2].body, Body::Decoder { function, .. } if function == "c"));
    }

    #[test]
    fn bad_rows_say_where_and_what() {
        for (text, said) in [
            ("timespec 16 8 16", "s.tbl:1: timespec needs four sizes"),
            ("timespec 16 8 x 16", "s.tbl:1: timespec needs four sizes"),
            ("1x 1 1 1 1", "s.tbl:1: `1x` cannot be a struct's name"),
            ("f:long", "s.tbl:1: fields without a struct before them"),
            ("a 1 1 1 1 f:long x", "s.tbl:1: `x` should be `field:type`"),
            ("a 1 1 1 1 f-:long", "s.tbl:1: `f-` cannot be a field's name"),
            ("a 1 1 1 1 f:u32[", "s.tbl:1: `u32[` has an open bracket"),
            ("a 1 1 1 1 f:out", "s.tbl:1: `f:out` has no type after it"),
            ("a 1 1 1 1 f:u32/hex?g&1 g:u32", "s.tbl:1: f: `?` says when the kernel writes a field"),
            ("a 1 1 1 1 f:char[4]/hex", "s.tbl:1: f: `char` is no number"),
            ("a 1 1 1 1 f:u32/a-b", "s.tbl:1: `a-b` is no kind"),
            ("a 1 1 1 1 f:u32\na@vax f:u32", "s.tbl:2: `vax` is no ABI"),
            ("a 1 1 1 1\na@i386 f:u32", "s.tbl:2: the fields of a in one ABI must follow"),
            ("a 1 1 1 1 decoder.a\n f:u32", "s.tbl:2: a is no struct of fields"),
            ("a 1 1 1 1 align=3 decoder.a", "s.tbl:1: `align=3` is no alignment"),
            ("a 1 1 1 1 count=bytes", "s.tbl:1: `count=bytes`: a length counts bits"),
            ("a 1 1 1 1 copy=all", "s.tbl:1: `copy=all`: the BPF programs know iovec"),
            ("a 1 1 1 1 align=4 f:u32", "s.tbl:1: a: only what has a decoder"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.starts_with(said), "{error}");
        }
    }
}
