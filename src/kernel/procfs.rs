//! Readers of /proc: tasks, their identities, and their descriptors. Tasks start and end meanwhile, so the result for a
//! task that has ended is `None`, or leaves it out.

use super::machine::ClockOffsets;
use crate::event::{TaskId, Time};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::LazyLock;

/// The fields of a task's `stat` file that rtrace uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The number of the thread, or of the process if its own file was read.
    pub tid: i32,
    /// At most 15 bytes, longer for some kernel threads.
    pub comm: Vec<u8>,
    /// `R`, `S`, `Z`, ...
    pub state: u8,
    /// The process that is the parent; 0 if there is none, or none in the pid namespace of /proc.
    pub ppid: i32,
    /// The number of threads of its process that were not reaped yet, or 0 if this one was reaped meanwhile.
    pub threads: u32,
    /// The start time in clock ticks since boot (CLOCK_BOOTTIME), rounded down.
    pub start_ticks: u64,
}

impl Stat {
    /// Returns the start time, rounded down to the kernel's clock tick (10 ms).
    pub fn started(&self, offsets: ClockOffsets) -> Time {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        let since_boot = u128::from(self.start_ticks) * 1_000_000_000 / u128::from(ticks_per_second);
        let monotonic = i128::try_from(since_boot).unwrap_or(i128::MAX).saturating_sub(i128::from(offsets.boottime));
        Time(u64::try_from(monotonic.max(0)).unwrap_or(u64::MAX))
    }
}

/// The fields of /proc/TID/status that identify a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The process that the thread belongs to.
    pub tgid: i32,
    /// The process that is the parent; 0 if there is none, or none in the pid namespace of /proc.
    pub ppid: i32,
    /// The real, effective, saved and file-system user IDs.
    pub uids: [u32; 4],
    /// Whether the task is in a pid namespace below that of this /proc.
    pub is_nested: bool,
}

/// Reads a process's stat. The kernel adds up the CPU times of all its threads for it (`do_task_stat()` in
/// fs/proc/array.c), whichever thread's number is used: some 100 ns a thread. [`thread_stat`] does not have that cost.
pub fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a thread's own stat.
pub fn thread_stat(task: TaskId) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{}/task/{}/stat", task.pid, task.tid)).ok()?)
}

/// Reads a task's identity. `tid` may be that of any thread.
pub fn status(tid: i32) -> Option<Status> {
    parse_status(&fs::read(format!("/proc/{tid}/status")).ok()?)
}

/// Whether rtrace is in the initial pid namespace, which has this inode in all kernels (PROC_PID_INIT_INO in
/// include/linux/proc_ns.h).
pub fn is_in_initial_pid_namespace() -> bool {
    static IS: LazyLock<bool> =
        LazyLock::new(|| fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]"));
    *IS
}

/// Whether rtrace is in the initial user namespace (PROC_USER_INIT_INO in include/linux/proc_ns.h). The kernel requires
/// capabilities for tracing in that namespace.
pub fn is_in_initial_user_namespace() -> bool {
    // If the link cannot be read, the initial namespace is assumed.
    fs::read_link("/proc/self/ns/user").map_or(true, |link| link.as_os_str() == "user:[4026531837]")
}

/// Whether /proc belongs to another pid namespace than rtrace's, so that it shows tasks by other numbers. In a new
/// namespace this holds until its own /proc is mounted.
pub fn is_of_another_namespace() -> bool {
    match fs::read_link("/proc/self") {
        Ok(own) => own.as_os_str() != std::process::id().to_string().as_str(),
        // rtrace has no pid in the namespace of /proc, or /proc is not mounted.
        Err(_) => fs::exists("/proc/version").unwrap_or_default(),
    }
}

/// Returns the numbers that the kernel's records have for tasks outside of rtrace's pid namespace: 0, and -1 when they
/// are exiting (`perf_event_pid_type()` in kernel/events/core.c). In the initial namespace there are no such tasks, and
/// 0 is the number of the idle tasks.
pub fn pids_outside_namespace() -> &'static [i32] {
    if is_in_initial_pid_namespace() { &[] } else { &[0, -1] }
}

/// Returns the pid of a process in the innermost of its pid namespaces, which is what getpid(2) returns to the process.
pub fn innermost_pid(pid: i32) -> Option<i32> {
    parse_innermost_pid(&fs::read(format!("/proc/{pid}/status")).ok()?)
}

/// The system call that a task sleeps in (man 5 proc_pid_syscall).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepingCall {
    /// The number in the task's ABI, with bit 30 for x32.
    pub nr: i64,
    /// The argument registers, all six of them, whatever number of arguments the call has.
    pub args: [u64; 6],
    /// The stack pointer of the task in user space.
    pub stack_pointer: u64,
    /// The address in user space of the instruction after the one that made the call.
    pub program_counter: u64,
}

/// Reads the system call that a task sleeps in. Returns `None` if the task runs, sleeps outside of a system call, has
/// ended, or may not be inspected.
pub fn sleeping_call(task: TaskId) -> Option<SleepingCall> {
    parse_sleeping_call(&fs::read_to_string(format!("/proc/{}/task/{}/syscall", task.pid, task.tid)).ok()?)
}

fn parse_sleeping_call(text: &str) -> Option<SleepingCall> {
    let (nr, rest) = text.trim_end().split_once(' ')?;
    let nr = nr.parse().ok().filter(|nr| *nr >= 0)?;
    let mut words = rest.split(' ').map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let mut next = || words.next().flatten();
    let args = [next()?, next()?, next()?, next()?, next()?, next()?];
    Some(SleepingCall { nr, args, stack_pointer: next()?, program_counter: next()? })
}

/// Reads the number of a task's context switches, voluntary and involuntary. If the number is unchanged and the task
/// sleeps, it has not run meanwhile.
pub fn context_switches(task: TaskId) -> Option<u64> {
    parse_context_switches(&fs::read(format!("/proc/{}/task/{}/status", task.pid, task.tid)).ok()?)
}

fn parse_context_switches(status: &[u8]) -> Option<u64> {
    let count = |name: &[u8]| -> Option<u64> {
        let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
        std::str::from_utf8(line).ok()?.trim().parse().ok()
    };
    Some(count(b"voluntary_ctxt_switches:")? + count(b"nonvoluntary_ctxt_switches:")?)
}

/// A mapping, from a line of /proc/PID/maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// The first address, and the end (exclusive).
    pub addresses: (u64, u64),
    /// Whether its memory may be executed (`x`), so that it may contain code.
    pub is_executable: bool,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The major and minor number.
    pub device: (u32, u32),
    /// 0 if it is not a mapping of a file.
    pub inode: u64,
    /// The kernel's text (`/x (deleted)`, `[vdso]`, or empty), with `\012` for newlines.
    pub path: &'a [u8],
}

/// Parses a line of /proc/PID/maps: `55d0...-55d1... r-xp 00001000 08:01 1234   /path` (man 5 proc_pid_maps).
pub fn parse_mapping(line: &[u8]) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, |b| *b == b' ').map(<[u8]>::trim_ascii_start);
    let mut field = || str::from_utf8(fields.next()?).ok();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = field()?.split_once('-')?;
    let addresses = (hex(start)?, hex(end)?);
    let is_executable = field()?.contains('x');
    let offset = hex(field()?)?;
    let (major, minor) = field()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = field()?.parse().ok()?;
    Some(Mapping { addresses, is_executable, offset, device, inode, path: fields.next().unwrap_or_default() })
}

/// Reads a task's comm.
pub fn comm(tid: i32) -> Option<Vec<u8>> {
    let mut name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Some(name)
}

/// Returns a thread with the process that it belongs to.
pub fn task(tid: i32) -> Option<TaskId> {
    Some(TaskId { pid: status(tid)?.tgid, tid })
}

/// Returns the threads of a process, in ascending order. It is empty if the process has ended.
pub fn threads(pid: i32) -> Vec<i32> {
    /// The list may be empty while a thread that executes a program takes over the TID of the first thread.
    const READS_MAX: u32 = 100;
    let path = format!("/proc/{pid}/task");
    let lists = (0..READS_MAX).map(|_| numbers_in(Path::new(&path)));
    lists.take_while(|tids| !tids.is_empty() || fs::exists(&path).unwrap_or_default()).find(|tids| !tids.is_empty()).unwrap_or_default()
}

/// Returns all processes, in ascending order.
pub fn processes() -> Vec<i32> {
    numbers_in(Path::new("/proc"))
}

/// Returns the threads of a process as tasks, in ascending order.
pub fn tasks_of(pid: i32) -> impl Iterator<Item = TaskId> {
    threads(pid).into_iter().map(move |tid| TaskId { pid, tid })
}

/// Returns the processes whose real or effective user ID is `uid`, in ascending order.
pub fn processes_of(uid: u32) -> Vec<i32> {
    processes().into_iter().filter(|pid| status(*pid).is_some_and(|status| status.uids[..2].contains(&uid))).collect()
}

/// Reads the link of a file descriptor, which is the kernel's text for its file (`/etc/passwd`, `socket:[123]`, `/x
/// (deleted)`).
pub fn fd_link(pid: i32, fd: i32) -> Option<Vec<u8>> {
    fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok().map(|path| path.into_os_string().into_vec())
}

/// Reads the file descriptors of a process and their links. Returns `None` if rtrace may not read them.
pub fn fd_links(pid: i32) -> Option<Vec<(i32, Vec<u8>)>> {
    let directory = format!("/proc/{pid}/fd");
    fs::read_dir(&directory).ok()?;
    Some(numbers_in(Path::new(&directory)).into_iter().filter_map(|fd| Some((fd, fd_link(pid, fd)?))).collect())
}

/// Reads the file descriptors of a process that are not close-on-exec, and their links.
pub fn inheritable_fds(pid: i32) -> Vec<(i32, Vec<u8>)> {
    let stays = |fd: i32| {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        Some(i32::from_str_radix(flags.trim(), 8).ok()? & libc::O_CLOEXEC == 0)
    };
    fd_links(pid).unwrap_or_default().into_iter().filter(|(fd, _)| stays(*fd) == Some(true)).collect()
}

/// Reads the cgroup of a process, as a path below the mount. It is that of the unified hierarchy. If the process is in
/// the root of that one, it is that of version 1's `perf_event` or systemd's hierarchy.
pub fn cgroup(pid: i32) -> Option<Vec<u8>> {
    parse_cgroup(&fs::read(format!("/proc/{pid}/cgroup")).ok()?)
}

/// Whether rtrace is in the initial cgroup namespace (PROC_CGROUP_INIT_INO in include/linux/proc_ns.h). The paths in
/// the kernel's events are those of that namespace.
pub fn is_in_initial_cgroup_namespace() -> bool {
    fs::read_link("/proc/self/ns/cgroup").is_ok_and(|link| link.as_os_str() == "cgroup:[4026531835]")
}

/// Returns the parent of a process, the parent's parent, and so on up to init.
pub fn ancestors(pid: i32) -> Vec<Stat> {
    let mut found: Vec<Stat> = Vec::new();
    let mut next = stat(pid).map_or(0, |stat| stat.ppid);
    // A loop is possible if processes end and their pids are reused meanwhile.
    while next > 0 && found.len() < 256 && found.iter().all(|stat| stat.tid != next) {
        let Some(stat) = stat(next) else { break };
        next = stat.ppid;
        found.push(stat);
    }
    found
}

/// Parses `pid (comm) state ppid ...` (man 5 proc_pid_stat). The comm may contain blanks and parentheses, so the last
/// parenthesis ends it.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let (open, close) = (memchr::memchr(b'(', text)?, memchr::memrchr(b')', text)?);
    let tid = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let ppid = fields.next()?.parse().ok()?;
    // Fields 20 and 22. The parent's pid is field 4.
    let threads = fields.nth(15)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    Some(Stat { tid, comm: text.get(open + 1..close)?.to_vec(), state, ppid, threads, start_ticks })
}

/// Parses the line `NSpid:`, which has the pids from the outermost to the innermost namespace.
fn parse_innermost_pid(status: &[u8]) -> Option<i32> {
    let line = status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"))?;
    str::from_utf8(line).ok()?.split_ascii_whitespace().next_back()?.parse().ok()
}

fn parse_status(text: &[u8]) -> Option<Status> {
    let value = |key: &str| {
        let line = text.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(key.as_bytes()))?;
        std::str::from_utf8(line).ok()
    };
    let mut uids = value("Uid:")?.split_ascii_whitespace().map(str::parse::<u32>);
    let mut uid = || uids.next()?.ok();
    Some(Status {
        tgid: value("Tgid:")?.trim().parse().ok()?,
        ppid: value("PPid:")?.trim().parse().ok()?,
        uids: [uid()?, uid()?, uid()?, uid()?],
        // The line has a pid for each namespace, from that of this /proc on. Kernels without pid namespaces do not have
        // the line.
        is_nested: value("NSpid:").is_some_and(|numbers| numbers.split_ascii_whitespace().count() > 1),
    })
}

/// Parses the lines `hierarchy:controllers:path`.
fn parse_cgroup(text: &[u8]) -> Option<Vec<u8>> {
    let lines = || {
        text.split(|b| *b == b'\n').filter_map(|line| {
            let mut parts = line.splitn(3, |b| *b == b':');
            Some((parts.next()?, parts.next()?, parts.next()?))
        })
    };
    let unified = lines().find(|(number, controllers, _)| *number == b"0" && controllers.is_empty()).map(|(_, _, path)| path);
    let of =
        |name: &[u8]| lines().find(|(_, controllers, _)| controllers.split(|b| *b == b',').any(|c| c == name)).map(|(_, _, path)| path);
    let candidates = [unified, of(b"perf_event"), of(b"name=systemd")];
    let found = candidates.into_iter().flatten().find(|path| *path != b"/").or(unified).or(of(b"perf_event")).or(of(b"name=systemd"));
    found.map(<[u8]>::to_vec)
}

/// Returns the entries of a directory that are numbers, in ascending order.
fn numbers_in(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let number = |name: &OsStr| std::str::from_utf8(name.as_bytes()).ok()?.parse().ok();
    let mut numbers: Vec<i32> = entries.filter_map(|entry| number(&entry.ok()?.file_name())).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comm_may_have_blanks_and_parentheses() {
        let line = b"42 (a) b (c) S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 999 3\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.tid, stat.comm.as_slice(), stat.state, stat.ppid, stat.start_ticks), (42, &b"a) b (c"[..], b'S', 7, 12345));
        for end in 0..line.len() - 10 {
            let _ = parse_stat(&line[..end]);
        }
        assert_eq!(parse_stat(b")("), None);
        assert_eq!(parse_stat(b"1 (\xff\xfe) R 0"), None);
    }

    #[test]
    fn the_call_that_a_task_sleeps_in_is_parsed() {
        let line = "202 0x7fb6ca37f990 0x109 0x76f 0x0 0x0 0xffffffff 0x7ffd91e1f0a0 0x7fb6ca0b2f16\n";
        let call = parse_sleeping_call(line).unwrap();
        assert_eq!((call.nr, call.args[1], call.args[5]), (202, 0x109, 0xffff_ffff));
        assert_eq!((call.stack_pointer, call.program_counter), (0x7ffd_91e1_f0a0, 0x7fb6_ca0b_2f16));
        for none in ["running\n", "-1 0x7ffd91e1f0a0 0x7fb6ca0b2f16\n", "", "202 0x1", &line[..60]] {
            assert_eq!(parse_sleeping_call(none), None, "{none:?}");
        }
    }

    #[test]
    fn context_switches_of_both_kinds_add_up() {
        let status = b"Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(parse_context_switches(status), Some(157));
        assert_eq!(parse_context_switches(b"Name:\tx\nnonvoluntary_ctxt_switches:\t7\n"), None);
    }

    #[test]
    fn start_times_leave_out_suspended_time() {
        let stat = Stat { tid: 1, comm: Vec::new(), state: b'S', ppid: 0, threads: 1, start_ticks: 500 };
        let ticks = rustix::param::clock_ticks_per_second();
        let nanoseconds = 500 * 1_000_000_000 / ticks;
        assert_eq!(stat.started(ClockOffsets { realtime: 0, boottime: 0 }), Time(nanoseconds));
        assert_eq!(stat.started(ClockOffsets { realtime: 0, boottime: 1_000 }), Time(nanoseconds - 1_000));
        assert_eq!(stat.started(ClockOffsets { realtime: 0, boottime: i64::MAX }), Time(0));
    }

    #[test]
    fn identities_are_read_from_status_files() {
        let status = parse_status(b"Name:\tx\nTgid:\t10\nPid:\t11\nPPid:\t1\nUid:\t1000\t0\t0\t1000\n").unwrap();
        assert_eq!(status, Status { tgid: 10, ppid: 1, uids: [1000, 0, 0, 1000], is_nested: false });
        let nested = |line: &str| parse_status(format!("Tgid:\t10\nPPid:\t1\nUid:\t0\t0\t0\t0\n{line}").as_bytes()).unwrap().is_nested;
        assert!(!nested("NSpid:\t10\n") && nested("NSpid:\t10\t1\n"));
        assert_eq!(parse_status(b"Tgid:\t10\nPPid:\t1\nUid:\t1000\n"), None);
    }

    #[test]
    fn the_innermost_pid_is_the_last_one() {
        assert_eq!(parse_innermost_pid(b"Name:\tx\nNSpid:\t4711\t12\t1\n"), Some(1));
        assert_eq!(parse_innermost_pid(b"NSpid:\t4711\n"), Some(4711));
        assert_eq!((parse_innermost_pid(b"NSpid:\n"), parse_innermost_pid(b"Pid:\t1\n")), (None, None));
    }

    #[test]
    fn lines_of_maps_are_parsed() {
        let line = b"7f1c000-7f1e000 r-xp 00002000 fe:01 1234                       /usr/lib/a b.so (deleted)";
        let path = &b"/usr/lib/a b.so (deleted)"[..];
        let expected =
            Mapping { addresses: (0x7f1c000, 0x7f1e000), is_executable: true, offset: 0x2000, device: (0xfe, 1), inode: 1234, path };
        assert_eq!(parse_mapping(line), Some(expected));
        let unnamed = parse_mapping(b"7ffe000-7fff000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((unnamed.path, unnamed.inode, unnamed.is_executable), (&b""[..], 0, false));
        for end in 0..line.len() {
            let _ = parse_mapping(&line[..end]);
        }
        assert_eq!(parse_mapping(b"7ffe000 r-xp 0 00:00 0"), None);
    }

    #[test]
    fn cgroups_of_both_versions_are_parsed() {
        assert_eq!(parse_cgroup(b"0::/user.slice/a:b\n"), Some(b"/user.slice/a:b".to_vec()));
        assert_eq!(parse_cgroup(b"4:memory:/m\n3:cpu,perf_event:/p\n0::/\n"), Some(b"/p".to_vec()));
        assert_eq!(parse_cgroup(b"1:name=systemd:/\n0::/\n"), Some(b"/".to_vec()));
        assert_eq!(parse_cgroup(b"rubbish"), None);
    }

    #[test]
    fn this_process_is_found_in_proc() {
        let me = std::process::id() as i32;
        let stat = stat(me).unwrap();
        assert_eq!(comm(me).unwrap(), stat.comm);
        assert_eq!(status(me).unwrap().tgid, me);
        assert!(threads(me).contains(&me));
        assert!(processes_of(rustix::process::getuid().as_raw()).contains(&me));
        assert_eq!(ancestors(me)[0].tid, stat.ppid);
        let now = super::super::machine::clock_offsets();
        assert!(stat.started(now).0 > 0);
        let file = fs::File::open("/dev/null").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(fd_links(me).unwrap().contains(&(fd, b"/dev/null".to_vec())));
        assert_eq!(fd_link(me, 1 << 30), None);
        assert!(threads(-1).is_empty() && super::stat(-1).is_none() && fd_links(-1).is_none());
    }
}
