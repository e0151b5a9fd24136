//! The text of a record behind its time: the event, and its fields in the order of the record.

use crate::beauty::lookup;
use crate::bpf::record::{CallRecord, RecordKind};
use crate::event::{FileId, TaskId};
use crate::kernel::format::{Format, FormatField};
use crate::session::{EventTable, Role};
use crate::source::{Body, Sample};
use crate::text::escape;
use serde_json::Value;

/// The most bytes of a fact that are printed.
const FACT_MAX: usize = 1000;

/// The most elements of an array that are printed.
const ELEMENTS_MAX: usize = 64;

/// Appends the text of a record.
pub fn write(out: &mut Vec<u8>, body: &Body, table: &EventTable) {
    let text = match body {
        Body::Sample(sample) => return self::sample(out, sample, table),
        Body::Comm { task, comm, exec } => {
            out.extend(if *exec { &b"PERF_RECORD_COMM exec: "[..] } else { b"PERF_RECORD_COMM: " });
            escape::plain(out, comm);
            format!(":{}", pair(*task))
        }
        Body::Fork { child, parent } => format!("PERF_RECORD_FORK({}):({})", pair(*child), pair(*parent)),
        Body::Exit { task } => format!("PERF_RECORD_EXIT({})", pair(*task)),
        Body::Map { task, start, len, offset, file, executable, path } => {
            let FileId { device: (major, minor), inode, generation } = *file;
            let may = if *executable { "r-xp" } else { "r--p" };
            let place = format!("[{start:#x}({len:#x}) @ {offset:#x} {major:02x}:{minor:02x} {inode} {generation}]: {may} ");
            out.extend(format!("PERF_RECORD_MMAP2 {}: {place}", pair(*task)).bytes());
            escape::plain(out, path);
            return;
        }
        Body::Lost { records, .. } => format!("PERF_RECORD_LOST lost {records}"),
        Body::Missed { records: Some(records), .. } => format!("overwritten records of an instance: {records}"),
        Body::Missed { records: None, .. } => "overwritten records of an instance".to_owned(),
        Body::Synthesized(fact) => {
            let mut fact = serde_json::to_value(fact).unwrap_or_default();
            texts(&mut fact);
            let mut text = fact.to_string();
            if text.len() > FACT_MAX {
                let end = (0..=FACT_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
                text.truncate(end);
                text.push_str("...");
            }
            out.extend(b"rtrace:fact: ");
            return escape::controls(out, text.as_bytes());
        }
    };
    out.extend(text.bytes());
}

/// Turns arrays of bytes into texts if they are.
fn texts(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(texts),
        Value::Array(elements) => {
            let byte = |element: &Value| u8::try_from(element.as_u64()?).ok().filter(|byte| *byte >= b' ');
            let bytes: Option<Vec<u8>> = elements.iter().map(byte).collect();
            match bytes.filter(|bytes| !bytes.is_empty()).and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(text) => *value = Value::String(text),
                None => elements.iter_mut().for_each(texts),
            }
        }
        _ => {}
    }
}

fn pair(task: TaskId) -> String {
    format!("{}:{}", task.pid, task.tid)
}

/// Appends the name of the event and the fields of a sample.
fn sample(out: &mut Vec<u8>, sample: &Sample, table: &EventTable) {
    let Some(spec) = table.get(sample.event) else { return };
    escape::plain(out, spec.name.as_bytes());
    out.push(b':');
    match (&spec.format, spec.role) {
        (_, Role::BpfCall) => match CallRecord::parse(sample.raw) {
            Some(call) => self::call(out, &call),
            None => out.extend(format!(" {} bytes that are no record of this version", sample.raw.len()).bytes()),
        },
        (Some(format), _) => fields(out, format, sample.raw),
        (None, Role::FaultMajor | Role::FaultMinor) => {
            out.extend(format!(" {:#x} at {:#x}", sample.address, sample.ip).bytes());
        }
        (None, _) => out.extend(format!(" {} bytes", sample.raw.len()).bytes()),
    }
    if !sample.chain.is_empty() {
        out.extend(format!(" (call chain: {} bytes)", sample.chain.len()).bytes());
    }
    if !sample.dump.is_empty() {
        out.extend(format!(" (registers and stack: {} bytes)", sample.dump.len()).bytes());
    }
}

/// Appends the content of a record of the BPF programs.
fn call(out: &mut Vec<u8>, call: &CallRecord) {
    let kind = match call.kind {
        RecordKind::Returned => "",
        RecordKind::Never => "does not return: ",
        RecordKind::Unseen => "its exit was not seen: ",
        RecordKind::Pending => "in flight: ",
        RecordKind::Entry => "entry: ",
        RecordKind::Part => "memory of ",
        RecordKind::Stack => "stack of ",
        RecordKind::Request => "io_uring, submitted: ",
        RecordKind::RequestEnd => "io_uring, completed: ",
        RecordKind::TaskEnd => return out.extend(format!(" the task ends with the wait status {:#x}", call.ret).bytes()),
        RecordKind::Aggregate => return out.extend(format!(" sums of {} calls", call.ret).bytes()),
        RecordKind::SignalSent => return out.extend(b" a signal was sent"),
        RecordKind::Signal => return out.extend(b" a signal is delivered"),
    };
    out.extend(format!(" {kind}").bytes());
    let nr = i64::from(call.nr);
    lookup::write_name(out, lookup::row(call.abi, nr), call.abi, nr);
    let args = call.args.map(|arg| format!("{arg:x}")).join(", ");
    let ret = match call.kind {
        RecordKind::Returned if (-4095..0).contains(&call.ret) => format!(" = {}", call.ret),
        RecordKind::Returned => format!(" = {:#x}", call.ret),
        _ => String::new(),
    };
    let took = call.end.since(call.start);
    out.extend(
        format!("({args}){ret} [NR {nr}, {}, began {took} ns before, {} bytes of memory]", call.abi.name(), call.pieces.len()).bytes(),
    );
}

/// Appends the fields of a tracepoint.
fn fields(out: &mut Vec<u8>, format: &Format, raw: &[u8]) {
    for field in format.own_fields() {
        out.push(b' ');
        escape::plain(out, field.name.as_bytes());
        out.push(b'=');
        self::field(out, field, raw);
    }
}

fn field(out: &mut Vec<u8>, field: &FormatField, raw: &[u8]) {
    if field.is_text() {
        return match field.text(raw) {
            Some(text) => escape::quoted(out, text),
            None => out.push(b'?'),
        };
    }
    let text = match (field.array, field.number(raw)) {
        (None, Some(number)) if field.signed => number.to_string(),
        (None, Some(number)) => format!("{:#x}", number as u64),
        _ => field.elements(raw).map_or_else(
            || "?".to_owned(),
            |elements| {
                let all: Vec<String> = elements.take(ELEMENTS_MAX).map(|element| format!("{element:#x}")).collect();
                format!("[{}]", all.join(", "))
            },
        ),
    };
    out.extend(text.bytes());
}
