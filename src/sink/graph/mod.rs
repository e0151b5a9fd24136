//! `--folded` and `--flamegraph`: the call paths of all shown calls, with their weights.

mod folded;
mod svg;

use super::call_tree::{CallPath, Tree};
use super::{Sink, TraceResult, View, path};
use crate::event::{Call, Event, EventKind, Notice, NoticeCode};
use crate::interrupt::Waiter;
use crate::request::{Graphs, Weight};
use crate::say;
use crate::stream::Stream;
use anyhow::Context;
use std::io;
use std::path::Path;

/// An output file with its name.
struct GraphFile {
    stream: Stream,
    name: String,
}

impl GraphFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.stream.write_all(bytes).map_err(|unwritten| unwritten.named(&self.name))?)
    }
}

/// The sink that sums up call paths and writes the graphs at the end.
pub struct Graph {
    tree: Tree,
    weight: Weight,
    folded: Option<GraphFile>,
    picture: Option<GraphFile>,
    calls: u64,
    /// The title of the flame graph.
    title: String,
    /// The path of the present call, kept for its allocation.
    path: CallPath,
    /// The notice that names the files that were written.
    said: Option<Notice>,
}

impl Graph {
    /// Creates the sink, or returns `None` if no graph is requested.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn new(graphs: &Graphs) -> anyhow::Result<Option<Graph>> {
        let create = |path: &Path| {
            let file = path::create(path).with_context(|| format!("cannot write to {}", path.display()))?;
            anyhow::Ok(GraphFile { stream: Stream::own(file, Waiter::Worker)?, name: path.display().to_string() })
        };
        let folded = graphs.folded.as_deref().map(create).transpose()?;
        let picture = graphs.flamegraph.as_deref().map(create).transpose()?;
        if folded.is_none() && picture.is_none() {
            return Ok(None);
        }
        let title = match graphs.weight {
            Weight::Time => "System calls by call path: total time",
            Weight::Count => "System calls by call path: number of calls",
        };
        Ok(Some(Graph {
            tree: Tree::new(),
            weight: graphs.weight,
            folded,
            picture,
            calls: 0,
            title: title.to_owned(),
            path: CallPath::default(),
            said: None,
        }))
    }

    fn call(&mut self, event: &Event, call: &Call, view: &View) {
        let weight = match self.weight {
            Weight::Time => call.duration().unwrap_or(0),
            Weight::Count => 1,
        };
        self.path.set(event, call, view.names);
        self.tree.add_path(self.path.names.iter().map(|(name, kind)| (&name[..], *kind)), weight);
    }
}

impl Sink for Graph {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        if let EventKind::Call(call) = &event.kind {
            self.calls += 1;
            self.call(event, call, view);
        }
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &TraceResult, _: &View) -> io::Result<()> {
        let folded = self.folded.as_mut().map(|file| (file.write(&folded::folded(&self.tree)), &file.name, "folded stacks"));
        let picture = self.picture.as_mut().map(|file| {
            let picture = svg::picture(&self.tree, &self.title, self.weight);
            (file.write(picture.as_bytes()), &file.name, "flame graph")
        });
        let (mut files, mut done) = (Vec::new(), Ok(()));
        for (written, name, what) in folded.into_iter().chain(picture) {
            files.extend(written.is_ok().then(|| format!("{name} ({what})")));
            done = done.and(written);
        }
        if files.is_empty() {
            return done;
        }
        let calls = if self.calls == 1 { "1 call".to_owned() } else { format!("{} calls", self.calls) };
        self.said = Some(say::notice(NoticeCode::GraphsWritten, format!("the call paths of {calls} are in {}", files.join(" and "))));
        done
    }

    fn said(&mut self) -> Option<Notice> {
        self.said.take()
    }
}
