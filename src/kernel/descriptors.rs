//! The limit of open file descriptors (RLIMIT_NOFILE), and the message for a limit that is too low.
//!
//! A trace needs some descriptors for each event and CPU, so rtrace raises its soft limit to the hard limit at the
//! start. The command gets the limit that rtrace was started with.

use crate::text::os_error::without_error_numbers;
use anyhow::anyhow;
#[cfg(feature = "bpf")]
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;

/// The least limit with which rtrace can read BTF and tracefs before it opens events.
const FILES_MIN: u64 = 32;
/// The limit that the message recommends, which is enough for most traces.
const FILES_ADVISED: u64 = 4096;

/// Raises the soft limit to the hard limit. Returns the previous limits.
///
/// # Errors
/// Fails if the limit is too low for any trace.
pub fn raise() -> anyhow::Result<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    match limit() {
        Some(limit) if limit < FILES_MIN => Err(anyhow!("{}", too_low(limit))),
        _ => Ok(before),
    }
}

/// Checks that this many further descriptors can be opened.
///
/// # Errors
/// They cannot (EMFILE, ENFILE).
#[cfg(feature = "bpf")]
pub fn check_room(count: usize) -> io::Result<()> {
    let opened: Result<Vec<_>, _> = (0..count).map(|_| eventfd(0, EventfdFlags::CLOEXEC)).collect();
    opened.map(drop).map_err(io::Error::from)
}

/// Restores the limits that rtrace was started with for a child process.
pub fn restore(pid: i32, before: Rlimit) {
    let _ = prlimit(Pid::from_raw(pid), Resource::Nofile, before);
}

/// Adds the limit and the advice to an error that the limit has caused.
pub fn explain(error: anyhow::Error) -> anyhow::Error {
    match limit().filter(|_| is_caused_by_limit(&error)) {
        Some(limit) => anyhow!("{}: {}", without_error_numbers(&format!("{error:#}")), too_low(limit)),
        None => error,
    }
}

/// Returns the limit and the advice, if the limit has caused an error.
pub fn reason(error: &anyhow::Error) -> Option<String> {
    limit().filter(|_| is_caused_by_limit(error)).map(too_low)
}

/// Whether the limit has caused an error. The text is compared, because some libraries pass on the text of an errno and
/// not its number.
fn is_caused_by_limit(error: &anyhow::Error) -> bool {
    let text_of = |number| without_error_numbers(&io::Error::from_raw_os_error(number).to_string());
    let text = format!("{error:#}");
    text.contains(&text_of(libc::EMFILE)) && !text.contains(&text_of(libc::ENFILE))
}

fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Returns the message for a limit that is too low.
fn too_low(limit: u64) -> String {
    format!(
        "only {limit} files may be open at once (the hard limit of RLIMIT_NOFILE); raise it: `ulimit -n {FILES_ADVISED}` as root, \
         `--ulimit nofile={FILES_ADVISED}` (docker, podman), `LimitNOFILE={FILES_ADVISED}` (systemd)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn only_errors_by_the_processs_own_limit_are_explained() {
        let of = |number| Err::<(), _>(io::Error::from_raw_os_error(number)).context("cannot open it").unwrap_err();
        assert!(explain(of(libc::EMFILE)).to_string().contains("RLIMIT_NOFILE"));
        assert!(!format!("{:#}", explain(of(libc::ENFILE))).contains("RLIMIT_NOFILE"));
        assert_eq!(reason(&of(libc::EACCES)), None);
    }
}
