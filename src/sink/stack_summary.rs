//! `--stack-summary`: after the summary, the call paths of each syscall that took most time.

use super::output::SharedOutput;
use super::{Sink, TraceResult, View};
use crate::beauty::json::stack as stack_object;
use crate::beauty::lookup;
use crate::beauty::perf::frames;
use crate::event::frame::ImageId;
use crate::event::{Call, Event, EventKind, Stack};
use crate::request::{Graphs, Weight};
use crate::show::Style;
use crate::text::json::{self, Bytes, Integer};
use crate::text::number;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::io;
use std::sync::{Arc, PoisonError};

/// The maximum number of paths. Calls from further paths are counted without a path.
const PATHS_MAX: usize = 1 << 16;

/// The sink that sums up calls by call path and prints the paths at the end.
pub struct StackSummary {
    most: usize,
    weight: Weight,
    style: Style,
    output: SharedOutput,
    calls: FxHashMap<Vec<u8>, FxHashMap<Key, Path>>,
    paths: usize,
}

/// The addresses of a path as offsets in files, which are the same for all processes that run these files.
type Key = Box<[(Option<ImageId>, u64)]>;

/// The calls from one path.
struct Path {
    /// The process of one of the calls, which the frames are resolved for.
    pid: i32,
    /// The stack of that call.
    stack: Option<Arc<Stack>>,
    calls: u64,
    /// The total time in nanoseconds.
    total: u64,
}

impl StackSummary {
    /// Creates the sink, or returns `None` if no stack summary is requested.
    pub fn new(graphs: &Graphs, style: Style, output: SharedOutput) -> Option<StackSummary> {
        let most = usize::from(graphs.summary?);
        Some(StackSummary { most, weight: graphs.weight, style, output, calls: FxHashMap::default(), paths: 0 })
    }

    fn call(&mut self, event: &Event, call: &Call) {
        let mut name = Vec::new();
        lookup::write_name(&mut name, lookup::row(call.abi, call.nr), call.abi, call.nr);
        let stack = call.stack.as_ref().filter(|_| self.paths < PATHS_MAX);
        let key: Key = stack.map(|stack| stack.frames.iter().map(|frame| (frame.image, frame.svma)).collect()).unwrap_or_default();
        let paths = self.calls.entry(name).or_default();
        let path = paths.entry(key).or_insert_with(|| {
            self.paths += 1;
            Path { pid: event.task.pid, stack: stack.cloned(), calls: 0, total: 0 }
        });
        path.calls += 1;
        path.total += call.duration().unwrap_or(0);
    }

    fn weight(&self, path: &Path) -> u64 {
        match self.weight {
            Weight::Time => path.total,
            Weight::Count => path.calls,
        }
    }

    /// Returns the syscalls with their weights and their paths, the heaviest first.
    fn sorted(&self) -> Vec<(&Vec<u8>, u64, Vec<&Path>)> {
        let mut calls = Vec::new();
        for (name, paths) in &self.calls {
            let mut paths: Vec<&Path> = paths.values().collect();
            paths.sort_by_key(|path| (Reverse(self.weight(path)), path.stack.as_ref().map(|stack| stack.frames.len())));
            calls.push((name, paths.iter().map(|path| self.weight(path)).sum(), paths));
        }
        calls.sort_by_key(|(name, weight, _)| (Reverse(*weight), *name));
        calls
    }

    fn text(&self, view: &View) -> Vec<u8> {
        let mut out = b"\n Call paths:\n".to_vec();
        for (name, weight, paths) in self.sorted() {
            for path in paths.iter().take(self.most) {
                out.extend_from_slice(b"\n   ");
                out.extend_from_slice(name);
                out.extend_from_slice(b": ");
                number::uint(&mut out, path.calls);
                out.extend_from_slice(if path.calls == 1 { b" call, " } else { b" calls, " });
                number::millis(&mut out, i64::try_from(path.total).unwrap_or(i64::MAX), 0);
                let share = if weight == 0 { 0.0 } else { 100.0 * self.weight(path) as f64 / weight as f64 };
                out.extend_from_slice(format!(" ms, {share:.1}%\n").as_bytes());
                if let Some(stack) = &path.stack {
                    frames::write(&mut out, path.pid, stack, 6, view.names);
                }
            }
            if paths.len() > self.most {
                out.extend_from_slice(format!("   and {} more paths\n", paths.len() - self.most).as_bytes());
            }
        }
        out.push(b'\n');
        out
    }

    /// Returns an object for each path that is shown.
    fn objects(&self, view: &View) -> serde_json::Result<Vec<u8>> {
        let mut out = Vec::new();
        for (name, _, paths) in self.sorted() {
            for path in paths.iter().take(self.most) {
                let mut stack = Vec::new();
                path.stack.iter().for_each(|of| stack_object::write(&mut stack, path.pid, of, view.names));
                let object = PathObject {
                    name: Bytes(name),
                    calls: Integer(path.calls),
                    total: Integer(path.total),
                    paths: Integer(paths.len() as u64),
                    stack: serde_json::from_slice(&stack).unwrap_or_default(),
                };
                json::line(&mut out, &object)?;
            }
        }
        Ok(out)
    }
}

/// The calls of one syscall from one path.
#[derive(Serialize)]
#[serde(tag = "type", rename = "call_path")]
struct PathObject<'a> {
    name: Bytes<'a>,
    calls: Integer,
    /// The sum of the durations in nanoseconds.
    total: Integer,
    /// The number of paths of this syscall, including those that are left out.
    paths: Integer,
    /// The frames, and the reason why the stack has no more of them.
    #[serde(flatten)]
    stack: Map<String, Value>,
}

impl Sink for StackSummary {
    fn event(&mut self, event: &Event, _: &View) -> io::Result<()> {
        if let EventKind::Call(call) = &event.kind {
            self.call(event, call);
        }
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &TraceResult, view: &View) -> io::Result<()> {
        let text = match self.style {
            Style::Perf | Style::Strace => self.text(view),
            Style::Json => self.objects(view)?,
        };
        Ok(self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, &text)?)
    }
}
