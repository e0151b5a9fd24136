//! Tests that run rtrace as a user does, on programs whose calls are known. `tests/README.md` says what these tests
//! need and what they may assert.

mod arguments;
mod asked_for;
mod attach;
mod call_events;
mod cgroup;
mod churn;
#[cfg(all(feature = "bpf", target_arch = "x86_64"))]
mod compat;
mod compiled;
mod completion;
mod confined;
mod conservation;
mod contained;
mod containers;
mod copies;
mod descriptors;
mod diff;
mod diff_traces;
mod edge_values;
mod edges;
mod ending;
mod errors;
mod filters;
#[cfg(feature = "bpf")]
mod filters_inside;
mod gdb;
mod habits;
mod handed_down;
mod in_flight;
mod inject;
mod injectors;
mod interrupted;
#[cfg(feature = "bpf")]
mod ioctls;
mod json;
mod json_commands;
#[path = "../recordings/json_events.rs"]
mod json_events;
mod json_lines;
mod kernel_documents;
mod kernel_names;
mod kernel_objects;
mod kernel_probes;
mod killed;
#[cfg(feature = "bpf")]
mod lent;
#[cfg(feature = "bpf")]
mod lent_recordings;
mod line;
mod lossless;
mod machine;
#[cfg(feature = "bpf")]
mod memory;
mod messages;
mod names;
mod namespaces;
mod needs;
mod notices;
#[cfg(feature = "bpf")]
mod objects;
mod output;
#[cfg(feature = "bpf")]
mod payload;
mod pending;
mod perf_reads_recordings;
#[path = "../recordings/perf_script.rs"]
mod perf_script;
mod probe_command;
mod probes;
mod probes_attach;
mod probes_by_device;
mod probes_events;
mod probes_lines;
mod probes_programs;
mod random;
mod readings;
mod recipes;
mod recordings;
mod recordings_of_perf;
mod report;
mod rights;
mod schema;
mod selection;
mod signals;
#[cfg(feature = "bpf")]
mod snapshots;
mod socket_messages;
#[cfg(feature = "bpf")]
mod sockopts;
mod spans;
mod stacks;
mod strace;
mod strace_tasks;
#[cfg(feature = "bpf")]
mod structs;
mod summary;
mod summary_of_cgroups;
mod system_wide;
mod trace;
mod unanswering;
mod unmounted;
mod uring;
mod zeros;
#[cfg(feature = "bpf")]
mod zoo;
