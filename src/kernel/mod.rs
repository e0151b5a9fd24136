//! The running kernel and machine: tracefs and its events, BTF, privileges, mounts, cgroups, and the tasks in /proc.

pub mod btf;
pub mod cgroups;
pub mod constant;
pub mod containers;
pub mod ctype;
pub mod descriptors;
pub mod elf;
pub mod features;
pub mod fetched;
pub mod field;
pub mod format;
pub mod lockdown;
pub mod machine;
pub mod mounts;
pub mod objects;
pub mod output_readers;
pub mod print_fmt;
pub mod privileges;
pub mod probe_device;
pub mod procfs;
pub mod refused;
pub mod remote_files;
pub mod syscall_event;
pub mod syscall_functions;
pub mod tracefs;
