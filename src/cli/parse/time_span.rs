//! `--time FROM,TO`, as perf's commands have it. `--time` alone is perf trace's option for time stamps, which takes no
//! value, so the words are told apart here and the span becomes `--time-span`.

use crate::cli::habits::walk;
use std::ffi::OsString;

/// Returns the words with `--time-span=FROM,TO` in place of `--time FROM,TO`. The words of the command stay as they
/// are.
pub fn spelled_out(words: &[OsString]) -> Vec<OsString> {
    let mut words = words.to_vec();
    for at in 0..words.len() {
        let Some(word) = words[at].to_str() else { continue };
        if let Some(span) = word.strip_prefix("--time=").filter(|span| is_span(span)) {
            if is_option(&words, at) {
                words[at] = format!("--time-span={span}").into();
            }
        } else if let ("--time", Some(span)) = (word, words.get(at + 1).and_then(|next| next.to_str()).filter(|next| is_span(next)))
            && is_option(&words, at)
        {
            let joined = format!("--time-span={span}").into();
            words.splice(at..at + 2, [joined]);
            return spelled_out(&words);
        }
    }
    words
}

/// Returns whether this word is an option of rtrace and no word of the command, nor the value of another option.
fn is_option(words: &[OsString], at: usize) -> bool {
    let known = |words: &[OsString]| walk::walk(words).len();
    // A word that is not reached changes nothing.
    known(&words[..=at]) == known(&words[..at]) + 1
}

/// Returns whether a word is a span, and not the name of a command.
fn is_span(word: &str) -> bool {
    let of_span = |letter: char| letter.is_ascii_alphanumeric() || " ,.:%+-_".contains(letter);
    word.contains([',', '%']) && word.chars().all(of_span) && word.contains(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_from_commands() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            spelled_out(&words).join(" ".as_ref()).into_string().unwrap()
        };
        for (line, meant) in [
            ("--time 1.5,2 -i f", "--time-span=1.5,2 -i f"),
            ("-s -i f --time ,20ms", "-s -i f --time-span=,20ms"),
            ("-i f --time=10%-20% -T", "-i f --time-span=10%-20% -T"),
            ("--time ls -l", "--time ls -l"),
            ("perf script --time 1,2", "perf script --time 1,2"),
            ("-o --time 1,2", "-o --time 1,2"),
            ("-- x --time=1,2", "-- x --time=1,2"),
        ] {
            assert_eq!(of(line), meant);
        }
    }
}
