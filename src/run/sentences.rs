//! The sentences of the verdict, which are printed on stderr whatever the format of the output is.

use crate::event::Verdict;
use crate::event::verdict::{CallsVerdict, EventVerdict, InstanceVerdict, NothingShown, RequestCount, Shortage, ShortageKind};
use crate::request;
use crate::text::near;
use std::fmt::Write;

/// The maximum number of files that a sentence names.
const FILES_MAX: usize = 8;

/// Returns a sentence for each kind of data that is missing for another reason than lost records.
pub fn missing_data(verdict: &Verdict) -> Vec<String> {
    let calls = verdict.not_permitted;
    let not_permitted = (calls > 0).then(|| {
        format!(
            "{calls} calls are neither shown nor counted, because you may not trace the programs that made them (set-user-ID, with capabilities, \
             of another user namespace, or not dumpable); root can trace them (sudo rtrace ...)"
        )
    });
    verdict.shortages.iter().map(shortage).chain(not_permitted).chain(unanswered_files(&verdict.unanswered_files)).collect()
}

/// Returns the sentences of the account, one per line. There are none if there is nothing to report. `output_is_over`
/// means that calls were given up because the reader of the output has ended, which needs no message.
pub fn account(verdict: &Verdict, run: &request::Run, output_is_over: bool) -> Vec<String> {
    let is_verbose = run.verbose > 0;
    let mut sentences: Vec<String> = verdict.disagreements.iter().map(disagreement).collect();
    let instance = verdict.instance.as_ref();
    sentences.extend(instance.filter(|instance| instance.disagrees).map(instance_disagreement));
    if verdict.undecided > 0 {
        sentences.push(format!("{} calls were not shown because values that the filter needs are not known", verdict.undecided));
    }
    if verdict.outside_span > 0 && is_verbose {
        sentences.push(format!("{} calls are not shown because of --time; what follows the span was not read", verdict.outside_span));
    }
    sentences.extend(verdict.nothing_shown.as_ref().filter(|_| !run.quiet).map(nothing_shown));
    sentences.extend(untraced_requests(&verdict.untraced_requests).filter(|_| !run.quiet));
    if let Some(calls) = &verdict.calls
        && (calls.lost > 0 || is_verbose || (verdict.given_up > 0 && !output_is_over))
    {
        sentences.push(calls_line(calls));
    }
    if is_verbose {
        sentences
            .extend(verdict.events.iter().map(|event| format!("{}: {}", called(event), counts(event.issued, event.received, event.lost))));
        sentences.extend(instance.map(|of| format!("{}: {}", of.events.join(", "), counts(of.issued, of.received, of.lost))));
    }
    if verdict.unwritten > 0 {
        sentences.push(format!(
            "{} of the lost records were counted but not written by the kernel, because their tasks were moved to another cgroup at that moment, \
             or because interrupts of idle CPUs made them",
            verdict.unwritten
        ));
    }
    if verdict.unwritten_signals > 0 && is_verbose {
        sentences.push(format!(
            "the kernel did not record {} signals that interrupts of idle CPUs sent to any processes; if a traced process ignores such a signal, \
             it is not shown",
            verdict.unwritten_signals
        ));
    }
    let others: u64 = verdict.events.iter().map(|event| event.lost).sum();
    if others > 0 {
        sentences.push(format!("{others} records of other events were lost"));
    }
    // In recordings of perf, no event has counts of its own.
    let uncounted = verdict.lost_records.saturating_sub(others + instance.map_or(0, |instance| instance.lost));
    if verdict.calls.is_none() && uncounted > 0 {
        sentences.push(format!("{uncounted} records were lost; nobody counted the calls that were made"));
    }
    if let Some(InstanceVerdict { events, lost, .. }) = instance.filter(|instance| instance.lost > 0) {
        sentences.push(format!(
            "{lost} records of {} were lost (the kernel counts all events of a tracefs instance together; larger rings, -m, lose less)",
            events.join(", ")
        ));
    }
    if run.lossless && verdict.lost_records > 0 {
        sentences.push(format!("error: {} records were lost in spite of --lossless", verdict.lost_records));
    }
    sentences
}

/// Returns the name that the user gave to an event, or else the kernel's.
fn called(event: &EventVerdict) -> &str {
    event.called.as_ref().unwrap_or(&event.name)
}

fn counts(issued: u64, received: u64, lost: u64) -> String {
    format!("{issued} issued, {received} received, {lost} lost")
}

fn disagreement(event: &EventVerdict) -> String {
    let counts = counts(event.issued, event.received, event.lost);
    format!("the account of {} does not add up: {counts}; please report this", event.name)
}

fn instance_disagreement(instance: &InstanceVerdict) -> String {
    let (events, counts) = (instance.events.join(", "), counts(instance.issued, instance.received, instance.lost));
    format!("the account of {events}, which a tracefs instance records, does not add up: {counts}; please report this")
}

/// Formats `N calls issued, P printed, L lost`, and the numbers of calls that were held back and given up. The numbers
/// add up.
fn calls_line(calls: &CallsVerdict) -> String {
    let mut text = format!("{} calls issued, {} printed, {} lost", calls.issued, calls.shown, calls.lost);
    if calls.held_back > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, ", {} held back as asked", calls.held_back);
    }
    if calls.given_up > 0 {
        let _ = write!(text, ", {} given up because the output could not be written", calls.given_up);
    }
    if calls.lost > 0 {
        text.push_str(" (larger rings, -m, or fewer events, -e, lose less)");
    }
    text
}

/// Formats why nothing was shown: the selected names, the number of traced calls, and the options that held these back
/// or the syscalls whose names are similar to the selected ones.
fn nothing_shown(nothing: &NothingShown) -> String {
    let names = nothing.selected.join(",");
    let names = if names.is_empty() { names } else { format!(" {names}") };
    let passed = match nothing.held_back {
        0 => String::new(),
        n => format!("; {n} calls were traced but not shown"),
    };
    let why = match nothing.limits.is_empty() {
        true => near::hint(&nothing.similar),
        false => format!(", held back by {}", nothing.limits.join(" and ")),
    };
    let what = if nothing.signals { "nothing but signals" } else { "nothing" };
    format!("{what} matched{names}{passed}{why}")
}

/// Returns a sentence with the requests of io_uring that do the same as the selected syscalls.
fn untraced_requests(requests: &[RequestCount]) -> Option<String> {
    let short = |name: &str| name.rsplit(':').next().unwrap_or_default().to_owned();
    let counts: Vec<String> = requests.iter().map(|of| format!("{} {}", of.count, short(&of.name))).collect();
    let counts = (!counts.is_empty()).then(|| counts.join(", "))?;
    Some(format!("the programs also made requests of io_uring: {counts} (-e %io_uring shows requests)"))
}

fn shortage(Shortage { kind, count }: &Shortage) -> String {
    let count = count.unwrap_or_default();
    match kind {
        ShortageKind::Tasks => format!("{count} tasks were not followed: the kernel had no memory at that moment"),
        ShortageKind::Memory => {
            format!("{count} calls are shown without the memory that their arguments point to: the kernel had no memory at that moment")
        }
        ShortageKind::Data => format!(
            "{count} times the data of a call is truncated: it did not fit into one record, and a further record did not fit into the ring buffer"
        ),
        ShortageKind::Ends => {
            format!("{count} signals and task exits are missing: their records did not fit into the ring buffer")
        }
        ShortageKind::CompatCalls => format!(
            "{count} 32-bit programs lack their first calls: rtrace traces 32-bit calls only after such a program has started"
        ),
        ShortageKind::SkippedCalls => format!(
            "{count} times the kernel skipped a BPF program: at most that many calls are missing, or lack their entry or exit"
        ),
        ShortageKind::SkippedTasks => format!(
            "{count} times the kernel skipped a BPF program that follows tasks: at most that many tasks or task exits are missing"
        ),
        ShortageKind::SkippedObjects => format!(
            "the kernel skipped BPF programs of -e {count} times, because they interrupted another BPF program; on a tracepoint, up to that many records may be missing for each of its tracers"
        ),
        ShortageKind::ObjectTasks => {
            format!("the BPF programs of -e did not run for {count} tasks: the kernel had no memory to follow them")
        }
        ShortageKind::Threads => "threads of the traced processes may be missing: they were created and ended faster than rtrace could open events on them (the BPF engine needs no such events)".to_owned(),
        ShortageKind::NamesOfCalls => {
            format!("up to {count} path names are not known: more calls used path names at once than the kernel had room for")
        }
        ShortageKind::NamesOfThreads => {
            format!("up to {count} path names are not known: more threads of this machine used path names than the kernel had room for")
        }
        ShortageKind::UnchangedCalls => format!("at most {count} calls that --inject was to change were executed unchanged"),
    }
}

/// Returns a sentence with the files that could not be read for stacks because their file systems do not answer.
fn unanswered_files(files: &[Vec<u8>]) -> Option<String> {
    Some(format!("stacks lack names and callers, because the file systems of these files do not answer: {}", listed(files)?))
}

/// Returns a sentence with the files that are needed for the stacks of a recording of perf, and that this machine does
/// not have.
pub fn missing_programs(files: &[Vec<u8>]) -> Option<String> {
    Some(format!(
        "stacks lack names and callers, because these files are not here, or are no longer those that perf recorded: {}",
        listed(files)?
    ))
}

/// Returns a sentence about the tasks whose names a recorder without lines did not read.
pub fn unnamed_tasks(number: usize) -> Option<String> {
    let tasks = match number {
        0 => return None,
        1 => "the name of a task that is".to_owned(),
        _ => format!("the names of {number} tasks that are"),
    };
    Some(format!(
        "the recording lacks {tasks} named by calls or signals and not traced: `rtrace record` does not read such names, and `rtrace --record FILE` does"
    ))
}

/// Returns the first of some paths, and the number of the others.
fn listed(files: &[Vec<u8>]) -> Option<String> {
    let mut text: String = files.iter().take(FILES_MAX).map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(FILES_MAX) {
        0 if files.is_empty() => return None,
        0 => {}
        more => text.push_str(&format!(" and {more} more")),
    }
    Some(text)
}

#[cfg(test)]
mod tests;
