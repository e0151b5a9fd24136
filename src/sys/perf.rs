//! perf_event_open(2): opens, controls and reads events.
//!
//! All events of rtrace are opened alike ([`Attr`]): with CLOCK_MONOTONIC time stamps, a watermark instead of a wake-up
//! per record, the identifier first in each sample and last in each other record, and a count that includes lost
//! records. The module [`super::ring`] reads the ring buffers.

mod rights;

pub use rights::On;

use super::file_capabilities;
use perf_event_open_sys as sys;
use perf_event_open_sys::bindings as b;
use rights::Rights;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// The fields of a tracepoint's sample, in this order: identifier, pid and tid, time, raw bytes.
pub const SAMPLE_TRACEPOINT: u64 =
    b::PERF_SAMPLE_IDENTIFIER as u64 | b::PERF_SAMPLE_TID as u64 | b::PERF_SAMPLE_TIME as u64 | b::PERF_SAMPLE_RAW as u64;

/// The fields of a BPF program's sample: identifier, raw bytes. The raw bytes contain the time and the task, so that
/// the kernel need not determine them again.
pub const SAMPLE_BPF: u64 = b::PERF_SAMPLE_IDENTIFIER as u64 | b::PERF_SAMPLE_RAW as u64;

/// The fields of a tracepoint's sample, with the period before the raw bytes.
pub const SAMPLE_WEIGHTED: u64 = SAMPLE_TRACEPOINT | b::PERF_SAMPLE_PERIOD as u64;

/// The fields of a page fault's sample: those of a tracepoint's, with the instruction pointer and the data address
/// instead of the raw bytes.
pub const SAMPLE_FAULT: u64 = b::PERF_SAMPLE_IDENTIFIER as u64
    | b::PERF_SAMPLE_IP as u64
    | b::PERF_SAMPLE_TID as u64
    | b::PERF_SAMPLE_TIME as u64
    | b::PERF_SAMPLE_ADDR as u64;

/// The fields that end the records of an event without samples.
pub const SAMPLE_SIDE_BAND: u64 = b::PERF_SAMPLE_IDENTIFIER as u64 | b::PERF_SAMPLE_TID as u64 | b::PERF_SAMPLE_TIME as u64;

/// What an event counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    /// A tracepoint whose count increases by one each time, by the number in its `id` file.
    Tracepoint(u64),
    /// Any tracepoint. Some count more than one at a time (`__perf_count` in their definition: `sched_stat_runtime`
    /// counts nanoseconds). Such an event writes that many samples, unless its samples have a period
    /// (perf_swevent_event() in kernel/events/core.c).
    Weighted(u64),
    /// Executions of a place in the kernel or in a program.
    Probe(Arc<Probe>),
    /// Page faults that needed I/O (PERF_COUNT_SW_PAGE_FAULTS_MAJ).
    FaultsMajor,
    /// Page faults without I/O (PERF_COUNT_SW_PAGE_FAULTS_MIN).
    FaultsMinor,
    /// Nothing: a BPF program writes its records by bpf_perf_event_output().
    BpfOutput,
    /// Nothing: a BPF program of the user writes its records. The kernel adds their time and task.
    UserOutput,
    /// Nothing: the event writes the records about tasks, comms and, with `maps`, mappings.
    SideBand {
        /// Whether it writes a record for each mapping of a file too.
        maps: bool,
    },
}

/// In place of a CPU's number: any CPU on which the followed task runs. Such an event has no ring.
const ANY_CPU: u32 = u32::MAX;

/// A place in the kernel or in a program for which the kernel creates a local event: it has no arguments, and other
/// processes do not see it.
///
/// Such an event must not be inherited. The kernel creates it anew in each fork, and reads the name of the file or
/// function from the memory and with the privileges of the forking task. If that fails, the fork fails
/// (perf_uprobe_init() in kernel/trace/trace_event_perf.c, called by inherit_event() in kernel/events/core.c).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The PMU type of the kernel's `kprobe` or `uprobe` device.
    pub device: u32,
    /// The function of the kernel, or the path of the program's file.
    pub of: CString,
    /// The offset from the beginning of the function or file.
    pub offset: u64,
    /// Whether the event occurs at the function's return.
    pub returns: bool,
    /// The file offset of the reference counter by which the program sees that the probe is active (`ref_ctr_offset`),
    /// or 0 for none.
    pub counter: u32,
}

/// The attributes with which an event is opened.
#[derive(Clone, Debug)]
pub struct Attr {
    /// What the event counts, and thereby its type and configuration.
    pub counts: Counts,
    /// Whether tasks that a followed task creates are followed too.
    pub inherit: bool,
    /// The number of unread bytes at which the reader is woken.
    pub watermark: u32,
    /// The stack data of each sample.
    pub stack: StackFields,
    /// What becomes of the event's records in the ring.
    pub delivery: Delivery,
}

/// What becomes of an event's records in its ring. All events that write to a ring agree on whether it is overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// They wait until they are read. The kernel drops further ones while the ring is full, and wakes the reader at
    /// the watermark.
    #[default]
    Kept,
    /// They overwrite the oldest ones. The kernel writes them backwards, so that the newest record comes first
    /// (`write_backward`), and the reader is woken by nothing that it should wait for.
    Overwriting,
    /// They are kept, and each of them wakes the reader of the ring (`wakeup_events`).
    Waking,
}

/// The stack data of an event's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFields {
    /// Whether the kernel walks its own stack.
    pub kernel_chain: bool,
    /// Whether the kernel walks the user-space stack by frame pointers.
    pub user_chain: bool,
    /// The user-space registers that are copied, as PERF_REG_* bits of the machine's architecture.
    pub registers: u64,
    /// The most bytes of user stack that are copied, a multiple of 8 below 65,528. None are copied without registers.
    pub bytes: u32,
}

impl StackFields {
    /// Returns the sample fields for this stack data.
    pub fn sample_type(self) -> u64 {
        let chain = if self.kernel_chain || self.user_chain { b::PERF_SAMPLE_CALLCHAIN as u64 } else { 0 };
        let registers = if self.registers != 0 { b::PERF_SAMPLE_REGS_USER as u64 } else { 0 };
        let bytes = if self.registers != 0 && self.bytes != 0 { b::PERF_SAMPLE_STACK_USER as u64 } else { 0 };
        chain | registers | bytes
    }
}

/// An open event, which is disabled at first.
#[derive(Debug)]
pub struct PerfEvent {
    fd: OwnedFd,
    id: u64,
    has_lost: bool,
}

/// The counts that read(2) returns for an event, including those of inherited events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often the event happened, whether or not a record was written.
    pub issued: u64,
    /// Records that did not fit into the ring. `None` on kernels before 6.0, which do not count them.
    pub lost: Option<u64>,
}

/// The attributes of an event as numbers, for files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttrNumbers {
    /// PERF_TYPE_*, or the number of a device.
    pub kind: u32,
    /// The number of the tracepoint or of the software event.
    pub config: u64,
    /// The bits behind `read_format`, from `disabled` on.
    pub flags: u64,
    /// `sample_regs_user`
    pub registers: u64,
    /// `sample_stack_user`
    pub stack_bytes: u32,
}

impl AttrNumbers {
    /// A software event that never happens, and whose samples others write.
    pub fn dummy() -> AttrNumbers {
        let attr = Attr {
            counts: Counts::SideBand { maps: false },
            inherit: false,
            watermark: 0,
            stack: StackFields::default(),
            delivery: Delivery::Kept,
        };
        attr.numbers()
    }
}

impl Attr {
    /// Returns the attributes as numbers. Those of a probe lack its place.
    pub fn numbers(&self) -> AttrNumbers {
        let raw = self.raw();
        AttrNumbers {
            kind: raw.type_,
            config: raw.config,
            flags: raw._bitfield_1.get(0, 64),
            registers: raw.sample_regs_user,
            stack_bytes: raw.sample_stack_user,
        }
    }

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
        if self.delivery == Delivery::Waking {
            attr.__bindgen_anon_2.wakeup_events = 1;
        } else {
            attr.set_watermark(1);
            attr.__bindgen_anon_2.wakeup_watermark = self.watermark;
        }
        attr.set_write_backward(u64::from(self.delivery == Delivery::Overwriting));
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_sample_id_all(1);
        if let Counts::Probe(probe) = &self.counts {
            // The kernel reads the string at this address only while it creates the event.
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
    /// Opens an event to which a BPF program can be attached. The kernel keeps the programs of a tracepoint or probe in
    /// one place for all CPUs, so a single event, which stays disabled, is enough. `cpu` is an online CPU.
    ///
    /// # Errors
    /// Those of [`PerfEvent::open`].
    pub fn for_program(counts: Counts, cpu: u32) -> io::Result<PerfEvent> {
        let attr = Attr { counts, inherit: false, watermark: 1, stack: StackFields::default(), delivery: Delivery::Kept };
        PerfEvent::open_with(Rights::Lent, &attr, On::Everyone, cpu)
    }

    /// Opens an event with all rights that rtrace has, lent ones too, and closes it at once.
    ///
    /// # Errors
    /// Those of [`PerfEvent::open`].
    pub fn attempt(attr: &Attr, on: On, cpu: u32) -> io::Result<()> {
        PerfEvent::open_with(Rights::Lent, attr, on, cpu).map(drop)
    }

    /// Opens an event that ends when a task ends, even if the task's TID is reused. No task inherits it, and it has no
    /// records.
    ///
    /// # Errors
    /// Those of [`PerfEvent::open`].
    pub fn guard(tid: i32, cpu: u32) -> io::Result<PerfEvent> {
        let attr = Attr {
            counts: Counts::SideBand { maps: false },
            inherit: false,
            watermark: 1,
            stack: StackFields::default(),
            delivery: Delivery::Kept,
        };
        PerfEvent::open(&attr, On::Task(tid), cpu)
    }

    /// Returns whether the followed task and all tasks that inherited the event have ended. This works only for an
    /// event with a ring (`perf_poll()` in kernel/events/core.c).
    pub fn has_ended(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut polls = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::empty())];
        poll(&mut polls, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok() && polls[0].revents().contains(PollFlags::HUP)
    }

    /// Opens an event on one CPU.
    ///
    /// # Errors
    /// The errors of perf_event_open(2): EACCES or EPERM without the privilege, EMFILE out of descriptors, ESRCH if the
    /// task has exited, ENODEV if the CPU is offline. For a probe: ENOENT and EADDRNOTAVAIL if the function does not
    /// exist, EINVAL if it must not be probed.
    pub fn open(attr: &Attr, on: On, cpu: u32) -> io::Result<PerfEvent> {
        PerfEvent::open_with(Rights::of(attr, on), attr, on, cpu)
    }

    fn open_with(rights: Rights, attr: &Attr, on: On, cpu: u32) -> io::Result<PerfEvent> {
        let mut raw = attr.raw();
        // The kernel's own doings are not for all users. Records about tasks are written nevertheless.
        raw.set_exclude_kernel(u64::from(rights == Rights::Own && file_capabilities::are_present()));
        match Self::open_raw(rights, &mut raw, on, cpu) {
            Ok(fd) => Self::new(fd, true),
            // Kernels before 6.0 reject PERF_FORMAT_LOST.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                raw.read_format = 0;
                Self::new(Self::open_raw(rights, &mut raw, on, cpu)?, false)
            }
            Err(error) => Err(error),
        }
    }

    fn open_raw(rights: Rights, raw: &mut b::perf_event_attr, on: On, cpu: u32) -> io::Result<OwnedFd> {
        let (pid, extra) = match on {
            On::Task(tid) | On::Command(tid) => (tid, 0),
            On::Everyone => (-1, 0),
            On::Cgroup(dir) => (dir.as_raw_fd(), u64::from(b::PERF_FLAG_PID_CGROUP)),
        };
        let flags = u64::from(b::PERF_FLAG_FD_CLOEXEC) | extra;
        // SAFETY: `raw` is a complete perf_event_attr whose size field is its size. The kernel reads (and on E2BIG
        // writes) no more than that. For a probe, it reads a string with its NUL, which the `Attr` holds during the
        // call.
        let fd = rights.during(|| unsafe { sys::perf_event_open(raw, pid, cpu as i32, -1, flags as _) });
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call returned a new descriptor, which nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn new(fd: OwnedFd, has_lost: bool) -> io::Result<PerfEvent> {
        let mut id = 0u64;
        // SAFETY: PERF_EVENT_IOC_ID writes one u64 to the pointer, which is a live local.
        check(unsafe { sys::ioctls::ID(fd.as_raw_fd(), &mut id) })?;
        Ok(PerfEvent { fd, id, has_lost })
    }

    /// Returns the identifier in the records of the event and of the events that inherit from it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Directs the event's records to another event's ring. Both must be on the same CPU.
    pub fn set_output(&self, ring: BorrowedFd) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes a descriptor by value and no memory.
        check(unsafe { sys::ioctls::SET_OUTPUT(self.fd.as_raw_fd(), ring.as_raw_fd()) })
    }

    /// Sets the kernel's filter for the event (Documentation/trace/events.rst).
    pub fn set_filter(&self, filter: &CStr) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_SET_FILTER reads a NUL-terminated string, which it neither keeps nor writes. The
        // binding's *mut comes from the C header.
        check(unsafe { sys::ioctls::SET_FILTER(self.fd.as_raw_fd(), filter.as_ptr().cast_mut()) })
    }

    /// Attaches a BPF program (BPF_PROG_TYPE_TRACEPOINT) to the event's tracepoint. It runs on every CPU, whether the
    /// event is enabled or not, until the event is closed.
    pub fn set_program(&self, program: BorrowedFd) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_SET_BPF takes a descriptor by value and no memory.
        check(file_capabilities::with_raised(|| unsafe { sys::ioctls::SET_BPF(self.fd.as_raw_fd(), program.as_raw_fd() as u32) }))
    }

    /// Starts counting and writing of records.
    ///
    /// # Errors
    /// Fails as PERF_EVENT_IOC_ENABLE.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_ENABLE takes no memory.
        check(unsafe { sys::ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Stops counting and writing of records.
    ///
    /// # Errors
    /// Fails as PERF_EVENT_IOC_DISABLE.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: PERF_EVENT_IOC_DISABLE takes no memory.
        check(unsafe { sys::ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Reads the event's count and the number of its lost records.
    pub fn count(&self) -> io::Result<Count> {
        let mut words = [0u8; 16];
        let len = rustix::io::read(&self.fd, &mut words)?;
        let word = |i: usize| u64::from_ne_bytes(words[i * 8..][..8].try_into().unwrap_or_default());
        Ok(Count { issued: word(0), lost: (self.has_lost && len == 16).then(|| word(1)) })
    }

    /// Returns the IDs of the BPF programs on the same tracepoint, any of which can drop this event's samples. This
    /// requires CAP_PERFMON; without it, the list is empty.
    pub fn programs(&self) -> Vec<u32> {
        const MAX: usize = 64;
        #[repr(C)]
        struct Query {
            ids_len: u32,
            prog_cnt: u32,
            ids: [u32; MAX],
        }
        let mut query = Query { ids_len: MAX as u32, prog_cnt: 0, ids: [0; MAX] };
        // SAFETY: PERF_EVENT_IOC_QUERY_BPF reads ids_len, and writes prog_cnt and at most ids_len IDs after it. Query
        // has room for exactly that many.
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

/// Prepares the kernel for events that follow tasks or cgroups, in a thread.
///
/// After a second without such an event, the first one waits 5-25 ms until all CPUs are informed, and all others wait
/// with it (perf_sched_events in account_event() of kernel/events/core.c). Here a thread waits, in parallel with the
/// work that precedes the opening of such events.
pub fn get_ready_to_follow() {
    let open = || {
        let event = PerfEvent::guard(0, ANY_CPU);
        file_capabilities::drop_all();
        // The event may be closed at once, since the kernel stays prepared for a second. If it cannot be opened, the
        // events that are opened later report why.
        drop(event);
    };
    // Without the thread, those events wait themselves.
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
