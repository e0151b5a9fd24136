//! Joins differences that are the same in several programs or for several files, and orders them.

use super::difference::{Difference, What};
use super::words::{Word, Words};
use std::collections::{BTreeMap, BTreeSet};

/// As many files of one directory become one line.
const FILES_MIN: usize = 4;

/// Joins and orders differences.
pub fn fold(found: Vec<Difference>, words: &Words) -> Vec<Difference> {
    let mut folded = of_directories(of_files(of_programs(found)), words);
    folded.sort_by_key(|difference| (difference.what.rank(), difference.first));
    folded
}

/// Joins calls of one program on one file that only one recording has.
fn of_files(found: Vec<Difference>) -> Vec<Difference> {
    let mut out: Vec<Difference> = Vec::with_capacity(found.len());
    for difference in found {
        if let What::Calls { side, calls, errnos } = &difference.what
            && let Some(Difference { programs, what: What::Calls { side: same, calls: all, errnos: others }, objects, .. }) = out.last_mut()
            && (&*same, &*programs, &*objects, &*others) == (side, &difference.programs, &difference.objects, errnos)
        {
            all.extend(calls);
            continue;
        }
        out.push(difference);
    }
    out
}

/// Joins the differences that several programs have.
fn of_programs(found: Vec<Difference>) -> Vec<Difference> {
    let mut out: Vec<Difference> = Vec::with_capacity(found.len());
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for difference in found {
        match places.entry(format!("{:?} {:?}", difference.what, difference.objects)) {
            std::collections::btree_map::Entry::Occupied(place) => {
                let joined = &mut out[*place.get()];
                joined.programs.extend(difference.programs);
                joined.first = joined.first.min(difference.first);
            }
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(out.len());
                out.push(difference);
            }
        }
    }
    out
}

/// Joins the files of a directory that differ in the same way.
fn of_directories(found: Vec<Difference>, words: &Words) -> Vec<Difference> {
    let mut sets: BTreeMap<(String, BTreeSet<Word>, Vec<u8>), Vec<Difference>> = BTreeMap::new();
    let mut out = Vec::new();
    for difference in found {
        let directory = difference.objects.first().and_then(|object| directory(words.text(*object)));
        match (kind(&difference.what), directory) {
            (Some(kind), Some(directory)) => {
                sets.entry((kind, difference.programs.clone(), directory.to_vec())).or_default().push(difference);
            }
            _ => out.push(difference),
        }
    }
    for set in sets.into_values() {
        if set.len() < FILES_MIN {
            out.extend(set);
            continue;
        }
        let mut set = set.into_iter();
        let Some(mut joined) = set.next() else { continue };
        for difference in set {
            joined.first = joined.first.min(difference.first);
            joined.objects.extend(difference.objects);
            if let (What::Uses { calls: all, .. } | What::Tries { calls: all, .. }, What::Uses { calls, .. } | What::Tries { calls, .. }) =
                (&mut joined.what, difference.what)
            {
                all.extend(calls);
            }
        }
        out.push(joined);
    }
    out
}

/// Returns what differences have in common that are joined; `None` if their kind is not joined.
fn kind(what: &What) -> Option<String> {
    match what {
        What::Uses { side, .. } => Some(format!("uses {side:?}")),
        What::Tries { side, errnos, found, .. } => Some(format!("tries {side:?} {errnos:?} {found}")),
        What::Fails { .. } | What::FailsOtherwise { .. } | What::Calls { .. } | What::NoData { .. } => Some(format!("{what:?}")),
        _ => None,
    }
}

/// Returns the directory of a path.
fn directory(path: &[u8]) -> Option<&[u8]> {
    let end = path.iter().rposition(|byte| *byte == b'/')?;
    // Two paths with an arrow between them are not joined.
    (path.starts_with(b"/") && !path.contains(&b' ')).then(|| &path[..end.max(1)])
}
