//! The kinds of arguments and return values: basic kinds, and the tables, structs and functions that rows may name.

use super::syscalls::{ArgumentRow, FlowRow, LengthRow};
use std::collections::BTreeSet;

/// The names that a row may use as kinds, in addition to the basic kinds.
#[derive(Default)]
pub struct Vocabulary {
    pub tables: BTreeSet<String>,
    pub structs: BTreeSet<String>,
    /// Functions of `src/beauty/custom.rs`.
    pub custom: BTreeSet<String>,
    /// Functions of `src/beauty/decoders/`.
    pub decoders: BTreeSet<String>,
}

/// The kind of an argument, from which a `row::ArgumentKind` is emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A basic kind: the name of a variant without data.
    Plain(&'static str),
    Table(String),
    Struct(String),
    StructArray(String),
    Number {
        bytes: u8,
        signed: bool,
    },
    Custom(String),
}

impl ArgumentKind {
    /// Returns whether the kind is only the type of a number or of a pointer to numbers.
    pub fn is_type_of_number(&self) -> bool {
        match self {
            ArgumentKind::Plain(kind) => ["Int", "Uint", "Long", "Ulong", "Hex"].contains(kind),
            ArgumentKind::Custom(function) => function == "hex32",
            ArgumentKind::Struct(_) | ArgumentKind::Number { .. } => true,
            ArgumentKind::Table(_) | ArgumentKind::StructArray(_) => false,
        }
    }
}

/// The kind of a return value, from which a `row::Return` is emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Return {
    Plain(&'static str),
    Table(String),
    /// A function of `src/beauty/custom.rs`.
    Custom(String),
}

/// Basic kinds whose value is in the register itself: the word of rows, and the variant of `row::ArgumentKind`.
const SCALARS: [(&str, &str); 18] = [
    ("int", "Int"),
    ("uint", "Uint"),
    ("long", "Long"),
    ("ulong", "Ulong"),
    ("hex", "Hex"),
    ("size", "Size"),
    ("offset", "Offset"),
    ("loff", "Loff"),
    ("fd", "Fd"),
    ("dirfd", "DirFd"),
    ("pid", "Pid"),
    ("uid", "Uid"),
    ("gid", "Gid"),
    ("signal", "Signal"),
    ("mode", "Mode"),
    ("dev", "Dev"),
    ("port", "Port"),
    ("address", "Address"),
];

/// Basic kinds of memory that the register points to: the word of rows, and the variant of `row::ArgumentKind`.
const POINTERS: [(&str, &str); 5] = [("path", "Path"), ("str", "Str"), ("bytes", "Bytes"), ("strings", "StrArray"), ("pointer", "Pointer")];

/// Basic kinds of return values: the word of rows, and the variant of `row::Return`.
const RETURNS: [(&str, &str); 15] = [
    ("int", "Int"),
    ("int32", "Int32"),
    ("uint", "Uint"),
    ("long", "Long"),
    ("size", "Size"),
    ("offset", "Offset"),
    ("hex", "Hex"),
    ("address", "Address"),
    ("fd", "Fd"),
    ("pid", "Pid"),
    ("uid", "Uid"),
    ("gid", "Gid"),
    ("mode", "Mode"),
    ("ready", "Ready"),
    ("never", "Never"),
];

fn lookup(list: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == word).map(|&(_, rust)| rust)
}

/// Returns the word of rows for a kind.
pub fn word(kind: &ArgumentKind) -> String {
    let basic = |rust: &str| SCALARS.iter().chain(&POINTERS).find(|(_, known)| *known == rust).map_or("", |(word, _)| word);
    match kind {
        ArgumentKind::Plain(rust) => basic(rust).to_string(),
        ArgumentKind::Table(name) | ArgumentKind::Struct(name) => name.clone(),
        ArgumentKind::StructArray(name) => format!("{name}*"),
        ArgumentKind::Number { bytes, signed } => format!("{}{}*", if *signed { 's' } else { 'u' }, bytes * 8),
        ArgumentKind::Custom(function) => format!("custom.{function}"),
    }
}

/// Returns whether the word is a basic kind, so that no table or struct may have this name.
pub fn is_basic(word: &str) -> bool {
    number(word).is_some() || lookup(&SCALARS, word).is_some() || lookup(&POINTERS, word).is_some()
}

pub fn of_argument(argument: &ArgumentRow, known: &Vocabulary) -> Result<ArgumentKind, String> {
    let word = argument.kind.as_str();
    if argument.pointer {
        return match number(word) {
            Some((bytes, signed)) => Ok(ArgumentKind::Number { bytes, signed }),
            None if known.structs.contains(word) && argument.length != LengthRow::OfType => Ok(ArgumentKind::StructArray(word.into())),
            None if known.structs.contains(word) => Err(format!("`{word}*` has no [LENGTH]; one struct behind a pointer is `{word}`")),
            None => Err(format!("`{word}*`: only a number (s32, u64, ...) or a struct may have `*`")),
        };
    }
    let in_register =
        lookup(&SCALARS, word).map(ArgumentKind::Plain).or_else(|| known.tables.contains(word).then(|| ArgumentKind::Table(word.into())));
    if let Some(kind) = in_register {
        let plain = argument.flow == FlowRow::In && argument.length == LengthRow::OfType;
        return if plain {
            Ok(kind)
        } else {
            Err(format!("{} is a value in a register: it cannot have a [LENGTH], `out` or `inout`", argument.name))
        };
    }
    if let Some(plain) = lookup(&POINTERS, word) {
        return match (word, &argument.length) {
            ("bytes", LengthRow::OfType) => Err("`bytes` needs a [LENGTH]: an argument, `ret` or a number".into()),
            _ => Ok(ArgumentKind::Plain(plain)),
        };
    }
    if let Some(function) = word.strip_prefix("custom.") {
        return if known.custom.contains(function) {
            Ok(ArgumentKind::Custom(function.into()))
        } else {
            Err(format!("{word} is not a function of src/beauty/custom.rs"))
        };
    }
    match known.structs.contains(word) {
        true => Ok(ArgumentKind::Struct(word.into())),
        false => Err(format!("`{word}` is not a basic kind, a table or a struct")),
    }
}

pub fn of_return(word: &str, known: &Vocabulary) -> Result<Return, String> {
    match lookup(&RETURNS, word) {
        Some(plain) => Ok(Return::Plain(plain)),
        None if known.tables.contains(word) => Ok(Return::Table(word.into())),
        None => match word.strip_prefix("custom.").filter(|function| known.custom.contains(*function)) {
            Some(function) => Ok(Return::Custom(function.into())),
            None => Err(format!("`{word}` is not a kind of return value, a table, or a function of src/beauty/custom.rs")),
        },
    }
}

/// Parses the name of a number type, like `s32`. Returns its size in bytes and whether it is signed.
pub fn number(word: &str) -> Option<(u8, bool)> {
    let bits = word.strip_prefix(['s', 'u'])?;
    let bytes = match bits {
        "8" => 1,
        "16" => 2,
        "32" => 4,
        "64" => 8,
        _ => return None,
    };
    Some((bytes, word.starts_with('s')))
}
