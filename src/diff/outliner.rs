//! Makes the outline of a recording from its events.

use super::described::{Around, Described, describe, name};
use super::file_state::FileState;
use super::noise::{self, compared};
use super::outline::{End, Image, Node, Outcome, Outline, Tally, Use};
use super::random_names::RandomNames;
use super::streams::{self, Streams};
use super::words::{Word, Words};
use crate::beauty::lookup;
use crate::beauty::special::Special;
use crate::engine::view::View;
use crate::event::{Call, Event, EventKind, ExitState, File, TaskEnd};
use crate::json_trace::Given;
use crate::session::Session;
use crate::sink::{Sink, TraceResult};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The most different calls and programs in the outline of one recording: some hundred MiB.
const KEPT_MAX: usize = 2_000_000;

/// The most bytes of what a program writes to standard error that are kept.
const COMPLAINT_MAX: usize = 200;

/// A process that runs.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    node: usize,
    /// The process that created it; 0 if that is not known.
    parent: i32,
    /// The path of the program that it executed, if nothing else was seen of the process since then.
    executed: Option<Word>,
    /// The standard streams that it, or an ancestor, has opened: the bit 1 << N for the descriptor N.
    own_streams: u8,
    /// The process is counted in its node, because something of it is compared.
    is_counted: bool,
}

/// How many ancestors of a process are asked whether a name has their number.
const ANCESTORS_MAX: usize = 8;

/// The outline as it is being made.
#[derive(Debug)]
struct State {
    words: Words,
    outline: Outline,
    children: FxHashMap<(usize, Image), usize>,
    processes: FxHashMap<i32, Process>,
    names: RandomNames,
    streams: Streams,
    events: u64,
    kept: usize,
    /// The event is outside the span of `--time`, and only says which processes there are.
    is_outside: bool,
}

/// Collects what the events of one recording say.
#[derive(Debug)]
pub struct Outliner(Arc<Mutex<State>>);

/// The sink of an [`Outliner`].
struct Collector(Arc<Mutex<State>>);

impl Outliner {
    /// Returns an outliner that uses the words of the recording before.
    pub fn new(words: Words) -> Outliner {
        let root = Node::new(Image::Forked, 0);
        Outliner(Arc::new(Mutex::new(State {
            words,
            outline: Outline::new(vec![root]),
            children: FxHashMap::default(),
            processes: FxHashMap::default(),
            names: RandomNames::default(),
            streams: Streams::default(),
            events: 0,
            kept: 0,
            is_outside: false,
        })))
    }

    /// Returns the sink that takes the events.
    pub fn sink(&self) -> Box<dyn Sink + Send> {
        Box::new(Collector(Arc::clone(&self.0)))
    }

    /// Takes an event. `given` are arguments of the call that are not in its registers and its copies of memory.
    /// Something outside the span of `--time` is not compared.
    pub fn take(&self, event: &Event, given: &[Given], session: &Session, is_outside: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).event(event, given, session, is_outside);
    }

    /// Returns the outline, and the words in it. The sink takes nothing from then on.
    pub fn finish(self) -> (Outline, Words) {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::replace(&mut state.outline, Outline::new(Vec::new())), std::mem::take(&mut state.words))
    }
}

impl Sink for Collector {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).event(event, &[], view.session, false);
        Ok(())
    }

    fn pass_over(&mut self, event: &Event, view: &View) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).event(event, &[], view.session, true);
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &TraceResult, _: &View) -> io::Result<()> {
        Ok(())
    }
}

impl State {
    fn event(&mut self, event: &Event, given: &[Given], session: &Session, is_outside: bool) {
        // A trace in JSON has no other events.
        self.events += u64::from(matches!(event.kind, EventKind::Call(_) | EventKind::Tracepoint { .. }));
        self.is_outside = is_outside;
        let pid = event.task.pid;
        match &event.kind {
            EventKind::Call(call) => self.call(event, call, given),
            EventKind::Fork { child, .. } if child.pid != pid => {
                let parent = self.node_of(event);
                let node = self.child(parent, Image::Forked);
                let own_streams = self.processes.get(&pid).map_or(0, |process| process.own_streams);
                self.insert(child.pid, Process { node, parent: pid, executed: None, own_streams, is_counted: !is_outside });
            }
            EventKind::Exec { path, .. } => {
                self.executed(event);
                let path = self.words.add(&self.names.without(path, &self.line(pid)));
                self.processes.entry(pid).or_default().executed = Some(path);
            }
            EventKind::Exit(_) if event.task.tid == pid && is_outside => _ = self.processes.remove(&pid),
            EventKind::Exit(end) if event.task.tid == pid => {
                let node = self.node_of(event);
                let end = match end {
                    TaskEnd::Exited(status) => Some(End::Exited(*status)),
                    TaskEnd::Killed { signal, .. } => Some(End::Killed(*signal)),
                    TaskEnd::Unknown | TaskEnd::NotTraced => None,
                };
                end.into_iter().for_each(|end| *self.outline.nodes[node].ends.entry(end).or_default() += 1);
                self.processes.remove(&pid);
            }
            EventKind::Tracepoint { event: index, .. } if !is_outside => {
                if let Some(spec) = session.events.get(*index) {
                    let call = self.words.add(spec.terms.name.as_ref().unwrap_or(&spec.name).as_bytes());
                    let node = self.node_of(event);
                    let key = Use { call, object: Word::EMPTY, detail: Word::EMPTY };
                    let tally = self.tally(node, key, (true, true));
                    tally.calls += 1;
                    tally.add(Outcome::Success, 1);
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, event: &Event, call: &Call, given: &[Given]) {
        let pid = event.task.pid;
        let row = lookup::row(call.abi, call.nr);
        if self.kept >= KEPT_MAX {
            self.outline.left_out += 1;
            return;
        }
        let mut about = self.describe(pid, call, given);
        self.streams(pid, call, row.map_or("", |row| row.name), about.stream.take());
        if row.is_some_and(|row| matches!(row.does, Special::Execve | Special::Execveat)) && call.ret() == Some(0) {
            return self.executes(pid, call, &about);
        }
        let has_object = !about.object.is_empty();
        let compared = compared(row, call, has_object);
        if !compared.calls && !compared.time {
            return;
        }
        if let (Some((path, is_private)), None, Some(_)) = (&about.creates, call.errno(), call.ret()) {
            self.names.created(path, *is_private);
            about = self.describe(pid, call, given);
        }
        if self.is_outside {
            return;
        }
        let node = self.node_of(event);
        if let Some(text) = about.complaint.take() {
            complain(self.outline.nodes[node].complaint.get_or_insert_default(), &text);
        }
        let reads = row.is_some_and(|row| matches!(row.name, "read" | "pread64" | "readv" | "preadv"));
        let outcome = match (call.exit, call.errno()) {
            (ExitState::Returned { .. }, Some(errno)) if noise::is_passing(errno) => None,
            (ExitState::Returned { .. }, Some(errno)) => Some(Outcome::Errno(errno)),
            (ExitState::Returned { .. }, None) if about.late_error.is_some() => about.late_error.map(Outcome::Errno),
            (ExitState::Returned { ret: 0, .. }, None) if reads && about.is_path => Some(Outcome::NoData),
            (ExitState::Returned { .. }, None) => Some(Outcome::Success),
            _ => None,
        };
        let time = call.duration().filter(|_| compared.time && !about.waits).unwrap_or_default();
        let [of_name, object, detail] = [&name(call), &about.object, &about.detail].map(|text| self.words.add(text));
        let tally = self.tally(node, Use { call: of_name, object, detail }, (compared.calls, !noise::is_about_descriptor(row)));
        tally.calls += 1;
        // A trace may have been made by an enemy.
        tally.time = tally.time.saturating_add(time);
        tally.lacks_path |= about.lacks_path;
        outcome.into_iter().for_each(|outcome| tally.add(outcome, 1));
        self.file(node, object, &about, call);
    }

    /// Keeps what a call says about its file.
    fn file(&mut self, node: usize, object: Word, about: &Described, call: &Call) {
        if let (Some((_, is_private)), None) = (&about.creates, call.errno()) {
            self.outline.created.insert(object, *is_private);
        }
        if about.writes && call.errno().is_none() {
            self.outline.written.insert(object);
            // rename(2) replaces the second file.
            let target = memchr::memmem::find(&about.object, b" -> ").map(|at| self.words.add(&about.object[at + 4..]));
            self.outline.written.extend(target);
        }
        let files = &mut self.outline.nodes[node].files;
        if about.state != FileState::default() && !about.object.is_empty() {
            files.entry(object).or_default().add(&about.state);
        }
    }

    /// Describes a call of a process.
    fn describe(&self, pid: i32, call: &Call, given: &[Given]) -> Described {
        let own_streams = self.processes.get(&pid).map_or(0, |process| process.own_streams);
        describe(call, &Around { names: &self.names, pids: &self.line(pid), streams: &self.streams, own_streams, given })
    }

    /// Follows where the standard streams lead. `file` is behind one that the process did not open.
    fn streams(&mut self, pid: i32, call: &Call, name: &str, file: Option<File>) {
        file.into_iter().for_each(|file| self.streams.add(file));
        let opened = streams::opened(name, call);
        if let Some(process) = self.processes.get_mut(&pid).filter(|_| opened != 0) {
            process.own_streams |= opened;
        }
    }

    /// A call executed a program.
    fn executes(&mut self, pid: i32, call: &Call, about: &Described) {
        let process = self.processes.get(&pid).copied().unwrap_or_default();
        let [name, object, detail] = [&name(call), &about.object, &about.detail].map(|text| self.words.add(text));
        // What the root does is the recorder's.
        if process.node > 0 && !self.is_outside {
            let tally = self.tally(process.node, Use { call: name, object, detail }, (true, true));
            tally.calls += 1;
            tally.add(Outcome::Success, 1);
        }
        let path = process.executed.unwrap_or(object);
        let args = about.args.iter().map(|word| self.words.add(word)).collect();
        let node = self.child(process.node, Image::Program { path, args });
        self.insert(pid, Process { node, executed: None, is_counted: !self.is_outside, ..process });
    }

    /// Puts a process that executed a program into the node of the program, if no call says more of it.
    fn executed(&mut self, event: &Event) {
        let pid = event.task.pid;
        if let Some(process @ Process { node, executed: Some(path), .. }) = self.processes.get(&pid).copied() {
            let node = self.child(node, Image::Program { path, args: Vec::new() });
            self.insert(pid, Process { node, executed: None, is_counted: !self.is_outside, ..process });
        }
    }

    fn insert(&mut self, pid: i32, process: Process) {
        if self.outline.pids.len() < KEPT_MAX {
            self.outline.pids.insert(pid);
        }
        self.processes.insert(pid, process);
    }

    /// Returns a process and its ancestors.
    fn line(&self, pid: i32) -> SmallVec<[i32; ANCESTORS_MAX]> {
        let parent = |pid: &i32| self.processes.get(pid).map(|process| process.parent).filter(|pid| *pid > 0);
        std::iter::successors(Some(pid), parent).take(ANCESTORS_MAX).collect()
    }

    /// Returns the node of the event's process.
    fn node_of(&mut self, event: &Event) -> usize {
        self.executed(event);
        let pid = event.task.pid;
        if let Some(process) = self.processes.get_mut(&pid) {
            if !process.is_counted && !self.is_outside {
                process.is_counted = true;
                self.outline.nodes[process.node].processes += 1;
            }
            return process.node;
        }
        let comm = self.words.add(event.comm.as_deref().unwrap_or_default());
        let node = self.child(0, Image::Unknown(comm));
        self.insert(pid, Process { node, is_counted: !self.is_outside, ..Process::default() });
        node
    }

    /// Returns the child of a node with this image, with one more process in it if the event is compared. If there are
    /// too many nodes, it is the node itself.
    fn child(&mut self, parent: usize, image: Image) -> usize {
        let nodes = &mut self.outline.nodes;
        let node = match self.children.get(&(parent, image.clone())) {
            Some(node) => *node,
            None if self.kept >= KEPT_MAX => return parent,
            None => {
                self.kept += 1;
                let node = nodes.len();
                nodes[parent].children.push(node);
                self.children.insert((parent, image.clone()), node);
                nodes.push(Node::new(image, parent));
                node
            }
        };
        nodes[node].processes += u64::from(!self.is_outside);
        node
    }

    /// Returns the tally of calls. If there was none, it is a new one, with these values of `is_compared` and
    /// `uses_file`.
    fn tally(&mut self, node: usize, key: Use, (is_compared, uses_file): (bool, bool)) -> &mut Tally {
        self.outline.nodes[node].uses.entry(key).or_insert_with(|| {
            self.kept += 1;
            Tally::new(self.events, is_compared, uses_file)
        })
    }
}

/// Adds what a program writes to standard error, up to the end of the line.
fn complain(complaint: &mut Vec<u8>, text: &[u8]) {
    if !complaint.contains(&b'\n') {
        let line = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| end + 1);
        let room = COMPLAINT_MAX.saturating_sub(complaint.len());
        complaint.extend(&text[..line.min(room)]);
    }
}
