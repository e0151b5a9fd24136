//! Synthesizes records of the state that the first records of a trace build on.

use super::Run;
use crate::bpf::record::{CallRecord, ListedCall, RecordKind};
use crate::event::{NoticeCode, Synthesized, TaskId, Time};
use crate::kernel::{elf, machine, procfs};
use crate::session::Targets;
use crate::source::proc_reader;
use crate::sys::spawn::Program;
use crate::sys::{caller, clock, rights};
use crate::syscall::memory::CallInFlight;
use anyhow::Context;

impl Run<'_> {
    /// Synthesizes records of the state before the first record.
    pub(super) fn synthesize_first(&mut self, program: Option<&Program>) {
        if let Err(why) = self.drain.enable_moves() {
            self.drain.notice(NoticeCode::CgroupMovesUnseen, format!("moves of tasks between cgroups are not seen: {why:#}"));
        }
        // In a system-wide trace, the timer's set-up is seen as well.
        let seen = self.child.as_ref().filter(|_| !matches!(self.plan.targets, Targets::Tasks { .. })).map(|child| child.pid);
        if let (Some(pid), Some(program)) = (seen, program) {
            let task = TaskId { pid, tid: pid };
            let argv = program.argv.iter().map(|a| a.to_bytes().to_vec()).collect();
            let fds = if self.plan.fds.is_ok() {
                procfs::inheritable_fds(pid).into_iter().filter(|(fd, _)| !caller::was_closed(*fd)).collect()
            } else {
                Vec::new()
            };
            let nested = procfs::status(pid).is_none_or(|status| status.is_nested);
            self.drain.synthesized(Synthesized::Spawned {
                task,
                path: program.path.to_bytes().to_vec(),
                argv,
                fds,
                cgroup: procfs::cgroup(pid),
                nested,
            });
        }
        let mut reader = proc_reader::TaskReader::new(self.plan.cgroups);
        for task in self.plan.targets.tasks() {
            // Changes during the read are reported by records with later times.
            let before = clock::now();
            if let Some(record) = reader.read(task) {
                self.drain.synthesize_at(before, record);
            }
        }
    }

    /// Synthesizes the record of the command's exec. In a trace of a cgroup or a user, the command may become a target
    /// after its execve, which is then not seen.
    pub(super) fn synthesize_executed(&mut self, at: Time) {
        let pid = self.child.as_ref().filter(|_| self.plan.targets.is_open_ended()).map(|child| child.pid);
        if let Some((pid, comm)) = pid.and_then(|pid| Some((pid, procfs::comm(pid)?))) {
            self.drain.synthesize_at(at, Synthesized::Executed { task: TaskId { pid, tid: pid }, comm });
        }
    }

    /// Synthesizes records of the targets' mappings. Later mappings have records of their own.
    pub(super) fn synthesize_maps(&mut self) {
        if self.plan.maps {
            self.plan.targets.processes().into_iter().filter_map(proc_reader::maps).for_each(|record| self.drain.synthesized(record));
        }
    }

    /// Synthesizes records of the files of all descriptors that processes had open, if the trace is only recorded: then
    /// no engine asks for the descriptors that it does not know. The events are enabled before.
    pub(super) fn synthesize_descriptors(&mut self) {
        let is_recorded = self.request.recording.as_ref().is_some_and(|recording| recording.is_alone);
        if !is_recorded || self.plan.fds.is_err() {
            return;
        }
        for pid in self.plan.targets.processes() {
            let from = clock::now();
            for (fd, path) in procfs::fd_links(pid).unwrap_or_default() {
                self.drain.synthesized(Synthesized::Fd { pid, fd, path: Some(path), from });
            }
        }
    }

    /// Enables the events. If no BPF program lists the calls in flight, they are read from /proc.
    pub(super) fn enable(&mut self) -> anyhow::Result<()> {
        let limit = self.request.show.string_limit;
        let is_chosen = matches!(self.plan.targets, Targets::Tasks { .. });
        let memory = |listed: ListedCall| {
            let call = CallRecord::parse(listed.call).filter(|call| call.kind == RecordKind::Pending && call.no_entry && is_chosen);
            let of = |call: CallRecord| CallInFlight { tid: listed.task.tid, abi: call.abi, nr: call.nr.into(), args: call.args };
            call.map_or(Vec::new(), |call| proc_reader::memory_of_sleeping(listed.task, of(call), limit))
        };
        self.drain.enable(memory).context("cannot enable the events")?;
        self.synthesize_descriptors();
        rights::drop_after_arming(self.plan.events.iter().any(|event| event.spec.format.is_some()));
        if !is_chosen || self.plan.bpf.is_some() || !self.plan.traces_calls() {
            return Ok(());
        }
        let wants_stacks = self.plan.events.iter().any(|event| event.stack.sample_type() != 0);
        for task in self.plan.targets.tasks() {
            let abi = match elf::program_of_thread(task) {
                Ok(elf::Program::Elf(abi)) => abi,
                _ => machine::NATIVE_ABI,
            };
            let wanted = |record: &Synthesized| matches!(record, Synthesized::Sleeping { nr, .. } if self.plan.selects(abi, *nr));
            if let Some((time, record)) = proc_reader::sleeping(task, abi, limit, wants_stacks).filter(|(_, record)| wanted(record)) {
                self.drain.synthesize_at(time, record);
            }
        }
        Ok(())
    }
}
