//! rtrace's own table: each time in the unit that fits its column, shares, quantiles and a total. The object is the
//! last column, since it may be long.

use super::stat::Stat;
use super::table::{Row, errnos};
use super::{TableOptions, histogram};
use crate::text::time_unit::Unit;
use std::fmt::Write;

/// The cells of a row. Times are in nanoseconds; `None` if no call was timed.
struct Cells<'a> {
    name: &'a str,
    object: &'a str,
    stat: &'a Stat,
    share: String,
    /// Total, average, p50, p95, p99 and maximum.
    times: Option<[u64; 6]>,
}

const TIMES: [&str; 6] = ["total", "avg", "p50", "p95", "p99", "max"];

/// Writes a table with the first `options.max_rows` rows, and the total of all rows.
pub fn write(out: &mut String, rows: &[Row], options: &TableOptions, object: Option<&str>) {
    if rows.is_empty() {
        return;
    }
    let mut all = Stat::default();
    rows.iter().for_each(|row| all.add(&row.stat));
    let whole = all.times.total;
    let limit = options.max_rows.unwrap_or(rows.len());
    let shown = rows.iter().take(limit).map(|row| Cells::new(&row.name, &row.object_name, &row.stat, whole));
    let cells: Vec<Cells> = shown.chain([Cells::new("total", "", &all, whole)]).collect();
    let layout = ColumnLayout::new(&cells, object);
    layout.head(out);
    for cells in &cells[..cells.len() - 1] {
        layout.line(out, cells);
        errnos(out, cells.stat);
        if options.histogram {
            histogram::write(out, &cells.stat.times);
        }
    }
    let rest: &[Row] = rows.get(limit..).unwrap_or_default();
    if !rest.is_empty() {
        let (calls, time) = rest.iter().fold((0, 0), |sum, row| (sum.0 + row.stat.calls, sum.1 + row.stat.times.total));
        let (rows, calls) = (plural(rest.len() as u64, "row"), plural(calls, "call"));
        let _ = writeln!(out, "   ... {rows} more with {calls}, {} of the time (--max-summary 0 shows all)", share(time, whole));
    }
    layout.rule(out);
    layout.line(out, &cells[cells.len() - 1]);
    if all.untimed > 0 {
        let _ = writeln!(out, "   (of these, {} counted but not timed: their entry or exit was not seen)", all.untimed);
    }
}

/// The widths of the columns, and the units of the times.
struct ColumnLayout<'a> {
    object: Option<&'a str>,
    name: usize,
    units: [Unit; 6],
    times: [usize; 6],
    calls: usize,
    errors: usize,
}

impl<'a> ColumnLayout<'a> {
    fn new(rows: &[Cells], object: Option<&'a str>) -> ColumnLayout<'a> {
        let widest = |text: &dyn Fn(&Cells) -> String, least: usize| rows.iter().map(|row| text(row).len()).max().unwrap_or(0).max(least);
        let units = std::array::from_fn(|i| Unit::of_all(rows.iter().filter_map(move |row| Some(row.times?[i]))));
        ColumnLayout {
            object,
            name: widest(&|row| row.name.to_owned(), 15),
            units,
            times: std::array::from_fn(|i| widest(&|row| row.times.map_or(String::new(), |times| units[i].text(times[i])), 8)),
            calls: widest(&|row| row.stat.calls.to_string(), 8),
            errors: widest(&|row| row.stat.errors.to_string(), 6),
        }
    }

    fn head(&self, out: &mut String) {
        let units: Vec<String> = self.units.iter().map(|unit| format!("({})", unit.name)).collect();
        let units: Vec<&str> = units.iter().map(String::as_str).collect();
        self.cells(out, ["syscall", "calls", "errors", "time", self.object.unwrap_or_default()], &TIMES);
        self.cells(out, ["", "", "", "(%)", ""], &units);
        self.rule(out);
    }

    fn rule(&self, out: &mut String) {
        let line = |width: usize| "-".repeat(width);
        let times: Vec<String> = self.times.iter().map(|width| line(*width)).collect();
        let times: Vec<&str> = times.iter().map(String::as_str).collect();
        let object = self.object.map_or(String::new(), |title| line(title.len().max(6)));
        self.cells(out, [&line(self.name), &line(self.calls), &line(self.errors), &line(6), &object], &times);
    }

    fn line(&self, out: &mut String, row: &Cells) {
        let times: Vec<String> = match row.times {
            Some(times) => times.iter().zip(self.units).map(|(time, unit)| unit.text(*time)).collect(),
            None => vec!["-".to_owned(); TIMES.len()],
        };
        let times: Vec<&str> = times.iter().map(String::as_str).collect();
        self.cells(out, [row.name, &row.stat.calls.to_string(), &row.stat.errors.to_string(), &row.share, row.object], &times);
    }

    fn cells(&self, out: &mut String, [name, calls, errors, share, object]: [&str; 5], times: &[&str]) {
        let mut line = format!("   {name:<0$} {calls:>1$} {errors:>2$}", self.name, self.calls, self.errors);
        for (i, (time, width)) in times.iter().zip(self.times).enumerate() {
            let _ = write!(line, " {time:>width$}");
            if i == 0 {
                let _ = write!(line, " {share:>6}");
            }
        }
        if !object.is_empty() {
            let _ = write!(line, "  {object}");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

impl<'a> Cells<'a> {
    fn new(name: &'a str, object: &'a str, stat: &'a Stat, whole: u64) -> Cells<'a> {
        let of = &stat.times;
        let times = (of.count > 0).then(|| [of.total, of.average(), of.quantile(0.5), of.quantile(0.95), of.quantile(0.99), of.max]);
        let share = if of.count > 0 { share(of.total, whole) } else { "-".to_owned() };
        Cells { name, object, stat, share, times }
    }
}

/// Formats a share: `73.5%`.
fn share(part: u64, whole: u64) -> String {
    match 100.0 * part as f64 / whole as f64 {
        _ if part == 0 => "0%".to_owned(),
        percent if percent < 0.05 => "<0.1%".to_owned(),
        percent => format!("{percent:.1}%"),
    }
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
