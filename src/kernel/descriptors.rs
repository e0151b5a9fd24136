//! How many files rtrace may have open at once (RLIMIT_NOFILE), and what is said where that is too few.
//!
//! A trace takes some descriptors for each event and CPU, so rtrace takes what the hard limit gives before anything is decided. The command gets the limit back that rtrace was started with.

use crate::text::plain::without_numbers;
use anyhow::anyhow;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::io;

/// With fewer than this, what rtrace reads before it opens events cannot be read: types of the kernel, tracefs.
const FILES_MIN: u64 = 32;
/// Enough for most traces, to be written down as it is.
const FILES_ADVISED: u64 = 4096;

/// Takes what the hard limit gives; returns what was there before.
///
/// # Errors
/// It is too little for any trace.
pub fn raise() -> anyhow::Result<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
    match limit() {
        Some(limit) if limit < FILES_MIN => Err(anyhow!("{}", sentence(limit))),
        _ => Ok(before),
    }
}

/// Gives a process of ours the limit that rtrace was started with.
pub fn give_back(pid: i32, before: Rlimit) {
    let _ = prlimit(Pid::from_raw(pid), Resource::Nofile, before);
}

/// Names the limit, and what to do about it, where an error comes of it.
pub fn explain(error: anyhow::Error) -> anyhow::Error {
    match limit().filter(|_| is_meant(&error)) {
        Some(limit) => anyhow!("{}: {}", without_numbers(&format!("{error:#}")), sentence(limit)),
        None => error,
    }
}

/// The same as a reason, where it is one.
pub fn reason(error: &anyhow::Error) -> Option<String> {
    limit().filter(|_| is_meant(error)).map(sentence)
}

/// Some of these errors come by libraries, which hand on the kernel's word and not its number.
fn is_meant(error: &anyhow::Error) -> bool {
    let word = |number| without_numbers(&io::Error::from_raw_os_error(number).to_string());
    let text = format!("{error:#}");
    text.contains(&word(libc::EMFILE)) && !text.contains(&word(libc::ENFILE))
}

fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

fn sentence(limit: u64) -> String {
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
    fn only_the_own_limit_is_named() {
        let of = |number| Err::<(), _>(io::Error::from_raw_os_error(number)).context("cannot open it").unwrap_err();
        assert!(explain(of(libc::EMFILE)).to_string().contains("RLIMIT_NOFILE"));
        assert!(!format!("{:#}", explain(of(libc::ENFILE))).contains("RLIMIT_NOFILE"));
        assert_eq!(reason(&of(libc::EACCES)), None);
    }
}
