//! The summary as JSON objects: one for each row of a table, and one for each table with its totals.

use super::groups::{Groups, Members};
use super::histogram::{self, Bucket};
use super::numbers::CallKey;
use super::objects::Objects;
use super::stat::{Durations, Stat};
use super::table::Row;
use super::{Period, Table, TableOptions};
use crate::beauty::errno;
use crate::event::Time;
use crate::session::Session;
use crate::text::json::{Bytes, Integer, line};
use serde::Serialize;
use serde_json::Value;

/// The members that all objects of a table have.
#[derive(Serialize)]
struct Head<'t> {
    /// `trace`, or `interval` with `--interval`.
    span: &'static str,
    from: Moment,
    to: Moment,
    #[serde(flatten)]
    tasks: Tasks<'t>,
}

/// A time in nanoseconds of both clocks.
#[derive(Serialize)]
struct Moment {
    monotonic: String,
    realtime: String,
}

/// The tasks whose calls are in a table. There are no members if the table is about all tasks.
#[derive(Default, Serialize)]
struct Tasks<'t> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comm: Option<Bytes<'t>>,
    /// The cgroup of the tasks, or the cgroups that they were in one after the other; `null` if these are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroups: Option<Option<Vec<Bytes<'t>>>>,
}

/// A row: the calls of one syscall, or with `--by` those of one syscall and one object.
#[derive(Serialize)]
#[serde(tag = "type", rename = "summary")]
struct RowObject<'t> {
    #[serde(flatten)]
    head: &'t Head<'t>,
    name: &'t str,
    /// The ABI and the number of a syscall for which rtrace has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    abi: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'t Value>,
    /// Why the row has no object.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_object: Option<&'static str>,
    #[serde(flatten)]
    counts: CallCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    errnos: Option<Vec<ErrnoCount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Vec<BucketObject>>,
}

/// The totals of a table.
#[derive(Serialize)]
#[serde(tag = "type", rename = "summary_total")]
struct TotalObject<'t> {
    #[serde(flatten)]
    head: &'t Head<'t>,
    /// All events of these tasks, calls included.
    events: Integer,
    #[serde(flatten)]
    counts: CallCounts,
    major_faults: Integer,
    minor_faults: Integer,
    /// The CPU time in nanoseconds, with `--sched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<Integer>,
    /// The number of rows that `--max-summary` leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

#[derive(Serialize)]
struct CallCounts {
    calls: Integer,
    errors: Integer,
    /// The number of calls whose entry or exit was not seen.
    untimed: Integer,
    #[serde(skip_serializing_if = "Option::is_none")]
    durations: Option<DurationsObject>,
}

/// Durations in nanoseconds.
#[derive(Serialize)]
struct DurationsObject {
    /// The number of calls that have a duration.
    calls: Integer,
    total: Integer,
    min: Integer,
    average: Integer,
    max: Integer,
    p50: Integer,
    p95: Integer,
    p99: Integer,
    /// The standard error of the average, divided by the average.
    relative_error: f64,
}

#[derive(Serialize)]
struct ErrnoCount {
    errno: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    calls: Integer,
}

#[derive(Serialize)]
struct BucketObject {
    from: Integer,
    to: Integer,
    calls: Integer,
}

#[derive(Serialize)]
struct LeftOut {
    rows: Integer,
    calls: Integer,
    total: Integer,
}

/// Appends the objects of the tables. A period without events has one total, whose numbers are zero.
///
/// # Errors
/// None in practice: all values can be represented in JSON.
pub fn write(
    out: &mut Vec<u8>,
    tables: &[Table],
    period: &Period,
    (groups, objects, options): (&Groups, &Objects, &TableOptions),
    session: &Session,
) -> serde_json::Result<()> {
    let head = |tasks| Head {
        span: if period.is_interval { "interval" } else { "trace" },
        from: Moment::of(period.from, session),
        to: Moment::of(period.to, session),
        tasks,
    };
    for table in tables {
        write_table(out, table, &head(Tasks::of(groups.members(table.group))), objects, options)?;
    }
    if tables.is_empty() {
        write_table(out, &Table::default(), &head(Tasks::default()), objects, options)?;
    }
    Ok(())
}

fn write_table(out: &mut Vec<u8>, table: &Table, head: &Head, objects: &Objects, options: &TableOptions) -> serde_json::Result<()> {
    let limit = options.max_rows.unwrap_or(table.rows.len()).min(table.rows.len());
    let (shown, rest) = table.rows.split_at(limit);
    for row in shown {
        line(out, &row_object(row, head, objects, options))?;
    }
    let mut all = Stat::default();
    table.rows.iter().for_each(|row| all.add(&row.stat));
    let left_out = |rows: &[Row]| LeftOut {
        rows: Integer(rows.len() as u64),
        calls: Integer(rows.iter().map(|row| row.stat.calls).sum()),
        total: Integer(rows.iter().fold(0, |total, row| total.saturating_add(row.stat.times.total))),
    };
    let total = TotalObject {
        head,
        events: Integer(table.counts.events),
        counts: CallCounts::of(&all),
        major_faults: Integer(table.counts.major_faults),
        minor_faults: Integer(table.counts.minor_faults),
        runtime: table.counts.runtime.map(Integer),
        left_out: (!rest.is_empty()).then(|| left_out(rest)),
    };
    line(out, &total)
}

fn row_object<'t>(row: &'t Row, head: &'t Head, objects: &'t Objects, options: &TableOptions) -> RowObject<'t> {
    let (abi, number) = match row.call {
        CallKey::Row(_) => (None, None),
        CallKey::Number(abi, number) => (Some(abi.name()), Some(number)),
    };
    let object = objects.value(row.object);
    let errno = |(errno, calls)| ErrnoCount { errno, name: errno::name(errno), calls: Integer(calls) };
    let bucket = |Bucket { from, to, calls }| BucketObject { from: Integer(from), to: Integer(to), calls: Integer(calls) };
    RowObject {
        head,
        name: &row.name,
        abi,
        number,
        object: object.and_then(Result::ok),
        without_object: object.and_then(Result::err),
        counts: CallCounts::of(&row.stat),
        errnos: options.errnos.then(|| row.stat.errnos_by_count().into_iter().map(errno).collect()),
        histogram: options.histogram.then(|| histogram::buckets(&row.stat.times).into_iter().map(bucket).collect()),
    }
}

impl Moment {
    fn of(time: Time, session: &Session) -> Moment {
        let realtime = i128::from(time.0) + i128::from(session.realtime_offset);
        Moment { monotonic: time.0.to_string(), realtime: realtime.to_string() }
    }
}

impl<'t> Tasks<'t> {
    fn of(members: Option<Members<'t>>) -> Tasks<'t> {
        match members {
            Some(Members::Thread { task, comm }) => {
                Tasks { pid: Some(task.pid), tid: Some(task.tid), comm: comm.map(Bytes), ..Tasks::default() }
            }
            Some(Members::Process { pid, comm }) => Tasks { pid: Some(pid), comm: comm.map(Bytes), ..Tasks::default() },
            Some(Members::Cgroups(known)) => {
                let cgroups = known.map(|cgroups| cgroups.iter().map(|cgroup| Bytes(cgroup)).collect());
                Tasks { cgroups: Some(cgroups), ..Tasks::default() }
            }
            Some(Members::All) | None => Tasks::default(),
        }
    }
}

impl CallCounts {
    fn of(stat: &Stat) -> CallCounts {
        CallCounts {
            calls: Integer(stat.calls),
            errors: Integer(stat.errors),
            untimed: Integer(stat.untimed),
            durations: (stat.times.count > 0).then(|| DurationsObject::of(&stat.times)),
        }
    }
}

impl DurationsObject {
    fn of(times: &Durations) -> DurationsObject {
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| Integer(times.quantile(share)));
        DurationsObject {
            calls: Integer(times.count),
            total: Integer(times.total),
            min: Integer(times.min),
            average: Integer(times.average()),
            max: Integer(times.max),
            p50,
            p95,
            p99,
            relative_error: times.relative_error() / 100.0,
        }
    }
}
