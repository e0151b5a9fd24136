//! Rows of `messages/*.tbl`: sets of attributes and of control messages, and the messages of netlink's protocols.

use super::fault::{Fault, Location, Row, is_name, rows};
use super::structs::{FieldRow, field_row};

/// A set: attributes that occur together, or the control messages of a level.
#[derive(Clone, Debug)]
pub struct SetRow {
    pub location: Location,
    pub name: String,
    /// The table with the names of the attributes.
    pub table: String,
    /// The level of a set of control messages.
    pub level: Option<String>,
    /// The structs that the set follows in messages.
    pub after: Vec<String>,
    /// Rust code uses the set, so that no row has to.
    pub used_by_rust: bool,
    /// The attributes without a meaning are plain numbers.
    pub numbers: bool,
    pub attributes: Vec<AttributeRow>,
    /// The attributes that have no content: their presence is what they say.
    pub empty: Vec<String>,
    pub choices: Vec<ChoiceRow>,
}

/// An attribute and what it contains.
#[derive(Clone, Debug)]
pub struct AttributeRow {
    /// How often `each.` stands before the type: the attribute contains numbered attributes of that type, or numbered
    /// attributes with such attributes.
    pub depth: usize,
    pub content: FieldRow,
}

/// A line `link_info IFLA_INFO_KIND=vlan IFLA_INFO_DATA:link_vlan`: the content of one attribute, or the address family
/// of the message, decides what another attribute of the same set contains.
#[derive(Clone, Debug)]
pub struct ChoiceRow {
    pub by: String,
    pub values: Vec<String>,
    pub attribute: AttributeRow,
}

/// A line `NETLINK_ROUTE types=route_message`, or `NETLINK_KOBJECT_UEVENT text`. The protocol may also be a subsystem
/// of netfilter (`NFNL_SUBSYS_QUEUE`) or a generic family (`generic.ethtool`).
#[derive(Clone, Debug)]
pub struct ProtocolRow {
    pub location: Location,
    pub name: String,
    /// The table with the names of the messages; `None` for a protocol whose messages are text.
    pub types: Option<String>,
    /// The table with the names of the kernel's messages, if those have numbers of their own.
    pub replies: Option<String>,
}

/// A line `NETLINK_ROUTE RTM_NEWLINK|RTM_SETLINK flags=netlink_new_flags ifinfomsg`.
#[derive(Clone, Debug)]
pub struct MessageRow {
    pub location: Location,
    pub protocol: String,
    /// The types; empty for all that no other row has.
    pub types: Vec<String>,
    pub flags: Option<String>,
    /// The struct at the beginning of a request, and at that of other messages.
    pub request: Option<String>,
    pub reply: Option<String>,
    pub set: Option<String>,
    /// The kernel sends the message, in a protocol where its messages have numbers of their own.
    pub is_reply: bool,
}

/// The rows of all files in `messages/`.
#[derive(Clone, Debug, Default)]
pub struct MessageRows {
    pub sets: Vec<SetRow>,
    pub protocols: Vec<ProtocolRow>,
    pub messages: Vec<MessageRow>,
}

/// Parses a file. A line that begins with an attribute continues the set of the line before.
pub fn parse_file(file: &str, text: &str, rows_of_all: &mut MessageRows, faults: &mut Vec<Fault>) {
    for row in rows(file, text) {
        let first = row.fields[0];
        let parsed = match (first.contains(':'), is_protocol(first)) {
            (true, _) => continuation(rows_of_all, &row),
            (_, true) => message(rows_of_all, &row),
            _ => set(rows_of_all, &row),
        };
        if let Err(text) = parsed {
            faults.push(row.location.fault(text));
        }
    }
}

/// The word before the name of a generic family.
pub const GENERIC: &str = "generic.";
/// The beginning of the constants of netfilter's subsystems.
pub const SUBSYSTEM: &str = "NFNL_SUBSYS_";

fn is_protocol(word: &str) -> bool {
    ["NETLINK_", SUBSYSTEM, GENERIC].iter().any(|prefix| word.starts_with(prefix))
}

impl SetRow {
    /// Adds the attribute of a word `ATTRIBUTE:type` or `ATTRIBUTE:empty`.
    fn push(&mut self, word: &str, location: &Location) -> Result<(), String> {
        match word.strip_suffix(":empty") {
            Some(name) => self.empty.push(name.to_string()),
            None => self.attributes.push(attribute(word, location)?),
        }
        Ok(())
    }
}

fn attribute(word: &str, location: &Location) -> Result<AttributeRow, String> {
    const EACH: &str = "each.";
    let (name, mut of) = word.split_once(':').ok_or_else(|| format!("`{word}` should be `ATTRIBUTE:type`"))?;
    if !is_name(name) {
        return Err(format!("`{name}` is not a valid name of an attribute"));
    }
    let mut depth = 0;
    while let Some(inner) = of.strip_prefix(EACH) {
        (of, depth) = (inner, depth + 1);
    }
    Ok(AttributeRow { depth, content: field_row(name, of, location)? })
}

fn continuation(all: &mut MessageRows, row: &Row) -> Result<(), String> {
    let set = all.sets.last_mut().ok_or("attributes without a set before them")?;
    row.fields.iter().try_for_each(|word| set.push(word, &row.location))
}

fn set(all: &mut MessageRows, row: &Row) -> Result<(), String> {
    let [name, table, words @ ..] = &row.fields[..] else { return Err("a set consists of a name, a table and attributes".into()) };
    if let (Some((by, values)), [of]) = (table.split_once('='), words) {
        let choice = ChoiceRow {
            by: by.to_string(),
            values: values.split('|').map(str::to_string).collect(),
            attribute: attribute(of, &row.location)?,
        };
        let last = all.sets.last_mut().filter(|last| last.name == **name);
        last.ok_or_else(|| format!("the choices of {name} must directly follow its attributes"))?.choices.push(choice);
        return Ok(());
    }
    if !is_name(name) || !is_name(table) {
        return Err(format!("`{name} {table}` should be the name of a set and the name of a table"));
    }
    let mut set = SetRow {
        location: row.location.clone(),
        name: name.to_string(),
        table: table.to_string(),
        level: None,
        after: Vec::new(),
        used_by_rust: false,
        numbers: false,
        attributes: Vec::new(),
        empty: Vec::new(),
        choices: Vec::new(),
    };
    for word in words {
        match word.split_once('=') {
            Some(("level", level)) => set.level = Some(level.to_string()),
            None if *word == "rust" => set.used_by_rust = true,
            None if *word == "numbers" => set.numbers = true,
            Some(("after", structs)) => set.after.extend(structs.split('|').map(str::to_string)),
            _ => set.push(word, &row.location)?,
        }
    }
    all.sets.push(set);
    Ok(())
}

fn message(all: &mut MessageRows, row: &Row) -> Result<(), String> {
    let (protocol, words) = row.fields.split_first().ok_or("the protocol is missing")?;
    let of_protocol = |types: Option<&str>, replies: Option<&str>| ProtocolRow {
        location: row.location.clone(),
        name: protocol.to_string(),
        types: types.map(str::to_string),
        replies: replies.map(str::to_string),
    };
    let words_of = |word: &&str| word.split_once('=').map(|(name, of)| (name.to_string(), of.to_string()));
    match words {
        ["text"] => all.protocols.push(of_protocol(None, None)),
        [types, more @ ..] if types.starts_with("types=") => match more.iter().map(words_of).collect::<Vec<_>>().as_slice() {
            [] => all.protocols.push(of_protocol(Some(&types["types=".len()..]), None)),
            [Some((name, replies))] if name == "replies" => {
                all.protocols.push(of_protocol(Some(&types["types=".len()..]), Some(replies)));
            }
            _ => return Err("after `types=TABLE`, there may only be `replies=TABLE`".into()),
        },
        [types, words @ ..] => {
            let types = if *types == "*" { Vec::new() } else { types.split('|').map(str::to_string).collect() };
            let mut message = MessageRow {
                location: row.location.clone(),
                protocol: protocol.to_string(),
                types,
                flags: None,
                request: None,
                reply: None,
                set: None,
                is_reply: false,
            };
            for word in words {
                match word.split_once('=') {
                    None if *word == "replies" => message.is_reply = true,
                    Some(("flags", table)) => message.flags = Some(table.to_string()),
                    Some(("request", of)) => message.request = Some(of.to_string()),
                    Some(("reply", of)) => message.reply = Some(of.to_string()),
                    Some(("set", of)) => message.set = Some(of.to_string()),
                    None if is_name(word) => (message.request, message.reply) = (Some(word.to_string()), Some(word.to_string())),
                    _ => return Err(format!("`{word}` is neither a struct nor one of flags=, request=, reply= and set=")),
                }
            }
            all.messages.push(message);
        }
        [] => return Err(format!("{protocol} needs `types=TABLE`, `text`, or the types of messages")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<MessageRows, String> {
        let (mut rows, mut faults) = (MessageRows::default(), Vec::new());
        parse_file("m.tbl", text, &mut rows, &mut faults);
        faults.first().map_or(Ok(rows), |fault| Err(fault.to_string()))
    }

    #[test]
    fn a_set_has_attributes_on_any_number_of_lines() {
        let rows =
            parsed("a t level=L A:u32 # x\n B:s32[]/fd C:each.each.other D:empty\na A=x|y C:more\nb t numbers after=s|r").expect("good");
        assert_eq!(rows.sets[0].attributes.iter().map(|row| row.depth).collect::<Vec<_>>(), [0, 0, 2]);
        let names: Vec<&str> = rows.sets[0].attributes.iter().map(|row| row.content.name.as_str()).collect();
        assert_eq!((names, rows.sets[0].level.as_deref()), (vec!["A", "B", "C"], Some("L")));
        assert_eq!(rows.sets[0].empty, ["D"]);
        let choice = &rows.sets[0].choices[0];
        assert_eq!((choice.by.as_str(), choice.values.join(" "), choice.attribute.content.name.as_str()), ("A", "x y".into(), "C"));
        assert_eq!(rows.sets[1].after, ["s", "r"]);
        assert!(rows.sets[1].numbers && !rows.sets[0].numbers);
    }

    #[test]
    fn a_message_has_types_flags_and_structs() {
        let rows = parsed("NETLINK_X types=t\nNETLINK_Y text\nNETLINK_X A|B flags=f s\nNETLINK_X * request=q reply=r set=a").expect("good");
        let protocols: Vec<_> = rows.protocols.iter().map(|row| (row.name.as_str(), row.types.as_deref())).collect();
        assert_eq!(protocols, [("NETLINK_X", Some("t")), ("NETLINK_Y", None)]);
        let generic = parsed("generic.x types=t replies=r\ngeneric.x A replies set=a").expect("good");
        assert_eq!((generic.protocols[0].name.as_str(), generic.protocols[0].replies.as_deref()), ("generic.x", Some("r")));
        assert!(generic.messages[0].is_reply && generic.messages[0].request.is_none());
        let [first, second] = &rows.messages[..] else { panic!("{rows:?}") };
        assert_eq!((first.types.join(" "), first.flags.as_deref(), first.request == first.reply), ("A B".into(), Some("f"), true));
        let other = [&second.request, &second.reply, &second.set].map(Option::as_deref);
        assert_eq!((second.types.len(), other), (0, [Some("q"), Some("r"), Some("a")]));
    }

    #[test]
    fn faults_name_the_line_and_the_problem() {
        for (text, expected) in [
            ("A:u32", "m.tbl:1: attributes without a set before them"),
            ("a", "m.tbl:1: a set consists of a name, a table and attributes"),
            ("a t x", "m.tbl:1: `x` should be `ATTRIBUTE:type`"),
            ("a t A-:u32", "m.tbl:1: `A-` is not a valid name of an attribute"),
            ("a A=x C:b", "m.tbl:1: the choices of a must directly follow its attributes"),
            ("NETLINK_X", "m.tbl:1: NETLINK_X needs `types=TABLE`"),
            ("NETLINK_X types=t b=c", "m.tbl:1: after `types=TABLE`"),
            ("NETLINK_X A b=c", "m.tbl:1: `b=c` is neither a struct nor one of"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
