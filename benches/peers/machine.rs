//! Describes the machine of the measurements.

/// Returns one line with the date, the CPUs and the kernel.
pub fn description() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, model)| model);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let date = jiff::Zoned::now().date();
    format!("{date}, {cpus} CPUs ({model}), Linux {}", kernel.trim())
}
