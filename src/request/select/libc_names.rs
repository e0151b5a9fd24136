//! Functions of the C library whose syscalls have other names.
//!
//! The syscalls are those of glibc 2.33 and later on 64-bit machines. Only thin wrappers are listed; `malloc`, for
//! example, has no syscall of its own. The names are here because rows describe the kernel, and not what a C library
//! calls.

/// A function of the C library and the syscalls that it uses.
#[derive(Debug, PartialEq, Eq)]
pub struct LibcName {
    /// The name of the function, without parentheses.
    pub function: &'static str,
    /// The names of the rows of the syscalls, of which the function uses one.
    pub syscalls: &'static [&'static str],
    /// The name always selects these syscalls, even if the kernel has a syscall of the function's name (`stat`).
    /// Otherwise the name selects the kernel's syscall, and the others are only a hint when no call matched.
    pub always: bool,
}

impl LibcName {
    /// Returns a clause that names the syscalls, for a notice about the selection or about a run without matches.
    pub fn explanation(&self) -> String {
        format!("the C library's {}() uses the syscall {}", self.function, self.syscalls.join(" or "))
    }
}

/// Returns the syscalls of a function, if their names differ from its own.
pub fn libc_name(function: &str) -> Option<&'static LibcName> {
    LIBC_NAMES.iter().find(|known| known.function == function)
}

/// An entry whose name always selects these syscalls.
const fn same(function: &'static str, syscalls: &'static [&'static str]) -> LibcName {
    LibcName { function, syscalls, always: true }
}

/// An entry that is only a hint, because a syscall has the function's name.
const fn hint(function: &'static str, syscalls: &'static [&'static str]) -> LibcName {
    LibcName { function, syscalls, always: false }
}

static LIBC_NAMES: &[LibcName] = &[
    same("stat", &["newfstatat", "stat"]),
    same("lstat", &["newfstatat", "lstat"]),
    same("fstat", &["fstat", "newfstatat"]),
    same("fstatat", &["newfstatat"]),
    same("pread", &["pread64"]),
    same("pwrite", &["pwrite64"]),
    same("umount", &["umount2"]),
    same("prlimit", &["prlimit64"]),
    same("pselect", &["pselect6"]),
    same("statvfs", &["statfs"]),
    same("fstatvfs", &["fstatfs"]),
    same("posix_fadvise", &["fadvise64"]),
    same("posix_fallocate", &["fallocate"]),
    same("mkfifo", &["mknodat"]),
    same("futimens", &["utimensat"]),
    same("readdir", &["getdents64"]),
    same("waitpid", &["wait4"]),
    same("wait", &["wait4"]),
    same("wait3", &["wait4"]),
    same("_exit", &["exit_group"]),
    same("posix_spawn", &["clone3", "clone", "vfork"]),
    same("pthread_create", &["clone3", "clone"]),
    same("killpg", &["kill"]),
    same("raise", &["tgkill"]),
    same("nice", &["setpriority"]),
    same("sleep", &["clock_nanosleep"]),
    same("usleep", &["clock_nanosleep"]),
    same("send", &["sendto"]),
    same("recv", &["recvfrom"]),
    same("sigaction", &["rt_sigaction"]),
    same("signal", &["rt_sigaction"]),
    same("sigprocmask", &["rt_sigprocmask"]),
    same("pthread_sigmask", &["rt_sigprocmask"]),
    same("sigpending", &["rt_sigpending"]),
    same("sigsuspend", &["rt_sigsuspend"]),
    same("sigwait", &["rt_sigtimedwait"]),
    same("sigwaitinfo", &["rt_sigtimedwait"]),
    same("sigtimedwait", &["rt_sigtimedwait"]),
    same("sigqueue", &["rt_sigqueueinfo"]),
    same("mq_send", &["mq_timedsend"]),
    same("mq_receive", &["mq_timedreceive"]),
    hint("open", &["openat"]),
    hint("creat", &["openat"]),
    hint("select", &["pselect6"]),
    hint("fork", &["clone"]),
    hint("vfork", &["vfork", "clone"]),
    hint("exit", &["exit_group"]),
    hint("mknod", &["mknodat"]),
    hint("utime", &["utimensat"]),
    hint("utimes", &["utimensat"]),
    hint("nanosleep", &["clock_nanosleep"]),
    hint("getrlimit", &["prlimit64"]),
    hint("setrlimit", &["prlimit64"]),
    hint("getdents", &["getdents64"]),
    hint("epoll_create", &["epoll_create1"]),
    hint("eventfd", &["eventfd2"]),
    hint("signalfd", &["signalfd4"]),
    hint("inotify_init", &["inotify_init1"]),
    hint("adjtimex", &["clock_adjtime"]),
    hint("time", &["clock_gettime"]),
    hint("gettimeofday", &["clock_gettime"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables::SYSCALLS;

    #[test]
    fn every_function_is_listed_once() {
        for name in LIBC_NAMES {
            assert!(std::ptr::eq(libc_name(name.function).unwrap(), name), "{} is listed twice", name.function);
            assert!(!name.syscalls.is_empty());
        }
    }

    #[test]
    fn every_listed_syscall_has_a_row() {
        for syscall in LIBC_NAMES.iter().flat_map(|name| name.syscalls) {
            assert!(SYSCALLS.iter().any(|row| row.name == *syscall), "there is no {syscall}");
        }
    }

    #[test]
    fn the_kernel_has_a_syscall_of_every_hints_name() {
        for name in LIBC_NAMES.iter().filter(|name| !name.always) {
            assert!(
                SYSCALLS.iter().any(|row| row.name == name.function),
                "{} is not a syscall, so it should always be mapped",
                name.function
            );
        }
    }

    #[test]
    fn the_explanation_names_function_and_syscalls() {
        assert_eq!(libc_name("open").unwrap().explanation(), "the C library's open() uses the syscall openat");
        assert_eq!(libc_name("lstat").unwrap().explanation(), "the C library's lstat() uses the syscall newfstatat or lstat");
        assert_eq!(libc_name("openat"), None);
    }
}
