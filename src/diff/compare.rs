//! Compares two outlines.

use super::align::{Alignment, align, base_name};
use super::calls::{compare_group, groups};
use super::described::STANDARD_ERROR;
use super::difference::{Difference, Side, What};
use super::fold;
use super::outline::{End, Image, Outline};
use super::words::{Word, Words};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Returns the differences, those first that say most about why one run works and another does not.
pub fn compare(outlines: [&Outline; 2], words: &Words) -> Vec<Difference> {
    let Alignment { pairs, alone } = align(outlines, words);
    let mut found = Vec::new();
    for pair in pairs {
        let nodes = [&outlines[0].nodes[pair[0]], &outlines[1].nodes[pair[1]]];
        let programs = program_of(outlines[1], pair[1]);
        let mut add = |what, objects, first| found.push(Difference { programs: programs.clone(), what, objects, first });
        let ends = nodes.map(|node| node.ends.keys().copied().collect::<BTreeSet<End>>());
        if ends[0] != ends[1] && !ends.iter().any(BTreeSet::is_empty) {
            add(What::Ends(ends), Vec::new(), 0);
        }
        let mut complains = false;
        for side in Side::BOTH {
            if let (Some(text), None) = (&nodes[side.index()].complaint, &nodes[side.other().index()].complaint) {
                add(What::Complains { side, text: text.clone() }, Vec::new(), 0);
                complains = true;
            }
        }
        if nodes[0].image != nodes[1].image {
            add(What::Arguments(nodes.map(|node| command(&node.image))), Vec::new(), 0);
        }
        let groups = groups(nodes.map(|node| &node.uses));
        let of_side = |side| groups.iter().filter(move |(_, group)| group.worked(side)).map(|(object, _)| base_name(words, *object));
        let worked = [Side::A, Side::B].map(|side| of_side(side).collect::<FxHashSet<&[u8]>>());
        for (object, group) in &groups {
            if complains && words.text(*object) == STANDARD_ERROR {
                continue;
            }
            let objects: Vec<Word> = (*object != Word::EMPTY).then_some(*object).into_iter().collect();
            for mut what in compare_group(group, !objects.is_empty()) {
                if let What::Tries { side, found, .. } = &mut what {
                    *found = worked[side.index()].contains(base_name(words, *object));
                }
                add(what, objects.clone(), group.first);
            }
        }
    }
    for side in Side::BOTH {
        let outline = outlines[side.index()];
        for node in &alone[side.index()] {
            runs(outline, *node, side, &mut found);
        }
    }
    fold::fold(found, words)
}

/// Adds the programs that only one recording runs: that of the node, or if its processes are copies of their parent,
/// those that they execute.
fn runs(outline: &Outline, at: usize, side: Side, found: &mut Vec<Difference>) {
    let node = &outline.nodes[at];
    let executes = node.children.iter().any(|child| matches!(outline.nodes[*child].image, Image::Program { .. }));
    if node.image == Image::Forked && executes {
        node.children.iter().for_each(|child| runs(outline, *child, side, found));
        return;
    }
    let (path, args) = match &node.image {
        Image::Program { path, args } => (Some(*path), args.clone()),
        Image::Unknown(comm) => (Some(*comm), Vec::new()),
        Image::Forked => (None, Vec::new()),
    };
    let what = What::Runs { side, path, args, processes: node.processes };
    found.push(Difference { programs: program_of(outline, node.parent), what, objects: Vec::new(), first: at as u64 });
}

fn program_of(outline: &Outline, node: usize) -> BTreeSet<Word> {
    outline.program(node).into_iter().collect()
}

/// Returns the path and the arguments of a program.
fn command(image: &Image) -> Vec<Word> {
    match image {
        Image::Program { path, args } => std::iter::once(*path).chain(args.iter().skip(1).copied()).collect(),
        Image::Unknown(comm) => vec![*comm],
        Image::Forked => Vec::new(),
    }
}
