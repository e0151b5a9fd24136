//! Descriptor tables: what a descriptor of a call was, as far as that can be proved.
//!
//! The one source of names is a look into /proc, which comes late. It says what a descriptor was at some moment between `from` and its record's time. That it was the
//! same at the call is proved by the stream: no change of that descriptor from the call until after the look.
//!
//! ```text
//!      call uses fd 3            look
//! ──────[~~~~~~]──────────────from··time──▶     no change of 3 begins or ends from `[` until `time`
//! ```
//!
//! A change (close, dup2, close_range, execve, a return as a new descriptor) takes effect somewhere between the changing call's entry and exit. So whatever
//! overlaps that interval is unknown. Each descriptor has a version that every beginning and every end of a change raises; a use remembers the version it saw at
//! its entry. Equal versions mean: the same file all along.
//!
//! Some ways to make a descriptor return no number (pipe, SCM_RIGHTS). They only take unused numbers, so they are no danger where the call proves that its descriptor was
//! open: by not failing as it would otherwise ([`Use::proved`]).
//!
//! What cannot be proved stays unknown: processes that used io_uring (the kernel closes descriptors for them without a call), tables that threads of one process do not
//! share, the first moments after tracing began or after a gap, when a change may be on its way that nobody saw begin ([`SETTLING`]). A process that shares its table with
//! another one since before tracing began is not recognized; the name of a file that was renamed after the look is the old one.

use crate::event::{FdPlace, Time};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// A change that began unseen has taken effect after this time, nanoseconds. All of them alter the table right after their entry, before anything that may wait.
pub const SETTLING: u64 = 1_000_000_000;
/// Longest time without looks at a table where looks kept failing: 2^this milliseconds.
const BACKOFF_MAX: u32 = 10;

/// So many calls wait for one descriptor at most.
const WAITING_MAX: usize = 16_384;

/// A file's name, shared between the events that carry it.
pub type Path = Arc<[u8]>;

/// A call that waits for what a look says of one of its descriptors, by the number of its event.
pub type Ticket = u64;

/// One descriptor of a call that is being made.
#[derive(Clone, Debug)]
pub struct Use {
    pub place: FdPlace,
    pub fd: i32,
    /// The version at entry; 0, which none is, when something was changing it.
    version: u64,
    /// What it was at entry, if that was known.
    path: Option<Path>,
    /// The call itself changes it.
    own: bool,
    /// That it returned does not prove that the descriptor was open.
    pub unproved: bool,
}

/// What can be said of a descriptor at a call's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Known(Path),
    Unknown,
    /// A look would tell, if nothing changes until then.
    Ask,
}

/// All descriptor tables.
#[derive(Debug, Default)]
pub struct Tables {
    tables: Vec<Table>,
    free: Vec<TableId>,
    /// The table that /proc/PID/fd shows.
    by_pid: FxHashMap<i32, TableId>,
    /// Calls of which a descriptor is now known, or will never be.
    settled: Vec<(Ticket, FdPlace, Option<Path>)>,
    /// Looks that are wanted.
    wanted: Vec<(TableId, i32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId(u32);

#[derive(Debug, Default)]
struct Table {
    /// Whose /proc/PID/fd shows it.
    pid: i32,
    /// Threads that share it.
    users: u32,
    /// Nothing is known before.
    from: Time,
    never: bool,
    fds: FxHashMap<i32, Fd>,
    /// Raised by every beginning and end of a change.
    clock: u64,
    /// The clock when something last happened to all descriptors.
    all: u64,
    /// When the last change ended, for descriptors that have no entry.
    since: Time,
    changing: SmallVec<[Change; 2]>,
    failures: u32,
    /// No looks before.
    retry: Time,
}

#[derive(Debug, Default)]
struct Fd {
    /// The table's clock when a change last began or ended.
    version: u64,
    /// When the last change ended.
    since: Time,
    path: Option<Path>,
    /// It was certainly open then, and no change began since.
    open: Option<Time>,
    waiting: SmallVec<[(Ticket, FdPlace); 1]>,
}

/// A change that began and did not end.
#[derive(Clone, Copy, Debug)]
struct Change {
    tid: i32,
    first: i32,
    last: i32,
}

impl Use {
    /// Whether this return value proves that the descriptors were open.
    pub fn proved(ret: i64) -> bool {
        use libc::{EAGAIN, EISDIR, ENOTCONN, ENOTSOCK, ENOTTY, EPIPE, ESPIPE};
        ret >= 0 || [EAGAIN, EISDIR, ENOTCONN, ENOTSOCK, ENOTTY, EPIPE, ESPIPE].iter().any(|&errno| ret == -i64::from(errno))
    }
}

impl Tables {
    /// A process that nobody saw begin; what is known of its table begins at `from`.
    pub fn appear(&mut self, pid: i32, from: Time) -> TableId {
        if let Some(&table) = self.by_pid.get(&pid) {
            self.at(table).users += 1;
            return table;
        }
        let table = self.make(Table { pid, users: 1, from, since: from, ..Table::default() });
        self.by_pid.insert(pid, table);
        table
    }

    /// A thread of the same process, or a task with CLONE_FILES.
    pub fn share(&mut self, table: TableId) -> TableId {
        self.at(table).users += 1;
        table
    }

    /// A process made at `now` by a call that was entered at `entered` (`None`: not seen): a copy of its parent's table. What changed since then, or was perhaps opened since
    /// then, is unknown in the copy.
    pub fn copy(&mut self, parent: TableId, pid: i32, entered: Option<Time>, now: Time) -> TableId {
        let old = self.at(parent);
        let settled = |entry: &Fd| {
            entered.is_some_and(|entered| entry.open.is_some_and(|open| open < entered) && entry.since < entered && old.from <= entered)
        };
        let stays = |(&fd, entry): (&i32, &Fd)| {
            let path = entry.path.as_ref().filter(|_| settled(entry) && !old.never && !old.is_changing(fd))?;
            Some((fd, Fd { since: now, path: Some(path.clone()), open: Some(now), ..Fd::default() }))
        };
        let fds = old.fds.iter().filter_map(stays).collect();
        let table = self.make(Table { pid, users: 1, from: now, since: now, fds, ..Table::default() });
        self.by_pid.insert(pid, table);
        table
    }

    /// A table that no look shows: of a thread that does not share its process's.
    pub fn apart(&mut self) -> TableId {
        self.make(Table { users: 1, never: true, ..Table::default() })
    }

    /// A program was started: the process has a table of its own, and it is not known what was closed.
    pub fn replace(&mut self, old: TableId, pid: i32, now: Time) -> TableId {
        self.leave(old);
        let table = self.make(Table { pid, users: 1, from: now, since: now, ..Table::default() });
        self.by_pid.insert(pid, table);
        table
    }

    /// The program that was started now has this descriptor, open on what `path` says.
    pub fn inherited(&mut self, id: TableId, fd: i32, path: &[u8], now: Time) {
        let entry = Fd { since: now, path: Some(path.into()), open: Some(now), ..Fd::default() };
        self.at(id).fds.insert(fd, entry);
    }

    /// A thread that used the table is gone.
    pub fn leave(&mut self, id: TableId) {
        let table = self.at(id);
        table.users = table.users.saturating_sub(1);
        if table.users == 0 {
            let (pid, clock) = (table.pid, table.clock + 1);
            self.forget(id);
            self.tables[id.0 as usize] = Table { never: true, clock: clock + 1, all: clock + 1, ..Table::default() };
            if self.by_pid.get(&pid) == Some(&id) {
                self.by_pid.remove(&pid);
            }
            self.free.push(id);
        }
    }

    /// The process is gone: its number shows nothing any more, whoever still uses the table.
    pub fn end_process(&mut self, pid: i32) {
        if let Some(id) = self.by_pid.remove(&pid)
            && self.at(id).pid == pid
        {
            self.never(id);
        }
    }

    /// Nothing can be known of this table from now on.
    pub fn never(&mut self, id: TableId) {
        if !self.at(id).never {
            self.forget(id);
            self.at(id).never = true;
        }
    }

    /// A call changed this table in a way that was not seen; it is over now.
    pub fn forget_until(&mut self, id: TableId, now: Time) {
        self.forget(id);
        let table = self.at(id);
        table.from = table.from.max(now);
        table.since = table.since.max(now);
    }

    /// unshare(CLONE_FILES): a thread that shares its table has one of its own now; which of the two /proc shows is not followed.
    pub fn unshare(&mut self, id: TableId) -> TableId {
        if self.at(id).users < 2 {
            return id;
        }
        self.never(id);
        self.leave(id);
        self.apart()
    }

    /// Something is missing in the stream, or happened outside of it: nothing holds that was known, and nothing can be known before `from`.
    pub fn forget_all(&mut self, from: Time) {
        for id in 0..self.tables.len() as u32 {
            self.forget(TableId(id));
            let table = self.at(TableId(id));
            table.from = table.from.max(from);
            table.since = table.since.max(from);
            table.changing.clear();
        }
    }

    /// A call is entered that uses this descriptor.
    #[inline]
    pub fn enter(&mut self, id: TableId, place: FdPlace, fd: i32, now: Time, unproved: bool) -> Option<Use> {
        let table = &mut self.tables[id.0 as usize];
        if table.never || fd < 0 || now < table.from {
            return None;
        }
        let changing = !table.changing.is_empty() && table.is_changing(fd);
        let since = table.since;
        let entry = table.fds.entry(fd).or_insert_with(|| Fd { since, ..Fd::default() });
        let version = if changing { 0 } else { entry.version.max(table.all) };
        let path = if changing { None } else { entry.path.clone() };
        Some(Use { place, fd, version, path, own: false, unproved })
    }

    /// A call that changes these descriptors is entered by a thread; `uses` are those of the same call.
    pub fn begin_change(&mut self, id: TableId, tid: i32, first: i32, last: i32, uses: &mut [Use]) {
        let table = &mut self.tables[id.0 as usize];
        if table.never {
            return;
        }
        table.touch(first, last, &mut self.settled, |_| {});
        table.changing.push(Change { tid, first, last });
        for using in uses.iter_mut().filter(|using| (first..=last).contains(&using.fd)) {
            // Its own change does not make it unknown; those of others do.
            using.own = true;
            using.version = if using.version == 0 { 0 } else { table.version(using.fd) };
        }
    }

    /// That call is over; `effective`: it did or may have changed something.
    pub fn end_change(&mut self, id: TableId, tid: i32, now: Time, effective: bool) {
        let table = &mut self.tables[id.0 as usize];
        while let Some(at) = table.changing.iter().position(|change| change.tid == tid) {
            let Change { first, last, .. } = table.changing.swap_remove(at);
            if effective {
                table.since = now;
                table.touch(first, last, &mut self.settled, |entry| {
                    entry.path = None;
                    entry.open = None;
                    entry.since = now;
                });
            }
        }
    }

    /// A call entered at `entered` returned this as a new descriptor, of what `path` says if it duplicates something known. The call's own change of it, if it began one, has
    /// been ended as without effect.
    pub fn created(&mut self, id: TableId, fd: i32, entered: Time, now: Time, path: Option<Path>) -> Answer {
        let table = &mut self.tables[id.0 as usize];
        if table.never || fd < 0 {
            return Answer::Unknown;
        }
        let before = table.fds.get(&fd).map_or(table.since, |entry| entry.since);
        let alone = before < entered && table.from <= entered && !table.is_changing(fd);
        table.fds.entry(fd).or_default();
        let path = path.filter(|_| alone);
        table.touch(fd, fd, &mut self.settled, |entry| {
            entry.since = now;
            entry.open = alone.then_some(now);
            entry.path = path.clone();
        });
        match path {
            Some(path) => Answer::Known(path),
            None if alone && table.is_worth_a_look(now) => Answer::Ask,
            None => Answer::Unknown,
        }
    }

    /// A call is over: what its descriptor was. `proved`: it was certainly open ([`Use::proved`]).
    #[inline]
    pub fn exit(&mut self, id: TableId, using: &Use, entered: Time, now: Time, proved: bool) -> Answer {
        let table = &mut self.tables[id.0 as usize];
        let (worth, all) = (table.is_worth_a_look(now), table.all);
        let Some(entry) = table.fds.get_mut(&using.fd) else { return Answer::Unknown };
        if using.version != entry.version.max(all) {
            return Answer::Unknown;
        }
        if let Some(path) = &using.path {
            return Answer::Known(path.clone());
        }
        if using.own {
            return Answer::Unknown;
        }
        if proved && !using.unproved {
            entry.open.get_or_insert(now);
        } else if entry.open.is_none_or(|open| open > entered) {
            if worth && entry.path.is_none() {
                self.wanted.push((id, using.fd));
            }
            return Answer::Unknown;
        }
        match &entry.path {
            Some(path) => Answer::Known(path.clone()),
            None if worth => Answer::Ask,
            None => Answer::Unknown,
        }
    }

    /// Whether a look at a descriptor of a call in flight may be of use.
    pub fn wants_look(&mut self, id: TableId, using: &Use, now: Time) {
        let table = &self.tables[id.0 as usize];
        let known = table.fds.get(&using.fd).is_none_or(|entry| entry.path.is_some());
        if !known
            && !table.never
            && !using.own
            && using.version != 0
            && using.version == table.version(using.fd)
            && table.is_worth_a_look(now)
        {
            self.wanted.push((id, using.fd));
        }
    }

    /// A call waits for a look at this descriptor.
    pub fn wait(&mut self, id: TableId, fd: i32, ticket: Ticket, place: FdPlace) {
        let table = &mut self.tables[id.0 as usize];
        let Some(entry) = table.fds.get_mut(&fd).filter(|entry| entry.waiting.len() < WAITING_MAX) else {
            self.settled.push((ticket, place, None));
            return;
        };
        entry.waiting.push((ticket, place));
        if entry.waiting.len() == 1 {
            self.wanted.push((id, fd));
        }
    }

    /// The looks that are still wanted: process and descriptor.
    pub fn wanted(&mut self) -> Vec<(i32, i32)> {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.sort_unstable_by_key(|(id, fd)| (id.0, *fd));
        wanted.dedup();
        let of = |(id, fd): (TableId, i32)| {
            let table = &self.tables[id.0 as usize];
            let entry = table.fds.get(&fd)?;
            (!table.never && entry.path.is_none() && !table.is_changing(fd)).then_some((table.pid, fd))
        };
        wanted.into_iter().filter_map(of).collect()
    }

    /// What a look saw between `from` and `now`.
    pub fn looked(&mut self, pid: i32, fd: i32, path: Option<&[u8]>, from: Time, now: Time) {
        let Some(&id) = self.by_pid.get(&pid) else { return };
        if path == Some(b"anon_inode:[io_uring]") {
            self.never(id);
        }
        let table = &mut self.tables[id.0 as usize];
        let changing = table.is_changing(fd);
        let valid = table.from <= from && !table.never && table.pid == pid;
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

    /// Calls that need not wait any more.
    pub fn settled(&mut self) -> &mut Vec<(Ticket, FdPlace, Option<Path>)> {
        &mut self.settled
    }

    fn forget(&mut self, id: TableId) {
        let table = &mut self.tables[id.0 as usize];
        table.touch(0, i32::MAX, &mut self.settled, |_| {});
        table.fds.clear();
    }

    fn make(&mut self, table: Table) -> TableId {
        if let Some(id) = self.free.pop() {
            // Uses of the table that was here before must never agree with this one's versions.
            let clock = self.at(id).clock + 1;
            self.tables[id.0 as usize] = Table { clock, all: clock, ..table };
            return id;
        }
        self.tables.push(Table { clock: 1, all: 1, ..table });
        TableId(self.tables.len() as u32 - 1)
    }

    fn at(&mut self, id: TableId) -> &mut Table {
        &mut self.tables[id.0 as usize]
    }
}

impl Table {
    /// Something happens to these descriptors: whoever waits for a look waits in vain.
    fn touch(&mut self, first: i32, last: i32, settled: &mut Vec<(Ticket, FdPlace, Option<Path>)>, mut change: impl FnMut(&mut Fd)) {
        self.clock += 1;
        let clock = self.clock;
        let mut one = |entry: &mut Fd| {
            entry.version = clock;
            settled.extend(entry.waiting.drain(..).map(|(ticket, place)| (ticket, place, None)));
            change(entry);
        };
        if first == last {
            self.fds.get_mut(&first).map(&mut one);
            return;
        }
        if first == 0 && last == i32::MAX {
            self.all = clock;
        }
        self.fds.iter_mut().filter(|(fd, _)| (first..=last).contains(fd)).for_each(|(_, entry)| one(entry));
    }

    fn version(&self, fd: i32) -> u64 {
        self.fds.get(&fd).map_or(0, |entry| entry.version.max(self.all))
    }

    /// Whether a change of a descriptor began and did not end.
    fn is_changing(&self, fd: i32) -> bool {
        self.changing.iter().any(|change| (change.first..=change.last).contains(&fd))
    }

    fn is_worth_a_look(&self, now: Time) -> bool {
        !self.never && self.pid != 0 && now >= self.retry
    }
}
