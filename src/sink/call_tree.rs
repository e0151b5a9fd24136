//! A tree of call paths with what is added up along them: a task's comm below the root, then its frames from the
//! outermost inwards, the syscall last.

use crate::beauty::lookup;
use crate::event::{Call, Event};
use crate::stack::name::Names;
use rustc_hash::FxHashMap;

/// The maximum number of nodes. What belongs to further nodes is added to their parent.
const NODES_MAX: usize = 4 << 20;

/// What is added up along the paths of a tree.
pub trait Sum: Copy + Default + PartialEq {
    /// Adds another value. A sum that is too large for its type becomes the largest value.
    fn add(&mut self, other: Self);
}

impl Sum for u64 {
    fn add(&mut self, other: u64) {
        *self = self.saturating_add(other);
    }
}

/// The tree of all added paths. `W` is added up.
#[derive(Debug)]
pub struct Tree<W = u64> {
    /// The nodes. A node follows its parent, and the first one is the root, which has no name.
    nodes: Vec<Node<W>>,
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
struct Node<W> {
    parent: NodeId,
    name: NameId,
    kind: NodeKind,
    /// The sum of the paths that end here.
    own: W,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// The tasks with a comm.
    Task,
    /// Callers that are not known, because a stack ends early.
    Unknown,
    /// A function of the program.
    User,
    /// A function of the kernel.
    Kernel,
    /// A syscall.
    Syscall,
}

/// The names of a path, from the root on.
pub type PathNames<'t> = Vec<(&'t [u8], NodeKind)>;

/// The path of a call.
#[derive(Debug, Default)]
pub struct CallPath {
    /// The comm of the task, the frames of the program from the outermost inwards, the syscall, and the frames of the
    /// kernel.
    pub names: Vec<(Vec<u8>, NodeKind)>,
}

impl CallPath {
    /// Becomes the path of another call.
    pub fn set(&mut self, event: &Event, call: &Call, names: &dyn Names) {
        let path = &mut self.names;
        path.clear();
        if let Some(stack) = &call.stack {
            names.frames(event.task.pid, stack, &mut |frame| {
                path.push((frame.label(), if frame.kernel { NodeKind::Kernel } else { NodeKind::User }));
            });
        }
        let mut name = Vec::new();
        lookup::write_name(&mut name, lookup::row(call.abi, call.nr), call.abi, call.nr);
        // The kernel's frames are callees of the syscall, the user's are its callers. They are innermost first so far.
        let kernel = path.iter().take_while(|(_, kind)| *kind == NodeKind::Kernel).count();
        path.insert(kernel, (name, NodeKind::Syscall));
        path.push((event.comm.as_deref().unwrap_or(b"?").to_vec(), NodeKind::Task));
        path.reverse();
    }
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

impl NodeId {
    /// The root, at which every path begins.
    pub const ROOT: NodeId = NodeId(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl<W: Sum> Tree<W> {
    pub fn new() -> Tree<W> {
        let root = Node { parent: NodeId::ROOT, name: NameId(0), kind: NodeKind::Task, own: W::default() };
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
        self.nodes.push(Node { parent, name, kind, own: W::default() });
        self.children.insert((parent, name), node);
        node
    }

    /// Adds to the sum of the path that ends at this node.
    pub fn add(&mut self, node: NodeId, value: W) {
        self.nodes[node.index()].own.add(value);
    }

    /// Adds to the sum of this path. Returns whether the tree has room for all of it.
    pub fn add_path<'n>(&mut self, path: impl IntoIterator<Item = (&'n [u8], NodeKind)>, value: W) -> bool {
        let (mut node, mut is_whole) = (NodeId::ROOT, true);
        for (name, kind) in path {
            let child = self.child(node, name, kind);
            is_whole &= child != node;
            node = child;
        }
        self.add(node, value);
        is_whole
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

    /// Returns the paths that end at a node, each from the root on, with their own sum.
    pub fn paths(&self) -> impl Iterator<Item = (PathNames<'_>, W)> {
        let ends = self.nodes.iter().enumerate().skip(1).filter(|(_, node)| node.own != W::default());
        ends.map(|(at, node)| {
            let mut names = Vec::new();
            let mut id = NodeId(at as u32);
            while id != NodeId::ROOT {
                let node = &self.nodes[id.index()];
                names.push((&*self.names[node.name.0 as usize], node.kind));
                id = node.parent;
            }
            names.reverse();
            (names, node.own)
        })
    }

    /// Adds up each node with its descendants.
    pub fn summed(&self) -> Summed<'_, W> {
        let mut sums: Vec<W> = self.nodes.iter().map(|node| node.own).collect();
        for (at, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let sum = sums[at];
            sums[node.parent.index()].add(sum);
        }
        let mut children: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1).filter(|(at, _)| sums[*at] != W::default()) {
            children[node.parent.index()].push(NodeId(at as u32));
        }
        let summed = Summed { tree: self, sums, children: Vec::new() };
        for nodes in &mut children {
            nodes.sort_unstable_by_key(|id| summed.name(*id));
        }
        Summed { children, ..summed }
    }
}

/// A tree whose nodes were added up.
#[derive(Debug)]
pub struct Summed<'t, W> {
    tree: &'t Tree<W>,
    sums: Vec<W>,
    children: Vec<Vec<NodeId>>,
}

impl<'t, W: Sum> Summed<'t, W> {
    /// Returns the comm, frame or syscall of a node, not escaped; it is empty for the root.
    pub fn name(&self, node: NodeId) -> &'t [u8] {
        &self.tree.names[self.tree.nodes[node.index()].name.0 as usize]
    }

    /// Returns what a node stands for; it has no meaning for the root.
    pub fn kind(&self, node: NodeId) -> NodeKind {
        self.tree.nodes[node.index()].kind
    }

    /// Returns the sum of the paths that end at a node.
    pub fn own(&self, node: NodeId) -> W {
        self.tree.nodes[node.index()].own
    }

    /// Returns the sum of a node with all its descendants.
    pub fn sum(&self, node: NodeId) -> W {
        self.sums[node.index()]
    }

    /// Returns the children of a node with a sum, in the order of their names.
    pub fn children(&self, node: NodeId) -> &[NodeId] {
        &self.children[node.index()]
    }
}

impl Tree {
    /// Returns the layout of all nodes with a weight, the root first, siblings in the order of their names.
    pub fn layout(&self) -> Vec<NodeLayout<'_>> {
        let summed = self.summed();
        let mut layout = Vec::new();
        let mut open = vec![(NodeId::ROOT, 0, 0)];
        while let Some((id, depth, left)) = open.pop() {
            layout.push(NodeLayout { name: summed.name(id), kind: summed.kind(id), depth, left, weight: summed.sum(id) });
            let mut next = left;
            let first = open.len();
            for child in summed.children(id) {
                open.push((*child, depth + 1, next));
                next += summed.sum(*child);
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
        let mut node = NodeId::ROOT;
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
            .map(|(names, weight)| (names.iter().map(|(name, _)| String::from_utf8_lossy(name)).collect::<Vec<_>>().join(";"), weight))
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
