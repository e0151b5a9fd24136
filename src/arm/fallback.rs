//! The message for traces that use tracepoints where BPF was expected. Tracepoints do not read the memory that
//! arguments point to, and users should not have to conclude that from the output.

use super::too_old::TooOld;
use crate::kernel::descriptors;
use crate::kernel::privileges::{Capability, Privileges};
use crate::kernel::refused::{self, Refused};
use crate::plan::PathNameSource;
use crate::request::Trace;
use crate::show::Mode;
use crate::text::os_error::without_error_numbers;
use std::io;

/// The capabilities that loading tracing programs requires.
pub const NEEDED: [Capability; 2] = [Capability::Bpf, Capability::PerfMon];

/// Returns a sentence that says what is missing, why, and how to get it; `None` if nothing is missing. `names` is the
/// source of path names, and `refused` the reason why BPF does not trace.
pub fn sentence(request: &Trace, names: Option<&PathNameSource>, refused: &anyhow::Error, may: &Privileges) -> Option<String> {
    if request.show.mode == Mode::Summary && request.show.paths.is_empty() {
        return None;
    }
    // Perf events cannot be opened in this case either, which is reported with the same advice when they are opened.
    if matches!(Refused::of(may, &NEEDED), Refused::NoCapability | Refused::UserNamespace) && !may.may_trace_own() {
        return None;
    }
    let what = match names {
        Some(PathNameSource::None) | None => "strings, buffers and structs are printed as addresses",
        Some(_) => "buffers and structs are printed as addresses (path names are not)",
    };
    Some(format!("{what}, because {}", why(request, refused, may)))
}

fn why(request: &Trace, refused: &anyhow::Error, may: &Privileges) -> String {
    if let Some(cpus) = &request.what.cpus {
        let cpus: Vec<String> = cpus.iter().map(|cpu| format!("cpu == {cpu}")).collect();
        return format!("-C excludes the BPF engine; to trace with BPF, replace -C by -a --filter '{}'", cpus.join(" || "));
    }
    match Refused::of(may, &NEEDED) {
        Refused::NotRoot => {
            return "BPF programs may not be loaded; run rtrace as root, or with the capabilities CAP_BPF and CAP_PERFMON".to_owned();
        }
        Refused::NoCapability | Refused::UserNamespace => {
            return format!("BPF programs may not be loaded: {}", refused::advice("bpf", may, &NEEDED));
        }
        Refused::Filtered if is_no_permission(&format!("{refused:#}")) => {
            return "a seccomp filter denies bpf; `rtrace check` shows what is needed".to_owned();
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
    format!("this kernel rejects rtrace's BPF programs ({refused:#}); `rtrace check` shows what is needed")
}

/// Returns the reason why BPF does not trace, with advice if privileges are missing.
pub fn advised(refused: &anyhow::Error, may: &Privileges) -> String {
    let what = format!("{refused:#}");
    match is_no_permission(&what) {
        true => format!("{what} ({})", refused::advice("bpf", may, &NEEDED)),
        false => what,
    }
}

/// Returns whether the reason is EPERM of the kernel or of a seccomp filter, and nothing else.
pub fn is_no_permission(why: &str) -> bool {
    why.contains(&without_error_numbers(&io::Error::from_raw_os_error(libc::EPERM).to_string()))
}
