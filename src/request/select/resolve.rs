//! From items to the syscalls they mean.
//!
//! The lists of all `-e` are read as one, from left to right: each item adds to what is selected, `!` takes away from it. Where the first item for syscalls takes
//! away, it starts from all of them.

use super::groups::group;
use super::libc_names::libc_name;
use crate::beauty::row::Syscall;
use crate::event::Abi;
use crate::request::{Item, Selector};
use crate::text::glob;
use crate::text::near;
use smallvec::SmallVec;

/// Which syscalls are traced, and which items said so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// For each row of the table: whether it is selected.
    pub rows: Vec<bool>,
    /// For each row: the items that select it, by their index among all items. Empty for a selected row that is there only because all are.
    pub items: Vec<SmallVec<[u16; 2]>>,
    /// Selected calls that have no row: the ABI that has them, and their number in it.
    pub others: Vec<(Abi, u32)>,
    /// Numbers that nobody knows a name of are selected as well: all syscalls were meant at first.
    pub unknown: bool,
    /// Sentences for the user: which names were mapped to others.
    pub notes: Vec<String>,
}

impl Selection {
    /// Whether nothing at all is selected.
    pub fn is_empty(&self) -> bool {
        !self.unknown && self.others.is_empty() && !self.rows.contains(&true)
    }

    /// How many rows are selected.
    pub fn count(&self) -> usize {
        self.rows.iter().filter(|selected| **selected).count()
    }
}

/// Holds the syscall items of `items` against the table. `syscalls` is `--syscalls` or `--no-syscalls`; without it, syscalls are traced if an item selects some, or
/// if there is no item that adds anything else. `others` are names of calls without a row (other ABIs').
///
/// # Errors
/// A sentence a line for every name, pattern or group that means nothing here, with the names that are near.
pub fn resolve(items: &[Item], syscalls: Option<bool>, rows: &[Syscall], others: &[(Abi, u32, &str)]) -> Result<Selection, String> {
    let mut selection = Selection { rows: vec![false; rows.len()], items: vec![SmallVec::new(); rows.len()], ..Selection::default() };
    if starts_from_all(items, syscalls) {
        selection.rows.fill(true);
        selection.others = others.iter().map(|(abi, nr, _)| (*abi, *nr)).collect();
        selection.unknown = true;
    }
    let table = Table { rows, others };
    let mut errors = Vec::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_about_syscalls(item)) {
        match table.matches(&item.selector) {
            Ok(matches) => selection.apply(index as u16, item, matches),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(selection) } else { Err(errors.join("\n")) }
}

/// A regex as `-e` means it: it may match anywhere in a name.
///
/// # Errors
/// What is wrong with it, in one sentence.
pub fn regex(pattern: &str) -> Result<regex::Regex, String> {
    regex::Regex::new(pattern).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim();
        format!("the regex is wrong: {}", last.strip_prefix("error: ").unwrap_or(last))
    })
}

fn is_about_syscalls(item: &Item) -> bool {
    item.selector.is_of_syscalls()
}

fn starts_from_all(items: &[Item], syscalls: Option<bool>) -> bool {
    match items.iter().find(|item| is_about_syscalls(item)) {
        _ if syscalls == Some(false) => false,
        Some(first) => first.negated,
        None => syscalls == Some(true) || items.iter().all(|item| item.negated),
    }
}

/// What one selector means.
#[derive(Default)]
struct Matches {
    rows: Vec<usize>,
    others: Vec<(Abi, u32)>,
    note: Option<String>,
}

impl Selection {
    fn apply(&mut self, index: u16, item: &Item, matches: Matches) {
        for row in matches.rows {
            self.rows[row] = !item.negated;
            if item.negated {
                self.items[row].clear();
            } else {
                self.items[row].push(index);
            }
        }
        self.others.retain(|other| !matches.others.contains(other));
        if !item.negated {
            self.others.extend(matches.others);
        }
        self.notes.extend(matches.note);
    }
}

struct Table<'a> {
    rows: &'a [Syscall],
    others: &'a [(Abi, u32, &'a str)],
}

impl Table<'_> {
    fn matches(&self, selector: &Selector) -> Result<Matches, String> {
        let found = match selector {
            Selector::Syscall(name) if !glob::is_pattern(name) => return self.named(name),
            Selector::Syscall(pattern) => self.filtered(|name| glob::matches(pattern.as_bytes(), name.as_bytes())),
            Selector::Group(name) => {
                let bit = group(name).ok_or_else(|| format!("there is no group %{name}"))?;
                let rows = (0..self.rows.len()).filter(|row| self.rows[*row].groups.contains(bit)).collect();
                Matches { rows, ..Matches::default() }
            }
            Selector::Regex(pattern) => {
                let regex = regex(pattern)?;
                self.filtered(|name| regex.is_match(name))
            }
            Selector::Event { .. } | Selector::Probe(_) | Selector::Object(_) => Matches::default(),
        };
        if found.rows.is_empty() && found.others.is_empty() {
            return Err(format!("no syscall matches {selector} (`rtrace list syscalls` shows them all)"));
        }
        Ok(found)
    }

    /// A plain name: the kernel's, the one in the kernel's event (`newstat`), or the C library's.
    fn named(&self, name: &str) -> Result<Matches, String> {
        let mut found = self.filtered(|known| known == name);
        if found.rows.is_empty() && found.others.is_empty() {
            found.rows = (0..self.rows.len()).filter(|row| self.rows[*row].event == name).collect();
        }
        let missing = found.rows.is_empty() && found.others.is_empty();
        if let Some(libc) = libc_name(name).filter(|libc| libc.always || missing) {
            let more = self.filtered(|known| libc.syscalls.contains(&known));
            if !more.rows.is_empty() {
                found.rows = more.rows;
                let names: Vec<&str> = found.rows.iter().map(|row| self.rows[*row].name).collect();
                found.note = Some(format!("{name} is traced as {}: {}", names.join(", "), libc.explanation()));
            }
        }
        if found.rows.is_empty() && found.others.is_empty() { Err(self.unknown(name)) } else { Ok(found) }
    }

    fn filtered(&self, matches: impl Fn(&str) -> bool) -> Matches {
        let rows = (0..self.rows.len()).filter(|row| matches(self.rows[*row].name)).collect();
        let others = self.others.iter().filter(|(_, _, name)| matches(name)).map(|(abi, nr, _)| (*abi, *nr)).collect();
        Matches { rows, others, note: None }
    }

    fn unknown(&self, name: &str) -> String {
        if group(name).is_some() {
            return format!("there is no syscall called {name}; the group is written %{name}");
        }
        let names = self.rows.iter().map(|row| row.name).chain(self.others.iter().map(|(_, _, name)| *name));
        format!("there is no syscall called {name}{}", near::hint(&near::nearest(name, names, 4)))
    }
}

#[cfg(test)]
mod tests;
