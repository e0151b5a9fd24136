//! Definitions of dynamic events. A parsed definition is printed, and must parse to the same definition.

use rtrace::command_line::{parse_probe, parse_probe_file};

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines().take(16) {
        match parse_probe(line) {
            Ok(parsed) => assert_eq!(parse_probe(&parsed.to_string()), Ok(parsed)),
            Err(wrong) => assert!(line.get(wrong.at.clone()).is_some() && !wrong.to_string().is_empty()),
        }
    }
    if let Ok(lines) = parse_probe_file(&text) {
        assert!(lines.iter().all(|(number, _)| *number > 0 && *number <= text.lines().count()));
    }
}
