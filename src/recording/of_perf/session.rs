//! Makes the session of a recording of perf: its events with their formats and meanings, the machine, and whose tasks
//! they are.

use super::attrs::{self, PerfEvent};
use super::dump;
use super::normalize::{self, Normalizer};
use super::programs::Programs;
use crate::event::{Abi, EventIndex, Time};
use crate::kernel::syscall_event::COPY_LIMIT_DEFAULT;
use crate::recording::features::Features;
use crate::recording::layout::{Header, feature, kind};
use crate::recording::record_stream::{FileRecord, RecordStream, Regular};
use crate::recording::sections::sample_times;
use crate::recording::tracing_data::TracingData;
use crate::session::{EventSpec, EventTable, Role, Scope, Session, Terms};
use crate::source::frame::{self, field};
use crate::stack::registers::Architecture;
use std::collections::BTreeSet;

/// How many records are searched for the tasks that perf recorded, and for the oldest sample.
const RECORDS_MAX: usize = 1 << 18;

/// What the beginning and the end of a file say about its records.
#[derive(Debug)]
pub struct Found {
    /// How to read the records that the normalizer returns.
    pub session: Session,
    /// The options that show what the file has besides calls, as words of a command line.
    pub selection: Vec<String>,
    /// How to rewrite the records.
    pub normalizer: Normalizer,
    /// The event of records that are no samples.
    pub side_band: EventIndex,
    /// The file says which time of day its time stamps mean.
    pub has_wall_clock: bool,
    /// The times of the first and the last sample; `None` if the file does not say them.
    pub lasts: Option<(Time, Time)>,
    /// What the file says about the programs of which it has stacks; `None` if it has no stacks.
    pub programs: Option<Programs>,
}

/// Reads what a file says about its records.
///
/// # Errors
/// The file is damaged, or has nothing that rtrace can show: a clause that continues its name.
pub fn read(file: &Regular, header: &Header) -> Result<Found, String> {
    if header.data.size == 0 {
        return Err("was not completed: perf was killed before it wrote what its records mean".to_owned());
    }
    let features = Features::find(file, header);
    let perf_events = attrs::events(file, header)?;
    let formats = match features.bytes(feature::TRACING_DATA)? {
        Some(bytes) => TracingData::parse(&bytes).map_err(|why| format!("cannot be shown: its formats of tracepoints {why}"))?,
        None => TracingData::default(),
    };
    let abi = match features.text(feature::ARCH)?.as_deref() {
        Some("x86_64") | None => Abi::X86_64,
        Some("aarch64" | "arm64") => Abi::Aarch64,
        Some(arch) => return Err(format!("was recorded on {arch}, whose calls rtrace does not know (it knows x86_64 and aarch64)")),
    };
    let registers = Architecture::of(abi).layout().sample_mask;
    let (specs, indices) = specs(&perf_events, &formats, registers);
    let programs = programs(file, &features, &specs, perf_events.iter().any(|event| dump::is_unusable(event, registers)))?;
    let selection = selection(&specs)?;
    let side_band = EventIndex((specs.len() - 1) as u16);
    let ids = (0..specs.len() as u16).map(EventIndex).map(|event| (normalize::id(event), event));
    let wall_clock = features.bytes(feature::CLOCK_DATA)?.and_then(|bytes| realtime_offset(&bytes));
    let lasts = features.bytes(feature::SAMPLE_TIME)?.and_then(|bytes| sample_times(&bytes));
    let normalizer = Normalizer::new(perf_events.iter().cloned().zip(indices).collect(), side_band, registers);
    let again = Regular { file: file.file.try_clone().map_err(|error| format!("cannot be read: {error}"))?, size: file.size };
    let begin = beginning(RecordStream::new(Box::new(again), header.data), &normalizer);
    let session = Session {
        realtime_offset: wall_clock.unwrap_or(0),
        abi,
        release: features.text(feature::OSRELEASE)?.unwrap_or_default(),
        events: EventTable { ids: ids.collect(), events: specs, ..EventTable::default() },
        scope: match begin.is_of_tasks {
            _ if perf_events.iter().any(|event| event.enable_on_exec) => Scope::Command,
            true => Scope::Tasks,
            false => Scope::System,
        },
        started: begin.first.unwrap_or_default(),
        copied_bytes: COPY_LIMIT_DEFAULT,
        ..Session::default()
    };
    Ok(Found { session, selection, normalizer, side_band, has_wall_clock: wall_clock.is_some(), lasts, programs })
}

/// Returns what a file says about programs, if its samples have stacks, or should have some.
fn programs(file: &Regular, features: &Features, specs: &[EventSpec], is_unusable: bool) -> Result<Option<Programs>, String> {
    if !is_unusable && specs.iter().all(|spec| spec.sample_type & field::STACK == 0) {
        return Ok(None);
    }
    let build_ids = features.bytes(feature::BUILD_ID)?.unwrap_or_default();
    let written = file.file.metadata().and_then(|meta| meta.modified()).map_err(|error| format!("cannot be read: {error}"))?;
    Ok(Some(Programs::new(&build_ids, written, is_unusable)))
}

/// Returns the session's events, of which the last one is for records that are no samples, and the index of each event
/// of the file; `None` for those that rtrace does not show.
fn specs(events: &[PerfEvent], data: &TracingData, registers: u64) -> (Vec<EventSpec>, Vec<Option<EventIndex>>) {
    let formats = attrs::formats(data);
    let name = |event: &PerfEvent| formats.get(&event.config).filter(|_| event.kind == attrs::TRACEPOINT).map(|(name, _)| name.as_str());
    let names: BTreeSet<&str> = events.iter().filter_map(name).collect();
    let mut specs: Vec<EventSpec> = Vec::new();
    let mut spec = |event: &PerfEvent| {
        let (name, role, format) = match (event.kind, event.config) {
            (attrs::TRACEPOINT, number) => {
                formats.get(&number).map(|(name, format)| (name.clone(), role(name, &names), Some(format.clone())))?
            }
            (attrs::SOFTWARE, attrs::FAULTS_MAJOR) => ("major-faults".to_owned(), Role::FaultMajor, None),
            (attrs::SOFTWARE, attrs::FAULTS_MINOR) => ("minor-faults".to_owned(), Role::FaultMinor, None),
            _ => return None,
        };
        let needed = if format.is_some() { field::RAW } else { field::IP | field::ADDR };
        let needed = needed | field::TID | field::TIME;
        if event.sample_type & needed != needed {
            return None;
        }
        let sample_type = normalize::layout(event, registers);
        specs.push(EventSpec { name, role, sample_type, format, shown: true, terms: Terms::default() });
        Some(EventIndex(specs.len() as u16 - 1))
    };
    let indices = events.iter().map(&mut spec).collect();
    specs.push(EventSpec {
        name: "side band".to_owned(),
        role: Role::SideBand,
        sample_type: normalize::layout(&PerfEvent::default(), registers),
        format: None,
        shown: false,
        terms: Terms::default(),
    });
    (specs, indices)
}

/// Returns what the records of a tracepoint mean. Entries and exits become calls only together: without exits, it is
/// not known when a call ends.
fn role(name: &str, names: &BTreeSet<&str>) -> Role {
    let has_raw = names.contains("raw_syscalls:sys_enter") && names.contains("raw_syscalls:sys_exit");
    let has_both = |call: &str| {
        names.contains(format!("syscalls:sys_enter_{call}").as_str()) && names.contains(format!("syscalls:sys_exit_{call}").as_str())
    };
    match name {
        "raw_syscalls:sys_enter" if has_raw => return Role::RawEnter,
        "raw_syscalls:sys_exit" if has_raw => return Role::RawExit,
        _ => {}
    }
    // With all calls in the file, those of one syscall are the same calls.
    if let (false, Some(event)) = (has_raw, name.strip_prefix("syscalls:sys_")) {
        match event.split_once('_') {
            Some(("enter", call)) if has_both(call) => return Role::Enter,
            Some(("exit", call)) if has_both(call) => return Role::Exit,
            _ => {}
        }
    }
    Role::Tracepoint
}

/// Returns the options that show all events of a file, which are needed if it has others than calls.
///
/// # Errors
/// The file has no event that rtrace shows.
fn selection(specs: &[EventSpec]) -> Result<Vec<String>, String> {
    let has = |wanted: fn(Role) -> bool| specs.iter().any(|spec| wanted(spec.role));
    let is_plain = |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_-".contains(&byte));
    let others: Vec<String> =
        specs.iter().filter(|spec| spec.role == Role::Tracepoint).map(|spec| &spec.name).filter(is_plain).cloned().collect();
    let faults = has(|role| matches!(role, Role::FaultMajor | Role::FaultMinor));
    let has_calls = has(Role::records_calls);
    if others.is_empty() && !has_calls && !faults {
        return Err("has no calls: record them by `perf trace record`, or by `perf record -e 'raw_syscalls:*'`".to_owned());
    }
    let mut words: Vec<String> = others.into_iter().flat_map(|name| ["-e".to_owned(), name]).collect();
    if has_calls && !words.is_empty() {
        words.push("--syscalls".to_owned());
    }
    Ok(words)
}

/// Returns CLOCK_REALTIME minus the clock of the records: version, clock, and the values of both at one moment.
fn realtime_offset(bytes: &[u8]) -> Option<i64> {
    let word = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
    let version = bytes.first_chunk().copied().map(u32::from_le_bytes)?;
    (version == 1).then(|| Some(word(8)?.wrapping_sub(word(16)?) as i64))?
}

/// What the first round says.
#[derive(Debug, Default)]
struct Beginning {
    /// perf recorded some tasks, and not all.
    is_of_tasks: bool,
    /// The time of the oldest sample.
    first: Option<Time>,
}

/// Reads a file up to the end of its first round.
fn beginning(mut stream: RecordStream, normalizer: &Normalizer) -> Beginning {
    let mut begin = Beginning::default();
    let mut bytes = Vec::new();
    for _ in 0..RECORDS_MAX {
        let Some(FileRecord { frame, .. }) = stream.next_record() else { break };
        match frame.kind {
            kind::FINISHED_ROUND if begin.first.is_some() => break,
            kind::THREAD_MAP => {
                // The number of tasks, and for each its number in 8 bytes and its name in 16. All tasks are -1.
                let first = frame.body.get(8..).and_then(|rest| rest.first_chunk().copied()).map(u64::from_le_bytes);
                begin.is_of_tasks = first.is_some_and(|task| task as i32 != -1);
            }
            frame::kind::SAMPLE => {
                bytes.clear();
                if let Ok(Some(sample)) = normalizer.append(&frame, &mut bytes) {
                    begin.first = Some(begin.first.map_or(sample.time, |first| first.min(sample.time)));
                }
            }
            _ => {}
        }
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(names: &[&str]) -> Vec<Role> {
        let all: BTreeSet<&str> = names.iter().copied().collect();
        names.iter().map(|name| role(name, &all)).collect()
    }

    #[test]
    fn entries_and_exits_become_calls_together() {
        assert_eq!(roles(&["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"]), [Role::RawEnter, Role::RawExit]);
        assert_eq!(roles(&["raw_syscalls:sys_enter"]), [Role::Tracepoint]);
        let own = ["syscalls:sys_enter_openat", "syscalls:sys_exit_openat", "syscalls:sys_enter_read", "sched:sched_switch"];
        assert_eq!(roles(&own), [Role::Enter, Role::Exit, Role::Tracepoint, Role::Tracepoint]);
        let both = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "syscalls:sys_enter_openat", "syscalls:sys_exit_openat"];
        assert_eq!(roles(&both), [Role::RawEnter, Role::RawExit, Role::Tracepoint, Role::Tracepoint]);
    }

    #[test]
    fn the_wall_clock_is_read_from_a_pair_of_times() {
        let bytes =
            |version: u32| [&version.to_le_bytes()[..], &1u32.to_le_bytes(), &1_000_500u64.to_le_bytes(), &500u64.to_le_bytes()].concat();
        assert_eq!(realtime_offset(&bytes(1)), Some(1_000_000));
        assert_eq!(realtime_offset(&bytes(2)), None);
        assert_eq!(realtime_offset(&bytes(1)[..20]), None);
    }
}
