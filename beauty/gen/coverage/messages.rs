//! Lists the attributes of netlink messages and the control messages of sockets.

use super::class::{Class, Counts};
use super::{List, table};
use crate::generator::attributes::{Content, Message, Protocol, Set};

impl List<'_> {
    /// Lists the messages of each protocol, and the attributes of each set.
    pub fn messages(&mut self) -> Counts {
        let mut counts = Counts::default();
        let tables = self.tables;
        for protocol in &tables.messages.protocols {
            self.protocol(protocol);
        }
        for set in &tables.messages.sets {
            self.set(set, &mut counts);
        }
        counts
    }

    /// Lists the types of messages, each with the struct behind the header.
    fn protocol(&mut self, protocol: &Protocol) {
        let Some(types) = protocol.types.as_ref().and_then(|types| table(self.tables, types)) else { return };
        self.out += &format!("messages {}\n", types.name);
        let rest = protocol.messages.iter().find(|message| message.types.is_empty());
        for entry in &types.base.entries {
            let message = protocol.messages.iter().find(|message| message.types.contains(&entry.value)).or(rest);
            let parts = |message: &Message| [&message.request, &message.reply, &message.set].map(Clone::clone);
            let mut parts: Vec<String> = message.into_iter().flat_map(parts).flatten().collect();
            parts.dedup();
            let class = if message.is_some() { Class::Decoded } else { Class::Unknown };
            self.line(&entry.name, class.name(), &parts.join(" "));
        }
    }

    fn set(&mut self, set: &Set, counts: &mut Counts) {
        self.out += &format!("attributes {} ({})\n", set.name, set.table);
        let Some(table) = table(self.tables, &set.table) else { return };
        for entry in &table.base.entries {
            let content = set.attributes.iter().find(|(number, _)| *number == entry.value).map(|(_, content)| content);
            let chosen = set.choices.iter().filter(|choice| choice.attribute == entry.value).map(|choice| &choice.content);
            // Options that are no control messages have no row in the set of a level.
            let is_padding = entry.name.ends_with("_UNSPEC") || entry.name.ends_with("_PAD");
            let has_content = !is_padding && set.level.is_none() && !set.empty.contains(&entry.value);
            for content in content.into_iter().chain(chosen.clone()) {
                let class = self.structs.of_content(content, set.numbers);
                counts.add(class);
                self.line(&entry.name, class.name(), nested(content));
            }
            if content.is_none() && chosen.count() == 0 {
                let class = if has_content { Class::Unknown } else { Class::Unused };
                counts.add(class);
                self.line(&entry.name, class.name(), "");
            }
        }
    }
}

/// Returns the name of the set that an attribute contains.
fn nested(content: &Content) -> &str {
    match content {
        Content::Set(name) => name,
        _ => "",
    }
}
