//! perf_event_open(2): opening, steering and reading events.
//!
//! Every event of rtrace is opened the same way ([`Attr`]): CLOCK_MONOTONIC stamps, a watermark instead of a wake-up per record, the identifier first in each sample and last in each
//! other record, and a count that includes what was lost. How the rings are read is [`super::ring`]'s.

use super::lent;
use perf_event_open_sys as sys;
use perf_event_open_sys::bindings as b;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// The fields of every sample, in this order: identifier, pid and tid, time, then the tracepoint's bytes.
pub const SAMPLE_TRACEPOINT: u64 =
    b::PERF_SAMPLE_IDENTIFIER as u64 | b::PERF_SAMPLE_TID as u64 | b::PERF_SAMPLE_TIME as u64 | b::PERF_SAMPLE_RAW as u64;

/// The fields of a sample whose bytes say themselves when and by whom they were written, so that the kernel need not find that out again: identifier, then the bytes.
pub const SAMPLE_BPF: u64 = b::PERF_SAMPLE_IDENTIFIER as u64 | b::PERF_SAMPLE_RAW as u64;

/// As those of a tracepoint, with what it counted for, before the bytes.
pub const SAMPLE_WEIGHTED: u64 = SAMPLE_TRACEPOINT | b::PERF_SAMPLE_PERIOD as u64;

/// The fields of a page fault's sample: as above, with the instruction and the address instead of bytes.
pub const SAMPLE_FAULT: u64 = b::PERF_SAMPLE_IDENTIFIER as u64
    | b::PERF_SAMPLE_IP as u64
    | b::PERF_SAMPLE_TID as u64
    | b::PERF_SAMPLE_TIME as u64
    | b::PERF_SAMPLE_ADDR as u64;

/// The fields that end the records of an event that gives no samples.
pub const SAMPLE_SIDE_BAND: u64 = b::PERF_SAMPLE_IDENTIFIER as u64 | b::PERF_SAMPLE_TID as u64 | b::PERF_SAMPLE_TIME as u64;

/// What an event counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    /// A tracepoint that counts one each time, by the number in its `id` file.
    Tracepoint(u64),
    /// Any tracepoint. Some count more than one at a time (`__perf_count` in their definition: `sched_stat_runtime` counts nanoseconds), and give as many samples unless
    /// the sample says how many it stands for (perf_swevent_event() in kernel/events/core.c).
    Weighted(u64),
    /// How often this place is come by.
    Probe(Arc<Probe>),
    FaultsMajor,
    FaultsMinor,
    /// Nothing: a BPF program writes its records (bpf_perf_event_output).
    BpfOutput,
    /// The same for programs of the user's own, whose bytes say nothing of time and task.
    UserOutput,
    /// Nothing: the event carries the records about tasks, names and (if asked) maps.
    SideBand {
        maps: bool,
    },
}

/// Whom an event follows.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    /// One task.
    Task(i32),
    /// Whatever runs.
    Everyone,
    /// The tasks of a cgroup, by its directory.
    Cgroup(BorrowedFd<'a>),
}

/// Wherever the followed task runs, in place of a CPU's number. Such an event has no ring.
const ANY_CPU: u32 = u32::MAX;

/// A place of the kernel or of a program at which the kernel makes an event on the spot, without arguments, that nobody else sees.
///
/// Such an event must not be inherited: the kernel makes it anew in every fork, and reads the name of the file or function from the memory of whoever forks, with his privileges; where that fails, the
/// fork fails (perf_uprobe_init() in kernel/trace/trace_event_perf.c, called by inherit_event() in kernel/events/core.c).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The number of the kernel's `kprobe` or `uprobe` device.
    pub device: u32,
    /// The kernel's function, or the program's file.
    pub of: CString,
    /// From the function's beginning, or the file's.
    pub offset: u64,
    /// Where the function returns.
    pub returns: bool,
    /// Where in the file the program looks whether somebody listens; 0: nowhere.
    pub counter: u32,
}

/// How an event is opened.
#[derive(Clone, Debug)]
pub struct Attr {
    pub counts: Counts,
    /// New tasks of a followed task are followed too.
    pub inherit: bool,
    /// The reader is woken when this many bytes are unread.
    pub watermark: u32,
    pub stack: StackFields,
}

/// What of the stack comes with an event's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFields {
    /// The addresses that the kernel finds when it walks its own stack, and that of user space by frame pointers.
    pub kernel_chain: bool,
    pub user_chain: bool,
    /// PERF_REG_* bits of the machine's architecture: which registers of user space are copied.
    pub registers: u64,
    /// Bytes of user stack that are copied at most, a multiple of 8 below 65,528; none without registers.
    pub bytes: u32,
}

impl StackFields {
    /// The fields that a sample has for it.
    pub fn sample_type(self) -> u64 {
        let chain = if self.kernel_chain || self.user_chain { b::PERF_SAMPLE_CALLCHAIN as u64 } else { 0 };
        let registers = if self.registers != 0 { b::PERF_SAMPLE_REGS_USER as u64 } else { 0 };
        let bytes = if self.registers != 0 && self.bytes != 0 { b::PERF_SAMPLE_STACK_USER as u64 } else { 0 };
        chain | registers | bytes
    }
}

/// An open event, disabled at first.
#[derive(Debug)]
pub struct PerfEvent {
    fd: OwnedFd,
    id: u64,
    has_lost: bool,
}

/// What read(2) says of an event, children included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub issued: u64,
    /// Records that did not fit into the ring; `None` on kernels before 6.0, which do not count them.
    pub lost: Option<u64>,
}

impl Attr {
    fn raw(&self) -> b::perf_event_attr {
        let mut attr = b::perf_event_attr { size: size_of::<b::perf_event_attr>() as u32, ..Default::default() };
        let software = b::PERF_TYPE_SOFTWARE;
        let (kind, config, sample_type) = match &self.counts {
            Counts::Tracepoint(id) => (b::PERF_TYPE_TRACEPOINT, *id, SAMPLE_TRACEPOINT),
            Counts::Weighted(id) => (b::PERF_TYPE_TRACEPOINT, *id, SAMPLE_WEIGHTED),
            Counts::Probe(probe) => (probe.device, u64::from(probe.returns) | u64::from(probe.counter) << 32, SAMPLE_TRACEPOINT),
            Counts::FaultsMajor => (software, u64::from(b::PERF_COUNT_SW_PAGE_FAULTS_MAJ), SAMPLE_FAULT),
            Counts::FaultsMinor => (software, u64::from(b::PERF_COUNT_SW_PAGE_FAULTS_MIN), SAMPLE_FAULT),
            Counts::BpfOutput => (software, u64::from(b::PERF_COUNT_SW_BPF_OUTPUT), SAMPLE_BPF),
            Counts::UserOutput => (software, u64::from(b::PERF_COUNT_SW_BPF_OUTPUT), SAMPLE_TRACEPOINT),
            Counts::SideBand { .. } => (software, u64::from(b::PERF_COUNT_SW_DUMMY), SAMPLE_SIDE_BAND),
        };
        attr.type_ = kind;
        attr.config = config;
        attr.sample_type = sample_type | self.stack.sample_type();
        attr.sample_regs_user = self.stack.registers;
        attr.sample_stack_user = self.stack.bytes;
        attr.set_exclude_callchain_kernel(u64::from(!self.stack.kernel_chain));
        attr.set_exclude_callchain_user(u64::from(!self.stack.user_chain));
        attr.__bindgen_anon_1.sample_period = 1;
        attr.read_format = u64::from(b::PERF_FORMAT_LOST);
        attr.set_disabled(1);
        attr.set_inherit(u64::from(self.inherit));
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = self.watermark;
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_sample_id_all(1);
        if let Counts::Probe(probe) = &self.counts {
            // The kernel reads the string by this address while the event is made, and not later.
            attr.__bindgen_anon_3.config1 = probe.of.as_ptr() as u64;
            attr.__bindgen_anon_4.config2 = probe.offset;
        }
        if let Counts::SideBand { maps } = self.counts {
            attr.set_task(1);
            attr.set_comm(1);
            attr.set_comm_exec(1);
            attr.set_mmap(u64::from(maps));
            attr.set_mmap2(u64::from(maps));
        }
        attr
    }
}

impl PerfEvent {
    /// What a BPF program can be put on. The kernel keeps programs by place: one event, which stays disabled, is enough for all CPUs; `cpu` is one that is online.
    ///
    /// # Errors
    /// Those of [`PerfEvent::open`].
    pub fn carrier(counts: Counts, cpu: u32) -> io::Result<PerfEvent> {
        PerfEvent::open(&Attr { counts, inherit: false, watermark: 1, stack: StackFields::default() }, On::Everyone, cpu)
    }

    /// What tells by its end that a task has ended, whatever became of its number: nobody inherits it, and it has no records.
    ///
    /// # Errors
    /// Those of [`PerfEvent::open`].
    pub fn guard(tid: i32, cpu: u32) -> io::Result<PerfEvent> {
        let attr = Attr { counts: Counts::SideBand { maps: false }, inherit: false, watermark: 1, stack: StackFields::default() };
        PerfEvent::open(&attr, On::Task(tid), cpu)
    }

    /// The task that it follows has ended, and all that inherited it. Only an event with a ring can tell (`perf_poll()` in kernel/events/core.c).
    pub fn has_ended(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut polls = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::empty())];
        poll(&mut polls, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok() && polls[0].revents().contains(PollFlags::HUP)
    }

    /// Opens an event on one CPU.
    ///
    /// # Errors
    /// perf_event_open(2)'s: EACCES or EPERM without the privilege, EMFILE out of descriptors, ESRCH when the task is gone, ENODEV when the CPU is offline; of a probe ENOENT and EADDRNOTAVAIL where
    /// there is no such function, EINVAL where the kernel lets nobody probe.
    pub fn open(attr: &Attr, on: On, cpu: u32) -> io::Result<PerfEvent> {
        let mut raw = attr.raw();
        match Self::open_raw(&mut raw, on, cpu) {
            Ok(fd) => Self::new(fd, true),
            // Kernels before 6.0 refuse PERF_FORMAT_LOST.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                raw.read_format = 0;
                Self::new(Self::open_raw(&mut raw, on, cpu)?, false)
            }
            Err(error) => Err(error),
        }
    }

    fn open_raw(raw: &mut b::perf_event_attr, on: On, cpu: u32) -> io::Result<OwnedFd> {
        let (pid, extra) = match on {
            On::Task(tid) => (tid, 0),
            On::Everyone => (-1, 0),
            On::Cgroup(dir) => (dir.as_raw_fd(), u64::from(b::PERF_FLAG_PID_CGROUP)),
        };
        let flags = u64::from(b::PERF_FLAG_FD_CLOEXEC) | extra;
        // SAFETY: `raw` is a whole perf_event_attr whose size field is its size; the kernel reads (and on E2BIG writes) no more than that, and of a probe a string with its NUL, which the `Attr` holds until the call is over.
        let fd = lent::with(|| unsafe { sys::perf_event_open(raw, pid, cpu as i32, -1, flags as _) });
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call gave this descriptor to us and to nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn new(fd: OwnedFd, has_lost: bool) -> io::Result<PerfEvent> {
        let mut id = 0u64;
        // SAFETY: PERF_EVENT_IOC_ID writes one u64 to the pointer, which is a live local.
        check(unsafe { sys::ioctls::ID(fd.as_raw_fd(), &mut id) })?;
        Ok(PerfEvent { fd, id, has_lost })
    }

    /// The identifier in the event's records, and in those of the events that inherit from it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sends the event's records to another event's ring; both must be on the same CPU.
    pub fn set_output(&self, ring: BorrowedFd) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes a descriptor by value and no memory.
        check(unsafe { sys::ioctls::SET_OUTPUT(self.fd.as_raw_fd(), ring.as_raw_fd()) })
    }

    /// Lets only records through for which the kernel's filter expression holds (Documentation/trace/events.rst).
    pub fn set_filter(&self, filter: &CStr) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_SET_FILTER reads a NUL-terminated string and does not keep or write it; the binding's *mut is the header's doing.
        check(unsafe { sys::ioctls::SET_FILTER(self.fd.as_raw_fd(), filter.as_ptr().cast_mut()) })
    }

    /// Lets a BPF program (BPF_PROG_TYPE_TRACEPOINT) run whenever the event's tracepoint is hit, on every CPU, enabled or not, until the event is closed.
    pub fn set_program(&self, program: BorrowedFd) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_SET_BPF takes a descriptor by value and no memory.
        check(lent::with(|| unsafe { sys::ioctls::SET_BPF(self.fd.as_raw_fd(), program.as_raw_fd() as u32) }))
    }

    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_ENABLE takes no memory.
        check(unsafe { sys::ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_DISABLE takes no memory.
        check(unsafe { sys::ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }

    /// How often it happened, and how many of its records did not fit.
    pub fn count(&self) -> io::Result<Count> {
        let mut words = [0u8; 16];
        let len = rustix::io::read(&self.fd, &mut words)?;
        let word = |i: usize| u64::from_ne_bytes(words[i * 8..][..8].try_into().unwrap_or_default());
        Ok(Count { issued: word(0), lost: (self.has_lost && len == 16).then(|| word(1)) })
    }

    /// The BPF programs on the same tracepoint, any of which can drop our samples. Needs CAP_PERFMON; empty without it.
    pub fn programs(&self) -> Vec<u32> {
        const MAX: usize = 64;
        #[repr(C)]
        struct Query {
            ids_len: u32,
            prog_cnt: u32,
            ids: [u32; MAX],
        }
        let mut query = Query { ids_len: MAX as u32, prog_cnt: 0, ids: [0; MAX] };
        // SAFETY: PERF_EVENT_IOC_QUERY_BPF reads ids_len and writes prog_cnt and at most ids_len ids behind it; Query has room for exactly that many.
        let answer = unsafe { sys::ioctls::QUERY_BPF(self.fd.as_raw_fd(), (&raw mut query).cast()) };
        if answer != 0 {
            return Vec::new();
        }
        query.ids[..MAX.min(query.prog_cnt as usize)].to_vec()
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes the kernel ready for events that follow tasks or cgroups: the first after a pause of a second waits until all CPUs know of it, 5-25 ms, and all others wait with it
/// (perf_sched_events in account_event() of kernel/events/core.c). A thread waits instead, beside whatever is done until such events are opened.
pub fn get_ready_to_follow() {
    let open = || {
        let event = PerfEvent::guard(0, ANY_CPU);
        lent::give_up();
        // Closing it again is right: the kernel stays ready for a second. And if it cannot be opened, those that matter will say why.
        drop(event);
    };
    // Without a thread they wait themselves.
    let _ = std::thread::Builder::new().name("rtrace-ready".to_owned()).spawn(open);
}

impl From<PerfEvent> for OwnedFd {
    fn from(event: PerfEvent) -> OwnedFd {
        event.fd
    }
}

fn check(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
