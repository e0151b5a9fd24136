//! Folded stacks: one line per call path, its names joined by semicolons and followed by its weight, as flame graph
//! programs read them.

use crate::sink::call_tree::{NodeKind, Tree};
use crate::text::{escape, number};

/// Returns the lines sorted bytewise, so that two runs can be compared. Semicolons and line breaks in names are
/// escaped.
pub fn folded(tree: &Tree) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = tree.paths().map(|(names, weight)| line(&names, weight)).collect();
    lines.sort_unstable();
    lines.concat()
}

fn line(names: &[(&[u8], NodeKind)], weight: u64) -> Vec<u8> {
    let mut line = Vec::new();
    for (at, (name, _)) in names.iter().enumerate() {
        if at > 0 {
            line.push(b';');
        }
        escape::between_semicolons(&mut line, name);
    }
    line.push(b' ');
    number::uint(&mut line, weight);
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::call_tree::NodeId;

    #[test]
    fn each_path_is_a_line() {
        let mut tree = Tree::new();
        for path in [&["sh", "main", "read"][..], &["a;b\n", "f(x; y)", "write"]] {
            let end = path.iter().fold(NodeId::ROOT, |node, name| tree.child(node, name.as_bytes(), NodeKind::User));
            tree.add(end, 7);
        }
        assert_eq!(String::from_utf8(folded(&tree)).unwrap(), "a\\x3bb\\n;f(x\\x3b y);write 7\nsh;main;read 7\n");
    }
}
