//! Why the kernel refuses what tracing takes, and what would give it.
//!
//! In a container root is not root: capabilities are taken away, hold only in a user namespace, or a filter answers in the kernel's place. Each has its own remedy.

use super::privileges::{Capability, Privileges};

/// Why a privileged call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The user is not root.
    NotRoot,
    /// Root without the capabilities: as a rule, in a container.
    NoCapability,
    /// What capabilities there are hold only in a user namespace.
    UserNamespace,
    /// The capabilities are there, and so is a seccomp filter.
    Filtered,
    /// kernel.perf_event_paranoid is above 2, which kernels of Debian and Ubuntu know: CAP_PERFMON is not enough for them then.
    Level,
    /// The capabilities are there, so it is something else.
    Unknown,
}

impl Refused {
    pub fn of(may: &Privileges, needed: &[Capability]) -> Refused {
        match needed.iter().all(|capability| may.has(*capability)) {
            true if may.is_filtered => Refused::Filtered,
            true if needed == [Capability::PerfMon] && may.is_above_perfmon() => Refused::Level,
            true => Refused::Unknown,
            false if may.is_in_user_namespace => Refused::UserNamespace,
            false if may.uid == 0 => Refused::NoCapability,
            false => Refused::NotRoot,
        }
    }
}

/// What to do where the kernel refuses this call, which needs these capabilities.
pub fn advice(call: &str, may: &Privileges, needed: &[Capability]) -> String {
    let missing = needed.iter().filter(|capability| !may.has(**capability));
    let names: Vec<String> = missing.map(|capability| capability.name().to_ascii_uppercase()).collect();
    let names = names.join(" and ");
    match Refused::of(may, needed) {
        Refused::NotRoot => {
            format!("run it as root, or give rtrace {names}, or lower kernel.perf_event_paranoid; `rtrace check` says what is missing")
        }
        Refused::NoCapability => {
            let unfiltered =
                if may.is_filtered { ", and with `--security-opt seccomp=unconfined` if its seccomp profile still refuses it" } else { "" };
            format!(
                "this is root without {names}: start the container with `--cap-add SYS_ADMIN`, or `--cap-add PERFMON --cap-add BPF` \
                 (docker, podman), or give its securityContext these capabilities (kubernetes){unfiltered}"
            )
        }
        Refused::UserNamespace => format!(
            "{names} must be held in the initial user namespace, and this process is in another one: start the container with \
             `--userns=host --cap-add SYS_ADMIN` (docker, podman, as root) or `hostUsers: true` (kubernetes), or trace it from the machine: `rtrace --container`"
        ),
        Refused::Filtered => format!(
            "the capabilities are there, so a seccomp filter refuses {call}: start the container with `--security-opt seccomp=unconfined` \
             (docker, podman) or a seccompProfile of type Unconfined (kubernetes), the service without SystemCallFilter="
        ),
        Refused::Level => format!(
            "kernel.perf_event_paranoid is {}: above 2, this kernel refuses {call} to all but root, whatever capabilities they have; `sudo sysctl kernel.perf_event_paranoid=2` is the level that kernels have by themselves",
            may.paranoid.unwrap_or_default()
        ),
        Refused::Unknown => {
            "the capabilities are there, so a security module or the kernel's lockdown refuses it; dmesg may say which".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_remedy() {
        let root = Privileges { capabilities: u64::MAX, uid: 0, ..Privileges::default() };
        let needed = [Capability::PerfMon, Capability::Bpf];
        let said = |may: Privileges| advice("bpf", &may, &needed);
        assert!(
            said(Privileges { capabilities: 0, uid: 1000, ..root })
                .starts_with("run it as root, or give rtrace CAP_PERFMON and CAP_BPF, or")
        );
        let without = said(Privileges { capabilities: 1, ..root });
        assert!(without.starts_with("this is root without CAP_PERFMON and CAP_BPF: ") && without.ends_with("(kubernetes)"), "{without}");
        assert!(said(Privileges { capabilities: 1 << 38, ..root }).starts_with("this is root without CAP_BPF: "));
        assert!(said(Privileges { capabilities: 1, is_filtered: true, ..root }).contains("--cap-add BPF` (docker, podman), or give"));
        assert!(said(Privileges { capabilities: 1, is_filtered: true, ..root }).contains("seccomp=unconfined"));
        assert!(said(Privileges { is_in_user_namespace: true, is_filtered: true, ..root }).contains("`--userns=host --cap-add SYS_ADMIN`"));
        assert!(said(Privileges { is_filtered: true, ..root }).contains("a seccomp filter refuses bpf: "));
        assert!(said(root).contains("lockdown"));
        let lent = Privileges { capabilities: 1 << 38 | 1 << 39, uid: 1000, paranoid: Some(3), ..root };
        let of_events = |may: Privileges| advice("perf_event_open", &may, &[Capability::PerfMon]);
        assert!(of_events(lent).starts_with("kernel.perf_event_paranoid is 3: above 2, "), "{}", of_events(lent));
        assert!(of_events(Privileges { paranoid: Some(2), ..lent }).contains("lockdown"));
    }
}
