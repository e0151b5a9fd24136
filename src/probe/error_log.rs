//! Why the kernel did not take a line: its `error_log` (Documentation/trace/ftrace.rst), and what its words mean to whoever typed a probe.
//!
//! ```text
//! [45708.977035] trace_uprobe: error: Invalid register name
//!   Command: p:rtrace_x1/handle2 /tmp/app:0x1189 s=+0(%zz):ustring
//!                                                      ^
//! ```
//! The log is everybody's and keeps the last eight mistakes, so an entry is ours only if its line is. Some refusals leave none: then the errno must do.

use super::grammar;
use std::fmt;
use std::io;

/// What stands before the line in an entry.
const COMMAND: &str = "  Command: ";

/// A line that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    pub errno: i32,
    /// What is wrong, a sentence.
    pub what: String,
    /// The kernel's own entry.
    pub entry: Option<Entry>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `trace_uprobe: error: Invalid register name`
    pub message: String,
    /// The line as the kernel has it.
    pub line: String,
    /// The column of the line that the caret points to.
    pub column: usize,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.entry {
            Some(Entry { message, line, column }) => write!(f, "\n    {message}\n    {line}\n    {:column$}^", ""),
            None => Ok(()),
        }
    }
}

/// What the log, and without it the errno, says about a line.
pub fn refused(log: &[u8], line: &str, errno: i32) -> Refused {
    let entry = last_about(&String::from_utf8_lossy(log), line);
    let said = entry.as_ref().map(|entry| entry.message.rsplit("error: ").next().unwrap_or_default());
    let what = said.and_then(|said| explained(said, line)).or_else(|| said.map(plain)).unwrap_or_else(|| by_errno(errno));
    Refused { errno, what, entry }
}

/// The last entry whose line is this one. The kernel puts single blanks between words; about the condition of an event probe it gives the condition alone.
fn last_about(log: &str, line: &str) -> Option<Entry> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let condition = line.split_once(" if ").filter(|_| line.starts_with('e')).map(|(_, condition)| words(condition));
    let ours = [Some(words(line)), condition];
    let lines: Vec<&str> = log.lines().collect();
    let is_ours = |command: &str| ours.contains(&Some(words(command)));
    let entry = lines.windows(3).rev().find(|entry| entry[1].strip_prefix(COMMAND).is_some_and(is_ours))?;
    // `[stamp] message`
    let message = entry[0].split_once("] ").map_or(entry[0], |(_, message)| message);
    let line = entry[1].strip_prefix(COMMAND)?;
    Some(Entry { message: message.to_owned(), line: line.to_owned(), column: entry[2].find('^')?.checked_sub(COMMAND.len())? })
}

/// What some of the kernel's sentences (ERRORS in kernel/trace/trace_probe.h) do not say to those who do not know its code. The others are clear.
fn explained(said: &str, line: &str) -> Option<String> {
    Some(match said {
        "Probe point is not an instruction boundary" => "the place is not an instruction boundary: it is in the middle of an instruction".to_owned(),
        "Failed to register probe event" if grammar::is_on_file(line) => "the kernel cannot set a breakpoint there".to_owned(),
        "Failed to register probe event" => {
            "the kernel allows no probe there: the function is blacklisted (it is needed for probing itself, or marked notrace), or the place is no code".to_owned()
        }
        // The caret is under the place also where the data is meant.
        "Invalid probed address or symbol" if line.contains('@') => {
            "the kernel has no such function or data (/proc/kallsyms lists what it has)".to_owned()
        }
        "Invalid probed address or symbol" => "the kernel has no such function (/proc/kallsyms lists those that it has)".to_owned(),
        "The symbol is not unique" => "several functions of the kernel have this name: give MODULE:NAME or an address".to_owned(),
        "Invalid register name" => "unknown register".to_owned(),
        "Unknown type is specified" => "unknown type, or one that there is not for this kind of probe".to_owned(),
        "Too many arguments are specified" => "too many arguments".to_owned(),
        "Argument expression is too long" => "an argument is longer than the kernel takes".to_owned(),
        "String accepts only memory argument" => "a string must be read from memory: write +0(...) around the argument".to_owned(),
        "Given group/event name is already used by another event" => "there is an event of this name already".to_owned(),
        "Retprobe address must be an function entry" => "a return probe must be at a function's first instruction".to_owned(),
        "Attached event does not exist" => "there is no such event to attach to".to_owned(),
        "Attached event does not have this field" | "Field not found" => "the event that this attaches to has no such field".to_owned(),
        "No BTF entry for this probe point" => "the kernel's type information (BTF) does not know this function".to_owned(),
        "BTF is not available or not supported" => "this kernel has no type information (BTF), so arguments have no names".to_owned(),
        "This variable is not found at this probe point" => "the function has no argument of this name".to_owned(),
        "Tracepoint is not found" => "the kernel has no such tracepoint".to_owned(),
        "Invalid $-valiable specified" | "Invalid $-variable specified" => "there is no such $ variable here".to_owned(),
        _ => return None,
    })
}

/// A sentence of the kernel's as it stands after a colon.
fn plain(said: &str) -> String {
    let said = said.trim_end_matches('.');
    let mut chars = said.chars();
    match chars.next() {
        Some(first) if !chars.as_str().starts_with(|second: char| second.is_uppercase()) => first.to_lowercase().chain(chars).collect(),
        _ => said.to_owned(),
    }
}

fn by_errno(errno: i32) -> String {
    match errno {
        libc::EINVAL => "the kernel does not take it, and does not say why".to_owned(),
        libc::EEXIST => "there is an event of this name already, or one just like it".to_owned(),
        libc::ENOENT => "there is no such place".to_owned(),
        libc::EILSEQ => "the place is not an instruction boundary: it is in the middle of an instruction".to_owned(),
        libc::EBUSY => "the event is in use".to_owned(),
        libc::EPERM => "the kernel is locked down (man 7 kernel_lockdown), or root may not probe here".to_owned(),
        _ => io::Error::from_raw_os_error(errno).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
[45708.977035] trace_uprobe: error: Invalid register name
  Command: p:rtrace_1_2/handle /tmp/app:0x1189 s=+0(%zz):ustring
                                                    ^
[45709.1] trace_kprobe: error: Failed to register probe event
  Command: p:rtrace_1_2/x notifier_call_chain
                          ^
[45709.2] trace_probe: error: This type does not fit for string.
  Command: p:rtrace_1_2/handle /tmp/app:0x1189 a=%di:string
                                                     ^
[45709.3] event filter parse error: error: Field not found
  Command: nr == 257
              ^
";

    #[test]
    fn our_entry_is_found_among_those_of_others() {
        let refused = refused(LOG.as_bytes(), "p:rtrace_1_2/handle  /tmp/app:0x1189 s=+0(%zz):ustring", libc::EINVAL);
        let text = refused.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["unknown register", "    trace_uprobe: error: Invalid register name"]);
        assert_eq!(lines[2][lines[3].find('^').unwrap()..], *"%zz):ustring");
    }

    #[test]
    fn words_that_are_clear_stay() {
        let of = |line: &str| refused(LOG.as_bytes(), line, libc::EINVAL).what;
        assert!(of("p:rtrace_1_2/x notifier_call_chain").contains("blacklisted"));
        assert_eq!(of("p:rtrace_1_2/handle /tmp/app:0x1189 a=%di:string"), "this type does not fit for string");
    }

    #[test]
    fn a_condition_stands_alone() {
        let of = |line: &str| refused(LOG.as_bytes(), line, libc::EINVAL);
        let refused = of("e:rtrace_1_2/x raw_syscalls.sys_enter nr=$id if nr ==  257");
        assert_eq!(refused.what, "the event that this attaches to has no such field");
        assert_eq!(refused.entry.map(|entry| entry.line).as_deref(), Some("nr == 257"));
        assert_eq!(of("p:rtrace_1_2/x vfs_read if nr == 257").entry, None);
    }

    #[test]
    fn without_an_entry_the_errno_speaks() {
        let of = |errno: i32| refused(LOG.as_bytes(), "p:rtrace_1_2/handle /tmp/app:0x1190", errno);
        assert_eq!(of(libc::EINVAL).entry, None);
        assert!(of(libc::EILSEQ).what.contains("not an instruction boundary"));
        assert_eq!(of(libc::ENOSPC).what, "No space left on device (os error 28)");
    }

    proptest::proptest! {
        #[test]
        fn any_log_is_read(log: Vec<u8>, about in "  Command: p x\n *\\^?") {
            refused(&log, "p x", 22);
            refused(format!("[1] x\n{about}").as_bytes(), "p x", 22);
        }
    }
}
