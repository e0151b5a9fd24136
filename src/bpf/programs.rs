//! The programs in the kernel: which there are, when they are attached, what they are asked; gone with this process whatever happens to it (nothing is pinned). How they get there is
//! [`super::loaded`]'s.

use super::account::{self, Account};
use super::encode::On;
use super::in_flight::InFlight;
use super::kept::Kept;
use super::loaded::Loaded;
use super::settings::{Hooks, Mode, Seed, Settings, Whose};
use crate::event::{Note, Time};
use crate::kernel::machine::possible_cpus;
use crate::kernel::procfs::is_in_first_pid_namespace;
use crate::sys::bpf::raw_tracepoints_may_sleep;
use crate::sys::map_memory::MapMemory;
use anyhow::{Context, anyhow};
use libbpf_rs::{MapCore, MapFlags};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So often the kernel is asked for the state of tasks, a millisecond apart.
const SEED_TRIES: u32 = 1_000;

/// The programs, loaded.
#[derive(Debug)]
pub struct Programs {
    loaded: Loaded,
    settings: Settings,
    /// The maps `accounts` and `.data.is_over`, which are reached while calls are traced.
    accounts: MapMemory,
    is_over: MapMemory,
    /// What tasks left that have ended, where calls are summed up.
    kept: Option<Kept>,
    /// The hooks that follow tasks: closing a descriptor takes the program off, here and below.
    following: Vec<OwnedFd>,
    /// The programs' names where all calls are looked at.
    on_all: &'static Names,
    /// Their hooks.
    tracing: Vec<OwnedFd>,
    /// Those of the programs on signals.
    signals: Vec<OwnedFd>,
    /// Hooks that no longer do anything, but take the kernel long to take down.
    stopped: Vec<OwnedFd>,
    /// The events of single syscalls that have a program. They stay disabled: they carry the program and nothing else.
    own: Vec<OwnedFd>,
    /// The programs beside these, for calls that have no such events: loaded when a 32-bit program is met.
    beside: Option<Loaded>,
    /// 32-bit programs that were begun before that.
    unseen: u64,
}

/// The programs for one kind of hooks.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    /// Those on calls. Exits are hooked first, so that no call that began under trace lacks its end.
    leave: &'static str,
    enter: &'static str,
    /// Those that follow tasks.
    tasks: [&'static str; 3],
    /// The last descriptor of a tracepoint's event is closed slowly: see [`crate::sys::closer`].
    slow: bool,
}

const RAW: Names = Names { leave: "leave", enter: "enter", tasks: ["forked", "executed", "ended"], slow: false };
/// Those on signals, on every kernel.
const SIGNALS: [&str; 2] = ["sent", "given"];
const EVENTS: Names = Names { leave: "leave_event", enter: "enter_event", tasks: ["awoken", "executed", "ended_event"], slow: true };

impl Names {
    /// Where all calls are looked at.
    fn on_all() -> &'static Names {
        if may_be_interrupted() { &EVENTS } else { &RAW }
    }
}

/// `enum is_over`
const CALLS_ARE_OVER: u64 = 1;
const ALL_IS_OVER: u64 = 2;

impl Programs {
    /// Loads the programs; nothing runs yet.
    ///
    /// # Errors
    /// The kernel refuses them: no privilege (CAP_BPF and CAP_PERFMON), no type information (BTF), or too old.
    pub fn load(settings: &Settings) -> anyhow::Result<Programs> {
        let on_all = Names::on_all();
        let (on, calls) = match settings.hooks {
            Hooks::All => (On::AllCalls, on_all),
            Hooks::Own { .. } => (On::OwnEvents, &EVENTS),
        };
        let programs = Programs::new(settings, on, on_all, |name| is_needed(name, settings, on, calls, on_all))?;
        if let Whose::Cgroup(path) = &settings.whose {
            let dir = File::open(path).with_context(|| format!("cannot open the cgroup {}", path.display()))?;
            programs
                .put_descriptor("cgroup", 0, dir.as_fd())
                .context("only cgroups of the unified hierarchy (cgroup2) can be traced by BPF")?;
        }
        Ok(programs)
    }

    /// Loads what follows tasks, and nothing that traces: [`Programs::tasks`] are then known to others.
    ///
    /// # Errors
    /// As [`Programs::load`].
    pub fn load_followers(settings: &Settings) -> anyhow::Result<Programs> {
        let on_all = Names::on_all();
        let is_needed = |name: &str| match name {
            "seed" => needs_seeds(settings),
            "find_own_namespace" => !is_in_first_pid_namespace(),
            _ => on_all.tasks.contains(&name),
        };
        Programs::new(settings, On::AllCalls, on_all, is_needed)
    }

    fn new(settings: &Settings, on: On, on_all: &'static Names, is_needed: impl Fn(&str) -> bool) -> anyhow::Result<Programs> {
        libbpf_rs::set_print(None);
        let loaded = Loaded::load(settings, on, is_needed, None)?;
        let memory = |name: &str, words: usize| {
            let map = loaded.map(name)?;
            MapMemory::of(map.as_fd(), words).with_context(|| format!("cannot map the BPF map {name}"))
        };
        Ok(Programs {
            accounts: memory("accounts", possible_cpus() as usize * account::WORDS)?,
            is_over: memory(".data.is_over", 1)?,
            kept: if settings.sums { Some(Kept::of(&loaded.map("kept")?)?) } else { None },
            loaded,
            settings: settings.clone(),
            following: Vec::new(),
            on_all,
            tracing: Vec::new(),
            signals: Vec::new(),
            stopped: Vec::new(),
            own: Vec::new(),
            beside: None,
            unseen: 0,
        })
    }

    /// The descriptor of the task storage in which those have something that are followed, where they are named tasks; `None` if the kernel does not always find it.
    pub fn tasks(&self) -> Option<i32> {
        self.loaded.tasks().filter(|_| self.settings.whose == Whose::Tasks)
    }

    /// Sends records of this kind (0: without a stack) of calls that end on this CPU to this event.
    pub fn write_to(&self, kind: u32, cpu: u32, event: BorrowedFd) -> anyhow::Result<()> {
        let key = kind * possible_cpus() + cpu;
        self.put_descriptor("output", key, event).with_context(|| format!("cannot give the BPF programs the event of CPU {cpu}"))
    }

    /// Follows tasks from now on, beginning with these.
    pub fn follow(&mut self, seeds: impl Iterator<Item = (Seed, Mode)>) -> anyhow::Result<()> {
        if !is_in_first_pid_namespace() {
            self.list("find_own_namespace")?;
        }
        let map = self.map("seeds")?;
        for (seed, mode) in seeds {
            map.update(&seed.key().to_ne_bytes(), &(mode as u32).to_ne_bytes(), MapFlags::ANY)
                .context("cannot name the tasks to the BPF programs")?;
        }
        for name in self.on_all.tasks {
            let hook = self.loaded.attach(name)?;
            self.following.push(hook);
        }
        if needs_seeds(&self.settings) { self.seed() } else { Ok(()) }
    }

    /// Gives the named tasks their state, until a look finds none without it: a thread may make another one, behind the look, before it has its state itself. Memory for it is short for moments only.
    fn seed(&self) -> anyhow::Result<()> {
        for _ in 0..SEED_TRIES {
            let told = self.list("seed")?;
            if told.is_empty() {
                return Ok(());
            }
            let (words, _) = told.as_chunks::<4>();
            if words.iter().any(|word| i32::from_ne_bytes(*word) < 0) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(anyhow!("the kernel has no memory for the state of the tasks to be traced"))
    }

    /// Begins: exits before entries, so that no call that began under trace lacks its end. Returns the calls that are in flight by then, as [`InFlight`] has them.
    pub fn trace(&mut self) -> anyhow::Result<InFlight> {
        if self.settings.signals {
            self.signals = SIGNALS.iter().map(|name| self.loaded.attach(name)).collect::<anyhow::Result<_>>()?;
        }
        let Hooks::Own { events, cpu } = self.settings.hooks.clone() else {
            self.attach_to_all(self.on_all.leave)?;
            let begun = self.list_begun()?;
            self.attach_to_all(self.on_all.enter)?;
            return Ok(begun);
        };
        self.look_beside()?;
        self.unseen = 0;
        self.attach_to_events(EVENTS.leave, events.iter().map(|event| event.exit), cpu)?;
        let begun = self.list_begun()?;
        self.attach_to_events(EVENTS.enter, events.iter().map(|event| event.enter), cpu)?;
        Ok(begun)
    }

    fn list_begun(&self) -> anyhow::Result<InFlight> {
        if self.settings.sums { Ok(InFlight::default()) } else { self.list_with_stacks("list_begun") }
    }

    fn attach_to_all(&mut self, name: &str) -> anyhow::Result<()> {
        let hook = self.beside.as_ref().unwrap_or(&self.loaded).attach(name)?;
        self.tracing.push(hook);
        Ok(())
    }

    fn attach_to_events(&mut self, name: &str, ids: impl Iterator<Item = u64>, cpu: u32) -> anyhow::Result<()> {
        for id in ids {
            let event = self.loaded.attach_to_event(name, id, cpu)?;
            self.own.push(event);
        }
        Ok(())
    }

    /// Where events of single syscalls are looked at: looks at the others' calls too as soon as there is a 32-bit program.
    pub fn look_beside(&mut self) -> anyhow::Result<()> {
        if self.settings.hooks == Hooks::All || self.beside.is_some() || self.account().compat == 0 {
            return Ok(());
        }
        let needed = |name: &str| is_needed(name, &self.settings, On::Beside, self.on_all, self.on_all);
        self.beside = Some(Loaded::load(&self.settings, On::Beside, needed, Some(&self.loaded))?);
        self.attach_to_all(self.on_all.leave)?;
        self.attach_to_all(self.on_all.enter)?;
        self.unseen = self.account().compat;
        Ok(())
    }

    /// 32-bit programs of whose calls the first were not seen.
    pub fn unseen(&self) -> u64 {
        if self.beside.is_some() { self.unseen } else { self.account().compat }
    }

    /// Calls that have been in flight for long and were not listed before, for [`super::record::listed`]. Where calls are summed up, nobody shows them before they are over.
    pub fn pending(&self) -> anyhow::Result<InFlight> {
        if !self.is_tracing() || self.settings.sums { Ok(InFlight::default()) } else { self.list_with_stacks("list_pending") }
    }

    /// The sums of tasks that ended before this moment, as facts for the stream.
    pub fn kept(&self, until: Time) -> impl Iterator<Item = (Time, Note)> {
        self.kept.iter().flat_map(move |kept| kept.take(until))
    }

    /// What is readable when there are many of these; `None` where calls are not summed up.
    pub fn kept_fd(&self) -> Option<BorrowedFd<'_>> {
        self.kept.as_ref().map(Kept::fd)
    }

    /// Ends: entries first. Returns the calls that are still in flight and the tallies of living tasks, which nothing else will give.
    pub fn stop(&mut self) -> anyhow::Result<InFlight> {
        let was_tracing = self.is_tracing();
        self.say_over(CALLS_ARE_OVER);
        if self.on_all.slow {
            self.stopped.append(&mut self.tracing);
        }
        while let Some(hook) = self.tracing.pop() {
            drop(hook);
        }
        let last = if was_tracing { self.list_last() } else { Ok(InFlight::default()) };
        self.say_over(ALL_IS_OVER);
        if self.on_all.slow {
            self.stopped.append(&mut self.following);
        }
        self.following.clear();
        self.signals.clear();
        last
    }

    fn say_over(&self, what: u64) {
        self.is_over.iter().for_each(|word| word.store(what, Ordering::SeqCst));
    }

    /// What takes long to close, for [`crate::sys::closer`].
    pub fn slow_to_close(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stopped.iter().chain(&self.own).map(OwnedFd::as_fd)
    }

    /// How often the kernel skipped a program on calls, because another task was inside it: a call may lack its entry or return for that, or be missing.
    pub fn skipped(&self) -> u64 {
        self.skipped_of(is_of_calls)
    }

    /// The same of those that follow tasks: a new task may not be followed for that, or an end not be known.
    pub fn skipped_tasks(&self) -> u64 {
        self.skipped_of(|name| self.on_all.tasks.contains(&name))
    }

    fn skipped_of(&self, which: impl Fn(&str) -> bool) -> u64 {
        let programs = std::iter::once(&self.loaded).chain(&self.beside).flat_map(Loaded::programs);
        programs.filter(|(name, _)| which(name)).filter_map(|(_, program)| skipped(program)).sum()
    }

    /// Whether a task that is followed is alive, where tasks are named that are there already.
    pub fn follow_anyone(&self) -> bool {
        self.list("living").map_or(true, |tids| !tids.is_empty())
    }

    fn is_tracing(&self) -> bool {
        !self.tracing.is_empty() || !self.own.is_empty()
    }

    fn list_last(&self) -> anyhow::Result<InFlight> {
        // Once they are listed for the last time, calls are not open any more.
        let stacks = self.list_stacks()?;
        let mut calls = self.list("list_last")?;
        if self.settings.sums {
            calls.extend(self.list("list_tallies")?);
        }
        Ok(InFlight { calls, stacks })
    }

    /// Lists calls in flight, and then the stacks of those that were listed.
    fn list_with_stacks(&self, name: &str) -> anyhow::Result<InFlight> {
        let calls = self.list(name)?;
        let stacks = if calls.is_empty() { Vec::new() } else { self.list_stacks()? };
        Ok(InFlight { calls, stacks })
    }

    fn list_stacks(&self) -> anyhow::Result<Vec<u8>> {
        if lists_stacks(&self.settings) { self.list("list_stacks") } else { Ok(Vec::new()) }
    }

    /// What the programs counted.
    pub fn account(&self) -> Account {
        Account::of_cpus(&self.accounts)
    }

    fn list(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        self.loaded.list(name)
    }

    fn map(&self, name: &str) -> anyhow::Result<libbpf_rs::Map<'_>> {
        self.loaded.map(name)
    }

    fn put_descriptor(&self, map: &str, key: u32, fd: BorrowedFd) -> anyhow::Result<()> {
        Ok(self.map(map)?.update(&key.to_ne_bytes(), &fd.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?)
    }
}

/// Whether this program is of an rtrace (this one or another): on an event it keeps nothing from anybody.
pub fn is_of_rtrace(id: u32) -> bool {
    let is_ours =
        |name: &str| name == EVENTS.enter || name == EVENTS.leave || name == EVENTS.tasks[2] || name.starts_with(super::user::NAME_PREFIX);
    libbpf_rs::query::ProgInfoIter::default().any(|info| info.id == id && info.name.to_str().is_some_and(is_ours))
}

/// Whether the kernel may take the CPU away from programs on raw tracepoints and on the events of single syscalls (from Linux 7.2). As long as a task stands inside such a program, the kernel passes over it for all
/// other tasks of that CPU (`bpf_prog_get_recursion_context()` in include/linux/bpf.h).
pub fn may_be_interrupted() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(raw_tracepoints_may_sleep);
    *MAY
}

/// Programs that have nothing to do are not loaded: the verifier takes its time.
fn is_needed(program: &str, settings: &Settings, on: On, calls: &Names, tasks: &Names) -> bool {
    match program {
        _ if is_of_calls(program) => program == calls.enter || program == calls.leave,
        _ if on == On::Beside => false,
        _ if is_of_tasks(program) => tasks.tasks.contains(&program),
        _ if SIGNALS.contains(&program) => settings.signals,
        "seed" => needs_seeds(settings),
        "living" => settings.attaches,
        "find_own_namespace" => !is_in_first_pid_namespace(),
        "list_begun" | "list_pending" => !settings.sums,
        "list_stacks" => lists_stacks(settings),
        "list_tallies" => settings.sums,
        _ => true,
    }
}

/// Whether calls in flight are listed with their stacks.
fn lists_stacks(settings: &Settings) -> bool {
    !settings.sums && !settings.stacks.kinds.is_empty()
}

/// Whether a program is on calls, wherever.
fn is_of_calls(program: &str) -> bool {
    [RAW, EVENTS].iter().any(|of| program == of.enter || program == of.leave)
}

/// Whether a program follows tasks, wherever.
fn is_of_tasks(program: &str) -> bool {
    [RAW, EVENTS].iter().any(|of| of.tasks.contains(&program))
}

/// Tasks that are there must be looked at: to mark them, or for 32-bit programs among them.
fn needs_seeds(settings: &Settings) -> bool {
    settings.whose == Whose::Tasks || settings.hooks != Hooks::All
}

/// How often a program was skipped; `None` where the kernel does not say.
pub(super) fn skipped(program: BorrowedFd) -> Option<u64> {
    recursion_misses(&std::fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).ok()?)
}

/// The same, as its descriptor's information has it (bpf_prog_show_fdinfo() in kernel/bpf/syscall.c).
fn recursion_misses(info: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{capture, encode, filter, filter_bytes, links, record, tally};
    use super::*;
    use libbpf_rs::HasSize;
    use libbpf_rs::btf::{Btf, types};
    use rtrace_bpf_objects::PLAIN_LOADS;

    fn btf() -> Btf<'static> {
        Btf::from_raw("rtrace", PLAIN_LOADS).unwrap().unwrap()
    }

    /// A struct's size and its members' offsets, as the C compiler has them.
    fn members(name: &str) -> (usize, Vec<(String, u32)>) {
        let btf = btf();
        let of: types::Struct = btf.type_by_name(name).unwrap();
        let offset = |attr| match attr {
            types::MemberAttr::Normal { offset } => offset / 8,
            types::MemberAttr::BitField { .. } => panic!("{name} has no bit fields"),
        };
        (of.size(), of.iter().map(|m| (m.name.unwrap().to_str().unwrap().to_owned(), offset(m.attr))).collect())
    }

    fn named(members: &[(&str, u32)]) -> Vec<(String, u32)> {
        members.iter().map(|(name, offset)| ((*name).to_owned(), *offset)).collect()
    }

    #[test]
    fn structs_are_laid_out_as_they_are_read_and_written() {
        let call = [("time", 0), ("start", 8), ("ret", 16), ("args", 24), ("nr", 72), ("tid", 76), ("pid", 80), ("lost", 84), ("late", 88)];
        let more = [("payload", 92), ("how", 94), ("bits", 95)];
        assert_eq!(members("call"), (record::CALL_BYTES, named(&[&call[..], &more].concat())));
        let piece = [("address", 0), ("wanted", 8), ("length", 16), ("arg", 20), ("when", 21), ("state", 22), ("continues", 23)];
        assert_eq!(members("piece"), (record::PIECE_BYTES, named(&piece)));
        assert_eq!(members("listed"), (record::LISTED_BYTES, named(&[("time", 0), ("pid", 8), ("tid", 12)])));
        let stack = [("start", 0), ("tid", 8), ("width", 12), ("mask", 16), ("registers", 24), ("bytes", 288)];
        assert_eq!(members("listed_stack"), (record::LISTED_STACK_BYTES, named(&stack)));
        let note = [("inode", 0), ("magic", 8), ("pid", 12), ("kind", 16), ("unlinked", 17), ("unused", 18), ("unused_too", 20)];
        assert_eq!(members("file_note"), (record::FILE_NOTE_BYTES, named(&note)));
        let ends = [("local", 8), ("remote", 24), ("local_port", 40), ("remote_port", 44), ("peer", 48)];
        let note = [&[("family", 0), ("type", 2), ("protocol", 4)][..], &ends].concat();
        assert_eq!(members("socket_note"), (record::SOCKET_NOTE_BYTES, named(&note)));
        assert_eq!(members("socket_names").1, named(&[("protocol", 0), ("address", 32)]));
        let told =
            [("scope", 0), ("inherit", 4), ("ends", 8), ("pending_after", 12), ("sigreturn", 16), ("string_limit", 20), ("sums", 24)];
        let more = [("hooks", 28), ("failures", 32), ("user", 36), ("filters", 40), ("cpus", 44), ("least", 48)];
        let last = [("nested", 56), ("own_only", 60), ("group", 64), ("unused", 68)];
        assert_eq!(members("settings"), (72, named(&[&told[..], &more, &last].concat())));
        let test = [("what", 0), ("op", 1), ("width", 2), ("flags", 3), ("length", 4), ("with", 8)];
        assert_eq!(members("filter_test"), (filter::TEST_BYTES, named(&test)));
        assert_eq!(members("filter"), (filter_bytes::FILTER_BYTES, named(&[("count", 0), ("unused", 4), ("tests", 8)])));
        let plan = [("flags", 0), ("ops_count", 2), ("fds", 3), ("chooser", 4), ("chooser_arg", 6), ("elsewhere", 7)];
        let plan = [
            &plan[..],
            &[
                ("chooser_mask", 8),
                ("stack", 12),
                ("stack_last", 13),
                ("stack_usual", 14),
                ("pids", 15),
                ("uids", 16),
                ("gids", 17),
                ("unused", 18),
                ("ops", 20),
            ],
        ]
        .concat();
        assert_eq!(members("plan"), (encode::PLAN_BYTES, named(&plan)));
        let op = [("arg", 0), ("kind", 1), ("when", 2), ("count", 3), ("size", 4), ("room", 6), ("test", 7), ("test_arg", 8), ("link", 9)];
        let rest = [("links_count", 10), ("unused", 11), ("test_mask", 12), ("limit", 16)];
        assert_eq!(members("op"), (capture::OP_BYTES, named(&[&op[..], &rest].concat())));
        let link = [("offset", 0), ("count_offset", 2), ("bytes", 4), ("count_bytes", 5), ("count", 6), ("when", 7), ("size", 8)];
        assert_eq!(members("link"), (links::LINK_BYTES, named(&[&link[..], &[("limit", 12), ("flags", 16)]].concat())));
        assert_eq!(members("choice"), (16, named(&[("key", 0), ("place", 8)])));
        let sum = [("key", 0), ("calls", 4), ("total", 8), ("min", 16), ("max", 24), ("squares", 32), ("squares_high", 40)];
        assert_eq!(members("sum"), (tally::SUM_BYTES, named(&sum)));
        let (head, body) = (16, 16 + record::CALL_BYTES as u32);
        let spread = body + (tally::SUMS_MAX * tally::SUM_BYTES) as u32;
        let expected = named(&[("calls", 0), ("used", 8), ("head", head), ("sums", body), ("spread", spread)]);
        assert_eq!(members("tally"), (body as usize + tally::BODY_BYTES, expected));
        let account = [("calls", 0), ("calls_lost", 8), ("ends_lost", 16), ("tasks_lost", 24), ("scratch_lost", 32), ("parts_lost", 40)];
        let more = [("compat", 48), ("left_out", 56), ("withheld", 64)];
        assert_eq!(members("account"), (72, named(&[&account[..], &more].concat())));
    }

    #[test]
    fn skipped_programs_are_counted() {
        assert_eq!(recursion_misses("prog_type:\t5\nrun_cnt:\t0\nrecursion_misses:\t12\n"), Some(12));
        assert_eq!(recursion_misses("pos:\t0\n"), None);
    }

    const FILTER_OPS: [&str; 12] = [
        "FILTER_EQUAL",
        "FILTER_NOT_EQUAL",
        "FILTER_LESS",
        "FILTER_LESS_OR_EQUAL",
        "FILTER_GREATER",
        "FILTER_GREATER_OR_EQUAL",
        "FILTER_ANY_BIT",
        "FILTER_ALL_BITS",
        "FILTER_IS",
        "FILTER_IS_NOT",
        "FILTER_BEGINS_WITH",
        "FILTER_BEGINS_OTHERWISE",
    ];

    const OP_KINDS: [&str; 12] = [
        "OP_STRING",
        "OP_BYTES",
        "OP_BITS",
        "OP_NODES",
        "OP_TAIL",
        "OP_PAGES",
        "OP_COMMAND",
        "OP_LINKED",
        "OP_STRINGS",
        "OP_IOVEC",
        "OP_MSGHDR",
        "OP_MMSGHDR",
    ];

    /// The constants by which both sides mean the same, in the order of their values.
    #[test]
    fn enums_count_as_they_are_read_and_written() {
        let btf = btf();
        for (name, values) in [
            (
                "how",
                &[
                    "HOW_RETURNED",
                    "HOW_NEVER",
                    "HOW_UNSEEN",
                    "HOW_PENDING",
                    "HOW_TASK_END",
                    "HOW_PART",
                    "HOW_TALLY",
                    "HOW_STACK",
                    "HOW_SIGNAL_SENT",
                    "HOW_SIGNAL",
                ][..],
            ),
            ("piece_when", &["WHEN_ENTRY", "WHEN_EXIT", "WHEN_RETRY"]),
            ("piece_state", &["PIECE_WHOLE", "PIECE_CUT", "PIECE_FAULT"]),
            ("file_kind", &["FILE_ROOTED", "FILE_CUT", "FILE_APART", "FILE_SOCKET"]),
            ("elsewhere", &["ELSEWHERE_NONE", "ELSEWHERE_POLLED", "ELSEWHERE_COMPARED", "ELSEWHERE_COMPARED_ONE", "ELSEWHERE_FETCHED"]),
            ("scope", &["SCOPE_TASKS", "SCOPE_EVERYONE", "SCOPE_CGROUP", "SCOPE_USER"]),
            ("kernel_function", &["RDONLY_CAST", "TASK_FROM_PID", "TASK_FROM_VPID", "TASK_RELEASE"]),
            ("hooks", &["HOOKS_ALL", "HOOKS_OWN", "HOOKS_BESIDE"]),
            ("filter_op", &FILTER_OPS),
            ("filter_width", &["WIDTH_S32", "WIDTH_U32", "WIDTH_S64", "WIDTH_U64", "WIDTH_U16", "WIDTH_SPLIT"]),
            ("mode", &["MODE_UNKNOWN", "MODE_TRACED", "MODE_SET_UP", "MODE_EXCLUDED"]),
            ("abi", &["ABI_X86_64", "ABI_I386", "ABI_X32", "ABI_AARCH64", "ABI_COUNT"]),
            ("op_kind", &OP_KINDS),
            ("op_test", &["TEST_NONE", "TEST_ANY", "TEST_NO", "TEST_IS", "TEST_IS_NOT", "TEST_AMONG"]),
        ] {
            let of: types::Enum = btf.type_by_name(name).unwrap_or_else(|| panic!("enum {name} is not in the object"));
            let found: Vec<_> = of.iter().map(|v| (v.value, v.name.unwrap().to_str().unwrap())).collect();
            assert_eq!(found, values.iter().enumerate().map(|(i, v)| (i as i64, *v)).collect::<Vec<_>>(), "enum {name}");
        }
    }
}
