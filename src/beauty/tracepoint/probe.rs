//! Decodes what only records of probes have: strings that could not be read, return addresses, and arguments of
//! syscalls under their names.

use super::{FieldDecoder, by_row, row};
use crate::beauty::row::Syscall;
use crate::kernel::format::{FieldPlace, Format, FormatField};

/// The text that some kernels write for a string that they could not read.
pub const UNREAD: &[u8] = b"(fault)";

/// Returns whether the event is a probe. Records of most probes begin with the address of the probe (FIELD_STRING_IP
/// and others in kernel/trace/trace_probe.h). Event probes have no such field; their print format begins with the
/// arguments (PROBE_PRINT_EVENT in kernel/trace/trace_probe.c).
pub fn is_probe(format: &Format) -> bool {
    let has_address = ["__probe_ip", "__probe_func", "__probe_ret_ip", "__probe_type"].iter().any(|name| format.field(name).is_some());
    let arguments = || format.own_fields().all(|field| format.print.contains(&format!(" {}=", field.name)));
    has_address || format.print.starts_with("\" ") && arguments()
}

/// Returns the fields with the addresses of the function and of the caller that it returned to.
pub fn returns(format: &Format) -> Option<(FormatField, FormatField)> {
    Some((format.field("__probe_func")?.clone(), format.field("__probe_ret_ip")?.clone()))
}

/// Returns the row of the syscall that a function implements, in the kernel (`__x64_sys_openat`, `ksys_read`,
/// `do_sys_openat2`) or in the C library (`openat64`, `__read`).
pub fn syscall(function: &str) -> Option<&'static Syscall> {
    const BEGINNINGS: [&str; 11] =
        ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_", "do_sys_", "__sys_", "__libc_", "__", ""];
    let plain = BEGINNINGS.iter().find_map(|beginning| function.strip_prefix(beginning))?;
    row(plain).or_else(|| row(plain.trim_end_matches(|c: char| c.is_ascii_digit())))
}

/// Returns the decoder of a number that has the name of an argument of the syscall.
pub fn argument(call: Option<&'static Syscall>, field: &FormatField) -> Option<FieldDecoder> {
    let is_number = field.array.is_none() && field.place == FieldPlace::Here && matches!(field.size, 1 | 2 | 4 | 8);
    let arg = call?.args.iter().find(|arg| is_number && arg.name == field.name)?;
    match by_row(arg, 0)? {
        // The probe's definition determines width and radix of plain numbers. The functions of `custom` may need the
        // other arguments, which are not in the record.
        FieldDecoder::Number(_) | FieldDecoder::Custom(..) => None,
        decoder => Some(decoder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_distinguished_from_other_events() {
        let format = |fields: &str, print: &str| Format::parse(&format!("name: x\nID: 1\n{fields}\nprint fmt: {print}\n")).unwrap();
        let own = "\tfield:u64 nr;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:__data_loc char[] filename;\toffset:16;\tsize:4;\tsigned:0;";
        let address = "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;";
        let args = "nr=0x%Lx filename=\\\"%s\\\"\", REC->nr, __get_str(filename)";
        assert!(is_probe(&format(address, "\"(%lx)\", REC->__probe_ip")));
        assert!(is_probe(&format(own, &format!("\" {args}"))));
        assert!(!is_probe(&format(own, &format!("\"{args}"))));
        assert!(!is_probe(&format(own, "\" nr %lld of %s\", REC->nr, __get_str(filename)")));
    }

    #[test]
    fn syscalls_are_found_by_the_names_of_their_functions() {
        let name = |function: &str| syscall(function).map(|row| row.name);
        for function in ["__x64_sys_openat", "do_sys_openat2", "openat64", "openat", "__openat"] {
            assert_eq!(name(function), Some(if function.ends_with('2') { "openat2" } else { "openat" }), "{function}");
        }
        assert_eq!((name("ksys_read"), name("__libc_read")), (Some("read"), Some("read")));
        assert_eq!((name("vfs_read"), name("handle"), name("")), (None, None, None));
    }
}
