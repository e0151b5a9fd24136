//! Resolves the rows of `messages/`: the numbers of attributes, levels and messages, and the types of their contents.

use super::constant::Lookup;
use super::fault::Fault;
use super::field_type::{Count, Type};
use super::kind::Vocabulary;
use super::layout::{self, MemoryType, StructLayout};
use super::messages::{AttributeRow, ChoiceRow, GENERIC, MessageRow, MessageRows, ProtocolRow, SUBSYSTEM, SetRow};
use super::structs::StructRow;
use std::collections::BTreeSet;

/// A resolved set, from which a `row::AttributeSet` is emitted.
#[derive(Clone, Debug)]
pub struct Set {
    pub name: String,
    pub table: String,
    pub level: Option<u64>,
    pub after: Vec<String>,
    /// The attributes without a meaning are plain numbers.
    pub numbers: bool,
    /// In ascending order of the numbers.
    pub attributes: Vec<(u64, Content)>,
    /// The numbers of attributes without content.
    pub empty: Vec<u64>,
    pub choices: Vec<Choice>,
}

/// What an attribute contains: memory of a type, a nested set, or numbered attributes that have the same content each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Memory(MemoryType),
    Set(String),
    Each(Box<Content>),
}

/// The content of an attribute if another attribute contains these bytes.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The number of the other attribute; `None` for the address family at the beginning of the message.
    pub by: Option<u64>,
    pub bytes: Vec<u8>,
    pub attribute: u64,
    pub content: Content,
}

/// A protocol of netlink, a subsystem of netfilter, or a generic family.
#[derive(Clone, Debug)]
pub struct Protocol {
    pub kind: ProtocolKind,
    /// The number of the protocol or subsystem; 0 for a generic family, whose number the kernel assigns.
    pub number: u64,
    /// The name that the kernel has for a generic family.
    pub name: String,
    /// `None` for a protocol whose messages are text.
    pub types: Option<String>,
    pub messages: Vec<Message>,
    /// The table and the messages of the kernel, if their numbers are others than those of requests.
    pub replies: Option<(String, Vec<Message>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolKind {
    Netlink,
    Subsystem,
    Generic,
}

#[derive(Clone, Debug)]
pub struct Message {
    /// Empty for all types that no other message has.
    pub types: Vec<u64>,
    pub flags: Option<String>,
    pub request: Option<String>,
    pub reply: Option<String>,
    pub set: Option<String>,
}

/// Everything that `messages/` describes.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    pub sets: Vec<Set>,
    pub protocols: Vec<Protocol>,
}

/// What the names in rows refer to.
struct Names<'a> {
    rows: &'a MessageRows,
    structs: &'a [StructRow],
    known: &'a Vocabulary,
    value: &'a Lookup<'a>,
}

/// Resolves all rows.
pub fn messages(rows: &MessageRows, structs: &[StructRow], known: &Vocabulary, value: &Lookup, faults: &mut Vec<Fault>) -> Messages {
    let names = Names { rows, structs, known, value };
    let mut resolved = Messages::default();
    for row in &rows.sets {
        match names.set(row) {
            Ok(set) => resolved.sets.push(set),
            Err(fault) => faults.push(fault),
        }
    }
    for row in &rows.protocols {
        match names.protocol(row) {
            Ok(protocol) => resolved.protocols.push(protocol),
            Err(fault) => faults.push(fault),
        }
    }
    for row in rows.messages.iter().filter(|row| !rows.protocols.iter().any(|known| known.name == row.protocol)) {
        faults.push(row.location.fault(format!("{} has no row with `types=`", row.protocol)));
    }
    check_use(rows, faults);
    resolved.sets.sort_by(|a, b| a.name.cmp(&b.name));
    resolved
}

impl Names<'_> {
    /// Returns the value of a constant, the same in all ABIs. 0 if its table could not be resolved, which is another
    /// fault.
    fn constant(&self, table: &str, name: &str) -> Result<u64, String> {
        if let Ok(number) = name.parse() {
            return Ok(number);
        }
        (self.value)(table, name)?.map_or(Ok(0), |constant| constant.value)
    }

    fn set(&self, row: &SetRow) -> Result<Set, Fault> {
        let fault = |text: String| row.location.fault(format!("{}: {text}", row.name));
        if self.known.structs.contains(&row.name) || self.known.tables.contains(&row.name) {
            return Err(fault("a table or struct has the same name".into()));
        }
        if self.rows.sets.iter().filter(|other| other.name == row.name).count() > 1 {
            return Err(fault("another set has the same name".into()));
        }
        self.named("table", Some(&row.table), &self.known.tables).map_err(fault)?;
        for of in &row.after {
            self.named("struct", Some(of), &self.known.structs).map_err(fault)?;
        }
        let level = row.level.as_ref().map(|level| self.constant("socket_level", level)).transpose().map_err(fault)?;
        let mut attributes: Vec<(u64, Content)> = Vec::new();
        for attribute in &row.attributes {
            let of = &attribute.content;
            let fault = |text: String| of.location.fault(format!("{}, {}: {text}", row.name, of.name));
            let number = self.constant(&row.table, &of.name).map_err(fault)?;
            if attributes.iter().any(|(known, _)| *known == number) {
                return Err(fault("another attribute has the same number".into()));
            }
            attributes.push((number, self.content(attribute).map_err(fault)?));
        }
        attributes.sort_by_key(|(number, _)| *number);
        let empty: Vec<u64> = row.empty.iter().map(|name| self.constant(&row.table, name)).collect::<Result<_, _>>().map_err(fault)?;
        if let Some((known, _)) = attributes.iter().find(|(number, _)| empty.contains(number)) {
            return Err(fault(format!("the attribute {known} is empty and has a content")));
        }
        let mut choices = Vec::new();
        for choice in &row.choices {
            let fault = |text: String| choice.attribute.content.location.fault(format!("{}: {text}", row.name));
            choices.extend(self.choices(row, choice).map_err(fault)?);
        }
        let (name, table, after) = (row.name.clone(), row.table.clone(), row.after.clone());
        Ok(Set { name, table, level, after, numbers: row.numbers, attributes, empty, choices })
    }

    /// Resolves what a choice's attribute contains for each value of the attribute that decides it.
    fn choices(&self, row: &SetRow, choice: &ChoiceRow) -> Result<Vec<Choice>, String> {
        let attribute = self.constant(&row.table, &choice.attribute.content.name)?;
        let content = self.content(&choice.attribute)?;
        let resolved = |by, bytes| Choice { by, bytes, attribute, content: content.clone() };
        if choice.by == "family" {
            let family = |name: &String| self.constant("socket_family", name).map(|number| resolved(None, vec![number as u8]));
            return choice.values.iter().map(family).collect();
        }
        let by = self.constant(&row.table, &choice.by)?;
        let decides = row.attributes.iter().find(|attribute| attribute.content.name == choice.by);
        let number = decides.filter(|decides| decides.depth == 0 && decides.content.count == Count::One).map(|decides| &decides.content);
        let bytes = |value: &String| -> Result<Vec<u8>, String> {
            match number.map(|field| (&field.of, field)) {
                Some((Type::Number { bytes, big_endian, .. }, field)) => {
                    let table = field.meaning.as_ref().map_or("", |meaning| meaning.kind.as_str());
                    let number = self.constant(table, value)?.to_le_bytes();
                    let mut bytes = number[..usize::from(bytes[0])].to_vec();
                    if *big_endian {
                        bytes.reverse();
                    }
                    Ok(bytes)
                }
                _ => Ok(value.clone().into_bytes()),
            }
        };
        choice.values.iter().map(|value| Ok(resolved(Some(by), bytes(value)?))).collect()
    }

    fn content(&self, row: &AttributeRow) -> Result<Content, String> {
        let inner = self.inner_content(row)?;
        Ok((0..row.depth).fold(inner, |content, _| Content::Each(Box::new(content))))
    }

    fn inner_content(&self, row: &AttributeRow) -> Result<Content, String> {
        let field = &row.content;
        if let Type::Struct(name) = &field.of
            && self.rows.sets.iter().any(|set| set.name == *name)
        {
            return match field.count {
                Count::One => Ok(Content::Set(name.clone())),
                _ => Err(format!("{name} is a set: use `{name}`, or `each.{name}` for numbered attributes")),
            };
        }
        let types: Vec<MemoryType> =
            (0..4).map(|abi| layout::memory_type(field, abi, &[], self.structs, self.known)).collect::<Result<_, _>>()?;
        match types.iter().all(|other| *other == types[0]) {
            true => Ok(Content::Memory(types[0].clone())),
            false => Err("the type is not the same in all ABIs: use a struct".into()),
        }
    }

    fn protocol(&self, row: &ProtocolRow) -> Result<Protocol, Fault> {
        let (kind, number, name) = match row.name.strip_prefix(GENERIC) {
            Some(name) => (ProtocolKind::Generic, Ok(0), name),
            None if row.name.starts_with(SUBSYSTEM) => (ProtocolKind::Subsystem, self.constant("netfilter_subsystem", &row.name), ""),
            None => (ProtocolKind::Netlink, self.constant("netlink_family", &row.name), ""),
        };
        let number = number.map_err(|text| row.location.fault(text))?;
        for table in [&row.types, &row.replies] {
            self.named("table", table.as_ref(), &self.known.tables).map_err(|text| row.location.fault(text))?;
        }
        let own = |is_reply: bool| {
            let rows = self.rows.messages.iter().filter(move |message| message.protocol == row.name && message.is_reply == is_reply);
            let table = if is_reply { &row.replies } else { &row.types };
            rows.map(|message| self.message(message, table.as_deref().unwrap_or_default())).collect::<Result<Vec<_>, Fault>>()
        };
        if let (None, Some(reply)) =
            (&row.replies, self.rows.messages.iter().find(|message| message.protocol == row.name && message.is_reply))
        {
            return Err(reply.location.fault(format!("{} has no `replies=TABLE`", row.name)));
        }
        let replies = row.replies.clone().map(|table| own(true).map(|messages| (table, messages))).transpose()?;
        Ok(Protocol { kind, number, name: name.to_string(), types: row.types.clone(), messages: own(false)?, replies })
    }

    fn message(&self, row: &MessageRow, types: &str) -> Result<Message, Fault> {
        let resolved = || {
            self.named("table", row.flags.as_ref(), &self.known.tables)?;
            self.named("struct", row.request.as_ref(), &self.known.structs)?;
            self.named("struct", row.reply.as_ref(), &self.known.structs)?;
            self.named("set", row.set.as_ref(), &self.rows.sets.iter().map(|set| set.name.clone()).collect())?;
            let types = row.types.iter().map(|name| self.constant(types, name)).collect::<Result<_, _>>()?;
            let MessageRow { flags, request, reply, set, .. } = row.clone();
            Ok(Message { types, flags, request, reply, set })
        };
        resolved().map_err(|text: String| row.location.fault(text))
    }

    fn named(&self, what: &str, name: Option<&String>, known: &BTreeSet<String>) -> Result<(), String> {
        match name {
            Some(name) if !known.contains(name) => Err(format!("there is no {what} {name}")),
            _ => Ok(()),
        }
    }
}

/// Reports sets that no level, struct, message or attribute leads to.
fn check_use(rows: &MessageRows, faults: &mut Vec<Fault>) {
    let attributes =
        |set: &SetRow| set.attributes.iter().chain(set.choices.iter().map(|choice| &choice.attribute)).cloned().collect::<Vec<_>>();
    let nested = rows.sets.iter().flat_map(attributes).filter_map(|row| match row.content.of {
        Type::Struct(name) => Some(name),
        _ => None,
    });
    let used: BTreeSet<String> = nested.chain(rows.messages.iter().filter_map(|row| row.set.clone())).collect();
    let is_used = |set: &&SetRow| set.level.is_some() || !set.after.is_empty() || set.used_by_rust || used.contains(&set.name);
    for set in rows.sets.iter().filter(|set| !is_used(set)) {
        faults.push(set.location.fault(format!("the set {} is unused: name it in an attribute or a message, or add `rust`", set.name)));
    }
}

/// Returns the names of the tables and of the structs that messages use.
pub fn used(messages: &Messages) -> (Vec<String>, Vec<String>) {
    let contents = messages
        .sets
        .iter()
        .flat_map(|set| set.attributes.iter().map(|(_, content)| content).chain(set.choices.iter().map(|choice| &choice.content)));
    let types = contents.filter_map(|mut content| {
        while let Content::Each(inner) = content {
            content = inner;
        }
        match content {
            Content::Memory(of) => Some(of.clone()),
            Content::Set(_) | Content::Each(_) => None,
        }
    });
    let layouts: Vec<StructLayout> = types.map(|of| StructLayout::Number([of.clone(), of.clone(), of.clone(), of])).collect();
    let (tables, structs) = layout::named(&layouts);
    let (mut tables, mut structs): (Vec<String>, Vec<String>) =
        (tables.into_iter().map(str::to_string).collect(), structs.into_iter().map(str::to_string).collect());
    tables.extend(messages.sets.iter().map(|set| set.table.clone()));
    structs.extend(messages.sets.iter().flat_map(|set| set.after.clone()));
    for protocol in &messages.protocols {
        tables.extend(protocol.types.clone());
        tables.extend(protocol.replies.as_ref().map(|(table, _)| table.clone()));
        let own = protocol.messages.iter().chain(protocol.replies.iter().flat_map(|(_, messages)| messages));
        tables.extend(own.clone().filter_map(|message| message.flags.clone()));
        structs.extend(own.flat_map(|message| [&message.request, &message.reply]).flatten().cloned());
    }
    (tables, structs)
}
