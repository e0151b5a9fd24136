//! The kernel's functions of syscalls: `__x64_sys_openat` is that of openat.
//!
//! The kernel's table of 32-bit calls is not readable, and its functions often have other names than the calls
//! (arch/x86/entry/syscalls/syscall_32.tbl). All functions are therefore returned that may be that of a call. Who
//! attaches a program to them has it check the number of the call.

use crate::event::Abi;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io;

/// What precedes the names of functions of 32-bit calls, and what follows them, where they differ from the calls'.
const I386_BEFORE: [&str; 5] = ["", "new", "old", "old_", "ia32_"];
const I386_AFTER: [&str; 5] = ["", "16", "32", "64", "_time32"];
/// What 32-bit calls have before or behind the names of their functions.
const I386_WITHOUT_BEFORE: [&str; 4] = ["_new", "_", "old", "u"];
const I386_WITHOUT_AFTER: [&str; 3] = ["_time64", "32", "64"];
/// The only 32-bit call whose function has an entirely different name.
const I386_OTHER: (&str, &str) = ("mmap2", "mmap_pgoff");

/// The functions of this kernel, by their names.
#[derive(Debug, Default)]
pub struct SyscallFunctions(FxHashMap<String, u64>);

impl SyscallFunctions {
    /// Reads the functions that may belong to syscalls of these ABIs, names and names of events.
    ///
    /// # Errors
    /// /proc/kallsyms cannot be read, or the kernel hides its addresses from this user (kptr_restrict).
    pub fn read<'a>(calls: impl Iterator<Item = (Abi, &'a str, &'a str)>) -> io::Result<SyscallFunctions> {
        let wanted = calls.flat_map(|(abi, name, event)| names(abi, name, event)).collect();
        let functions = parse(&std::fs::read_to_string("/proc/kallsyms")?, &wanted);
        match functions.is_empty() || functions.values().any(|address| *address != 0) {
            true => Ok(SyscallFunctions(functions)),
            false => Err(io::Error::other("the kernel hides its addresses (/proc/sys/kernel/kptr_restrict)")),
        }
    }

    /// Returns the addresses of the functions that may be that of a syscall.
    pub fn of(&self, abi: Abi, name: &str, event: &str) -> Vec<u64> {
        names(abi, name, event).iter().filter_map(|name| self.0.get(name)).copied().collect()
    }
}

/// Returns the names that the function of a syscall may have.
fn names(abi: Abi, name: &str, event: &str) -> Vec<String> {
    let plain = |prefix: &str| [name, event].map(|name| format!("{prefix}{name}")).to_vec();
    match abi {
        Abi::X86_64 => plain("__x64_sys_"),
        Abi::Aarch64 => plain("__arm64_sys_"),
        Abi::X32 => [plain("__x64_sys_"), plain("__x64_compat_sys_")].concat(),
        Abi::I386 => {
            let shorter = I386_WITHOUT_BEFORE.iter().filter_map(|before| name.strip_prefix(before));
            let shorter = shorter.chain(I386_WITHOUT_AFTER.iter().filter_map(|after| name.strip_suffix(after)));
            let longer = I386_BEFORE.iter().flat_map(|before| I386_AFTER.map(|after| format!("{before}{name}{after}")));
            let other = (name == I386_OTHER.0).then_some(I386_OTHER.1);
            let stems = longer.chain([event].into_iter().chain(shorter).chain(other).map(str::to_owned));
            stems.flat_map(|stem| [format!("__ia32_sys_{stem}"), format!("__ia32_compat_sys_{stem}")]).collect()
        }
    }
}

/// Returns the addresses of these functions. The function of a syscall that the kernel was built without is a weak
/// symbol (COND_SYSCALL in arch/x86/include/asm/syscall_wrapper.h), and is not among them.
fn parse(kallsyms: &str, wanted: &FxHashSet<String>) -> FxHashMap<String, u64> {
    let symbol = |line: &str| {
        let (address, rest) = line.split_once(' ')?;
        let name = rest.strip_prefix("T ").or_else(|| rest.strip_prefix("t "))?;
        wanted.contains(name).then_some((name.to_owned(), u64::from_str_radix(address, 16).ok()?))
    };
    kallsyms.lines().filter(|line| line.contains(" __")).filter_map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_the_names_of_calls() {
        let text = "ffffffff81000010 T __x64_sys_newuname\nffffffff81000020 W __x64_sys_kexec_load\nffffffff81000030 t __ia32_sys_getuid16\n\
                    ffffffff81000040 T __ia32_sys_getuid\nffffffff81000050 d __x64_sys_sync\nffffffff81000060 T __x64_sys_sync_file_range\n";
        let calls = [(Abi::X86_64, "uname", "newuname"), (Abi::X86_64, "kexec_load", "kexec_load"), (Abi::X86_64, "sync", "sync")];
        let calls = [&calls[..], &[(Abi::I386, "getuid", "getuid"), (Abi::I386, "getuid32", "getuid32")]].concat();
        let wanted = calls.iter().flat_map(|(abi, name, event)| names(*abi, name, event)).collect();
        let functions = SyscallFunctions(parse(text, &wanted));
        let of: Vec<Vec<u64>> = calls.iter().map(|(abi, name, event)| functions.of(*abi, name, event)).collect();
        let at = |low: u64| 0xffff_ffff_8100_0000 | low;
        assert_eq!(of[..3], [vec![at(0x10)], vec![], vec![]], "weak symbols and data are no functions of calls");
        assert!(of[3].contains(&at(0x30)) && of[4].contains(&at(0x40)), "{of:x?}");
    }

    /// The function of each kind of name in the kernel's table of 32-bit calls.
    #[test]
    fn functions_of_32_bit_calls_have_other_names() {
        for (name, function) in [
            ("openat", "compat_sys_openat"),
            ("getsid", "sys_getsid"),
            ("chown", "sys_chown16"),
            ("chown32", "sys_chown"),
            ("stat", "compat_sys_newstat"),
            ("oldstat", "sys_stat"),
            ("umount", "sys_oldumount"),
            ("oldolduname", "sys_olduname"),
            ("fcntl", "compat_sys_fcntl64"),
            ("readdir", "compat_sys_old_readdir"),
            ("mmap", "compat_sys_ia32_mmap"),
            ("mmap2", "sys_mmap_pgoff"),
            ("_llseek", "sys_llseek"),
            ("_newselect", "compat_sys_select"),
            ("ugetrlimit", "compat_sys_getrlimit"),
            ("nanosleep", "sys_nanosleep_time32"),
            ("clock_gettime", "sys_clock_gettime32"),
            ("clock_gettime64", "sys_clock_gettime"),
            ("futex_time64", "sys_futex"),
            ("pread64", "sys_ia32_pread64"),
            ("stat64", "compat_sys_ia32_stat64"),
        ] {
            assert!(names(Abi::I386, name, name).contains(&format!("__ia32_{function}")), "{name}");
        }
    }
}
