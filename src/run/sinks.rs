//! Creates the sinks of a run as the user requested them.

use crate::request::Trace;
use crate::show::{Mode, Show, Style};
use crate::sink::Sink;
use crate::sink::call_table::CallTable;
use crate::sink::graph::Graph;
use crate::sink::output::{Output, SharedOutput};
use crate::sink::stack_summary::StackSummary;
use crate::sink::summary::Summary;
use crate::sink::text::Text;

/// The sinks of a run before their thread starts.
pub struct Planned {
    show: Show,
    color: bool,
    /// The files of call paths, which are created at once.
    graph: Option<Graph>,
    graphs: crate::request::Graphs,
    output: Output,
}

impl Planned {
    /// Prepares the sinks.
    ///
    /// # Errors
    /// A file of call paths cannot be created.
    pub fn new(request: &Trace, output: Output) -> anyhow::Result<Planned> {
        Ok(Planned {
            show: request.show.clone(),
            color: output.color(request.output.color),
            graph: Graph::new(&request.graphs)?,
            graphs: request.graphs.clone(),
            output,
        })
    }

    /// Creates the sinks. They share the output.
    pub fn create(self) -> (Vec<Box<dyn Sink>>, SharedOutput) {
        let Planned { show, color, graph, graphs, output } = self;
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        if let Some(graph) = graph {
            sinks.push(Box::new(graph));
        }
        let shared = output.shared();
        // In JSON, this sink writes the first and the last object, and the objects of a summary stand between them.
        if matches!(show.mode, Mode::Lines | Mode::Both) || show.style == Style::Json {
            sinks.push(Box::new(Text::new(&show, color, shared.clone())));
        }
        let has_summary = matches!(show.mode, Mode::Summary | Mode::Both);
        if has_summary && show.style == Style::Strace {
            sinks.push(Box::new(CallTable::new(show.strace.summary.clone(), show.mode == Mode::Both, shared.clone())));
        } else if has_summary {
            sinks.push(Box::new(Summary::new(&show, shared.clone())));
        }
        if let Some(paths) = StackSummary::new(&graphs, show.style, shared.clone()) {
            sinks.push(Box::new(paths));
        }
        (sinks, shared)
    }
}
