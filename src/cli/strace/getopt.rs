//! The letters and words of strace's command line, in the way in which getopt_long(3) reads them: the first word that
//! is no option is the program, letters may stand together, values may be attached, and long options may be
//! abbreviated.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The letters of strace; a colon follows those that have a value.
const LETTERS: &str = "a:Ab:cCdDe:E:fFhiI:kno:NO:p:P:qrs:S:tTu:U:vVwxX:yYzZ";

/// The letters that are short for expressions of `-e`.
const EXPRESSIONS: [(u8, &str); 4] =
    [(b'v', "abbrev=none"), (b'Y', "decode-pids=comm"), (b'z', "status=successful"), (b'Z', "status=failed")];

/// Whether an option has a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    Required,
    /// It must be attached. This one stands for a missing one.
    Optional(&'static str),
}

use Value::{None as Nothing, Optional, Required};

/// A long option: its name, its value, and what it means. This is an option of [`super::options::Options`] with its
/// dashes, or the beginning of an expression of `-e`.
type Long = (&'static str, Value, &'static str);

/// The long options of strace, in the order in which messages about abbreviations list them.
const LONG: &[Long] = &[
    ("columns", Required, "-a"),
    ("output-append-mode", Nothing, "-A"),
    ("detach-on", Required, "-b"),
    ("summary-only", Nothing, "-c"),
    ("summary", Nothing, "-C"),
    ("debug", Nothing, "-d"),
    ("daemonize", Optional("grandchild"), "--daemonize"),
    ("daemonised", Optional("grandchild"), "--daemonize"),
    ("daemonized", Optional("grandchild"), "--daemonize"),
    ("env", Required, "-E"),
    ("follow-forks", Nothing, "--follow-forks"),
    ("output-separately", Nothing, "--output-separately"),
    ("help", Nothing, "-h"),
    ("instruction-pointer", Nothing, "-i"),
    ("interruptible", Required, "-I"),
    ("kill-on-exit", Nothing, "--kill-on-exit"),
    ("stack-trace", Optional("symbol"), "--stack-trace"),
    ("stack-traces", Optional("symbol"), "--stack-trace"),
    ("stack-trace-frame-limit", Required, "--stack-trace-frame-limit"),
    ("syscall-limit", Required, "--syscall-limit"),
    ("syscall-number", Nothing, "-n"),
    ("arg-names", Nothing, "-N"),
    ("output", Required, "-o"),
    ("summary-syscall-overhead", Required, "-O"),
    ("attach", Required, "-p"),
    ("trace-path", Required, "-P"),
    ("relative-timestamps", Optional("us"), "--relative-timestamps"),
    ("string-limit", Required, "-s"),
    ("summary-sort-by", Required, "-S"),
    ("absolute-timestamps", Optional("time"), "--absolute-timestamps"),
    ("timestamps", Optional("time"), "--absolute-timestamps"),
    ("syscall-times", Optional("us"), "--syscall-times"),
    ("user", Required, "-u"),
    ("summary-columns", Required, "-U"),
    ("no-abbrev", Nothing, "abbrev=none"),
    ("version", Nothing, "-V"),
    ("summary-wall-clock", Nothing, "-w"),
    ("strings-in-hex", Optional("all"), "--strings-in-hex"),
    ("const-print-style", Required, "-X"),
    ("pidns-translation", Nothing, "decode-pids=pidns"),
    ("successful-only", Nothing, "status=successful"),
    ("failed-only", Nothing, "status=failed"),
    ("failing-only", Nothing, "status=failed"),
    ("seccomp-bpf", Nothing, "--seccomp-bpf"),
    ("tips", Optional(""), "--tips"),
    ("argv0", Required, "--argv0"),
    ("always-show-pid", Nothing, "--always-show-pid"),
    ("color", Required, "--color"),
    ("trace", Required, "trace="),
    ("trace-fds", Required, "trace-fds="),
    ("abbrev", Required, "abbrev="),
    ("verbose", Required, "verbose="),
    ("raw", Required, "raw="),
    ("signals", Required, "signal="),
    ("status", Required, "status="),
    ("read", Required, "read="),
    ("write", Required, "write="),
    ("fault", Required, "fault="),
    ("inject", Required, "inject="),
    ("kvm", Required, "kvm="),
    ("namespace", Required, "namespace="),
    ("quiet", Optional("attach,personality"), "quiet="),
    ("silent", Optional("attach,personality"), "quiet="),
    ("silence", Optional("attach,personality"), "quiet="),
    ("decode-fds", Optional("path"), "decode-fds="),
    ("decode-pids", Required, "decode-pids="),
    ("secontext", Optional("!full,mismatch"), "secontext="),
];

/// The options of rtrace that its command line of strace has besides. They have no abbreviations.
const OWN: &[Long] = &[("engine", Required, "--engine"), ("lossless", Nothing, "--lossless")];

/// Returns the words of a command line in the form in which [`super::options::Options`] declares them: each letter is a
/// word, and each value is attached to its option after an equals sign. `--` stands before the program.
///
/// # Errors
/// The message of getopt_long(3) about the first word that is wrong.
pub fn read(words: &[OsString]) -> Result<Vec<OsString>, String> {
    let mut read = Vec::new();
    let mut left = words.iter();
    while let Some(word) = left.as_slice().first() {
        let bytes = word.as_bytes();
        if bytes == b"-" || !bytes.starts_with(b"-") {
            break;
        }
        left.next();
        match bytes.strip_prefix(b"--") {
            Some(b"") => break,
            Some(name) => long(name, &mut left, &mut read)?,
            None => letters(&bytes[1..], &mut left, &mut read)?,
        }
        if read.last().is_some_and(|word| word == "-h") {
            return Ok(vec!["-h".into()]);
        }
    }
    read.push("--".into());
    read.extend(left.cloned());
    Ok(read)
}

/// Reads letters that stand together.
fn letters<'a>(word: &[u8], left: &mut impl Iterator<Item = &'a OsString>, read: &mut Vec<OsString>) -> Result<(), String> {
    for (at, &letter) in word.iter().enumerate() {
        let mut known = LETTERS.bytes().skip_while(|known| *known != letter || letter == b':');
        let name = String::from_utf8_lossy(&[letter]).into_owned();
        if known.next().is_none() {
            return Err(format!("invalid option -- '{name}'"));
        }
        if known.next() == Some(b':') {
            let attached = &word[at + 1..];
            let value = match attached.is_empty() {
                false => attached,
                true => left.next().ok_or_else(|| format!("option requires an argument -- '{name}'"))?.as_bytes(),
            };
            read.push(with_value(&format!("-{name}"), value));
            return Ok(());
        }
        match EXPRESSIONS.iter().find(|(other, _)| *other == letter) {
            Some((_, text)) => expression(text, read),
            None => read.push(format!("-{name}").into()),
        }
    }
    Ok(())
}

/// Reads a long option, without its dashes.
fn long<'a>(word: &[u8], left: &mut impl Iterator<Item = &'a OsString>, read: &mut Vec<OsString>) -> Result<(), String> {
    let text = String::from_utf8_lossy(word);
    let end = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
    let (name, attached) = (&word[..end], word.get(end + 1..));
    let &(name, takes, meaning) = find(name).map_err(|candidates| match candidates.as_slice() {
        [] => format!("unrecognized option '--{text}'"),
        names => {
            let list: String = names.iter().map(|(name, ..)| format!(" '--{name}'")).collect();
            format!("option '--{text}' is ambiguous; possibilities:{list}")
        }
    })?;
    let value = match (takes, attached) {
        (Nothing, Some(_)) => return Err(format!("option '--{name}' doesn't allow an argument")),
        (Nothing, None) => None,
        (Optional(_) | Required, Some(value)) => Some(value),
        (Optional(missing), None) => Some(missing.as_bytes()),
        (Required, None) => Some(left.next().ok_or_else(|| format!("option '--{name}' requires an argument"))?.as_bytes()),
    };
    match (meaning.starts_with('-'), value) {
        (true, Some(value)) => read.push(with_value(meaning, value)),
        (true, None) => read.push(meaning.into()),
        (false, Some(value)) => read.push(with_value("-e", &[meaning.as_bytes(), value].concat())),
        (false, None) => expression(meaning, read),
    }
    Ok(())
}

/// Adds the expression that an option without a value stands for. `-z` counts those about the ends of calls.
fn expression(text: &str, read: &mut Vec<OsString>) {
    read.push(with_value("-e", text.as_bytes()));
    if text.starts_with("status=") {
        read.push("-z".into());
    }
}

/// Returns the long option of a name or of an unambiguous beginning of one.
///
/// # Errors
/// The options that begin so, which mean different things; none if there is none.
fn find(name: &[u8]) -> Result<&'static Long, Vec<&'static Long>> {
    if let Some(exact) = LONG.iter().chain(OWN).find(|(known, ..)| known.as_bytes() == name) {
        return Ok(exact);
    }
    let candidates: Vec<&Long> = LONG.iter().filter(|(known, ..)| known.as_bytes().starts_with(name)).collect();
    match candidates.split_first() {
        Some((first, others)) if others.iter().all(|other| other.2 == first.2) => Ok(first),
        _ => Err(candidates),
    }
}

fn with_value(option: &str, value: &[u8]) -> OsString {
    OsString::from_vec([option.as_bytes(), b"=", value].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<String, String> {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        Ok(read(&words)?.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn letters_may_stand_together_and_values_may_be_attached() {
        assert_eq!(words("-fttTe openat ls -l").unwrap(), "-f -t -t -T -e=openat -- ls -l");
        assert_eq!(words("-s5 -o log -- -ls").unwrap(), "-s=5 -o=log -- -ls");
        assert_eq!(words("-e=x - -f").unwrap(), "-e==x -- - -f");
        assert_eq!(words("-vzYZ ls").unwrap(), "-e=abbrev=none -e=status=successful -z -e=decode-pids=comm -e=status=failed -z -- ls");
    }

    #[test]
    fn long_options_may_be_abbreviated() {
        assert_eq!(words("--trace-p /x --sig=none --fol ls").unwrap(), "-P=/x -e=signal=none --follow-forks -- ls");
        assert_eq!(
            words("--quiet --decode-fds=all --fai ls").unwrap(),
            "-e=quiet=attach,personality -e=decode-fds=all -e=status=failed -z -- ls"
        );
    }

    #[test]
    fn what_is_wrong_has_the_words_of_getopt() {
        assert_eq!(words("-fQ ls").unwrap_err(), "invalid option -- 'Q'");
        assert_eq!(words("-:").unwrap_err(), "invalid option -- ':'");
        assert_eq!(words("-fe").unwrap_err(), "option requires an argument -- 'e'");
        assert_eq!(words("--argv0").unwrap_err(), "option '--argv0' requires an argument");
        assert_eq!(words("--follow-forks=x ls").unwrap_err(), "option '--follow-forks' doesn't allow an argument");
        assert_eq!(words("--bogus=1 ls").unwrap_err(), "unrecognized option '--bogus=1'");
        assert_eq!(words("--k ls").unwrap_err(), "option '--k' is ambiguous; possibilities: '--kill-on-exit' '--kvm'");
        assert_eq!(words("--lossl ls").unwrap_err(), "unrecognized option '--lossl'");
    }
}
