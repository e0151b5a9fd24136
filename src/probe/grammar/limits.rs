//! The kernel's limits for dynamic events.

/// Maximum length of the name of a group or event, in bytes (MAX_EVENT_NAME_LEN in kernel/trace/trace.h, less the final
/// NUL).
pub const NAME_BYTES_MAX: usize = 63;

/// Maximum length of an argument's name, in bytes (MAX_ARG_NAME_LEN in kernel/trace/trace_probe.h).
pub const ARG_NAME_BYTES_MAX: usize = 32;

/// Maximum number of arguments of a probe (MAX_TRACE_ARGS in kernel/trace/trace_probe.h).
pub const ARGS_MAX: usize = 128;

/// Maximum number of elements of an array (MAX_ARRAY_LEN in kernel/trace/trace_probe.h).
pub const ELEMENTS_MAX: u64 = 64;

/// Maximum number of calls that a return probe follows at a time (KRETPROBE_MAXACTIVE_MAX in
/// kernel/trace/trace_kprobe.c).
pub const MAXACTIVE_MAX: u64 = 4096;
