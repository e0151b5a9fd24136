//! Unwinds stacks of real programs, which it records first: compares the frames with those that framehop finds, and
//! measures the time of both.
//!
//! See benches/README.md.

mod compare;
mod large;
mod oracle;
mod recording;

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, ensure};
use rtrace::unwinding::Unwinder;

use compare::{Comparison, FRAMES_MAX};
use oracle::Oracle;
use recording::{Images, Sample};

/// The name, the bytes of stack per sample, and the command, which is repeated until there are enough samples.
const PROGRAMS: [(&str, u32, &str); 8] = [
    ("ls", 8192, "ls -lR /usr/lib/python3* /usr/share"),
    ("find", 8192, "find /usr -newer /etc/passwd -size +1"),
    ("bash", 16384, "bash -c 'for i in $(seq 2000); do : < /etc/passwd; x=$(echo $i); done'"),
    (
        "python3",
        32768,
        "python3 -c 'import json, email, http.client, asyncio, os\nfor i in range(3000): os.listdir(\"/usr\"); open(\"/etc/passwd\").read(); json.dumps([i])'",
    ),
    (
        "git",
        16384,
        "cd $(mktemp -d) && git init -q . && for i in 1 2 3 4 5 6 7 8; do cp -r /usr/share/perl . ; git add -A; git -c user.name=a -c user.email=a@b commit -qm $i; git log -p | wc -l; rm -rf perl; done; rm -rf $PWD",
    ),
    (
        "gcc",
        32768,
        "cd $(mktemp -d) && for i in 1 2 3 4 5 6; do echo '#include <algorithm>\n#include <iostream>\n#include <regex>\nint main() { std::regex r(\"a\"); }' > a.cc; g++ -O2 a.cc -o a; done; rm -rf $PWD",
    ),
    (
        "rust",
        16384,
        "cargo metadata --offline --format-version 1; for i in 1 2 3 4 5 6 7 8 9; do cargo --list; rustc --print cfg; rustc --version --verbose; done",
    ),
    ("perl", 16384, "perl -e 'use File::Find; for (1..5) { find(sub { -s $_ }, \"/usr/share\") }'"),
];

fn main() -> anyhow::Result<()> {
    ensure!(cfg!(target_arch = "x86_64"), "this benchmark runs on x86-64 only");
    let mut wanted = 100_000_usize;
    let mut names = Vec::new();
    for argument in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        match argument.parse() {
            Ok(number) => wanted = number,
            Err(_) => names.push(argument),
        }
    }
    let programs: Vec<_> = PROGRAMS.iter().filter(|program| names.is_empty() || names.iter().any(|name| name == program.0)).collect();
    ensure!(!programs.is_empty(), "there is no such program; choose from {:?}", PROGRAMS.map(|program| program.0));
    let mut images = Images::default();
    let mut times = Times::default();
    println!("{}", Comparison::HEADING);
    let mut total = Comparison::default();
    for (name, stack_bytes, command) in &programs {
        let mut samples =
            collect(command, *stack_bytes, wanted.div_ceil(programs.len()), &mut images).with_context(|| format!("recording {name}"))?;
        let comparison = compare::compare(&mut samples);
        println!("{}", comparison.row(name));
        for difference in &comparison.differences {
            println!("  {difference}");
        }
        add(&mut total, &comparison);
        times.measure(&samples);
    }
    println!("{}\n", total.row("all"));
    times.print();
    large::measure()
}

fn add(total: &mut Comparison, one: &Comparison) {
    total.same += one.same;
    total.longer_here += one.longer_here;
    total.longer_there += one.longer_there;
    total.different += one.different;
    total.to_the_root += one.to_the_root;
    total.truncated += one.truncated;
    total.unmapped += one.unmapped;
}

fn collect(command: &str, stack_bytes: u32, wanted: usize, images: &mut Images) -> anyhow::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    while samples.len() < wanted {
        let more = recording::record(command, stack_bytes, images)?;
        ensure!(!more.is_empty(), "perf recorded no sample");
        samples.extend(more);
    }
    samples.truncate(wanted);
    Ok(samples)
}

/// Nanoseconds per frame, one value for each sample.
#[derive(Default)]
struct Times {
    ours: Vec<f64>,
    theirs: Vec<f64>,
    frames: usize,
}

impl Times {
    /// Unwinds each stack twice with both unwinders. The second time counts, because the words of the stack are in the
    /// cache then, as they are when they have just been read from a ring buffer.
    fn measure(&mut self, samples: &[Sample]) {
        let (mut unwinder, mut oracle) = (Unwinder::default(), Oracle::default());
        let (mut frames, mut addresses) = (Vec::new(), Vec::new());
        for pass in 0..2 {
            for sample in samples {
                let ours = timed(|| {
                    frames.clear();
                    black_box(compare::unwind(&mut unwinder, sample, &mut frames));
                });
                let theirs = timed(|| {
                    addresses.clear();
                    black_box(oracle.unwind(sample, FRAMES_MAX, &mut addresses));
                });
                if pass == 1 {
                    self.ours.push(ours / frames.len() as f64);
                    self.theirs.push(theirs / addresses.len() as f64);
                    self.frames += frames.len();
                }
            }
        }
    }

    fn print(&mut self) {
        println!("{} samples, {:.1} frames per sample", self.ours.len(), self.frames as f64 / self.ours.len() as f64);
        for (who, times) in [("rtrace", &mut self.ours), ("framehop", &mut self.theirs)] {
            times.sort_by(f64::total_cmp);
            let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
            println!("{who:>9}: ns/frame median {:.1}, 10 % {:.1}, 90 % {:.1}, 99 % {:.1}", at(0.5), at(0.1), at(0.9), at(0.99));
        }
    }
}

fn timed(mut work: impl FnMut()) -> f64 {
    work();
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}
