//! Sample rows and calls for tests.

use super::row::*;
use crate::event::{
    Abi, Call, CallFile, CallId, Comm, Event, EventKind, ExitState, FdPlace, File, Piece, PieceState, PieceTime, TaskId, Time,
};
use crate::show::{Mode, Show, SummaryBy, TimeFormat};
use std::sync::Arc;

const fn entry(value: u64, name: &'static str) -> TableConstant {
    TableConstant { value, name }
}

const fn table(name: &'static str, kind: TableKind, prefix: &'static str, entries: &'static [TableConstant]) -> ConstantTable {
    ConstantTable { name, kind, bits: 32, header: "", prefix, entries, fields: &[], per_abi: &[] }
}

pub const fn arg(name: &'static str, kind: ArgumentKind) -> Arg {
    Arg {
        name,
        kind,
        flow: Flow::In,
        written: Outcomes::SUCCEEDED,
        traits: Traits::empty(),
        fd_of: None,
        socket: None,
        length: Length::OfType,
        used: Condition::Always,
    }
}

const fn row(name: &'static str, number: u32, args: &'static [Arg], returns: Return) -> Syscall {
    Syscall {
        name,
        event: name,
        numbers: [Some(number), None, None, None],
        args,
        returns,
        groups: Groups::empty(),
        does: Special::Plain,
        variants: &[],
    }
}

pub static ACCESS: ConstantTable =
    table("open_access", TableKind::Enum, "O_", &[entry(0, "O_RDONLY"), entry(1, "O_WRONLY"), entry(2, "O_RDWR")]);
const OPEN_FIELDS: &[BitField] = &[BitField { mask: 3, table: &ACCESS }];
pub static OPEN_FLAGS: ConstantTable = ConstantTable {
    fields: OPEN_FIELDS,
    ..table("open_flags", TableKind::Flags, "O_", &[entry(0o100, "O_CREAT"), entry(0o2000, "O_APPEND"), entry(0o2000000, "O_CLOEXEC")])
};
pub static WHENCE: ConstantTable =
    table("whence", TableKind::Enum, "SEEK_", &[entry(0, "SEEK_SET"), entry(1, "SEEK_CUR"), entry(2, "SEEK_END")]);
pub static PROT: ConstantTable =
    table("prot", TableKind::Flags, "PROT_", &[entry(0, "PROT_NONE"), entry(1, "PROT_READ"), entry(2, "PROT_WRITE")]);
pub static FCNTL: ConstantTable = table("fcntl_cmd", TableKind::Enum, "F_", &[entry(1, "F_GETFD"), entry(6, "F_SETLK")]);
pub static FLOCK: Struct = Struct {
    name: "flock",
    sizes: [32, 16, 16, 32],
    counted: LengthUnit::Bytes,
    copied: CopyMethod::Plain,
    length_at: None,
    bytes_read: 0,
    source: "",
    layout: StructLayout::Opaque,
    brief: Brief { elements: 8, members: None },
    choice: None,
};

const CREATES: Condition =
    Condition::If { text: "flags&O_CREAT", any: &[BitTest { arg: 2, mask: 0o100, comparison: Comparison::SomeBit }] };

pub static OPENAT: Syscall = row(
    "openat",
    257,
    &[
        arg("dfd", ArgumentKind::DirFd),
        arg("filename", ArgumentKind::Path),
        arg("flags", ArgumentKind::Table(&OPEN_FLAGS)),
        Arg { used: CREATES, ..arg("mode", ArgumentKind::Mode) },
    ],
    Return::Fd,
);
pub static READ: Syscall =
    row("read", 0, &[arg("fd", ArgumentKind::Fd), arg("buf", ArgumentKind::Pointer), arg("count", ArgumentKind::Size)], Return::Size);
pub static WRITE: Syscall =
    row("write", 1, &[arg("fd", ArgumentKind::Fd), arg("buf", ArgumentKind::Bytes), arg("count", ArgumentKind::Size)], Return::Size);
pub static LSEEK: Syscall = row(
    "lseek",
    8,
    &[arg("fd", ArgumentKind::Fd), arg("offset", ArgumentKind::Offset), arg("whence", ArgumentKind::Table(&WHENCE))],
    Return::Offset,
);
pub static PREAD: Syscall = row(
    "pread64",
    17,
    &[arg("fd", ArgumentKind::Fd), arg("buf", ArgumentKind::Pointer), arg("count", ArgumentKind::Size), arg("pos", ArgumentKind::Loff)],
    Return::Size,
);
pub static MPROTECT: Syscall = row(
    "mprotect",
    10,
    &[arg("start", ArgumentKind::Address), arg("len", ArgumentKind::Size), arg("prot", ArgumentKind::Table(&PROT))],
    Return::Int,
);
pub static KILL: Syscall = row("kill", 62, &[arg("pid", ArgumentKind::Pid), arg("sig", ArgumentKind::Signal)], Return::Int);
pub static GETPPID: Syscall = row("getppid", 110, &[], Return::Pid);
pub static POLL: Syscall = row(
    "poll",
    7,
    &[arg("ufds", ArgumentKind::Pointer), arg("nfds", ArgumentKind::Uint), arg("timeout_msecs", ArgumentKind::Int)],
    Return::Ready,
);
pub static CHOWN: Syscall =
    row("chown", 92, &[arg("filename", ArgumentKind::Path), arg("user", ArgumentKind::Uid), arg("group", ArgumentKind::Gid)], Return::Int);
pub static MKNOD: Syscall =
    row("mknod", 133, &[arg("filename", ArgumentKind::Path), arg("mode", ArgumentKind::Mode), arg("dev", ArgumentKind::Dev)], Return::Int);
pub static MMAP: Syscall = row(
    "mmap",
    9,
    &[
        Arg { traits: Traits::OPTIONAL, ..arg("addr", ArgumentKind::Address) },
        arg("len", ArgumentKind::Size),
        arg("flags", ArgumentKind::Hex),
    ],
    Return::Address,
);
pub static EXIT_GROUP: Syscall = row("exit_group", 231, &[arg("error_code", ArgumentKind::Int)], Return::Never);
pub static EXECVE: Syscall = row(
    "execve",
    59,
    &[arg("filename", ArgumentKind::Path), arg("argv", ArgumentKind::StrArray), arg("envp", ArgumentKind::StrArray)],
    Return::Int,
);
pub static SETHOSTNAME: Syscall = row("sethostname", 170, &[arg("name", ArgumentKind::Str), arg("len", ArgumentKind::Int)], Return::Int);
const SET_LOCK: &[Variant] = &[Variant {
    arg: 1,
    mask: 0xffff_ffff,
    values: &[6],
    args: &[arg("fd", ArgumentKind::Fd), arg("cmd", ArgumentKind::Table(&FCNTL)), arg("lock", ArgumentKind::Struct(&FLOCK))],
    returns: Return::Int,
    variants: &[],
}];
pub static FCNTL_ROW: Syscall = Syscall {
    variants: SET_LOCK,
    ..row(
        "fcntl",
        72,
        &[arg("fd", ArgumentKind::Fd), arg("cmd", ArgumentKind::Table(&FCNTL)), arg("arg", ArgumentKind::Ulong)],
        Return::Hex,
    )
};

/// A call that began at 1 s and returned 19 microseconds later.
pub fn call(args: [u64; 6], ret: i64) -> Call {
    let start = Time(1_000_000_000);
    Call {
        exit: ExitState::Returned { at: Time(start.0 + 19_000), ret },
        args: Some(args),
        ..Call::new(CallId { tid: 20131, start }, Abi::X86_64, 0)
    }
}

/// Adds memory that an argument points to, copied at entry.
pub fn with_piece(call: Call, arg: u8, bytes: &[u8], state: PieceState) -> Call {
    let address = call.args.map_or(0, |args| args[usize::from(arg)]);
    with_memory(call, arg, PieceTime::Entry, address, bytes, state)
}

/// Adds memory at an address, as long as the call specifies.
pub fn with_memory(mut call: Call, arg: u8, when: PieceTime, address: u64, bytes: &[u8], state: PieceState) -> Call {
    let (start, len) = (call.payload.len() as u32, bytes.len() as u32);
    call.payload.extend_from_slice(bytes);
    call.pieces.push(Piece { arg, when, address, wanted: u64::from(len), start, len, state });
    call
}

/// Adds the file that a descriptor referred to.
pub fn with_file(mut call: Call, place: FdPlace, path: &str) -> Call {
    call.files.push(CallFile { place, file: File::Path(Arc::from(path.as_bytes())) });
    call
}

/// An event of the task `sh/20131` on CPU 3.
pub fn event(time: Time, kind: EventKind) -> Event {
    Event { time, cpu: 3, task: TaskId { pid: 20131, tid: 20131 }, comm: Some(Arc::from(&b"sh"[..])), kind }
}

/// Returns the comm `x` for task 7, and none for other tasks.
pub fn comms(pid: i32) -> Option<Comm> {
    (pid == 7).then(|| Arc::from(&b"x"[..]))
}

/// Returns the default output settings.
pub fn show() -> Show {
    Show {
        style: crate::show::Style::Perf,
        strace: crate::show::strace::Lines::default(),
        paths: Vec::new(),
        mode: Mode::Lines,
        errno_summary: false,
        summary_by: SummaryBy::Thread,
        max_summary: None,
        max_summary_of_all: None,
        summary_object: None,
        histogram: false,
        interval: None,
        duration: None,
        outcomes: crate::show::Outcomes::all(),
        descriptors: None,
        max_events: None,
        time: TimeFormat::Relative,
        comm: true,
        cpu: false,
        zeros: false,
        pending: None,
        arg_names: true,
        durations: true,
        timestamps: true,
        prefixes: false,
        alignment: 70,
        width: crate::show::Width::Any,
        string_limit: 32,
        struct_limit: 4096,
        full: false,
    }
}
