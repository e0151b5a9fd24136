//! The counts in a buffer's `per_cpu/cpuN/stats`.

/// The counts of one CPU since the buffer was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records that were not read yet.
    pub waiting: u64,
    /// Records that were read.
    pub read: u64,
    /// Records that were overwritten or found no room.
    pub lost: u64,
}

impl Stats {
    /// Returns the number of records that the events issued.
    pub fn issued(&self) -> u64 {
        self.waiting + self.read + self.lost
    }

    /// Parses the file, which has one `name: number` per line (tracing_stats_read() in kernel/trace/trace.c). Returns
    /// `None` if one of the counts is missing.
    pub fn parse(text: &str) -> Option<Stats> {
        let count = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().parse::<u64>().ok()
        };
        let lost = ["overrun", "commit overrun", "dropped events"].into_iter().try_fold(0u64, |sum, name| sum.checked_add(count(name)?))?;
        Some(Stats { waiting: count("entries")?, read: count("read events")?, lost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "entries: 12\noverrun: 300\ncommit overrun: 4\nbytes: 788\noldest event ts: 45751.961236\nnow ts: 45762.013424\n\
                        dropped events: 5\nread events: 1000\n";

    #[test]
    fn issued_records_are_waiting_read_or_lost() {
        let stats = Stats::parse(FILE).unwrap();
        assert_eq!(stats, Stats { waiting: 12, read: 1000, lost: 309 });
        assert_eq!(stats.issued(), 1321);
    }

    #[test]
    fn a_file_that_lacks_a_count_is_rejected() {
        for line in ["entries: 12\n", "\noverrun: 300", "commit overrun: 4\n", "dropped events: 5\n", "read events: 1000\n"] {
            assert_eq!(Stats::parse(&FILE.replace(line, "")), None, "{line}");
        }
        assert_eq!(Stats::parse(&FILE.replace("1000", "many")), None);
    }
}
