//! The table of `strace -c`. Its times are those between entry and return of a call, as with `strace -w`.

use super::stat::Stat;
use super::table::Row;
use crate::show::strace::SortBy;
use std::cmp::Reverse;
use std::fmt::Write;

const HEAD: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
";
const RULE: &str = "------ ----------- ----------- --------- --------- ----------------\n";

/// Writes the table of a group.
pub fn write(out: &mut String, rows: &[Row], by: SortBy) {
    let mut rows: Vec<&Row> = rows.iter().collect();
    match by {
        SortBy::Time => rows.sort_by_key(|row| Reverse(row.stat.times.total)),
        SortBy::Calls => rows.sort_by_key(|row| Reverse(row.stat.calls)),
        SortBy::Errors => rows.sort_by_key(|row| Reverse(row.stat.errors)),
        SortBy::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        SortBy::Nothing => {}
    }
    let mut total = Stat::default();
    rows.iter().for_each(|row| total.add(&row.stat));
    out.push_str(HEAD);
    let whole = total.times.total.max(1) as f64;
    rows.iter().for_each(|row| line(out, &row.name, &row.stat, 100.0 * row.stat.times.total as f64 / whole));
    out.push_str(RULE);
    line(out, "total", &total, 100.0);
}

/// Writes a row. A call whose duration is not known counts as a call that took no time.
fn line(out: &mut String, name: &str, stat: &Stat, share: f64) {
    let micros = stat.times.total / 1000;
    let each = micros.checked_div(stat.calls).unwrap_or_default();
    let errors = if stat.errors == 0 { String::new() } else { stat.errors.to_string() };
    // Writing to a String does not fail.
    let _ = writeln!(out, "{share:6.2} {:4}.{:06} {each:>11} {:>9} {errors:>9} {name}", micros / 1_000_000, micros % 1_000_000, stat.calls);
}
