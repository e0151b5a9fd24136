//! The summary's text: perf trace's table, with quantiles after its columns.

use super::stat::Stat;
use crate::beauty::errno;
use std::fmt::Write;

/// One syscall's line.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub stat: Stat,
}

const HEAD: &str = "   syscall            calls  errors  total       min       avg       max       stddev       p50       p95       p99
                                     (msec)    (msec)    (msec)    (msec)        (%)    (msec)    (msec)    (msec)
   --------------- --------  ------ -------- --------- --------- ---------     ------ --------- --------- ---------
";

/// Writes a group's table: the syscalls that took longest first, `limit` of them.
pub fn write(out: &mut String, mut rows: Vec<Row>, limit: Option<usize>) {
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|a, b| (b.stat.times.total, b.stat.calls).cmp(&(a.stat.times.total, a.stat.calls)).then_with(|| a.name.cmp(&b.name)));
    out.push_str(HEAD);
    let limit = limit.unwrap_or(rows.len());
    for row in rows.iter().take(limit) {
        line(out, row);
        errnos(out, &row.stat);
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

fn line(out: &mut String, Row { name, stat }: &Row) {
    let times = &stat.times;
    let _ = write!(out, "   {name:<15} {:>8} {:>6} ", stat.calls, stat.errors);
    if times.count == 0 {
        let _ = writeln!(out, "{0:>9} {0:>9} {0:>9} {0:>9} {0:>10} {0:>9} {0:>9} {0:>9}", "-");
        return;
    }
    let [total, min, average, max] = [times.total, times.min, times.average(), times.max].map(millis);
    let [half, most, nearly_all] = [0.5, 0.95, 0.99].map(|share| millis(times.quantile(share)));
    let error = times.relative_error();
    let _ = writeln!(out, "{total:>9.3} {min:>9.3} {average:>9.3} {max:>9.3} {error:>9.2}% {half:>9.3} {most:>9.3} {nearly_all:>9.3}");
}

fn errnos(out: &mut String, stat: &Stat) {
    let mut errnos = stat.errnos.clone();
    errnos.sort_by_key(|(errno, count)| (std::cmp::Reverse(*count), *errno));
    for (errno, count) in errnos {
        let _ = match errno::name(errno) {
            Some(name) => writeln!(out, "\t\t\t\t{name}: {count}"),
            None => writeln!(out, "\t\t\t\terrno {errno}: {count}"),
        };
    }
}

fn millis(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
