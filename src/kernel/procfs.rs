//! Readers of /proc: who runs, since when, and what descriptors are. Tasks come and go while one reads, so what is gone is `None` or left out.

use super::machine::ClockOffsets;
use crate::event::{TaskId, Time};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::LazyLock;

/// What a task's `stat` says of it, as far as rtrace asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub tid: i32,
    /// At most 15 bytes; kernel threads' may be longer.
    pub comm: Vec<u8>,
    /// `R`, `S`, `Z`, ...
    pub state: u8,
    pub ppid: i32,
    /// Start in clock ticks since boot (CLOCK_BOOTTIME), rounded down.
    pub start_ticks: u64,
}

impl Stat {
    /// When it was started, rounded down to the kernel's clock tick (10 ms).
    pub fn started(&self, offsets: ClockOffsets) -> Time {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        let since_boot = u128::from(self.start_ticks) * 1_000_000_000 / u128::from(ticks_per_second);
        let monotonic = i128::try_from(since_boot).unwrap_or(i128::MAX).saturating_sub(i128::from(offsets.boottime));
        Time(u64::try_from(monotonic.max(0)).unwrap_or(u64::MAX))
    }
}

/// What /proc/TID/status says of a task's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub tgid: i32,
    pub ppid: i32,
    /// Real, effective, saved and file-system user.
    pub uids: [u32; 4],
    /// It is in a pid namespace below that of this /proc.
    pub is_nested: bool,
}

/// A process's stat. The kernel adds up what all its threads used (`do_task_stat()` in fs/proc/array.c), under whichever of their numbers it is asked: some 100 ns a thread. [`thread_stat`] costs nothing of that.
pub fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// A thread's own stat.
pub fn thread_stat(task: TaskId) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{}/task/{}/stat", task.pid, task.tid)).ok()?)
}

/// A task's identity. `tid` may be any thread's.
pub fn status(tid: i32) -> Option<Status> {
    parse_status(&fs::read(format!("/proc/{tid}/status")).ok()?)
}

/// Whether rtrace's own numbers of tasks are those of the first pid namespace, which has this inode on every kernel (PROC_PID_INIT_INO in include/linux/proc_ns.h).
pub fn is_in_first_pid_namespace() -> bool {
    static IS: LazyLock<bool> =
        LazyLock::new(|| fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]"));
    *IS
}

/// Whether capabilities of this process are those that the kernel asks for (PROC_USER_INIT_INO in include/linux/proc_ns.h).
pub fn is_in_first_user_namespace() -> bool {
    // Where links cannot be read, there is no reason to think otherwise.
    fs::read_link("/proc/self/ns/user").map_or(true, |link| link.as_os_str() == "user:[4026531837]")
}

/// Whether /proc shows the tasks of another pid namespace, under the numbers that they have there: in a new namespace it
/// does until one of that is mounted.
pub fn is_of_another_namespace() -> bool {
    match fs::read_link("/proc/self") {
        Ok(own) => own.as_os_str() != std::process::id().to_string().as_str(),
        // rtrace has no number there, or there is no /proc at all.
        Err(_) => fs::exists("/proc/version").unwrap_or_default(),
    }
}

/// What stands in the kernel's records for tasks that have no number in rtrace's pid namespace: 0, and -1 once they are
/// ending (`perf_event_pid_type()` in kernel/events/core.c). In the first namespace all have one, and 0 is the idle tasks'.
pub fn numbers_outside() -> &'static [i32] {
    if is_in_first_pid_namespace() { &[] } else { &[0, -1] }
}

/// The number that a process has for itself, in the innermost of its pid namespaces.
pub fn innermost_pid(pid: i32) -> Option<i32> {
    parse_innermost_pid(&fs::read(format!("/proc/{pid}/status")).ok()?)
}

/// The call that a task sleeps in (man 5 proc_pid_syscall).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepingCall {
    /// As the task's ABI has it, x32's with bit 30.
    pub nr: i64,
    pub args: [u64; 6],
    pub stack_pointer: u64,
    pub program_counter: u64,
}

/// The call that a task sleeps in; `None` if it runs, sleeps without having made a call, is gone, or may not be looked at.
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

/// How often a task gave up the CPU, or had to: while this number stays and the task sleeps, it did not run.
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

/// A mapping of a file, from a line of /proc/PID/maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// First address, and the one behind the last.
    pub addresses: (u64, u64),
    pub is_executable: bool,
    /// In the file, in bytes.
    pub offset: u64,
    /// Major and minor number.
    pub device: (u32, u32),
    /// 0 if it is no file's.
    pub inode: u64,
    /// As the kernel gives it (`/x (deleted)`, `[vdso]`, nothing); its newlines are `\012`.
    pub path: &'a [u8],
}

/// `55d0...-55d1... r-xp 00001000 08:01 1234   /path` (man 5 proc_pid_maps).
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

/// A task's name.
pub fn comm(tid: i32) -> Option<Vec<u8>> {
    let mut name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Some(name)
}

/// The process a thread belongs to.
pub fn task(tid: i32) -> Option<TaskId> {
    Some(TaskId { pid: status(tid)?.tgid, tid })
}

/// The threads of a process, ascending; none if it is gone.
pub fn threads(pid: i32) -> Vec<i32> {
    numbers_in(Path::new(&format!("/proc/{pid}/task")))
}

/// All processes, ascending.
pub fn processes() -> Vec<i32> {
    numbers_in(Path::new("/proc"))
}

/// The same as tasks.
pub fn tasks_of(pid: i32) -> impl Iterator<Item = TaskId> {
    threads(pid).into_iter().map(move |tid| TaskId { pid, tid })
}

/// The processes whose real or effective user is this one, ascending.
pub fn processes_of(uid: u32) -> Vec<i32> {
    processes().into_iter().filter(|pid| status(*pid).is_some_and(|status| status.uids[..2].contains(&uid))).collect()
}

/// What a descriptor is now: the link's text as the kernel gives it (`/etc/passwd`, `socket:[123]`, `/x (deleted)`).
pub fn fd_link(pid: i32, fd: i32) -> Option<Vec<u8>> {
    fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok().map(|path| path.into_os_string().into_vec())
}

/// The descriptors a process has open and what each is; `None` if that may not be seen.
pub fn fd_links(pid: i32) -> Option<Vec<(i32, Vec<u8>)>> {
    let directory = format!("/proc/{pid}/fd");
    fs::read_dir(&directory).ok()?;
    Some(numbers_in(Path::new(&directory)).into_iter().filter_map(|fd| Some((fd, fd_link(pid, fd)?))).collect())
}

/// The descriptors of a process that an execve leaves open (those without O_CLOEXEC), and what each is.
pub fn fds_over_exec(pid: i32) -> Vec<(i32, Vec<u8>)> {
    let stays = |fd: i32| {
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        Some(i32::from_str_radix(flags.trim(), 8).ok()? & libc::O_CLOEXEC == 0)
    };
    fd_links(pid).unwrap_or_default().into_iter().filter(|(fd, _)| stays(*fd) == Some(true)).collect()
}

/// The cgroup a process is in, as a path below the mount: that of the unified hierarchy, or of version 1's `perf_event` or systemd's where the
/// unified one puts everything in its root.
pub fn cgroup(pid: i32) -> Option<Vec<u8>> {
    parse_cgroup(&fs::read(format!("/proc/{pid}/cgroup")).ok()?)
}

/// Whether this process is in the initial cgroup namespace, so that it sees cgroups by the paths that the kernel's events have (PROC_CGROUP_INIT_INO in include/linux/proc_ns.h).
pub fn cgroups_from_root() -> bool {
    fs::read_link("/proc/self/ns/cgroup").is_ok_and(|link| link.as_os_str() == "cgroup:[4026531835]")
}

/// A process's parent, its parent's, and so on up to init.
pub fn ancestors(pid: i32) -> Vec<Stat> {
    let mut found: Vec<Stat> = Vec::new();
    let mut next = stat(pid).map_or(0, |stat| stat.ppid);
    // Processes that end and pids that are used anew could close a circle.
    while next > 0 && found.len() < 256 && found.iter().all(|stat| stat.tid != next) {
        let Some(stat) = stat(next) else { break };
        next = stat.ppid;
        found.push(stat);
    }
    found
}

/// `pid (comm) state ppid ...`: the name may hold blanks and parentheses, so the last one ends it (man 5 proc_pid_stat).
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let (open, close) = (memchr::memchr(b'(', text)?, memchr::memrchr(b')', text)?);
    let tid = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let ppid = fields.next()?.parse().ok()?;
    // State is field 3 of the file, so the start time, field 22, is the 18th of what follows the parent's number.
    let start_ticks = fields.nth(17)?.parse().ok()?;
    Some(Stat { tid, comm: text.get(open + 1..close)?.to_vec(), state, ppid, start_ticks })
}

/// `NSpid:` has the numbers from the outermost to the innermost.
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
        // One number for each namespace, from that of this /proc down. Kernels without pid namespaces have no such line.
        is_nested: value("NSpid:").is_some_and(|numbers| numbers.split_ascii_whitespace().count() > 1),
    })
}

/// Lines `hierarchy:controllers:path`.
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

/// The entries of a directory that are numbers, ascending.
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
    fn names_with_blanks_and_parentheses() {
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
    fn the_call_that_a_task_sleeps_in() {
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
        let stat = Stat { tid: 1, comm: Vec::new(), state: b'S', ppid: 0, start_ticks: 500 };
        let ticks = rustix::param::clock_ticks_per_second();
        let nanoseconds = 500 * 1_000_000_000 / ticks;
        assert_eq!(stat.started(ClockOffsets { realtime: 0, boottime: 0 }), Time(nanoseconds));
        assert_eq!(stat.started(ClockOffsets { realtime: 0, boottime: 1_000 }), Time(nanoseconds - 1_000));
        assert_eq!(stat.started(ClockOffsets { realtime: 0, boottime: i64::MAX }), Time(0));
    }

    #[test]
    fn identities() {
        let status = parse_status(b"Name:\tx\nTgid:\t10\nPid:\t11\nPPid:\t1\nUid:\t1000\t0\t0\t1000\n").unwrap();
        assert_eq!(status, Status { tgid: 10, ppid: 1, uids: [1000, 0, 0, 1000], is_nested: false });
        let nested = |line: &str| parse_status(format!("Tgid:\t10\nPPid:\t1\nUid:\t0\t0\t0\t0\n{line}").as_bytes()).unwrap().is_nested;
        assert!(!nested("NSpid:\t10\n") && nested("NSpid:\t10\t1\n"));
        assert_eq!(parse_status(b"Tgid:\t10\nPPid:\t1\nUid:\t1000\n"), None);
    }

    #[test]
    fn pids_in_namespaces() {
        assert_eq!(parse_innermost_pid(b"Name:\tx\nNSpid:\t4711\t12\t1\n"), Some(1));
        assert_eq!(parse_innermost_pid(b"NSpid:\t4711\n"), Some(4711));
        assert_eq!((parse_innermost_pid(b"NSpid:\n"), parse_innermost_pid(b"Pid:\t1\n")), (None, None));
    }

    #[test]
    fn mappings() {
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
    fn cgroups_of_both_versions() {
        assert_eq!(parse_cgroup(b"0::/user.slice/a:b\n"), Some(b"/user.slice/a:b".to_vec()));
        assert_eq!(parse_cgroup(b"4:memory:/m\n3:cpu,perf_event:/p\n0::/\n"), Some(b"/p".to_vec()));
        assert_eq!(parse_cgroup(b"1:name=systemd:/\n0::/\n"), Some(b"/".to_vec()));
        assert_eq!(parse_cgroup(b"rubbish"), None);
    }

    #[test]
    fn this_process_and_its_parents() {
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
