//! Descriptor tables: which file a call's descriptor referred to, as far as it can be proved.
//!
//! The only source of file names is reading /proc, which happens late. It shows the file at some moment between `from`
//! and the time of the synthesized record. That the call used the same file is proved by the stream: no change of that
//! descriptor between the call and the end of the read.
//!
//! ```text
//!      call uses fd 3           /proc read
//! ──────[~~~~~~]──────────────from··time──▶     no change of 3 begins or ends from `[` until `time`
//! ```
//!
//! A change (close, dup2, close_range, execve, a return as a new descriptor) takes effect somewhere between the
//! changing call's entry and exit. So the files of all uses that overlap this interval are unknown. Each descriptor has
//! a version, which is incremented at the beginning and the end of each change; a use stores the version at its entry.
//! Equal versions prove that the file was the same all the time.
//!
//! Some calls create descriptors without returning their numbers (pipe, SCM_RIGHTS). They only allocate unused numbers,
//! so they are harmless if the call proves that its descriptor was open, by not failing with EBADF ([`FdUse::proved`]).
//!
//! The file remains unknown where it cannot be proved: in processes that used io_uring (the kernel closes descriptors
//! for them without a call), in tables that not all threads of a process share, and for a time after tracing began or
//! after a gap, when a change may be in progress whose begin was not seen ([`SETTLING`]). If a process shares its table
//! with another process since before the trace, this is not recognized. For a file that is renamed after the read, the
//! old name is shown.

mod table;

use crate::event::{FdPlace, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use table::{FdChange, FdState, FdTable};

/// A change whose begin was not seen has taken effect after this time, in nanoseconds. All such calls alter the table
/// right after their entry, before anything that can block.
pub const SETTLING: u64 = 1_000_000_000;
/// The longest time without reads of a table after repeated failures: 2^this milliseconds.
const BACKOFF_MAX: u32 = 10;

/// The maximum number of calls that wait for one descriptor.
const WAITING_MAX: usize = 16_384;

/// A file's name, shared between the events that carry it.
pub type Path = Arc<[u8]>;

/// The number of an event whose call waits for the file of one of its descriptors.
pub type Ticket = u64;

/// One descriptor that a call in progress uses.
#[derive(Clone, Debug)]
pub struct FdUse {
    /// Where the call has the descriptor.
    pub place: FdPlace,
    /// The descriptor.
    pub fd: i32,
    /// The descriptor's version at entry; 0, which no descriptor has, if a change was in progress.
    version: u64,
    /// The file's name at entry, if it was known.
    path: Option<Path>,
    /// The call itself changes the descriptor.
    own: bool,
    /// A successful return does not prove that the descriptor was open.
    pub unproved: bool,
}

/// What is known of a descriptor's file when a call ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FdFile {
    /// The file's name at the call.
    Known(Path),
    /// The name is not known, and cannot become known.
    Unknown,
    /// Reading /proc would show it, if the descriptor does not change before.
    NeedsRead,
}

/// All descriptor tables.
#[derive(Debug, Default)]
pub struct FdTables {
    tables: Vec<FdTable>,
    free: Vec<FdTableId>,
    /// The table that /proc/PID/fd shows, by process.
    by_pid: FxHashMap<i32, FdTableId>,
    /// Descriptors whose calls need not wait any longer, with the file if it is known.
    settled: Vec<(Ticket, FdPlace, Option<Path>)>,
    /// Descriptors to read in /proc.
    requests: Vec<(FdTableId, i32)>,
}

/// The index of a descriptor table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FdTableId(u32);

impl FdUse {
    /// Returns whether this return value proves that the call's descriptors were open.
    pub fn proved(ret: i64) -> bool {
        use libc::{EAGAIN, EISDIR, ENOTCONN, ENOTSOCK, ENOTTY, EPIPE, ESPIPE};
        ret >= 0 || [EAGAIN, EISDIR, ENOTCONN, ENOTSOCK, ENOTTY, EPIPE, ESPIPE].iter().any(|&errno| ret == -i64::from(errno))
    }
}

impl FdTables {
    /// Adds a process that existed before its first record; its table is known from `from` on.
    pub fn add_existing(&mut self, pid: i32, from: Time) -> FdTableId {
        if let Some(&table) = self.by_pid.get(&pid) {
            self.at(table).users += 1;
            return table;
        }
        let table = self.make(FdTable { pid, users: 1, from, since: from, ..FdTable::default() });
        self.by_pid.insert(pid, table);
        table
    }

    /// Adds a user of the table: a thread of the same process, or a task created with CLONE_FILES.
    pub fn share(&mut self, table: FdTableId) -> FdTableId {
        self.at(table).users += 1;
        table
    }

    /// Adds a process that was created at `now` by a call entered at `entered` (`None` if the entry was not seen). Its
    /// table is a copy of its parent's. Descriptors that changed, or may have been opened, since `entered` are unknown
    /// in the copy.
    pub fn copy(&mut self, parent: FdTableId, pid: i32, entered: Option<Time>, now: Time) -> FdTableId {
        let old = self.at(parent);
        let settled = |entry: &FdState| {
            entered.is_some_and(|entered| entry.open.is_some_and(|open| open < entered) && entry.since < entered && old.from <= entered)
        };
        let kept = |(&fd, entry): (&i32, &FdState)| {
            let path = entry.path.as_ref().filter(|_| settled(entry) && !old.untracked && !old.is_changing(fd))?;
            Some((fd, FdState { since: now, path: Some(path.clone()), open: Some(now), ..FdState::default() }))
        };
        let fds = old.fds.iter().filter_map(kept).collect();
        let table = self.make(FdTable { pid, users: 1, from: now, since: now, fds, ..FdTable::default() });
        self.by_pid.insert(pid, table);
        table
    }

    /// Adds a table that is not visible in /proc/PID/fd: that of a thread that does not share its process's table.
    pub fn add_private(&mut self) -> FdTableId {
        self.make(FdTable { users: 1, untracked: true, ..FdTable::default() })
    }

    /// Replaces the table after an execve: the process has a table of its own, and close-on-exec descriptors may have
    /// been closed.
    pub fn replace(&mut self, old: FdTableId, pid: i32, now: Time) -> FdTableId {
        self.leave(old);
        let table = self.make(FdTable { pid, users: 1, from: now, since: now, ..FdTable::default() });
        self.by_pid.insert(pid, table);
        table
    }

    /// Stores that a program inherited this descriptor, open on `path`.
    pub fn inherited(&mut self, id: FdTableId, fd: i32, path: &[u8], now: Time) {
        let entry = FdState { since: now, path: Some(path.into()), open: Some(now), ..FdState::default() };
        self.at(id).fds.insert(fd, entry);
    }

    /// Removes a user of the table, because a thread ended.
    pub fn leave(&mut self, id: FdTableId) {
        let table = self.at(id);
        table.users = table.users.saturating_sub(1);
        if table.users == 0 {
            let (pid, clock) = (table.pid, table.clock + 1);
            self.forget(id);
            self.tables[id.0 as usize] = FdTable { untracked: true, clock: clock + 1, all: clock + 1, ..FdTable::default() };
            if self.by_pid.get(&pid) == Some(&id) {
                self.by_pid.remove(&pid);
            }
            self.free.push(id);
        }
    }

    /// Marks the process as ended: /proc/PID/fd no longer shows its table, even if other tasks still use it.
    pub fn end_process(&mut self, pid: i32) {
        if let Some(id) = self.by_pid.remove(&pid)
            && self.at(id).pid == pid
        {
            self.stop_tracking(id);
        }
    }

    /// Stops tracking this table for good.
    pub fn stop_tracking(&mut self, id: FdTableId) {
        if !self.at(id).untracked {
            self.forget(id);
            self.at(id).untracked = true;
        }
    }

    /// Forgets the table's files after a change that was not seen and has ended by `now`.
    pub fn forget_until(&mut self, id: FdTableId, now: Time) {
        self.forget(id);
        let table = self.at(id);
        table.from = table.from.max(now);
        table.since = table.since.max(now);
    }

    /// Handles unshare(CLONE_FILES): the calling thread has a table of its own now. Which of the two tables /proc shows
    /// is not tracked.
    pub fn unshare(&mut self, id: FdTableId) -> FdTableId {
        if self.at(id).users < 2 {
            return id;
        }
        self.stop_tracking(id);
        self.leave(id);
        self.add_private()
    }

    /// Forgets the files of all tables, because records were lost or another process changed tables. Nothing is known
    /// before `from`.
    pub fn forget_all(&mut self, from: Time) {
        for id in 0..self.tables.len() as u32 {
            self.forget(FdTableId(id));
            let table = self.at(FdTableId(id));
            table.from = table.from.max(from);
            table.since = table.since.max(from);
            table.changing.clear();
        }
    }

    /// Handles the entry of a call that uses this descriptor.
    #[inline]
    pub fn enter(&mut self, id: FdTableId, place: FdPlace, fd: i32, now: Time, unproved: bool) -> Option<FdUse> {
        let table = &mut self.tables[id.0 as usize];
        if table.untracked || fd < 0 || now < table.from {
            return None;
        }
        let changing = !table.changing.is_empty() && table.is_changing(fd);
        let since = table.since;
        let entry = table.fds.entry(fd).or_insert_with(|| FdState { since, ..FdState::default() });
        let version = if changing { 0 } else { entry.version.max(table.all) };
        let path = if changing { None } else { entry.path.clone() };
        Some(FdUse { place, fd, version, path, own: false, unproved })
    }

    /// Begins a change of a range of descriptors at the entry of the thread's call; `uses` are the descriptors that
    /// this call uses.
    pub fn begin_change(&mut self, id: FdTableId, tid: i32, first: i32, last: i32, uses: &mut [FdUse]) {
        let table = &mut self.tables[id.0 as usize];
        if table.untracked {
            return;
        }
        table.mark_changed(first, last, &mut self.settled, |_| {});
        table.changing.push(FdChange { tid, first, last });
        for using in uses.iter_mut().filter(|using| (first..=last).contains(&using.fd)) {
            // The call's own change does not invalidate its uses; changes by other calls do.
            using.own = true;
            using.version = if using.version == 0 { 0 } else { table.version(using.fd) };
        }
    }

    /// Ends the thread's changes; `effective` means that they changed the table, or may have done so.
    pub fn end_change(&mut self, id: FdTableId, tid: i32, now: Time, effective: bool) {
        let table = &mut self.tables[id.0 as usize];
        while let Some(at) = table.changing.iter().position(|change| change.tid == tid) {
            let FdChange { first, last, .. } = table.changing.swap_remove(at);
            if effective {
                table.since = now;
                table.mark_changed(first, last, &mut self.settled, |entry| {
                    entry.path = None;
                    entry.open = None;
                    entry.since = now;
                });
            }
        }
    }

    /// Handles a new descriptor that a call entered at `entered` has returned; `path` is its file if it duplicates a
    /// known one. If the call itself began a change of this descriptor, that change was ended as ineffective before.
    pub fn created(&mut self, id: FdTableId, fd: i32, entered: Time, now: Time, path: Option<Path>) -> FdFile {
        let table = &mut self.tables[id.0 as usize];
        if table.untracked || fd < 0 {
            return FdFile::Unknown;
        }
        let before = table.fds.get(&fd).map_or(table.since, |entry| entry.since);
        let undisturbed = before < entered && table.from <= entered && !table.is_changing(fd);
        table.fds.entry(fd).or_default();
        let path = path.filter(|_| undisturbed);
        table.mark_changed(fd, fd, &mut self.settled, |entry| {
            entry.since = now;
            entry.open = undisturbed.then_some(now);
            entry.path = path.clone();
        });
        match path {
            Some(path) => FdFile::Known(path),
            None if undisturbed && table.may_be_read(now) => FdFile::NeedsRead,
            None => FdFile::Unknown,
        }
    }

    /// Returns the file of a call's descriptor at the call's end. `proved`: it was certainly open ([`FdUse::proved`]).
    #[inline]
    pub fn exit(&mut self, id: FdTableId, using: &FdUse, entered: Time, now: Time, proved: bool) -> FdFile {
        let table = &mut self.tables[id.0 as usize];
        let (may_be_read, all) = (table.may_be_read(now), table.all);
        let Some(entry) = table.fds.get_mut(&using.fd) else { return FdFile::Unknown };
        if using.version != entry.version.max(all) {
            return FdFile::Unknown;
        }
        if let Some(path) = &using.path {
            return FdFile::Known(path.clone());
        }
        if using.own {
            return FdFile::Unknown;
        }
        if proved && !using.unproved {
            entry.open.get_or_insert(now);
        } else if entry.open.is_none_or(|open| open > entered) {
            if may_be_read && entry.path.is_none() {
                self.requests.push((id, using.fd));
            }
            return FdFile::Unknown;
        }
        match &entry.path {
            Some(path) => FdFile::Known(path.clone()),
            None if may_be_read => FdFile::NeedsRead,
            None => FdFile::Unknown,
        }
    }

    /// Requests a read of a descriptor of a call in flight, if that can show its file.
    pub fn request_read(&mut self, id: FdTableId, using: &FdUse, now: Time) {
        let table = &self.tables[id.0 as usize];
        let known = table.fds.get(&using.fd).is_none_or(|entry| entry.path.is_some());
        if !known
            && !table.untracked
            && !using.own
            && using.version != 0
            && using.version == table.version(using.fd)
            && table.may_be_read(now)
        {
            self.requests.push((id, using.fd));
        }
    }

    /// Makes a call wait for a read of this descriptor.
    pub fn wait(&mut self, id: FdTableId, fd: i32, ticket: Ticket, place: FdPlace) {
        let table = &mut self.tables[id.0 as usize];
        let Some(entry) = table.fds.get_mut(&fd).filter(|entry| entry.waiting.len() < WAITING_MAX) else {
            self.settled.push((ticket, place, None));
            return;
        };
        entry.waiting.push((ticket, place));
        if entry.waiting.len() == 1 {
            self.requests.push((id, fd));
        }
    }

    /// Takes the requested reads that are still useful: process and descriptor.
    pub fn take_requests(&mut self) -> Vec<(i32, i32)> {
        let mut requests = std::mem::take(&mut self.requests);
        requests.sort_unstable_by_key(|(id, fd)| (id.0, *fd));
        requests.dedup();
        let of = |(id, fd): (FdTableId, i32)| {
            let table = &self.tables[id.0 as usize];
            let entry = table.fds.get(&fd)?;
            (!table.untracked && entry.path.is_none() && !table.is_changing(fd)).then_some((table.pid, fd))
        };
        requests.into_iter().filter_map(of).collect()
    }

    /// Handles the result of a read of /proc between `from` and `now`.
    pub fn store_read(&mut self, pid: i32, fd: i32, path: Option<&[u8]>, from: Time, now: Time) {
        let Some(&id) = self.by_pid.get(&pid) else { return };
        if path == Some(b"anon_inode:[io_uring]") {
            self.stop_tracking(id);
        }
        let table = &mut self.tables[id.0 as usize];
        let changing = table.is_changing(fd);
        let valid = table.from <= from && !table.untracked && table.pid == pid;
        let Some(entry) = table.fds.get_mut(&fd) else { return };
        let path = path.filter(|_| valid && !changing && entry.since < from);
        match path {
            Some(path) => {
                let path = entry.path.get_or_insert_with(|| Arc::from(path)).clone();
                entry.open.get_or_insert(now);
                self.settled.extend(entry.waiting.drain(..).map(|(ticket, place)| (ticket, place, Some(path.clone()))));
                table.failures = 0;
            }
            None => {
                self.settled.extend(entry.waiting.drain(..).map(|(ticket, place)| (ticket, place, None)));
                table.failures = (table.failures + 1).min(BACKOFF_MAX);
                table.retry = Time(now.0 + (1_000_000 << table.failures));
            }
        }
    }

    /// Returns the descriptors whose calls need not wait any longer.
    pub fn settled(&mut self) -> &mut Vec<(Ticket, FdPlace, Option<Path>)> {
        &mut self.settled
    }

    /// Forgets all files of a table.
    fn forget(&mut self, id: FdTableId) {
        let table = &mut self.tables[id.0 as usize];
        table.mark_changed(0, i32::MAX, &mut self.settled, |_| {});
        table.fds.clear();
    }

    /// Adds a table, in a free slot if there is one.
    fn make(&mut self, table: FdTable) -> FdTableId {
        if let Some(id) = self.free.pop() {
            // Uses of the previous table in this slot must never match this table's versions.
            let clock = self.at(id).clock + 1;
            self.tables[id.0 as usize] = FdTable { clock, all: clock, ..table };
            return id;
        }
        self.tables.push(FdTable { clock: 1, all: 1, ..table });
        FdTableId(self.tables.len() as u32 - 1)
    }

    fn at(&mut self, id: FdTableId) -> &mut FdTable {
        &mut self.tables[id.0 as usize]
    }
}
