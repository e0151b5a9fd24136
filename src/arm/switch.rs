//! Enables and disables armed events in the right order.

use super::{Armed, ArmedEvent, visit};
use crate::bpf::Programs;
use crate::bpf::in_flight::InFlight;
use crate::session::Role;
use crate::sys::perf::PerfEvent;
use std::collections::BTreeMap;
use std::io;

impl Armed {
    /// Enables the events of moves between cgroups. This must precede the reading of the tasks' cgroups.
    pub fn enable_moves(&self) -> anyhow::Result<()> {
        Ok(self.each(|e| e.role == Role::CgroupMove, PerfEvent::enable)?)
    }

    /// Enables the events that must be on from the beginning: the records about tasks.
    pub fn enable_side_band(&mut self) -> anyhow::Result<()> {
        self.each(|e| matches!(e.role, Role::SideBand | Role::BpfCall | Role::NewTask), PerfEvent::enable)?;
        self.objects.follow(&self.seeds)?;
        self.programs.as_mut().map_or(Ok(()), |programs| programs.follow(self.seeds.iter().copied()))
    }

    /// Enables all other events: exits before entries, so that every traced entry has its exit. Returns the calls that
    /// are in flight by then, if the BPF programs know them.
    pub fn enable(&mut self) -> anyhow::Result<InFlight> {
        self.instance.as_ref().map_or(Ok(()), |instance| instance.record(true))?;
        self.report_matches(true)?;
        self.each(|e| e.role != Role::SideBand && !begins_calls(e.role), PerfEvent::enable)?;
        self.each(|e| begins_calls(e.role), PerfEvent::enable)?;
        self.objects.attach(self.rings.first().map_or(0, |ring| ring.cpu))?;
        self.programs.as_mut().map_or(Ok(InFlight::default()), Programs::trace)
    }

    /// Disables all events, entries first. Returns the calls in flight, if only the BPF programs know them.
    pub fn disable(&mut self) -> anyhow::Result<InFlight> {
        let in_flight = self.programs.as_mut().map_or(Ok(InFlight::default()), Programs::stop);
        self.objects.detach();
        self.disable_events()?;
        self.instance.as_ref().map_or(Ok(()), |instance| instance.record(false))?;
        in_flight
    }

    /// Starts or stops the reports of calls that ask for a snapshot. The BPF programs report one call, and no other
    /// until they are started again; the kernel's filter reports all calls until it is stopped.
    pub fn report_matches(&self, on: bool) -> io::Result<()> {
        match &self.programs {
            Some(programs) if on => programs.report_next_match(),
            Some(_) => return Ok(()),
            None => {}
        }
        self.matches.iter().try_for_each(|event| if on { event.enable() } else { event.disable() })
    }

    /// Disables the perf events, entries first.
    pub(super) fn disable_events(&mut self) -> io::Result<()> {
        self.matches.iter().try_for_each(PerfEvent::disable)?;
        self.disable_on_own_cpu(|e| begins_calls(e.role))?;
        self.disable_on_own_cpu(|e| !begins_calls(e.role))
    }

    /// Disables events, each from its own CPU. The kernel counts an occurrence before it writes the record. If the
    /// event is disabled from another CPU in between, the kernel does not write the record, and does not report that
    /// (Linux 6.18: `perf_swevent_event`).
    fn disable_on_own_cpu(&mut self, which: impl Fn(&ArmedEvent) -> bool) -> io::Result<()> {
        let mut of_cpus: BTreeMap<u32, Vec<&ArmedEvent>> = BTreeMap::new();
        self.events.iter().filter(|e| which(e)).for_each(|e| of_cpus.entry(e.cpu).or_default().push(e));
        // The kernel does not count the output of programs and the records about tasks.
        let is_counted = |e: &&ArmedEvent| !matches!(e.role, Role::BpfCall | Role::Output | Role::SideBand);
        if !of_cpus.values().flatten().any(is_counted) {
            return of_cpus.values().flatten().try_for_each(|e| e.event.disable());
        }
        let cpus: Vec<u32> = of_cpus.keys().copied().collect();
        let missed = visit::on_each(&cpus, |cpu| of_cpus[&cpu].iter().try_for_each(|e| e.event.disable()))?;
        for event in missed.iter().flat_map(|cpu| &of_cpus[cpu]) {
            *self.disabled_remotely.entry(event.index).or_default() += 1;
        }
        Ok(())
    }

    fn each(&self, which: impl Fn(&ArmedEvent) -> bool, act: impl Fn(&PerfEvent) -> io::Result<()>) -> io::Result<()> {
        self.events.iter().filter(|e| which(e)).try_for_each(|e| act(&e.event))
    }
}

fn begins_calls(role: Role) -> bool {
    matches!(role, Role::RawEnter | Role::Enter | Role::RequestSubmitted)
}
