//! The processes that read or show rtrace's output, which make system calls for every line that rtrace prints.
//!
//! A system-wide trace of them would be a feedback loop: rtrace writes, the terminal emulator reads, which is an event,
//! which is written. A guess would hide calls that the user wants to see, so each process needs a reason, and `-v`
//! prints the reasons.

use super::procfs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

/// A process that is left out of the trace, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputReader {
    /// The pid; all threads of the process are left out.
    pub pid: i32,
    /// Its comm, not escaped.
    pub comm: Vec<u8>,
    /// The reason as a predicate, of which the process is the subject: `reads rtrace's output pipe`.
    pub reason: &'static str,
}

/// Returns the processes that read or show the data written to `output`.
///
/// For a pipe these are the readers at its other end. For a terminal or a socket these are the ancestors that show or
/// forward the terminal (ssh server, terminal emulator, tmux, script), by their names or because they have a
/// pseudoterminal master open. Without privileges, processes of other users are not found.
pub fn output_readers(output: BorrowedFd<'_>) -> Vec<OutputReader> {
    let me = std::process::id() as i32;
    let Some(link) = procfs::fd_link(me, output.as_raw_fd()) else { return Vec::new() };
    let mut readers = Vec::new();
    if link.starts_with(b"pipe:[") {
        readers.extend(holders(&link, me, reads, "reads rtrace's output pipe"));
        // The reader of the pipe may print the data on the terminal, as `| less` does.
        let prints_on = |pid: i32| procfs::fd_link(pid, 1).filter(|link| is_terminal(link));
        if readers.iter().any(|reader| prints_on(reader.pid).is_some()) {
            readers.extend(terminal_readers(me));
        }
    } else if link.starts_with(b"socket:[") || is_terminal(&link) {
        readers.extend(terminal_readers(me));
    }
    let mut seen = vec![me];
    readers.retain(|reader| {
        !seen.contains(&reader.pid) && {
            seen.push(reader.pid);
            true
        }
    });
    readers
}

/// Returns the ancestors of rtrace that show or forward a terminal, and the clients of a terminal multiplexer with the
/// ancestors of these, which are not ancestors of rtrace.
fn terminal_readers(me: i32) -> Vec<OutputReader> {
    let ancestors = procfs::ancestors(me).into_iter();
    let mut readers: Vec<OutputReader> = ancestors
        .filter_map(|stat| Some(OutputReader { reason: terminal_reason(&stat.comm, stat.tid)?, pid: stat.tid, comm: stat.comm }))
        .collect();
    // A tmux server writes to the terminals of its clients.
    if let Some(server) = readers.iter().find(|reader| reader.reason == MULTIPLEXER) {
        let name: Vec<u8> = server.comm.iter().copied().take_while(|b| b.is_ascii_lowercase()).collect();
        let clients = procfs::processes().into_iter().filter_map(|pid| Some((pid, procfs::comm(pid)?)));
        let clients: Vec<(i32, Vec<u8>)> = clients.filter(|(_, comm)| !name.is_empty() && comm.starts_with(&name)).collect();
        for (pid, comm) in clients {
            let above = procfs::ancestors(pid).into_iter();
            readers.extend(
                above.filter_map(|stat| {
                    Some(OutputReader { reason: terminal_reason(&stat.comm, stat.tid)?, pid: stat.tid, comm: stat.comm })
                }),
            );
            readers.push(OutputReader { pid, comm, reason: "is a client of the terminal multiplexer" });
        }
    }
    readers
}

const MULTIPLEXER: &str = "is the terminal multiplexer rtrace runs in";

/// Returns the reason why an ancestor shows or forwards the terminal: its name, or that it has a pseudoterminal master
/// open.
fn terminal_reason(comm: &[u8], pid: i32) -> Option<&'static str> {
    match comm {
        _ if comm.starts_with(b"sshd") || comm == b"dropbear" || comm.starts_with(b"mosh-server") => {
            Some("forwards the terminal over the network")
        }
        _ if comm.starts_with(b"tmux") || comm.starts_with(b"screen") || comm == b"zellij" || comm == b"dtach" => Some(MULTIPLEXER),
        b"script" | b"asciinema" | b"ttyrec" | b"expect" => Some("records the terminal"),
        _ => holds_master(pid).then_some("has the pseudoterminal's master open"),
    }
}

/// Whether a process has a pseudoterminal master open, like every terminal emulator.
fn holds_master(pid: i32) -> bool {
    procfs::fd_links(pid).is_some_and(|links| links.iter().any(|(_, link)| link == b"/dev/ptmx" || link == b"/dev/pts/ptmx"))
}

/// Returns the processes, except `me`, that have a file descriptor with this link for which `passes` holds.
fn holders(link: &[u8], me: i32, passes: impl Fn(i32, i32) -> bool, reason: &'static str) -> Vec<OutputReader> {
    let others = procfs::processes().into_iter().filter(|pid| *pid != me);
    let holds = |pid: i32| procfs::fd_links(pid).is_some_and(|links| links.iter().any(|(fd, at)| at == link && passes(pid, *fd)));
    others.filter(|pid| holds(*pid)).filter_map(|pid| Some(OutputReader { pid, comm: procfs::comm(pid)?, reason })).collect()
}

/// Whether a descriptor is open for reading, by its flags in /proc/PID/fdinfo (octal; the access mode is the low two
/// bits).
fn reads(pid: i32, fd: i32) -> bool {
    let Ok(text) = std::fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo/{fd}"))) else { return false };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & 3 != 1)
}

fn is_terminal(link: &[u8]) -> bool {
    link.starts_with(b"/dev/pts/") || link.starts_with(b"/dev/tty") || link == b"/dev/console"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    #[test]
    fn the_reader_of_a_pipe_is_found_and_its_writers_are_not() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut reads = Command::new("cat").stdin(Stdio::from(std::os::fd::OwnedFd::from(reader))).stdout(Stdio::null()).spawn().unwrap();
        let mut writes = Command::new("sleep").arg("60").stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).spawn().unwrap();
        let found = output_readers(writer.as_fd());
        writes.kill().unwrap();
        writes.wait().unwrap();
        drop(writer);
        reads.wait().unwrap();
        assert_eq!(found.iter().map(|c| c.pid).collect::<Vec<_>>(), [reads.id() as i32]);
        assert_eq!(found[0].reason, "reads rtrace's output pipe");
    }

    #[test]
    fn a_file_has_no_output_readers() {
        let file = std::fs::File::create("/dev/null").unwrap();
        assert!(output_readers(file.as_fd()).is_empty());
    }

    #[test]
    fn output_readers_are_recognized_by_their_names() {
        assert!(terminal_reason(b"sshd-session", -1).is_some());
        assert_eq!(terminal_reason(b"tmux: server", -1), Some(MULTIPLEXER));
        assert_eq!(terminal_reason(b"bash", -1), None);
    }
}
