//! Calls and events with registers, memory and names from a fixed pseudo-random sequence.

use crate::beauty::row::Syscall;
use crate::beauty::samples;
use crate::event::frame::{Frame, StackEnd};
use crate::event::{
    Abi, Call, CallFile, CallId, DeviceKind, Disposition, EntryState, Event, EventKind, ExitState, FdPlace, File, ID_RETURNED,
    PidTranslation, PieceState, PieceTime, Port, SigInfo, Signal, Socket, SocketAddresses, Stack, TaskId, Time, UnixName,
};
use smallvec::smallvec;
use std::sync::Arc;

/// Names: ordinary ones, ones that look like a part of a line, and ones with bytes that are not UTF-8.
pub const HOSTILE: [&[u8]; 9] = [
    b"sh",
    b"",
    b"a\nb\t\r\x1b[31m\"q\" \\n",
    b"\xff\xfe\xc3(\xe6\x97",
    "gr\u{fc}n \u{65e5}\u{202e}\u{2028}\u{85}\u{ad}".as_bytes(),
    b"/tmp/a>, fd: 4</etc->x",
    b"x) = 0 (y, here 3)\x00z\x7f",
    b"UNIX:[1->2,\"/a>b\"]",
    "\u{1f600}{\"text\":1}\u{e0041}\u{feff}".as_bytes(),
];

/// A pseudo-random sequence (xorshift), which is the same in each run.
pub struct Random(pub u64);

impl Random {
    /// Returns the next number of the sequence, which has 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number from 0 to `count` - 1. The count must not be 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() >> 11) as usize % count
    }

    /// Returns true in this percentage of the cases.
    pub fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a copy of one of these values, each with the same probability. There must be at least one.
    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Returns the value in half of the cases, and otherwise `None`.
    pub fn some<T>(&mut self, value: T) -> Option<T> {
        self.is(50).then_some(value)
    }

    /// Returns a word that an argument may have: an address of [`ADDRESSES`], a small number, a flag, or any number.
    pub fn word(&mut self) -> u64 {
        let (any, bit) = (self.next(), self.below(32));
        let address = self.one(&ADDRESSES);
        self.one(&[
            0,
            1,
            2,
            3,
            7,
            8,
            16,
            64,
            -1i64 as u64,
            -100i64 as u64,
            1 << bit,
            any & 0xff,
            any & 0xffff_ffff,
            any,
            address,
            address,
            address,
        ])
    }

    /// Returns the contents of a piece of memory: a text of [`Random::bytes`], or at most 23 words of 8 or of 4 bytes
    /// each.
    pub fn memory(&mut self) -> Vec<u8> {
        let words = self.below(24);
        match self.below(3) {
            0 => self.bytes(),
            1 => (0..words).flat_map(|_| self.word().to_le_bytes()).collect(),
            _ => (0..words).flat_map(|_| (self.word() as u32).to_le_bytes()).collect(),
        }
    }

    /// Returns one of the names in [`HOSTILE`], repeated at most 20 times, and with a NUL at its end in half of the
    /// cases.
    pub fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = self.one(&HOSTILE).to_vec();
        let repeated = self.one(&[1, 1, 1, 3, 20]);
        bytes = bytes.repeat(repeated);
        bytes.extend(self.some(0));
        bytes
    }

    /// Returns one of the names in [`HOSTILE`], as a comm or a path.
    pub fn name(&mut self) -> Arc<[u8]> {
        self.one(&HOSTILE).into()
    }
}

/// The addresses that have memory.
pub const ADDRESSES: [u64; 3] = [0x1000, 0x2000, 0x3000];

/// Makes an event of a task, at the time of the index `at`.
pub fn event(random: &mut Random, at: usize, kind: EventKind) -> Event {
    let task = TaskId { pid: 7, tid: random.one(&[7, 8, 20131]) };
    let comm = random.is(95).then(|| random.name());
    Event { time: Time(1_000_000_000 + at as u64 * 1_234_567), cpu: at as u32 % 3, task, comm, kind }
}

/// Makes a file of any kind.
pub fn file(random: &mut Random) -> File {
    let socket = |ends, protocol: &str, family| {
        File::Socket(Arc::new(Socket { protocol: protocol.as_bytes().into(), family, inode: 42, ends, ..Socket::default() }))
    };
    let internet = |local: &str, remote: &str| SocketAddresses::Internet { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
    let vsock = |local: (u32, u32), remote: (u32, u32)| {
        let [local, remote] = [local, remote].map(|(context, port)| (context, Port(port)));
        socket(SocketAddresses::Vsock { local, remote }, "AF_VSOCK", 40)
    };
    let unix = |peer, name| socket(SocketAddresses::Unix { peer, name }, "UNIX-STREAM", 1);
    let netlink = |protocol| socket(SocketAddresses::Netlink { protocol, port: Port(77) }, "NETLINK", 16);
    let packet = |protocol| socket(SocketAddresses::Packet { protocol, interface: 2 }, "PACKET", 17);
    let (name, any) = (random.name(), u32::MAX);
    let path: Box<[u8]> = (&*name).into();
    let (deleted, cut) = (random.is(50), random.is(50));
    random.one(&[
        File::Path([&b"/"[..], &name[..]].concat().into()),
        File::Path(name.clone()),
        File::Device { path: name.clone(), kind: DeviceKind::Block, major: 8, minor: 1 },
        File::OldPath { path: name.clone(), deleted, cut },
        File::Pipe { inode: 1 << 60 },
        File::Memory(name.clone()),
        File::Anonymous(name.clone()),
        File::Namespace { kind: name.clone(), inode: 7 },
        File::Process { pid: 9 },
        socket(SocketAddresses::Unknown, "", 0),
        socket(SocketAddresses::Unknown, "HCI", 999),
        socket(internet("0.0.0.0:0", "0.0.0.0:0"), "TCP", 2),
        socket(internet("127.0.0.1:80", "0.0.0.0:0"), "TCP", 2),
        socket(internet("0.0.0.0:0", "127.0.0.1:51234"), "TCP", 2),
        socket(internet("[::1%3]:53", "[::]:0"), "UDPv6", 10),
        socket(internet("[::]:0", "[fe80::1%7]:53"), "UDPv6", 10),
        unix(0, UnixName::Unnamed),
        unix(43, UnixName::Path(path.clone())),
        unix(0, UnixName::Abstract(path)),
        netlink(0),
        netlink(999),
        packet(3),
        packet(0xfffe),
        vsock((any, any), (0, 0)),
        vsock((1, 5000), (any, any)),
        vsock((1, any), (2, 80)),
    ])
}

/// Makes a stack with any end.
pub fn stack(random: &mut Random) -> Arc<Stack> {
    let ends = [
        StackEnd::Root,
        StackEnd::Limit,
        StackEnd::Truncated,
        StackEnd::StackNotRead,
        StackEnd::OtherStack { address: 1 },
        StackEnd::NoRule { avma: 1 },
        StackEnd::Unread { avma: 1 },
        StackEnd::NoRegister { avma: 1 },
        StackEnd::Unmapped { avma: 1 },
        StackEnd::NoCode { avma: 1 },
        StackEnd::NoProgress { avma: 1 },
        StackEnd::ReturnProbe,
        StackEnd::NoRegisters,
    ];
    let count = random.below(5);
    let frame = |avma: u64| Frame { avma, svma: avma & 0xffff, image: None, is_after: true };
    let frames = (0..count).map(|_| frame(random.next() >> 16)).collect();
    let end = random.one(&ends);
    Arc::new(Stack { frames, kernel: random.below(3), end: random.some(end), copied: 8192 })
}

/// Makes a call with these registers, and with memory at all addresses.
pub fn call(random: &mut Random, at: usize, (abi, nr): (Abi, i64), registers: [u64; 6]) -> Call {
    let start = Time(1_000_000_000 + at as u64 * 1_000_000);
    let ret = random.one(&[0, 0, 3, 7, 1 << 40, -1, -2, -4, -38, -512, -516, -517, -530, -4000, -5000, i64::MIN, 0x7f00_0000_1000]);
    let end = Time(start.0 + random.one(&[0, 499, 500, 19_000, 999_999_500, 123_456_789_012]));
    let others = [ExitState::Never, ExitState::Pending, ExitState::Unseen];
    let exit = if random.is(90) { ExitState::Returned { at: end, ret } } else { random.one(&others) };
    let id = CallId { tid: 7, start };
    let mut call = Call { id, abi, nr, exit, shown_pending: random.is(5), ..samples::call(registers, 0) };
    if random.is(5) {
        call.entry = random.one(&[EntryState::Unseen, EntryState::Lost]);
        call.args = call.args.filter(|_| random.is(50));
    }
    for argument in 0..6 {
        for address in ADDRESSES {
            for when in [PieceTime::Entry, PieceTime::Exit, PieceTime::Retry] {
                if random.is(30) {
                    let state = random.one(&[
                        PieceState::Ok,
                        PieceState::Ok,
                        PieceState::Ok,
                        PieceState::Cut,
                        PieceState::Altered { cut: true },
                        PieceState::Altered { cut: false },
                        PieceState::Fault,
                    ]);
                    let earlier = call.pieces.iter().find(|piece| piece.address == address).map(|piece| call.bytes(piece).to_vec());
                    let mut memory = earlier.filter(|_| random.is(60)).unwrap_or_else(|| random.memory());
                    if random.is(50) && !memory.is_empty() {
                        let changed = random.below(memory.len());
                        memory[changed] ^= 1;
                    }
                    call = samples::with_memory(call, argument, when, address, &memory, state);
                    let more = random.one(&[0, 0, 0, 8, 1 << 54]);
                    call.pieces.iter_mut().rev().take(1).for_each(|piece| piece.wanted += more);
                }
            }
        }
        let places =
            [FdPlace::Arg(argument), FdPlace::Inside { arg: argument, fd: 3 }, FdPlace::Inside { arg: argument, fd: 7 }, FdPlace::Return];
        for place in places.into_iter().filter(|_| random.is(15)).collect::<Vec<_>>() {
            call.files.push(CallFile { place, file: file(random) });
        }
    }
    if random.is(20) {
        call.pids = PidTranslation::Other(smallvec![(1, 8), (2, 9), (3, 999)]);
        call.ids = vec![(0, 100_000), (1, 100_001), (ID_RETURNED, 100_007)];
    }
    call.lost_before = random.one(&[0, 0, 0, 5]);
    call.stack = if random.is(10) { Some(stack(random)) } else { None };
    call
}

/// Makes calls of a row, with random registers and with registers that select each variant.
pub fn calls_of(random: &mut Random, row: &Syscall, abi: Abi, number: u32, events: &mut Vec<Event>) {
    let chosen = row.variants.iter().flat_map(|variant| variant.values.iter().map(|value| Some((usize::from(variant.arg), *value))));
    for chosen in [None; 2].into_iter().chain(chosen) {
        let mut registers = std::array::from_fn(|_| random.word());
        if let Some((register, value)) = chosen {
            registers[register] = value;
        }
        let at = events.len();
        let mut call = Box::new(call(random, at, (abi, i64::from(number)), registers));
        let is_pending = random.is(3);
        if is_pending {
            call.exit = ExitState::Pending;
        }
        let kind = if is_pending { EventKind::Pending(call) } else { EventKind::Call(call) };
        events.push(event(random, at, kind));
    }
}

/// Makes a signal. Any of its siginfo members may be known.
pub fn signal(random: &mut Random, number: i32, code: i32) -> Signal {
    let (pid, word) = (random.one(&[0, 7, 8, 999]), random.next());
    let half = word as i32;
    let info = SigInfo {
        pid: random.some(pid),
        uid: random.some(word as u32),
        status: random.one(&[None, Some(0), Some(9), Some(34), Some(-1)]),
        utime: random.some(half.into()),
        stime: random.some(half.into()),
        address: random.one(&[None, Some(0), Some(word)]),
        timer: random.some(half),
        overrun: random.some(half),
        value: random.some(word),
        band: random.some(word as i64),
        fd: random.some(half),
        call_address: random.some(word),
        call: random.some(half),
        arch: random.some(word as u32),
    };
    let dispositions = [Disposition::Default, Disposition::Kills, Disposition::Handled, Disposition::Ignored];
    let sender = random.one(&[None, Some(TaskId { pid: 8, tid: 8 }), Some(TaskId { pid: 999, tid: 999 })]);
    Signal {
        number,
        errno: random.one(&[None, Some(0), Some(5)]),
        code: random.is(90).then_some(code),
        info,
        sender,
        pids_are_known: random.is(50),
        disposition: random.one(&dispositions),
        stack: if random.is(10) { Some(stack(random)) } else { None },
    }
}
