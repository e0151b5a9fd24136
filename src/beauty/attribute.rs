//! The types of the tables that build.rs generates from `beauty/messages/*.tbl`: sets of attributes and of control
//! messages, and the messages of netlink's protocols.

use super::row::{ConstantTable, MemoryType, Struct};

/// Attributes that occur together (the `IFLA_*` of a network interface), or the control messages of a level.
#[derive(Debug)]
pub struct AttributeSet {
    pub name: &'static str,
    /// The names of the attributes.
    pub table: &'static ConstantTable,
    /// The flags in the type of a netlink attribute, with `table` as a bit field.
    pub types: &'static ConstantTable,
    /// The numbers of attributes, in ascending order, and what each contains. Other attributes of the table contain
    /// bytes.
    pub attributes: &'static [(u32, AttributeContent)],
    pub choices: &'static [TextChoice],
}

/// What an attribute contains.
#[derive(Debug)]
pub enum AttributeContent {
    /// A value of one type.
    Memory(MemoryType),
    /// Attributes of another set.
    Set(&'static AttributeSet),
    /// Attributes whose types are indices, and which contain attributes of another set each.
    List(&'static AttributeSet),
}

/// The content of an attribute if another attribute of the same set contains this text (`IFLA_INFO_KIND`).
#[derive(Debug)]
pub struct TextChoice {
    /// The number of the attribute with the text.
    pub by: u32,
    pub text: &'static [u8],
    pub attribute: u32,
    pub content: AttributeContent,
}

/// A protocol of netlink (`NETLINK_ROUTE`).
#[derive(Debug)]
pub struct NetlinkProtocol {
    /// The number of the protocol, as in socket(2).
    pub number: u32,
    /// The names of the types of messages; `None` for a protocol whose messages are text.
    pub types: Option<&'static ConstantTable>,
    pub messages: &'static [NetlinkMessage],
}

/// A kind of message of a protocol.
#[derive(Debug)]
pub struct NetlinkMessage {
    /// The values of `nlmsg_type`; empty for all types that no other message of the protocol has.
    pub types: &'static [u16],
    /// The flags in `nlmsg_flags`; `None` for those that all messages have.
    pub flags: Option<&'static ConstantTable>,
    /// The struct after the header of a message with `NLM_F_REQUEST`.
    pub request: Option<&'static Struct>,
    /// The struct after the header of other messages.
    pub reply: Option<&'static Struct>,
    /// The attributes after the struct, if the struct does not determine them.
    pub set: Option<&'static AttributeSet>,
}

impl AttributeSet {
    /// Returns what an attribute contains by its number. `text` returns the text of another attribute beside it.
    pub fn content<'a>(&'static self, number: u32, text: impl Fn(u32) -> Option<&'a [u8]>) -> Option<&'static AttributeContent> {
        let chosen = self.choices.iter().find(|choice| choice.attribute == number && text(choice.by) == Some(choice.text));
        let known = || self.attributes.binary_search_by_key(&number, |(known, _)| *known).ok().map(|at| &self.attributes[at].1);
        chosen.map(|choice| &choice.content).or_else(known)
    }
}

impl NetlinkProtocol {
    /// Returns the kind of message with this type.
    pub fn message(&'static self, of_type: u16) -> Option<&'static NetlinkMessage> {
        let of_this = self.messages.iter().find(|message| message.types.contains(&of_type));
        of_this.or_else(|| self.messages.iter().find(|message| message.types.is_empty()))
    }
}
