//! Describes the call that asked for a snapshot.

use crate::beauty::lookup;
use crate::beauty::tables::SYSCALLS;
use crate::bpf::record::CallRecord;
use crate::event::Abi;
use crate::kernel::format::Format;
use crate::snapshot::Match;

/// The bytes of the identifier, which precede the other fields of a sample.
const IDENTIFIER: usize = 8;
/// Those of the task and of the time of a tracepoint's sample, and those of the size of raw bytes.
const TASK_AND_TIME: usize = 16;
const SIZE: usize = 4;

/// Returns what is known of the call: its name, its thread and its result. `format` is that of the tracepoint that
/// reported it; without one, a BPF program did.
pub fn describe(found: &Match, format: Option<&Format>, native: Abi) -> String {
    let described = match format {
        None => of_program(&found.body),
        Some(format) => of_tracepoint(&found.body, format, native),
    };
    described.unwrap_or_else(|| "a call".to_owned())
}

fn of_program(body: &[u8]) -> Option<String> {
    let call = CallRecord::without_pieces(body.get(IDENTIFIER + SIZE..)?.first_chunk()?)?;
    Some(text(call.abi, call.nr.into(), call.tid, call.ret))
}

fn of_tracepoint(body: &[u8], format: &Format, native: Abi) -> Option<String> {
    let tid = i32::from_le_bytes(*body.get(IDENTIFIER + 4..)?.first_chunk()?);
    let raw = body.get(IDENTIFIER + TASK_AND_TIME + SIZE..)?;
    let word = |name| Some(i64::from_le_bytes(*raw.get(format.field(name)?.offset as usize..)?.first_chunk()?));
    Some(text(native, word("id")?, tid, word("ret")?))
}

fn text(abi: Abi, nr: i64, tid: i32, ret: i64) -> String {
    let row = lookup::index(abi, nr).and_then(|row| SYSCALLS.get(usize::from(row)));
    let name = lookup::name(row, abi, nr).map_or_else(|| format!("syscall_{nr}"), str::to_owned);
    format!("{name} of thread {tid}, which returned {ret}")
}
