//! Compares the frames of real programs, which perf records, with those of another unwinder, framehop. Most stacks must
//! be unwound to the root. The test needs root and perf, and is skipped with a message without them.

#![cfg(target_arch = "x86_64")]

#[path = "../benches/unwind/compare.rs"]
mod compare;
#[path = "../benches/unwind/oracle.rs"]
mod oracle;
#[path = "../benches/unwind/recording.rs"]
mod recording;

use std::io::Write as _;

use compare::Comparison;

#[test]
fn frames_agree_with_those_of_framehop() {
    let mut images = recording::Images::default();
    let commands = [
        "ls -lR /etc",
        "bash -c 'for i in 1 2 3 4 5; do x=$(echo $i); done'",
        "perl -e 'sub down { $_[0] ? down($_[0] - 1) : -s \"/\" } down(9) for 1..99'",
    ];
    for command in commands {
        let mut samples = match recording::record(command, 16384, &mut images) {
            Ok(samples) => samples,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED stacks of {command}: {error:#}; nothing was tested");
                continue;
            }
        };
        let (all, comparison) = (samples.len() as u64, compare::compare(&mut samples));
        let table = format!("{}\n{}\n{}", Comparison::HEADING, comparison.row("here"), comparison.differences.join("\n"));
        assert_eq!(comparison.different, 0, "{command}\n{table}");
        assert!(
            comparison.same > 0 && comparison.to_the_root + comparison.truncated > (all - comparison.unmapped) * 9 / 10,
            "{command}\n{table}"
        );
    }
}
