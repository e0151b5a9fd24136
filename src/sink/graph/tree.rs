//! A weighted tree of call paths: a task's comm below the root, then its frames from the outermost inwards, the syscall
//! last.

use rustc_hash::FxHashMap;

/// The maximum number of nodes. The weight of further nodes is added to their parent.
const NODES_MAX: usize = 4 << 20;

/// The tree of all added paths.
#[derive(Debug)]
pub struct Tree {
    /// The nodes. A node follows its parent, and the first one is the root, which has no name.
    nodes: Vec<Node>,
    children: FxHashMap<(NodeId, NameId), NodeId>,
    names: Vec<Box<[u8]>>,
    ids: FxHashMap<Box<[u8]>, NameId>,
}

/// The index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// The index of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NameId(u32);

/// A node of the tree.
#[derive(Debug)]
struct Node {
    parent: NodeId,
    name: NameId,
    kind: NodeKind,
    /// The weight of the paths that end here.
    own: u64,
}

/// What a node stands for: a task, a frame or a syscall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    Task,
    User,
    Kernel,
    Syscall,
}

/// The position of a node in a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLayout<'a> {
    /// The comm, frame or syscall, not escaped; empty for the root.
    pub name: &'a [u8],
    /// Whether the name is that of a task, a frame or a syscall; without meaning for the root.
    pub kind: NodeKind,
    /// The number of the node's ancestors.
    pub depth: u32,
    /// The weight of everything to the left of the node.
    pub left: u64,
    /// The weight of the node with all its descendants.
    pub weight: u64,
}

impl Tree {
    /// The root, at which every path begins.
    pub const ROOT: NodeId = NodeId(0);

    pub fn new() -> Tree {
        let root = Node { parent: Tree::ROOT, name: NameId(0), kind: NodeKind::Task, own: 0 };
        Tree { nodes: vec![root], children: FxHashMap::default(), names: vec![Box::default()], ids: FxHashMap::default() }
    }

    /// Returns the child of a node with this name, and creates it if needed.
    pub fn child(&mut self, parent: NodeId, name: &[u8], kind: NodeKind) -> NodeId {
        let name = self.name(name);
        if let Some(node) = self.children.get(&(parent, name)) {
            return *node;
        }
        if self.nodes.len() == NODES_MAX {
            return parent;
        }
        let node = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { parent, name, kind, own: 0 });
        self.children.insert((parent, name), node);
        node
    }

    /// Adds the weight of a path that ends at this node.
    pub fn add(&mut self, node: NodeId, weight: u64) {
        let own = &mut self.nodes[node.0 as usize].own;
        *own = own.saturating_add(weight);
    }

    fn name(&mut self, name: &[u8]) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        id
    }

    /// Returns the weight of each node with all its descendants.
    fn weights(&self) -> Vec<u64> {
        let mut weights: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            weights[node.parent.0 as usize] = weights[node.parent.0 as usize].saturating_add(weights[at]);
        }
        weights
    }

    /// Returns the paths that end at a node, each from the root on, with their own weight.
    pub fn paths(&self) -> impl Iterator<Item = (Vec<&[u8]>, u64)> {
        let ends = self.nodes.iter().enumerate().skip(1).filter(|(_, node)| node.own > 0);
        ends.map(|(at, node)| {
            let mut names = Vec::new();
            let mut id = NodeId(at as u32);
            while id != Tree::ROOT {
                let node = &self.nodes[id.0 as usize];
                names.push(&*self.names[node.name.0 as usize]);
                id = node.parent;
            }
            names.reverse();
            (names, node.own)
        })
    }

    /// Returns the layout of all nodes with a weight, the root first, siblings in the order of their names.
    pub fn layout(&self) -> Vec<NodeLayout<'_>> {
        let weights = self.weights();
        let mut children: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1).filter(|(at, _)| weights[*at] > 0) {
            children[node.parent.0 as usize].push(NodeId(at as u32));
        }
        for nodes in &mut children {
            nodes.sort_unstable_by_key(|id| &self.names[self.nodes[id.0 as usize].name.0 as usize]);
        }
        let mut layout = Vec::new();
        let mut open = vec![(Tree::ROOT, 0, 0)];
        while let Some((id, depth, left)) = open.pop() {
            let (at, node) = (id.0 as usize, &self.nodes[id.0 as usize]);
            layout.push(NodeLayout { name: &self.names[node.name.0 as usize], kind: node.kind, depth, left, weight: weights[at] });
            let mut next = left;
            let first = open.len();
            for child in &children[at] {
                open.push((*child, depth + 1, next));
                next += weights[child.0 as usize];
            }
            open[first..].reverse();
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(tree: &mut Tree, path: &str, weight: u64) {
        let mut node = Tree::ROOT;
        for name in path.split(';') {
            node = tree.child(node, name.as_bytes(), NodeKind::User);
        }
        tree.add(node, weight);
    }

    fn tree() -> Tree {
        let mut tree = Tree::new();
        for (path, weight) in [("sh;main;b;read", 3), ("sh;main;a;write", 4), ("sh;main;b;read", 5), ("sh;main", 1), ("cat", 2)] {
            add(&mut tree, path, weight);
        }
        tree
    }

    #[test]
    fn equal_paths_are_summed_up() {
        let tree = tree();
        let mut paths: Vec<(String, u64)> = tree
            .paths()
            .map(|(names, weight)| (names.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(";"), weight))
            .collect();
        paths.sort();
        let wanted = [("cat", 2), ("sh;main", 1), ("sh;main;a;write", 4), ("sh;main;b;read", 8)];
        assert_eq!(paths, wanted.map(|(path, weight)| (path.to_owned(), weight)));
    }

    #[test]
    fn a_node_is_as_wide_as_its_descendants() {
        let tree = tree();
        let layout: Vec<(String, u32, u64, u64)> =
            tree.layout().iter().map(|d| (String::from_utf8_lossy(d.name).into_owned(), d.depth, d.left, d.weight)).collect();
        let wanted = [
            ("", 0, 0, 15),
            ("cat", 1, 0, 2),
            ("sh", 1, 2, 13),
            ("main", 2, 2, 13),
            ("a", 3, 2, 4),
            ("write", 4, 2, 4),
            ("b", 3, 6, 8),
            ("read", 4, 6, 8),
        ];
        assert_eq!(layout, wanted.map(|(name, depth, left, weight)| (name.to_owned(), depth, left, weight)));
    }
}
