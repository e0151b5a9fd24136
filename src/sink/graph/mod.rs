//! `--folded` and `--flamegraph`: the call paths of all calls that are shown, and what they weigh.

mod folded;
mod svg;
mod tree;

use super::{Over, Sink, View, path};
use crate::beauty::lookup;
use crate::event::{Call, Event, What};
use crate::interrupt::Waiter;
use crate::request::{Graphs, Weight};
use crate::say;
use crate::stream::Stream;
use anyhow::Context;
use std::io;
use std::path::Path;
use tree::{Kind, Tree};

/// A file and what it is called.
struct Written {
    stream: Stream,
    name: String,
}

impl Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        Ok(self.stream.write_all(bytes).map_err(|unwritten| unwritten.named(&self.name))?)
    }
}

/// Adds up, and writes at the end.
pub struct Graph {
    tree: Tree,
    weight: Weight,
    folded: Option<Written>,
    picture: Option<Written>,
    calls: u64,
    /// What the picture is called.
    title: String,
    /// Used again for each path.
    names: Vec<(Vec<u8>, Kind)>,
}

impl Graph {
    /// `None` if neither is asked for.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn new(graphs: &Graphs) -> anyhow::Result<Option<Graph>> {
        let create = |path: &Path| {
            let file = path::create(path).with_context(|| format!("cannot write to {}", path.display()))?;
            anyhow::Ok(Written { stream: Stream::own(file, Waiter::Worker)?, name: path.display().to_string() })
        };
        let folded = graphs.folded.as_deref().map(create).transpose()?;
        let picture = graphs.flamegraph.as_deref().map(create).transpose()?;
        if folded.is_none() && picture.is_none() {
            return Ok(None);
        }
        let title = match graphs.weight {
            Weight::Time => "System calls by call path: time that they took",
            Weight::Count => "System calls by call path: their number",
        };
        Ok(Some(Graph { tree: Tree::new(), weight: graphs.weight, folded, picture, calls: 0, title: title.to_owned(), names: Vec::new() }))
    }

    fn call(&mut self, event: &Event, call: &Call, view: &View) {
        let weight = match self.weight {
            Weight::Time => call.duration().unwrap_or(0),
            Weight::Count => 1,
        };
        self.names.clear();
        if let Some(stack) = &call.stack {
            view.names.frames(event.task.pid, stack, &mut |frame| {
                let kind = if frame.kernel { Kind::Kernel } else { Kind::User };
                self.names.push((frame.label(), kind));
            });
        }
        let mut place = self.tree.below(Tree::ROOT, event.comm.as_deref().unwrap_or(b"?"), Kind::Task);
        // The kernel's frames are inside the call, the user's are around it.
        let (kernel, user) = self.names.split_at(self.names.iter().take_while(|(_, kind)| *kind == Kind::Kernel).count());
        for (name, kind) in user.iter().rev() {
            place = self.tree.below(place, name, *kind);
        }
        let mut name = Vec::new();
        lookup::write_name(&mut name, lookup::row(call.abi, call.nr), call.abi, call.nr);
        place = self.tree.below(place, &name, Kind::Syscall);
        for (name, kind) in kernel.iter().rev() {
            place = self.tree.below(place, name, *kind);
        }
        self.tree.add(place, weight);
    }
}

impl Sink for Graph {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        if let What::Call(call) = &event.what {
            self.calls += 1;
            self.call(event, call, view);
        }
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Over, _: &View) -> io::Result<()> {
        let mut places = Vec::new();
        if let Some(folded) = &mut self.folded {
            folded.write(&folded::folded(&self.tree))?;
            places.push(format!("folded in {}", folded.name));
        }
        if let Some(picture) = &mut self.picture {
            picture.write(svg::picture(&self.tree, &self.title, self.weight).as_bytes())?;
            places.push(format!("drawn in {}", picture.name));
        }
        let calls = if self.calls == 1 { "1 call".to_owned() } else { format!("{} calls", self.calls) };
        say!("rtrace: the call paths of {calls} are {}", places.join(" and "));
        Ok(())
    }
}
