//! `--width`: lines that are longer than the terminal are cut.
//!
//! A call's line is cut inside its arguments, so that what it returned stays in sight; first it loses the blanks before that.
//! Neither an escape sequence nor a character is cut in two.

use std::ops::Range;

/// What stands in the place of what was cut.
const MARK: &[u8] = b"...";
/// Ends all colours.
const PLAIN: &[u8] = b"\x1b[0m";

/// Fits the line of a call that begins at `line`, and ends without a newline. `args` is what stands between its parentheses,
/// and at `outcome` begins what it returned.
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

/// Fits a line that begins at `line`, and ends without a newline, by cutting its end.
pub fn fit_end(out: &mut Vec<u8>, line: usize, width: usize) {
    let over = columns(&out[line..]).saturating_sub(width);
    if over > 0 {
        let end = out.len();
        cut(out, line..end, over);
    }
}

/// Takes so many columns and those that the mark needs from the end of a part; a part that would not become shorter stays.
fn cut(out: &mut Vec<u8>, part: Range<usize>, over: usize) {
    let text = &out[part.clone()];
    let all = columns(text);
    let kept = all.saturating_sub(over + MARK.len());
    if kept + MARK.len() >= all {
        return;
    }
    let (end, colored) = place(text, kept);
    let mark = if colored { [PLAIN, MARK].concat() } else { MARK.to_vec() };
    out.splice(part.start + end..part.end, mark);
}

/// How many columns a text fills: one for each character, none for an escape sequence.
fn columns(text: &[u8]) -> usize {
    pieces(text).filter(|piece| !piece.is_escape).count()
}

/// Where the first `columns` columns of a text end, and whether a colour may be on there.
fn place(text: &[u8], columns: usize) -> (usize, bool) {
    let (mut filled, mut colored) = (0, false);
    for piece in pieces(text) {
        if piece.is_escape {
            colored = &text[piece.at.clone()] != PLAIN;
        } else if filled == columns {
            return (piece.at.start, colored);
        } else {
            filled += 1;
        }
    }
    (text.len(), colored)
}

/// A character or an escape sequence.
struct Piece {
    at: Range<usize>,
    is_escape: bool,
}

fn pieces(text: &[u8]) -> impl Iterator<Item = Piece> {
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
        Some(Piece { at: start..next, is_escape })
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
    fn blanks_go_first_and_then_the_end_of_the_arguments() {
        let line = "open(path: \"/etc/passwd\", flags: RDONLY)      = 3";
        assert_eq!(call(line, 49), line);
        assert_eq!(call(line, 47), "open(path: \"/etc/passwd\", flags: RDONLY)    = 3");
        assert_eq!(call(line, 44), "open(path: \"/etc/passwd\", flags: RDONLY) = 3");
        assert_eq!(call(line, 43), "open(path: \"/etc/passwd\", flags: RD...) = 3");
        assert_eq!(call(line, 20), "open(path: \"...) = 3");
        assert_eq!(call(line, 1), "open(...) = 3", "what it returned is never cut");
        assert_eq!(call("getpid()      = 3", 5), "getpid() = 3");
        assert_eq!(call("read(fd: 3)      ...", 15), "read(fd: 3) ...");
    }

    #[test]
    fn characters_and_colours_stay_whole() {
        assert_eq!(call("open(\u{e4}\u{f6}\u{fc}\u{df}\u{e4}\u{f6}\u{fc}\u{df}) = 3", 15), "open(\u{e4}\u{f6}...) = 3");
        assert_eq!(call("\x1b[36mopen\x1b[0m(abcdefgh) = \x1b[31m-1\x1b[0m", 16), "\x1b[36mopen\x1b[0m(ab...) = \x1b[31m-1\x1b[0m");
        let mut out = b"\x1b[31mred and long\x1b[0m".to_vec();
        fit_end(&mut out, 0, 7);
        assert_eq!(out, b"\x1b[31mred \x1b[0m...");
    }
}
