//! Decides of which calls and events stacks are recorded, and how.

use crate::beauty::lookup;
use crate::beauty::row::Syscall;
use crate::beauty::tables::SYSCALLS;
use crate::bpf::Stacks;
use crate::request::select::Selection;
use crate::request::{Graphs, Item, Trace};
use crate::session::{CallGraph, FramesMax, Terms};
use crate::stack::registers::Architecture;
use crate::sys::perf::StackFields;

/// The number of bytes of stack that the tracepoint engine copies by default, as perf does.
const BYTES_CHOSEN: u32 = 8192;

/// The stacks that are recorded with one kind of call or event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    /// How the user stack is recorded; `None` if it is not.
    pub user: Option<CallGraph>,
    /// Whether the kernel's call chain is recorded.
    pub kernel: bool,
}

/// The stacks that are recorded with each shown call.
#[derive(Clone, Debug, Default)]
pub struct CallGraphs {
    /// By the index of the call's row.
    rows: Vec<Graph>,
    /// For calls without a row.
    pub nameless: Graph,
    /// For delivered signals.
    pub signals: Graph,
}

impl Graph {
    /// Returns whether no stack is recorded.
    pub fn is_none(self) -> bool {
        self == Graph::default()
    }

    /// Returns the stacks of calls that these items select.
    fn of_call<'a>(items: impl Iterator<Item = &'a Terms> + Clone, general: &Graphs) -> Graph {
        let user = items.clone().find_map(|terms| terms.call_graph);
        let kernel = general.kernel || items.clone().any(|terms| terms.kernel_stack);
        let bounded = items.clone().any(|terms| terms.max_stack.is_some()) && !kernel;
        Graph { user: user.or(general.user).or(bounded.then_some(CallGraph::Dwarf { size: None })), kernel }
    }

    /// Returns the stacks of a tracepoint or page fault. These events happen in the kernel, so a bound on the number of
    /// frames (`max-stack`) without further options means kernel frames.
    pub fn of_event(terms: &Terms, general: &Graphs) -> Graph {
        let user = terms.call_graph.or(general.user);
        Graph { user, kernel: general.kernel || terms.kernel_stack || terms.max_stack.is_some() || user.is_some() }
    }

    /// Returns the stacks of a probe in a program, where only the user stack is of interest by default.
    pub fn of_program(terms: &Terms, general: &Graphs) -> Graph {
        Graph { user: terms.call_graph.or(general.user), kernel: general.kernel || terms.kernel_stack }
    }

    /// Returns the stacks of a BPF program's output. Its innermost kernel frames are those of the BPF program, so a
    /// bound without further options means the user frames of the task that it runs in.
    pub fn of_output(terms: &Terms, general: &Graphs) -> Graph {
        Graph::of_call(std::iter::once(terms), general)
    }

    /// Returns the fields of the perf sample that record these stacks.
    pub fn fields(self) -> StackFields {
        let mut fields = StackFields { kernel_chain: self.kernel, ..StackFields::default() };
        match self.user {
            None => {}
            Some(CallGraph::FramePointer) => fields.user_chain = true,
            Some(CallGraph::Dwarf { size }) => {
                fields.registers = Architecture::host().map_or(0, |host| host.layout().sample_mask);
                fields.bytes = size.unwrap_or(BYTES_CHOSEN);
            }
        }
        fields
    }
}

impl CallGraphs {
    /// Returns the stacks of the selected calls, and of signals if they are shown.
    pub fn new(selection: &Selection, items: &[Item], general: &Graphs, shows_signals: bool) -> CallGraphs {
        let of = |selected_by: &[u16]| {
            Graph::of_call(selected_by.iter().filter_map(|at| items.get(usize::from(*at))).map(|item| &item.terms), general)
        };
        let rows = selection.rows.iter().zip(&selection.items).map(|(on, by)| if *on { of(by) } else { Graph::default() });
        let nameless = if selection.is_empty() { Graph::default() } else { of(&[]) };
        CallGraphs { rows: rows.collect(), nameless, signals: if shows_signals { of(&[]) } else { Graph::default() } }
    }

    /// Returns the stacks of the calls of a row, by its index in [`SYSCALLS`]; none if its calls are not shown.
    pub fn of_row(&self, row: u16) -> Graph {
        self.rows.get(usize::from(row)).copied().unwrap_or_default()
    }

    /// Returns whether the kernel's call chain is recorded with any call.
    pub fn has_kernel_frames(&self) -> bool {
        self.rows.iter().chain([&self.nameless]).any(|graph| graph.kernel)
    }

    /// Returns the stacks as settings of the BPF programs.
    pub fn of_bpf(&self) -> Stacks {
        let mut stacks = Stacks::default();
        let is_bounded = |graph: Graph| matches!(graph.user, Some(CallGraph::Dwarf { size: Some(_) }));
        for (row, graph) in self.rows.iter().enumerate().filter(|(_, graph)| !graph.is_none()) {
            stacks.add_row(row as u16, graph.fields(), is_bounded(*graph));
        }
        stacks.set_nameless(self.nameless.fields(), is_bounded(self.nameless));
        stacks.set_signals(self.signals.fields(), is_bounded(self.signals));
        stacks
    }

    /// Returns the stacks of a syscall's calls, whether they are recorded at the entry or at the exit.
    pub fn of(&self, syscall: &Syscall) -> Graph {
        lookup::index_by_name(syscall.name).map_or(self.nameless, |row| self.of_row(row))
    }

    /// Returns the stacks that are recorded at the entry or the exit of a call. Stacks are recorded at the exit, except
    /// of calls that do not return or have another stack by then.
    pub fn at(&self, syscall: &Syscall, exit: bool) -> Graph {
        if syscall.does.has_stack_at_entry() == exit { Graph::default() } else { self.of(syscall) }
    }
}

/// Returns whether the request asks for any stack.
pub fn any(request: &Trace) -> bool {
    let graphs = &request.graphs;
    let of_item = |item: &Item| item.terms.call_graph.is_some() || item.terms.max_stack.is_some() || item.terms.kernel_stack;
    graphs.user.is_some() || graphs.kernel || request.what.items.iter().any(of_item)
}

/// Returns how many frames are shown of the calls that the items select.
pub fn frames_max(selection: &Selection, items: &[Item], general: &Graphs) -> FramesMax {
    let most = |selected_by: &[u16]| selected_by.iter().filter_map(|at| items.get(usize::from(*at))?.terms.max_stack).max();
    let calls = SYSCALLS.iter().zip(&selection.items).filter_map(|(row, by)| Some((row.name.to_owned(), most(by)?)));
    FramesMax { general: general.max, calls: calls.collect() }
}
