//! Prints selectors as text that parses to the same selectors.

use crate::request::Selector;

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Selector::Syscall(name) => f.write_str(name),
            Selector::Group(name) => write!(f, "%{name}"),
            Selector::Regex(pattern) => write!(f, "/{}/", with_slashes_escaped(pattern)),
            Selector::Event { subsystem, name } => write!(f, "{subsystem}:{name}"),
            Selector::Request(pattern) if pattern == "*" => f.write_str("%io_uring"),
            Selector::Request(pattern) => write!(f, "io_uring:{pattern}"),
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
