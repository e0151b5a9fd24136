//! Why the kernel refused a line: tracefs's `error_log` (Documentation/trace/ftrace.rst), with messages that need no
//! knowledge of the kernel's code.
//!
//! ```text
//! [45708.977035] trace_uprobe: error: Invalid register name
//!   Command: p:rtrace_x1/handle2 /tmp/app:0x1189 s=+0(%zz):ustring
//!                                                      ^
//! ```
//! The log is shared by all users of tracefs and keeps the last eight errors, so an entry is ours only if its command
//! is our line. Some refusals leave no entry; then only the errno is known.

use super::grammar;
use std::fmt;
use std::io;

/// The prefix of the command line in an entry.
const COMMAND: &str = "  Command: ";

/// The refusal of a line by the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// The errno of the write(2) that the kernel refused.
    pub errno: i32,
    /// The reason, as a sentence.
    pub what: String,
    /// The kernel's entry in the log.
    pub entry: Option<LogEntry>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// `trace_uprobe: error: Invalid register name`
    pub message: String,
    /// The command as the log shows it.
    pub line: String,
    /// The column of `line` that the caret points to.
    pub column: usize,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.entry {
            Some(LogEntry { message, line, column }) => write!(f, "\n    {message}\n    {line}\n    {:column$}^", ""),
            None => Ok(()),
        }
    }
}

/// Returns why the kernel refused a line: by the log's entry about it, and without one by the errno.
pub fn refused(log: &[u8], line: &str, errno: i32) -> Refused {
    let entry = last_about(&String::from_utf8_lossy(log), line);
    let said = entry.as_ref().map(|entry| entry.message.rsplit("error: ").next().unwrap_or_default());
    let what = said.and_then(|said| explained(said, line)).or_else(|| said.map(plain)).unwrap_or_else(|| by_errno(errno));
    Refused { errno, what, entry }
}

/// Finds the last entry about this line. The kernel puts single spaces between words. For an error in the condition of
/// an event probe it logs the condition alone.
fn last_about(log: &str, line: &str) -> Option<LogEntry> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let condition = line.split_once(" if ").filter(|_| line.starts_with('e')).map(|(_, condition)| words(condition));
    let ours = [Some(words(line)), condition];
    let lines: Vec<&str> = log.lines().collect();
    let is_ours = |command: &str| ours.contains(&Some(words(command)));
    let entry = lines.windows(3).rev().find(|entry| entry[1].strip_prefix(COMMAND).is_some_and(is_ours))?;
    // `[stamp] message`
    let message = entry[0].split_once("] ").map_or(entry[0], |(_, message)| message);
    let line = entry[1].strip_prefix(COMMAND)?;
    Some(LogEntry { message: message.to_owned(), line: line.to_owned(), column: entry[2].find('^')?.checked_sub(COMMAND.len())? })
}

/// Replaces those of the kernel's messages (ERRORS in kernel/trace/trace_probe.h) that are unclear to readers who do
/// not know its code. The other messages stay as they are.
fn explained(said: &str, line: &str) -> Option<String> {
    Some(match said {
        "Probe point is not an instruction boundary" => "the place is not an instruction boundary: it is in the middle of an instruction".to_owned(),
        "Failed to register probe event" if grammar::is_on_file(line) => "the kernel cannot set a breakpoint at this place".to_owned(),
        "Failed to register probe event" => {
            "the kernel allows no probe at this place: the function is blacklisted (kprobes depend on it, or it is marked notrace), or the place is not code".to_owned()
        }
        // The caret is under the probe's place even if the kernel does not know the data symbol of an argument.
        "Invalid probed address or symbol" if line.contains('@') => {
            "the kernel has no such function or data (/proc/kallsyms lists all symbols)".to_owned()
        }
        "Invalid probed address or symbol" => "the kernel has no such function (/proc/kallsyms lists all functions)".to_owned(),
        "The symbol is not unique" => "several functions of the kernel have this name: write MODULE:NAME or an address".to_owned(),
        "Invalid register name" => "unknown register".to_owned(),
        "Unknown type is specified" => "unknown type, or a type that this kind of probe does not support".to_owned(),
        "Too many arguments are specified" => "too many arguments".to_owned(),
        "Argument expression is too long" => "an argument is longer than the kernel accepts".to_owned(),
        "String accepts only memory argument" => "a string must be read from memory: write +0(...) around the argument".to_owned(),
        "Given group/event name is already used by another event" => "an event of this name exists already".to_owned(),
        "Retprobe address must be an function entry" => "a return probe must be at a function's first instruction".to_owned(),
        "Attached event does not exist" => "the event that this probe attaches to does not exist".to_owned(),
        "Attached event does not have this field" | "Field not found" => "the event that this probe attaches to has no such field".to_owned(),
        "No BTF entry for this probe point" => "the kernel's type information (BTF) does not describe this function".to_owned(),
        "BTF is not available or not supported" => "this kernel has no type information (BTF), so arguments cannot be fetched by name".to_owned(),
        "This variable is not found at this probe point" => "the function has no argument of this name".to_owned(),
        "Tracepoint is not found" => "the kernel has no such tracepoint".to_owned(),
        "Invalid $-valiable specified" | "Invalid $-variable specified" => "this kind of probe has no such $ variable".to_owned(),
        _ => return None,
    })
}

/// Turns one of the kernel's messages into the second half of a sentence: lowercase, without a full stop.
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
        libc::EINVAL => "the kernel refused the line without giving a reason".to_owned(),
        libc::EEXIST => "an event of this name, or an identical event, exists already".to_owned(),
        libc::ENOENT => "the place does not exist".to_owned(),
        libc::EILSEQ => "the place is not an instruction boundary: it is in the middle of an instruction".to_owned(),
        libc::EBUSY => "the event is in use".to_owned(),
        libc::EPERM => "the kernel is locked down (man 7 kernel_lockdown), or root is not allowed to create probes here".to_owned(),
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
    fn our_entry_is_found_among_the_entries_of_others() {
        let refused = refused(LOG.as_bytes(), "p:rtrace_1_2/handle  /tmp/app:0x1189 s=+0(%zz):ustring", libc::EINVAL);
        let text = refused.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["unknown register", "    trace_uprobe: error: Invalid register name"]);
        assert_eq!(lines[2][lines[3].find('^').unwrap()..], *"%zz):ustring");
    }

    #[test]
    fn clear_messages_of_the_kernel_stay() {
        let of = |line: &str| refused(LOG.as_bytes(), line, libc::EINVAL).what;
        assert!(of("p:rtrace_1_2/x notifier_call_chain").contains("blacklisted"));
        assert_eq!(of("p:rtrace_1_2/handle /tmp/app:0x1189 a=%di:string"), "this type does not fit for string");
    }

    #[test]
    fn an_entry_about_a_condition_is_found() {
        let of = |line: &str| refused(LOG.as_bytes(), line, libc::EINVAL);
        let refused = of("e:rtrace_1_2/x raw_syscalls.sys_enter nr=$id if nr ==  257");
        assert_eq!(refused.what, "the event that this probe attaches to has no such field");
        assert_eq!(refused.entry.map(|entry| entry.line).as_deref(), Some("nr == 257"));
        assert_eq!(of("p:rtrace_1_2/x vfs_read if nr == 257").entry, None);
    }

    #[test]
    fn without_an_entry_the_errno_gives_the_reason() {
        let of = |errno: i32| refused(LOG.as_bytes(), "p:rtrace_1_2/handle /tmp/app:0x1190", errno);
        assert_eq!(of(libc::EINVAL).entry, None);
        assert!(of(libc::EILSEQ).what.contains("not an instruction boundary"));
        assert_eq!(of(libc::ENOSPC).what, "No space left on device (os error 28)");
    }

    proptest::proptest! {
        #[test]
        fn no_log_makes_it_panic(log: Vec<u8>, about in "  Command: p x\n *\\^?") {
            refused(&log, "p x", 22);
            refused(format!("[1] x\n{about}").as_bytes(), "p x", 22);
        }
    }
}
