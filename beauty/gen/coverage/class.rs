//! Classifies arguments, members of structs and attributes by how much of their meaning rtrace shows.

use crate::generator::argument::{Argument, Length};
use crate::generator::attributes::Content;
use crate::generator::constant::Condition;
use crate::generator::emit::EmittedStruct;
use crate::generator::kind::ArgumentKind;
use crate::generator::layout::{MemoryType, StructLayout, StructMember};
use std::collections::BTreeMap;

/// The depth of nested structs beyond which their members are not counted.
const DEPTH_MAX: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Decoded,
    Number,
    ByType,
    Bytes,
    /// No row describes the memory.
    Unknown,
    Address,
    Opaque,
    /// The row leaves the memory out (`secret`).
    Hidden,
    /// The call does not use the argument.
    Unused,
}

/// The classes that are counted, in the order of the columns. A group of members (a struct) has the first class that
/// one of its members has.
pub const CLASSES: [Class; 7] = [Class::Decoded, Class::Number, Class::ByType, Class::Bytes, Class::Unknown, Class::Address, Class::Opaque];

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Class::Decoded => "decoded",
            Class::Number => "number",
            Class::ByType => "by type",
            Class::Bytes => "bytes",
            Class::Unknown => "unknown",
            Class::Address => "address",
            Class::Opaque => "opaque",
            Class::Hidden => "hidden",
            Class::Unused => "unused",
        }
    }
}

/// How many arguments or members each class has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts([usize; CLASSES.len()]);

impl Counts {
    pub fn add(&mut self, class: Class) {
        if let Some(at) = CLASSES.iter().position(|known| *known == class) {
            self.0[at] += 1;
        }
    }

    pub fn of(&self, class: Class) -> usize {
        CLASSES.iter().position(|known| *known == class).map_or(0, |at| self.0[at])
    }

    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }
}

/// The structs by their names.
pub struct Structs<'a>(BTreeMap<&'a str, &'a EmittedStruct>);

impl<'a> Structs<'a> {
    pub fn new(structs: &'a [EmittedStruct]) -> Structs<'a> {
        Structs(structs.iter().map(|one| (one.row.name.as_str(), one)).collect())
    }

    /// Returns the class of an argument of a row.
    pub fn of_argument(&self, args: &[Argument], at: usize) -> Class {
        let argument = &args[at];
        if argument.used == Some(Condition::Never) {
            return Class::Unused;
        }
        if argument.fd_of.is_some() {
            return Class::Decoded;
        }
        let is_length = args.iter().any(|other| other.length == Length::Argument(at));
        // The kernel refuses all values but 0 of an optional number.
        let is_number = is_length || argument.traits.iter().any(|word| matches!(*word, "NUMBER" | "OPTIONAL"));
        self.of_kind(&argument.kind, is_number, 0)
    }

    fn of_kind(&self, kind: &ArgumentKind, is_number: bool, depth: u32) -> Class {
        let plain = if is_number { Class::Number } else { Class::ByType };
        match kind {
            ArgumentKind::Plain("Int" | "Uint" | "Long" | "Ulong" | "Hex") | ArgumentKind::Number { .. } => plain,
            ArgumentKind::Custom(function) if function == "hex32" => plain,
            ArgumentKind::Plain("Address") => Class::Address,
            ArgumentKind::Plain("Bytes") => Class::Bytes,
            ArgumentKind::Plain("Pointer") => Class::Opaque,
            ArgumentKind::Plain(_) | ArgumentKind::Table(_) | ArgumentKind::Custom(_) => Class::Decoded,
            ArgumentKind::Struct(name) | ArgumentKind::StructArray(name) => self.of_struct(name, is_number, depth),
        }
    }

    /// Returns the class of a struct: the first one that one of its members has. A struct that is a number is a plain
    /// number if the argument that points to it is one.
    fn of_struct(&self, name: &str, is_number: bool, depth: u32) -> Class {
        let Some(of) = self.0.get(name).filter(|_| depth < DEPTH_MAX) else { return Class::Opaque };
        match &of.layout {
            StructLayout::Opaque => Class::Opaque,
            StructLayout::Decoder(function) => of_decoder(function),
            StructLayout::Number(types) => self.of_type(&types[0], is_number || of.row.numbers, depth + 1),
            StructLayout::Members(members) => {
                let own = (0..members[0].len()).map(|at| self.member(of, &members[0], at, depth + 1));
                let chosen = of.choice.iter().flat_map(|choice| &choice.structs).map(|(_, name)| self.of_struct(name, false, depth + 1));
                let all: Vec<Class> = own.chain(chosen).collect();
                CLASSES.into_iter().find(|class| all.contains(class)).unwrap_or(Class::Hidden)
            }
        }
    }

    /// Returns the members of a struct with their classes. A struct that is a number has one member without a name.
    pub fn members(&self, of: &'a EmittedStruct) -> Vec<(&'a str, Class)> {
        match &of.layout {
            StructLayout::Opaque => vec![("", Class::Opaque)],
            StructLayout::Decoder(function) => vec![("", of_decoder(function))],
            StructLayout::Number(types) => vec![("", self.of_type(&types[0], of.row.numbers, 1))],
            StructLayout::Members(members) => {
                (0..members[0].len()).map(|at| (members[0][at].name.as_str(), self.member(of, &members[0], at, 1))).collect()
            }
        }
    }

    fn member(&self, of: &EmittedStruct, members: &[StructMember], at: usize, depth: u32) -> Class {
        let is_length = members.iter().any(|other| length_of(&other.memory_type) == Some(at));
        let is_named = |name: &Option<String>| name.as_ref() == Some(&members[at].name);
        self.of_type(&members[at].memory_type, of.row.numbers || is_length || is_named(&of.row.length), depth)
    }

    fn of_type(&self, of: &MemoryType, is_number: bool, depth: u32) -> Class {
        match of {
            MemoryType::Number { kind, .. } => self.of_kind(kind, is_number, depth),
            MemoryType::Text(_) => Class::Decoded,
            MemoryType::Bytes(_) => Class::Bytes,
            MemoryType::Struct(name) => self.of_struct(name, is_number, depth),
            MemoryType::Array { element, .. } => self.of_type(element, is_number, depth),
        }
    }

    /// Returns the class of an attribute's content. Nested attributes are counted where their set is listed.
    /// With `is_number`, what has no meaning is a plain number.
    pub fn of_content(&self, content: &Content, is_number: bool) -> Class {
        match content {
            Content::Memory(of) => self.of_type(of, is_number, 0),
            Content::Each(of) => self.of_content(of, is_number),
            Content::Set(_) => Class::Decoded,
        }
    }
}

/// Returns the class of memory that a function decodes. One of them shows the data of ioctl commands without a row.
fn of_decoder(function: &str) -> Class {
    if function == "ioctl_data" { Class::Unknown } else { Class::Decoded }
}

/// Returns the index of the member that has the length of the memory to which a member points.
fn length_of(of: &MemoryType) -> Option<usize> {
    match of {
        MemoryType::Number { length: Length::Argument(at), .. } => Some(*at),
        MemoryType::Array { element, .. } => length_of(element),
        _ => None,
    }
}
