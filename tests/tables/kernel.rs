//! Compares the rows of syscalls with the running kernel's format files.

use rtrace::tables::SYSCALLS;
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
        let of_row: Vec<&str> = row.args.iter().map(|arg| arg.name).collect();
        if kernel != of_row {
            wrong.push(format!("{}: the kernel has {kernel:?}, but the row has {of_row:?}", row.name));
        }
    }
    eprintln!("SKIPPED: this kernel has no events for {}", without.join(" "));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 300, "this kernel has events for only {seen} rows");
}

/// Returns the names of the fields after `__syscall_nr`, without the `__data_loc` strings that newer kernels append.
fn argument_names(format: &str) -> Vec<&str> {
    let declarations = format.lines().filter_map(|line| line.trim().strip_prefix("field:")?.split(';').next());
    let fields = declarations.filter(|field| !field.contains("__data_loc"));
    let names = fields.filter_map(|field| field.rsplit([' ', '*']).next());
    names.skip_while(|name| *name != "__syscall_nr").skip(1).collect()
}

#[test]
fn argument_names_are_read_from_format_files() {
    let format = "name: sys_enter_x\nformat:\n\tfield:unsigned short common_type;\toffset:0;\n\n\tfield:int __syscall_nr;\toffset:8;\n\
                  \tfield:int dfd;\toffset:16;\n\tfield:const char * filename;\toffset:24;\n\tfield:__data_loc char[] __filename_val;\toffset:48;\n";
    assert_eq!(argument_names(format), ["dfd", "filename"]);
}
