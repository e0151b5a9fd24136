//! The types of the tables that build.rs generates from `beauty/messages/*.tbl`: sets of attributes and of control
//! messages, and the messages of netlink's protocols.

use super::row::{ConstantTable, MemoryType, Struct};

/// Attributes that occur together (the `IFLA_*` of a network interface), or the control messages of a level.
#[derive(Debug)]
pub struct AttributeSet {
    /// The name in its row of `beauty/messages/*.tbl`, by which other rows refer to the set.
    pub name: &'static str,
    /// The names of the attributes.
    pub table: &'static ConstantTable,
    /// The flags in the type of a netlink attribute, with `table` as a bit field.
    pub types: &'static ConstantTable,
    /// The numbers of attributes, in ascending order, and what each contains. Other attributes of the table contain
    /// bytes.
    pub attributes: &'static [(u32, AttributeContent)],
    /// The contents that depend on another attribute or on the address family. The first one that applies has
    /// precedence over `attributes`.
    pub choices: &'static [AttributeChoice],
}

/// What an attribute contains.
#[derive(Debug)]
pub enum AttributeContent {
    /// A value of one type.
    Memory(MemoryType),
    /// Attributes of another set.
    Set(&'static AttributeSet),
    /// Attributes whose types are indices, and which have the same content each.
    Each(&'static AttributeContent),
}

/// The content of an attribute if another attribute of the same set contains certain bytes (`IFLA_INFO_KIND`: a text),
/// or if the message has a certain address family.
#[derive(Debug)]
pub struct AttributeChoice {
    /// The number of the attribute with the bytes, or [`AttributeChoice::FAMILY`].
    pub by: u32,
    /// A text without NUL, or a number as it is in memory.
    pub bytes: &'static [u8],
    /// The number of the attribute that has the content.
    pub attribute: u32,
    /// What the attribute contains in this case, in place of what [`AttributeSet::attributes`] has for it.
    pub content: AttributeContent,
}

/// A protocol of netlink (`NETLINK_ROUTE`), a subsystem of netfilter, or a generic family.
#[derive(Debug)]
pub struct NetlinkProtocol {
    /// The number of the protocol as in socket(2), or that of the subsystem; 0 for a generic family.
    pub number: u32,
    /// The name that the kernel has for a generic family; empty for others.
    pub name: &'static str,
    /// The names of the types of messages; `None` for a protocol whose messages are text.
    pub types: Option<&'static ConstantTable>,
    /// The messages in both directions, or only those to the kernel if there are `reply_types`. Empty for a protocol
    /// whose messages are text.
    pub messages: &'static [NetlinkMessage],
    /// The names of the types of the kernel's messages, if they are others.
    pub reply_types: Option<&'static ConstantTable>,
    /// The kernel's messages, if their types are others.
    pub replies: &'static [NetlinkMessage],
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
    /// Returns what an attribute contains by its number. `beside` returns what another attribute beside it contains,
    /// and the address family of the message for [`AttributeChoice::FAMILY`].
    pub fn content<'a>(&'static self, number: u32, beside: impl Fn(u32) -> Option<&'a [u8]>) -> Option<&'static AttributeContent> {
        let is_chosen = |choice: &&AttributeChoice| {
            choice.attribute == number
                && beside(choice.by).is_some_and(|found| {
                    let rest = found.strip_prefix(choice.bytes);
                    rest.is_some_and(|rest| rest.first().is_none_or(|next| *next == 0))
                })
        };
        let chosen = self.choices.iter().find(is_chosen);
        let known = || self.attributes.binary_search_by_key(&number, |(known, _)| *known).ok().map(|at| &self.attributes[at].1);
        chosen.map(|choice| &choice.content).or_else(known)
    }
}

impl AttributeChoice {
    /// Stands for the address family at the beginning of the message in place of the number of an attribute.
    pub const FAMILY: u32 = u32::MAX;
}

impl NetlinkProtocol {
    /// Returns the kind of message with this type. `is_request` says whether it goes to the kernel.
    pub fn message(&'static self, of_type: u16, is_request: bool) -> Option<&'static NetlinkMessage> {
        let messages = if is_request || self.reply_types.is_none() { self.messages } else { self.replies };
        let of_this = messages.iter().find(|message| message.types.contains(&of_type));
        of_this.or_else(|| messages.iter().find(|message| message.types.is_empty()))
    }

    /// Returns the names of the types of messages in a direction.
    pub fn types(&'static self, is_request: bool) -> Option<&'static ConstantTable> {
        self.reply_types.filter(|_| !is_request).or(self.types)
    }
}
