//! perf trace's table, with quantiles after its columns. Programs parse it, so its columns do not change.

use super::TableOptions;
use super::histogram;
use super::numbers::CallKey;
use super::objects::ObjectId;
use super::stat::Stat;
use crate::beauty::errno;
use std::fmt::Write;

/// A row of a table.
#[derive(Debug)]
pub struct Row {
    /// The syscall that the row counts.
    pub call: CallKey,
    /// The syscall's name, escaped ([`CallKey::name`]).
    pub name: String,
    /// The object of `--by`. Perf's table has no column for it.
    pub object: ObjectId,
    /// The object's text, escaped; empty if the summary is not by objects.
    pub object_name: String,
    /// The counts and durations of the syscall's calls with this object.
    pub stat: Stat,
}

const HEAD: &str = "   syscall            calls  errors  total       min       avg       max       stddev       p50       p95       p99
                                     (msec)    (msec)    (msec)    (msec)        (%)    (msec)    (msec)    (msec)
   --------------- --------  ------ -------- --------- --------- ---------     ------ --------- --------- ---------
";

/// Sorts the rows that took longest first.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        let by_time = (b.stat.times.total, b.stat.calls).cmp(&(a.stat.times.total, a.stat.calls));
        by_time.then_with(|| a.name.cmp(&b.name)).then_with(|| a.object_name.cmp(&b.object_name))
    });
}

/// Writes the table of a group: the first `options.max_rows` rows.
pub fn write(out: &mut String, rows: &[Row], options: &TableOptions) {
    if rows.is_empty() {
        return;
    }
    out.push_str(HEAD);
    let limit = options.max_rows.unwrap_or(rows.len());
    for row in rows.iter().take(limit) {
        line(out, row);
        errnos(out, &row.stat);
        if options.histogram {
            histogram::write(out, &row.stat.times);
        }
    }
    let rest: &[Row] = rows.get(limit..).unwrap_or_default();
    if !rest.is_empty() {
        let calls: u64 = rest.iter().map(|row| row.stat.calls).sum();
        let _ = writeln!(out, "   and {} more, {calls} calls", rest.len());
    }
    let untimed: u64 = rows.iter().map(|row| row.stat.untimed).sum();
    if untimed > 0 {
        let _ = writeln!(out, "   (of these, {untimed} counted but not timed: their entry or exit was not seen)");
    }
}

fn line(out: &mut String, Row { name, stat, .. }: &Row) {
    let times = &stat.times;
    let _ = write!(out, "   {name:<15} {:>8} {:>6} ", stat.calls, stat.errors);
    if times.count == 0 {
        let _ = writeln!(out, "{0:>9} {0:>9} {0:>9} {0:>9} {0:>10} {0:>9} {0:>9} {0:>9}", "-");
        return;
    }
    let [total, min, average, max] = [times.total, times.min, times.average(), times.max].map(millis);
    let [half, most, nearly_all] = [0.5, 0.95, 0.99].map(|share| millis(times.quantile(share)));
    let error = times.relative_error();
    let _ = writeln!(out, "{total:>9} {min:>9} {average:>9} {max:>9} {error:>9.2}% {half:>9} {most:>9} {nearly_all:>9}");
}

/// Writes the number of calls by errno, the most frequent first.
pub fn errnos(out: &mut String, stat: &Stat) {
    for (errno, count) in stat.errnos_by_count() {
        let _ = match errno::name(errno) {
            Some(name) => writeln!(out, "\t\t\t\t{name}: {count}"),
            None => writeln!(out, "\t\t\t\terrno {errno}: {count}"),
        };
    }
}

/// Formats milliseconds with three decimals, or with six if three would show a positive time as 0.000.
fn millis(nanoseconds: u64) -> String {
    let millis = nanoseconds as f64 / 1e6;
    if (1..500).contains(&nanoseconds) { format!("{millis:.6}") } else { format!("{millis:.3}") }
}
