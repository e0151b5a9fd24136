//! The items of the report of `rtrace check`.

use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::refused::{self, Refused};
use crate::text::json::Integer;
use serde::Serialize;
use serde_json::{Map, Value};

/// One thing that was checked.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "check_item")]
pub struct Item {
    item: &'static str,
    /// Whether the thing works.
    pub state: State,
    /// A sentence for people.
    finding: String,
    /// The numbers and names in the finding.
    #[serde(skip_serializing_if = "Map::is_empty")]
    facts: Map<String, Value>,
    /// Advice on what to do, if no command on this machine helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// The command that enables the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// The state of an item, which is the first word of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Ok,
    /// The item works, with a limit that users may notice.
    Limited,
    Missing,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        }
    }
}

impl Item {
    pub fn new(state: State, item: &'static str, finding: impl Into<String>) -> Item {
        Item { state, item, finding: finding.into(), facts: Map::new(), advice: None, command: None }
    }

    /// Returns an item that works. The finding is a sentence that says what was found.
    pub fn ok(item: &'static str, finding: impl Into<String>) -> Item {
        Item::new(State::Ok, item, finding)
    }

    /// Returns an item that does not work. The finding is a sentence that says why.
    pub fn missing(item: &'static str, finding: impl Into<String>) -> Item {
        Item::new(State::Missing, item, finding)
    }

    /// Returns an item that works with a limit. The finding is a sentence that names the limit.
    pub fn limited(item: &'static str, finding: impl Into<String>) -> Item {
        Item::new(State::Limited, item, finding)
    }

    /// Adds a fact that the finding mentions.
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Item {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a number that the finding mentions.
    pub fn number(self, name: &str, number: u64) -> Item {
        let value = serde_json::to_value(Integer(number)).unwrap_or_default();
        self.fact(name, value)
    }

    /// Adds the command that enables the item.
    pub fn by(self, command: impl Into<String>) -> Item {
        Item { command: Some(command.into()), ..self }
    }

    /// Adds the way to make the kernel permit a system call that needs these capabilities: a command, or a sentence of
    /// advice if no command on this machine helps (in a container, or under a seccomp filter).
    pub fn granted(self, call: &str, privileges: &Privileges, needed: &[Capability], command: &str) -> Item {
        match Refused::of(privileges, needed) {
            Refused::NotRoot => self.by(command),
            _ => Item { advice: Some(refused::advice(call, privileges, needed)), ..self },
        }
    }

    /// Returns the line of the item: its state, its name, what was found, and what to do.
    pub fn line(&self) -> String {
        let advice = self.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        let command = self.command.as_ref().map(|command| format!("; run: {command}")).unwrap_or_default();
        format!("{:<8} {:<16} {}{advice}{command}\n", self.state.word(), self.item, self.finding)
    }
}
