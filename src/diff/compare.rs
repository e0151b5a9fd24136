//! Compares two outlines.

use super::align::{Alignment, align, base_name};
use super::calls::{compare_group, groups};
use super::difference::{Attribute, Difference, Side, What};
use super::file_state::FileState;
use super::fold;
use super::noise;
use super::outline::{End, Image, Node, Outline};
use super::renamed;
use super::slower::{self, OnFile};
use super::streams::{STANDARD_ERROR, STREAMS};
use super::words::{Word, Words};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the differences, those first that say most about why one run works and another does not.
pub fn compare(mut outlines: [Outline; 2], words: &mut Words) -> Vec<Difference> {
    renamed::unify(&mut outlines, words);
    let (outlines, words) = ([&outlines[0], &outlines[1]], &*words);
    let Alignment { pairs, alone } = align(outlines, words);
    let mut found = Vec::new();
    let mut times: BTreeMap<Word, Vec<OnFile>> = BTreeMap::new();
    for pair in pairs {
        let nodes = [&outlines[0].nodes[pair[0]], &outlines[1].nodes[pair[1]]];
        if let Some(side) = Side::BOTH.into_iter().find(|side| is_alone(nodes, *side)) {
            runs_itself(outlines[side.index()], pair[side.index()], side, &mut found);
            continue;
        }
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
            let about = (*object != Word::EMPTY).then_some(*object);
            let objects: Vec<Word> = about.into_iter().collect();
            for (call, timed) in group.times() {
                times.entry(call).or_default().push(OnFile { programs: programs.clone(), object: about, first: group.first, timed });
            }
            let is_of_run = noise::is_made_up(words.text(*object)) || STREAMS.contains(&words.text(*object));
            if let [Some(a), Some(b)] = nodes.map(|node| node.files.get(object).filter(|_| !is_of_run)) {
                let is_written = outlines.iter().any(|outline| outline.written.contains(object));
                differing(a, b, is_written).for_each(|what| add(what, objects.clone(), group.first));
            }
            for mut what in compare_group(group, !objects.is_empty()) {
                if let What::Tries { side, found, .. } = &mut what {
                    *found = worked[side.index()].contains(base_name(words, *object));
                }
                if !is_noise(&what, words.text(*object)) {
                    add(what, objects.clone(), group.first);
                }
            }
        }
    }
    found.extend(slower::on_many_files(times));
    for side in Side::BOTH {
        let outline = outlines[side.index()];
        for node in &alone[side.index()] {
            runs(outline, *node, side, &mut found);
        }
    }
    fold::fold(found, words)
}

/// Returns whether only the node of one recording has processes.
fn is_alone(nodes: [&Node; 2], side: Side) -> bool {
    nodes[side.index()].processes > 0 && nodes[side.other().index()].processes == 0
}

/// Returns how a file differs. The size of a file that one of the runs writes is no property of the file.
fn differing(a: &FileState, b: &FileState, is_written: bool) -> impl Iterator<Item = What> {
    let states = [a, b];
    let of = move |attribute: Attribute, value: &dyn Fn(&FileState) -> Option<u64>| match states.map(value) {
        [Some(a), Some(b)] if a != b => Some(What::File { attribute, values: [a, b] }),
        _ => None,
    };
    let size = of(Attribute::Size, &|state| state.size.filter(|_| !is_written));
    let mode = of(Attribute::Mode, &|state| state.mode.map(u64::from));
    let user = of(Attribute::User, &|state| state.user.map(u64::from));
    let group = of(Attribute::Group, &|state| state.group.map(u64::from));
    [mode, user, group, size].into_iter().flatten()
}

/// Returns whether a difference only says that another process has ended earlier.
fn is_noise(what: &What, object: &[u8]) -> bool {
    let errnos = match what {
        What::Fails { errnos, always: false, .. } => errnos,
        _ => return false,
    };
    errnos.iter().all(|errno| noise::is_of_ended_process(object, *errno))
}

/// Adds the programs that only one recording runs: that of the node, or if its processes are copies of their parent,
/// those that they execute.
fn runs(outline: &Outline, at: usize, side: Side, found: &mut Vec<Difference>) {
    let node = &outline.nodes[at];
    let executes = node.children.iter().any(|child| matches!(outline.nodes[*child].image, Image::Program { .. }));
    if node.image == Image::Forked && executes || node.processes == 0 {
        node.children.iter().for_each(|child| runs(outline, *child, side, found));
        return;
    }
    runs_itself(outline, at, side, found);
}

/// Adds the program of a node that only one recording runs.
fn runs_itself(outline: &Outline, at: usize, side: Side, found: &mut Vec<Difference>) {
    let node = &outline.nodes[at];
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
