//! Requests of io_uring: pairs submissions with completions, and emits each request as a call of the task that
//! submitted it, whichever task completed it (a worker of the kernel, or a thread that waits for the ring).
//!
//! * The kernel's address of a request identifies it until the kernel uses it for the next one. A submission at the
//!   address of a request in flight therefore ends that one: either it succeeded and had asked for no completion
//!   (IOSQE_CQE_SKIP_SUCCESS), or its completion was not seen.
//! * A request that completes repeatedly (multishot) has a line for each completion. All but the last announce another
//!   one (IORING_CQE_F_MORE) and do not name the request; nor do completions that found no room in the ring. They are
//!   assigned by the program's own number (`user_data`), if only one request of the ring in flight has it.
//! * A completion that cannot be assigned is emitted as a call of its own: its request was submitted before the trace,
//!   or another ring posted it (IORING_OP_MSG_RING).
//! * After a gap, no completion is paired with an earlier submission: both records between them may have been lost.
//! * What is in flight when its process ends is completed by a worker of the kernel, which events on tasks do not
//!   include. At the end, a request of a task that has ended is therefore one whose completion was not seen. So is one
//!   that shares its `user_data` with others if a completion could not be assigned to one of them.
//! * The events are of all requests, whichever the user asked for. The others are followed too, because their addresses
//!   are used again, but they have no lines and are no calls of the account.
//! * The arguments of a request come from the BPF programs, in a record that follows the one of the submission. Without
//!   BPF, or if that record was lost, a line has only what the events of the kernel say.
//! * What the kernel wrote for a request comes in another record, which follows the one of the completion on the same
//!   CPU. The line waits for it.
//! * Older kernels do not name the request that is submitted. All completions are then assigned by `user_data`.

use super::call_pool::CallPool;
use super::{Follower, RecordContext};
use crate::beauty::lookup::requests::{self, COMPLETION};
use crate::bpf::record::CallRecord;
use crate::event::{Abi, Call, CallId, Comm, EntryState, Event, EventIndex, EventKind, ExitState, TaskId, Time};
use crate::session::Session;
use crate::syscall::gaps::{GapMark, Gaps};
use crate::syscall::ledger::LeftOut;
use crate::syscall::requests::{Completion, RequestId, Submission};
use crate::task::fds::Ticket;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

/// The maximum number of requests in flight that are followed. Further ones are emitted when they are submitted.
const OPEN_MAX: usize = 1 << 20;

/// The requests in flight.
#[derive(Default)]
pub(super) struct Requests {
    open: FxHashMap<RequestId, OpenRequest>,
    /// The requests by ring and `user_data`.
    by_data: FxHashMap<(u64, u64), SameData>,
    /// Requests that failed and had asked for a completion only in that case, until their address is used again.
    failed_silent: FxHashSet<RequestId>,
    /// Submissions in order of time that are too recent to be shown as pending, if requests are.
    recent: VecDeque<(Time, RequestId)>,
    /// By CPU: the completed request that waits for the record of what the kernel has written, and the start of the
    /// record of its arguments.
    ending: FxHashMap<u32, (Ticket, Time)>,
    /// By opcode: whether the user did not ask for these requests. Empty if the user asked for all.
    left_out: Vec<bool>,
    /// The last address that stands for one that the kernel did not tell. It is odd, as no address of a request is.
    untold: u64,
}

/// The requests in flight of one ring with the same `user_data`; a program may give the same to all of its requests.
#[derive(Default)]
struct SameData {
    count: u32,
    /// The exclusive or of their addresses, which is the address if there is one request.
    addresses: u64,
    /// One of them may have completed: a completion could not be assigned.
    is_doubtful: bool,
}

/// A request that was submitted and has not completed.
struct OpenRequest {
    task: TaskId,
    comm: Option<Comm>,
    cpu: u32,
    start: Time,
    mark: GapMark,
    user_data: u64,
    opcode: u16,
    flags: u64,
    /// It has no completion if it succeeds, or if it is canceled with its chain.
    silent: bool,
    shown_pending: bool,
    /// The request with its arguments, if they are known.
    call: Option<Box<Call>>,
    /// The BPF programs write a record when the request completes.
    has_end: bool,
}

impl Requests {
    pub fn new(session: &Session) -> Requests {
        let others: FxHashSet<&str> = session.other_requests.iter().map(String::as_str).collect();
        let count = if others.is_empty() { 0 } else { COMPLETION + 1 };
        let left_out = (0..count).map(|opcode| others.contains(requests::name(opcode).as_str())).collect();
        Requests { left_out, untold: 1, ..Requests::default() }
    }

    /// Returns whether the user asked for requests with this opcode.
    fn are_asked(&self, opcode: u16) -> bool {
        !self.left_out.get(usize::from(opcode)).copied().unwrap_or_default()
    }

    /// Returns the identity of a submitted request; a new one if the kernel did not tell its address.
    fn identity(&mut self, id: RequestId) -> RequestId {
        if id.request != 0 {
            return id;
        }
        self.untold = self.untold.wrapping_add(2);
        RequestId { request: self.untold, ..id }
    }

    fn insert(&mut self, id: RequestId, open: OpenRequest) {
        let same = self.by_data.entry((id.ring, open.user_data)).or_default();
        same.count += 1;
        same.addresses ^= id.request;
        self.open.insert(id, open);
    }

    fn remove(&mut self, id: RequestId) -> Option<OpenRequest> {
        let open = self.open.remove(&id)?;
        if let Entry::Occupied(mut same) = self.by_data.entry((id.ring, open.user_data)) {
            same.get_mut().count -= 1;
            same.get_mut().addresses ^= id.request;
            if same.get().count == 0 {
                same.remove();
            }
        }
        Some(open)
    }

    /// Returns the only request in flight of this ring with this number of the program's.
    fn only(&self, ring: u64, user_data: u64) -> Option<RequestId> {
        let same = self.by_data.get(&(ring, user_data))?;
        (same.count == 1).then_some(RequestId { ring, request: same.addresses })
    }

    /// Returns the only request in flight to which a completion without a request can belong. If there are several, all
    /// of them are doubtful from now on.
    fn completing(&mut self, of: &Completion, more: bool) -> Option<RequestId> {
        let only = self.only(of.ring, of.user_data);
        if only.is_none()
            && !more
            && let Some(same) = self.by_data.get_mut(&(of.ring, of.user_data))
        {
            same.is_doubtful = true;
        }
        only
    }

    fn is_doubtful(&self, id: RequestId, open: &OpenRequest) -> bool {
        self.by_data.get(&(id.ring, open.user_data)).is_some_and(|same| same.is_doubtful)
    }
}

impl Follower {
    /// Processes a submission.
    #[cold]
    pub(super) fn submitted(&mut self, context: RecordContext, event: EventIndex, of: Submission, events: &mut Vec<Event>) {
        self.release_ending(context.cpu, events);
        let id = self.requests.identity(of.id);
        if let Some(before) = self.requests.remove(id) {
            self.end_of_request(&before, context.cpu, ExitState::Unseen, events);
        }
        self.requests.failed_silent.remove(&id);
        if !self.requests.are_asked(u16::from(of.opcode)) {
            self.ledger.leave_out(event, LeftOut::NotAsked);
        }
        let open = OpenRequest {
            task: context.task,
            comm: self.tasks.at(context.slot).comm().cloned(),
            cpu: context.cpu,
            start: context.time,
            mark: self.gaps.mark(context.cpu),
            user_data: of.user_data,
            opcode: u16::from(of.opcode),
            flags: u64::from(of.flags),
            silent: requests::is_silent(u64::from(of.flags)),
            shown_pending: false,
            call: None,
            has_end: false,
        };
        if self.requests.open.len() < OPEN_MAX {
            if self.stream.pending_after.is_some() && self.requests.are_asked(open.opcode) {
                self.requests.recent.push_back((open.start, id));
            }
            self.requests.insert(id, open);
        } else {
            self.emit_request(&open, EntryState::Seen, context.cpu, (ExitState::Unseen, 0, 0), events);
        }
    }

    /// Processes the arguments of a request, which the BPF programs have read right after its submission.
    #[cold]
    pub(super) fn request_reported(&mut self, context: RecordContext, call_record: &CallRecord<'_>) {
        let (ring, request) = call_record.request();
        let mark = self.gaps.mark(context.cpu);
        let mut call = self.paired_call(context, call_record);
        call.nr = requests::number_of_record(call_record.nr);
        let open = self.requests.open.get_mut(&RequestId { ring, request }).filter(|open| open.call.is_none());
        match open.filter(|open| open.task == context.task && Gaps::none_between(open.mark, mark)) {
            Some(open) if requests::opcode(call.nr) == Some(open.opcode) => {
                (open.call, open.has_end) = (Some(call), call_record.has_end());
                // The kernel adds flags of its own to those of its events.
                open.flags = call_record.sqe_flags().into();
            }
            _ => self.call_pool.put_back(call),
        }
    }

    /// Processes what the kernel has written for a request, which the BPF programs have read right after its
    /// completion.
    #[cold]
    pub(super) fn request_end_reported(&mut self, context: RecordContext, call_record: &CallRecord<'_>, events: &mut Vec<Event>) {
        let Some((ticket, start)) = self.requests.ending.remove(&context.cpu) else { return };
        if let Some(call) = self.outbox.call(ticket).filter(|_| start == call_record.start) {
            self.reported.complete(call_record, call);
        }
        self.outbox.release_one(ticket, events);
    }

    /// Emits the request that waits for such a record of this CPU, because another event of io_uring came first.
    fn release_ending(&mut self, cpu: u32, events: &mut Vec<Event>) {
        if let Some((ticket, _)) = self.requests.ending.remove(&cpu) {
            self.outbox.release_one(ticket, events);
        }
    }

    /// Processes a completion.
    #[cold]
    pub(super) fn completed(&mut self, context: RecordContext, of: Completion, events: &mut Vec<Event>) {
        self.release_ending(context.cpu, events);
        let exit = ExitState::Returned { at: context.time, ret: i64::from(of.result) };
        let more = requests::more_follow(u64::from(of.flags));
        let id = match of.request {
            Some(request) => Some(RequestId { ring: of.ring, request }),
            // A completion without a request that announces no other one is another ring's message.
            None if more || of.is_overflow => self.requests.completing(&of, more),
            None => None,
        };
        let Some((id, mut open)) = id.and_then(|id| Some((id, self.requests.remove(id)?))) else {
            return self.emit_lone_completion(context, of, exit, events);
        };
        if open.user_data != of.user_data {
            self.end_of_request(&open, context.cpu, ExitState::Unseen, events);
            return self.emit_lone_completion(context, of, exit, events);
        }
        match (self.is_certain(&open), of.request) {
            (true, None) if more => {
                // The line is one more than there are submissions.
                self.emit_request(&open, EntryState::Unseen, context.cpu, (exit, of.flags, 0), events);
                open.shown_pending = false;
                self.requests.insert(id, open);
            }
            (true, _) => {
                if open.silent && of.result < 0 && self.requests.failed_silent.len() < OPEN_MAX {
                    self.requests.failed_silent.insert(id);
                }
                let end = open.call.as_ref().filter(|_| open.has_end && of.request.is_some()).map(|call| call.id.start);
                if let Some(start) = end {
                    self.requests.ending.insert(context.cpu, (self.outbox.next(), start));
                }
                self.emit_request(&open, EntryState::Seen, context.cpu, (exit, of.flags, end.is_some().into()), events);
            }
            (false, None) => {
                self.emit_lone_completion(context, of, exit, events);
                self.requests.insert(id, open);
            }
            (false, Some(_)) => {
                self.ledger.untrusted_exits += u64::from(self.requests.are_asked(open.opcode));
                self.emit_request(&open, EntryState::Seen, context.cpu, (ExitState::Unseen, 0, 0), events);
            }
        }
    }

    /// Processes the cancellation of a request whose chain failed. The kernel posts completions of the rest of a chain
    /// only if the request that failed had asked for completions (`io_fail_links` in io_uring/io_uring.c).
    #[cold]
    pub(super) fn canceled(&mut self, (failed, canceled): (RequestId, RequestId)) {
        let Requests { open, failed_silent, .. } = &mut self.requests;
        let silent = failed_silent.contains(&failed) || open.get(&failed).is_some_and(|failed| failed.silent);
        if let Some(canceled) = open.get_mut(&canceled) {
            canceled.silent = silent;
        }
    }

    /// Emits each request that has been in flight for longer than `after` nanoseconds, once.
    pub(super) fn emit_pending_requests(&mut self, after: u64, events: &mut Vec<Event>) {
        while let Some(&(start, id)) = self.requests.recent.front()
            && self.now.since(start) >= after
        {
            self.requests.recent.pop_front();
            // The success of a request that asked for no completion is not seen.
            let Some(open) = self.requests.open.get(&id).filter(|open| open.start == start && !open.silent) else { continue };
            if !self.is_certain(open) || !self.may_complete(id, open) {
                continue;
            }
            let (cpu, task, comm) = (open.cpu, open.task, open.comm.clone());
            let call = call_of(&mut self.call_pool, open, self.stream.abi, 0);
            self.outbox.push(Event { time: self.now, cpu, task, comm, kind: EventKind::Pending(call) }, 0, events);
            if let Some(open) = self.requests.open.get_mut(&id) {
                open.shown_pending = true;
            }
        }
    }

    /// Emits the requests that are in flight at the end of the stream.
    pub(super) fn emit_requests_in_flight(&mut self, events: &mut Vec<Event>) {
        let mut open: Vec<(RequestId, OpenRequest)> = std::mem::take(&mut self.requests.open).into_iter().collect();
        open.sort_by_key(|(_, open)| (open.start, open.task.tid, open.user_data));
        for (id, open) in open {
            let otherwise = if self.may_complete(id, &open) { ExitState::Pending } else { ExitState::Unseen };
            self.end_of_request(&open, open.cpu, otherwise, events);
        }
    }

    /// Returns whether a request without a completion is still in flight.
    fn may_complete(&self, id: RequestId, open: &OpenRequest) -> bool {
        let lives = self.tasks.get(open.task.tid).is_some_and(|task| task.id == open.task && !task.ended);
        lives && !self.requests.is_doubtful(id, open)
    }

    /// Emits a request without a completion. `otherwise` is its end if it had asked for one and no record was lost.
    fn end_of_request(&mut self, open: &OpenRequest, cpu: u32, otherwise: ExitState, events: &mut Vec<Event>) {
        let exit = match (self.is_certain(open), open.silent) {
            (true, true) => ExitState::Never,
            (true, false) => otherwise,
            (false, _) => ExitState::Unseen,
        };
        self.emit_request(open, EntryState::Seen, cpu, (exit, 0, 0), events);
    }

    /// Returns whether no record was lost since the submission.
    fn is_certain(&self, open: &OpenRequest) -> bool {
        Gaps::none_between(open.mark, self.gaps.mark(open.cpu))
    }

    /// Emits a completion whose request is not known, as a call of the task in which the kernel posted it.
    fn emit_lone_completion(&mut self, context: RecordContext, of: Completion, exit: ExitState, events: &mut Vec<Event>) {
        if !self.requests.are_asked(COMPLETION) {
            return;
        }
        let entry = if self.gaps.was_any() { EntryState::Lost } else { EntryState::Unseen };
        self.ledger.call(entry, exit);
        let mut call = self.new_call(context, self.stream.abi, requests::number(COMPLETION));
        (call.entry, call.exit) = (entry, exit);
        call.request = Some(Box::new(requests::registers(of.user_data, 0, u64::from(of.flags))));
        self.emit(context, EventKind::Call(call), 0, events);
    }

    /// Counts and emits a request that has ended, or one of its completions, with the flags of the completion. `entry`
    /// says whether the request itself is counted now, which it is once. `waits` is the number of records that its line
    /// waits for.
    fn emit_request(
        &mut self,
        open: &OpenRequest,
        entry: EntryState,
        cpu: u32,
        (exit, flags, waits): (ExitState, u32, u32),
        events: &mut Vec<Event>,
    ) {
        if !self.requests.are_asked(open.opcode) {
            return;
        }
        self.ledger.call(entry, exit);
        let mut call = call_of(&mut self.call_pool, open, self.stream.abi, flags);
        (call.exit, call.shown_pending) = (exit, open.shown_pending);
        let (task, comm) = (open.task, open.comm.clone());
        self.outbox.push(Event { time: self.now, cpu, task, comm, kind: EventKind::Call(call) }, waits, events);
    }
}

/// Makes the call of a request, with the flags of a completion.
fn call_of(pool: &mut CallPool, open: &OpenRequest, abi: Abi, cqe_flags: u32) -> Box<Call> {
    let id = CallId { tid: open.task.tid, start: open.start };
    let mut call = pool.take(id, abi, requests::number(open.opcode));
    if let Some(known) = &open.call {
        (call.nr, call.args, call.pids) = (known.nr, known.args, known.pids.clone());
        call.pieces.clone_from(&known.pieces);
        call.payload.extend_from_slice(&known.payload);
        call.files.clone_from(&known.files);
        call.ids.clone_from(&known.ids);
    }
    call.request = Some(Box::new(requests::registers(open.user_data, open.flags, u64::from(cqe_flags))));
    call
}
