//! How much the kernel takes.

/// Bytes of the name of a group or event (MAX_EVENT_NAME_LEN in kernel/trace/trace.h, less the final NUL).
pub const NAME_BYTES_MAX: usize = 63;

/// Bytes of an argument's name (MAX_ARG_NAME_LEN in kernel/trace/trace_probe.h).
pub const ARG_NAME_BYTES_MAX: usize = 32;

/// Arguments of a probe (MAX_TRACE_ARGS in kernel/trace/trace_probe.h).
pub const ARGS_MAX: usize = 128;

/// Elements of an array (MAX_ARRAY_LEN in kernel/trace/trace_probe.h).
pub const ELEMENTS_MAX: u64 = 64;

/// Calls that a return probe follows at a time (KRETPROBE_MAXACTIVE_MAX in kernel/trace/trace_kprobe.c).
pub const MAXACTIVE_MAX: u64 = 4096;
