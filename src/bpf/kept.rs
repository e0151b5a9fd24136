//! What tasks that end leave behind where calls are summed up: the map `kept`, which programs on all CPUs write to, and
//! which is read without bpf(2).

use super::record::{self, Seen};
use crate::event::{Note, TaskId, Time};
use anyhow::Context;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

/// The reading end. libbpf gives each record to a closure, which sends it on.
#[derive(Debug)]
pub(super) struct Kept {
    ring: RingBuffer<'static>,
    records: Receiver<Vec<u8>>,
    /// Reading stops behind the first record that is not older, so that a round ends however many tasks do.
    until: Arc<AtomicU64>,
    fd: OwnedFd,
}

impl Kept {
    /// # Errors
    /// The map cannot be mapped.
    pub fn of(map: &libbpf_rs::Map<'_>) -> anyhow::Result<Kept> {
        let (sender, records) = mpsc::channel();
        let until = Arc::new(AtomicU64::new(0));
        let bound = Arc::clone(&until);
        let take = move |record: &[u8]| {
            let is_older = record::time(record).is_none_or(|time| time.0 < bound.load(Ordering::Relaxed));
            let is_sent = sender.send(record.to_vec()).is_ok();
            if is_older && is_sent { 0 } else { -libc::EAGAIN }
        };
        let mut builder = RingBufferBuilder::new();
        builder.add(map, take).context("the BPF map of sums is of another type")?;
        let ring = builder.build().context("cannot map the BPF map of sums")?;
        Ok(Kept { ring, records, until, fd: map.as_fd().try_clone_to_owned()? })
    }

    /// All records that were written before this moment, and perhaps some later ones, as facts for the stream.
    pub fn take(&self, until: Time) -> impl Iterator<Item = (Time, Note)> {
        self.until.store(until.0, Ordering::Relaxed);
        // What it returns says only whether all was read.
        let _ = self.ring.consume_raw();
        self.records.try_iter().filter_map(noted)
    }

    /// It is readable when the programs say so: when a quarter of it is full.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn noted(record: Vec<u8>) -> Option<(Time, Note)> {
    let seen = Seen::parse(&record)?;
    let (time, task) = (record::time(&record)?, TaskId { pid: seen.pid, tid: seen.tid });
    Some((time, Note::InFlight { task, call: record, last: true, stack: None }))
}
