//! What is said where BPF was expected and tracepoints trace: what arguments point to is not read then, which nobody
//! should have to find out from the lines.

use super::too_old::TooOld;
use crate::kernel::descriptors;
use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::refused::{self, Refused};
use crate::plan::Way;
use crate::request::Trace;
use crate::show::Mode;
use crate::text::plain::without_numbers;
use std::io;

/// What programs that trace are loaded with.
pub const NEEDED: [Capability; 2] = [Capability::Bpf, Capability::PerfMon];

/// One sentence: what is missing, why, and what gives it; `None` where nothing is missing. `names`: how path names are
/// known, `refused`: why BPF does not trace.
pub fn sentence(request: &Trace, names: Option<&Way>, refused: &anyhow::Error, may: &Privileges) -> Option<String> {
    if request.show.mode == Mode::Summary && request.show.paths.is_empty() {
        return None;
    }
    // Events cannot be had either then, which is said with the same advice when they are opened.
    if matches!(Refused::of(may, &NEEDED), Refused::NoCapability | Refused::UserNamespace) && !may.may_trace_own() {
        return None;
    }
    let what = match names {
        Some(Way::None) | None => "strings, buffers and structs are printed as addresses",
        Some(_) => "buffers and structs are printed as addresses (path names are not)",
    };
    Some(format!("{what}, because {}", why(request, refused, may)))
}

fn why(request: &Trace, refused: &anyhow::Error, may: &Privileges) -> String {
    if let Some(cpus) = &request.what.cpus {
        let cpus: Vec<String> = cpus.iter().map(|cpu| format!("cpu == {cpu}")).collect();
        return format!("-C traces without BPF; in place of it, -a --filter '{}' traces with BPF", cpus.join(" || "));
    }
    match Refused::of(may, &NEEDED) {
        Refused::NotRoot => {
            return "BPF programs may not be loaded; run rtrace as root, or with the capabilities CAP_BPF and CAP_PERFMON".to_owned();
        }
        Refused::NoCapability | Refused::UserNamespace => {
            return format!("BPF programs may not be loaded: {}", refused::advice("bpf", may, &NEEDED));
        }
        Refused::Filtered if is_no_permission(&format!("{refused:#}")) => {
            return "a seccomp filter refuses bpf; `rtrace check` says what would help".to_owned();
        }
        Refused::Filtered | Refused::Level | Refused::Unknown => {}
    }
    if cfg!(not(feature = "bpf")) {
        return "this rtrace was built without BPF; a build with the feature bpf reads them".to_owned();
    }
    if let Some(reason) = descriptors::reason(refused) {
        return reason;
    }
    if refused.is::<TooOld>() {
        return refused.to_string();
    }
    format!("this kernel takes no BPF programs ({refused:#}); `rtrace check` says what would help")
}

/// Why there is no BPF, with what helps where it is a matter of privileges.
pub fn advised(refused: &anyhow::Error, may: &Privileges) -> String {
    let what = format!("{refused:#}");
    match is_no_permission(&what) {
        true => format!("{what} ({})", refused::advice("bpf", may, &NEEDED)),
        false => what,
    }
}

/// The kernel, or what answers in its place, says that this is not permitted, and nothing else.
pub fn is_no_permission(why: &str) -> bool {
    why.contains(&without_numbers(&io::Error::from_raw_os_error(libc::EPERM).to_string()))
}
