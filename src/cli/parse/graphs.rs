//! Parses the options about call stacks.

use super::{Stop, wrong};
use crate::cli::args::{Cli, WeightArg};
use crate::request::{Graphs, Weight, select};
use crate::session::CallGraph;

/// Parses `--call-graph` and the options that imply it or depend on it.
///
/// # Errors
/// A value is wrong, or the stacks would be collected but not shown.
pub fn graphs(cli: &Cli) -> Result<Graphs, Stop> {
    let args = &cli.graphs;
    let summarized = cli.summary.summary || cli.summary.with_summary || cli.summary.errno_summary;
    if args.stack_summary.is_some() && !summarized {
        return Err(wrong("--stack-summary needs a summary: add -s or -S"));
    }
    let lines = !summarized || cli.summary.with_summary;
    let collected = args.call_graph.is_some() || args.kernel_stack || args.max_stack.is_some() || args.min_stack.is_some();
    if collected && !lines && args.stack_summary.is_none() && args.folded.is_none() && args.flamegraph.is_none() {
        return Err(wrong(
            "a summary alone shows no stacks: add --stack-summary, --folded or --flamegraph, or use -S, which also prints lines",
        ));
    }
    let asked_for = args.call_graph.as_deref().map(call_graph).transpose()?;
    let shown = args.folded.is_some() || args.flamegraph.is_some() || args.stack_summary.is_some() || args.lines || args.inline;
    // With --kernel-stack alone, only frames of the kernel are shown, so the user stack is not collected.
    let implied = args.max_stack.is_some() || args.min_stack.is_some() || shown;
    Ok(Graphs {
        user: asked_for.or((implied && !args.kernel_stack).then_some(CallGraph::Dwarf { size: None })),
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
        report: None,
    })
}

/// Parses `fp`, `dwarf` or `dwarf,SIZE`, as perf spells them.
fn call_graph(text: &str) -> Result<CallGraph, Stop> {
    let refused = |why: String| wrong(format!("--call-graph {text}: {why}"));
    match text.split_once(',') {
        None if text == "lbr" => {
            Err(refused("the CPU's branch records come only with hardware events, never with system calls; use fp or dwarf".to_owned()))
        }
        None => select::call_graph(text).map_err(refused),
        Some((method, size)) => select::call_graph(&format!("{method}:{size}")).map_err(refused),
    }
}
