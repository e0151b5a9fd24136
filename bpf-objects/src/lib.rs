//! The programs of the BPF engine (`src/bpf/rtrace.bpf.c` of rtrace) as ELF objects.
//!
//! They are in a separate crate, so that cargo runs clang only when the programs change.

/// For kernels with `bpf_rdonly_cast` (Linux 6.2 and later): the programs read the kernel's structs by plain loads.
pub static PLAIN_LOADS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rtrace.bpf.o"));

/// For older kernels: the programs read the kernel's structs by a BPF helper.
pub static BY_HELPER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rtrace-by-helper.bpf.o"));
