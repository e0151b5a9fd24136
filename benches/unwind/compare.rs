//! Compares the frames of the two unwinders.

use rtrace::events::{Frame, StackEnd};
use rtrace::unwinding::{Unwinder, Unwound};

use crate::oracle::Oracle;
use crate::recording::Sample;

pub const FRAMES_MAX: usize = 127;

/// Numbers of samples, by how the frames of the two unwinders differ.
#[derive(Default)]
pub struct Comparison {
    pub same: u64,
    /// framehop ends with an error before the root, or does not continue in an interrupted function.
    pub longer_here: u64,
    /// At code that no unwind table covers, framehop continues along what may be frame pointers.
    pub longer_there: u64,
    /// There must be none of these.
    pub different: u64,
    /// Of all samples, those whose stack ends at the root.
    pub to_the_root: u64,
    pub truncated: u64,
    /// perf lost the record of the mapping. These are not compared.
    pub unmapped: u64,
    /// The first few of the different stacks.
    pub differences: Vec<String>,
}

impl Comparison {
    pub const HEADING: &str = "program       same  longer here  longer there  different | to the root  truncated  code unknown";

    pub fn row(&self, name: &str) -> String {
        format!(
            "{name:8}{:>10}{:>13}{:>14}{:>11} |{:>12}{:>11}{:>14}",
            self.same, self.longer_here, self.longer_there, self.different, self.to_the_root, self.truncated, self.unmapped
        )
    }
}

pub fn unwind(unwinder: &mut Unwinder, sample: &Sample, frames: &mut Vec<Frame>) -> Unwound {
    unwinder.unwind(&sample.registers, sample.sampled, &sample.space.ours, |address| sample.word(address), FRAMES_MAX, frames)
}

/// Compares the frames of all samples. Removes samples whose code is unknown, and cuts each stack to the part that
/// unwinding read.
pub fn compare(samples: &mut Vec<Sample>) -> Comparison {
    let (mut unwinder, mut oracle) = (Unwinder::default(), Oracle::default());
    let mut comparison = Comparison::default();
    let (mut frames, mut theirs) = (Vec::new(), Vec::new());
    samples.retain_mut(|sample| {
        frames.clear();
        theirs.clear();
        let unwound = unwind(&mut unwinder, sample, &mut frames);
        let error = oracle.unwind(sample, FRAMES_MAX, &mut theirs);
        if matches!(unwound.end, StackEnd::Unmapped { .. }) {
            comparison.unmapped += 1;
            return false;
        }
        let ours: Vec<u64> = frames.iter().map(|frame| frame.avma).collect();
        comparison.to_the_root += u64::from(unwound.end == StackEnd::Root);
        comparison.truncated += u64::from(unwound.end == StackEnd::Truncated);
        let untabled = matches!(unwound.end, StackEnd::NoRule { .. }) || frames.last().is_some_and(|last| sample.space.is_entry(last));
        if ours == theirs {
            comparison.same += 1;
        } else if ours.starts_with(&theirs) {
            comparison.longer_here += 1;
        } else if theirs.starts_with(&ours) && untabled {
            comparison.longer_there += 1;
        } else {
            comparison.different += 1;
            if comparison.differences.len() < 3 {
                let name = |avmas: &[u64]| avmas.iter().map(|avma| sample.space.name(*avma)).collect::<Vec<_>>().join(" ");
                comparison.differences.push(format!("ours: {} ({unwound:?})\n  theirs: {} ({error:?})", name(&ours), name(&theirs)));
            }
        }
        sample.stack.truncate(usize::try_from(unwound.stack_bytes).unwrap_or(usize::MAX).next_multiple_of(64));
        sample.stack.shrink_to_fit();
        true
    });
    comparison
}
