//! The aggregates of ended tasks. Programs on all CPUs write them to the map `ended_tasks`, a BPF ring buffer that is
//! read without bpf(2).

use super::record::{self, CallRecord};
use crate::event::{Synthesized, TaskId, Time};
use anyhow::Context;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

/// The reader of the map. libbpf passes each record to a closure, which sends it to the channel.
#[derive(Debug)]
pub(super) struct EndedTasks {
    ring: RingBuffer<'static>,
    records: Receiver<Vec<u8>>,
    /// Reading stops after the first record that is not older than this, so that a round ends even while tasks keep
    /// ending.
    until: Arc<AtomicU64>,
    fd: OwnedFd,
}

impl EndedTasks {
    /// Opens the reader.
    ///
    /// # Errors
    /// The map cannot be mapped.
    pub fn of(map: &libbpf_rs::Map<'_>) -> anyhow::Result<EndedTasks> {
        let (sender, records) = mpsc::channel();
        let until = Arc::new(AtomicU64::new(0));
        let bound = Arc::clone(&until);
        let take = move |record: &[u8]| {
            let is_older = record::time(record).is_none_or(|time| time.0 < bound.load(Ordering::Relaxed));
            let is_sent = sender.send(record.to_vec()).is_ok();
            if is_older && is_sent { 0 } else { -libc::EAGAIN }
        };
        let mut builder = RingBufferBuilder::new();
        builder.add(map, take).context("the BPF map of aggregates has another type")?;
        let ring = builder.build().context("cannot map the BPF map of aggregates")?;
        Ok(EndedTasks { ring, records, until, fd: map.as_fd().try_clone_to_owned()? })
    }

    /// Returns all records that were written before this time, and perhaps some later ones, as synthesized records.
    pub fn take(&self, until: Time) -> impl Iterator<Item = (Time, Synthesized)> {
        self.until.store(until.0, Ordering::Relaxed);
        // The result only says whether everything was read.
        let _ = self.ring.consume_raw();
        self.records.try_iter().filter_map(noted)
    }

    /// Returns the descriptor, which becomes readable when a quarter of the map is full.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn noted(record: Vec<u8>) -> Option<(Time, Synthesized)> {
    let seen = CallRecord::parse(&record)?;
    let (time, task) = (record::time(&record)?, TaskId { pid: seen.pid, tid: seen.tid });
    Some((time, Synthesized::InFlight { task, call: record, last: true, stack: None, copies: Vec::new() }))
}
