//! perf trace's table, with quantiles after its columns. Programs read it, so its columns stay where they are.

use super::Look;
use super::histogram;
use super::stat::Stat;
use crate::beauty::errno;
use std::fmt::Write;

/// One line.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    /// Of `--by`; this table has no such column.
    pub object: String,
    pub stat: Stat,
}

const HEAD: &str = "   syscall            calls  errors  total       min       avg       max       stddev       p50       p95       p99
                                     (msec)    (msec)    (msec)    (msec)        (%)    (msec)    (msec)    (msec)
   --------------- --------  ------ -------- --------- --------- ---------     ------ --------- --------- ---------
";

/// What took longest comes first.
pub fn in_order(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        let by_time = (b.stat.times.total, b.stat.calls).cmp(&(a.stat.times.total, a.stat.calls));
        by_time.then_with(|| a.name.cmp(&b.name)).then_with(|| a.object.cmp(&b.object))
    });
}

/// Writes a group's table: the syscalls that took longest first, `look.max_rows` of them.
pub fn write(out: &mut String, mut rows: Vec<Row>, look: &Look) {
    if rows.is_empty() {
        return;
    }
    in_order(&mut rows);
    out.push_str(HEAD);
    let limit = look.max_rows.unwrap_or(rows.len());
    for row in rows.iter().take(limit) {
        line(out, row);
        errnos(out, &row.stat);
        if look.histogram {
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

/// How often each errno came, the most frequent first.
pub fn errnos(out: &mut String, stat: &Stat) {
    let mut errnos = stat.errnos.clone();
    errnos.sort_by_key(|(errno, count)| (std::cmp::Reverse(*count), *errno));
    for (errno, count) in errnos {
        let _ = match errno::name(errno) {
            Some(name) => writeln!(out, "\t\t\t\t{name}: {count}"),
            None => writeln!(out, "\t\t\t\terrno {errno}: {count}"),
        };
    }
}

/// Milliseconds with three decimals; with six where three would show 0.000 for what took some time.
fn millis(nanoseconds: u64) -> String {
    let millis = nanoseconds as f64 / 1e6;
    if (1..500).contains(&nanoseconds) { format!("{millis:.6}") } else { format!("{millis:.3}") }
}
