//! Compares the rows of syscalls with the running kernel's format files.

use rtrace::tables::{Abi, ArgumentKind, SYSCALLS, Width};
use std::fs;
use std::path::Path;

const EVENTS: &str = "/sys/kernel/tracing/events/syscalls";

#[test]
fn rows_name_the_arguments_as_the_kernel_does() {
    if let Err(error) = fs::read_dir(EVENTS) {
        eprintln!("SKIPPED: rows are not compared with the kernel: {EVENTS}: {error} (needs root, tracefs and CONFIG_FTRACE_SYSCALLS)");
        return;
    }
    let mut wrong = Vec::new();
    let mut without = Vec::new();
    let mut seen = 0;
    for row in SYSCALLS {
        let Ok(format) = fs::read_to_string(Path::new(EVENTS).join(format!("sys_enter_{}", row.event)).join("format")) else {
            without.push(row.name);
            continue;
        };
        seen += 1;
        let kernel = argument_names(&format);
        // What sigreturn(2) reads is on the stack, and no argument.
        let args = if row.name == "rt_sigreturn" { &[] } else { row.args };
        let of_row: Vec<&str> = args.iter().map(|arg| arg.name).collect();
        if kernel != of_row {
            wrong.push(format!("{}: the kernel has {kernel:?}, but the row has {of_row:?}", row.name));
        }
    }
    eprintln!("SKIPPED: this kernel has no events for {}", without.join(" "));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 300, "this kernel has events for only {seen} rows");
}

/// Arguments of which the kernel uses fewer bits than their type has: the bits above are cut off where it reads them.
const NARROWER: [(&str, &str); 3] = [
    // sanitize_mpol_flags() in mm/mempolicy.c has an int.
    ("mbind", "mode"),
    // S_IRWXUGO
    ("umask", "mask"),
    // lower_32_bits() in kernel/fork.c
    ("clone", "clone_flags"),
];

#[test]
fn arguments_are_as_wide_as_their_types_in_the_kernel() {
    let abi = if cfg!(target_arch = "aarch64") { Abi::Aarch64 } else { Abi::X86_64 };
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for row in SYSCALLS {
        let Ok(format) = fs::read_to_string(Path::new(EVENTS).join(format!("sys_enter_{}", row.event)).join("format")) else { continue };
        for (at, arg) in row.args.iter().enumerate() {
            let declared = declarations(&format).find_map(|field| field.strip_suffix(arg.name)?.strip_suffix(' '));
            let (Some(kernel), Some(word)) = (declared.and_then(bits), row.signature().word(at, abi)) else { continue };
            let own = match word.width {
                Width::Unsigned16 => 16,
                Width::Signed32 | Width::Unsigned32 => 32,
                Width::Signed64 | Width::Unsigned64 | Width::Split => 64,
            };
            // Descriptors and tasks are looked up by an int, and functions decode what they need of a number.
            let is_looked_up = matches!(arg.kind, ArgumentKind::Fd | ArgumentKind::Pid | ArgumentKind::Custom(..));
            compared += 1;
            if own != kernel && !is_looked_up && !NARROWER.contains(&(row.name, arg.name)) {
                wrong.push(format!("{}, {}: {own} bits, but the kernel's type is {}", row.name, arg.name, declared.unwrap_or_default()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 300 || fs::read_dir(EVENTS).is_err(), "only {compared} arguments have events");
}

/// Returns the number of bits of a C type; `None` for pointers and unknown types.
fn bits(of: &str) -> Option<u32> {
    match of.strip_prefix("const ").unwrap_or(of) {
        "umode_t" => Some(16),
        "int" | "unsigned int" | "unsigned" | "u32" | "__u32" | "s32" | "__s32" | "pid_t" | "uid_t" | "gid_t" | "qid_t" | "timer_t" => {
            Some(32)
        }
        "clockid_t" | "key_serial_t" | "mqd_t" | "key_t" | "rwf_t" => Some(32),
        "long" | "unsigned long" | "size_t" | "loff_t" | "off_t" | "aio_context_t" | "u64" | "__u64" => Some(64),
        _ => None,
    }
}

/// Returns the names of the fields after `__syscall_nr`, without the `__data_loc` strings that newer kernels append.
fn argument_names(format: &str) -> Vec<&str> {
    let fields = declarations(format).filter(|field| !field.contains("__data_loc"));
    let names = fields.filter_map(|field| field.rsplit([' ', '*']).next());
    names.skip_while(|name| *name != "__syscall_nr").skip(1).collect()
}

/// Returns the declarations of the fields.
fn declarations(format: &str) -> impl Iterator<Item = &str> {
    format.lines().filter_map(|line| line.trim().strip_prefix("field:")?.split(';').next())
}

#[test]
fn argument_names_are_read_from_format_files() {
    let format = "name: sys_enter_x\nformat:\n\tfield:unsigned short common_type;\toffset:0;\n\n\tfield:int __syscall_nr;\toffset:8;\n\
                  \tfield:int dfd;\toffset:16;\n\tfield:const char * filename;\toffset:24;\n\tfield:__data_loc char[] __filename_val;\toffset:48;\n";
    assert_eq!(argument_names(format), ["dfd", "filename"]);
}
