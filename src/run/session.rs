//! Describes a run as a [`Session`].

use crate::arm::Armed;
use crate::kernel::{cgroups, machine, procfs};
use crate::plan::Plan;
use crate::session::{Session, Targets, Zone};
use crate::sys::clock;

/// Returns the session of a trace with this plan and these armed events. `has_local_times` says whether the output has
/// times in the machine's time zone, whose rules are in files.
pub fn session(plan: &Plan, armed: &Armed, has_local_times: bool) -> Session {
    let cgroups_from_root = procfs::is_in_initial_cgroup_namespace();
    let (started, realtime_offset) = (clock::now(), clock::realtime_offset());
    let start = (started.0 as i64).saturating_add(realtime_offset) / 1_000_000_000;
    Session {
        started,
        realtime_offset,
        zone: if has_local_times { Zone::of_machine(start) } else { Zone::utc() },
        abi: machine::NATIVE_ABI,
        release: machine::release().unwrap_or_default(),
        events: armed.table.clone(),
        scope: plan.targets.scope(),
        processes: armed.processes().map(<[i32]>::to_vec),
        fds_complete: plan.fds.is_ok(),
        signals: plan.signals,
        follows_cgroups: plan.cgroups,
        namespaces_complete: plan.namespaces_complete,
        names: plan.names.iter().cloned().collect(),
        excluded: plan.left_out().into_iter().chain(procfs::pids_outside_namespace().iter().copied()).collect(),
        paths: plan.paths.clone(),
        frames_max: plan.frames_max.clone(),
        copied_bytes: plan.copied_bytes,
        event_calls: plan.event_calls.clone(),
        other_requests: plan.other_requests(),
        injected: plan.injected(),
        cgroups_from_root,
        of_cgroup: matches!(plan.targets, Targets::Cgroup(_)) && plan.bpf.is_none(),
        cgroups: if plan.cgroups && !cgroups_from_root { cgroups::by_number() } else { Vec::new() },
        fields_have_other_numbers: !procfs::is_in_initial_pid_namespace(),
    }
}
