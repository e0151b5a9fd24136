//! What the words for kinds and returns mean, with the tables, structs and functions that rows may name.

use super::syscalls::{ArgumentRow, FlowRow, LengthRow};
use std::collections::BTreeSet;

/// The names that a row may use besides the basic kinds.
#[derive(Default)]
pub struct Vocabulary {
    pub tables: BTreeSet<String>,
    pub structs: BTreeSet<String>,
    /// Functions of `src/beauty/custom.rs`.
    pub custom: BTreeSet<String>,
    /// Functions of `src/beauty/decoders/`.
    pub decoders: BTreeSet<String>,
}

/// What `row::Kind` will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A variant without data, by its name in Rust.
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

/// What `row::Return` will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Return {
    Plain(&'static str),
    Table(String),
}

/// Kinds that are in the register itself.
const SCALARS: [(&str, &str); 17] = [
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
    ("address", "Address"),
];

/// Kinds of what the register points to.
const POINTERS: [(&str, &str); 5] = [("path", "Path"), ("str", "Str"), ("bytes", "Bytes"), ("strings", "StrArray"), ("pointer", "Pointer")];

const RETURNS: [(&str, &str); 14] = [
    ("int", "Int"),
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

/// Whether a table or struct could not be told from a basic kind.
pub fn is_basic(word: &str) -> bool {
    number(word).is_some() || lookup(&SCALARS, word).is_some() || lookup(&POINTERS, word).is_some()
}

pub fn of_argument(argument: &ArgumentRow, known: &Vocabulary) -> Result<Kind, String> {
    let word = argument.kind.as_str();
    if argument.pointer {
        return match number(word) {
            Some((bytes, signed)) => Ok(Kind::Number { bytes, signed }),
            None if known.structs.contains(word) && argument.length != LengthRow::OfType => Ok(Kind::StructArray(word.into())),
            None if known.structs.contains(word) => Err(format!("`{word}*` has no [LENGTH]; one struct behind a pointer is `{word}`")),
            None => Err(format!("`{word}*`: only numbers (s32, u64, ...) and structs can stand behind `*`")),
        };
    }
    let in_register = lookup(&SCALARS, word).map(Kind::Plain).or_else(|| known.tables.contains(word).then(|| Kind::Table(word.into())));
    if let Some(kind) = in_register {
        let plain = argument.flow == FlowRow::In && argument.length == LengthRow::OfType;
        return if plain {
            Ok(kind)
        } else {
            Err(format!("{} is in the register itself: it has no length and is not written", argument.name))
        };
    }
    if let Some(plain) = lookup(&POINTERS, word) {
        return match (word, &argument.length) {
            ("bytes", LengthRow::OfType) => Err(format!("{} needs a [LENGTH]: an argument, `ret` or a number", argument.name)),
            _ => Ok(Kind::Plain(plain)),
        };
    }
    if let Some(function) = word.strip_prefix("custom.") {
        return if known.custom.contains(function) {
            Ok(Kind::Custom(function.into()))
        } else {
            Err(format!("{word} is no function of src/beauty/custom.rs"))
        };
    }
    match known.structs.contains(word) {
        true => Ok(Kind::Struct(word.into())),
        false => Err(format!("`{word}` is no basic kind, no table and no struct")),
    }
}

pub fn of_return(word: &str, known: &Vocabulary) -> Result<Return, String> {
    match lookup(&RETURNS, word) {
        Some(plain) => Ok(Return::Plain(plain)),
        None if known.tables.contains(word) => Ok(Return::Table(word.into())),
        None => Err(format!("`{word}` is nothing that a call can return: no basic kind and no table")),
    }
}

/// `s32`: bytes and whether signed.
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
