//! What a fuzzer found worth keeping (`fuzz/README.md`), and whole files cut at every byte: none makes rtrace panic,
//! hang, or ask for more memory than the fuzzer allows.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use rtrace::symbols::Compression;
use rtrace::tables::SYSCALLS;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_has_a_corpus_and_survives_it() {
    // One target that panics does not keep the others from saying what they find.
    thread::scope(|scope| {
        for (target, run) in targets::TARGETS {
            scope.spawn(move || {
                let inputs = unpack(&Path::new(CORPUS).join(target).with_extension("tar.xz"));
                assert!(inputs.len() > 50, "{target} has {} inputs", inputs.len());
                for (name, input) in inputs {
                    assert!(catch_unwind(|| run(&input)).is_ok(), "{name} of {target} makes it panic");
                }
            });
        }
    });
}

#[test]
fn every_call_has_a_line_with_memory_of_every_length() {
    // Most of what memory is made of are small numbers: lengths, commands, types.
    let mixed = |at: u32| at.wrapping_mul(0x9e37_79b1) >> 13;
    let bytes: Vec<u8> = (0..600).map(|at| if at % 3 == 0 { mixed(at) as u8 } else { mixed(at) as u8 % 16 }).collect();
    thread::scope(|scope| {
        for rows in SYSCALLS.chunks(SYSCALLS.len().div_ceil(4)) {
            let bytes = &bytes;
            scope.spawn(move || {
                for row in rows {
                    let calls = catch_unwind(|| targets::calls::every_length(row, bytes));
                    assert!(calls.is_ok_and(|calls| calls > 0), "{} panics", row.name);
                }
            });
        }
    });
}

/// The files of an archive as tar(5) describes it ("ustar"), packed by xz: there are hundreds of nearly the same small
/// files.
fn unpack(archive: &Path) -> Vec<(String, Vec<u8>)> {
    const BLOCK: usize = 512;
    let packed = fs::read(archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    let mut rest = &Compression::Xz.decompress(&packed, 64 << 20).unwrap()[..];
    let mut files = Vec::new();
    while let Some((header, behind)) = rest.split_at_checked(BLOCK) {
        let text = |field: &[u8]| String::from_utf8_lossy(field).trim_end_matches('\0').to_owned();
        let size = usize::from_str_radix(&text(&header[124..136]), 8).unwrap_or(0);
        if header[156] == b'0' {
            files.push((text(&header[..100]), behind[..size].to_vec()));
        }
        rest = &behind[size.next_multiple_of(BLOCK)..];
    }
    files
}

/// Sections at the end of a file, headers, tables and names are missing in turn.
#[test]
fn whole_files_cut_at_every_byte() {
    let whole = files(&Path::new(CORPUS).join("whole"));
    assert!(whole.len() >= 3);
    thread::scope(|scope| {
        for path in &whole {
            scope.spawn(move || {
                let file = fs::read(path).unwrap();
                for end in 0..=file.len() {
                    for run in [targets::image::run, targets::symbols::run, targets::lines::run] {
                        let survived = catch_unwind(|| run(&file[..end]));
                        assert!(survived.is_ok(), "{} cut at {end} makes it panic", path.display());
                    }
                }
            });
        }
    });
}

/// Recordings of a program that makes seven calls.
#[test]
fn recordings_cut_or_changed_at_every_byte() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings"));
    let small = files(directory).into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("small.") && name.ends_with(".data")
    });
    let small: Vec<PathBuf> = small.collect();
    assert!(small.len() >= 3);
    thread::scope(|scope| {
        for path in &small {
            scope.spawn(move || {
                // The target takes the whole file behind a byte that says so.
                let whole = [&[0][..], &fs::read(path).unwrap()].concat();
                for end in 1..=whole.len() {
                    let survived = catch_unwind(|| targets::recordings::run(&whole[..end]));
                    assert!(survived.is_ok(), "{} cut at {} makes it panic", path.display(), end - 1);
                }
                // Another byte in each place of the one that has an index, which is used.
                let has_index = path.ends_with("small.bpf.data");
                let mut changed = [&[2][..], &whole[1..]].concat();
                for at in (1..changed.len()).filter(|_| has_index) {
                    changed[at] = !changed[at];
                    let survived = catch_unwind(|| targets::recordings::run(&changed));
                    assert!(survived.is_ok(), "{} with another byte at {} makes it panic", path.display(), at - 1);
                    changed[at] = !changed[at];
                }
            });
        }
    });
}
