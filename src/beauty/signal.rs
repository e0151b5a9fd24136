//! Names of signals and of their codes.
//!
//! All four ABIs have the same numbers (`asm-generic/signal.h`; the headers of x86 and arm64 agree). Real-time signals
//! count from the kernel's first, 32, because the SIGRTMIN of a C library excludes the signals that it uses itself.

use crate::text::number;

/// Writes a signal's name (`SIGCHLD`, `SIGRT_2` for 34), or the number if it is not a signal.
pub fn write_name(out: &mut Vec<u8>, signal: i32) {
    match (name(signal), signal) {
        (Some(name), _) => out.extend_from_slice(name.as_bytes()),
        (None, 32..=64) => {
            out.extend_from_slice(b"SIGRT_");
            number::int(out, i64::from(signal - 32));
        }
        _ => number::int(out, i64::from(signal)),
    }
}

/// Returns the name of a standard signal; `None` for real-time signals and other numbers.
pub fn name(signal: i32) -> Option<&'static str> {
    SIGNALS.get(usize::try_from(signal).ok()?.checked_sub(1)?).copied()
}

/// Returns the number of a signal's name, with or without `SIG`.
pub fn number(name: &str) -> Option<i32> {
    let short = name.strip_prefix("SIG").unwrap_or(name);
    if let Some(index) = short.strip_prefix("RT_") {
        return index.parse().ok().map(|index: i32| 32 + index).filter(|signal| (32..=64).contains(signal));
    }
    SIGNALS.iter().position(|known| &known[3..] == short).map(|index| index as i32 + 1)
}

/// Returns the names of the standard signals.
pub fn names() -> impl Iterator<Item = &'static str> {
    SIGNALS.into_iter()
}

/// Returns the name of a signal's `si_code` (uapi/asm-generic/siginfo.h).
pub fn code_name(signal: i32, code: i32) -> Option<&'static str> {
    let of_signal: &[&str] = match signal {
        4 => &["ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"],
        5 => &["TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"],
        7 => &["BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"],
        8 => &["FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"],
        11 => SEGV,
        17 => &["CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"],
        29 => &["POLL_IN", "POLL_OUT", "POLL_MSG", "POLL_ERR", "POLL_PRI", "POLL_HUP"],
        31 => &["SYS_SECCOMP", "SYS_USER_DISPATCH"],
        _ => &[],
    };
    match code {
        1.. if code != 0x80 => of_signal.get(code as usize - 1).copied(),
        _ => GENERAL.iter().find(|(known, _)| *known == code).map(|(_, name)| *name),
    }
}

static SEGV: &[&str] = &[
    "SEGV_MAPERR",
    "SEGV_ACCERR",
    "SEGV_BNDERR",
    "SEGV_PKUERR",
    "SEGV_ACCADI",
    "SEGV_ADIDERR",
    "SEGV_ADIPERR",
    "SEGV_MTEAERR",
    "SEGV_MTESERR",
    "SEGV_CPERR",
];

static GENERAL: &[(i32, &str)] = &[
    (0, "SI_USER"),
    (0x80, "SI_KERNEL"),
    (-1, "SI_QUEUE"),
    (-2, "SI_TIMER"),
    (-3, "SI_MESGQ"),
    (-4, "SI_ASYNCIO"),
    (-5, "SI_SIGIO"),
    (-6, "SI_TKILL"),
    (-7, "SI_DETHREAD"),
    (-60, "SI_ASYNCNL"),
];

static SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_numbers_agree_with_the_c_library() {
        for (signal, expected) in [
            (libc::SIGHUP, "SIGHUP"),
            (libc::SIGBUS, "SIGBUS"),
            (libc::SIGCHLD, "SIGCHLD"),
            (libc::SIGIO, "SIGIO"),
            (libc::SIGSYS, "SIGSYS"),
        ] {
            assert_eq!(name(signal), Some(expected));
            assert_eq!(number(expected), Some(signal));
            assert_eq!(number(&expected[3..]), Some(signal));
        }
        assert_eq!([name(0), name(32), name(-1)], [None; 3]);
        assert_eq!([number("RT_2"), number("SIGRT_32"), number("SIGRT_33"), number("SIG")], [Some(34), Some(64), None, None]);
    }

    #[test]
    fn every_number_is_written_as_a_name_or_a_number() {
        let text = |signal| {
            let mut out = Vec::new();
            write_name(&mut out, signal);
            String::from_utf8(out).unwrap()
        };
        assert_eq!([9, 32, 34, 64, 65, 0].map(text), ["SIGKILL", "SIGRT_0", "SIGRT_2", "SIGRT_32", "65", "0"]);
    }

    #[test]
    fn the_name_of_a_code_depends_on_the_signal() {
        assert_eq!(code_name(libc::SIGCHLD, libc::CLD_EXITED), Some("CLD_EXITED"));
        assert_eq!(code_name(libc::SIGSEGV, 1), Some("SEGV_MAPERR"));
        assert_eq!(code_name(libc::SIGSEGV, libc::SI_KERNEL), Some("SI_KERNEL"));
        assert_eq!(code_name(libc::SIGTERM, libc::SI_USER), Some("SI_USER"));
        assert_eq!(code_name(libc::SIGTERM, libc::SI_TKILL), Some("SI_TKILL"));
        assert_eq!([code_name(libc::SIGTERM, 1), code_name(libc::SIGCHLD, 99), code_name(0, i32::MIN)], [None; 3]);
    }
}
