//! Short names that are different in each run, as `/tmp/app.4711`.
//!
//! A name that one recording alone has does not say whether it is different in each run: `libx.so.1` and `libx.so.2`
//! are two versions. It is taken for such a name only if the run made the file, or found nothing there in a directory
//! of temporary files, and if the other recording has a name that is the same except for a number of at least four
//! digits, for the number of one of its processes, or, for a file that did not exist before or is temporary, for three
//! to five characters that look random.

use super::outline::{Image, Node, Outcome, Outline};
use super::words::{Word, Words};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The fewest digits of a number that is no number of a process.
const DIGITS_MIN: usize = 4;

/// How many characters a short random part has. Longer ones are recognized without another recording.
const RANDOM: std::ops::RangeInclusive<usize> = 3..=5;

/// What replaces a part that is different in each run.
const ANY: &[u8] = b"*";

/// What stands between two paths of one call.
const ARROW: &[u8] = b" -> ";

/// Where programs put files that only they use.
const TEMPORARY: [&[u8]; 5] = [b"/tmp/", b"/var/tmp/", b"/dev/shm/", b"/run/", b"/var/run/"];

/// Replaces the parts of names that are different in each run, in both outlines.
pub fn unify(outlines: &mut [Outline; 2], words: &mut Words) {
    let renamed = renamed([&outlines[0], &outlines[1]], words);
    for (outline, renamed) in outlines.iter_mut().zip(&renamed) {
        if !renamed.is_empty() {
            outline.nodes.iter_mut().for_each(|node| rename(node, renamed, words));
            outline.written = outline.written.iter().map(|path| of_word(*path, renamed, words)).collect();
        }
    }
}

/// The new names of paths. What is below such a path is below the new name.
type Renamed = FxHashMap<Vec<u8>, Vec<u8>>;

/// Returns the new names of each recording.
fn renamed(outlines: [&Outline; 2], words: &Words) -> [Renamed; 2] {
    let all =
        outlines.map(|outline| outline.nodes.iter().flat_map(|node| node.uses.keys().map(|of| of.object)).collect::<FxHashSet<Word>>());
    let mut depths: BTreeMap<usize, [Vec<Candidate>; 2]> = BTreeMap::new();
    for side in [0, 1] {
        let failed = failed(outlines[side]);
        for word in all[side].difference(&all[1 - side]) {
            let path = words.text(*word);
            if let Some(candidate) = Candidate::new(*word, path, outlines[side], &failed) {
                depths.entry(path.iter().filter(|byte| **byte == b'/').count()).or_default()[side].push(candidate);
            }
        }
    }
    let mut renamed = [Renamed::default(), Renamed::default()];
    // The names of directories are replaced before those in them.
    for candidates in depths.into_values() {
        of_directory(&candidates, outlines, words, &mut renamed);
    }
    renamed
}

/// A path that one recording alone has, and that may be different in each run.
struct Candidate {
    path: Word,
    /// The run made the file, which did not exist before or is in a directory of temporary files.
    is_new: bool,
    /// It did not exist before and only its owner may use it, as mkstemp(3) and mkdtemp(3) create files.
    is_private: bool,
}

impl Candidate {
    fn new(word: Word, path: &[u8], outline: &Outline, failed: &FxHashSet<Word>) -> Option<Candidate> {
        let is_temporary = TEMPORARY.iter().any(|directory| path.starts_with(directory));
        let is_written = outline.written.contains(&word);
        let is_new = outline.created.contains_key(&word) || is_written && is_temporary;
        let is_made = is_new || is_written || is_temporary && failed.contains(&word);
        (is_made && memchr::memmem::find(path, ARROW).is_none()).then_some(Candidate {
            path: word,
            is_new,
            is_private: outline.created.get(&word) == Some(&true),
        })
    }
}

/// Returns the paths at which nothing was found.
fn failed(outline: &Outline) -> FxHashSet<Word> {
    let mut failed: FxHashMap<Word, bool> = FxHashMap::default();
    for (of, tally) in outline.nodes.iter().flat_map(|node| &node.uses) {
        let fails = tally.outcomes.iter().all(|(outcome, _)| matches!(outcome, Outcome::Errno(_)));
        *failed.entry(of.object).or_insert(true) &= fails;
    }
    failed.into_iter().filter(|(_, fails)| *fails).map(|(object, _)| object).collect()
}

/// A path that has a new name if the other recording has one that only differs in a part.
struct Match {
    path: Word,
    /// The part, unless it is a number.
    part: Vec<u8>,
    /// Whatever the part looks like, it is different in each run.
    is_sure: bool,
}

/// Adds the new names of these paths, which are as deep in the tree of directories as each other.
fn of_directory(candidates: &[Vec<Candidate>; 2], outlines: [&Outline; 2], words: &Words, renamed: &mut [Renamed; 2]) {
    // A new name, and the length of the part, by which paths of both recordings are matched.
    let mut matches: BTreeMap<(Vec<u8>, usize), [Vec<Match>; 2]> = BTreeMap::new();
    for side in [0, 1] {
        for candidate in &candidates[side] {
            let path = of_path(words.text(candidate.path), &renamed[side]);
            let at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
            let mut add = |parts: &[Range<usize>], length, part: &[u8], is_sure| {
                let found = Match { path: candidate.path, part: part.to_vec(), is_sure };
                matches.entry((masked(&path, at, parts), length)).or_default()[side].push(found);
            };
            let numbers = numbers(&path[at..], &outlines[side].pids);
            if !numbers.is_empty() {
                add(&numbers, 0, b"", true);
            } else if candidate.is_new {
                for part in random_parts(&path[at..]) {
                    add(std::slice::from_ref(&part), part.len(), &path[at..][part.clone()], candidate.is_private);
                }
            }
        }
    }
    for ((name, _), both) in matches {
        if both.iter().all(|matches| !matches.is_empty()) && are_different_in_each_run(&both) {
            for (renamed, matches) in renamed.iter_mut().zip(&both) {
                for one in matches {
                    renamed.entry(words.text(one.path).to_vec()).or_insert_with(|| name.clone());
                }
            }
        }
    }
}

/// Returns whether the parts in which these paths differ look random, or must be. `v1` and `v2` do not, because only a
/// number differs.
fn are_different_in_each_run(both: &[Vec<Match>; 2]) -> bool {
    let stem = |one: &Match| one.part.iter().rposition(|byte| !byte.is_ascii_digit()).map(|last| one.part[..=last].to_vec());
    let stems = both.each_ref().map(|matches| matches.iter().map(stem).collect::<BTreeSet<_>>());
    let mut all = both.iter().flatten();
    all.clone().any(|one| one.is_sure) || stems[0] != stems[1] && all.any(|one| looks_random(&one.part))
}

/// Returns where a name has numbers that may be different in each run. `pids` are the processes of the recording.
fn numbers(name: &[u8], pids: &FxHashSet<i32>) -> Vec<Range<usize>> {
    let is_library = name.ends_with(b".so") || memchr::memmem::find(name, b".so.").is_some();
    let is_part = |run: &Range<usize>| {
        let digits = &name[run.clone()];
        let is_process = || str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).is_some_and(|pid| pids.contains(&pid));
        let is_digit = |at: Option<usize>| at.and_then(|at| name.get(at)).is_some_and(u8::is_ascii_digit);
        let is_dot = |at: Option<usize>| at.and_then(|at| name.get(at)) == Some(&b'.');
        let is_version =
            is_dot(run.start.checked_sub(1)) && is_digit(run.start.checked_sub(2)) || is_dot(Some(run.end)) && is_digit(Some(run.end + 1));
        digits.len() > 1 && is_process() || digits.len() >= DIGITS_MIN && !is_version
    };
    if is_library { Vec::new() } else { runs(name, u8::is_ascii_digit).filter(is_part).collect() }
}

/// Returns where a name has parts that may be short random ones.
fn random_parts(name: &[u8]) -> impl Iterator<Item = Range<usize>> {
    runs(name, u8::is_ascii_alphanumeric).filter(|run| RANDOM.contains(&run.len()))
}

/// Returns whether a part has digits and letters, or upper case behind the first letter.
fn looks_random(part: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| part.iter().any(is);
    let has_case = part.iter().skip(1).any(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) || has_case
}

/// Returns the longest runs of such bytes.
fn runs(name: &[u8], is_part: fn(&u8) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + name[at..].iter().position(is_part)?;
        at = name[start..].iter().position(|byte| !is_part(byte)).map_or(name.len(), |length| start + length);
        Some(start..at)
    })
}

/// Returns a path with these parts of its last name replaced. The name begins at `at`.
fn masked(path: &[u8], at: usize, parts: &[Range<usize>]) -> Vec<u8> {
    let mut out = path[..at].to_vec();
    let (name, mut end) = (&path[at..], 0);
    for part in parts {
        out.extend_from_slice(&name[end..part.start]);
        out.extend_from_slice(ANY);
        end = part.end;
    }
    out.extend_from_slice(&name[end..]);
    out
}

/// Replaces the names that a node has.
fn rename(node: &mut Node, renamed: &Renamed, words: &mut Words) {
    if let Image::Program { path, args } = &mut node.image {
        *path = of_word(*path, renamed, words);
        args.iter_mut().for_each(|word| *word = of_word(*word, renamed, words));
    }
    for (mut of, tally) in std::mem::take(&mut node.uses) {
        of.object = of_word(of.object, renamed, words);
        match node.uses.get_mut(&of) {
            Some(other) => other.join(&tally),
            None => _ = node.uses.insert(of, tally),
        }
    }
    let files = std::mem::take(&mut node.files);
    node.files = files.into_iter().map(|(object, state)| (of_word(object, renamed, words), state)).collect();
}

fn of_word(word: Word, renamed: &Renamed, words: &mut Words) -> Word {
    let text = words.text(word);
    let new = match memchr::memmem::find(text, ARROW) {
        Some(at) => [&of_path(&text[..at], renamed)[..], ARROW, &of_path(&text[at + ARROW.len()..], renamed)].concat(),
        None => of_text(text, renamed),
    };
    if new == text { word } else { words.add(&new) }
}

/// Returns a word of a command line, which may have a path at its end (`--file=/tmp/x`), with new names.
fn of_text(text: &[u8], renamed: &Renamed) -> Vec<u8> {
    let whole = of_path(text, renamed);
    match text.iter().position(|byte| *byte == b'/').filter(|at| *at > 0 && whole == text) {
        Some(at) => [&text[..at], &of_path(&text[at..], renamed)].concat(),
        None => whole,
    }
}

/// Returns a path with the new name of itself, or else of the directory that it is in.
fn of_path(path: &[u8], renamed: &Renamed) -> Vec<u8> {
    let ends = std::iter::once(path.len()).chain(memchr::memrchr_iter(b'/', path));
    let found = ends.filter(|end| *end > 0).find_map(|end| Some((end, renamed.get(&path[..end])?)));
    found.map_or_else(|| path.to_vec(), |(end, name)| [name, &path[end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::super::outline::{Tally, Use};
    use super::*;

    /// Returns an outline in which a program made these files, and used others.
    fn outline(words: &mut Words, made: &[&str], used: &[&str], is_private: bool) -> Outline {
        let path = words.add(b"/bin/x");
        let mut node = Node::new(Image::Program { path, args: Vec::new() }, 0);
        let mut objects = Vec::new();
        for (at, text) in made.iter().chain(used).enumerate() {
            let object = words.add(text.as_bytes());
            let mut tally = Tally::new(at as u64, true, true);
            tally.calls = 1;
            tally.add(Outcome::Success, 1);
            node.uses.insert(Use { call: words.add(b"openat"), object, detail: Word::EMPTY }, tally);
            objects.push(object);
        }
        let mut outline = Outline::new(vec![node]);
        outline.created = objects[..made.len()].iter().map(|object| (*object, is_private)).collect();
        outline.pids = [4711, 52].into_iter().collect();
        outline
    }

    /// Returns the names of both outlines, in which a program made one file each.
    fn made(a: &str, b: &str) -> [String; 2] {
        unified([&[a], &[b]], [&[], &[]], false).map(|mut names| names.remove(0))
    }

    fn unified(made: [&[&str]; 2], used: [&[&str]; 2], is_private: bool) -> [Vec<String>; 2] {
        let mut words = Words::default();
        let mut outlines = [0, 1].map(|side: usize| outline(&mut words, made[side], used[side], is_private));
        unify(&mut outlines, &mut words);
        outlines.map(|outline| {
            let mut names: Vec<_> = outline.nodes[0].uses.iter().map(|(of, tally)| (tally.first, of.object)).collect();
            names.sort_unstable();
            names.into_iter().map(|(_, object)| String::from_utf8_lossy(words.text(object)).into_owned()).collect()
        })
    }

    #[test]
    fn numbers_and_short_random_parts_of_files_that_were_made_are_left_out() {
        for (a, b, both) in [
            ("/srv/app.48110", "/srv/app.5023", "/srv/app.*"),
            ("/srv/4811", "/srv/5023", "/srv/*"),
            ("/srv/app4811.lock", "/srv/app5023.lock", "/srv/app*.lock"),
            ("/srv/job-4711.52", "/srv/job-52.4711", "/srv/job-*.*"),
            ("/tmp/abc.x7Qa", "/tmp/abc.kkkk", "/tmp/abc.*"),
            ("/tmp/a1b2", "/tmp/zzzz", "/tmp/*"),
            ("/tmp/out.ofh0", "/tmp/out.wmo4", "/tmp/out.*"),
        ] {
            assert_eq!(made(a, b), [both, both], "{a} {b}");
        }
    }

    #[test]
    fn versions_and_words_are_differences() {
        for (a, b) in [
            ("/srv/libfoo.so.1", "/srv/libfoo.so.2"),
            ("/srv/libfoo.so.4811", "/srv/libfoo.so.5023"),
            ("/srv/python3.11", "/srv/python3.12"),
            ("/srv/x-6.18.1044", "/srv/x-6.18.1045"),
            ("/srv/mod.cpython-311.pyc", "/srv/mod.cpython-312.pyc"),
            ("/srv/abc.one", "/srv/abc.two"),
            ("/srv/abc.x7Qa", "/srv/abc.x7Q"),
            ("/srv/file1", "/srv/file2"),
            ("/srv/app-rc1", "/srv/app-rc2"),
            ("/srv/4811.conf", "/srv/5023.lock"),
        ] {
            assert_eq!(made(a, b), [a, b]);
        }
        // mktemp(1) makes such a name.
        let private = unified([&["/srv/abc.one"], &["/srv/abc.two"]], [&[], &[]], true);
        assert_eq!(private, [["/srv/abc.*"], ["/srv/abc.*"]]);
        // Files that were there before may differ only in a number.
        let used = [&["/srv/report.2024", "/tmp/report.2024"][..], &["/srv/report.2025", "/tmp/report.2025"]];
        assert_eq!(unified([&[], &[]], used, false), used.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()));
    }

    #[test]
    fn what_is_in_a_directory_follows_its_name() {
        let [a, b] = unified(
            [&["/tmp/d.a1b2", "/tmp/d.a1b2/app.4811"], &["/tmp/d.c3d4", "/tmp/d.c3d4/app.5023"]],
            [
                &["/tmp/d.a1b2/file", "--to=/tmp/d.a1b2/file", "/x -> /tmp/d.a1b2"],
                &["/tmp/d.c3d4/file", "--to=/tmp/d.c3d4/file", "/x -> /tmp/d.c3d4"],
            ],
            false,
        );
        assert_eq!(a, ["/tmp/d.*", "/tmp/d.*/app.*", "/tmp/d.*/file", "--to=/tmp/d.*/file", "/x -> /tmp/d.*"]);
        assert_eq!(a, b);
    }
}
