//! Entries and exits of syscalls.

use super::injected::add_copies;
use super::{Follower, RecordContext, path_names};
use crate::event::synthesized::{MemoryCopy, StackMemory};
use crate::event::{
    Abi, Call, CallFile, CallId, EntryState, Event, EventKind, ExitState, FdPlace, File, PidTranslation, PieceState, TaskId, Time,
};
use crate::source::Sample;
use crate::syscall::behavior::{Behavior, Returns};
use crate::syscall::gaps::Gaps;
use crate::syscall::layout::{EnterLayout, ExitLayout, Layout, add_piece};
use crate::syscall::pairing::{ExitOutcome, ExitRecord, OpenCall};
use crate::syscall::special::Special;
use crate::task::fds::{FdTableId, Path};
use smallvec::SmallVec;

/// __X32_SYSCALL_BIT (arch/x86/include/uapi/asm/unistd.h).
const X32_BIT: i64 = 1 << 30;

/// The facts that a completed call waits for.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// The table of the descriptors.
    pub table: Option<FdTableId>,
    /// The descriptors whose files are not known yet, each with its place in the call.
    pub fds: SmallVec<[(FdPlace, i32); 2]>,
    /// The tasks of which /proc has to be read: unknown tasks that the arguments name, and the caller if its pid
    /// namespace is not known.
    pub tids: SmallVec<[i32; 2]>,
    /// Bit i: argument i is a path whose name has not arrived.
    pub names: u8,
}

impl Follower {
    /// Reads the arguments of a call from the record of its entry. Those that the syscall does not have are 0. So is
    /// that of sigreturn(2), the stack pointer, which such a record does not have.
    #[inline]
    pub(super) fn arguments_at_entry(&self, layout: &EnterLayout, (abi, nr): (Abi, i64), raw: &[u8]) -> [u64; 6] {
        if self.behaviors.get(abi, nr).special == Special::SigReturn { [0; 6] } else { layout.args(raw) }
    }

    /// Processes the entry of a call.
    #[inline]
    pub(super) fn enter(&mut self, context: RecordContext, layout: &EnterLayout, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let raw = sample.raw;
        let raw_nr = layout.nr.signed(raw);
        let (abi, nr) = self.abi_and_number(context, raw_nr);
        let args = self.arguments_at_entry(layout, (abi, nr), raw);
        let behavior = self.behaviors.get(abi, nr).with(&args);
        let mut call = self.new_call(context, abi, nr);
        call.args = Some(args);
        call.pids = PidTranslation::of(self.threads[context.slot.index()].nested != Some(false));
        if self.threads[context.slot.index()].changed.is_some() {
            self.delayed(context, &mut call);
        }
        if !layout.copies.is_empty() {
            layout.copy_pieces(raw, &mut call);
        }
        call.stack = self.stack_of_call(context, sample, abi, nr);
        if self.stream.names_at_exit {
            self.release_unnamed(context.slot, events);
        }
        let thread = &mut self.threads[context.slot.index()];
        let mark = self.gaps.mark(context.cpu);
        let table = thread.table;
        let mut open = OpenCall { call, raw_nr, mark, behavior, table, uses: SmallVec::new(), changes: false, shown: layout.shown };
        let older = thread.open.take();
        if let Some(older) = older {
            self.emit_without_exit(context, older, ExitState::Unseen, events);
        }
        if self.stream.descriptors && (behavior.fds != 0 || behavior.special != Special::Plain) {
            self.descriptors_at_entry(context, &mut open, &args);
        }
        if matches!(behavior.special, Special::Unshare | Special::Setns) {
            self.may_choose_namespace(context, behavior.special, &args);
        }
        let at_once = self.end_at_entry(context, &behavior, &args, layout.single);
        self.threads[context.slot.index()].enter(open);
        if behavior.special.path_argument().is_some() {
            let path = self.command.take_path(context.task);
            self.add_exec_path(context, &path);
        }
        if let Some(exit) = at_once
            && let Some(open) = self.threads[context.slot.index()].open.take()
        {
            self.emit_without_exit(context, open, exit, events);
        }
    }

    /// Handles calls whose exit will certainly not be seen, and returns how they end.
    #[inline]
    fn end_at_entry(&mut self, context: RecordContext, behavior: &Behavior, args: &[u64; 6], single: bool) -> Option<ExitState> {
        match behavior.special {
            Special::Exit => self.ends.exit(context.task.tid, args[0]),
            Special::ExitGroup => self.ends.exit_group(context.task.pid, args[0]),
            // Its exit has no syscall number, so the exit event of this syscall never records it.
            Special::SigReturn if single => return Some(ExitState::Unseen),
            _ => return None,
        }
        Some(ExitState::Never)
    }

    /// Processes the exit of a call.
    #[inline]
    pub(super) fn exit(&mut self, context: RecordContext, layout: ExitLayout, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let raw = sample.raw;
        let (raw_nr, ret) = (layout.nr.signed(raw), layout.ret.signed(raw));
        let raw_nr = match &self.threads[context.slot.index()].open {
            Some(open) if open.raw_nr != raw_nr && ret == 0 => self.number_of_exec(context, raw_nr),
            _ => raw_nr,
        };
        let (abi, nr) = self.abi_and_number(context, raw_nr);
        let behavior = self.behaviors.get(abi, nr);
        let (special, ret) = (behavior.special, behavior.returns.extended(ret));
        let mark = self.gaps.mark(context.cpu);
        let record = ExitRecord { time: context.time, mark, raw_nr, ret, special, covers_all: layout.covers_all };
        if self.threads[context.slot.index()].open.is_none() && self.is_interrupted(context, (abi, nr), ret) {
            return self.exit_of_interrupted(context, (record, layout.shown), (abi, nr), events);
        }
        if self.threads[context.slot.index()].changed.is_some()
            && let Some(changed) = self.take_changed(context, (abi, nr), true)
        {
            return self.exit_of_answered(context, (record, layout.shown), &changed, events);
        }
        let outcome = self.threads[context.slot.index()].exit(record);
        match outcome {
            ExitOutcome::Returned(mut open) => {
                if !open.behavior.special.has_stack_at_entry() {
                    open.call.stack = self.stack_of_call(context, sample, abi, nr);
                }
                self.returned(context, open, ret, events)
            }
            ExitOutcome::SecondReturn => self.ledger.second_returns += 1,
            ExitOutcome::Untrusted(open) => {
                self.ledger.untrusted_exits += 1;
                self.emit_without_exit(context, open, ExitState::Unseen, events);
                self.forget_descriptors(context, special);
            }
            ExitOutcome::Alone { closed, entry } => {
                if let Some(closed) = closed {
                    self.emit_without_exit(context, closed, ExitState::Unseen, events);
                }
                self.forget_descriptors(context, special);
                if !layout.shown {
                    return;
                }
                let mut call = self.new_call(context, abi, nr);
                (call.entry, call.exit) = (entry, ExitState::Returned { at: context.time, ret });
                call.pids = PidTranslation::of(self.threads[context.slot.index()].nested != Some(false));
                if !special.has_stack_at_entry() {
                    call.stack = self.stack_of_call(context, sample, abi, nr);
                }
                self.emit_call(context, call, Lookups::default(), events);
            }
        }
    }

    /// Returns the number under which the open call began, if it executed a program; otherwise `raw_nr`. An execve
    /// returns under the number that it has in the ABI of the new program, so that number shows the ABI
    /// (`set_personality_ia32` and `set_personality_64bit` in arch/x86/kernel/process_64.c).
    #[cold]
    fn number_of_exec(&mut self, context: RecordContext, raw_nr: i64) -> i64 {
        let open = self.threads[context.slot.index()].open.as_ref();
        let Some(began_as) = open.filter(|open| open.behavior.special.path_argument().is_some()).map(|open| open.raw_nr) else {
            return raw_nr;
        };
        let returns_as = |abi: &Abi| {
            let bit = if *abi == Abi::X32 { X32_BIT } else { 0 };
            Special::Execve.number(*abi).is_some_and(|number| i64::from(number) | bit == raw_nr)
        };
        let abis: &[Abi] = if self.stream.abi == Abi::X86_64 { &[Abi::X86_64, Abi::I386, Abi::X32] } else { &[] };
        match abis.iter().find(|abi| returns_as(abi)) {
            Some(abi) => {
                // Each number shows by itself whether the call is an x32 call.
                self.tasks.at_mut(context.slot).abi = if *abi == Abi::I386 { Abi::I386 } else { Abi::X86_64 };
                began_as
            }
            None => raw_nr,
        }
    }

    /// Emits a call whose entry and exit were paired.
    #[inline]
    fn returned(&mut self, context: RecordContext, mut open: OpenCall, ret: i64, events: &mut Vec<Event>) {
        if ret < 0 && open.behavior.special.path_argument().is_some() && self.command.runs_rtrace_code(context.task) {
            // rtrace's own code continues: it reports the error, or tries a shell.
            self.threads[context.slot.index()].set_up = true;
        }
        open.call.exit = ExitState::Returned { at: context.time, ret };
        if open.shown && self.tally_returned(context, &open.call, events) {
            return self.call_pool.put_back(open.call);
        }
        let mut lookups = Lookups::default();
        if self.stream.descriptors
            && (!open.uses.is_empty() || open.changes || open.behavior.returns == Returns::Fd || open.behavior.special != Special::Plain)
        {
            self.descriptors_at_exit(context, &mut open, ret, &mut lookups);
        }
        if !open.shown {
            return self.call_pool.put_back(open.call);
        }
        if open.call.pids != PidTranslation::Same {
            self.request_namespace(context, &open.behavior, &mut open.call, &mut lookups);
            self.translate(context, &open.behavior, &mut open.call);
        }
        if open.behavior.pids != 0 {
            let may_be_same = self.threads[context.slot.index()].nested.is_none();
            self.request_tasks(open.behavior.pids, &open.call, may_be_same, &mut lookups);
        }
        if self.stream.names_at_exit {
            lookups.names = path_names::missing_names(&open.call, &open.behavior);
        }
        self.emit_call(context, open.call, lookups, events);
    }

    /// Emits a call whose exit was not seen, or that has none.
    #[cold]
    pub(super) fn emit_without_exit(&mut self, context: RecordContext, mut open: OpenCall, exit: ExitState, events: &mut Vec<Event>) {
        open.call.exit = exit;
        if self.stream.descriptors {
            self.descriptors_without_exit(context, &mut open);
        }
        if !open.shown {
            return self.call_pool.put_back(open.call);
        }
        self.emit_call(context, open.call, Lookups::default(), events);
    }

    /// Counts and emits a call from an entry and an exit record.
    #[inline]
    fn emit_call(&mut self, context: RecordContext, call: Box<Call>, lookups: Lookups, events: &mut Vec<Event>) {
        self.ledger.call(call.entry, call.exit);
        self.emit_counted(context, call, lookups, events);
    }

    /// Emits a call that the ledger has counted, and makes it wait for the lookups.
    #[inline]
    pub(super) fn emit_counted(&mut self, context: RecordContext, call: Box<Call>, lookups: Lookups, events: &mut Vec<Event>) {
        self.emit_tallied(events);
        let waits = lookups.fds.len() + lookups.tids.len() + usize::from(lookups.names != 0);
        if waits > 0 {
            let ticket = self.outbox.next();
            if let Some(table) = lookups.table {
                lookups.fds.iter().for_each(|&(place, fd)| self.tables.wait(table, fd, ticket, place));
            }
            for tid in lookups.tids {
                self.task_reads.request(tid).push(ticket);
            }
            if lookups.names != 0 {
                self.await_names(context, lookups.names, ticket);
            }
        }
        self.emit(context, EventKind::Call(call), waits as u32, events);
    }

    /// Requests reads of unknown tasks that the call's arguments name (those with their bit in `pids`). With
    /// `may_be_same`, it is not known yet whether the caller is in rtrace's pid namespace.
    pub(super) fn request_tasks(&mut self, pids: u8, call: &Call, may_be_same: bool, lookups: &mut Lookups) {
        let Some(args) = call.args else { return };
        for i in (0..6).filter(|i| pids & (1 << i) != 0) {
            let number = args[i] as i32;
            let Some(tid) = call.pids.task(number).or(may_be_same.then_some(number)) else { continue };
            if tid > 0 && !lookups.tids.contains(&tid) && self.may_find_task(tid) {
                lookups.tids.push(tid);
            }
        }
    }

    /// Requests a read of a task without an event that waits for it.
    #[cold]
    pub(super) fn request_task(&mut self, tid: i32) {
        if tid > 0 && self.may_find_task(tid) {
            self.task_reads.request(tid);
        }
    }

    /// Returns whether a task is unknown, and a read of /proc may find it.
    fn may_find_task(&self, tid: i32) -> bool {
        self.tasks.get(tid).is_none() && self.task_reads.may_find(tid)
    }

    /// Handles a task that has slept in a call since before the trace. If the call's entry was seen after all, only the
    /// stack is new.
    #[cold]
    pub(super) fn sleeping(
        &mut self,
        time: Time,
        task: TaskId,
        (raw_nr, args): (i64, [u64; 6]),
        (memory, copies): (Option<&StackMemory>, &[MemoryCopy]),
    ) {
        let slot = self.slot_from_proc(task, time);
        let context = RecordContext { time, cpu: 0, task, slot };
        let (abi, nr) = self.abi_and_number(context, raw_nr);
        let stack = memory.and_then(|memory| self.stack_in_flight(context, memory, abi, nr));
        let mark = self.gaps.mark(context.cpu);
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
        let mut call = self.new_call(context, abi, nr);
        (call.entry, call.args, call.stack) = (EntryState::Unseen, Some(args), stack);
        add_copies(&mut call, copies);
        let open = OpenCall { call, raw_nr, mark, behavior, table, uses: SmallVec::new(), changes: false, shown: true };
        self.threads[slot.index()].open = Some(open);
    }

    /// Emits each call that has been in flight for longer than `after` nanoseconds, once.
    pub(super) fn emit_pending(&mut self, after: u64, events: &mut Vec<Event>) {
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
            call.exit = ExitState::Pending;
            self.descriptors_in_flight(slot, &mut call);
            let context = RecordContext { time: now, cpu, task: self.tasks.at(slot).id, slot };
            self.emit(context, EventKind::Pending(call), 0, events);
        }
    }

    /// Emits every call that is in flight at the end of the stream.
    pub(super) fn emit_in_flight(&mut self, events: &mut Vec<Event>) {
        for slot in self.tasks.slots() {
            let Some(open) = self.threads[slot.index()].open.take() else { continue };
            let certain = Gaps::none_between(open.mark, self.gaps.mark(open.mark.cpu));
            let context = RecordContext { time: self.now, cpu: open.mark.cpu, task: self.tasks.at(slot).id, slot };
            self.emit_without_exit(context, open, if certain { ExitState::Pending } else { ExitState::Unseen }, events);
        }
    }

    /// Adds the path to the open call of a task that executes a program, unless the call names it relative to a
    /// descriptor.
    pub(super) fn add_exec_path(&mut self, context: RecordContext, path: &[u8]) {
        let Some(open) = self.threads[context.slot.index()].open.as_mut() else { return };
        let (Some(arg), Some(args)) = (open.behavior.special.path_argument(), open.call.args) else { return };
        let relative = open.behavior.special == Special::Execveat && args[0] as i32 != libc::AT_FDCWD && path.starts_with(b"/dev/fd/");
        if path.is_empty() || relative {
            return;
        }
        open.call.pieces.retain(|piece| piece.arg != arg);
        add_piece(&mut open.call, arg, path.len() as u64 + 1, path, PieceState::Ok);
    }

    /// Returns whether the command begins with this record: the entry of its execve, or a record that can only follow
    /// it.
    pub(super) fn begins_command(&mut self, context: RecordContext, sample: &Sample<'_>) -> bool {
        let begins = match self.layouts.get(usize::from(sample.event.0)) {
            Some(Layout::Enter(layout)) => self.is_exec(context, layout.nr.signed(sample.raw)),
            Some(Layout::Exit(layout)) => self.is_exec(context, layout.nr.signed(sample.raw)),
            Some(Layout::Exec(_)) => true,
            Some(Layout::Other { entered }) if entered.exists() => self.is_exec(context, entered.signed(sample.raw)),
            _ => false,
        };
        self.threads[context.slot.index()].set_up &= !begins;
        begins
    }

    /// Returns whether the number is that of execve or execveat.
    fn is_exec(&self, context: RecordContext, raw_nr: i64) -> bool {
        let (abi, nr) = self.abi_and_number(context, raw_nr);
        self.behaviors.get(abi, nr).special.path_argument().is_some()
    }

    /// Returns a call that begins with this record.
    #[inline]
    pub(super) fn new_call(&mut self, context: RecordContext, abi: Abi, nr: i64) -> Box<Call> {
        self.call_pool.take(CallId { tid: context.task.tid, start: context.time }, abi, nr)
    }

    /// Returns the ABI of a call and its number in that ABI.
    #[inline]
    pub(super) fn abi_and_number(&self, context: RecordContext, raw_nr: i64) -> (Abi, i64) {
        match self.tasks.at(context.slot).abi {
            Abi::X86_64 if raw_nr > 0 && raw_nr & X32_BIT != 0 => (Abi::X32, raw_nr & !X32_BIT),
            abi => (abi, raw_nr),
        }
    }
}

/// Adds a file to a call, from the link's target that readlink(2) returned.
pub(super) fn add_file(call: &mut Call, place: FdPlace, link: &Path) {
    call.files.push(CallFile { place, file: File::of_link(link) });
}
