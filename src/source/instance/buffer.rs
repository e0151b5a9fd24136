//! One CPU's buffer of an instance: pages out of the kernel, copied once and not looked into.

use super::page;
use super::stats::Stats;
use crate::kernel::tracefs::TracePath;
use crate::sys::clock;
use rustix::fs::OFlags;
use std::io;
use std::os::fd::OwnedFd;

/// The open buffer.
#[derive(Debug)]
pub struct Buffer {
    pub cpu: u32,
    pages: OwnedFd,
    stats: TracePath,
}

impl Buffer {
    /// Opens a CPU's buffer of the instance in this directory.
    ///
    /// # Errors
    /// There is none, or it may not be read.
    pub fn open(instance: &TracePath, cpu: u32) -> io::Result<Buffer> {
        let directory = instance.join(format!("per_cpu/cpu{cpu}"));
        // A read that would have to wait for records comes back instead.
        let pages = directory.join("trace_pipe_raw").open(OFlags::RDONLY | OFlags::NONBLOCK)?.into();
        Ok(Buffer { cpu, pages, stats: directory.join("stats") })
    }

    /// Appends what the buffer holds now, page by page, each cut to what is used of it. A page that is still being written gives what is complete in it.
    ///
    /// # Errors
    /// A read failed; what came before it is in `into`.
    pub fn drain(&self, page_bytes: usize, into: &mut Vec<u8>) -> io::Result<()> {
        // Reading may itself be traced, and others write all the time: enough was read when a page begins after this moment.
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

    /// The kernel's own counts.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn stats(&self) -> io::Result<Stats> {
        let text = self.stats.read_to_string()?;
        Stats::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the counts of a buffer make no sense"))
    }
}
