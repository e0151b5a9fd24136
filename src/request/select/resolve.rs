//! Resolves items to the selected syscalls.
//!
//! The lists of all `-e` options are read as one, from left to right: an item adds syscalls to the selection, and an
//! item with `!` removes them. If the first item for syscalls removes, the selection starts with all syscalls.

use super::groups::group;
use super::libc_names::libc_name;
use crate::beauty::lookup::requests;
use crate::beauty::row::Syscall;
use crate::event::Abi;
use crate::request::{Item, Selector};
use crate::text::glob;
use crate::text::near;
use smallvec::SmallVec;

/// The selected syscalls, and the items that select them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// For each row of the table: whether it is selected.
    pub rows: Vec<bool>,
    /// For each row: the indices of the items that select it. Empty for a row that is selected only because all are.
    pub items: Vec<SmallVec<[u16; 2]>>,
    /// For each opcode of io_uring ([`crate::beauty::lookup::requests`]): the indices of the items that select it.
    /// Empty if no request is selected.
    pub requests: Vec<SmallVec<[u16; 2]>>,
    /// Selected syscalls without a row: their ABI and their number in it.
    pub others: Vec<(Abi, u32)>,
    /// Numbers without a name are selected, too, because the selection started with all syscalls.
    pub unknown: bool,
    /// Messages for the user about names that were mapped to other names.
    pub notices: Vec<String>,
}

impl Selection {
    /// Returns whether no syscall is selected.
    pub fn is_empty(&self) -> bool {
        !self.unknown && self.others.is_empty() && !self.rows.contains(&true)
    }

    /// Returns whether requests of io_uring are selected.
    pub fn has_requests(&self) -> bool {
        self.requests.iter().any(|by| !by.is_empty())
    }

    /// Returns the number of selected rows.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.rows.iter().filter(|selected| **selected).count()
    }
}

/// Resolves the items for syscalls with the table `rows`. `syscalls` is `--syscalls` or `--no-syscalls`. Without these
/// options, syscalls are traced if an item selects some, or if no item adds events. `others` are the syscalls without a
/// row (of other ABIs): their ABIs, numbers and names.
///
/// # Errors
/// A name, pattern or group matches no syscall. The error has a line for each of them, with similar names.
pub fn resolve(items: &[Item], syscalls: Option<bool>, rows: &[Syscall], others: &[(Abi, u32, &str)]) -> Result<Selection, String> {
    let mut selection = Selection { rows: vec![false; rows.len()], items: vec![SmallVec::new(); rows.len()], ..Selection::default() };
    if starts_from_all(items, syscalls) {
        selection.rows.fill(true);
        selection.others = others.iter().map(|(abi, nr, _)| (*abi, *nr)).collect();
        selection.unknown = true;
    }
    let table = SyscallTable { rows, others };
    let mut errors = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if let Selector::Request(pattern) = &item.selector {
            errors.extend(selection.apply_request(index as u16, item, pattern).err());
        }
    }
    for (index, item) in items.iter().enumerate().filter(|(_, item)| is_about_syscalls(item)) {
        match table.matches(&item.selector) {
            Ok(matches) => selection.apply(index as u16, item, matches),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(selection) } else { Err(errors.join("\n")) }
}

/// Compiles a regex of `-e`, which may match anywhere in a name.
///
/// # Errors
/// The regex is not valid; the error is a sentence with the reason.
pub fn regex(pattern: &str) -> Result<regex::Regex, String> {
    regex::Regex::new(pattern).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim();
        format!("the regex is not valid: {}", last.strip_prefix("error: ").unwrap_or(last))
    })
}

fn is_about_syscalls(item: &Item) -> bool {
    item.selector.selects_syscalls()
}

fn starts_from_all(items: &[Item], syscalls: Option<bool>) -> bool {
    match items.iter().find(|item| is_about_syscalls(item)) {
        _ if syscalls == Some(false) => false,
        Some(first) => first.negated,
        None => syscalls == Some(true) || items.iter().all(|item| item.negated),
    }
}

/// The syscalls that match a selector.
#[derive(Default)]
struct Matches {
    rows: Vec<usize>,
    others: Vec<(Abi, u32)>,
    notice: Option<String>,
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
        self.notices.extend(matches.notice);
    }
}

impl Selection {
    /// Applies an item for requests of io_uring. A completion without a known request is selected with all requests.
    fn apply_request(&mut self, index: u16, item: &Item, pattern: &str) -> Result<(), String> {
        let names: Vec<String> = (0..=requests::COMPLETION).map(requests::name).collect();
        self.requests.resize(names.len(), SmallVec::new());
        let mut found = false;
        for (selected_by, name) in self.requests.iter_mut().zip(&names) {
            if glob::matches(pattern.as_bytes(), name.as_bytes()) {
                found = true;
                if item.negated { selected_by.clear() } else { selected_by.push(index) }
            }
        }
        if found {
            return Ok(());
        }
        let known = names.iter().map(String::as_str).filter(|name| !name.starts_with("op_"));
        let near: Vec<String> = near::nearest(pattern, known, 4).iter().map(|name| format!("io_uring:{name}")).collect();
        Err(format!("io_uring has no request {pattern}{}", near::hint(&near)))
    }
}

/// The syscalls with rows, and those without.
struct SyscallTable<'a> {
    rows: &'a [Syscall],
    others: &'a [(Abi, u32, &'a str)],
}

impl SyscallTable<'_> {
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
            Selector::Event { .. } | Selector::Request(_) | Selector::Probe(_) | Selector::Object(_) => Matches::default(),
        };
        if found.rows.is_empty() && found.others.is_empty() {
            return Err(format!("no syscall matches {selector} (`rtrace list syscalls` shows all syscalls)"));
        }
        Ok(found)
    }

    /// Resolves a name without wildcards: that of the kernel, that of the kernel's event (`newstat`), or that of the C
    /// library.
    fn named(&self, name: &str) -> Result<Matches, String> {
        let mut found = self.filtered(|known| known == name);
        if found.rows.is_empty() && found.others.is_empty() {
            found.rows = (0..self.rows.len()).filter(|row| self.rows[*row].event == name).collect();
        }
        let missing = found.rows.is_empty() && found.others.is_empty();
        if let Some(libc) = libc_name(name).filter(|libc| libc.always || missing) {
            let more = self.filtered(|known| libc.syscalls.contains(&known));
            if !more.rows.is_empty() {
                let alone = match libc.syscalls.contains(&name) {
                    true => format!("; /^{name}$/ selects only the syscall {name}"),
                    false => String::new(),
                };
                found.rows = more.rows;
                let names: Vec<&str> = found.rows.iter().map(|row| self.rows[*row].name).collect();
                found.notice = Some(format!("{name} is traced as {}: {}{alone}", names.join(", "), libc.explanation()));
            }
        }
        if found.rows.is_empty() && found.others.is_empty() { Err(self.unknown(name)) } else { Ok(found) }
    }

    fn filtered(&self, matches: impl Fn(&str) -> bool) -> Matches {
        let rows = (0..self.rows.len()).filter(|row| matches(self.rows[*row].name)).collect();
        let others = self.others.iter().filter(|(_, _, name)| matches(name)).map(|(abi, nr, _)| (*abi, *nr)).collect();
        Matches { rows, others, notice: None }
    }

    fn unknown(&self, name: &str) -> String {
        if group(name).is_some() {
            return format!("there is no syscall {name}; for the group, write %{name}");
        }
        let names = self.rows.iter().map(|row| row.name).chain(self.others.iter().map(|(_, _, name)| *name));
        format!("there is no syscall {name}{}", near::hint(&near::nearest(name, names, 4)))
    }
}

#[cfg(test)]
mod tests;
