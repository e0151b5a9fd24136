//! Call graphs: what the options about stacks mean together.

use super::{Stop, wrong};
use crate::cli::args::{Cli, WeightArg};
use crate::request::{Graphs, Weight, select};
use crate::session::CallGraph;

pub fn graphs(cli: &Cli) -> Result<Graphs, Stop> {
    let args = &cli.graphs;
    let summarized = cli.summary.summary || cli.summary.with_summary || cli.summary.errno_summary;
    if args.stack_summary.is_some() && !summarized {
        return Err(wrong("--stack-summary is a part of the summary; ask for one with -s or -S"));
    }
    let lines = !summarized || cli.summary.with_summary;
    let taken = args.call_graph.is_some() || args.kernel_stack || args.max_stack.is_some() || args.min_stack.is_some();
    if taken && !lines && args.stack_summary.is_none() && args.folded.is_none() && args.flamegraph.is_none() {
        return Err(wrong("a summary alone shows no stacks: add --stack-summary, --folded or --flamegraph, or take -S for the lines, too"));
    }
    let asked = args.call_graph.as_deref().map(way).transpose()?;
    let shown = args.folded.is_some() || args.flamegraph.is_some() || args.stack_summary.is_some() || args.lines || args.inline;
    // Only frames of the kernel: they need no way to take the user's.
    let implied = args.max_stack.is_some() || args.min_stack.is_some() || shown;
    Ok(Graphs {
        user: asked.or((implied && !args.kernel_stack).then_some(CallGraph::Dwarf { size: None })),
        kernel: args.kernel_stack,
        max: args.max_stack,
        min: args.min_stack,
        lines: args.lines,
        inlined: args.inline,
        names_at_end: args.resolve_at_end,
        folded: args.folded.clone(),
        flamegraph: args.flamegraph.clone(),
        weight: match args.stack_weight {
            WeightArg::Time => Weight::Time,
            WeightArg::Count => Weight::Count,
        },
        summary: args.stack_summary,
    })
}

/// `fp`, `dwarf`, `dwarf,SIZE`: perf's words.
fn way(text: &str) -> Result<CallGraph, Stop> {
    let refused = |why: String| wrong(format!("--call-graph {text}: {why}"));
    match text.split_once(',') {
        None if text == "lbr" => Err(refused(
            "the CPU's branch records come with its hardware counters only, never with system calls; take fp or dwarf".to_owned(),
        )),
        None => select::call_graph(text).map_err(refused),
        Some((way, size)) => select::call_graph(&format!("{way}:{size}")).map_err(refused),
    }
}
