//! Planning creates nothing. The plan only describes the events that the kernel may reject, and arming creates them.

use crate::tree::files;
use std::fs;

/// Words that occur in code that creates or changes something.
const WORDS: [&str; 9] =
    ["&mut RunEvents", "create_own", ".create(", "::create(", "create_dir", "OpenOptions", "fs::write", ".write_all(", "PerfEvent::"];

#[test]
fn planning_creates_nothing() {
    let mut faults = Vec::new();
    for path in files("src/plan", &[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (at, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            faults.extend(WORDS.iter().filter(|word| line.contains(**word)).map(|word| format!("{}:{}: {word}", path.display(), at + 1)));
        }
    }
    assert!(faults.is_empty(), "the plan describes what is needed, and src/arm/ creates it:\n{}", faults.join("\n"));
}
