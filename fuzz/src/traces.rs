//! Traces in JSON, which `rtrace diff` compares.
//!
//! The trace is compared with itself, which must find nothing, and with the first half of its lines.

use rtrace::differences::{JsonTrace, Outline, Outliner, Words, compare, objects, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(bytes: &[u8]) -> Scratch {
        // The inputs of the corpus run in threads.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rtrace-fuzz-trace.{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).expect("the directory of temporary files is writable");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub fn run(bytes: &[u8]) {
    let half = bytes[..bytes.len() / 2].iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &bytes[..=end]);
    let [whole, half] = [bytes, half].map(Scratch::new);
    let Some((first, words)) = outline(&whole.0, Words::default()) else { return };
    let Some((second, mut words)) = outline(&whole.0, words) else { return };
    let found = compare([first, second], &mut words);
    assert!(found.is_empty(), "a trace differs from itself: {}", String::from_utf8_lossy(&text(&found, ["a", "b"], &words, false)));
    let Some((first, words)) = outline(&whole.0, words) else { return };
    let Some((second, mut words)) = outline(&half.0, words) else { return };
    let found = compare([first, second], &mut words);
    let _ = text(&found, ["a", "b"], &words, true);
    objects(&found, &words).for_each(|object| drop(serde_json::to_vec(&object).expect("it can be written")));
}

fn outline(path: &Path, words: Words) -> Option<(Outline, Words)> {
    let mut trace = JsonTrace::open(path).ok()?;
    let _ = trace.lasts();
    let outliner = Outliner::new(words);
    while let Ok(Some(mut line)) = trace.next_line() {
        for event in std::mem::take(&mut line.events) {
            outliner.take(&event, &line.given(&event), trace.session(), false);
        }
    }
    let _ = (trace.damages(), trace.verdict(), trace.is_summary());
    Some(outliner.finish())
}
