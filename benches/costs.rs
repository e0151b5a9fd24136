//! Measures rtrace's own work in nanoseconds per record, per call and per line; each is the best of many measurements.
//!
//! ```text
//! cargo bench --bench costs                   # everything
//! cargo bench --bench costs -- lines          # only the lines
//! cargo bench --bench costs -- lines 1000     # writes each line 1000 times and measures nothing
//! cargo bench --bench costs -- lines 1000000 'writev of two'   # writes one of the lines, in both styles
//! ```
//! The last two forms are for profilers. The first of them is also for counting instructions, which a busy machine
//! does not disturb. callgrind writes a file for each line and style, in the order in which they are printed; `totals:`
//! in it is the number of instructions of all 1000.
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect=costs::repeat --dump-after=costs::repeat \
//!     target/release/deps/costs-* lines 1000
//! ```

use rtrace::events::{
    Abi, Call, CallFile, CallId, Event, EventIndex, EventKind, ExitState, FdPlace, File, Piece, PieceState, PieceTime, Socket,
    SocketAddresses, TaskId, Time,
};
use rtrace::output::{Nameless, Output, Sink, StyleContext, Summary, Tasks, View, create_style};
use rtrace::program::{self, Parsed, Request, Trace};
use rtrace::records::{Body, EventSpec, EventTable, Merge, RecordWriter, Role, Round, SAMPLE_TRACEPOINT, Session};
use rtrace::tables::{SYSCALLS, syscall_by_name};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const START: Time = Time(1_000_000_000);
/// The end of a call that is printed.
const END: Time = Time(START.0 + 19_000);
/// CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds, so that times have as many digits as in a trace.
const REALTIME_OFFSET: i64 = 1_763_694_000_123_456_789;
const TASK: TaskId = TaskId { pid: 20131, tid: 20131 };
const CWD: u64 = -100i64 as u64;

fn main() {
    // cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            records();
            lines(None, cost);
            summary();
        }
        ["lines"] => lines(None, cost),
        ["lines", count, only @ ..] if only.len() < 2 => {
            let count = count.parse().expect("the second word is how often each line is written");
            lines(only.first().copied(), |work| {
                repeat(count, work);
                format!("{count} times")
            });
        }
        _ => panic!("the words are `lines`, a number and the name of a line"),
    }
}

/// Measures merging, for several numbers of ring buffers and of consecutive records in one of them.
fn records() {
    const PER_ROUND: u64 = 20_000;
    let event = |name: &str, role| EventSpec {
        name: name.to_owned(),
        role,
        sample_type: SAMPLE_TRACEPOINT,
        format: None,
        shown: true,
        terms: Default::default(),
    };
    let events = vec![event("raw_syscalls:sys_enter", Role::RawEnter), event("raw_syscalls:sys_exit", Role::RawExit)];
    let ids = [(100, EventIndex(0)), (101, EventIndex(1))].into_iter().collect();
    let table = EventTable { events, ids, ..EventTable::default() };
    let raw = [0; 68];
    for (rings, burst) in [(1, 1), (2, 1), (2, 50), (16, 1), (16, 50), (128, 50)] {
        let mut merge = Merge::new();
        let (mut adding, mut releasing, mut count, mut sum) = (Duration::ZERO, Duration::ZERO, 0u64, 0u64);
        for n in 0..100 {
            let mut writers: Vec<_> = (0..rings).map(|cpu| RecordWriter::new(&table, cpu)).collect();
            for at in 0..PER_ROUND {
                let ring = (at / burst % u64::from(rings)) as usize;
                writers[ring].sample(EventIndex((at % 2) as u16), TASK, Time(n * PER_ROUND + at), &raw);
            }
            let chunks = writers.iter_mut().map(RecordWriter::chunk).collect();
            let round = Round { started: Time(n * PER_ROUND), chunks, synthesized: Vec::new() };
            let start = Instant::now();
            merge.add(&table, round);
            let added = Instant::now();
            merge.release(&table, usize::MAX, |record| {
                count += 1;
                if let Body::Sample(sample) = record.body {
                    sum = sum.wrapping_add(u64::from(sample.raw[sample.raw.len() - 1]) + record.task.tid as u64 + u64::from(record.cpu));
                }
            });
            releasing += added.elapsed();
            adding += added - start;
        }
        black_box(sum);
        let ns = |time: Duration| time.as_nanos() as f64 / count as f64;
        println!("a record of {rings} ring buffers, in bursts of {burst}: add {:.1} ns, release {:.1} ns", ns(adding), ns(releasing));
    }
}

/// Measures decoding and printing each line, or only that of this name. `measure` measures the work for one line.
fn lines(only: Option<&str>, measure: impl Fn(&mut dyn FnMut()) -> String) {
    let stat = words(&[0x801, 7, 1, 0o100_644, 100, 0, 4096, 512, 8, 1, 2, 3, 4, 5, 6, 0, 0, 0]);
    let inet = [&2u16.to_le_bytes()[..], &[0, 80, 127, 0, 0, 1], &[0; 8]].concat();
    let of_file = |name: &str| call(name, &[CWD, 0x5000, 0x1000, 0], 0);
    let path = || of_file("newfstatat").entry(1, b"/usr/lib/locale/locale-archive\0");
    let opened = || call("openat", &[CWD, 0x7fff_1000, 0o2000000], 3).entry(1, b"/etc/passwd\0").file(FdPlace::Return, "/etc/passwd");
    let read = || call("read", &[3, 0x1000, 832], 832);
    let written = || call("writev", &[1, 0x1000, 2], 5).entry(1, &words(&[0x5000, 3, 0x6000, 2]));
    let polled = |ready: u64| words(&[3 | 1 << 32 | ready, 4 | 4 << 32]);
    for (name, made) in [
        ("read", read()),
        ("read, path", read().file(FdPlace::Arg(0), "/usr/lib/x86_64-linux-gnu/libc.so.6")),
        ("read, 32 bytes", read().exit(1, &[b'a'; 32]).of(832)),
        ("openat", opened()),
        ("openat, failed", call("openat", &[CWD, 0x7fff_1000, 0o2000000], -2).entry(1, b"/usr/lib/locale/locale-archive\0")),
        ("newfstatat", of_file("newfstatat")),
        ("newfstatat, path", path()),
        ("newfstatat, path and stat", path().exit(2, &stat)),
        ("clock_nanosleep", call("clock_nanosleep", &[1, 0, 0x1000, 0], 0).entry(2, &words(&[1, 500]))),
        ("connect", call("connect", &[3, 0x1000, 16], 0).entry(1, &inet)),
        ("writev of two", written().at(1, PieceTime::Entry, 0x5000, b"abc").at(1, PieceTime::Entry, 0x6000, b"de")),
        ("rt_sigprocmask", call("rt_sigprocmask", &[0, 0x1000, 0, 8], 0).entry(1, &words(&[6]))),
        ("poll of two", call("poll", &[0x1000, 2, 100], 1).entry(0, &polled(0)).exit(0, &polled(1 << 48))),
    ]
    .into_iter()
    .chain(structs())
    .filter(|(name, _)| only.is_none_or(|only| only == *name))
    {
        let [perf, json] = [&[][..], &["--json"]].map(|options| measure_line(&made.0, options, &measure));
        println!("a line of {name}: {perf}, as JSON {json}");
    }
}

/// Returns calls whose structs depend on other arguments: those of which `benches/structs` measures the kernel half.
fn structs() -> [(&'static str, CallBuilder); 4] {
    const SOL_SOCKET: u64 = 1;
    const SO_LINGER: u64 = 13;
    const TCGETS: u64 = 0x5401;
    const BPF_MAP_LOOKUP_ELEM: u64 = 1;
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let termios =
        [numbers(&[0x500, 5, 0xbf, 0x8a3b]), b"\0\x03\x1c\x7f\x15\x04\0\x01\0\x11\x13\x1a\0\x12\x0f\x17\x16\0\0\0".to_vec()].concat();
    let attribute = |kind: u16, data: &[u8]| {
        let mut bytes = [(4 + data.len() as u16).to_le_bytes(), kind.to_le_bytes()].concat();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    // RTM_NEWLINK with IFLA_IFNAME, IFLA_MTU, and IFLA_INFO_KIND in IFLA_LINKINFO.
    let info = attribute(18 | 0x8000, &attribute(1, b"vlan\0"));
    let attributes = [attribute(3, b"eth0.7\0"), attribute(4, &1500u32.to_le_bytes()), info].concat();
    let message = [numbers(&[32 + attributes.len() as u32, 16, 0, 0]), vec![0; 16], attributes].concat();
    let length = message.len() as u64;
    let header = words(&[0, 0, 0x5000, 1, 0, 0, 0]);
    let sent = call("sendmsg", &[3, 0x1000, 0], length as i64).entry(1, &header).at(1, PieceTime::Entry, 0x5000, &words(&[0x6000, length]));
    let looked_up = call("bpf", &[BPF_MAP_LOOKUP_ELEM, 0x1000, 32], 0).entry(1, &words(&[5, 0x5000, 0x6000, 0]));
    [
        ("setsockopt of SO_LINGER", call("setsockopt", &[3, SOL_SOCKET, SO_LINGER, 0x1000, 8], 0).entry(3, &numbers(&[1, 30]))),
        ("ioctl with a struct termios", call("ioctl", &[3, TCGETS, 0x1000], 0).exit(2, &termios)),
        ("bpf: a lookup in a map", looked_up),
        ("sendmsg of a netlink message", sent.at(1, PieceTime::Entry, 0x6000, &message).netlink(0)),
    ]
}

/// Measures decoding a call and printing its line in the style that these options choose.
fn measure_line(call: &Call, options: &[&str], measure: impl Fn(&mut dyn FnMut()) -> String) -> String {
    let words = [&["rtrace", "--no-config"], options, &["true"]].concat();
    let session = Session { realtime_offset: REALTIME_OFFSET, ..Session::default() };
    let mut style = create_style(&request(&words).show, &session, false);
    let context = StyleContext { session: &session, comm: &|_| None, cgroup: &|_| None, names: &Nameless };
    let mut out = Vec::with_capacity(1 << 20);
    let event = Event { time: END, cpu: 3, task: TASK, comm: Some(Arc::from(&b"sh"[..])), kind: EventKind::Call(Box::new(call.clone())) };
    measure(&mut || {
        style.event(&mut out, &event, &context);
        if out.len() > 1 << 19 {
            out.clear();
        }
    })
}

/// Returns the nanoseconds of the work for one line.
fn cost(work: &mut dyn FnMut()) -> String {
    format!("{:.0} ns", best(20, 5_000, work))
}

/// Does the work `count` times. A profiler finds this function by its name.
#[inline(never)]
fn repeat(count: u32, work: &mut dyn FnMut()) {
    (0..count).for_each(|_| work());
}

/// Measures adding one call to a summary.
fn summary() {
    let trace = request(&["rtrace", "--no-config", "-s", "-o", "/dev/null", "true"]);
    let output = Output::open(&trace.output).expect("/dev/null can be opened");
    let mut sink = Summary::new(&trace.show, output.shared());
    let events: Vec<Event> = (0..1000)
        .map(|i| {
            let exit = ExitState::Returned { at: Time(START.0 + 500 + 37 * i), ret: i as i64 % 3 - 1 };
            let call = Call { nr: 9990 + i as i64 % 5, exit, ..call("read", &[], 0).0 };
            let task = TaskId { pid: 1, tid: 1 + i as i32 / 10 % 4 };
            Event { time: START, cpu: 3, task, comm: None, kind: EventKind::Call(Box::new(call)) }
        })
        .collect();
    let (session, tasks) = (Session::default(), Tasks::default());
    let view = View { session: &session, tasks: &tasks, now: START, names: &Nameless };
    let mut next = events.iter().cycle();
    let cost = best(100, events.len() as u32, || {
        let event = next.next().expect("there are some");
        sink.event(event, &view).expect("nothing is written yet");
    });
    println!("a call in a summary: {cost:.1} ns");
}

/// Parses a command line for a trace.
fn request(words: &[&str]) -> Trace {
    match program::parse(words.iter().map(Into::into), &program::environment()) {
        Parsed::Request(Request::Trace(trace)) => *trace,
        _ => unreachable!("these are words for a trace"),
    }
}

/// Returns the nanoseconds per repetition of `work`, in the best of several measurements with `each` repetitions.
fn best(measurements: u32, each: u32, mut work: impl FnMut()) -> f64 {
    let mut measure = || {
        let begin = Instant::now();
        (0..each).for_each(|_| work());
        begin.elapsed().as_nanos() as f64 / f64::from(each)
    };
    (0..measurements).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A builder for a call with copies of its memory.
struct CallBuilder(Call);

fn call(name: &str, args: &[u64], ret: i64) -> CallBuilder {
    let row = &SYSCALLS[usize::from(syscall_by_name(name).expect("the call has a row"))];
    let mut registers = [0; 6];
    registers[..args.len()].copy_from_slice(args);
    CallBuilder(Call {
        exit: ExitState::Returned { at: END, ret },
        args: Some(registers),
        ..Call::new(
            CallId { tid: TASK.tid, start: START },
            Abi::X86_64,
            i64::from(row.numbers[Abi::X86_64 as usize].expect("x86-64 has the call")),
        )
    })
}

impl CallBuilder {
    /// Adds a complete copy of the memory at an address.
    fn at(mut self, arg: u8, when: PieceTime, address: u64, bytes: &[u8]) -> CallBuilder {
        let (start, len) = (self.0.payload.len() as u32, bytes.len() as u32);
        self.0.payload.extend_from_slice(bytes);
        self.0.pieces.push(Piece { arg, when, address, wanted: u64::from(len), start, len, state: PieceState::Ok });
        self
    }

    fn entry(self, arg: u8, bytes: &[u8]) -> CallBuilder {
        let address = self.0.args.unwrap_or_default()[usize::from(arg)];
        self.at(arg, PieceTime::Entry, address, bytes)
    }

    fn exit(self, arg: u8, bytes: &[u8]) -> CallBuilder {
        let address = self.0.args.unwrap_or_default()[usize::from(arg)];
        self.at(arg, PieceTime::Exit, address, bytes)
    }

    /// Marks the last copy as cut: the call names `wanted` bytes.
    fn of(mut self, wanted: u64) -> CallBuilder {
        if let Some(last) = self.0.pieces.last_mut() {
            (last.wanted, last.state) = (wanted, PieceState::Cut);
        }
        self
    }

    /// Says that the first argument is a netlink socket of this protocol.
    fn netlink(mut self, protocol: u32) -> CallBuilder {
        let mut socket = Socket::default();
        (socket.family, socket.ends) = (16, SocketAddresses::Netlink { protocol, port: Default::default() });
        self.0.files.push(CallFile { place: FdPlace::Arg(0), file: File::Socket(Arc::new(socket)) });
        self
    }

    /// Adds the file that a descriptor is open on.
    fn file(mut self, place: FdPlace, path: &str) -> CallBuilder {
        self.0.files.push(CallFile { place, file: File::Path(Arc::from(path.as_bytes())) });
        self
    }
}
