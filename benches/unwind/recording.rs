//! Records stacks of real programs: `perf record --call-graph dwarf` dumps them at every return from a system call.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, bail};
use linux_perf_data::linux_perf_event_reader::{EventRecord, SampleRecord};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use rtrace::events::Frame;
use rtrace::unwinding::{AddressSpace, Architecture, Image, NONE, Registers, Sampled};

/// PROT_EXEC.
const EXECUTABLE: u32 = 4;

/// A dumped stack.
pub struct Sample {
    pub registers: Registers,
    pub sampled: Sampled,
    /// The words from the stack pointer on.
    pub stack: Vec<u8>,
    pub space: Rc<Space>,
}

/// The mapped code of a process at one time.
#[derive(Clone, Default)]
pub struct Space {
    pub ours: AddressSpace,
    /// The same mappings for another unwinder: start, end, offset in the file, and the file.
    pub mapped: Vec<(u64, u64, u64, PathBuf)>,
}

impl Sample {
    pub fn stack_pointer(&self) -> u64 {
        self.registers.stack_pointer().unwrap_or_default()
    }

    /// Returns the word at an address of the stack.
    #[inline]
    pub fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.wrapping_sub(self.stack_pointer())).ok()?;
        Some(u64::from_le_bytes(*self.stack.get(offset..)?.first_chunk()?))
    }
}

impl Space {
    /// Whether a frame is in the entry code of a program or of its loader.
    pub fn is_entry(&self, frame: &Frame) -> bool {
        self.ours
            .mappings()
            .iter()
            .filter_map(|mapping| mapping.image())
            .any(|image| Some(image.id()) == frame.image && image.is_entry(frame.svma))
    }

    /// Returns an address as file and offset.
    pub fn name(&self, avma: u64) -> String {
        let mapped = self.mapped.iter().find(|mapped| mapped.0 <= avma && avma < mapped.1);
        mapped.map_or_else(|| format!("{avma:#x}"), |(start, _, offset, path)| format!("{}+{:#x}", path.display(), avma - start + offset))
    }
}

/// Runs a shell command under perf, and returns all samples.
pub fn record(shell: &str, stack_bytes: u32, images: &mut Images) -> anyhow::Result<Vec<Sample>> {
    let file = std::env::temp_dir().join(format!("rtrace-unwind-{}.data", std::process::id()));
    let status = Command::new("perf")
        .args(["record", "-q", "-m", "4096", "-e", "raw_syscalls:sys_exit", "--call-graph"])
        .arg(format!("dwarf,{stack_bytes}"))
        .arg("-o")
        .arg(&file)
        .args(["--", "sh", "-c", shell])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run perf");
    let samples = status.and_then(|status| if status.success() { read(&file, images) } else { bail!("perf record: {status}") });
    let _ = std::fs::remove_file(&file);
    samples
}

fn read(file: &Path, images: &mut Images) -> anyhow::Result<Vec<Sample>> {
    let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(BufReader::new(File::open(file)?))?;
    let mut spaces: HashMap<i32, Rc<Space>> = HashMap::new();
    let mut samples = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        match record.parse()? {
            EventRecord::Mmap2(map) if map.protection & EXECUTABLE != 0 => {
                let space = Rc::make_mut(spaces.entry(map.pid).or_default());
                let path = PathBuf::from(String::from_utf8_lossy(&map.path.as_slice()).into_owned());
                let (start, end) = (map.address, map.address + map.length);
                match images.image(&path) {
                    Some(image) => space.ours.map_image(start..end, image, map.page_offset),
                    None => space.ours.map_code(start..end),
                }
                space.mapped.retain(|old| old.1 <= start || old.0 >= end);
                space.mapped.push((start, end, map.page_offset, path));
            }
            EventRecord::Fork(fork) if fork.pid != fork.ppid => {
                let parent = spaces.entry(fork.ppid).or_default().clone();
                spaces.insert(fork.pid, parent);
            }
            EventRecord::Comm(comm) if comm.is_execve => {
                spaces.insert(comm.pid, Rc::default());
            }
            EventRecord::Sample(sample) => {
                let space = spaces.entry(sample.pid.unwrap_or_default()).or_default().clone();
                samples.extend(of_record(&sample, space));
            }
            _ => {}
        }
    }
    Ok(samples)
}

/// Converts a sample; `None` if it has no user registers, as those of kernel threads.
fn of_record(record: &SampleRecord, space: Rc<Space>) -> Option<Sample> {
    let (perf, (stack, dumped)) = (record.user_regs.as_ref()?, record.user_stack?);
    let mut registers = Registers::new(Architecture::X86_64);
    for (bit, &number) in Architecture::X86_64.layout().of_perf.iter().enumerate() {
        if number != NONE {
            registers.set(number, perf.get(bit as u64)?);
        }
    }
    let mut stack = stack.as_slice().into_owned();
    stack.truncate(usize::try_from(dumped).ok()?);
    // The tracepoint's fields: eight bytes that all tracepoints have, the number of the system call, its return value.
    let number = record.raw.as_ref()?.as_slice().get(8..16).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or_default()))?;
    let sampled = if [15, 59, 322].contains(&number) { Sampled::At } else { Sampled::After };
    Some(Sample { registers, sampled, stack, space })
}

/// Images by path. Each file is read once, even if it is not an ELF file.
#[derive(Default)]
pub struct Images {
    known: HashMap<PathBuf, Option<Arc<Image>>>,
}

impl Images {
    pub fn image(&mut self, path: &Path) -> Option<Arc<Image>> {
        self.known.entry(path.to_owned()).or_insert_with(|| open(path).map(Arc::new)).clone()
    }
}

fn open(path: &Path) -> Option<Image> {
    let bytes = if path == Path::new("[vdso]") { vdso().ok()? } else { std::fs::read(path).ok()? };
    Image::read(Box::new(bytes)).ok()
}

/// Reads the vdso of this process, which is the same in all processes.
pub fn vdso() -> anyhow::Result<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).context("no vdso is mapped")?;
    let (start, rest) = line.split_once('-').context("a line of /proc/self/maps has no range")?;
    let end = rest.split(' ').next().unwrap_or_default();
    let (start, end) = (u64::from_str_radix(start, 16)?, u64::from_str_radix(end, 16)?);
    let mut memory = File::open("/proc/self/mem")?;
    memory.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; usize::try_from(end - start)?];
    memory.read_exact(&mut bytes)?;
    Ok(bytes)
}
