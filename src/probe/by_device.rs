//! Probes without arguments, made by the kernel's probe devices when their events are opened: nothing of them is in tracefs, and the kernel takes them away when they are closed, however the run ends.
//!
//! A device takes no fetch arguments, its events have no format file, and it says of a mistake only a number. So all that fetches is made in tracefs. Nor may such an event be inherited
//! ([`perf::Probe`]), which whoever asks must know.

use super::grammar::{FilePlace, KernelPlace, Place, Probe, When};
use crate::kernel::format::Format;
use crate::kernel::probe_device::ProbeDevice;
use crate::sys::perf;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// A probe as the device makes it, and how its records are read.
#[derive(Clone, Debug)]
pub struct ByDevice {
    pub probe: Arc<perf::Probe>,
    pub format: Format,
    /// What makes the same event in tracefs.
    pub line: Probe,
}

/// By the device, of a probe in the kernel's words; `name`: of the event.
///
/// `None`: this kernel has no such device, or the probe has more than it can be told.
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
        Place::Kernel { at: KernelPlace::Symbol { module: None, symbol, offset }, when } => {
            let of = CString::new(symbol.as_str()).ok()?;
            ProbeDevice::of_the_kernel()?.probe(of, u64::try_from(*offset).ok()?, returns(*when)?, None)
        }
        Place::File { path, at: FilePlace::Offset(offset), when, reference_counter } => {
            let of = CString::new(path.as_os_str().as_bytes()).ok()?;
            ProbeDevice::of_programs()?.probe(of, *offset, returns(*when)?, *reference_counter)
        }
        _ => None,
    }
}

/// Whether it is where a function returns; `None`: with room for a number of calls, which the device cannot be told.
fn returns(when: When) -> Option<bool> {
    match when {
        When::Entry => Some(false),
        When::Return { maxactive: None } => Some(true),
        When::Return { maxactive: Some(_) } => None,
    }
}

/// As tracefs has it of a probe without arguments: the kernel writes the same records (uprobe_perf_func() in kernel/trace/trace_uprobe.c, kretprobe_perf_func() in trace_kprobe.c), but that their
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
    fn what_the_device_cannot_be_told_is_not_by_it() {
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
    fn records_begin_with_the_place() {
        let (entry, back) = (format("a", false).unwrap(), format("a", true).unwrap());
        let fields = |format: &Format| format.own_fields().map(|field| (field.name.clone(), field.offset)).collect::<Vec<_>>();
        assert_eq!(fields(&entry), [("__probe_ip".to_owned(), 8)]);
        assert_eq!(fields(&back), [("__probe_func".to_owned(), 8), ("__probe_ret_ip".to_owned(), 16)]);
    }
}
