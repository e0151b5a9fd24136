//! Finds the calls whose tracepoints the request selects as events (`syscalls:sys_enter_X`, `raw_syscalls:sys_exit` and
//! the like). The BPF programs record these calls, so that the events show what the lines of the calls would.

use crate::beauty::row::Syscall;
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::bpf::Entries;
use crate::request::select::Selection;
use crate::request::{Selector, Trace};
use crate::session::{CallSet, EventCalls};
use crate::show::Mode;
use crate::text::glob;

/// The calls that complete events, as far as the plan is concerned.
#[derive(Clone, Debug, Default)]
pub struct CallsOfEvents {
    pub calls: EventCalls,
    /// The calls of whose entries events are shown.
    pub entries: Entries,
    /// The rows of the recorded calls.
    recorded: Vec<&'static Syscall>,
}

impl CallsOfEvents {
    /// Returns the calls that complete events of this request. There are none if no events are printed.
    pub fn new(request: &Trace, selection: &Selection) -> CallsOfEvents {
        if request.show.mode == Mode::Summary {
            return CallsOfEvents::default();
        }
        let selects = |selector: &Selector, group: &str, event: &str| match selector {
            Selector::Event { subsystem, name } => {
                glob::matches(subsystem.as_bytes(), group.as_bytes()) && glob::matches(name.as_bytes(), event.as_bytes())
            }
            _ => false,
        };
        let is_asked = |group: &str, event: &str| {
            request.what.items.iter().filter(|item| !item.negated).any(|item| selects(&item.selector, group, event))
        };
        let of_all = ["sys_enter", "sys_exit"].map(|event| is_asked("raw_syscalls", event));
        let of_row = |end: usize, row: &Syscall| {
            let event = format!("{}{}", ["sys_enter_", "sys_exit_"][end], row.event);
            of_all[end] || is_asked("syscalls", &event)
        };
        let entries = (0..).zip(SYSCALLS).filter(|(_, row)| of_row(0, row)).map(|(at, _)| at).collect();
        let entries = Entries { rows: entries, nameless: of_all[0] };
        let nameless = of_all.contains(&true);
        let recorded: Vec<&'static Syscall> = SYSCALLS.iter().filter(|row| of_row(0, row) || of_row(1, row)).collect();
        let others = if nameless { OTHER_NAMES.iter().map(|(abi, nr, _)| (*abi, *nr)).collect() } else { Vec::new() };
        let shown = CallSet {
            names: names(SYSCALLS.iter().zip(&selection.rows).filter(|(_, on)| **on).map(|(row, _)| row)),
            others: selection.others.clone(),
            nameless: selection.unknown,
        };
        let set = CallSet { names: names(recorded.iter().copied()), others, nameless };
        CallsOfEvents { calls: EventCalls { recorded: set, shown }, entries, recorded }
    }

    /// Returns whether there is any such call.
    pub fn is_any(&self) -> bool {
        !self.calls.recorded.is_empty()
    }

    /// Adds the calls to those that are recorded anyway.
    pub fn add_to(&self, calls: &mut Vec<&'static Syscall>) {
        let missing = |row: &&Syscall| !calls.iter().any(|call| call.name == row.name);
        let more: Vec<&'static Syscall> = self.recorded.iter().copied().filter(missing).collect();
        calls.extend(more);
    }
}

fn names<'a>(rows: impl Iterator<Item = &'a Syscall>) -> Vec<String> {
    rows.map(|row| row.name.to_owned()).collect()
}
