//! Finds the calls whose tracepoints the request selects as events (`syscalls:sys_enter_X`, `raw_syscalls:sys_exit` and
//! the like). The BPF programs record these calls, so that the events show what the lines of the calls would.

use crate::beauty::row::Syscall;
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::bpf::Entries;
use crate::request::select::Selection;
use crate::request::{Selector, Trace};
use crate::session::{CallSet, EventCalls};
use crate::show::Mode;

/// The calls that complete events, as far as the plan is concerned.
#[derive(Clone, Debug, Default)]
pub struct CallsOfEvents {
    /// The recorded calls, in the form in which the session has them.
    pub calls: EventCalls,
    /// The calls of whose entries events are shown.
    pub entries: Entries,
    /// The rows of the recorded calls.
    recorded: Vec<&'static Syscall>,
}

impl CallsOfEvents {
    /// Returns the calls that complete events of this request. There are none if no events are printed.
    pub fn new(request: &Trace, selection: &Selection) -> CallsOfEvents {
        let items = request.what.items.iter().filter(|item| !item.negated);
        let events: Vec<&Selector> = items.map(|item| &item.selector).filter(|of| matches!(of, Selector::Event { .. })).collect();
        if events.is_empty() || request.show.mode == Mode::Summary {
            return CallsOfEvents::default();
        }
        let is_asked = |group: &str, event: &str| events.iter().any(|selector| selector.selects_event(group, event));
        let of_all = ["sys_enter", "sys_exit"].map(|event| is_asked("raw_syscalls", event));
        let mut entries = Entries { rows: Vec::new(), nameless: of_all[0] };
        let nameless = of_all.contains(&true);
        let mut recorded: Vec<&'static Syscall> = Vec::new();
        for (at, row) in (0..).zip(SYSCALLS) {
            let enters = of_all[0] || is_asked("syscalls", &format!("sys_enter_{}", row.event));
            if enters {
                entries.rows.push(at);
            }
            if enters || of_all[1] || is_asked("syscalls", &format!("sys_exit_{}", row.event)) {
                recorded.push(row);
            }
        }
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
