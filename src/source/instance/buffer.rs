//! One CPU's buffer of an instance. Its pages are copied once and not decoded here.

use super::page;
use super::stats::Stats;
use crate::kernel::tracefs::TracePath;
use crate::sys::clock;
use rustix::fs::OFlags;
use std::io;
use std::os::fd::OwnedFd;

/// The open buffer of one CPU.
#[derive(Debug)]
pub struct Buffer {
    /// The N of its directory `per_cpu/cpuN` in the instance.
    pub cpu: u32,
    pages: OwnedFd,
    stats: TracePath,
}

impl Buffer {
    /// Opens a CPU's buffer in the directory `instance`.
    ///
    /// # Errors
    /// The buffer does not exist, or reading it is not permitted.
    pub fn open(instance: &TracePath, cpu: u32) -> io::Result<Buffer> {
        let directory = instance.join(format!("per_cpu/cpu{cpu}"));
        // A read returns at once if there are no records.
        let pages = directory.join("trace_pipe_raw").open(OFlags::RDONLY | OFlags::NONBLOCK)?.into();
        Ok(Buffer { cpu, pages, stats: directory.join("stats") })
    }

    /// Appends the buffer's present content page by page, each page cut to its used part. Of a page that is still being
    /// written, the complete records are read.
    ///
    /// # Errors
    /// A read failed. The pages that were read before it are in `into`.
    pub fn drain(&self, page_bytes: usize, into: &mut Vec<u8>) -> io::Result<()> {
        // Reading may itself be traced, and other tasks keep writing. So the drain ends at a page that begins after
        // this moment.
        let until = clock::now();
        loop {
            let begin = into.len();
            into.reserve(page_bytes);
            match rustix::io::read(&self.pages, rustix::buffer::spare_capacity(into)) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            let used = page::used(&into[begin..]);
            let is_late = page::Page::at(into, begin).is_ok_and(|page| page.time >= until);
            into.truncate(begin + used);
            if is_late {
                return Ok(());
            }
        }
    }

    /// Reads the kernel's counts of this buffer.
    ///
    /// # Errors
    /// The file cannot be read, or lacks a count.
    pub fn stats(&self) -> io::Result<Stats> {
        let text = self.stats.read_to_string()?;
        Stats::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file `stats` of a trace buffer lacks a count"))
    }
}
