//! Signals of every origin; the program prints the siginfo that it gets.

use crate::{raw, told};
use std::mem::zeroed;
use std::process::ExitCode;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// An unmapped address.
const NOWHERE: usize = 0x1234;
/// The code of a fault at an address without a mapping (asm-generic/siginfo.h).
const SEGV_MAPERR: i32 = 1;

pub fn run(scene: &str) -> ExitCode {
    match scene {
        "fault" => fault(),
        "thread" => by_a_thread(),
        "queue" => queue(),
        "timer" => timer(),
        "alarm" => alarm(),
        "wait" => wait(),
        "pipe" => broken_pipe(),
        "many" => many_threads(),
        "ignored" => ignored(),
        "interrupted" => interrupted(),
        "killed" => killed_in_a_call(),
        "skipped" => killed_before_a_call(),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

extern "C" fn tell(number: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a complete siginfo_t to the handler.
    let info = unsafe { &*info };
    println!("given {number} code {} pid {} uid {}", info.si_code, unsafe { info.si_pid() }, unsafe { info.si_uid() });
}

/// Installs a handler that prints this signal on stdout.
fn handle(number: i32) {
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = tell as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    assert_eq!(unsafe { libc::sigaction(number, &action, ptr::null_mut()) }, 0);
}

/// Tells the siginfo of the signal that will kill this program: `killed NUMBER code CODE`, and then `address ADDRESS`
/// or `pid PID uid UID`.
fn will_be_killed(number: i32, code: i32, why: impl Fn() -> String) {
    told::line(|| format!("killed {number} code {code} {}", why()));
}

fn fault() {
    // Rust's runtime has a handler of its own, after which the instruction faults again.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
    will_be_killed(libc::SIGSEGV, SEGV_MAPERR, || format!("address {NOWHERE}"));
    told::print();
    unsafe { ptr::read_volatile(ptr::without_provenance::<u8>(NOWHERE)) };
}

/// A thread sends a signal to the first thread.
fn by_a_thread() {
    handle(libc::SIGUSR1);
    let pid = unsafe { libc::getpid() };
    let send = move || {
        println!("sender {}", unsafe { libc::syscall(libc::SYS_gettid) });
        unsafe { told::syscall!(libc::SYS_tgkill, pid, pid, libc::SIGUSR1) };
    };
    std::thread::spawn(send).join().expect("the thread ends well");
}

fn queue() {
    let number = libc::SIGRTMIN() + 1;
    handle(number);
    let (pid, uid) = unsafe { (libc::getpid(), libc::getuid()) };
    // A siginfo: the number, no error, the code, the sender, and the value 42.
    let mut info = [0; 32];
    info[..7].copy_from_slice(&[number, 0, libc::SI_QUEUE, 0, pid, uid as i32, 42]);
    unsafe { told::syscall!(libc::SYS_rt_sigqueueinfo, pid, number, &info[..]) };
}

fn timer() {
    handle(libc::SIGALRM);
    let mut timer = 0i32;
    let mut event: libc::sigevent = unsafe { zeroed() };
    (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_SIGNAL, libc::SIGALRM);
    event.sigev_value.sival_ptr = ptr::without_provenance_mut(7);
    let once = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 },
    };
    assert_eq!(unsafe { told::syscall!(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &raw const event, told::out(&raw mut timer, 1)) }, 0);
    assert_eq!(unsafe { told::syscall!(libc::SYS_timer_settime, timer, 0, &raw const once, 0) }, 0);
    unsafe { libc::pause() };
}

fn alarm() {
    handle(libc::SIGALRM);
    let once =
        libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: libc::timeval { tv_sec: 0, tv_usec: 10_000 } };
    assert_eq!(unsafe { told::syscall!(libc::SYS_setitimer, libc::ITIMER_REAL, &raw const once, 0) }, 0);
    unsafe { libc::pause() };
}

/// Waits until it is killed.
fn wait() {
    println!("up");
    (0..3).for_each(|_| raw::poll_nothing(1_000));
    told::print();
    loop {
        raw::poll_nothing(1_000);
    }
}

fn broken_pipe() {
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    raw::close(ends[0]);
    // Rust's runtime ignores SIGPIPE.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    unsafe { libc::write(ends[1], c"x".as_ptr().cast(), 1) };
}

/// Three threads sleep, and the first one ends all of them by a signal to the process.
fn many_threads() {
    let _threads = raw::sleepers(3);
    let pid = unsafe { libc::getpid() };
    will_be_killed(libc::SIGTERM, libc::SI_USER, || format!("pid {pid} uid {}", unsafe { libc::getuid() }));
    unsafe { told::last_syscall!(libc::SYS_kill, pid, libc::SIGTERM) };
    raw::poll_nothing(60_000);
}

/// Children end while this program waits for them and while it runs, and signals arrive that it ignores.
fn ignored() {
    raw::wait(raw::fork(|| raw::poll_nothing(20)));
    let child = raw::fork(|| ());
    let begin = raw::now();
    while raw::now() - begin < 50_000_000 {}
    raw::wait(child);
    unsafe { libc::signal(libc::SIGUSR1, libc::SIG_IGN) };
    for number in [libc::SIGUSR1, libc::SIGWINCH] {
        assert_eq!(unsafe { libc::raise(number) }, 0);
    }
}

/// The ends of a pipe from which [`interrupted`] reads.
static PIPE: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

extern "C" fn write_to_the_pipe(_: i32) {
    unsafe { libc::write(PIPE[1].load(Ordering::Relaxed), c"x".as_ptr().cast(), 1) };
}

/// A signal interrupts a call of each kind: one that fails, one that goes on with what is left of a time, and one that
/// begins anew.
fn interrupted() {
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    PIPE.iter().zip(ends).for_each(|(place, end)| place.store(end, Ordering::Relaxed));
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = write_to_the_pipe as *const () as usize;
    for flags in [0, libc::SA_RESTART] {
        action.sa_flags = flags;
        assert_eq!(unsafe { libc::sigaction(libc::SIGALRM, &action, ptr::null_mut()) }, 0);
        alarm_soon();
        unsafe { libc::pause() };
        raw::read(ends[0], 1);
        alarm_soon();
        unsafe { libc::usleep(60_000_000) };
        raw::read(ends[0], 1);
        alarm_soon();
        raw::read(ends[0], 1);
    }
}

/// Sends this program a SIGALRM when it is surely in its next call.
fn alarm_soon() {
    let once =
        libc::itimerval { it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 }, it_value: libc::timeval { tv_sec: 0, tv_usec: 50_000 } };
    assert_eq!(unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &raw const once, 0) }, 0);
}

/// Children are killed while they are in calls that write to memory, and in others.
fn killed_in_a_call() {
    let calls: [(libc::c_long, fn()); 3] = [
        (PAUSE, || _ = unsafe { libc::pause() }),
        (libc::SYS_read, || {
            let mut ends = [0; 2];
            assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
            raw::read(ends[0], 1);
        }),
        (raw::POLL, || raw::poll_nothing(60_000)),
    ];
    for number in [libc::SIGKILL, libc::SIGTERM] {
        for (call, make) in calls {
            let child = raw::fork(make);
            raw::wait_until_asleep(format!("/proc/{child}/task/{child}").as_ref(), call);
            kill_and_reap(child, number);
        }
    }
}

/// The call that the C library's `pause` makes.
#[cfg(target_arch = "x86_64")]
const PAUSE: libc::c_long = libc::SYS_pause;
#[cfg(not(target_arch = "x86_64"))]
const PAUSE: libc::c_long = libc::SYS_ppoll;

fn kill_and_reap(child: i32, number: i32) {
    assert_eq!(unsafe { told::syscall!(libc::SYS_kill, child, number) }, 0);
    assert_eq!(unsafe { told::syscall!(libc::SYS_wait4, child, 0, 0, 0) }, i64::from(child));
}

/// A tracer stops a child at the entry of a call, and the child is killed there. The kernel skips the call.
fn killed_before_a_call() {
    let child = raw::fork(|| unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0), 0, "nobody else traces it");
        // raise(3) would make another call after this one.
        libc::kill(libc::getpid(), libc::SIGSTOP);
        libc::getppid();
    });
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0) }, 0);
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFSTOPPED(status), "the child is at the entry of its next call, not ended with {status:#x}");
    kill_and_reap(child, libc::SIGKILL);
}
