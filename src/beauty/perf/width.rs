//! `--width`: shortens lines to a number of columns.
//!
//! The line of a call first loses the blanks before the result, and is then cut inside the arguments, so that the
//! result stays visible. Escape sequences and characters are never split.

use std::ops::Range;

/// The replacement for the text that was cut.
const MARK: &[u8] = b"...";
/// The escape sequence that resets all colours.
const PLAIN: &[u8] = b"\x1b[0m";

/// Shortens the line of a call, which begins at `line` and has no newline, to `width` columns. `args` is the range of
/// the text between the parentheses; the text of the result begins at `outcome`.
pub fn fit_call(out: &mut Vec<u8>, line: usize, args: Range<usize>, outcome: usize, width: usize) {
    let over = columns(&out[line..]).saturating_sub(width);
    if over == 0 {
        return;
    }
    let (after, least) = (args.end + 1, usize::from(out.get(outcome) == Some(&b'=')));
    let blanks = over.min(outcome.saturating_sub(after + least));
    out.drain(after..after + blanks);
    if over > blanks {
        cut(out, args, over - blanks);
    }
}

/// Shortens a line, which begins at `line` and has no newline, to `width` columns by cutting its end.
pub fn fit_end(out: &mut Vec<u8>, line: usize, width: usize) {
    let over = columns(&out[line..]).saturating_sub(width);
    if over > 0 {
        let end = out.len();
        cut(out, line..end, over);
    }
}

/// Cuts at least `over` columns from the end of a part, and appends the mark. The part stays as it is if that would not
/// shorten it.
fn cut(out: &mut Vec<u8>, part: Range<usize>, over: usize) {
    let text = &out[part.clone()];
    let all = columns(text);
    let kept = all.saturating_sub(over + MARK.len());
    if kept + MARK.len() >= all {
        return;
    }
    let (end, colored) = end_of_columns(text, kept);
    let mark = if colored { [PLAIN, MARK].concat() } else { MARK.to_vec() };
    out.splice(part.start + end..part.end, mark);
}

/// Returns the number of columns of a text: one for each character, none for an escape sequence.
fn columns(text: &[u8]) -> usize {
    elements(text).filter(|element| !element.is_escape).count()
}

/// Returns the position after the first `columns` columns of a text, and whether a colour may be active there.
fn end_of_columns(text: &[u8], columns: usize) -> (usize, bool) {
    let (mut filled, mut colored) = (0, false);
    for element in elements(text) {
        if element.is_escape {
            colored = &text[element.range.clone()] != PLAIN;
        } else if filled == columns {
            return (element.range.start, colored);
        } else {
            filled += 1;
        }
    }
    (text.len(), colored)
}

/// A character or an escape sequence.
struct TextElement {
    range: Range<usize>,
    is_escape: bool,
}

fn elements(text: &[u8]) -> impl Iterator<Item = TextElement> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let first = *text.get(start)?;
        let is_escape = first == 0x1b;
        let rest = &text[start + 1..];
        let more = match is_escape {
            true => rest.iter().position(u8::is_ascii_alphabetic).map_or(rest.len(), |last| last + 1),
            false => rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count(),
        };
        next = start + 1 + more;
        Some(TextElement { range: start..next, is_escape })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str, width: usize) -> String {
        let args = text.find('(').unwrap() + 1..text.rfind(')').unwrap();
        let pending = usize::from(text.ends_with("..."));
        let outcome = args.end + 1 - pending + text[args.end + 1..].chars().take_while(|c| *c == ' ').count();
        let mut out = format!("before\n{text}").into_bytes();
        fit_call(&mut out, 7, args.start + 7..args.end + 7, outcome + 7, width);
        String::from_utf8(out).unwrap().strip_prefix("before\n").unwrap().to_owned()
    }

    #[test]
    fn blanks_are_removed_before_arguments_are_cut() {
        let line = "open(path: \"/etc/passwd\", flags: RDONLY)      = 3";
        assert_eq!(call(line, 49), line);
        assert_eq!(call(line, 47), "open(path: \"/etc/passwd\", flags: RDONLY)    = 3");
        assert_eq!(call(line, 44), "open(path: \"/etc/passwd\", flags: RDONLY) = 3");
        assert_eq!(call(line, 43), "open(path: \"/etc/passwd\", flags: RD...) = 3");
        assert_eq!(call(line, 20), "open(path: \"...) = 3");
        assert_eq!(call(line, 1), "open(...) = 3", "the result is never cut");
        assert_eq!(call("getpid()      = 3", 5), "getpid() = 3");
        assert_eq!(call("read(fd: 3)      ...", 15), "read(fd: 3) ...");
    }

    #[test]
    fn characters_and_escape_sequences_are_not_split() {
        assert_eq!(call("open(\u{e4}\u{f6}\u{fc}\u{df}\u{e4}\u{f6}\u{fc}\u{df}) = 3", 15), "open(\u{e4}\u{f6}...) = 3");
        assert_eq!(call("\x1b[36mopen\x1b[0m(abcdefgh) = \x1b[31m-1\x1b[0m", 16), "\x1b[36mopen\x1b[0m(ab...) = \x1b[31m-1\x1b[0m");
        let mut out = b"\x1b[31mred and long\x1b[0m".to_vec();
        fit_end(&mut out, 0, 7);
        assert_eq!(out, b"\x1b[31mred \x1b[0m...");
    }
}
