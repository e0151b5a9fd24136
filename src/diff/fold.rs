//! Joins differences that are the same in several programs or for several files, and orders them.

use super::difference::{Attribute, Difference, What};
use super::words::{Word, Words, distinct};
use std::collections::{BTreeMap, BTreeSet};

/// As many files of one directory become one line, ...
const FILES_MIN: usize = 4;

/// ... as many directories in which a file of one name is looked for, ...
const NAMES_MIN: usize = 3;

/// ... and as many others below one directory.
const TREE_MIN: usize = 4;

/// Joins and orders differences.
pub fn fold(found: Vec<Difference>, words: &Words) -> Vec<Difference> {
    let mut folded = of_paths(of_files(of_programs(found)), words);
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

/// Joins the files that differ in the same way and have the same name, are in the same directory, or are below one.
fn of_paths(found: Vec<Difference>, words: &Words) -> Vec<Difference> {
    let of_name = |difference: &Difference, path: &[u8]| {
        let is_search = matches!(difference.what, What::Tries { .. } | What::FailsOtherwise { .. });
        is_search.then(|| [&b"*/"[..], name(path)].concat())
    };
    let of_directory = |_: &Difference, path: &[u8]| Some(directory(path)?.to_vec());
    let of_tree = |difference: &Difference, path: &[u8]| {
        let is_search = matches!(difference.what, What::Tries { .. } | What::Uses { .. });
        is_search.then(|| tree(path)).map(<[u8]>::to_vec)
    };
    let found = joined(found, words, NAMES_MIN, &of_name);
    let found = joined(found, words, FILES_MIN, &of_directory);
    joined(found, words, TREE_MIN, &of_tree)
}

/// Returns the place of a file, if such differences are joined.
type Place<'p> = &'p dyn Fn(&Difference, &[u8]) -> Option<Vec<u8>>;

/// Joins differences of one file each that are of the same kind and at the same place, if they are of at least `min`
/// files. A file may have several, such as one size after another.
fn joined(found: Vec<Difference>, words: &Words, min: usize, place: Place) -> Vec<Difference> {
    let mut sets: BTreeMap<(String, BTreeSet<Word>, Vec<u8>), Vec<Difference>> = BTreeMap::new();
    let mut out = Vec::new();
    for difference in found {
        let path = match &difference.objects[..] {
            [one] => Some(words.text(*one)).filter(|path| is_one_path(path)),
            _ => None,
        };
        match (kind(&difference.what), path.and_then(|path| place(&difference, path))) {
            (Some(kind), Some(place)) => sets.entry((kind, difference.programs.clone(), place)).or_default().push(difference),
            _ => out.push(difference),
        }
    }
    for set in sets.into_values() {
        let objects = distinct(set.iter().flat_map(|difference| difference.objects.iter().copied()));
        if objects.len() < min {
            out.extend(set);
            continue;
        }
        let mut set = set.into_iter();
        let Some(mut joined) = set.next() else { continue };
        joined.objects = objects;
        for difference in set {
            joined.first = joined.first.min(difference.first);
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
        What::File { attribute: Attribute::Size, .. } => Some("size".to_owned()),
        What::Fails { .. } | What::FailsOtherwise { .. } | What::Calls { .. } | What::NoData { .. } | What::File { .. } => {
            Some(format!("{what:?}"))
        }
        _ => None,
    }
}

/// Returns whether the object of a call is an absolute path, and not two with an arrow between them.
fn is_one_path(path: &[u8]) -> bool {
    path.starts_with(b"/") && !path.contains(&b' ')
}

/// Returns the last part of a path.
fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Returns the directory of a path.
fn directory(path: &[u8]) -> Option<&[u8]> {
    let end = path.iter().rposition(|byte| *byte == b'/')?;
    Some(&path[..end.max(1)])
}

/// Returns the first two parts of a path.
fn tree(path: &[u8]) -> &[u8] {
    let end = memchr::memchr_iter(b'/', path).nth(2).unwrap_or(path.len());
    &path[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_sizes_is_listed_once_and_counted_once() {
        let mut words = Words::default();
        let mut sized = |paths: &[&str]| {
            let of_path = |(at, path): (usize, &&str)| Difference {
                programs: BTreeSet::new(),
                what: What::File { attribute: Attribute::Size, values: [1, 2 + at as u64] },
                objects: vec![words.add(path.as_bytes())],
                first: at as u64,
            };
            let found = paths.iter().enumerate().map(of_path).collect();
            fold(found, &words).into_iter().map(|difference| difference.objects.len()).collect::<Vec<_>>()
        };
        assert_eq!(sized(&["/d/a", "/d/b", "/d/a", "/d/c", "/d/d"]), [4]);
        assert_eq!(sized(&["/d/a", "/d/b", "/d/a", "/d/b"]), [1, 1, 1, 1]);
    }
}
