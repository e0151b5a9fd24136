//! Drains the armed rings into rounds, and adds synthesized records to them.
//!
//! The drain copies bytes and decodes nothing, so that it is as fast as memory permits.

use super::{Armed, CpuRing};
use crate::bpf::in_flight::InFlight;
use crate::bpf::is_of_rtrace;
use crate::bpf::record::ListedCall;
use crate::event::synthesized::MemoryCopy;
use crate::event::verdict::ShortageKind;
use crate::event::{EventIndex, Notice, NoticeCode, Synthesized, Time};
use crate::inject::Supervisor;
use crate::say;
use crate::source::chunk::{Chunk, Form, Round};
use crate::source::instance::Instance;
use crate::sys::clock;
use crate::sys::perf::Count;
use rustix::event::{PollFd, PollFlags, epoll};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

/// If a ring has less room than this plus the requested stack, it may have dropped a record, since no record is larger:
/// a tracepoint's has at most a page (PERF_MAX_TRACE_SIZE), and a BPF program's 8,000 bytes.
const FULL_AT: usize = 8 << 10;

/// The epoll data of the aggregates of ended tasks; rings have their index.
const AGGREGATES: u64 = u64::MAX - 1;

/// The most times that the rings are emptied after the events were disabled.
const LAST_ROUNDS_MAX: usize = 16;

/// The reader of all armed rings.
#[derive(Debug)]
pub struct Drain {
    armed: Armed,
    /// The programs of other tracers that were reported already.
    programs: BTreeSet<u32>,
    /// Synthesized records for the next round.
    synthesized: Vec<(Time, Synthesized)>,
    /// Emptied buffers for reuse.
    spare: Vec<Vec<u8>>,
    /// The process that changes calls of the command, if there is one.
    supervisor: Option<Supervisor>,
    overrun_is_reported: bool,
    read_error_is_reported: bool,
}

impl Drain {
    /// Returns the reader of these events. The stream begins with the notices in `said`, which were printed before.
    pub fn new(mut armed: Armed, said: Vec<(Time, Notice)>) -> Drain {
        let said = said.into_iter().chain(std::mem::take(&mut armed.notices));
        Drain {
            synthesized: said.map(|(time, notice)| (time, Synthesized::Notice(notice))).collect(),
            armed,
            programs: BTreeSet::new(),
            spare: Vec::new(),
            supervisor: None,
            overrun_is_reported: false,
            read_error_is_reported: false,
        }
    }

    /// Adds what this supervisor reports to each round, until [`Drain::let_calls_pass`].
    pub fn supervised_by(self, supervisor: Option<Supervisor>) -> Drain {
        Drain { supervisor, ..self }
    }

    /// Ends the changes of calls.
    pub fn let_calls_pass(&mut self) {
        let unchanged = self.supervisor.take().map_or(0, |supervisor| supervisor.unchanged());
        let shortage = ShortageKind::UnchangedCalls.counted(unchanged);
        shortage.into_iter().for_each(|shortage| self.synthesized(Synthesized::Shortage(shortage)));
    }

    /// Reports that the process that changes calls was killed, if it was.
    pub fn report_killed_supervisor(&mut self) {
        if let Some(problem) = self.supervisor.as_mut().and_then(Supervisor::succeed) {
            self.notice(NoticeCode::NotInjected, problem);
        }
    }

    /// Returns the armed events, programs and rings that this drain empties.
    pub fn armed(&self) -> &Armed {
        &self.armed
    }

    /// Returns the armed events, for the work after the last round.
    pub fn armed_mut(&mut self) -> &mut Armed {
        &mut self.armed
    }

    /// Adds the rings to an epoll set, with their index as data. A ring wakes its reader at its watermark.
    pub fn watch(&self, epoll: impl AsFd) -> io::Result<()> {
        if let Some(aggregates) = self.armed.aggregates_fd() {
            // Edge-triggered, since the buffer is readable while it holds any data, and must not wake rtrace for each
            // task that ends.
            epoll::add(&epoll, aggregates, epoll::EventData::new_u64(AGGREGATES), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        for (i, ring) in self.armed.rings.iter().enumerate() {
            epoll::add(&epoll, self.armed.events[ring.owner].event.as_fd(), epoll::EventData::new_u64(i as u64), epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    /// Removes a ring from an epoll set. Its tasks have ended, which it would otherwise report forever.
    pub fn unwatch(&self, epoll: impl AsFd, ring: usize) -> io::Result<()> {
        let owner = self.armed.rings[ring].owner;
        Ok(epoll::delete(&epoll, self.armed.events[owner].event.as_fd())?)
    }

    /// Enables the events of moves between cgroups.
    pub fn enable_moves(&self) -> anyhow::Result<()> {
        self.armed.enable_moves()
    }

    /// Enables the events that must be on from the beginning.
    pub fn enable_side_band(&mut self) -> anyhow::Result<()> {
        self.armed.enable_side_band()
    }

    /// Enables all other events. Calls in flight become synthesized records, if the BPF programs know them. `memory`
    /// reads the memory of such a call.
    pub fn enable(&mut self, memory: impl Fn(ListedCall) -> Vec<MemoryCopy>) -> anyhow::Result<()> {
        let begun = self.armed.enable()?;
        self.synthesize_in_flight(&begun, false, memory);
        Ok(())
    }

    /// Disables all events. Calls in flight become synthesized records, if only the BPF programs know them.
    pub fn disable(&mut self) -> anyhow::Result<()> {
        let in_flight = self.armed.disable()?;
        self.synthesize_in_flight(&in_flight, true, |_| Vec::new());
        Ok(())
    }

    /// Starts to trace 32-bit calls once a program that makes them has started.
    pub fn trace_32_bit_calls(&mut self) -> anyhow::Result<()> {
        self.armed.trace_32_bit_calls()
    }

    /// Synthesizes records for calls that have been in flight for long, if only the BPF programs know them.
    pub fn synthesize_pending(&mut self) -> anyhow::Result<()> {
        let pending = self.armed.pending()?;
        self.synthesize_in_flight(&pending, false, |_| Vec::new());
        Ok(())
    }

    fn synthesize_in_flight(&mut self, list: &InFlight, last: bool, memory: impl Fn(ListedCall) -> Vec<MemoryCopy>) {
        for (one, stack) in list.calls() {
            let copies = memory(one);
            self.synthesized.push((one.time, Synthesized::InFlight { task: one.task, call: one.call.to_vec(), last, stack, copies }));
        }
    }

    /// Adds a synthesized record with the present time.
    pub fn synthesized(&mut self, record: Synthesized) {
        self.synthesized.push((clock::now(), record));
    }

    /// Prints a notice, and adds it to the stream.
    pub fn notice(&mut self, code: NoticeCode, text: String) {
        let notice = say::notice(code, text);
        self.synthesized(Synthesized::Notice(notice));
    }

    /// Adds a synthesized record with this time.
    pub fn synthesize_at(&mut self, time: Time, record: Synthesized) {
        self.synthesized.push((time, record));
    }

    /// Makes one complete pass over all rings. From each ring it takes the content at the time of its turn, so no ring
    /// delays the others. A ring with an invalid head is skipped and reported.
    pub fn round(&mut self) -> Round {
        let mut round = Round {
            started: clock::now(),
            chunks: Vec::with_capacity(self.armed.rings.len()),
            synthesized: std::mem::take(&mut self.synthesized),
        };
        round.synthesized.extend(self.armed.ended_task_aggregates(round.started));
        // A report precedes the records of its call. If a ring has such a record and the report comes in the next
        // round, the record is later than the start of this round, and the merge holds it back until then.
        round.synthesized.extend(self.supervisor.as_mut().map(Supervisor::reports).unwrap_or_default());
        for CpuRing { cpu, ring, early, .. } in &mut self.armed.rings {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            bytes.append(early);
            let held = ring.drain(&mut bytes);
            if let Err(overrun) = &held
                && !std::mem::replace(&mut self.overrun_is_reported, true)
            {
                let notice = say::notice(NoticeCode::InvalidRing, format!("CPU {cpu}: {overrun}; please report this"));
                round.synthesized.push((clock::now(), Synthesized::Notice(notice)));
            }
            if held.unwrap_or_default() + FULL_AT + self.armed.stack_bytes > ring.bytes() {
                round.synthesized.push((clock::now(), Synthesized::Full { cpu: *cpu }));
            }
            if bytes.is_empty() {
                self.spare.push(bytes);
            } else {
                round.chunks.push(Chunk { cpu: *cpu, form: Form::Records, bytes });
            }
        }
        if let Some(instance) = self.armed.instance() {
            for buffer in instance.buffers() {
                let mut bytes = self.spare.pop().unwrap_or_default();
                bytes.clear();
                if let Err(error) = instance.drain(buffer, &mut bytes)
                    && !std::mem::replace(&mut self.read_error_is_reported, true)
                {
                    let text = format!("CPU {}: cannot read the buffer of the tracefs instance: {error}", buffer.cpu);
                    round.synthesized.push((clock::now(), Synthesized::Notice(say::notice(NoticeCode::InstanceNotRead, text))));
                }
                if bytes.is_empty() {
                    self.spare.push(bytes);
                } else {
                    round.chunks.push(Chunk { cpu: buffer.cpu, form: Form::Pages, bytes });
                }
            }
        }
        round
    }

    /// Returns whether a ring is seven eighths full.
    pub fn is_nearly_full(&self) -> bool {
        self.armed.rings.iter().any(|of_cpu| of_cpu.ring.filled() >= of_cpu.ring.bytes() / 8 * 7)
    }

    /// Takes back a round's buffers for reuse.
    pub fn recycle(&mut self, round: Round) {
        let room = (self.armed.rings.len() + self.armed.instance().map_or(0, |instance| instance.buffers().len())) * 2;
        self.spare.extend(round.chunks.into_iter().map(|c| c.bytes).take(room.saturating_sub(self.spare.len())));
    }

    /// Finds BPF programs on rtrace's tracepoints that could drop its samples. New ones are added to the stream, and
    /// returned with the event's name.
    pub fn find_other_programs(&mut self) -> Vec<(String, Vec<u32>)> {
        let mut found = Vec::new();
        for (event, ids) in self.armed.programs() {
            let new: Vec<u32> = ids.into_iter().filter(|id| self.programs.insert(*id) && !is_of_rtrace(*id)).collect();
            if !new.is_empty() {
                let name = self.armed.table.get(event).map(|spec| spec.name.clone()).unwrap_or_default();
                found.push((name, new.clone()));
                self.synthesized(Synthesized::Silenced { event, programs: new });
            }
        }
        found
    }

    /// Empties the rings after the events were disabled, and adds the counts of all events to the stream.
    ///
    /// A task that is created while the events of its parent are disabled may inherit them enabled, because the kernel
    /// reads the parent's state before others can find the new task's event (Linux 6.18: `inherit_event`). So this
    /// disables the events until two counts agree. All that these count is then in the returned rounds.
    pub fn last_rounds(&mut self) -> Vec<Round> {
        let (mut rounds, mut counts) = (Vec::new(), self.armed.counts());
        for _ in 0..LAST_ROUNDS_MAX {
            rounds.push(self.round());
            let before = std::mem::replace(&mut counts, self.armed.counts());
            if counts == before {
                break;
            }
            // Events that cannot be disabled were reported when this was tried first.
            let _ = self.armed.disable_events();
        }
        self.add_counts(counts);
        rounds
    }

    /// Adds the counts of all events and the kinds of missing data to the stream.
    fn add_counts(&mut self, counts: Vec<(EventIndex, Count)>) {
        for (event, count) in counts {
            let from_afar = self.armed.disabled_remotely(event);
            self.synthesized(Synthesized::Count { event, issued: count.issued, lost: count.lost.unwrap_or_default(), from_afar });
        }
        match self.armed.instance().map(Instance::stats) {
            Some(Ok(stats)) => self.synthesized(Synthesized::InstanceCount { issued: stats.issued(), lost: stats.lost }),
            Some(Err(error)) => {
                self.notice(NoticeCode::CountsNotRead, format!("cannot read the counts of the tracefs instance: {error}"));
            }
            None => {}
        }
        let calls = self.armed.left_out();
        if calls > 0 {
            self.synthesized(Synthesized::LeftOut { calls });
        }
        let calls = self.armed.withheld();
        if calls > 0 {
            self.synthesized(Synthesized::NotPermitted { calls });
        }
        let counts = self.armed.untraced_requests();
        if !counts.is_empty() {
            self.synthesized(Synthesized::UntracedRequests { counts });
        }
        for shortage in self.armed.shortages() {
            self.synthesized(Synthesized::Shortage(shortage));
        }
    }

    /// Returns a round with only the records that were synthesized since the last round, or `None` if there are none.
    /// It does not read the rings, which may be closed.
    pub fn rest(&mut self) -> Option<Round> {
        let synthesized = std::mem::take(&mut self.synthesized);
        (!synthesized.is_empty()).then(|| Round { started: clock::now(), chunks: Vec::new(), synthesized })
    }

    /// Removes the tracefs instance, after the last round.
    ///
    /// # Errors
    /// The instance could not be removed. The message has the reason.
    pub fn remove_instance(&mut self) -> anyhow::Result<()> {
        self.armed.remove_instance()
    }

    /// Returns whether all followed tasks and the tasks that they created have ended.
    pub fn targets_gone(&self) -> bool {
        if let Some(gone) = self.armed.targets_gone() {
            return gone;
        }
        let side_bands = self.armed.rings.iter().flat_map(|r| &r.side_bands);
        let mut polls: Vec<PollFd> =
            side_bands.map(|&i| PollFd::from_borrowed_fd(self.armed.events[i].event.as_fd(), PollFlags::empty())).collect();
        rustix::event::poll(&mut polls, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
            && polls.iter().all(|p| p.revents().contains(PollFlags::HUP))
    }
}
