//! The live source's drain side: rings → rounds, and the facts that go with them.
//!
//! It copies and gives back; it decodes nothing, so that the rings are emptied as fast as memory moves.

use super::{Armed, CpuRing};
use crate::bpf::in_flight::InFlight;
use crate::bpf::is_of_rtrace;
use crate::event::{Note, Time};
use crate::say;
use crate::source::chunk::{Chunk, Form, Round};
use crate::source::instance::Instance;
use crate::sys::clock;
use rustix::event::{PollFd, PollFlags, epoll};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

/// A ring with less room than this, and what is asked for of the stack, may have turned a record away: none is larger (a tracepoint's is at most a page, PERF_MAX_TRACE_SIZE, a BPF
/// program's 8,000 bytes).
const FULL_AT: usize = 8 << 10;

/// In an epoll set, in place of a ring's position: what tasks left that have ended.
const KEPT: u64 = u64::MAX - 1;

/// Empties the rings of what is armed.
#[derive(Debug)]
pub struct Drain {
    armed: Armed,
    /// Programs that were reported already.
    programs: BTreeSet<u32>,
    /// Facts for the next round.
    notes: Vec<(Time, Note)>,
    /// Emptied buffers.
    spare: Vec<Vec<u8>>,
    overrun_said: bool,
    unread_said: bool,
}

impl Drain {
    pub fn new(armed: Armed) -> Drain {
        Drain { armed, programs: BTreeSet::new(), notes: Vec::new(), spare: Vec::new(), overrun_said: false, unread_said: false }
    }

    pub fn armed(&self) -> &Armed {
        &self.armed
    }

    /// For what comes after the last round.
    pub fn armed_mut(&mut self) -> &mut Armed {
        &mut self.armed
    }

    /// Adds the rings to an epoll set, each with its position as data. A ring wakes its reader at its watermark.
    pub fn watch(&self, epoll: impl AsFd) -> io::Result<()> {
        if let Some(kept) = self.armed.kept_fd() {
            // Edges: it is readable as long as anything is in it, and wakes nobody for each task that ends.
            epoll::add(&epoll, kept, epoll::EventData::new_u64(KEPT), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        for (i, ring) in self.armed.rings.iter().enumerate() {
            epoll::add(&epoll, self.armed.events[ring.owner].event.as_fd(), epoll::EventData::new_u64(i as u64), epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    /// Takes a ring out of an epoll set: its tasks are gone, and it would report that forever.
    pub fn unwatch(&self, epoll: impl AsFd, ring: usize) -> io::Result<()> {
        let owner = self.armed.rings[ring].owner;
        Ok(epoll::delete(&epoll, self.armed.events[owner].event.as_fd())?)
    }

    /// Switches on what tells how tasks are moved between cgroups.
    pub fn enable_moves(&self) -> anyhow::Result<()> {
        self.armed.enable_moves()
    }

    /// Switches on what is needed from the very start.
    pub fn enable_side_band(&mut self) -> anyhow::Result<()> {
        self.armed.enable_side_band()
    }

    /// Switches the rest on; calls that are in flight by then become notes, where the BPF programs know of them.
    pub fn enable(&mut self) -> anyhow::Result<()> {
        let begun = self.armed.enable()?;
        self.note_in_flight(&begun, false);
        Ok(())
    }

    /// Switches everything off; calls that are in flight then become notes, where no record tells of them.
    pub fn disable(&mut self) -> anyhow::Result<()> {
        let left = self.armed.disable()?;
        self.note_in_flight(&left, true);
        Ok(())
    }

    /// Looks at 32-bit calls too, as soon as there is a program that makes them.
    pub fn look_beside(&mut self) -> anyhow::Result<()> {
        self.armed.look_beside()
    }

    /// Looks for calls that have been in flight for long, where no record tells of them; they become notes.
    pub fn look_for_pending(&mut self) -> anyhow::Result<()> {
        let pending = self.armed.pending()?;
        self.note_in_flight(&pending, false);
        Ok(())
    }

    fn note_in_flight(&mut self, list: &InFlight, last: bool) {
        for (one, stack) in list.calls() {
            self.notes.push((one.time, Note::InFlight { task: one.task, call: one.call.to_vec(), last, stack }));
        }
    }

    /// A fact that the stream must know, true now.
    pub fn note(&mut self, note: Note) {
        self.notes.push((clock::now(), note));
    }

    /// A fact with its own time.
    pub fn note_at(&mut self, time: Time, note: Note) {
        self.notes.push((time, note));
    }

    /// One complete pass over all rings: each gives what it held when its turn came, so none can keep the others waiting. A ring that makes no sense is skipped, and said.
    pub fn round(&mut self) -> Round {
        let mut round =
            Round { started: clock::now(), chunks: Vec::with_capacity(self.armed.rings.len()), notes: std::mem::take(&mut self.notes) };
        round.notes.extend(self.armed.kept(round.started));
        for CpuRing { cpu, ring, early, .. } in &mut self.armed.rings {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            bytes.append(early);
            let held = ring.drain(&mut bytes);
            if let Err(overrun) = &held
                && !std::mem::replace(&mut self.overrun_said, true)
            {
                say!("rtrace: CPU {cpu}: {overrun}; please report this");
            }
            if held.unwrap_or_default() + FULL_AT + self.armed.stack_bytes > ring.bytes() {
                round.notes.push((clock::now(), Note::Full { cpu: *cpu }));
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
                    && !std::mem::replace(&mut self.unread_said, true)
                {
                    say!("rtrace: CPU {}: cannot read the buffer of the tracefs instance: {error}", buffer.cpu);
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

    /// Takes a used round's buffers back.
    pub fn recycle(&mut self, round: Round) {
        let room = (self.armed.rings.len() + self.armed.instance().map_or(0, |instance| instance.buffers().len())) * 2;
        self.spare.extend(round.chunks.into_iter().map(|c| c.bytes).take(room.saturating_sub(self.spare.len())));
    }

    /// Looks for BPF programs on our tracepoints that could drop our samples. New ones become notes, and are given with the event's name.
    pub fn look_for_programs(&mut self) -> Vec<(String, Vec<u32>)> {
        let mut found = Vec::new();
        for (event, ids) in self.armed.programs() {
            let new: Vec<u32> = ids.into_iter().filter(|id| self.programs.insert(*id) && !is_of_rtrace(*id)).collect();
            if !new.is_empty() {
                let name = self.armed.table.get(event).map(|spec| spec.name.clone()).unwrap_or_default();
                found.push((name, new.clone()));
                self.note(Note::Silenced { event, programs: new });
            }
        }
        found
    }

    /// Asks every event for its count; the answers become notes.
    pub fn take_counts(&mut self) {
        for (event, count) in self.armed.counts() {
            let from_afar = self.armed.switched_off_from_afar(event);
            self.note(Note::Count { event, issued: count.issued, lost: count.lost.unwrap_or_default(), from_afar });
        }
        match self.armed.instance().map(Instance::stats) {
            Some(Ok(stats)) => self.note(Note::InstanceCount { issued: stats.issued(), lost: stats.lost }),
            Some(Err(error)) => say!("rtrace: cannot read what the tracefs instance counted: {error}"),
            None => {}
        }
        let calls = self.armed.left_out();
        if calls > 0 {
            self.note(Note::LeftOut { calls });
        }
    }

    /// Takes the tracefs instance away, after the last round.
    ///
    /// # Errors
    /// It is still there, and why.
    pub fn remove_instance(&mut self) -> anyhow::Result<()> {
        self.armed.remove_instance()
    }

    /// All followed tasks and what they made are gone.
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
