//! Acting on each CPU from the CPU itself.

use crate::sys::turn::First;
use rustix::thread::{CpuSet, Pid, gettid, sched_getcpu, sched_setaffinity};
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long a CPU is waited for. A thread of a higher real-time priority may keep it for good.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the visiting thread does next, or has done.
enum Step {
    Leaves { thread: Pid, for_cpu: u32 },
    Arrived,
}

/// Calls `act` with each of these CPUs in turn, from a thread that runs on that CPU: nothing that the kernel does there without giving up the CPU is under way then.
///
/// Returns the CPUs that this thread could not come to (its cpuset has none of them, or nobody else gets a turn there); for these, `act` was called from another CPU.
///
/// # Errors
/// The first one of `act`, which is not called any more after it, or that there can be no further thread.
pub fn on_each(cpus: &[u32], act: impl FnMut(u32) -> io::Result<()> + Send) -> io::Result<Vec<u32>> {
    let (steps, stepped) = channel();
    thread::scope(|scope| {
        let visit = move || visit(cpus, act, &steps);
        let visitor = thread::Builder::new().name("rtrace-visitor".to_owned()).spawn_scoped(scope, visit)?;
        while let Ok(step) = stepped.recv() {
            if let Step::Leaves { thread, for_cpu } = step
                && let Err(RecvTimeoutError::Timeout) = stepped.recv_timeout(PATIENCE)
            {
                let _ = sched_setaffinity(Some(thread), &all_but(for_cpu));
            }
        }
        visitor.join().unwrap_or_else(|_| Err(io::Error::other("the thread that visits the CPUs panicked")))
    })
}

fn visit(cpus: &[u32], mut act: impl FnMut(u32) -> io::Result<()>, steps: &Sender<Step>) -> io::Result<Vec<u32>> {
    let _first = First::take();
    let mut missed = Vec::new();
    for &cpu in cpus {
        let _ = steps.send(Step::Leaves { thread: gettid(), for_cpu: cpu });
        let _ = sched_setaffinity(None, &only(cpu));
        let _ = steps.send(Step::Arrived);
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
    fn each_cpu_is_visited_and_one_that_is_not_there_is_named() {
        let here = rustix::thread::sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> = (0..CpuSet::MAX_CPU as u32).filter(|cpu| here.is_set(*cpu as usize)).collect();
        let nowhere = CpuSet::MAX_CPU as u32 - 1;
        assert!(!here.is_set(nowhere as usize));
        let asked: Vec<u32> = cpus.iter().copied().chain([nowhere]).collect();
        let mut seen = Vec::new();
        let missed = on_each(&asked, |cpu| {
            seen.push((cpu, sched_getcpu() as u32));
            Ok(())
        });
        assert_eq!(missed.unwrap(), [nowhere]);
        assert_eq!(seen.iter().map(|(asked, _)| *asked).collect::<Vec<_>>(), asked);
        assert!(seen[..cpus.len()].iter().all(|(asked, at)| asked == at), "{seen:?}");
    }

    #[test]
    fn after_an_error_no_further_cpu_is_visited() {
        let mut calls = 0;
        let result = on_each(&[0, 0, 0], |_| {
            calls += 1;
            Err(io::Error::other("no"))
        });
        assert_eq!((result.unwrap_err().to_string(), calls), ("no".to_owned(), 1));
    }
}
