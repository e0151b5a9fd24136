//! Unwinding in a library with a hundred thousand functions: the time for the first unwinding in a function, and for
//! later ones, when the CPU's cache no longer has its data.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use rtrace::symbols::ReadAt;
use rtrace::unwinding::{Architecture, Image, Registers, Sampled, Unwinder};

use crate::compare;
use crate::oracle::Oracle;
use crate::recording::{Sample, Space};

const ADDRESSES: usize = 100_000;
/// The address of a stack of zeros.
const STACK: u64 = 0x7fff_0000_0000;
const STACK_BYTES: usize = 4096;

pub fn measure() -> anyhow::Result<()> {
    let Some(path) = largest()? else {
        println!("libLLVM is not installed: no large library to measure");
        return Ok(());
    };
    let file = Opened(File::open(&path)?);
    let start = Instant::now();
    let image = Arc::new(Image::read(Box::new(file))?);
    println!("{}: read in {:.1} ms", path.display(), start.elapsed().as_secs_f64() * 1e3);
    let (start, bytes, offset) = code(&path)?;
    let mut space = Space { mapped: vec![(start, start + bytes, offset, path)], ..Space::default() };
    space.ours.map_image(start..start + bytes, image, offset);
    let mut sample = Sample {
        registers: Registers::new(Architecture::X86_64),
        sampled: Sampled::At,
        stack: vec![0; STACK_BYTES],
        space: Rc::new(space),
    };
    let addresses = spread(start, bytes);
    let (mut unwinder, mut oracle) = (Unwinder::default(), Oracle::default());
    let (mut frames, mut others) = (Vec::new(), Vec::new());
    oracle.unwind(&sample, 1, &mut others);
    for pass in ["first time", "second time"] {
        let ours = each(&addresses, &mut sample, |sample| {
            frames.clear();
            compare::unwind(&mut unwinder, sample, &mut frames);
        });
        let theirs = each(&addresses, &mut sample, |sample| {
            others.clear();
            oracle.unwind(sample, 2, &mut others);
        });
        println!("{pass}: rtrace {ours:.0} ns, framehop {theirs:.0} ns per address, for {ADDRESSES} addresses in all of its code");
    }
    Ok(())
}

/// Returns the nanoseconds for one step from an address. The return address is zero or not on the stack.
fn each(addresses: &[u64], sample: &mut Sample, mut step: impl FnMut(&Sample)) -> f64 {
    let start = Instant::now();
    for address in addresses {
        for (number, value) in [(16, *address), (7, STACK), (6, STACK + STACK_BYTES as u64 / 2)] {
            sample.registers.set(number, value);
        }
        step(sample);
    }
    start.elapsed().as_nanos() as f64 / addresses.len() as f64
}

/// A file that is read as rtrace reads it: only the parts that are needed.
struct Opened(File);

impl ReadAt for Opened {
    fn size(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }
}

fn largest() -> anyhow::Result<Option<PathBuf>> {
    let mut libraries = Vec::new();
    for entry in std::fs::read_dir("/usr/lib/x86_64-linux-gnu").into_iter().flatten() {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("libLLVM") {
            libraries.push((std::fs::metadata(entry.path())?.len(), entry.path()));
        }
    }
    Ok(libraries.into_iter().max().map(|(_, path)| path))
}

/// Returns the mapping for the library's code: avma, bytes, and offset in the file.
fn code(path: &Path) -> anyhow::Result<(u64, u64, u64)> {
    let bytes = std::fs::read(path)?;
    let elf = goblin::elf::Elf::parse(&bytes)?;
    let segment = elf.program_headers.iter().find(|segment| segment.p_type == 1 && segment.p_flags & 1 != 0).context("it has no code")?;
    Ok((0x7f00_0000_0000 + segment.p_vaddr, segment.p_filesz, segment.p_offset))
}

/// Returns addresses from all of the code, in random order.
fn spread(start: u64, size: u64) -> Vec<u64> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        start + (state >> 16) % size
    };
    (0..ADDRESSES).map(next).collect()
}
