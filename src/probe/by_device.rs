//! Probes without arguments that the kernel's `kprobe` and `uprobe` PMUs create when their perf events are opened.
//! Nothing of them is in tracefs, and the kernel removes them when the events are closed, however the run ends.
//!
//! These PMUs accept no fetch arguments, their events have no format file, and an error is only an errno. So every
//! probe with fetch arguments is created in tracefs. Such an event cannot be inherited either ([`perf::Probe`]), which
//! the caller has to check.

use super::grammar::{FilePlace, KernelPlace, Probe, ProbePoint, When};
use crate::kernel::format::Format;
use crate::kernel::probe_device::ProbeDevice;
use crate::sys::perf;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// A probe that a PMU creates, and the format of its records.
#[derive(Clone, Debug)]
pub struct ByDevice {
    /// The attributes with which perf_event_open(2) creates the probe.
    pub probe: Arc<perf::Probe>,
    /// The format of the records, which no file of tracefs has.
    pub format: Format,
    /// The same probe in the kernel's grammar, for tracefs.
    pub line: Probe,
}

/// Converts a probe that is in the kernel's own grammar; `name` is the event's name.
///
/// Returns `None` if this kernel has no such PMU, or if the probe has a part that the PMU does not support.
pub fn of(line: &Probe, name: &str) -> Option<ByDevice> {
    let probe = device_probe(line)?;
    let format = format(name, probe.returns)?;
    Some(ByDevice { probe: Arc::new(probe), format, line: line.clone() })
}

fn device_probe(probe: &Probe) -> Option<perf::Probe> {
    if !probe.args.is_empty() {
        return None;
    }
    match &probe.place {
        ProbePoint::Kernel { at: KernelPlace::Symbol { module: None, symbol, offset }, when } => {
            let of = CString::new(symbol.as_str()).ok()?;
            ProbeDevice::of_the_kernel()?.probe(of, u64::try_from(*offset).ok()?, returns(*when)?, None)
        }
        ProbePoint::File { path, at: FilePlace::Offset(offset), when, reference_counter } => {
            let of = CString::new(path.as_os_str().as_bytes()).ok()?;
            ProbeDevice::of_programs()?.probe(of, *offset, returns(*when)?, *reference_counter)
        }
        _ => None,
    }
}

/// Returns whether the probe is a return probe; `None` if it has a `maxactive` number, which cannot be passed to the
/// PMU.
fn returns(when: When) -> Option<bool> {
    match when {
        When::Entry => Some(false),
        When::Return { maxactive: None } => Some(true),
        When::Return { maxactive: Some(_) } => None,
    }
}

/// Returns the format that tracefs would show for a probe without arguments. The kernel writes the same records
/// (uprobe_perf_func() in kernel/trace/trace_uprobe.c, kretprobe_perf_func() in trace_kprobe.c), except that their
/// `common_type` is 0.
fn format(name: &str, returns: bool) -> Option<Format> {
    let word = |name: &str, offset: u32| format!("\tfield:unsigned long {name};\toffset:{offset};\tsize:8;\tsigned:0;\n");
    let (fields, print) = match returns {
        false => (word("__probe_ip", 8), r#""(%lx)", REC->__probe_ip"#),
        true => (word("__probe_func", 8) + &word("__probe_ret_ip", 16), r#""(%lx <- %lx)", REC->__probe_func, REC->__probe_ret_ip"#),
    };
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                  \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                  \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                  \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
    Format::parse(&format!("name: {name}\nID: 0\nformat:\n{common}\n{fields}\nprint fmt: {print}\n")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::grammar::{Line, parse};

    #[test]
    fn probes_that_the_pmu_does_not_support_are_refused() {
        let by_device = |line: &str| match parse(line).unwrap() {
            Line::Make(probe) => device_probe(&probe),
            Line::Remove(_) => None,
        };
        for line in [
            "p /bin/a:0x10 %di",
            "p /bin/a:main",
            "p vfs_read $arg1",
            "r8 vfs_read",
            "p ext4:ext4_sync_fs",
            "p vfs_read-4",
            "f vfs_read",
            "p 0xffffffff81000000",
        ] {
            assert_eq!(by_device(line), None, "{line}");
        }
        let Some(device) = ProbeDevice::of_programs() else { return eprintln!("skipped: this kernel has no uprobes") };
        let expected = device.probe(c"/bin/a".to_owned(), 0x10, true, None);
        assert!(expected.is_some());
        assert_eq!(by_device("r /bin/a:0x10"), expected);
        assert_eq!(by_device("p /bin/a:0x10(0x20)"), device.probe(c"/bin/a".to_owned(), 0x10, false, Some(0x20)));
    }

    #[test]
    fn records_begin_with_the_probed_address() {
        let (entry, back) = (format("a", false).unwrap(), format("a", true).unwrap());
        let fields = |format: &Format| format.own_fields().map(|field| (field.name.clone(), field.offset)).collect::<Vec<_>>();
        assert_eq!(fields(&entry), [("__probe_ip".to_owned(), 8)]);
        assert_eq!(fields(&back), [("__probe_func".to_owned(), 8), ("__probe_ret_ip".to_owned(), 16)]);
    }
}
