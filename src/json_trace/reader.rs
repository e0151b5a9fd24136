//! Reads a file of objects, line by line.

use super::call::{abi, call};
use super::object::{self, Argument, Begin, Bytes, End, Integer, Kind, Lost, Task, Tracepoint, Version};
use super::value::{Given, Moment, given};
use crate::beauty::decode::{Context, Decoded};
use crate::beauty::json::SCHEMA;
use crate::event::verdict::{Shortage, ShortageKind, Verdict};
use crate::event::{Comm, Event, EventIndex, EventKind, TaskEnd, TaskId, Time};
use crate::recording::Regular;
use crate::session::{EventSpec, Role, Scope, Session, Terms};
use anyhow::{Context as _, anyhow};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::error::Category;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most bytes of a line. The longest that rtrace writes have a few hundred KiB.
const LINE_MAX: usize = 16 << 20;

/// The most damaged lines that are kept. The others are counted.
const DAMAGES_MAX: usize = 8;

/// The most different names of events.
const NAMES_MAX: usize = 1 << 15;

/// The most processes whose names are known at a time.
const COMMS_MAX: usize = 1 << 16;

/// An open trace.
pub struct JsonTrace {
    path: PathBuf,
    input: BufReader<File>,
    session: Session,
    /// The line that was read last, and its number.
    text: Vec<u8>,
    number: u64,
    names: FxHashMap<Vec<u8>, EventIndex>,
    /// The names of the processes that run, as far as they are known.
    comms: FxHashMap<i32, Comm>,
    /// Sentences about the first damaged lines, and the number of the others.
    damages: Vec<String>,
    more_damages: u64,
    lost: u64,
    has_events: bool,
    /// The object of a summary or report.
    has_others: bool,
    verdict: Option<Verdict>,
}

/// What one object says.
pub struct Line {
    /// Where the process comes from, and then what the object is about.
    pub events: Vec<Event>,
    arguments: Vec<Argument>,
}

impl Line {
    /// Returns the structs and arrays that are arguments of the call in an event.
    pub fn given<'c>(&self, event: &'c Event) -> Vec<Given<'c>> {
        let EventKind::Call(call) = &event.kind else { return Vec::new() };
        let decoded = Decoded::new(call, Context::new(&|_| None, 0));
        let mut kinds = decoded.args().map(|argument| argument.row().map(|row| &row.kind));
        let mut found = Vec::new();
        for (at, argument) in self.arguments.iter().enumerate() {
            let kind = kinds.next().flatten();
            for (moment, json) in [(Moment::Entry, &argument.entry), (Moment::Exit, &argument.exit)] {
                let value = json.as_ref().and_then(|json| given(json, (call, at), kind));
                found.extend(value.map(|value| Given { argument: at, moment, value }));
            }
        }
        found
    }
}

impl JsonTrace {
    /// Returns whether a file begins as JSON does.
    pub fn is_json(path: &Path) -> bool {
        let mut start = [0];
        File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start == *b"{"
    }

    /// Opens a trace, and reads its first object.
    ///
    /// # Errors
    /// The file cannot be read, does not begin as a trace does, or is of a later version.
    pub fn open(path: &Path) -> anyhow::Result<JsonTrace> {
        let mut trace = JsonTrace {
            path: path.to_owned(),
            input: BufReader::with_capacity(1 << 18, Regular::open(path)?.file),
            session: Session::default(),
            text: Vec::new(),
            number: 0,
            names: FxHashMap::default(),
            comms: FxHashMap::default(),
            damages: Vec::new(),
            more_damages: 0,
            lost: 0,
            has_events: false,
            has_others: false,
            verdict: None,
        };
        trace.read_line()?;
        trace.session = begin(&trace.text).map_err(|why| anyhow!("{}:1: {why}", path.display()))?;
        Ok(trace)
    }

    /// Returns the session that the first object describes, with the events that were read until now.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns what is wrong with the file, as sentences that begin with the number of the line, and how many other
    /// lines cannot be read.
    pub fn damages(&self) -> (&[String], u64) {
        (&self.damages, self.more_damages)
    }

    /// Returns what the trace lacks, as far as it was read.
    pub fn verdict(&self) -> Verdict {
        self.verdict.clone().unwrap_or_else(|| Verdict { lost_records: self.lost, ..Verdict::default() })
    }

    /// Returns whether the trace has a summary or a report, and no call or other event.
    pub fn is_summary(&self) -> bool {
        self.has_others && !self.has_events
    }

    /// Returns the times of the first object and of the last one that has a time. The last one is searched for at the
    /// end of the file.
    pub fn lasts(&self) -> Option<(Time, Time)> {
        const TAIL: u64 = 4 << 20;
        let Regular { file, size } = Regular::open(&self.path).ok()?;
        let mut tail = vec![0; size.min(TAIL) as usize];
        file.read_exact_at(&mut tail, size.saturating_sub(TAIL)).ok()?;
        let mut lines = tail.split(|byte| *byte == b'\n').rev();
        let last = lines.find_map(|line| serde_json::from_slice::<Task>(line).ok())?;
        Some((self.session.started, Time(last.time.monotonic.unsigned())))
    }

    /// Reads up to the next object that says something about a task, and returns what it says; `None` at the end. Lines
    /// that cannot be read are left out ([`JsonTrace::damages`]).
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_line(&mut self) -> anyhow::Result<Option<Line>> {
        while self.read_line()? {
            let is_last = !self.text.ends_with(b"\n");
            match self.line() {
                Ok(Some(line)) => return Ok(Some(line)),
                Ok(None) => {}
                // The end of the file has a sentence of its own.
                Err(_) if is_last && self.text.len() <= LINE_MAX => {}
                Err(why) => self.damaged(&format!("{}: this line is left out: {why}", self.number)),
            }
        }
        if self.verdict.is_none() {
            const WHY: &str = "rtrace was killed or could not write it, or wrote several files";
            self.damaged(&format!("{}: the trace ends here without its last object: {WHY}", self.number));
            self.verdict = Some(self.verdict());
        }
        Ok(None)
    }

    /// Reads the next line, with its end but without the part that is too long. Returns whether there is one.
    fn read_line(&mut self) -> anyhow::Result<bool> {
        let failed = || format!("cannot read {}", self.path.display());
        self.text.clear();
        let most = LINE_MAX as u64 + 1;
        let bytes = self.input.by_ref().take(most).read_until(b'\n', &mut self.text).with_context(failed)?;
        self.number += u64::from(bytes > 0);
        if bytes as u64 == most && !self.text.ends_with(b"\n") {
            self.input.skip_until(b'\n').with_context(failed)?;
        }
        Ok(bytes > 0)
    }

    /// Takes the line that was read. Returns what it says about a task, if it does.
    ///
    /// # Errors
    /// It is no object, or not as the schema says: a part of a sentence.
    fn line(&mut self) -> Result<Option<Line>, String> {
        if self.text.len() > LINE_MAX {
            return Err(format!("it has more than {} MiB", LINE_MAX >> 20));
        }
        if self.text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let kind = parsed::<Kind>(&self.text)?.kind.into_owned();
        let mut arguments = Vec::new();
        let (task, kind) = match kind.as_str() {
            "call" => {
                let (task, object) = (parsed::<Task>(&self.text)?, parsed::<object::Call>(&self.text)?);
                let call = call(&task, &object, self.session.abi)?;
                arguments = object.arguments.unwrap_or_default();
                (task, Some(EventKind::Call(Box::new(call))))
            }
            "event" => (parsed(&self.text)?, Some(self.tracepoint()?)),
            "exit" => (parsed(&self.text)?, Some(EventKind::Exit(task_end(&parsed(&self.text)?)))),
            "pending" | "signal" | "fault" => (parsed(&self.text)?, None),
            "lost" => {
                self.lost = self.lost.saturating_add(parsed::<Lost>(&self.text)?.records.map_or(1, Integer::unsigned));
                return Ok(None);
            }
            "end" => {
                self.verdict = Some(verdict(parsed(&self.text)?));
                return Ok(None);
            }
            "trace" | "notice" => return Ok(None),
            _ => {
                self.has_others = true;
                return Ok(None);
            }
        };
        self.has_events = true;
        let events = self.events(task, kind);
        Ok((!events.is_empty()).then_some(Line { events, arguments }))
    }

    /// Returns the tracepoint or probe of an object.
    fn tracepoint(&mut self) -> Result<EventKind, String> {
        let Tracepoint { name, called } = parsed(&self.text)?;
        let key = [&name.0[..], b"\0", called.as_ref().map_or(b"", |called| &called.0[..])].concat();
        let event = match self.names.get(&key) {
            Some(event) => *event,
            None if self.names.len() >= NAMES_MAX => return Err(format!("the trace has more than {NAMES_MAX} different events")),
            None => {
                let text = |bytes: &Bytes| String::from_utf8_lossy(&bytes.0).into_owned();
                let event = EventIndex(self.session.events.events.len() as u16);
                let terms = Terms { name: called.as_ref().map(text), ..Terms::default() };
                let spec = EventSpec { name: text(&name), role: Role::Tracepoint, sample_type: 0, format: None, shown: true, terms };
                self.session.events.events.push(spec);
                self.names.insert(key, event);
                event
            }
        };
        Ok(EventKind::Tracepoint { event, raw: Box::default(), stack: None, caller: None, call: None })
    }

    /// Returns the events of an object of a task: where the process comes from, and then what the object is about.
    fn events(&mut self, task: Task, kind: Option<EventKind>) -> Vec<Event> {
        let (id, time) = (TaskId { pid: task.pid, tid: task.tid }, Time(task.time.monotonic.unsigned()));
        let comm = task.comm.map(|comm| Comm::from(comm.0));
        let child = TaskId { pid: task.pid, tid: task.pid };
        let fork = task.parent.map(|parent| {
            let comm = self.comms.get(&parent).cloned();
            (TaskId { pid: parent, tid: parent }, comm, EventKind::Fork { child, flags: None })
        });
        match &comm {
            _ if matches!(kind, Some(EventKind::Exit(_))) && task.tid == task.pid => _ = self.comms.remove(&task.pid),
            Some(comm) if self.comms.len() < COMMS_MAX => _ = self.comms.insert(task.pid, Comm::clone(comm)),
            _ => {}
        }
        let exec = task.program.map(|path| (id, comm.clone(), EventKind::Exec { path: path.0.into(), old_tid: task.tid }));
        let all = fork.into_iter().chain(exec).chain(kind.map(|kind| (id, comm, kind)));
        all.map(|(id, comm, kind)| Event { time, cpu: task.cpu, task: id, comm, kind }).collect()
    }

    fn damaged(&mut self, sentence: &str) {
        match self.damages.len() < DAMAGES_MAX {
            true => self.damages.push(sentence.to_owned()),
            false => self.more_damages += 1,
        }
    }
}

fn task_end(end: &object::TaskEnd) -> TaskEnd {
    match (end.status, &end.killed) {
        (Some(status), _) => TaskEnd::Exited(status),
        (None, Some(killed)) => TaskEnd::Killed { signal: killed.signal, core_dumped: end.core_dumped },
        (None, None) if end.not_traced => TaskEnd::NotTraced,
        (None, None) => TaskEnd::Unknown,
    }
}

/// Returns what the last object says about what the trace lacks.
fn verdict(end: End) -> Verdict {
    let kind = |name: &str| ShortageKind::ALL.into_iter().find(|kind| kind.name() == name);
    let shortages = end
        .shortages
        .iter()
        .filter_map(|shortage| Some(Shortage { kind: kind(&shortage.of)?, count: shortage.count.map(Integer::unsigned) }));
    Verdict {
        lost_records: end.lost_records.unsigned(),
        given_up: end.calls.map_or(0, |calls| calls.given_up.unsigned()),
        not_permitted: end.not_permitted.unsigned(),
        shortages: shortages.collect(),
        unanswered_files: end.unanswered_files.into_iter().map(|path| path.0).collect(),
        ..Verdict::default()
    }
}

/// Returns the session that the first object describes.
fn begin(text: &[u8]) -> Result<Session, String> {
    let kind = parsed::<Kind>(text).map_err(|why| format!("this is no object of a trace: {why}"))?.kind;
    if kind != "trace" {
        return Err(format!("this is no trace of rtrace --json: the first object of a trace has the type \"trace\", and not {kind:?}"));
    }
    // The other members may be different in a later version.
    let schema = parsed::<Version>(text)?.schema;
    if schema > SCHEMA {
        return Err(format!(
            "the trace has version {schema} of the schema, and this rtrace reads version {SCHEMA}: use the rtrace that wrote it"
        ));
    }
    let begin = parsed::<Begin>(text)?;
    let monotonic = begin.started.monotonic;
    Ok(Session {
        started: Time(monotonic.unsigned()),
        realtime_offset: Integer(begin.started.realtime.0.saturating_sub(monotonic.0)).signed(),
        abi: abi(&begin.abi).ok_or_else(|| format!("no machine has the ABI {:?}", begin.abi))?,
        release: String::from_utf8_lossy(&begin.release.0).into_owned(),
        scope: match begin.scope.as_str() {
            "command" => Scope::Command,
            "tasks" => Scope::Tasks,
            _ => Scope::System,
        },
        ..Session::default()
    })
}

/// Parses an object.
///
/// # Errors
/// It is none, or lacks a member: a part of a sentence.
fn parsed<'t, T: Deserialize<'t>>(text: &'t [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| {
        let (why, column) = (error.to_string(), error.column());
        // Each line is the first one of its text.
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        match error.classify() {
            Category::Data => format!("the object is not as the schema says ({why}, column {column})"),
            _ => format!("it is no JSON ({why}, column {column})"),
        }
    })
}
