//! Runs a function on each CPU.

use crate::sys::priority::RealtimePriority;
use rustix::thread::{CpuSet, Pid, gettid, sched_getcpu, sched_setaffinity};
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long to wait for a CPU. A thread of a higher real-time priority may occupy it forever.
const CPU_WAIT: Duration = Duration::from_millis(100);

/// The progress of the visiting thread.
enum Progress {
    Leaving { thread: Pid, for_cpu: u32 },
    Arrived,
}

/// Calls `act` for each of these CPUs, from a thread that runs on that CPU. So none of the kernel's operations that run
/// on that CPU without preemption is in progress during the call.
///
/// Returns the CPUs on which the thread could not run (its cpuset excludes them, or they are fully occupied). For
/// these, `act` was called on another CPU.
///
/// # Errors
/// The first error of `act`, which is not called again after it, or the error of creating the thread.
pub fn on_each(cpus: &[u32], act: impl FnMut(u32) -> io::Result<()> + Send) -> io::Result<Vec<u32>> {
    let (progress, received) = channel();
    thread::scope(|scope| {
        let visit = move || visit(cpus, act, &progress);
        let visitor = thread::Builder::new().name("rtrace-visitor".to_owned()).spawn_scoped(scope, visit)?;
        while let Ok(event) = received.recv() {
            if let Progress::Leaving { thread, for_cpu } = event
                && let Err(RecvTimeoutError::Timeout) = received.recv_timeout(CPU_WAIT)
            {
                let _ = sched_setaffinity(Some(thread), &all_but(for_cpu));
            }
        }
        visitor.join().unwrap_or_else(|_| Err(io::Error::other("the thread that visits the CPUs panicked")))
    })
}

fn visit(cpus: &[u32], mut act: impl FnMut(u32) -> io::Result<()>, progress: &Sender<Progress>) -> io::Result<Vec<u32>> {
    let _priority = RealtimePriority::acquire();
    let mut missed = Vec::new();
    for &cpu in cpus {
        let _ = progress.send(Progress::Leaving { thread: gettid(), for_cpu: cpu });
        let _ = sched_setaffinity(None, &only(cpu));
        let _ = progress.send(Progress::Arrived);
        if sched_getcpu() != cpu as usize {
            missed.push(cpu);
        }
        act(cpu)?;
    }
    Ok(missed)
}

fn only(cpu: u32) -> CpuSet {
    let mut set = CpuSet::new();
    if (cpu as usize) < CpuSet::MAX_CPU {
        set.set(cpu as usize);
    }
    set
}

fn all_but(cpu: u32) -> CpuSet {
    let mut set = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|other| *other != cpu as usize).for_each(|other| set.set(other));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_is_visited_and_an_absent_one_is_returned() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> = (0..CpuSet::MAX_CPU as u32).filter(|cpu| allowed.is_set(*cpu as usize)).collect();
        let absent = CpuSet::MAX_CPU as u32 - 1;
        assert!(!allowed.is_set(absent as usize));
        let requested: Vec<u32> = cpus.iter().copied().chain([absent]).collect();
        let mut seen = Vec::new();
        let missed = on_each(&requested, |cpu| {
            seen.push((cpu, sched_getcpu() as u32));
            Ok(())
        });
        assert_eq!(missed.unwrap(), [absent]);
        assert_eq!(seen.iter().map(|(requested, _)| *requested).collect::<Vec<_>>(), requested);
        assert!(seen[..cpus.len()].iter().all(|(requested, at)| requested == at), "{seen:?}");
    }

    #[test]
    fn no_cpu_is_visited_after_an_error() {
        let mut calls = 0;
        let result = on_each(&[0, 0, 0], |_| {
            calls += 1;
            Err(io::Error::other("no"))
        });
        assert_eq!((result.unwrap_err().to_string(), calls), ("no".to_owned(), 1));
    }
}
