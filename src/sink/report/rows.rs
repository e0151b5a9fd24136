//! The lines of a report: the nodes of the tree of call paths from the root on, the heaviest of siblings first.

use super::Sums;
use crate::request::{Order, Report};
use crate::sink::call_tree::{NodeId, NodeKind, Sum, Summed};
use std::cmp::Reverse;

/// A line of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'t> {
    /// How far it is indented: the number of its ancestors that have several children.
    pub level: usize,
    /// What it is about.
    pub what: What<'t>,
    /// The calls below it.
    pub sums: Sums,
    /// Its numbers are those of the row before, because all calls go on from there to this one.
    pub is_continued: bool,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'t> {
    /// A node: its name, which is not escaped, and what it stands for.
    Node(&'t [u8], NodeKind),
    /// Siblings that are left out, because their share is too small.
    LeftOut(usize),
}

/// How rows are ordered, and how large their share is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    order: Order,
    /// The whole, of which rows have shares.
    whole: Sums,
    share_min: f64,
}

impl Scale {
    /// Returns the scale of a report of these calls.
    pub fn new(wanted: &Report, whole: Sums) -> Scale {
        Scale { order: wanted.order, whole, share_min: wanted.share_min }
    }

    /// Returns whether shares are those of the number of calls. They are if the report is ordered by it, or if no
    /// duration is known.
    pub fn counts(&self) -> bool {
        self.order == Order::Count || self.whole.time == 0
    }

    /// Returns the share in percent.
    pub fn share(&self, sums: &Sums) -> f64 {
        let (part, whole) = if self.counts() { (sums.calls, self.whole.calls) } else { (sums.time, self.whole.time) };
        if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
    }

    /// Returns the sort key: the heaviest one first. Equal ones keep the order of their names.
    pub fn key(&self, sums: &Sums) -> Reverse<(u64, u64)> {
        Reverse(match self.order {
            Order::Time => (sums.time, sums.calls),
            Order::Count => (sums.calls, sums.time),
            Order::Average => (sums.average().unwrap_or(0), sums.calls),
            Order::Name => (0, 0),
        })
    }
}

/// Returns the rows in their order.
pub fn rows<'t>(tree: &Summed<'t, Sums>, scale: &Scale) -> Vec<Row<'t>> {
    let mut rows = Vec::new();
    let mut open = below(tree, scale, NodeId::ROOT, 0, true);
    open.reverse();
    while let Some((row, node)) = open.pop() {
        rows.push(row);
        let Some(node) = node else { continue };
        let mut children = below(tree, scale, node, row.level, tree.own(node) != Sums::default());
        children.reverse();
        open.append(&mut children);
    }
    rows
}

/// Returns the rows of a node's children. `ends` says that paths end at the node, or that it is the root.
fn below<'t>(tree: &Summed<'t, Sums>, scale: &Scale, node: NodeId, level: usize, ends: bool) -> Vec<(Row<'t>, Option<NodeId>)> {
    let (mut shown, left_out): (Vec<NodeId>, Vec<NodeId>) =
        tree.children(node).iter().partition(|child| scale.share(&tree.sum(**child)) >= scale.share_min);
    shown.sort_by_key(|child| scale.key(&tree.sum(*child)));
    let is_continued = shown.len() == 1 && left_out.is_empty() && !ends;
    let level = if is_continued || node == NodeId::ROOT { level } else { level + 1 };
    let row = |child: NodeId| {
        let kind = tree.kind(child);
        // A syscall has its numbers, so that its line can be read alone.
        let is_continued = is_continued && kind != NodeKind::Syscall;
        (Row { level, what: What::Node(tree.name(child), kind), sums: tree.sum(child), is_continued }, Some(child))
    };
    let mut rows: Vec<_> = shown.into_iter().map(row).collect();
    if !left_out.is_empty() {
        let mut sums = Sums::default();
        left_out.iter().for_each(|child| sums.add(tree.sum(*child)));
        rows.push((Row { level, what: What::LeftOut(left_out.len()), sums, is_continued: false }, None));
    }
    rows
}
