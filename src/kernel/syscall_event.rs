//! The fields of the records of `syscalls:sys_enter_X` and `sys_exit_X`.
//!
//! Every argument takes 8 bytes in the record, whatever its type. Kernels from 6.19 on append copies of some strings
//! and buffers that arguments point to, as fields named `__ARGUMENT_val` (kernel/trace/trace_syscalls.c). These are not
//! arguments of the call.

use super::format::{FieldPlace, Format, FormatField};
use std::fs;

/// The greatest number of bytes that the kernel copies for perf by default (the default of
/// CONFIG_TRACE_SYSCALL_BUF_SIZE_DEFAULT).
pub const COPY_LIMIT_DEFAULT: u32 = 63;

/// A field with a copy of the memory that an argument points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCopy {
    /// The argument's index (0..=5).
    pub arg: u8,
    /// The field with the copy: `__ARGUMENT_val`, whose bytes are at the end of the record.
    pub field: FormatField,
    /// Whether it is a NUL-terminated string. Otherwise another argument has the number of bytes.
    pub is_text: bool,
}

/// The contents of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied<'a> {
    /// The memory could not be read, or no bytes were to be read: the address is shown.
    Unread,
    /// The string without its NUL. The kernel replaces unprintable bytes by dots. `cut`: the string is longer.
    Text { bytes: &'a [u8], cut: bool },
    /// The number of bytes that the call specifies, up to the limit.
    Bytes(&'a [u8]),
}

impl Format {
    /// Returns the arguments of a `sys_enter_X` event, in their order.
    pub fn syscall_arguments(&self) -> impl Iterator<Item = &FormatField> {
        self.own_fields().filter(|field| !field.is_internal())
    }

    /// Returns the copies of user memory that a `sys_enter_X` event has. There are none before Linux 6.19.
    pub fn user_copies(&self) -> Vec<UserCopy> {
        let arguments: Vec<&str> = self.syscall_arguments().map(|field| field.name.as_str()).collect();
        let copy = |field: &FormatField| {
            let argument = field.copied_argument()?;
            let arg = arguments.iter().position(|name| *name == argument)?;
            let is_text = self.print.contains(&format!("__get_str({})", field.name));
            Some(UserCopy { arg: u8::try_from(arg).ok()?, field: field.clone(), is_text })
        };
        self.own_fields().filter_map(copy).collect()
    }
}

impl FormatField {
    /// Whether it is a field that the kernel's tracing adds to the event's own ones: the syscall's number, a copy of an
    /// argument's memory, a probe's address.
    pub fn is_internal(&self) -> bool {
        matches!(self.name.as_str(), "__syscall_nr" | "__probe_type" | "__probe_ip" | "__probe_func" | "__probe_ret_ip")
            || self.copied_argument().is_some()
            || self.describes_fetch()
    }

    /// Returns X of a field `__X_val`.
    fn copied_argument(&self) -> Option<&str> {
        if self.place != FieldPlace::DataLoc {
            return None;
        }
        self.name.strip_prefix("__")?.strip_suffix("_val")
    }
}

impl UserCopy {
    /// Reads the copy in a record. `limit` is the kernel's ([`copy_limit`]). Returns `None` if the record does not have
    /// it.
    pub fn read<'a>(&self, raw: &'a [u8], limit: u32) -> Option<Copied<'a>> {
        let bytes = self.field.bytes(raw)?;
        if bytes.is_empty() {
            return Some(Copied::Unread);
        }
        if !self.is_text {
            return Some(Copied::Bytes(bytes));
        }
        // A truncated string has `limit` bytes, three dots and the NUL. A complete string that ends in dots is shorter
        // than that.
        let text = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        Some(match text.strip_suffix(b"...") {
            Some(head) if head.len() >= limit as usize => Copied::Text { bytes: head, cut: true },
            _ => Copied::Text { bytes: text, cut: false },
        })
    }
}

/// Returns the greatest number of bytes that this kernel copies: the one in its configuration file, or
/// [`COPY_LIMIT_DEFAULT`] if that cannot be read.
///
/// The tracefs file `syscall_user_buf_size` does not apply: it is for tracefs's own instances, and can be written.
pub fn copy_limit(release: &str) -> u32 {
    let paths = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config"), format!("/usr/lib/modules/{release}/config")];
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).find_map(|text| configured_limit(&text)).unwrap_or(COPY_LIMIT_DEFAULT)
}

fn configured_limit(config: &str) -> Option<u32> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_TRACE_SYSCALL_BUF_SIZE_DEFAULT=")).and_then(|value| value.trim().parse().ok())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The format of sys_enter_openat in kernels from 6.19 on.
    pub const OPENAT_WITH_COPY: &str = "name: sys_enter_openat\nID: 782\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:int flags;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:umode_t mode;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] __filename_val;\toffset:48;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"dfd: 0x%08lx, filename: 0x%08lx \\\"%s\\\", flags: 0x%08lx, mode: 0x%08lx\", ((unsigned long)(REC->dfd)), \
        ((unsigned long)(REC->filename)), __get_str(__filename_val), ((unsigned long)(REC->flags)), ((unsigned long)(REC->mode))\n";

    /// Returns a record of it: AT_FDCWD, a pointer, O_CREAT, 0644 and this copy, which includes the NUL.
    pub fn openat_record(copy: &[u8]) -> Vec<u8> {
        let mut raw = vec![0u8; 52];
        raw[0..2].copy_from_slice(&782u16.to_le_bytes());
        raw[8..12].copy_from_slice(&257i32.to_le_bytes());
        for (at, register) in [(16, 0xffff_ff9c_u64), (24, 0x7ffc_1234_5678), (32, 0x80040), (40, 0o644)] {
            raw[at..at + 8].copy_from_slice(&register.to_le_bytes());
        }
        raw[48..52].copy_from_slice(&(((copy.len() as u32) << 16) | 52).to_le_bytes());
        raw.extend_from_slice(copy);
        raw.resize(raw.len().next_multiple_of(8) + 4, 0);
        raw
    }

    #[test]
    fn copies_are_not_arguments() {
        let format = Format::parse(OPENAT_WITH_COPY).unwrap();
        let names: Vec<&str> = format.syscall_arguments().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["dfd", "filename", "flags", "mode"]);
        let copies = format.user_copies();
        assert_eq!(copies.len(), 1);
        assert!(copies[0].is_text && copies[0].arg == 1);
        assert!(Format::parse(include_str!("fixtures/sys_enter_openat.format")).unwrap().user_copies().is_empty());
    }

    #[test]
    fn unreadable_empty_whole_and_cut_strings_differ() {
        let copy = &Format::parse(OPENAT_WITH_COPY).unwrap().user_copies()[0];
        let read = |text: &[u8]| match copy.read(&openat_record(text), 8).unwrap() {
            Copied::Text { bytes, cut } => Some((bytes.to_vec(), cut)),
            Copied::Unread => None,
            Copied::Bytes(_) => unreachable!("it is text"),
        };
        assert_eq!(read(b""), None);
        assert_eq!(read(b"\0"), Some((b"".to_vec(), false)));
        assert_eq!(read(b"/etc\0"), Some((b"/etc".to_vec(), false)));
        assert_eq!(read(b"/etc...\0"), Some((b"/etc...".to_vec(), false)));
        assert_eq!(read(b"/etc/pas...\0"), Some((b"/etc/pas".to_vec(), true)));
        assert_eq!(copy.read(&[0; 20], 8), None);
    }

    #[test]
    fn the_limit_is_read_from_the_kernels_configuration() {
        assert_eq!(configured_limit("CONFIG_X=y\nCONFIG_TRACE_SYSCALL_BUF_SIZE_DEFAULT=165\n"), Some(165));
        assert_eq!(configured_limit("# nothing\n"), None);
    }
}
