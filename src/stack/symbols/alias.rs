//! Which of several names of one address is shown: the same one every time, and the one that a programmer calls it by.

use std::cmp::Ordering;

/// How far a symbol's name is seen (`STB_*`, man 5 elf). The lesser comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    Global,
    Weak,
    Local,
}

/// Less is the better name: seen from outside the file, with few leading underscores (`write`, not `__write`), global rather than weak, short, and
/// in the end the one that is first in the alphabet.
pub fn compare((a, a_binding): (&[u8], Binding), (b, b_binding): (&[u8], Binding)) -> Ordering {
    let key = |name: &[u8], binding: Binding| (binding == Binding::Local, underscores(name), binding, name.len());
    key(a, a_binding).cmp(&key(b, b_binding)).then_with(|| a.cmp(b))
}

/// More make no difference.
const MANY: usize = 8;

/// Those before the name; the one or two of a mangled name are part of it.
fn underscores(name: &[u8]) -> usize {
    if name.starts_with(b"_Z") || name.starts_with(b"_R") {
        return 0;
    }
    // The C library's names for itself (`__GI___write`), of any number of underscores.
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
    fn the_name_that_programmers_use() {
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
