//! Entries and exits: calls.

use super::{Follower, Here, path_names};
use crate::event::note::StackMemory;
use crate::event::{Abi, Call, CallFile, CallId, Entry, Event, Exit, FdPlace, File, Numbers, PieceState, TaskId, Time, What};
use crate::kernel::machine::NATIVE_ABI;
use crate::source::Sample;
use crate::syscall::behavior::{Behavior, Returns};
use crate::syscall::gaps::Gaps;
use crate::syscall::layout::{EnterLayout, ExitLayout, Layout, add_piece};
use crate::syscall::pairing::{ExitSeen, Open, Outcome};
use crate::syscall::special::Special;
use crate::task::fds::{Path, TableId};
use smallvec::SmallVec;

/// __X32_SYSCALL_BIT (arch/x86/include/uapi/asm/unistd.h).
const X32_BIT: i64 = 1 << 30;

/// What is still to be learnt of a call that is over.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The table that the descriptors are of.
    pub table: Option<TableId>,
    pub fds: SmallVec<[(FdPlace, i32); 2]>,
    pub tids: SmallVec<[i32; 2]>,
    /// Bit i: argument i is a path whose name is still to come.
    pub names: u8,
}

impl Follower {
    #[inline]
    pub(super) fn enter(&mut self, here: Here, layout: &EnterLayout, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let raw = sample.raw;
        let raw_nr = layout.nr.signed(raw);
        let (abi, nr) = self.abi_and_number(here, raw_nr);
        let args = layout.args(raw);
        let behavior = self.behaviors.get(abi, nr).with(&args);
        let mut call = self.new_call(here, abi, nr);
        call.args = Some(args);
        call.numbers = Numbers::of(self.threads[here.slot.index()].nested != Some(false));
        if !layout.copies.is_empty() {
            layout.copy_pieces(raw, &mut call);
        }
        call.stack = self.stack_of_call(here, sample, abi, nr);
        if self.facts.names_at_exit {
            self.no_names_come(here.slot, events);
        }
        let thread = &mut self.threads[here.slot.index()];
        let mark = self.gaps.mark(here.cpu);
        let table = thread.table;
        let mut open = Open { call, raw_nr, mark, behavior, table, uses: SmallVec::new(), changes: false, shown: layout.shown };
        let older = thread.open.take();
        if let Some(older) = older {
            self.give_without_exit(here, older, Exit::Unseen, events);
        }
        if self.facts.descriptors && (behavior.fds != 0 || behavior.special != Special::Plain) {
            self.descriptors_at_entry(here, &mut open, &args);
        }
        if matches!(behavior.special, Special::Unshare | Special::Setns) {
            self.may_choose_namespace(here, behavior.special, &args);
        }
        let at_once = self.known_at_entry(here, &behavior, &args, layout.single);
        self.threads[here.slot.index()].enter(open);
        if behavior.special.path_argument().is_some() {
            let path = self.command.take_path(here.task);
            self.add_exec_path(here, &path);
        }
        if let Some(exit) = at_once
            && let Some(open) = self.threads[here.slot.index()].open.take()
        {
            self.give_without_exit(here, open, exit, events);
        }
    }

    /// Calls whose exit will certainly not be seen, and how they end.
    #[inline]
    fn known_at_entry(&mut self, here: Here, behavior: &Behavior, args: &[u64; 6], single: bool) -> Option<Exit> {
        match behavior.special {
            Special::Exit => self.ends.exit(here.task.tid, args[0]),
            Special::ExitGroup => self.ends.exit_group(here.task.pid, args[0]),
            // Its exit has no number, so the event of its own never sees it.
            Special::SigReturn if single => return Some(Exit::Unseen),
            _ => return None,
        }
        Some(Exit::Never)
    }

    #[inline]
    pub(super) fn exit(&mut self, here: Here, layout: ExitLayout, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let raw = sample.raw;
        let (raw_nr, ret) = (layout.nr.signed(raw), layout.ret.signed(raw));
        let raw_nr = match &self.threads[here.slot.index()].open {
            Some(open) if open.raw_nr != raw_nr && ret == 0 => self.number_of_exec(here, raw_nr),
            _ => raw_nr,
        };
        let (abi, nr) = self.abi_and_number(here, raw_nr);
        let special = self.behaviors.get(abi, nr).special;
        let mark = self.gaps.mark(here.cpu);
        let seen = ExitSeen { time: here.time, mark, raw_nr, ret, special, of_all: layout.of_all };
        let outcome = self.threads[here.slot.index()].exit(seen);
        match outcome {
            Outcome::Returned(mut open) => {
                if !open.behavior.special.has_stack_at_entry() {
                    open.call.stack = self.stack_of_call(here, sample, abi, nr);
                }
                self.returned(here, open, ret, events)
            }
            Outcome::SecondReturn => self.ledger.second_returns += 1,
            Outcome::Untrusted(open) => {
                self.ledger.untrusted_exits += 1;
                self.give_without_exit(here, open, Exit::Unseen, events);
                self.forget_descriptors(here, special);
            }
            Outcome::Alone { closed, entry } => {
                if let Some(closed) = closed {
                    self.give_without_exit(here, closed, Exit::Unseen, events);
                }
                self.forget_descriptors(here, special);
                if !layout.shown {
                    return;
                }
                let mut call = self.new_call(here, abi, nr);
                (call.entry, call.exit) = (entry, Exit::Returned { at: here.time, ret });
                call.numbers = Numbers::of(self.threads[here.slot.index()].nested != Some(false));
                if !special.has_stack_at_entry() {
                    call.stack = self.stack_of_call(here, sample, abi, nr);
                }
                self.give_call(here, call, Questions::default(), events);
            }
        }
    }

    /// The number under which the open call began, if it is one that executed a program, else `raw_nr`. It returns under the number that execve has in the
    /// ABI of the new program, which is known by that (`set_personality_ia32` and `set_personality_64bit` in arch/x86/kernel/process_64.c).
    #[cold]
    fn number_of_exec(&mut self, here: Here, raw_nr: i64) -> i64 {
        let open = self.threads[here.slot.index()].open.as_ref();
        let Some(began_as) = open.filter(|open| open.behavior.special.path_argument().is_some()).map(|open| open.raw_nr) else {
            return raw_nr;
        };
        let returns_as = |abi: &Abi| {
            let bit = if *abi == Abi::X32 { X32_BIT } else { 0 };
            Special::Execve.number(*abi).is_some_and(|number| i64::from(number) | bit == raw_nr)
        };
        let abis: &[Abi] = if NATIVE_ABI == Abi::X86_64 { &[Abi::X86_64, Abi::I386, Abi::X32] } else { &[] };
        match abis.iter().find(|abi| returns_as(abi)) {
            Some(abi) => {
                // Whether a call is x32's, each number says.
                self.tasks.at_mut(here.slot).abi = if *abi == Abi::I386 { Abi::I386 } else { Abi::X86_64 };
                began_as
            }
            None => raw_nr,
        }
    }

    #[inline]
    fn returned(&mut self, here: Here, mut open: Open, ret: i64, events: &mut Vec<Event>) {
        if ret < 0 && open.behavior.special.path_argument().is_some() && self.command.is_still_ours(here.task) {
            // rtrace's own code goes on: it tells of the failure, or tries a shell.
            self.threads[here.slot.index()].set_up = true;
        }
        open.call.exit = Exit::Returned { at: here.time, ret };
        let mut questions = Questions::default();
        if self.facts.descriptors
            && (!open.uses.is_empty() || open.changes || open.behavior.returns == Returns::Fd || open.behavior.special != Special::Plain)
        {
            self.descriptors_at_exit(here, &mut open, ret, &mut questions);
        }
        if !open.shown {
            return self.used.keep(open.call);
        }
        if open.call.numbers != Numbers::Same {
            self.ask_namespace(here, &open.behavior, &mut open.call, &mut questions);
            self.translate(here, &open.behavior, &mut open.call);
        }
        if open.behavior.pids != 0 {
            let may_be_same = self.threads[here.slot.index()].nested.is_none();
            self.ask_names(open.behavior.pids, &open.call, may_be_same, &mut questions);
        }
        if self.facts.names_at_exit {
            questions.names = path_names::unknown(&open.call, &open.behavior);
        }
        self.give_call(here, open.call, questions, events);
    }

    /// A call is over, or no more will be seen of it.
    #[cold]
    pub(super) fn give_without_exit(&mut self, here: Here, mut open: Open, exit: Exit, events: &mut Vec<Event>) {
        open.call.exit = exit;
        if self.facts.descriptors {
            self.descriptors_without_exit(here, &mut open);
        }
        if !open.shown {
            return self.used.keep(open.call);
        }
        self.give_call(here, open.call, Questions::default(), events);
    }

    #[inline]
    fn give_call(&mut self, here: Here, call: Box<Call>, questions: Questions, events: &mut Vec<Event>) {
        self.ledger.call(call.entry, call.exit);
        self.give_counted(here, call, questions, events);
    }

    #[inline]
    pub(super) fn give_counted(&mut self, here: Here, call: Box<Call>, questions: Questions, events: &mut Vec<Event>) {
        let waits = questions.fds.len() + questions.tids.len() + usize::from(questions.names != 0);
        if waits > 0 {
            let ticket = self.outbox.next();
            if let Some(table) = questions.table {
                questions.fds.iter().for_each(|&(place, fd)| self.tables.wait(table, fd, ticket, place));
            }
            for tid in questions.tids {
                self.asked.about(tid).push(ticket);
            }
            if questions.names != 0 {
                self.await_names(here, questions.names, ticket);
            }
        }
        self.give(here, What::Call(call), waits as u32, events);
    }

    /// Has looks made at tasks that arguments (those with their bit in `pids`) name and nobody saw. With `may_be_same`, it is
    /// not known yet whether the caller has the same numbers for tasks as rtrace.
    pub(super) fn ask_names(&mut self, pids: u8, call: &Call, may_be_same: bool, questions: &mut Questions) {
        let Some(args) = call.args else { return };
        for i in (0..6).filter(|i| pids & (1 << i) != 0) {
            let number = args[i] as i32;
            let Some(tid) = call.numbers.task(number).or(may_be_same.then_some(number)) else { continue };
            if tid > 0 && !questions.tids.contains(&tid) && self.is_worth_asking(tid) {
                questions.tids.push(tid);
            }
        }
    }

    /// Has a look made at a task, for whatever comes of it later; nobody waits for the answer.
    #[cold]
    pub(super) fn ask_about(&mut self, tid: i32) {
        if tid > 0 && self.is_worth_asking(tid) {
            self.asked.about(tid);
        }
    }

    /// Whether a task has no name here and a look may give it one.
    fn is_worth_asking(&self, tid: i32) -> bool {
        self.tasks.get(tid).is_none() && self.asked.is_worth_asking(tid)
    }

    /// A look found the task asleep in a call since before tracing began. If its entry was seen after all, only the stack is news.
    #[cold]
    pub(super) fn sleeping(&mut self, time: Time, task: TaskId, (raw_nr, args): (i64, [u64; 6]), memory: Option<&StackMemory>) {
        let slot = self.slot_for_look(task, time);
        let here = Here { time, cpu: 0, task, slot };
        let (abi, nr) = self.abi_and_number(here, raw_nr);
        let stack = memory.and_then(|memory| self.stack_in_flight(here, memory, abi, nr));
        let mark = self.gaps.mark(here.cpu);
        let thread = &mut self.threads[slot.index()];
        if thread.excluded || thread.set_up {
            return;
        }
        if let Some(open) = &mut thread.open {
            open.call.stack = stack.filter(|_| open.raw_nr == raw_nr).or(open.call.stack.take());
            return;
        }
        let table = thread.table;
        let behavior = self.behaviors.get(abi, nr).with(&args);
        let mut call = self.new_call(here, abi, nr);
        (call.entry, call.args, call.stack) = (Entry::Unseen, Some(args), stack);
        let open = Open { call, raw_nr, mark, behavior, table, uses: SmallVec::new(), changes: false, shown: true };
        self.threads[slot.index()].open = Some(open);
    }

    /// Calls in flight for longer than this, each once.
    pub(super) fn give_pending(&mut self, after: u64, events: &mut Vec<Event>) {
        for slot in self.tasks.slots() {
            let now = self.now;
            let Some(open) = self.threads[slot.index()].open.as_mut() else { continue };
            let certain = Gaps::none_between(open.mark, self.gaps.mark(open.mark.cpu));
            if !open.shown || open.call.shown_pending || now.since(open.call.id.start) < after || !certain {
                continue;
            }
            open.call.shown_pending = true;
            let mut call = open.call.clone();
            let cpu = open.mark.cpu;
            call.exit = Exit::Pending;
            self.descriptors_in_flight(slot, &mut call);
            let here = Here { time: now, cpu, task: self.tasks.at(slot).id, slot };
            self.give(here, What::Pending(call), 0, events);
        }
    }

    /// At the end of the stream: every call that was entered is given.
    pub(super) fn give_in_flight(&mut self, events: &mut Vec<Event>) {
        for slot in self.tasks.slots() {
            let Some(open) = self.threads[slot.index()].open.take() else { continue };
            let certain = Gaps::none_between(open.mark, self.gaps.mark(open.mark.cpu));
            let here = Here { time: self.now, cpu: open.mark.cpu, task: self.tasks.at(slot).id, slot };
            self.give_without_exit(here, open, if certain { Exit::Pending } else { Exit::Unseen }, events);
        }
    }

    /// The open call of a task that executes a program gets the path, unless the call names it relative to a descriptor.
    pub(super) fn add_exec_path(&mut self, here: Here, path: &[u8]) {
        let Some(open) = self.threads[here.slot.index()].open.as_mut() else { return };
        let (Some(arg), Some(args)) = (open.behavior.special.path_argument(), open.call.args) else { return };
        let relative = open.behavior.special == Special::Execveat && args[0] as i32 != libc::AT_FDCWD && path.starts_with(b"/dev/fd/");
        if path.is_empty() || relative {
            return;
        }
        open.call.pieces.retain(|piece| piece.arg != arg);
        add_piece(&mut open.call, arg, path.len() as u64 + 1, path, PieceState::Ok);
    }

    /// Whether this record is where the command begins: its execve's entry, or what can only come after it.
    pub(super) fn begins_the_command(&mut self, here: Here, sample: &Sample<'_>) -> bool {
        let begins = match self.layouts.get(usize::from(sample.event.0)) {
            Some(Layout::Enter(layout)) => self.is_exec(here, layout.nr.signed(sample.raw)),
            Some(Layout::Exit(layout)) => self.is_exec(here, layout.nr.signed(sample.raw)),
            Some(Layout::Exec(_)) => true,
            Some(Layout::Other { entered }) if entered.is_there() => self.is_exec(here, entered.signed(sample.raw)),
            _ => false,
        };
        self.threads[here.slot.index()].set_up &= !begins;
        begins
    }

    fn is_exec(&self, here: Here, raw_nr: i64) -> bool {
        let (abi, nr) = self.abi_and_number(here, raw_nr);
        self.behaviors.get(abi, nr).special.path_argument().is_some()
    }

    /// A call that begins here.
    #[inline]
    pub(super) fn new_call(&mut self, here: Here, abi: Abi, nr: i64) -> Box<Call> {
        self.used.call(CallId { tid: here.task.tid, start: here.time }, abi, nr)
    }

    #[inline]
    fn abi_and_number(&self, here: Here, raw_nr: i64) -> (Abi, i64) {
        match self.tasks.at(here.slot).abi {
            Abi::X86_64 if raw_nr > 0 && raw_nr & X32_BIT != 0 => (Abi::X32, raw_nr & !X32_BIT),
            abi => (abi, raw_nr),
        }
    }
}

/// What readlink(2) says of the descriptor at a call's place.
pub(super) fn add_file(call: &mut Call, place: FdPlace, link: &Path) {
    call.files.push(CallFile { place, file: File::of_link(link) });
}
