//! The reasons why the kernel refuses the calls that tracing needs, and their remedies.
//!
//! In a container, root lacks privileges: capabilities are dropped, or are held only in a user namespace, or a seccomp
//! filter refuses the call. Each has its own remedy.

use super::privileges::{Capability, Privileges};

/// The reason why a privileged call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The user is not root.
    NotRoot,
    /// The user is root without the capabilities, as in most containers.
    NoCapability,
    /// The process is in a user namespace other than the initial one.
    UserNamespace,
    /// The process has the capabilities and a seccomp filter.
    Filtered,
    /// kernel.perf_event_paranoid is above 2, a level of the kernels of Debian and Ubuntu, for which CAP_PERFMON is not
    /// enough.
    Level,
    /// The process has the capabilities, so there is another reason.
    Unknown,
}

impl Refused {
    /// Returns the reason for a process with these privileges, if the call needs the capabilities `needed`.
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

/// Returns the advice for a refused call that needs these capabilities.
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
            "kernel.perf_event_paranoid is {}: above 2, this kernel refuses {call} to all but root, whatever capabilities they have; `sudo sysctl kernel.perf_event_paranoid=2` sets the mainline kernel's default",
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
    fn the_advice_depends_on_the_reason_of_the_refusal() {
        let root = Privileges { capabilities: u64::MAX, uid: 0, ..Privileges::default() };
        let needed = [Capability::PerfMon, Capability::Bpf];
        let advice_for = |may: Privileges| advice("bpf", &may, &needed);
        assert!(
            advice_for(Privileges { capabilities: 0, uid: 1000, ..root })
                .starts_with("run it as root, or give rtrace CAP_PERFMON and CAP_BPF, or")
        );
        let without = advice_for(Privileges { capabilities: 1, ..root });
        assert!(without.starts_with("this is root without CAP_PERFMON and CAP_BPF: ") && without.ends_with("(kubernetes)"), "{without}");
        assert!(advice_for(Privileges { capabilities: 1 << 38, ..root }).starts_with("this is root without CAP_BPF: "));
        assert!(advice_for(Privileges { capabilities: 1, is_filtered: true, ..root }).contains("--cap-add BPF` (docker, podman), or give"));
        assert!(advice_for(Privileges { capabilities: 1, is_filtered: true, ..root }).contains("seccomp=unconfined"));
        assert!(
            advice_for(Privileges { is_in_user_namespace: true, is_filtered: true, ..root })
                .contains("`--userns=host --cap-add SYS_ADMIN`")
        );
        assert!(advice_for(Privileges { is_filtered: true, ..root }).contains("a seccomp filter refuses bpf: "));
        assert!(advice_for(root).contains("lockdown"));
        let lent = Privileges { capabilities: 1 << 38 | 1 << 39, uid: 1000, paranoid: Some(3), ..root };
        let of_events = |may: Privileges| advice("perf_event_open", &may, &[Capability::PerfMon]);
        assert!(of_events(lent).starts_with("kernel.perf_event_paranoid is 3: above 2, "), "{}", of_events(lent));
        assert!(of_events(Privileges { paranoid: Some(2), ..lent }).contains("lockdown"));
    }
}
