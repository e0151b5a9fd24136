//! The kernel's `kprobe` and `uprobe` devices, of which perf_event_open(2) makes probes on the spot (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).

use crate::sys::perf::Probe;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// The configuration that rtrace knows how to write: a return is asked for by the lowest bit, the place of a reference counter stands in the upper half.
const RETURN_BIT: &str = "config:0";
const COUNTER_BITS: &str = "config:32-63";

/// One of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeDevice {
    number: u32,
    dir: PathBuf,
}

impl ProbeDevice {
    /// Makes probes of the kernel's code; `None`: this kernel was built without them (CONFIG_KPROBE_EVENTS).
    pub fn of_the_kernel() -> Option<ProbeDevice> {
        ProbeDevice::find(Path::new("/sys/bus/event_source/devices/kprobe"))
    }

    /// Makes probes of programs; `None`: this kernel was built without them (CONFIG_UPROBE_EVENTS).
    pub fn of_programs() -> Option<ProbeDevice> {
        ProbeDevice::find(Path::new("/sys/bus/event_source/devices/uprobe"))
    }

    fn find(dir: &Path) -> Option<ProbeDevice> {
        let number = fs::read_to_string(dir.join("type")).ok()?.trim().parse().ok()?;
        Some(ProbeDevice { number, dir: dir.to_owned() })
    }

    /// A probe of a function of the kernel, or a file. `counter`: where in the file the program looks whether somebody listens.
    ///
    /// `None`: the device cannot say it, or not in words that rtrace knows.
    pub fn probe(&self, of: CString, offset: u64, returns: bool, counter: Option<u64>) -> Option<Probe> {
        let means = |name: &str, bits: &str| fs::read_to_string(self.dir.join("format").join(name)).is_ok_and(|is| is.trim() == bits);
        let counter = counter.map_or(Some(0), |at| u32::try_from(at).ok().filter(|_| means("ref_ctr_offset", COUNTER_BITS)))?;
        let is_said = !returns || means("retprobe", RETURN_BIT);
        is_said.then_some(Probe { device: self.number, of, offset, returns, counter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_device_can_say() {
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
