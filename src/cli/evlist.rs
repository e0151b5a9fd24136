//! `rtrace evlist`: prints the events of a recording, as `perf evlist` does.

use super::{ExitCode, stdout};
use crate::kernel::format::Format;
use crate::recording::{EventAttributes, Reader, attributes};
use crate::request::EventsOf;
use rustc_hash::FxHashMap;
use std::path::Path;

/// `PERF_TYPE_*`
const TYPES: [&str; 6] = ["HARDWARE", "SOFTWARE", "TRACEPOINT", "HW_CACHE", "RAW", "BREAKPOINT"];

/// `PERF_COUNT_SW_*`
const SOFTWARE: [&str; 12] = [
    "CPU_CLOCK",
    "TASK_CLOCK",
    "PAGE_FAULTS",
    "CONTEXT_SWITCHES",
    "CPU_MIGRATIONS",
    "PAGE_FAULTS_MIN",
    "PAGE_FAULTS_MAJ",
    "ALIGNMENT_FAULTS",
    "EMULATION_FAULTS",
    "DUMMY",
    "BPF_OUTPUT",
    "CGROUP_SWITCHES",
];

/// `PERF_SAMPLE_*`, from bit 0 on.
const SAMPLE: [&str; 25] = [
    "IP",
    "TID",
    "TIME",
    "ADDR",
    "READ",
    "CALLCHAIN",
    "ID",
    "CPU",
    "PERIOD",
    "STREAM_ID",
    "RAW",
    "BRANCH_STACK",
    "REGS_USER",
    "STACK_USER",
    "WEIGHT",
    "DATA_SRC",
    "IDENTIFIER",
    "TRANSACTION",
    "REGS_INTR",
    "PHYS_ADDR",
    "AUX",
    "CGROUP",
    "DATA_PAGE_SIZE",
    "CODE_PAGE_SIZE",
    "WEIGHT_STRUCT",
];

/// `PERF_FORMAT_*`, from bit 0 on.
const READ: [&str; 5] = ["TOTAL_TIME_ENABLED", "TOTAL_TIME_RUNNING", "ID", "GROUP", "LOST"];

/// The fields of one or more bits behind `read_format`, in the order of the struct, with their numbers of bits.
const FLAGS: [(&str, u32); 38] = [
    ("disabled", 1),
    ("inherit", 1),
    ("pinned", 1),
    ("exclusive", 1),
    ("exclude_user", 1),
    ("exclude_kernel", 1),
    ("exclude_hv", 1),
    ("exclude_idle", 1),
    ("mmap", 1),
    ("comm", 1),
    ("freq", 1),
    ("inherit_stat", 1),
    ("enable_on_exec", 1),
    ("task", 1),
    ("watermark", 1),
    ("precise_ip", 2),
    ("mmap_data", 1),
    ("sample_id_all", 1),
    ("exclude_host", 1),
    ("exclude_guest", 1),
    ("exclude_callchain_kernel", 1),
    ("exclude_callchain_user", 1),
    ("mmap2", 1),
    ("comm_exec", 1),
    ("use_clockid", 1),
    ("context_switch", 1),
    ("write_backward", 1),
    ("namespaces", 1),
    ("ksymbol", 1),
    ("bpf_event", 1),
    ("aux_output", 1),
    ("cgroup", 1),
    ("text_poke", 1),
    ("build_id", 1),
    ("inherit_thread", 1),
    ("remove_on_exec", 1),
    ("sigtrap", 1),
    ("defer_callchain", 1),
];

/// The offsets in the struct of the numbers that follow the flags, with their sizes in bytes.
const NUMBERS: [(&str, usize, usize); 7] = [
    ("branch_sample_type", 72, 8),
    ("sample_regs_user", 80, 8),
    ("sample_stack_user", 88, 4),
    ("clockid", 92, 4),
    ("sample_regs_intr", 96, 8),
    ("aux_watermark", 104, 4),
    ("sample_max_stack", 108, 2),
];

/// Prints the events of a recording.
///
/// # Errors
/// The recording cannot be read, or stdout cannot be written.
pub fn print(path: &Path, what: EventsOf) -> anyhow::Result<ExitCode> {
    let events = attributes(path)?;
    let formats: FxHashMap<String, Format> = match what.fields {
        true => Reader::open(path)?
            .begin()
            .session
            .events
            .events
            .iter()
            .filter_map(|spec| Some((spec.name.clone(), spec.format.clone()?)))
            .collect(),
        false => FxHashMap::default(),
    };
    let line = |event: &EventAttributes| {
        let mut line = if event.name.is_empty() { "unknown".to_owned() } else { event.name.clone() };
        if what.attributes {
            line.push_str(&format!(": {}", described(event)));
        }
        if what.fields {
            line.push_str(&match formats.get(&event.name) {
                Some(format) => format!(": trace_fields: {}", fields(format)),
                None => ": (not a tracepoint)".to_owned(),
            });
        }
        line + "\n"
    };
    stdout::print(events.iter().map(line).collect::<String>().as_bytes())
}

fn fields(format: &Format) -> String {
    format.own_fields().map(|field| field.name.as_str()).collect::<Vec<_>>().join(",")
}

/// Returns the attributes that are not 0, in the order of the struct.
fn described(event: &EventAttributes) -> String {
    let (kind, config) = (event.half(0), event.word(8));
    let name_of_type = TYPES.get(kind as usize).map_or(String::new(), |name| format!(" (PERF_TYPE_{name})"));
    let name_of_config = match kind {
        1 => SOFTWARE.get(config as usize).map_or(String::new(), |name| format!(" (PERF_COUNT_SW_{name})")),
        2 => format!(" ({})", event.name),
        _ => String::new(),
    };
    let mut parts = vec![
        format!("type: {kind}{name_of_type}"),
        format!("size: {}", event.half(4)),
        format!("config: {config:#x}{name_of_config}"),
        format!("{{ sample_period, sample_freq }}: {}", event.word(16)),
        format!("sample_type: {}", bits(event.word(24), &SAMPLE)),
    ];
    if event.word(32) != 0 {
        parts.push(format!("read_format: {}", bits(event.word(32), &READ)));
    }
    let mut flags = event.word(40);
    for (name, width) in FLAGS {
        let value = flags & ((1 << width) - 1);
        if value != 0 {
            parts.push(format!("{name}: {value}"));
        }
        flags >>= width;
    }
    if event.half(48) != 0 {
        parts.push(format!("{{ wakeup_events, wakeup_watermark }}: {}", event.half(48)));
    }
    for (name, at, size) in NUMBERS {
        let value = match size {
            8 => event.word(at),
            4 => u64::from(event.half(at)),
            _ => u64::from(event.half(at) & 0xffff),
        };
        match (name, value) {
            (_, 0) => {}
            ("sample_regs_user" | "sample_regs_intr", value) => parts.push(format!("{name}: {value:#x}")),
            (_, value) => parts.push(format!("{name}: {value}")),
        }
    }
    parts.join(", ")
}

/// Returns the names of bits; those without a name are a number.
fn bits(value: u64, names: &[&str]) -> String {
    let named = (0..64).filter(|bit| value >> bit & 1 == 1).map(|bit| match names.get(bit) {
        Some(name) => (*name).to_owned(),
        None => format!("{:#x}", 1u64 << bit),
    });
    named.collect::<Vec<_>>().join("|")
}
