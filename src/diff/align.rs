//! Finds the processes of two recordings that correspond to each other.
//!
//! The trees are walked from their roots. Two nodes correspond if their parents do and they run the same program with
//! the same arguments; if there is no such node, those that run a program of the same name, in the order of their first
//! start. If each recording begins with a single program, these correspond in any case: one is another version. But a
//! program that runs the program of the other recording (`env LC_ALL=C COMMAND`) has no counterpart: the one that it
//! runs has.

use super::outline::{Image, Node, Outline};
use super::words::{Word, Words};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// The nodes that correspond to each other, and the others.
#[derive(Debug, Default)]
pub struct Alignment {
    /// The nodes of both recordings, by their indices.
    pub pairs: Vec<[usize; 2]>,
    /// The nodes of each recording that have no counterpart, while their parents have one.
    pub alone: [Vec<usize>; 2],
}

/// Aligns two outlines.
pub fn align(outlines: [&Outline; 2], words: &Words) -> Alignment {
    let mut alignment = Alignment::default();
    let mut pending = VecDeque::from([[0, 0]]);
    while let Some(pair) = pending.pop_front() {
        alignment.pairs.push(pair);
        let [Some(a), Some(b)] = [outlines[0].nodes.get(pair[0]), outlines[1].nodes.get(pair[1])] else { continue };
        let mut left = [a.children.clone(), b.children.clone()];
        let image = |side: usize, node: usize| &outlines[side].nodes[node].image;
        pending.extend(matched(&mut left, &|side, node| Some(image(side, node).clone())));
        pending.extend(matched(&mut left, &|side, node| short_name(&outlines[side].nodes[node], words).map(<[u8]>::to_vec)));
        if pair == [0, 0]
            && let ([one], [other]) = (&left[0][..], &left[1][..])
            && matches!((image(0, *one), image(1, *other)), (Image::Program { .. }, Image::Program { .. }))
        {
            let pair = within_wrapper(outlines, [*one, *other], words);
            pending.push_back(pair);
            left = std::array::from_fn(|side| left[side].iter().copied().filter(|node| *node != pair[side]).collect());
        }
        for (alone, left) in alignment.alone.iter_mut().zip(left) {
            alone.extend(left);
        }
    }
    alignment
}

/// Returns which nodes correspond if these two have different names: one of them and a descendant of the other that has
/// its name, or the two themselves if there is none.
fn within_wrapper(outlines: [&Outline; 2], pair: [usize; 2], words: &Words) -> [usize; 2] {
    for (wrapper, program) in [(1, 0), (0, 1)] {
        let name = short_name(&outlines[program].nodes[pair[program]], words);
        let mut pending = VecDeque::from(outlines[wrapper].nodes[pair[wrapper]].children.clone());
        while let Some(at) = pending.pop_front() {
            let node = &outlines[wrapper].nodes[at];
            if node.processes > 0 && short_name(node, words) == name {
                let mut found = pair;
                found[wrapper] = at;
                return found;
            }
            pending.extend(&node.children);
        }
    }
    pair
}

/// Takes the nodes with equal keys from both lists: the first from one with the first from the other, and so on.
fn matched<K: Eq + std::hash::Hash>(left: &mut [Vec<usize>; 2], key: &dyn Fn(usize, usize) -> Option<K>) -> Vec<[usize; 2]> {
    let mut others: FxHashMap<K, VecDeque<usize>> = FxHashMap::default();
    for node in &left[1] {
        key(1, *node).into_iter().for_each(|key| others.entry(key).or_default().push_back(*node));
    }
    let mut pairs = Vec::new();
    left[0].retain(|node| {
        let other = key(0, *node).and_then(|key| others.get_mut(&key)?.pop_front());
        pairs.extend(other.map(|other| [*node, other]));
        other.is_none()
    });
    let taken: FxHashSet<usize> = pairs.iter().map(|[_, other]| *other).collect();
    left[1].retain(|node| !taken.contains(node));
    pairs
}

/// Returns the name by which programs are compared if their paths or arguments differ.
fn short_name<'w>(node: &Node, words: &'w Words) -> Option<&'w [u8]> {
    match node.image {
        Image::Program { path, .. } => Some(base_name(words, path)),
        Image::Unknown(_) | Image::Forked => None,
    }
}

/// Returns the last part of a path.
pub fn base_name(words: &Words, path: Word) -> &[u8] {
    words.text(path).rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
