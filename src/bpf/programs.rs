//! The BPF programs: which of them are loaded, when they are attached, and what rtrace reads from them. They are
//! detached when this process ends, however it ends, because nothing is pinned. Loading them is the task of
//! [`super::loaded`].

mod matches;
mod needed;

use super::account::{self, Account};
use super::encode::HookSet;
use super::ended_tasks::EndedTasks;
use super::in_flight::InFlight;
use super::loaded::LoadedObject;
use super::settings::{Hooks, Mode, Seed, Settings, TaskScope};
use crate::beauty::lookup::requests::OPCODES;
use crate::event::{Synthesized, Time};
use crate::kernel::machine::possible_cpus;
use crate::kernel::procfs::is_in_initial_pid_namespace;
use crate::sys::bpf::{self, raw_tracepoints_may_sleep};
use crate::sys::map_memory::MapMemory;
use anyhow::{Context, anyhow};
use libbpf_rs::{MapCore, MapFlags};
use needed::{EVENTS, OVERRIDE, ProgramNames, SIGNALS, is_needed, is_of_calls, lists_stacks, needs_seeds};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often rtrace tries to give all traced tasks their state, at intervals of a millisecond.
const SEED_TRIES: u32 = 1_000;

/// The loaded programs.
#[derive(Debug)]
pub struct Programs {
    loaded: LoadedObject,
    settings: Settings,
    /// The mapped memory of the BPF maps `accounts` and `.data.is_over`, which is accessed while calls are traced.
    accounts: MapMemory,
    is_over: MapMemory,
    /// The mapped memory of `.data.match_reported`.
    match_reported: MapMemory,
    /// The mapped memory of `.data.requests_made`, where requests of io_uring are counted.
    requests_made: Option<MapMemory>,
    /// The reader of the aggregates of ended tasks, where calls are aggregated.
    ended_tasks: Option<EndedTasks>,
    /// The attached programs that follow tasks. Here and below, closing a descriptor detaches the program.
    following: Vec<OwnedFd>,
    /// The names of the programs that are attached to the tracepoints of all calls.
    on_all: &'static ProgramNames,
    /// The attached programs on the tracepoints of all calls.
    tracing: Vec<OwnedFd>,
    /// The attached programs on signals.
    signals: Vec<OwnedFd>,
    /// The attached program that answers calls.
    answering: Option<OwnedFd>,
    /// The attached programs on requests of io_uring.
    requests: Vec<OwnedFd>,
    /// Attached programs that no longer do anything, but that the kernel takes long to detach.
    stopped: Vec<OwnedFd>,
    /// The `syscalls:` events that a program is attached to. They stay disabled, so that they write no records
    /// themselves.
    own: Vec<OwnedFd>,
    /// The additional programs for calls without `syscalls:` events, loaded when a 32-bit program is found.
    compat: Option<LoadedObject>,
    /// The number of 32-bit programs that started before the additional programs were attached.
    compat_unseen: u64,
}

/// `enum is_over`
const CALLS_ARE_OVER: u64 = 1;
const ALL_IS_OVER: u64 = 2;

impl Programs {
    /// Loads the programs. None is attached yet.
    ///
    /// # Errors
    /// The kernel refuses the programs: rtrace has no privilege for them (CAP_BPF and CAP_PERFMON), or the kernel has
    /// no type information (BTF) or is too old.
    pub fn load(settings: &Settings) -> anyhow::Result<Programs> {
        let on_all = ProgramNames::on_all();
        let (on, calls) = match settings.hooks {
            Hooks::All => (HookSet::AllCalls, on_all),
            Hooks::Own { .. } => (HookSet::OwnEvents, &EVENTS),
        };
        let programs = Programs::new(settings, on, on_all, |name| is_needed(name, settings, on, calls, on_all))?;
        if let TaskScope::Cgroup(path) = &settings.scope {
            let dir = File::open(path).with_context(|| format!("cannot open the cgroup {}", path.display()))?;
            programs
                .put_descriptor("cgroup", 0, dir.as_fd())
                .context("only cgroups of the unified hierarchy (cgroup2) can be traced by BPF")?;
        }
        Ok(programs)
    }

    /// Loads only the programs that follow tasks, so that other programs can look up the traced tasks
    /// ([`Programs::tasks`]).
    ///
    /// # Errors
    /// As [`Programs::load`].
    pub fn load_followers(settings: &Settings) -> anyhow::Result<Programs> {
        let on_all = ProgramNames::on_all();
        let is_needed = |name: &str| match name {
            "seed" => needs_seeds(settings),
            "find_own_namespace" => !is_in_initial_pid_namespace(),
            _ => on_all.tasks.contains(&name),
        };
        Programs::new(settings, HookSet::AllCalls, on_all, is_needed)
    }

    fn new(settings: &Settings, on: HookSet, on_all: &'static ProgramNames, is_needed: impl Fn(&str) -> bool) -> anyhow::Result<Programs> {
        libbpf_rs::set_print(None);
        let loaded = LoadedObject::load(settings, on, is_needed, None)?;
        let memory = |name: &str, words: usize| {
            let map = loaded.map(name)?;
            MapMemory::of(map.as_fd(), words).with_context(|| format!("cannot map the BPF map {name}"))
        };
        Ok(Programs {
            accounts: memory("accounts", possible_cpus() as usize * account::WORDS)?,
            is_over: memory(".data.is_over", 1)?,
            match_reported: memory(".data.match_reported", 1)?,
            requests_made: match settings.requests.counted.is_empty() {
                true => None,
                false => Some(memory(".data.requests_made", usize::from(OPCODES))?),
            },
            ended_tasks: if settings.sums { Some(EndedTasks::of(&loaded.map("ended_tasks")?)?) } else { None },
            loaded,
            settings: settings.clone(),
            following: Vec::new(),
            on_all,
            tracing: Vec::new(),
            signals: Vec::new(),
            answering: None,
            requests: Vec::new(),
            stopped: Vec::new(),
            own: Vec::new(),
            compat: None,
            compat_unseen: 0,
        })
    }

    /// Returns the descriptor of the task storage that has a value for each traced task, if single tasks are traced.
    /// `None` on kernels where a lookup does not always find the value.
    pub fn tasks(&self) -> Option<i32> {
        self.loaded.tasks().filter(|_| self.settings.scope == TaskScope::Tasks)
    }

    /// Directs the records of this kind (0: without a stack) that are written on this CPU to this event.
    pub fn write_to(&self, kind: u32, cpu: u32, event: BorrowedFd) -> anyhow::Result<()> {
        let key = kind * possible_cpus() + cpu;
        self.put_descriptor("output", key, event).with_context(|| format!("cannot write the event of CPU {cpu} to the BPF map output"))
    }

    /// Attaches the program that answers calls, if calls are answered. It does nothing until calls are traced.
    ///
    /// # Errors
    /// The kernel has none of the means (CONFIG_FPROBE), or does not permit it for one of the functions.
    pub fn begin_to_answer(&mut self) -> anyhow::Result<()> {
        let functions = self.settings.effects.as_ref().map(|effects| effects.functions.as_slice()).unwrap_or_default();
        if !functions.is_empty() {
            self.answering = Some(self.loaded.attach_to_functions(OVERRIDE, functions)?);
        }
        Ok(())
    }

    /// Follows tasks from now on, starting with these.
    pub fn follow(&mut self, seeds: impl Iterator<Item = (Seed, Mode)>) -> anyhow::Result<()> {
        if !is_in_initial_pid_namespace() {
            self.list("find_own_namespace")?;
        }
        let map = self.map("seeds")?;
        for (seed, mode) in seeds {
            map.update(&seed.key().to_ne_bytes(), &(mode as u32).to_ne_bytes(), MapFlags::ANY)
                .context("cannot write the traced tasks to the BPF map seeds")?;
        }
        for name in self.on_all.tasks {
            let hook = self.loaded.attach(name)?;
            self.following.push(hook);
        }
        if needs_seeds(&self.settings) { self.seed() } else { Ok(()) }
    }

    /// Creates the state of the named tasks, until an iteration finds none without it: a thread that has no state yet
    /// may create another thread after the iteration has passed. The kernel lacks memory for the state only for
    /// moments.
    fn seed(&self) -> anyhow::Result<()> {
        for _ in 0..SEED_TRIES {
            let tids = self.list("seed")?;
            if tids.is_empty() {
                return Ok(());
            }
            let (words, _) = tids.as_chunks::<4>();
            if words.iter().any(|word| i32::from_ne_bytes(*word) < 0) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(anyhow!("the kernel has no memory for the state of the tasks to be traced"))
    }

    /// Starts tracing calls. The exit program is attached before the entry program, so that no traced call lacks its
    /// exit. Returns the calls that are in flight at that time.
    pub fn trace(&mut self) -> anyhow::Result<InFlight> {
        if self.settings.signals {
            self.signals = SIGNALS.iter().map(|name| self.loaded.attach(name)).collect::<anyhow::Result<_>>()?;
        }
        self.requests = self.settings.request_programs().map(|name| self.loaded.attach(name)).collect::<anyhow::Result<_>>()?;
        if !self.settings.traces_calls() {
            return Ok(InFlight::default());
        }
        let Hooks::Own { events, cpu } = self.settings.hooks.clone() else {
            self.attach_exit_to_all()?;
            let begun = self.list_begun()?;
            self.attach_to_all(self.on_all.enter)?;
            return Ok(begun);
        };
        self.trace_32_bit_calls()?;
        self.compat_unseen = 0;
        if self.settings.begins_answered() {
            self.attach_to_events(EVENTS.answer, events.iter().map(|event| event.exit), cpu)?;
        }
        self.attach_to_events(EVENTS.leave, events.iter().map(|event| event.exit), cpu)?;
        let begun = self.list_begun()?;
        self.attach_to_events(EVENTS.enter, events.iter().map(|event| event.enter), cpu)?;
        Ok(begun)
    }

    fn list_begun(&self) -> anyhow::Result<InFlight> {
        if self.settings.sums { Ok(InFlight::default()) } else { self.list_with_stacks("list_begun") }
    }

    fn attach_exit_to_all(&mut self) -> anyhow::Result<()> {
        if self.settings.begins_answered() {
            self.attach_to_all(self.on_all.answer)?;
        }
        self.attach_to_all(self.on_all.leave)
    }

    fn attach_to_all(&mut self, name: &str) -> anyhow::Result<()> {
        let hook = self.compat.as_ref().unwrap_or(&self.loaded).attach(name)?;
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

    /// Where `syscalls:` events are traced, starts tracing the calls without such events as soon as a 32-bit program is
    /// found.
    pub fn trace_32_bit_calls(&mut self) -> anyhow::Result<()> {
        if self.settings.hooks == Hooks::All || self.compat.is_some() || self.account().compat == 0 {
            return Ok(());
        }
        let needed = |name: &str| is_needed(name, &self.settings, HookSet::Compat, self.on_all, self.on_all);
        self.compat = Some(LoadedObject::load(&self.settings, HookSet::Compat, needed, Some(&self.loaded))?);
        self.attach_exit_to_all()?;
        self.attach_to_all(self.on_all.enter)?;
        self.compat_unseen = self.account().compat;
        Ok(())
    }

    /// Returns the number of 32-bit programs whose first calls were not traced.
    pub fn compat_unseen(&self) -> u64 {
        if self.compat.is_some() { self.compat_unseen } else { self.account().compat }
    }

    /// Lists calls that have been in flight for long and were not listed before. Where calls are aggregated, pending
    /// calls are not shown.
    pub fn pending(&self) -> anyhow::Result<InFlight> {
        if !self.is_tracing() || self.settings.sums { Ok(InFlight::default()) } else { self.list_with_stacks("list_pending") }
    }

    /// Returns the aggregates of tasks that ended before this time, as synthesized records.
    pub fn ended_task_aggregates(&self, until: Time) -> impl Iterator<Item = (Time, Synthesized)> {
        self.ended_tasks.iter().flat_map(move |aggregates| aggregates.take(until))
    }

    /// Returns the descriptor that becomes readable when many aggregates of ended tasks wait; `None` where calls are
    /// not aggregated.
    pub fn aggregates_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ended_tasks.as_ref().map(EndedTasks::fd)
    }

    /// Stops tracing; the entry program is detached first. Returns the calls that are still in flight and the
    /// aggregates of living tasks, for which no other records will follow.
    pub fn stop(&mut self) -> anyhow::Result<InFlight> {
        let was_tracing = self.is_tracing();
        self.set_over(CALLS_ARE_OVER);
        if self.on_all.slow {
            self.stopped.append(&mut self.tracing);
        }
        while let Some(hook) = self.tracing.pop() {
            drop(hook);
        }
        let last = if was_tracing { self.list_last() } else { Ok(InFlight::default()) };
        self.set_over(ALL_IS_OVER);
        if self.on_all.slow {
            self.stopped.append(&mut self.following);
        }
        self.following.clear();
        self.signals.clear();
        self.requests.clear();
        self.stopped.extend(self.answering.take());
        last
    }

    fn set_over(&self, what: u64) {
        self.is_over.iter().for_each(|word| word.store(what, Ordering::SeqCst));
    }

    /// Returns the descriptors that take long to close, for [`crate::sys::closer`].
    pub fn slow_to_close(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stopped.iter().chain(&self.own).map(OwnedFd::as_fd)
    }

    /// Returns how often the kernel skipped a program on calls because another task had been preempted inside it. A
    /// call may lack its entry or exit because of that, or be missing.
    pub fn skipped(&self) -> u64 {
        self.skipped_of(is_of_calls)
    }

    /// Returns the same count for the programs that follow tasks. A new task may not be followed because of that, or
    /// the end of a task may be missed.
    pub fn skipped_tasks(&self) -> u64 {
        self.skipped_of(|name| self.on_all.tasks.contains(&name))
    }

    fn skipped_of(&self, which: impl Fn(&str) -> bool) -> u64 {
        let programs = std::iter::once(&self.loaded).chain(&self.compat).flat_map(LoadedObject::programs);
        programs.filter(|(name, _)| which(name)).filter_map(|(_, program)| skipped(program)).sum()
    }

    /// Returns whether any traced task is alive, where existing tasks are traced.
    pub fn has_living_tasks(&self) -> bool {
        self.list("living").map_or(true, |tids| !tids.is_empty())
    }

    fn is_tracing(&self) -> bool {
        !self.tracing.is_empty() || !self.own.is_empty()
    }

    fn list_last(&self) -> anyhow::Result<InFlight> {
        // The last list removes the calls from their tasks, so that the stacks must be listed before it.
        let stacks = self.list_stacks()?;
        let mut calls = self.list("list_last")?;
        if self.settings.sums {
            calls.extend(self.list("list_aggregates")?);
        }
        Ok(InFlight { calls, stacks })
    }

    /// Lists calls in flight, and then the stacks of the listed calls.
    fn list_with_stacks(&self, name: &str) -> anyhow::Result<InFlight> {
        let calls = self.list(name)?;
        let stacks = if calls.is_empty() { Vec::new() } else { self.list_stacks()? };
        Ok(InFlight { calls, stacks })
    }

    fn list_stacks(&self) -> anyhow::Result<Vec<u8>> {
        if lists_stacks(&self.settings) { self.list("list_stacks") } else { Ok(Vec::new()) }
    }

    /// Returns the counters of the programs.
    pub fn account(&self) -> Account {
        Account::of_cpus(&self.accounts)
    }

    /// Returns the descriptor of the memory from which the programs take signals for tasks (`--inject`), if they do.
    pub fn due_signals(&self) -> Option<OwnedFd> {
        let map = self.loaded.map(".data.due_signals").ok().filter(|_| self.settings.sends_signals && !self.settings.sums)?;
        map.as_fd().try_clone_to_owned().ok()
    }

    /// Returns the opcodes of the counted requests of io_uring that were made, and how many of each.
    pub fn requests_made(&self) -> Vec<(u8, u64)> {
        let Some(made) = &self.requests_made else { return Vec::new() };
        let count = |opcode: &u8| (*opcode, made[usize::from(*opcode)].load(Ordering::Relaxed));
        self.settings.requests.counted.iter().map(count).filter(|(_, count)| *count > 0).collect()
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

/// Returns whether a program belongs to an rtrace, this one or another. Such a program never suppresses the records of
/// other users of a tracepoint's event.
pub fn is_of_rtrace(id: u32) -> bool {
    let is_ours = |name: &str| {
        name == EVENTS.enter
            || name == EVENTS.leave
            || name == EVENTS.answer
            || name == EVENTS.tasks[2]
            || name.starts_with(super::user::NAME_PREFIX)
    };
    libbpf_rs::query::ProgInfoIter::default().any(|info| info.id == id && info.name.to_str().is_some_and(is_ours))
}

/// Returns whether the kernel may preempt programs on raw tracepoints and on the events of single syscalls (from Linux
/// 7.2). While a task is inside such a program, the kernel skips the program for all other tasks of that CPU
/// (`bpf_prog_get_recursion_context()` in include/linux/bpf.h).
pub fn may_be_interrupted() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(raw_tracepoints_may_sleep);
    *MAY
}

/// Returns whether the kernel lets programs on its functions return in place of these.
pub fn may_override() -> bool {
    bpf::may_override()
}

/// Returns how often a program was skipped; `None` where the kernel does not count it.
pub(super) fn skipped(program: BorrowedFd) -> Option<u64> {
    recursion_misses(&std::fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).ok()?)
}

/// Parses that count from the descriptor's fdinfo (bpf_prog_show_fdinfo() in kernel/bpf/syscall.c).
fn recursion_misses(info: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_programs_are_counted() {
        assert_eq!(recursion_misses("prog_type:\t5\nrun_cnt:\t0\nrecursion_misses:\t12\n"), Some(12));
        assert_eq!(recursion_misses("pos:\t0\n"), None);
    }
}
