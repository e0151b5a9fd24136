//! Creates the sinks of a run as the user requested them.

use super::display::Sinks;
use crate::plan;
use crate::request::{Target, TaskSelection, Trace};
use crate::session::Scope;
use crate::show::{Mode, Outcomes, Show, Style};
use crate::sink::Sink;
use crate::sink::call_table::CallTable;
use crate::sink::graph::Graph;
use crate::sink::interleaved::Interleaved;
use crate::sink::output::Output;
use crate::sink::report::Report;
use crate::sink::stack_summary::StackSummary;
use crate::sink::summary::Summary;
use crate::sink::text::Text;

/// What decides how the lines of tasks can come between each other.
#[derive(Clone, Copy, Debug)]
pub struct Tasks {
    /// The targets are a command, processes or threads. Otherwise, there is no order in which strace prints the lines.
    are_chosen: bool,
    /// The number of tasks that are traced at the beginning, if it is known.
    alive: Option<usize>,
}

impl Tasks {
    /// Returns the tasks of a live trace.
    pub fn of(request: &Trace) -> Tasks {
        let (are_chosen, alive) = match &request.target {
            Target::Command(_) => (true, Some(1)),
            Target::Running { tasks: TaskSelection::Tids(tids), .. } => (true, Some(tids.len())),
            Target::Running { tasks, .. } => (matches!(tasks, TaskSelection::Pids(_)), None),
        };
        Tasks { are_chosen, alive }
    }

    /// Returns the tasks of a recording.
    pub fn of_recording(scope: Scope) -> Tasks {
        Tasks { are_chosen: scope != Scope::System, alive: (scope == Scope::Command).then_some(1) }
    }
}

/// Returns whether lines are in the order of strace, in which a call has two lines if something else happens before it
/// returns, and the line of a slow call goes on when it returns. Names of frames are known only when a call ends, and
/// strace shows a call whose outcome decides in one line, too.
pub fn is_interleaved(request: &Trace, tasks: &Tasks) -> bool {
    let show = &request.show;
    let is_asked = show.style == Style::Strace && tasks.are_chosen && show.pending != Some(false) && !request.output.separately;
    is_asked && show.outcomes == Outcomes::all() && !plan::has_stacks(request)
}

/// Returns whether calls in flight are listed: for lines of such calls, for lines in the order of strace, and for
/// recordings that are not shown, of which a replay may show them.
pub fn shows_pending(request: &Trace, output: Option<&Output>) -> bool {
    let is_wanted = || output.is_none_or(|output| output.is_watched() || is_interleaved(request, &Tasks::of(request)));
    request.show.pending.unwrap_or_else(is_wanted)
}

/// The sinks of a run before their thread starts.
pub struct Planned {
    show: Show,
    color: bool,
    /// The files of call paths, which are created at once.
    graph: Option<Graph>,
    graphs: crate::request::Graphs,
    output: Output,
    /// For lines in the order of strace: whether the output is watched while it is written, and the number of tasks
    /// that are traced at the beginning, if it is known.
    interleaved: Option<(bool, Option<usize>)>,
}

impl Planned {
    /// Prepares the sinks.
    ///
    /// # Errors
    /// A file of call paths cannot be created.
    pub fn new(request: &Trace, output: Output, tasks: &Tasks) -> anyhow::Result<Planned> {
        Ok(Planned {
            show: request.show.clone(),
            color: output.color(request.output.color),
            graph: Graph::new(&request.graphs)?,
            graphs: request.graphs.clone(),
            interleaved: is_interleaved(request, tasks).then(|| (output.is_watched(), tasks.alive)),
            output,
        })
    }

    /// Creates the sinks. They share the output.
    pub fn create(self) -> Sinks {
        let Planned { show, color, graph, graphs, output, interleaved } = self;
        let mut sinks: Vec<Box<dyn Sink + Send>> = Vec::new();
        if let Some(graph) = graph {
            sinks.push(Box::new(graph));
        }
        let shared = output.shared();
        // In JSON, this sink writes the first and the last object, and the objects of a summary stand between them.
        if matches!(show.mode, Mode::Lines | Mode::Both) || show.style == Style::Json {
            let text = Text::new(&show, color, shared.clone());
            match interleaved {
                Some((is_watched, alive)) => sinks.push(Box::new(Interleaved::new(text, &show.strace, is_watched, alive))),
                None => sinks.push(Box::new(text)),
            }
        }
        let has_summary = matches!(show.mode, Mode::Summary | Mode::Both);
        if has_summary && show.style == Style::Strace {
            sinks.push(Box::new(CallTable::new(&show.strace, show.mode == Mode::Both, shared.clone())));
        } else if has_summary {
            sinks.push(Box::new(Summary::new(&show, shared.clone())));
        }
        if let Some(report) = graphs.report {
            sinks.push(Box::new(Report::new(report, show.style, shared.clone())));
        }
        if let Some(paths) = StackSummary::new(&graphs, show.style, shared.clone()) {
            sinks.push(Box::new(paths));
        }
        Sinks::new((sinks, shared))
    }
}
