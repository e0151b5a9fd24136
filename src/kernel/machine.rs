//! The machine: kernel release, CPUs, clocks, memory, and native ABI.

use crate::event::Abi;
use anyhow::{Context, anyhow};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// The machine's native ABI, which is the one that rtrace was built for.
pub const NATIVE_ABI: Abi = if cfg!(target_arch = "aarch64") { Abi::Aarch64 } else { Abi::X86_64 };

/// The greatest number of CPUs in a list. The kernel's limit is 8192.
const CPUS_MAX: usize = 1 << 16;

/// Reads the kernel release (`uname -r`).
///
/// # Errors
/// Fails if /proc is not mounted.
pub fn release() -> anyhow::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").context("failed to read /proc/sys/kernel/osrelease: is /proc mounted?")?;
    Ok(text.trim().to_owned())
}

/// Returns the major and minor number of a release (`6.18.44-x`).
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Reads the CPUs that are online, in ascending order.
///
/// # Errors
/// Fails if the file cannot be read or is not a list of CPUs.
pub fn online_cpus() -> anyhow::Result<Vec<u32>> {
    let path = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(path).with_context(|| format!("failed to read {path}: is sysfs mounted?"))?;
    parse_cpu_list(&text).ok_or_else(|| anyhow!("{path} is not a list of CPUs: `{}`", text.trim().escape_debug()))
}

/// Returns the number of CPUs that the machine may ever have. All CPU numbers are lower.
#[cfg(feature = "bpf")]
pub fn possible_cpus() -> u32 {
    static COUNT: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        let list = fs::read_to_string("/sys/devices/system/cpu/possible").ok();
        list.as_deref().and_then(parse_cpu_list).and_then(|cpus| cpus.last().copied()).map_or(1, |last| last + 1)
    });
    *COUNT
}

/// Reads the machine's memory in bytes. Returns `None` if /proc is not mounted.
pub fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Reads the number of tasks, including kernel threads. Returns `None` if /proc is not mounted.
pub fn tasks() -> Option<usize> {
    // The format is: three load averages, runnable/all tasks, last pid (man 5 proc_loadavg).
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// Parses a list of CPUs in the kernel's format (`0-3,7`). The result is sorted and has each CPU once, or is `None` if
/// the text is malformed. The empty text is the empty list.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if first > last || (last - first) as usize >= CPUS_MAX - cpus.len() {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The differences of other clocks to CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffsets {
    /// CLOCK_REALTIME - CLOCK_MONOTONIC, for wall-clock time stamps.
    pub realtime: i64,
    /// CLOCK_BOOTTIME - CLOCK_MONOTONIC, the time spent suspended. The times of /proc/PID/stat are in CLOCK_BOOTTIME.
    pub boottime: i64,
}

/// Measures [`ClockOffsets`]. Each is the one of five measurements that took the least time.
pub fn clock_offsets() -> ClockOffsets {
    ClockOffsets { realtime: ahead_of_monotonic(ClockId::Realtime), boottime: ahead_of_monotonic(ClockId::Boottime) }
}

fn ahead_of_monotonic(clock: ClockId) -> i64 {
    let try_once = || {
        let (before, other, after) = (now(ClockId::Monotonic), now(clock), now(ClockId::Monotonic));
        (after - before, other - (before + (after - before) / 2))
    };
    (0..5).map(|_| try_once()).min_by_key(|(disturbance, _)| *disturbance).map_or(0, |(_, ahead)| ahead)
}

fn now(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_parsed() {
        assert_eq!(parse_cpu_list("0-1\n"), Some(vec![0, 1]));
        assert_eq!(parse_cpu_list("0-3,7,5-6"), Some(vec![0, 1, 2, 3, 5, 6, 7]));
        assert_eq!(parse_cpu_list("3,3"), Some(vec![3]));
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
        for bad in ["a", "3-1", "0-", ",", "-1", "0-4294967295", "0-65535,0-65535"] {
            assert_eq!(parse_cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn releases_have_a_major_and_minor_number() {
        assert_eq!(version("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(version("7.2"), Some((7, 2)));
        assert_eq!(version("next"), None);
    }

    #[test]
    fn properties_of_this_machine_are_read() {
        assert!(version(&release().unwrap()).is_some());
        assert!(!online_cpus().unwrap().is_empty());
        assert!(memory_bytes().unwrap() > 64 << 20);
        assert!(tasks().unwrap() > 1);
        let offsets = clock_offsets();
        let realtime = now(ClockId::Monotonic) + offsets.realtime;
        assert!((realtime - now(ClockId::Realtime)).abs() < 1_000_000_000);
        assert!(offsets.boottime > -1_000_000);
    }
}
