//! Escapes untrusted text, so that it is safe in a line and on a terminal.
//!
//! Strings of the traced program, comms, paths and symbols may contain any bytes. The escaped text is always a single
//! line of valid UTF-8 without control characters. Different bytes have different escaped texts, except with
//! [`controls`], which keeps backslashes.

use super::number::HEX;

/// Appends text in double quotes, like a C string. Quotes and backslashes are escaped, too.
pub fn quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    const SHOWN: Shown = shown_but(b"\"");
    out.push(b'"');
    escaped(out, bytes, &SHOWN);
    out.push(b'"');
}

/// Appends text without quotes (comms, probe names).
pub fn plain(out: &mut Vec<u8>, bytes: &[u8]) {
    const SHOWN: Shown = shown_but(b"");
    escaped(out, bytes, &SHOWN);
}

/// Appends a message of rtrace that may contain untrusted text. Only characters that move a terminal's cursor or are
/// invisible are escaped. Tabs and backslashes are kept.
pub fn controls(out: &mut Vec<u8>, bytes: &[u8]) {
    const SHOWN: Shown = {
        let mut shown = shown_but(b"");
        shown[b'\\' as usize] = true;
        shown[b'\t' as usize] = true;
        shown
    };
    escaped(out, bytes, &SHOWN);
}

/// Appends an element of a list whose separators are semicolons.
pub fn between_semicolons(out: &mut Vec<u8>, bytes: &[u8]) {
    const SHOWN: Shown = shown_but(b";");
    escaped(out, bytes, &SHOWN);
}

/// Appends text in angle brackets, and escapes those in the text. Unless the text is a path, the arrow between the two
/// ends of a socket is kept.
pub fn bracketed(out: &mut Vec<u8>, bytes: &[u8]) {
    const SHOWN: Shown = shown_but(b"<>");
    const ARROW: &[u8] = b"->";
    out.push(b'<');
    let mut rest = bytes;
    if !bytes.starts_with(b"/") {
        while let Some(at) = rest.windows(ARROW.len()).position(|two| two == ARROW) {
            escaped(out, &rest[..at], &SHOWN);
            out.extend_from_slice(ARROW);
            rest = &rest[at + ARROW.len()..];
        }
    }
    escaped(out, rest, &SHOWN);
    out.push(b'>');
}

/// Whether a byte is shown as it is, by its value.
type Shown = [bool; 256];

/// Returns a table that shows the printable ASCII characters except backslashes and `escaped`.
const fn shown_but(escaped: &[u8]) -> Shown {
    let mut shown = [false; 256];
    let mut byte = b' ';
    while byte <= b'~' {
        shown[byte as usize] = byte != b'\\';
        byte += 1;
    }
    let mut i = 0;
    while i < escaped.len() {
        shown[escaped[i] as usize] = false;
        i += 1;
    }
    shown
}

/// Appends bytes, with those escaped that are not shown as they are. Characters beyond ASCII are checked individually.
fn escaped(out: &mut Vec<u8>, bytes: &[u8], shown: &Shown) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let run = rest.iter().position(|byte| !shown[usize::from(*byte)]).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..run]);
        rest = &rest[run..];
        if rest.is_empty() {
            break;
        }
        let taken = match rest[0] {
            0x80.. => beyond_ascii(out, rest),
            byte => {
                ascii_escape(out, byte);
                1
            }
        };
        rest = &rest[taken..];
    }
}

fn ascii_escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'"' => out.extend_from_slice(b"\\\""),
        _ => hex_escape(out, byte),
    }
}

fn hex_escape(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Appends the character that `bytes` begins with, escaped if necessary. Returns the number of bytes that were
/// consumed.
fn beyond_ascii(out: &mut Vec<u8>, bytes: &[u8]) -> usize {
    let first = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(c) if !is_deceptive(c) => {
            out.extend_from_slice(&bytes[..c.len_utf8()]);
            c.len_utf8()
        }
        Some(c) => {
            out.extend_from_slice(c.escape_unicode().to_string().as_bytes());
            c.len_utf8()
        }
        None => {
            hex_escape(out, bytes[0]);
            1
        }
    }
}

/// Returns whether a character could hide text from a reader: it moves the cursor, ends the line, changes the direction
/// of text, or is invisible.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: fn(&mut Vec<u8>, &[u8]), bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write(&mut out, bytes);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn control_and_deceptive_characters_are_escaped() {
        assert_eq!(text(quoted, b"/etc/passwd"), r#""/etc/passwd""#);
        assert_eq!(text(quoted, b"a\"b\\c\n\t\r\x1b[31m\0\x7f"), r#""a\"b\\c\n\t\r\x1b[31m\x00\x7f""#);
        assert_eq!(text(quoted, "gr\u{fc}n \u{65e5}".as_bytes()), "\"gr\u{fc}n \u{65e5}\"");
        assert_eq!(text(quoted, b"\xff\xc3(\xe6\x97"), r#""\xff\xc3(\xe6\x97""#);
        assert_eq!(text(quoted, "\u{202e}gpj\u{85}\u{2028}".as_bytes()), r#""\u{202e}gpj\u{85}\u{2028}""#);
        assert_eq!(text(plain, b"sh\x1b]0;x\x07 \"q\""), r#"sh\x1b]0;x\x07 "q""#);
        assert_eq!(text(bracketed, b"/tmp/a>, fd: 4</etc->x"), r"</tmp/a\x3e, fd: 4\x3c/etc-\x3ex>");
        assert_eq!(text(bracketed, b"UNIX:[1->2,\"/a>b\"]"), r#"<UNIX:[1->2,"/a\x3eb"]>"#);
    }

    proptest! {
        #[test]
        fn output_never_contains_deceptive_characters(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            for write in [quoted, plain, bracketed] {
                prop_assert!(!text(write, &bytes).chars().any(is_deceptive));
            }
        }

        #[test]
        fn escaped_text_is_unambiguous(a in proptest::collection::vec(any::<u8>(), 0..6), b in proptest::collection::vec(any::<u8>(), 0..6)) {
            prop_assert_eq!(a == b, text(plain, &a) == text(plain, &b));
        }
    }
}
