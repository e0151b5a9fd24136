//! Plans snapshots (`record --snapshot`): which rings are overwritten, and how the kernel reports the calls that ask
//! for a snapshot (`--snapshot-on`).
//!
//! The kernel alone evaluates the condition, because nobody reads the records of calls until a snapshot is taken. So
//! all of the condition must be one that the kernel can evaluate, for each of the recorded calls.

use super::{PlannedEvent, filters};
use crate::beauty::row::Syscall;
use crate::beauty::tables::SYSCALLS;
use crate::bpf::filter::{self, Clause};
use crate::event::Abi;
use crate::gate::{CallOperand, CallScope};
use crate::kernel::format::Format;
use crate::kernel::machine::NATIVE_ABI;
use crate::kernel::tracefs::Tracefs;
use crate::request::filter::{Bindings, Bound, Expr, Op, Reference};
use crate::request::select::Selection;
use crate::request::{Snapshots, Trace};
use crate::sys::perf::{Counts, StackFields};
use anyhow::{anyhow, bail};
use std::collections::BTreeMap;

/// The most bytes of the ring of a CPU's side band. It is read at once, as in any trace.
const SIDE_BAND_RING: u64 = 1 << 20;
/// The smallest ring of calls: the BPF programs name files again several times in each ring.
pub const RING_MIN: u64 = 256 << 10;
/// A ring has room for at least so many records with stacks, and a record without its stack has at most this many
/// bytes.
const RECORDS_MIN: u64 = 16;
const RECORD_BYTES: u64 = 9 << 10;
/// Files are named again after this share of a ring, so that older names are missing in no more than that share of a
/// snapshot.
const EPOCHS: u64 = 16;
/// The least number of bytes after which files are named again: more than any record of the BPF programs has.
const EPOCH_MIN: u64 = 16 << 10;
/// The longest filter that the kernel accepts: a page with the NUL.
const FILTER_BYTES_MAX: usize = 4095;

/// What the programs and the filters of tracepoints can evaluate.
const OF_PROGRAMS: &str = "they evaluate syscall, ret, errno, duration, pid, tid, comm, and numbers and strings of arguments";
const OF_TRACEPOINTS: &str = "it evaluates syscall, ret, errno, tid and comm";

/// How snapshots are taken.
#[derive(Clone, Debug)]
pub struct SnapshotPlan {
    /// The size of the ring of each CPU's side band.
    pub side_band_ring: u64,
    /// The event that reports calls that satisfy the condition.
    pub matches: Option<MatchEvent>,
}

/// An event whose records report that a call satisfied the condition for a snapshot.
#[derive(Clone, Debug)]
pub struct MatchEvent {
    /// What the event counts.
    pub counts: Counts,
    /// The kernel's filter, which is the condition.
    pub filter: Option<String>,
    /// Whether the event is also opened on the tasks that the targets create.
    pub inherit: bool,
    /// The format of `raw_syscalls:sys_exit`; `None` if the BPF programs write the records.
    pub format: Option<Format>,
}

/// What the plan of snapshots follows from, beside the request.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The planned events.
    pub events: &'a [PlannedEvent],
    /// The tracefs that has the formats of the tracepoints.
    pub tracefs: &'a Tracefs,
    /// The size of the ring of each CPU, in bytes.
    pub ring: u64,
    /// The BPF programs trace the calls.
    pub by_bpf: bool,
    /// Events are also opened on the tasks that the targets create.
    pub inherit: bool,
    /// 32-bit calls are expected.
    pub compat: bool,
}

impl SnapshotPlan {
    /// Plans snapshots, if they are asked for.
    ///
    /// # Errors
    /// An event is not in a ring, or the kernel cannot evaluate the condition.
    pub fn new(request: &Trace, selection: &Selection, inputs: Inputs) -> anyhow::Result<Option<SnapshotPlan>> {
        if asked(request).is_none() {
            return Ok(None);
        }
        if let Some(event) = inputs.events.iter().find(|event| event.spec.is_by_instance()) {
            bail!(
                "record --snapshot: the records of {} are in a tracefs instance and in no ring of which a snapshot is taken; leave it out",
                event.spec.name
            );
        }
        // What a CPU may be writing is not in a copy of its ring (run/snapshots.rs).
        let stack = inputs.events.iter().map(|event| event.stack.bytes).max().unwrap_or_default();
        let least = RECORDS_MIN * (u64::from(stack) + RECORD_BYTES);
        if inputs.ring < least {
            bail!(
                "record --snapshot: a ring of {} KiB has too little room for records with up to {stack} bytes of stack; use -m {}K or more",
                inputs.ring >> 10,
                least.next_power_of_two() >> 10
            );
        }
        let matches = match condition(request) {
            Some(_) if inputs.by_bpf => Some(MatchEvent { counts: Counts::BpfOutput, filter: None, inherit: false, format: None }),
            Some(expr) => Some(match_event(expr, selection, inputs)?),
            None => None,
        };
        Ok(Some(SnapshotPlan { side_band_ring: inputs.ring.min(SIDE_BAND_RING), matches }))
    }
}

fn asked(request: &Trace) -> Option<&Snapshots> {
    request.recording.as_ref()?.snapshots.as_ref()
}

fn condition(request: &Trace) -> Option<&Expr> {
    asked(request)?.on.as_ref()
}

/// Returns after how many bytes of a CPU's ring the BPF programs name files again, if snapshots are taken. Records may
/// have stacks of these kinds, which the programs do not count.
pub fn epoch_bytes(request: &Trace, ring_bytes: u64, stacks: &[StackFields]) -> Option<u32> {
    asked(request).map(|_| epoch(ring_bytes, stacks.iter().map(|kind| kind.bytes).max().unwrap_or_default()))
}

fn epoch(ring_bytes: u64, stack_bytes: u32) -> u32 {
    let wanted = ring_bytes / EPOCHS / (1 + u64::from(stack_bytes) / 128);
    (1u64 << wanted.max(EPOCH_MIN).ilog2()) as u32
}

/// Returns the conditions for the BPF programs, by the index of the row and the ABI.
///
/// # Errors
/// A part of the condition cannot be evaluated in the kernel, or means nothing for the selected calls.
pub fn conditions(request: &Trace, selection: &Selection) -> anyhow::Result<Vec<(u16, Abi, Vec<Clause>)>> {
    condition(request).map_or(Ok(Vec::new()), |expr| of_rows(expr, selection))
}

fn of_rows(expr: &Expr, selection: &Selection) -> anyhow::Result<Vec<(u16, Abi, Vec<Clause>)>> {
    let mut bindings = Bindings::default();
    let mut found = Vec::new();
    for (at, row) in selected(selection) {
        for abi in Abi::ALL.into_iter().filter(|abi| row.numbers[*abi as usize].is_some()) {
            let scope = CallScope { abi, row: Some(row), is_request: false };
            let bound = expr.bind(&scope, &mut bindings);
            match filters::exact(row, abi, &bound) {
                Some(Some(clauses)) => found.push((at, abi, clauses)),
                Some(None) => {}
                None => {
                    let is_possible = |part: &Bound| filters::exact(row, abi, part).is_some();
                    bail!(refused(expr, &scope, row, is_possible, "the BPF programs cannot", OF_PROGRAMS))
                }
            }
        }
    }
    check(expr, &bindings, found.is_empty())?;
    if !filter::fit(found.iter().map(|(.., clauses)| clauses.as_slice())) {
        bail!(
            "--snapshot-on '{expr}': it has too many different conditions for the BPF programs; write fewer, or select fewer calls by -e"
        );
    }
    Ok(found)
}

/// Returns the event that reports the calls of the tracepoint engine.
///
/// # Errors A part of the condition cannot be evaluated by a filter on `raw_syscalls:sys_exit`, or means nothing for
/// the selected calls.
fn match_event(expr: &Expr, selection: &Selection, inputs: Inputs) -> anyhow::Result<MatchEvent> {
    let Inputs { tracefs, inherit, compat, .. } = inputs;
    let mut bindings = Bindings::default();
    let mut by_text: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut are_all = selection.unknown;
    for (_, row) in selected(selection) {
        let Some(number) = row.numbers[NATIVE_ABI as usize] else { continue };
        let scope = CallScope { abi: NATIVE_ABI, row: Some(row), is_request: false };
        let bound = expr.bind(&scope, &mut bindings);
        match text(&bound) {
            Some(Some(text)) => by_text.entry(text).or_default().push(number),
            Some(None) => are_all = false,
            None => {
                let is_possible = |part: &Bound| text(part).is_some();
                bail!(refused(expr, &scope, row, is_possible, "the filter of a tracepoint (--engine tracepoint) cannot", OF_TRACEPOINTS))
            }
        }
    }
    check(expr, &bindings, by_text.is_empty())?;
    let filter = match by_text.iter().next() {
        Some((text, _)) if by_text.len() == 1 && are_all => text.clone(),
        _ if compat => bail!(
            "--snapshot-on '{expr}': it distinguishes syscalls by their numbers, which 32-bit programs use for other calls; the BPF engine \
             tells them apart"
        ),
        _ => by_text.iter().map(|(text, numbers)| of_numbers(text, numbers)).collect::<Vec<_>>().join(" || "),
    };
    if filter.len() > FILTER_BYTES_MAX {
        bail!("--snapshot-on '{expr}': the kernel accepts no filter of this length ({} bytes); select fewer calls by -e", filter.len());
    }
    let format = tracefs.format("raw_syscalls", "sys_exit")?;
    Ok(MatchEvent { counts: Counts::Tracepoint(format.id), filter: (!filter.is_empty()).then_some(filter), inherit, format: Some(format) })
}

fn selected(selection: &Selection) -> impl Iterator<Item = (u16, &'static Syscall)> {
    (0..).zip(SYSCALLS).filter(|(at, _)| selection.rows.get(usize::from(*at)).copied().unwrap_or_default())
}

/// Returns the sentence about a condition that cannot be evaluated for the calls of a row. It names the comparison that
/// is not possible, if one of them alone is not.
fn refused(expr: &Expr, scope: &CallScope, row: &Syscall, is_possible: impl Fn(&Bound) -> bool, who: &str, what: &str) -> String {
    let parts = expr.comparisons().into_iter().map(|comparison| Expr::Test(comparison.clone()));
    let culprit = parts.into_iter().find(|part| !is_possible(&part.bind(scope, &mut Bindings::default())));
    let culprit = culprit.map_or_else(|| "all of it".to_owned(), |part| format!("`{part}`"));
    format!("--snapshot-on '{expr}': {who} evaluate {culprit} for {}, and nobody else sees the calls; {what}", row.name)
}

fn check(expr: &Expr, bindings: &Bindings, is_empty: bool) -> anyhow::Result<()> {
    bindings.check("--snapshot-on", expr).map_err(|why| anyhow!(why))?;
    if is_empty {
        bail!("--snapshot-on '{expr}': no recorded call can satisfy it; -e selects the calls that are recorded");
    }
    Ok(())
}

/// Returns the filter for calls with these numbers.
fn of_numbers(text: &str, numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| format!("id == {number}")).collect();
    let numbers = numbers.join(" || ");
    if text.is_empty() { format!("({numbers})") } else { format!("(({numbers}) && ({text}))") }
}

/// Returns the condition in the kernel's filter language, which is empty if it always holds, or `None` inside if it
/// never does. `None`: the kernel cannot evaluate it.
fn text(bound: &Bound) -> Option<Option<String>> {
    match bound {
        Bound::Constant(true) => Some(Some(String::new())),
        Bound::Constant(false) => Some(None),
        other => part(other).map(Some),
    }
}

fn part(bound: &Bound) -> Option<String> {
    let join = |parts: &[Bound], between: &str| {
        let parts = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
        Some(format!("({})", parts.join(between)))
    };
    match bound {
        Bound::And(parts) => join(parts, " && "),
        Bound::Or(parts) => join(parts, " || "),
        Bound::Not(inner) => Some(format!("!({})", part(inner)?)),
        Bound::Compare { name, op, with } => compare(name, *op, i64::try_from(*with).ok()?),
        Bound::Text { name, op: op @ (Op::Equal | Op::NotEqual), with } if CallOperand::of(name) == CallOperand::Comm => {
            let text = std::str::from_utf8(with).ok().filter(|text| !text.contains(['"', '\\']))?;
            Some(format!("comm {} \"{text}\"", op.text()))
        }
        Bound::Constant(_) | Bound::Bits { .. } | Bound::Text { .. } => None,
    }
}

fn compare(name: &Reference, op: Op, with: i64) -> Option<String> {
    match (CallOperand::of(name), op) {
        (CallOperand::Ret, op) => Some(format!("ret {} {with}", op.text())),
        (CallOperand::Tid, op) => Some(format!("common_pid {} {with}", op.text())),
        (CallOperand::Errno, Op::Equal) if with > 0 => Some(format!("ret == -{with}")),
        (CallOperand::Errno, Op::NotEqual) if with > 0 => Some(format!("ret != -{with}")),
        (CallOperand::Errno, Op::NotEqual | Op::Greater) if with == 0 => Some("(ret < 0 && ret >= -4095)".to_owned()),
        (CallOperand::Errno, Op::Equal) if with == 0 => Some("(ret >= 0 || ret < -4095)".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::lookup;
    use crate::request::filter::parse;
    use crate::request::select;

    fn selection(names: &[&str]) -> Selection {
        let mut rows = vec![false; SYSCALLS.len()];
        names.iter().for_each(|name| rows[usize::from(lookup::index_by_name(name).unwrap())] = true);
        Selection { rows, ..select::Selection::default() }
    }

    fn written(names: &[&str], condition: &str) -> Result<usize, String> {
        of_rows(&parse(condition).unwrap(), &selection(names)).map(|found| found.len()).map_err(|why| why.to_string())
    }

    fn filter_text(names: &[&str], condition: &str) -> Option<String> {
        let row = &SYSCALLS[usize::from(lookup::index_by_name(names[0]).unwrap())];
        let scope = CallScope { abi: NATIVE_ABI, row: Some(row), is_request: false };
        text(&parse(condition).unwrap().bind(&scope, &mut Bindings::default())).flatten()
    }

    #[test]
    fn conditions_are_evaluated_completely_or_refused() {
        assert!(written(&["openat", "read"], "syscall == \"openat\" && ret < 0").unwrap() > 0);
        assert!(written(&["openat"], "duration > 100ms || errno == ENOENT").is_ok());
        assert!(written(&["openat"], "filename ~ \"/etc/*\" && flags & CREAT").is_ok());
        assert!(written(&["openat"], "!(ret == 3) && !(comm == \"sh\")").is_ok());
        let refused = written(&["read"], "fd.path ~ \"/etc/*\"").unwrap_err();
        assert!(
            refused.starts_with("--snapshot-on 'fd.path ~ \"/etc/*\"': the BPF programs cannot evaluate `fd.path ~ \"/etc/*\"` for read"),
            "{refused}"
        );
        assert!(written(&["openat"], "filename ~ \"*/etc\"").is_err());
        let unknown = written(&["openat"], "rett < 0").unwrap_err();
        assert!(unknown.starts_with("--snapshot-on 'rett < 0': no traced syscall or event has an argument or field `rett`"), "{unknown}");
        let never = written(&["openat"], "syscall == \"write\"").unwrap_err();
        assert!(never.starts_with("--snapshot-on 'syscall == \"write\"': "), "{never}");
    }

    #[test]
    fn the_filters_of_tracepoints_evaluate_results() {
        let text = |condition| filter_text(&["openat"], condition);
        assert_eq!(text("ret < 0 && syscall == \"openat\"").as_deref(), Some("ret < 0"));
        assert_eq!(text("errno == ENOENT || comm == \"cat\"").as_deref(), Some("(ret == -2 || comm == \"cat\")"));
        assert_eq!(text("!(tid == 5)").as_deref(), Some("!(common_pid == 5)"));
        assert_eq!(text("syscall == \"openat\"").as_deref(), Some(""));
        assert_eq!(text("duration > 5ms"), None);
        assert_eq!(text("pid == 5"), None, "common_pid is the thread");
        assert_eq!(of_numbers("ret < 0", &[1, 2]), "((id == 1 || id == 2) && (ret < 0))");
        assert_eq!(of_numbers("", &[1]), "(id == 1)");
    }

    #[test]
    fn files_are_named_several_times_in_a_ring() {
        assert_eq!(epoch(64 << 20, 0), 4 << 20);
        assert_eq!(epoch(RING_MIN, 0), 16 << 10);
        assert_eq!(epoch(RING_MIN, 65_000), 16 << 10, "there is a bound");
        assert!(epoch(64 << 20, 8192) < 128 << 10);
    }
}
