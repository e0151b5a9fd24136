//! Prints items as text that parses to the same items.

use crate::request::{Item, Selector};
use crate::session::{CallGraph, Terms};

/// Formats items as a list for `-e`.
pub fn print_list(items: &[Item]) -> String {
    let items: Vec<String> =
        items.iter().map(|item| format!("{}{}{}", if item.negated { "!" } else { "" }, item.selector, terms(&item.terms))).collect();
    items.join(",")
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Selector::Syscall(name) => f.write_str(name),
            Selector::Group(name) => write!(f, "%{name}"),
            Selector::Regex(pattern) => write!(f, "/{}/", with_slashes_escaped(pattern)),
            Selector::Event { subsystem, name } => write!(f, "{subsystem}:{name}"),
            Selector::Probe(probe) => write!(f, "{probe}"),
            Selector::Object(path) => write!(f, "{}", path.display()),
        }
    }
}

fn with_slashes_escaped(pattern: &str) -> String {
    let mut escaped = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '/' => escaped.push_str("\\/"),
            '\\' => escaped.extend(std::iter::once(c).chain(chars.next())),
            _ => escaped.push(c),
        }
    }
    escaped
}

fn terms(terms: &Terms) -> String {
    let mut all = Vec::new();
    all.extend(terms.nr.map(|n| format!("nr={n}")));
    all.extend(terms.max_stack.map(|n| format!("max-stack={n}")));
    all.extend(terms.call_graph.map(|how| match how {
        CallGraph::FramePointer => "call-graph=fp".to_owned(),
        CallGraph::Dwarf { size: None } => "call-graph=dwarf".to_owned(),
        CallGraph::Dwarf { size: Some(bytes) } => format!("call-graph=dwarf:{bytes}"),
    }));
    all.extend(terms.kernel_stack.then(|| "kernel-stack".to_owned()));
    all.extend(terms.name.as_ref().map(|name| format!("name={name}")));
    all.extend(terms.no_inherit.then(|| "no-inherit".to_owned()));
    if all.is_empty() { String::new() } else { format!("/{}/", all.join(",")) }
}
