//! A program whose calls are known. Each subcommand does one thing and prints the calls that it issued, one fact a
//! line; the live tests compare rtrace's output with it.
//!
//! ```text
//! issued NAME COUNT              the program made COUNT calls of NAME that have a tag or are of a special kind
//! span TID NAME TAG BEFORE AFTER one call, and the CLOCK_MONOTONIC nanoseconds read just before and just after it
//! ```
//! The tagged call is `lseek(-1, TAG, SEEK_SET)`: it fails immediately, has no effect, and neither libc nor Rust's
//! runtime makes such a call. The module `told` has lines of another kind, which describe whole calls.
#![allow(unsafe_code, reason = "it issues system calls by number")]

mod arguments;
mod attach;
mod burst;
mod calls;
mod children;
mod churn;
mod cost;
mod edge_values;
mod execs;
mod fds;
mod held;
mod ioctls;
mod kernel_objects;
mod mark;
mod memory;
mod messages;
mod names;
mod netlink;
mod odd;
mod payload;
mod raw;
mod resident;
mod results;
mod seccomp;
mod signals;
mod slow;
mod sockopts;
mod spans;
mod structs;
mod tcp;
mod told;
mod uring;
mod waits;
mod zoo;

use std::process::ExitCode;

const WORDS: &str = "\
workload --tell SCENE...                   the same as without --tell; the calls of many scenes describe themselves on stdout
workload calls KIND THREADS COUNT [RATE]   COUNT calls on each of THREADS threads, RATE a second in all; KIND: getppid lseek read path
workload spans quick|sleep THREADS COUNT   the same, each with the time before and after
workload waits COUNT                       COUNT tagged calls on each of two threads, and calls on others that time out
workload slow MS                           read, epoll_wait, wait4 and futex that take so many milliseconds each
workload forks COUNT                       children in turn, each makes one tagged call
workload threads COUNT                     threads in turn, each makes one tagged call
workload burst THREADS COUNT               threads that all wait, then make COUNT tagged calls each and end, at once
workload outlive MS STATUS                 leaves a child that makes a tagged call MS milliseconds later
workload reap-own COUNT COMMAND...         runs it so often, waits for it alone, and says how many other dead tasks are left in /proc
workload attach [THREADS]                  waits for a line on stdin, then calls from old and new threads and children; so many more threads wait
workload exec leader|thread                starts itself anew, from the first thread or from another
workload churn threads|exec|exec-thread    threads that come and go, or a program that starts itself anew, until it is killed
workload signals SCENE                     is sent signals: fault thread queue timer alarm wait pipe many ignored interrupted killed skipped
workload held FILE                         the first process of a pid namespace that cannot end until FILE is there
workload cost KIND COUNT                    COUNT calls, and the CPU time of one; KIND: getppid sendmsg ioctl setsockopt bpf
workload results THREADS COUNT             getppid on each thread, and prints what the calls returned and how long they took
workload seccomp COUNT                     getppid, answered with EXDEV by a filter
workload fds SCENE COUNT DIR               reads 11 bytes of DIR/eleven and 22 of DIR/twenty-two through descriptors that change
workload memory SCENE COUNT DIR            paths and data where they are hard to read
workload names THREADS COUNT DIR           COUNT files that are not there on each of THREADS threads, by names of every kind
workload payload SCENE                     calls with data that is known, of each kind one
workload structs DIR                       asks for the status of a file and a device, and reads a directory
workload edge-values SCENE                 values at the edges of what the kernel reads
workload arguments SCENE                   arguments with parts: controls capabilities flags lengths options requests objects
workload kernel-objects FAMILY             calls about objects of the kernel with known values: bpf perf filter ring trace other
workload messages control|netlink|kernel   control messages and netlink messages with known contents
workload ioctls                            makes ioctls of many drivers, with known values; needs CAP_SYS_ADMIN
workload sockopts                          sets and gets socket options of every type, with known values
workload tcp SIZE...                       sends of these sizes over a connection to itself; says between which ports
workload uring SCENE FILE                  requests of io_uring with known results: plain chains multishot full polled messages twins
workload uring-many COUNT                  COUNT requests of io_uring that do nothing
workload zoo DIR                           shows one open file of every kind
workload mark EVENT COUNT                  sets a mark of this name so often
workload mark-fork EVENT                   sets one in itself and in a child, as long as somebody traces it
workload mark-exec EVENT COMMAND...        declares one and becomes another program
workload int80 COUNT                       getppid by the kernel's entry for 32-bit programs (x86-64)
workload unknown                           numbers that no table has
workload numbers FIRST LAST COUNT          each of these numbers in turn, and so COUNT times
workload tag TAG                           one tagged call
workload exit STATUS                       ends with STATUS";

fn main() -> ExitCode {
    resident::touch_own_pages();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.first() == Some(&"--tell") {
        words.remove(0);
        told::ask();
    }
    let status = run(&words);
    told::print();
    status
}

/// Does what the words say.
fn run(words: &[&str]) -> ExitCode {
    match words {
        ["calls", kind, threads, count] => calls::run(kind, number(threads), number(count), None),
        ["calls", kind, threads, count, rate] => calls::run(kind, number(threads), number(count), Some(number(rate))),
        ["spans", kind, threads, count] => spans::run(kind, number(threads), number(count)),
        ["waits", count] => waits::run(number(count)),
        ["slow", ms] => slow::run(number(ms)),
        ["forks", count] => children::forks(number(count)),
        ["threads", count] => children::threads(number(count)),
        ["burst", threads, count] => burst::run(number(threads), number(count)),
        ["outlive", ms, status] => return children::outlive(number(ms), number(status) as u8),
        ["reap-own", count, command @ ..] => children::reap_own(number(count), command),
        ["attach"] => attach::run(0),
        ["attach", others] => attach::run(number(others)),
        ["exec", who] => execs::run(who),
        ["churn", how] => churn::run(how),
        ["cost", kind, count] => cost::run(kind, number(count)),
        ["signals", scene] => return signals::run(scene),
        ["held", file] => held::run(file.as_ref()),
        ["results", threads, count] => results::run(number(threads), number(count)),
        ["seccomp", count] => seccomp::run(number(count)),
        ["fds", scene, count, dir] => fds::run(scene, number(count), dir.as_ref()),
        ["names", threads, count, dir] => names::run(number(threads), number(count), dir.as_ref()),
        ["payload", scene] => payload::run(scene),
        ["structs", dir] => structs::run(dir.as_ref()),
        ["edge-values", scene] => edge_values::run(scene),
        ["arguments", scene] => arguments::run(scene),
        ["kernel-objects", family] => kernel_objects::run(family),
        ["messages", scene] => messages::run(scene),
        ["ioctls"] => ioctls::run(),
        ["sockopts"] => sockopts::run(),
        ["uring", scene, file] => uring::run(scene, file.as_ref()),
        ["uring-many", count] => uring::many(number(count)),
        ["tcp", sizes @ ..] => tcp::send(&sizes.iter().map(|size| number(size)).collect::<Vec<_>>()),
        ["memory", scene, count, dir] => memory::run(scene, number(count), dir.as_ref()),
        ["mark", event, count] => mark::run(event, number(count) as u32),
        ["mark-fork", event] => mark::fork(event),
        ["mark-exec", event, command @ ..] => mark::exec(event, command),
        ["zoo", dir] => zoo::run(dir.as_ref()),
        #[cfg(target_arch = "x86_64")]
        ["int80", count] => odd::int80(number(count)),
        ["unknown"] => odd::run(),
        ["meanings"] => odd::meanings(),
        ["numbers", first, last, count] => odd::numbers(number(first)..=number(last), number(count)),
        ["tag", tag] => raw::tag(number(tag)),
        ["exit", status] => return ExitCode::from(number(status) as u8),
        _ => {
            eprintln!("{WORDS}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))
}
