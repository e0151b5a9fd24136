//! The choice among several symbols of one address. It is always the same, and prefers the name that programmers use.

use std::cmp::Ordering;

/// A symbol's binding (`STB_*`, man 5 elf), in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    Global,
    Weak,
    Local,
}

/// Compares two names; the lesser one is preferred. The criteria are, in this order: not local, few leading underscores
/// (`write`, not `__write`), global rather than weak, short, and first in alphabetical order.
pub fn compare((a, a_binding): (&[u8], Binding), (b, b_binding): (&[u8], Binding)) -> Ordering {
    let key = |name: &[u8], binding: Binding| (binding == Binding::Local, underscores(name), binding, name.len());
    key(a, a_binding).cmp(&key(b, b_binding)).then_with(|| a.cmp(b))
}

/// The number from which on more underscores make no difference.
const MANY: usize = 8;

/// Returns the number of underscores before a name. Those of a mangled name's prefix do not count.
fn underscores(name: &[u8]) -> usize {
    if name.starts_with(b"_Z") || name.starts_with(b"_R") {
        return 0;
    }
    // The C library's internal names (`__GI___write`) are the least preferred.
    if name.starts_with(b"__GI_") {
        return MANY;
    }
    name.iter().take(MANY).take_while(|byte| **byte == b'_').count()
}

#[cfg(test)]
mod tests {
    use super::Binding::*;
    use super::*;

    #[test]
    fn aliases_are_ordered_by_preference() {
        let mut names: Vec<(&[u8], Binding)> = vec![
            (b"__GI___write", Local),
            (b"____write", Local),
            (b"__write", Global),
            (b"write", Weak),
            (b"_Z5writev", Global),
            (b"a_longer_name", Global),
            (b"other", Weak),
            (b"write_local", Local),
        ];
        names.sort_by(|a, b| compare(*a, *b));
        let names: Vec<&str> = names.iter().map(|(name, _)| str::from_utf8(name).unwrap()).collect();
        assert_eq!(names, ["_Z5writev", "a_longer_name", "other", "write", "__write", "write_local", "____write", "__GI___write"]);
    }
}
