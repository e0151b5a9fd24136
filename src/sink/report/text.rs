//! The report as text.
//!
//! ```text
//!  Call paths of 5 calls, which took 1.500 ms:
//!
//!     share       total ms       calls     average ms  call path
//!    100.0%          1.500           5          0.300  sh
//!                                                      main
//!     80.0%          1.200           4          0.300    copy
//!     80.0%          1.200           4          0.300    read(...)
//!     20.0%          0.300           1          0.300    write(...)
//! ```

use super::rows::{Row, Scale, What, rows};
use super::{Sums, Totals};
use crate::event::Verdict;
use crate::request::Report;
use crate::sink::call_tree::{NodeKind, Tree};
use crate::text::{escape, number};

/// The columns in front of the path.
const COLUMNS: usize = 53;

/// Returns the text of a report.
pub fn report(tree: &Tree<Sums>, wanted: &Report, totals: &Totals, verdict: &Verdict) -> Vec<u8> {
    let mut out = head(totals, verdict).into_bytes();
    if totals.sums.calls == 0 {
        return out;
    }
    let scale = Scale::new(wanted, totals.sums);
    out.extend_from_slice(b"\n    share       total ms       calls     average ms  call path\n");
    for row in rows(&tree.summed(), &scale) {
        line(&mut out, &row, &scale, wanted.share_min);
    }
    out.push(b'\n');
    out
}

/// Returns what the report says about all calls.
fn head(totals: &Totals, verdict: &Verdict) -> String {
    let Totals { sums, without_stack, ends_early, cut_off } = *totals;
    let calls = counted(sums.calls, "call");
    let mut out = format!("\n Call paths of {calls}, which took {} ms:\n", millis(sums.time));
    out += &match sums.calls - sums.timed {
        0 => String::new(),
        1 => " 1 call has no known duration, because it did not return or a record is missing: it counts, and has no time.\n".to_owned(),
        more => format!(
            " {more} calls have no known duration, because they did not return or records are missing: they count, and have no time.\n"
        ),
    };
    if sums.calls > 0 && without_stack == sums.calls {
        out += " No call has a stack (`rtrace record --call-graph dwarf` records them): calls are shown by task and syscall.\n";
    } else if without_stack > 0 {
        out += &format!(" {} no stack: the path has only task and syscall.\n", with_verb(without_stack, "call", "has", "have"));
    }
    if ends_early > 0 {
        out += &format!(" {} unknown outermost callers.\n", with_verb(ends_early, "call", "has", "have"));
    }
    if cut_off > 0 {
        out += &format!(" {} a shortened path, because there are too many different paths.\n", with_verb(cut_off, "call", "has", "have"));
    }
    match verdict.calls.map(|calls| calls.lost) {
        Some(lost) if lost > 0 => out += &format!(" {} lost, and missing here.\n", with_verb(lost, "further call", "was", "were")),
        _ if verdict.lost_records > 0 => {
            out += &format!(" {} lost: calls are missing here.\n", with_verb(verdict.lost_records, "record", "was", "were"))
        }
        _ => {}
    }
    out
}

fn line(out: &mut Vec<u8>, row: &Row, scale: &Scale, share_min: f64) {
    if row.is_continued {
        number::blanks(out, COLUMNS);
    } else {
        let Sums { calls, timed, time } = row.sums;
        let total = if timed == 0 { "?".to_owned() } else { millis(time) };
        let average = row.sums.average().map_or("?".to_owned(), millis);
        out.extend_from_slice(format!(" {:>7.1}% {total:>14} {calls:>11} {average:>14}  ", scale.share(&row.sums)).as_bytes());
    }
    number::blanks(out, 2 * row.level);
    match row.what {
        What::Node(name, kind) => {
            escape::plain(out, name);
            if kind == NodeKind::Syscall {
                out.extend_from_slice(b"(...)");
            }
        }
        What::LeftOut(branches) => {
            let are = if branches == 1 { "branch" } else { "branches" };
            out.extend_from_slice(format!("[{branches} {are} below {share_min}%]").as_bytes());
        }
    }
    out.push(b'\n');
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn with_verb(number: u64, noun: &str, one: &str, several: &str) -> String {
    format!("{} {}", counted(number, noun), if number == 1 { one } else { several })
}

/// Returns nanoseconds as milliseconds with three decimals.
fn millis(nanoseconds: u64) -> String {
    let mut text = Vec::new();
    number::millis(&mut text, i64::try_from(nanoseconds).unwrap_or(i64::MAX), 0);
    String::from_utf8(text).unwrap_or_default()
}
