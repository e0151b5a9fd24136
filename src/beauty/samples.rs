//! Rows and calls for the tests of what reads them.

use super::row::*;
use crate::event::{
    Abi, Call, CallFile, CallId, Comm, Entry as Begin, Event, Exit, FdPlace, File, Piece, PieceState, TaskId, Time, What, When,
};
use crate::show::{Mode, Show, SummaryBy, TimeFormat};
use smallvec::SmallVec;
use std::sync::Arc;

const fn entry(value: u64, name: &'static str) -> Entry {
    Entry { value, name }
}

const fn table(name: &'static str, kind: TableKind, prefix: &'static str, entries: &'static [Entry]) -> Table {
    Table { name, kind, bits: 32, header: "", prefix, entries, fields: &[], per_abi: &[] }
}

pub const fn arg(name: &'static str, kind: Kind) -> Arg {
    Arg {
        name,
        kind,
        flow: Flow::In,
        written: Outcomes::SUCCEEDED,
        traits: Traits::empty(),
        fd_of: None,
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

pub static ACCESS: Table = table("open_access", TableKind::Enum, "O_", &[entry(0, "O_RDONLY"), entry(1, "O_WRONLY"), entry(2, "O_RDWR")]);
const OPEN_FIELDS: &[Field] = &[Field { mask: 3, table: &ACCESS }];
pub static OPEN_FLAGS: Table = Table {
    fields: OPEN_FIELDS,
    ..table("open_flags", TableKind::Flags, "O_", &[entry(0o100, "O_CREAT"), entry(0o2000, "O_APPEND"), entry(0o2000000, "O_CLOEXEC")])
};
pub static WHENCE: Table = table("whence", TableKind::Enum, "SEEK_", &[entry(0, "SEEK_SET"), entry(1, "SEEK_CUR"), entry(2, "SEEK_END")]);
pub static PROT: Table = table("prot", TableKind::Flags, "PROT_", &[entry(0, "PROT_NONE"), entry(1, "PROT_READ"), entry(2, "PROT_WRITE")]);
pub static FCNTL: Table = table("fcntl_cmd", TableKind::Enum, "F_", &[entry(1, "F_GETFD"), entry(6, "F_SETLK")]);
pub static FLOCK: Struct = Struct {
    name: "flock",
    sizes: [32, 16, 16, 32],
    counted: Counted::Bytes,
    copied: Copied::Plain,
    has_length: false,
    asked: 0,
    source: "",
    layout: Layout::Opaque,
};

const CREATES: Condition = Condition::If { text: "flags&O_CREAT", any: &[Test { arg: 2, mask: 0o100, how: How::SomeBit }] };

pub static OPENAT: Syscall = row(
    "openat",
    257,
    &[
        arg("dfd", Kind::DirFd),
        arg("filename", Kind::Path),
        arg("flags", Kind::Table(&OPEN_FLAGS)),
        Arg { used: CREATES, ..arg("mode", Kind::Mode) },
    ],
    Return::Fd,
);
pub static READ: Syscall = row("read", 0, &[arg("fd", Kind::Fd), arg("buf", Kind::Pointer), arg("count", Kind::Size)], Return::Size);
pub static WRITE: Syscall = row("write", 1, &[arg("fd", Kind::Fd), arg("buf", Kind::Bytes), arg("count", Kind::Size)], Return::Size);
pub static LSEEK: Syscall =
    row("lseek", 8, &[arg("fd", Kind::Fd), arg("offset", Kind::Offset), arg("whence", Kind::Table(&WHENCE))], Return::Offset);
pub static PREAD: Syscall =
    row("pread64", 17, &[arg("fd", Kind::Fd), arg("buf", Kind::Pointer), arg("count", Kind::Size), arg("pos", Kind::Loff)], Return::Size);
pub static MPROTECT: Syscall =
    row("mprotect", 10, &[arg("start", Kind::Address), arg("len", Kind::Size), arg("prot", Kind::Table(&PROT))], Return::Int);
pub static KILL: Syscall = row("kill", 62, &[arg("pid", Kind::Pid), arg("sig", Kind::Signal)], Return::Int);
pub static GETPPID: Syscall = row("getppid", 110, &[], Return::Pid);
pub static POLL: Syscall =
    row("poll", 7, &[arg("ufds", Kind::Pointer), arg("nfds", Kind::Uint), arg("timeout_msecs", Kind::Int)], Return::Ready);
pub static CHOWN: Syscall = row("chown", 92, &[arg("filename", Kind::Path), arg("user", Kind::Uid), arg("group", Kind::Gid)], Return::Int);
pub static MKNOD: Syscall = row("mknod", 133, &[arg("filename", Kind::Path), arg("mode", Kind::Mode), arg("dev", Kind::Dev)], Return::Int);
pub static MMAP: Syscall = row(
    "mmap",
    9,
    &[Arg { traits: Traits::OPTIONAL, ..arg("addr", Kind::Address) }, arg("len", Kind::Size), arg("flags", Kind::Hex)],
    Return::Address,
);
pub static EXIT_GROUP: Syscall = row("exit_group", 231, &[arg("error_code", Kind::Int)], Return::Never);
pub static EXECVE: Syscall =
    row("execve", 59, &[arg("filename", Kind::Path), arg("argv", Kind::StrArray), arg("envp", Kind::StrArray)], Return::Int);
pub static SETHOSTNAME: Syscall = row("sethostname", 170, &[arg("name", Kind::Str), arg("len", Kind::Int)], Return::Int);
const SET_LOCK: &[Variant] = &[Variant {
    arg: 1,
    mask: 0xffff_ffff,
    values: &[6],
    args: &[arg("fd", Kind::Fd), arg("cmd", Kind::Table(&FCNTL)), arg("lock", Kind::Struct(&FLOCK))],
    returns: Return::Int,
}];
pub static FCNTL_ROW: Syscall = Syscall {
    variants: SET_LOCK,
    ..row("fcntl", 72, &[arg("fd", Kind::Fd), arg("cmd", Kind::Table(&FCNTL)), arg("arg", Kind::Ulong)], Return::Hex)
};

/// A call that began at 1 s and returned 19 microseconds later.
pub fn call(args: [u64; 6], ret: i64) -> Call {
    let start = Time(1_000_000_000);
    Call {
        id: CallId { tid: 20131, start },
        abi: Abi::X86_64,
        nr: 0,
        entry: Begin::Seen,
        exit: Exit::Returned { at: Time(start.0 + 19_000), ret },
        args: Some(args),
        pieces: SmallVec::new(),
        payload: Vec::new(),
        files: SmallVec::new(),
        lost_before: 0,
        shown_pending: false,
        numbers: crate::event::Numbers::Same,
        ids: Vec::new(),
        stack: None,
    }
}

/// Adds memory that an argument points to, seen at entry.
pub fn with_piece(call: Call, arg: u8, bytes: &[u8], state: PieceState) -> Call {
    let address = call.args.map_or(0, |args| args[usize::from(arg)]);
    with_memory(call, arg, When::Entry, address, bytes, state)
}

/// Adds memory from some address, all that the call names.
pub fn with_memory(mut call: Call, arg: u8, when: When, address: u64, bytes: &[u8], state: PieceState) -> Call {
    let (start, len) = (call.payload.len() as u32, bytes.len() as u32);
    call.payload.extend_from_slice(bytes);
    call.pieces.push(Piece { arg, when, address, wanted: u64::from(len), start, len, state });
    call
}

/// Adds what a descriptor was.
pub fn with_file(mut call: Call, place: FdPlace, path: &str) -> Call {
    call.files.push(CallFile { place, file: File::Path(Arc::from(path.as_bytes())) });
    call
}

/// An event of the task `sh/20131` on CPU 3.
pub fn event(time: Time, what: What) -> Event {
    Event { time, cpu: 3, task: TaskId { pid: 20131, tid: 20131 }, comm: Some(Arc::from(&b"sh"[..])), what }
}

/// Task 7 is called `x`, no other is known.
pub fn comms(pid: i32) -> Option<Comm> {
    (pid == 7).then(|| Arc::from(&b"x"[..]))
}

/// What is shown when nothing is asked for.
pub fn show() -> Show {
    Show {
        style: crate::show::Style::Perf,
        paths: Vec::new(),
        mode: Mode::Lines,
        errno_summary: false,
        summary_by: SummaryBy::Thread,
        max_summary: None,
        summary_object: None,
        histogram: false,
        interval: None,
        duration: None,
        failure: false,
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
    }
}
