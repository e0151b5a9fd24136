//! Who carries rtrace's output: the processes whose own calls would grow with every line that rtrace prints.
//!
//! A system-wide trace that showed them would show itself: rtrace writes, the terminal emulator reads, which is an event, which is written.
//! A guess would hide work that somebody asked for, so only processes with a reason are named, and `-v` says the reasons.

use super::procfs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

/// A process that is to be left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    pub pid: i32,
    pub comm: Vec<u8>,
    pub reason: &'static str,
}

/// The processes that carry what is written to `output`.
///
/// For a pipe or a socket pair these are the readers at its other end; for a terminal the ancestors that hold its other side (ssh server,
/// terminal emulator, tmux, script) and whoever has it open as a master. Readers of other users stay unseen without privileges.
pub fn output_carriers(output: BorrowedFd<'_>) -> Vec<Carrier> {
    let me = std::process::id() as i32;
    let Some(link) = procfs::fd_link(me, output.as_raw_fd()) else { return Vec::new() };
    let mut carriers = Vec::new();
    if link.starts_with(b"pipe:[") {
        carriers.extend(holders(&link, me, reads, "reads rtrace's output pipe"));
        // What reads the pipe may print it again on the terminal, as `| less` does.
        let prints_on = |pid: i32| procfs::fd_link(pid, 1).filter(|link| is_terminal(link));
        if carriers.iter().any(|carrier| prints_on(carrier.pid).is_some()) {
            carriers.extend(terminal_carriers(me));
        }
    } else if link.starts_with(b"socket:[") || is_terminal(&link) {
        carriers.extend(terminal_carriers(me));
    }
    let mut seen = vec![me];
    carriers.retain(|carrier| {
        !seen.contains(&carrier.pid) && {
            seen.push(carrier.pid);
            true
        }
    });
    carriers
}

/// Those above rtrace that show a terminal, or carry it elsewhere; and the servers of tmux and screen, which are nobody's parent there.
fn terminal_carriers(me: i32) -> Vec<Carrier> {
    let ancestors = procfs::ancestors(me).into_iter();
    let mut carriers: Vec<Carrier> = ancestors
        .filter_map(|stat| Some(Carrier { reason: terminal_reason(&stat.comm, stat.tid)?, pid: stat.tid, comm: stat.comm }))
        .collect();
    // A tmux server draws into the terminals of its clients.
    if let Some(server) = carriers.iter().find(|carrier| carrier.reason == MULTIPLEXER) {
        let name: Vec<u8> = server.comm.iter().copied().take_while(|b| b.is_ascii_lowercase()).collect();
        let clients = procfs::processes().into_iter().filter_map(|pid| Some((pid, procfs::comm(pid)?)));
        let clients: Vec<(i32, Vec<u8>)> = clients.filter(|(_, comm)| !name.is_empty() && comm.starts_with(&name)).collect();
        for (pid, comm) in clients {
            let above = procfs::ancestors(pid).into_iter();
            carriers.extend(
                above.filter_map(|stat| Some(Carrier { reason: terminal_reason(&stat.comm, stat.tid)?, pid: stat.tid, comm: stat.comm })),
            );
            carriers.push(Carrier { pid, comm, reason: "shows the terminal of a multiplexer" });
        }
    }
    carriers
}

const MULTIPLEXER: &str = "is the terminal multiplexer rtrace runs in";

/// Why an ancestor carries the terminal's output: because of its name, or because it holds a terminal's master side.
fn terminal_reason(comm: &[u8], pid: i32) -> Option<&'static str> {
    match comm {
        _ if comm.starts_with(b"sshd") || comm == b"dropbear" || comm.starts_with(b"mosh-server") => {
            Some("carries the terminal over the network")
        }
        _ if comm.starts_with(b"tmux") || comm.starts_with(b"screen") || comm == b"zellij" || comm == b"dtach" => Some(MULTIPLEXER),
        b"script" | b"asciinema" | b"ttyrec" | b"expect" => Some("records the terminal"),
        _ => holds_master(pid).then_some("is the terminal's other side"),
    }
}

/// A terminal emulator is whoever has a master of a pseudo terminal open, whatever its name.
fn holds_master(pid: i32) -> bool {
    procfs::fd_links(pid).is_some_and(|links| links.iter().any(|(_, link)| link == b"/dev/ptmx" || link == b"/dev/pts/ptmx"))
}

/// The processes but `me` that have this link open in a descriptor that passes.
fn holders(link: &[u8], me: i32, passes: impl Fn(i32, i32) -> bool, reason: &'static str) -> Vec<Carrier> {
    let others = procfs::processes().into_iter().filter(|pid| *pid != me);
    let holds = |pid: i32| procfs::fd_links(pid).is_some_and(|links| links.iter().any(|(fd, at)| at == link && passes(pid, *fd)));
    others.filter(|pid| holds(*pid)).filter_map(|pid| Some(Carrier { pid, comm: procfs::comm(pid)?, reason })).collect()
}

/// Whether a descriptor is open for reading, by its flags in /proc/PID/fdinfo (octal; the access mode is the low two bits).
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
        let found = output_carriers(writer.as_fd());
        writes.kill().unwrap();
        writes.wait().unwrap();
        drop(writer);
        reads.wait().unwrap();
        assert_eq!(found.iter().map(|c| c.pid).collect::<Vec<_>>(), [reads.id() as i32]);
        assert_eq!(found[0].reason, "reads rtrace's output pipe");
    }

    #[test]
    fn a_file_has_no_carrier() {
        let file = std::fs::File::create("/dev/null").unwrap();
        assert!(output_carriers(file.as_fd()).is_empty());
    }

    #[test]
    fn names_of_carriers() {
        assert!(terminal_reason(b"sshd-session", -1).is_some());
        assert_eq!(terminal_reason(b"tmux: server", -1), Some(MULTIPLEXER));
        assert_eq!(terminal_reason(b"bash", -1), None);
    }
}
