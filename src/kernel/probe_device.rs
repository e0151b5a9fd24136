//! The kernel's `kprobe` and `uprobe` PMUs, through which perf_event_open(2) creates probes that belong to the perf
//! event (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).

use crate::sys::perf::Probe;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// The format of `config` that rtrace supports: the lowest bit requests a return probe, the upper half is the offset of
/// a reference counter.
const RETURN_BIT: &str = "config:0";
const COUNTER_BITS: &str = "config:32-63";

/// The `kprobe` or the `uprobe` PMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeDevice {
    number: u32,
    dir: PathBuf,
}

impl ProbeDevice {
    /// Returns the PMU for probes in the kernel, or `None` if this kernel was built without CONFIG_KPROBE_EVENTS.
    pub fn of_the_kernel() -> Option<ProbeDevice> {
        ProbeDevice::find(Path::new("/sys/bus/event_source/devices/kprobe"))
    }

    /// Returns the PMU for probes in programs, or `None` if this kernel was built without CONFIG_UPROBE_EVENTS.
    pub fn of_programs() -> Option<ProbeDevice> {
        ProbeDevice::find(Path::new("/sys/bus/event_source/devices/uprobe"))
    }

    fn find(dir: &Path) -> Option<ProbeDevice> {
        let number = fs::read_to_string(dir.join("type")).ok()?.trim().parse().ok()?;
        Some(ProbeDevice { number, dir: dir.to_owned() })
    }

    /// Returns the settings of a probe on a function of the kernel or a file. `counter` is the offset in the file of
    /// the reference counter of a USDT probe, which tells the program whether it is traced.
    ///
    /// Returns `None` if the PMU does not support these settings, or has another format of `config`.
    pub fn probe(&self, of: CString, offset: u64, returns: bool, counter: Option<u64>) -> Option<Probe> {
        let has_format = |name: &str, bits: &str| fs::read_to_string(self.dir.join("format").join(name)).is_ok_and(|is| is.trim() == bits);
        let counter = counter.map_or(Some(0), |at| u32::try_from(at).ok().filter(|_| has_format("ref_ctr_offset", COUNTER_BITS)))?;
        let is_supported = !returns || has_format("retprobe", RETURN_BIT);
        is_supported.then_some(Probe { device: self.number, of, offset, returns, counter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_the_pmu_does_not_support_are_refused() {
        let dir = std::env::temp_dir().join(format!("rtrace-probe-device-{}", std::process::id()));
        fs::create_dir_all(dir.join("format")).unwrap();
        assert_eq!(ProbeDevice::find(&dir), None);
        fs::write(dir.join("type"), "8\n").unwrap();
        let device = ProbeDevice::find(&dir).unwrap();
        let probe = |returns, counter| device.probe(c"/bin/a".to_owned(), 16, returns, counter);
        let plain = Probe { device: 8, of: c"/bin/a".to_owned(), offset: 16, returns: false, counter: 0 };
        assert_eq!(probe(false, None), Some(plain.clone()));
        assert_eq!((probe(true, None), probe(false, Some(8))), (None, None));
        fs::write(dir.join("format/retprobe"), "config:0\n").unwrap();
        fs::write(dir.join("format/ref_ctr_offset"), "config:32-63\n").unwrap();
        assert_eq!(probe(true, Some(8)), Some(Probe { returns: true, counter: 8, ..plain }));
        assert_eq!(probe(false, Some(1 << 32)), None);
        fs::remove_dir_all(dir).unwrap();
    }
}
