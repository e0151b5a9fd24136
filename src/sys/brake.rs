//! Processes with a thread on each CPU, which use up CPU time when they are told to.
//!
//! A cgroup whose CPU time is limited still gets one millisecond a second, the least that the kernel accepts, and its
//! tasks notice the limit at the next tick of their CPU, up to 10 ms later. If the threads of these processes are in
//! the same limited cgroup with a much greater weight, the scheduler takes them instead: within microseconds the tasks
//! stop, and what time is left goes to the threads. While they are told to do nothing, they sleep.
//!
//! There are several processes, in a cgroup each. From Linux 6.6 on, the scheduler passes over what has run longer than
//! the average (EEVDF). A single brake that has run ahead of the tasks would therefore be passed over as soon as the
//! CPU is scheduled again, for whatever reason, and a task would run until the next tick. One of several brakes is
//! always behind the average.

use super::mapped::Mapping;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use rustix::thread::futex::{self, Flags};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// The processes, which are killed when this value is dropped, or when the process that created them ends.
#[derive(Debug)]
pub struct Brake {
    pids: Vec<i32>,
    pulled: SharedFlag,
}

/// A word that the processes share with the one that created them: 1 while their threads are to run, otherwise 0.
#[derive(Debug)]
struct SharedFlag(Mapping);

impl SharedFlag {
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the mapping begins with at least 4 zero bytes, aligned to a page, and lasts as long as this value.
        unsafe { AtomicU32::from_ptr(self.0.start.as_ptr().cast()) }
    }
}

impl Brake {
    /// Starts so many processes with a thread on each of these CPUs. The calling process must have no other thread.
    ///
    /// # Errors
    /// The errors of fork(2) and mmap(2).
    pub fn start(count: usize, cpus: &[u32]) -> io::Result<Brake> {
        let mut brake = Brake { pids: Vec::with_capacity(count), pulled: SharedFlag(Mapping::zeros(size_of::<AtomicU32>())?) };
        let parent = rustix::process::getpid();
        for _ in 0..count {
            // SAFETY: the caller has no other thread, so the child may call everything. It never returns.
            match unsafe { libc::fork() } {
                -1 => return Err(io::Error::last_os_error()),
                0 => {
                    run(cpus, brake.pulled.word(), parent);
                    // SAFETY: it ends the process without running anything of the parent's.
                    unsafe { libc::_exit(0) }
                }
                pid => brake.pids.push(pid),
            }
        }
        Ok(brake)
    }

    /// Returns the numbers of the processes.
    pub fn pids(&self) -> &[i32] {
        &self.pids
    }

    /// Lets the threads use up CPU time.
    pub fn pull(&self) {
        self.pulled.word().store(1, Ordering::Release);
        // Nobody waits if the threads run already.
        let _ = futex::wake(self.pulled.word(), Flags::empty(), i32::MAX as u32);
    }

    /// Lets the threads sleep.
    pub fn release(&self) {
        self.pulled.word().store(0, Ordering::Release);
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        self.release();
        for &pid in &self.pids {
            let mut status = 0;
            // SAFETY: the pid is that of this process's child, not yet waited for. waitpid writes to a live local.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                while libc::waitpid(pid, &mut status, 0) == -1 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
            }
        }
    }
}

/// Runs the threads of a process.
fn run(cpus: &[u32], pulled: &AtomicU32, parent: Pid) {
    // SAFETY: nothing in this process uses a descriptor. The parent's others must not stay open for as long as this
    // process lives.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    let dies_with_parent = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    // The parent may have ended before.
    if !dies_with_parent || rustix::process::getppid() != Some(parent) {
        return;
    }
    let _ = rustix::thread::set_name(c"rtrace-brake");
    std::thread::scope(|scope| {
        for cpu in cpus.iter().map(|&cpu| cpu as usize).filter(|&cpu| cpu < CpuSet::MAX_CPU) {
            // Without the thread, the limit takes effect at the CPU's next tick.
            let _ = std::thread::Builder::new().name("rtrace-brake".to_owned()).stack_size(64 << 10).spawn_scoped(scope, move || {
                let mut only = CpuSet::new();
                only.set(cpu);
                if sched_setaffinity(None, &only).is_ok() {
                    obey(pulled);
                }
            });
        }
    });
}

/// Runs while the word is 1, and sleeps while it is 0.
fn obey(pulled: &AtomicU32) -> ! {
    loop {
        while pulled.load(Ordering::Acquire) != 0 {
            std::hint::spin_loop();
        }
        let _ = futex::wait(pulled, Flags::empty(), 0, None);
    }
}
