//! Shows the recordings of `tests/recordings/`, which `tests/recordings/make` made. These tests need no privileges.

#[path = "recordings/calls.rs"]
mod calls;
#[path = "recordings/other_reader.rs"]
mod other_reader;
#[path = "recordings/perf_script.rs"]
mod perf_script;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");

fn rtrace(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rtrace")).arg("--no-config").args(words).output().expect("rtrace can be started")
}

fn recordings() -> Vec<PathBuf> {
    let entries = fs::read_dir(RECORDINGS).expect("the directory is in the repository");
    let mut all: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|is| is == "data")).collect();
    all.sort();
    assert!(all.len() >= 4, "there are recordings of both engines");
    all
}

#[test]
fn recordings_are_shown_in_each_style_as_when_they_were_made() {
    let styles: [(&str, &[&str]); 4] =
        [("perf.txt", &[]), ("strace.txt", &["--style", "strace"]), ("jsonl", &["--json"]), ("summary.txt", &["-s"])];
    for recording in recordings() {
        for (ending, options) in styles {
            let name = recording.to_str().expect("it is UTF-8");
            let run = rtrace(&[&["-i", name, "-o", "-"], options].concat());
            let said = fs::read_to_string(recording.with_extension(format!("{ending}.said"))).unwrap_or_default();
            assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr)), (Some(0), said.into()), "{name} {options:?}");
            let expected = fs::read_to_string(recording.with_extension(ending)).expect("it was made with the recording");
            assert!(!expected.is_empty());
            assert_eq!(
                String::from_utf8_lossy(&run.stdout),
                expected,
                "{name} {options:?} (after a change of the style: tests/recordings/make -e)"
            );
        }
    }
}

#[test]
fn a_replay_selects_and_filters_anew() {
    let name = format!("{RECORDINGS}/pipe.bpf.data");
    let run = rtrace(&["-i", &name, "-o", "-", "-e", "write", "--filter", "ret == 5"]);
    let text = String::from_utf8(run.stdout).unwrap();
    assert_eq!(text.matches("write(").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.contains("write(") || line.contains("+++")), "{text}");
}

/// Returns what rtrace says of these bytes as a recording, and its exit status.
fn said_of(directory: &Path, bytes: &[u8], options: &[&str]) -> (String, String, Option<i32>) {
    let path = directory.join("damaged.data");
    fs::write(&path, bytes).unwrap();
    let run = rtrace(&[&["-i", path.to_str().unwrap(), "-o", "-"], options].concat());
    (String::from_utf8_lossy(&run.stdout).into_owned(), String::from_utf8_lossy(&run.stderr).into_owned(), run.status.code())
}

#[test]
fn a_damaged_recording_is_shown_as_far_as_it_can_be_read_and_the_message_says_where_it_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = fs::read(format!("{RECORDINGS}/pipe.bpf.data")).unwrap();
    let whole = said_of(directory.path(), &bytes, &[]).0;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (begin, end) = (word(40) as usize, (word(40) + word(48)) as usize);

    // The sections behind the records are missing: nothing that is shown.
    let (text, said, _) = said_of(directory.path(), &bytes[..end], &[]);
    assert_eq!((text.as_str(), said.as_str()), (whole.as_str(), ""));

    // The file ends inside a record.
    let (text, said, code) = said_of(directory.path(), &bytes[..end - 500], &[]);
    assert!(whole.starts_with(text.trim_end()) || text.lines().count() > 10, "{text}");
    assert!(said.contains(&format!("it ends at byte {}, 500 bytes before the end of its records", end - 500)), "{said}");
    assert_eq!(code, Some(125));

    // The recorder was killed: the header does not say where the records end.
    let mut killed = bytes[..end - 500].to_vec();
    killed[48..56].fill(0);
    let (text, said, code) = said_of(directory.path(), &killed, &[]);
    assert!(text.lines().count() > 10 && said.contains("the recorder was killed, or could not write"), "{said}");
    assert_eq!(code, Some(0));
    assert_eq!(said_of(directory.path(), &killed, &["--strict"]).2, Some(124));

    // A record has an impossible size.
    let mut wrong = bytes.clone();
    let second = begin + usize::from(u16::from_le_bytes([bytes[begin + 6], bytes[begin + 7]]));
    wrong[second + 6..second + 8].copy_from_slice(&3u16.to_le_bytes());
    let (_, said, code) = said_of(directory.path(), &wrong, &[]);
    assert!(said.contains(&format!("the record at byte {second} has a size of 3 bytes")), "{said}");
    assert_eq!(code, Some(125));

    for (bytes, expected) in [(&b""[..], "it has only 0 bytes"), (&[0; 200], "does not begin as perf.data files do"), (&bytes[..600], "")] {
        let (text, said, code) = said_of(directory.path(), bytes, &[]);
        assert_eq!((text.as_str(), code), ("", Some(125)), "{said}");
        assert!(said.contains("damaged.data") && said.contains(expected) && said.lines().count() == 1, "{said}");
    }
}
