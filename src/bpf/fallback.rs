//! What is said where BPF was expected and tracepoints trace: what arguments point to is not read then, which nobody
//! should have to find out from the lines.

use crate::cli::request::{Mode, Trace};
use crate::kernel::descriptors;
use crate::kernel::privileges::{Capability, Privileges};
use crate::plan::Way;

/// One sentence: what is missing, why, and what gives it; `None` where nothing is missing. `names`: how path names are
/// known, `refused`: why BPF does not trace.
pub fn sentence(request: &Trace, names: Option<&Way>, refused: &anyhow::Error, may: &Privileges) -> Option<String> {
    if request.show.mode == Mode::Summary && request.show.paths.is_empty() {
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
    if !may.has(Capability::Bpf) || !may.has(Capability::PerfMon) {
        return "BPF programs may not be loaded; run rtrace as root, or with the capabilities CAP_BPF and CAP_PERFMON".to_owned();
    }
    if cfg!(not(feature = "bpf")) {
        return "this rtrace was built without BPF; a build with the feature bpf reads them".to_owned();
    }
    if let Some(reason) = descriptors::reason(refused) {
        return reason;
    }
    format!("this kernel takes no BPF programs ({refused:#}); `rtrace check` says what would help")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse::{Surroundings, request};
    use crate::cli::request::Request;
    use std::ffi::OsString;

    fn said(words: &str, names: Option<&Way>, capabilities: u64) -> Option<String> {
        let argv: Vec<OsString> = std::iter::once("rtrace").chain(words.split(' ')).map(OsString::from).collect();
        let Ok(Request::Trace(trace)) = request(&argv, &Surroundings { var: &|_| None, read: &|_| Ok(None), page_bytes: 4096 }) else {
            panic!("{words}")
        };
        let may = Privileges { capabilities, uid: 0, paranoid: None, mlock_kb: None, memlock: None, files: (None, None) };
        sentence(&trace, names, &anyhow::anyhow!("no type information"), &may)
    }

    #[test]
    fn the_reason_comes_with_what_helps() {
        assert_eq!(
            said("-C 0,2", Some(&Way::None), u64::MAX).unwrap(),
            "strings, buffers and structs are printed as addresses, because -C traces without BPF; \
             in place of it, -a --filter 'cpu == 0 || cpu == 2' traces with BPF"
        );
        assert_eq!(
            said("ls", Some(&Way::VfsGetname), 0).unwrap(),
            "buffers and structs are printed as addresses (path names are not), because BPF programs may not be loaded; \
             run rtrace as root, or with the capabilities CAP_BPF and CAP_PERFMON"
        );
        assert_eq!(said("-s ls", None, 0), None, "a summary has no arguments");
    }
}
