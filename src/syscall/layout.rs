//! The field offsets of each armed event's records, computed once from the format files, so that reading a record takes
//! a few loads.
//!
//! Records may come from a file: a field outside a record reads as zero or as absent, and never panics.

use super::path_name::PathNameLayout;
use super::requests::{CanceledLayout, CompletedLayout, SubmittedLayout};
use crate::event::{Call, Piece, PieceState, PieceTime};
use crate::kernel::format::{FieldPlace, Format, FormatField};
use crate::session::{EventSpec, Role, Session};
use smallvec::SmallVec;

/// How the records of one event are read, and what they describe.
#[derive(Clone, Debug)]
pub enum Layout {
    /// The entry of a syscall.
    Enter(EnterLayout),
    /// The exit of a syscall.
    Exit(ExitLayout),
    /// A paired record of a call, which [`crate::bpf::record`] reads.
    Call,
    Exec(ExecLayout),
    NewTask(NewTaskLayout),
    Deliver(DeliverLayout),
    /// `signal:signal_generate`
    Generate(GenerateLayout),
    /// `sched:sched_process_exit`.
    TaskExit,
    CgroupMove(CgroupMoveLayout),
    PathName(PathNameLayout),
    Submitted(SubmittedLayout),
    Completed(CompletedLayout),
    Canceled(CanceledLayout),
    Fault {
        major: bool,
    },
    /// A tracepoint that is only shown. `entered` is the field with the number of the entered call, if it is a
    /// syscall-entry event.
    Other {
        entered: Field,
    },
}

/// Offset and size of a number in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    offset: u16,
    /// 0 if the format does not have the field.
    size: u8,
}

/// `raw_syscalls:sys_enter` or `syscalls:sys_enter_X`.
#[derive(Clone, Debug)]
pub struct EnterLayout {
    /// The number of the call, with bit 30 for a call of x32.
    pub nr: Field,
    /// The offset of the first argument; the others follow, 8 bytes each.
    pub args: u16,
    /// The number of arguments in the record, at most six. Further registers read as 0.
    pub count: u8,
    /// The event belongs to one syscall. The exit event of one syscall has no records of exits without a syscall
    /// number.
    pub single: bool,
    /// The calls are shown; otherwise rtrace only uses the records itself.
    pub shown: bool,
    /// The copies of user memory in the record (from Linux 6.19).
    pub copies: SmallVec<[CopyLayout; 2]>,
}

/// A copy of an argument's memory in an entry's record (`__data_loc char[] __ARG_val`).
#[derive(Clone, Copy, Debug)]
pub struct CopyLayout {
    /// The index of the argument, from 0.
    pub arg: u8,
    /// The offset of the word that has the copy's offset in the lower half and its length in the upper half.
    pub at: u16,
    /// A string, made printable by the kernel; otherwise raw bytes, whose length is the next argument.
    pub text: bool,
    /// The length in bytes to which the kernel truncates strings.
    pub limit: u32,
}

/// `raw_syscalls:sys_exit` or `syscalls:sys_exit_X`.
#[derive(Clone, Copy, Debug)]
pub struct ExitLayout {
    /// The number of the call; -1 if it is sigreturn(2), for which the kernel clears the number.
    pub nr: Field,
    /// The return value: a negative errno if the call failed.
    pub ret: Field,
    /// The event covers all syscalls.
    pub covers_all: bool,
    /// As in [`EnterLayout`].
    pub shown: bool,
}

/// `sched:sched_process_exec`.
#[derive(Clone, Copy, Debug)]
pub struct ExecLayout {
    /// The path of the program, as the kernel resolved it from the argument.
    pub filename: Field,
    /// The initial namespace's pid of the thread that called execve(2), before it got that of the leader.
    pub old_pid: Field,
}

/// `task:task_newtask`.
#[derive(Clone, Copy, Debug)]
pub struct NewTaskLayout {
    /// The initial namespace's pid of the new task.
    pub pid: Field,
    /// Its comm, which is that of its parent.
    pub comm: Field,
    /// CLONE_*
    pub flags: Field,
}

/// `signal:signal_deliver`.
#[derive(Clone, Copy, Debug)]
pub struct DeliverLayout {
    /// The number of the signal.
    pub sig: Field,
    /// `si_errno` of its siginfo_t.
    pub errno: Field,
    /// `si_code` of its siginfo_t.
    pub code: Field,
    /// The address of the handler; SIG_DFL (0) or SIG_IGN (1) if there is none.
    pub handler: Field,
}

/// `signal:signal_generate`.
#[derive(Clone, Copy, Debug)]
pub struct GenerateLayout {
    /// The number of the signal.
    pub sig: Field,
    /// `si_errno` of its siginfo_t; 0 if the kernel sends the signal without one.
    pub errno: Field,
    /// `si_code` of its siginfo_t, or the one that the kernel uses without it.
    pub code: Field,
    /// Whether the signal is for the whole process; 0 if it is for one thread.
    pub group: Field,
    /// The receiver's pid in the initial pid namespace.
    pub pid: Field,
    /// What becomes of the signal: `TRACE_SIGNAL_*` (include/trace/events/signal.h in the kernel).
    pub result: Field,
}

/// `cgroup:cgroup_attach_task`.
#[derive(Clone, Copy, Debug)]
pub struct CgroupMoveLayout {
    /// The id of the cgroup hierarchy; 0 is the unified one.
    pub root: Field,
    /// The cgroup's id.
    pub id: Field,
    /// The moved task; if it is a thread group leader, all threads were moved.
    pub pid: Field,
    /// The path of the cgroup the task was moved to, from the root of its hierarchy.
    pub path: Field,
}

/// Returns the layouts of a session's events, by event index.
pub fn layouts(session: &Session) -> Vec<Layout> {
    session.events.events.iter().map(|spec| layout(spec, session.copied_bytes)).collect()
}

/// Returns the field of a tracepoint's records with the kernel's number of the task that wrote them.
pub fn writer(spec: &EventSpec) -> Field {
    spec.format.as_ref().map_or(Field::default(), |format| field(format, "common_pid"))
}

fn layout(spec: &EventSpec, copied_bytes: u32) -> Layout {
    let none = Format::default();
    let format = spec.format.as_ref().unwrap_or(&none);
    match spec.role {
        Role::RawEnter => Layout::Enter(EnterLayout::of_all(format, spec.shown)),
        Role::RawExit => Layout::Exit(ExitLayout::of_all(format, spec.shown)),
        Role::Enter => Layout::Enter(EnterLayout::single(format, spec.shown, copied_bytes)),
        Role::Exit => Layout::Exit(ExitLayout::single(format, spec.shown)),
        Role::ProcessExec => Layout::Exec(ExecLayout { filename: field(format, "filename"), old_pid: field(format, "old_pid") }),
        Role::NewTask => {
            Layout::NewTask(NewTaskLayout { pid: field(format, "pid"), comm: field(format, "comm"), flags: field(format, "clone_flags") })
        }
        Role::SignalDeliver => Layout::Deliver(DeliverLayout {
            sig: field(format, "sig"),
            errno: field(format, "errno"),
            code: field(format, "code"),
            handler: field(format, "sa_handler"),
        }),
        Role::BpfCall => Layout::Call,
        Role::ProcessExit => Layout::TaskExit,
        Role::CgroupMove => Layout::CgroupMove(CgroupMoveLayout {
            root: field(format, "dst_root"),
            id: field(format, "dst_id"),
            pid: field(format, "pid"),
            path: field(format, "dst_path"),
        }),
        Role::RequestSubmitted => Layout::Submitted(SubmittedLayout::new(format)),
        Role::RequestCompleted => Layout::Completed(CompletedLayout::new(format)),
        Role::RequestCanceled => Layout::Canceled(CanceledLayout::new(format)),
        Role::PathName => Layout::PathName(PathNameLayout::new(format, spec.is_by_instance())),
        Role::FaultMajor => Layout::Fault { major: true },
        Role::FaultMinor => Layout::Fault { major: false },
        Role::SignalGenerate => Layout::Generate(GenerateLayout {
            sig: field(format, "sig"),
            errno: field(format, "errno"),
            code: field(format, "code"),
            group: field(format, "group"),
            pid: field(format, "pid"),
            result: field(format, "result"),
        }),
        Role::StatRuntime | Role::SideBand | Role::Tracepoint | Role::Output => Layout::Other { entered: entered(spec, format) },
    }
}

/// Returns the field with the number of the entered call, for a syscall-entry event that the user asked for.
fn entered(spec: &EventSpec, format: &Format) -> Field {
    match spec.name.as_str() {
        "raw_syscalls:sys_enter" => field(format, "id"),
        name if name.starts_with("syscalls:sys_enter_") => field(format, "__syscall_nr"),
        _ => Field::default(),
    }
}

pub(super) fn field(format: &Format, name: &str) -> Field {
    let found = format.fields.iter().find(|f| f.name == name);
    found.map_or(Field::default(), |f| Field { offset: f.offset.min(u32::from(u16::MAX)) as u16, size: f.size.min(64) as u8 })
}

impl Field {
    /// Returns the bytes that a `__data_loc` in this field refers to; `None` if the record does not contain them.
    pub fn data(self, raw: &[u8]) -> Option<&[u8]> {
        data_loc(raw, self.offset).filter(|_| self.exists())
    }

    /// Returns whether the format has the field.
    pub fn exists(self) -> bool {
        self.size != 0
    }

    /// Reads a signed number; 0 if the record does not contain it.
    #[inline]
    pub fn signed(self, raw: &[u8]) -> i64 {
        match self.size {
            8 => self.load::<8>(raw).map_or(0, i64::from_le_bytes),
            4 => self.load::<4>(raw).map_or(0, |b| i64::from(i32::from_le_bytes(b))),
            2 => self.load::<2>(raw).map_or(0, |b| i64::from(i16::from_le_bytes(b))),
            1 => self.load::<1>(raw).map_or(0, |b| i64::from(i8::from_le_bytes(b))),
            _ => 0,
        }
    }

    /// Reads an unsigned number; 0 if the record does not contain it.
    #[inline]
    pub fn unsigned(self, raw: &[u8]) -> u64 {
        match self.size {
            8 => self.signed(raw) as u64,
            size => self.signed(raw) as u64 & ((1 << (u32::from(size.min(4)) * 8)) - 1),
        }
    }

    /// Reads an array of characters up to its NUL.
    pub fn text(self, raw: &[u8]) -> &[u8] {
        let start = usize::from(self.offset);
        until_nul(raw.get(start..start + usize::from(self.size)).unwrap_or_default())
    }

    /// Reads the text that a `__data_loc` field refers to, up to its NUL.
    pub fn data_loc_text(self, raw: &[u8]) -> &[u8] {
        data_loc(raw, self.offset).map(until_nul).unwrap_or_default()
    }

    #[inline]
    fn load<const N: usize>(self, raw: &[u8]) -> Option<[u8; N]> {
        raw.get(usize::from(self.offset)..)?.first_chunk().copied()
    }
}

impl ExitLayout {
    /// Returns the layout of `raw_syscalls:sys_exit`.
    pub fn of_all(format: &Format, shown: bool) -> ExitLayout {
        ExitLayout { nr: field(format, "id"), ret: field(format, "ret"), covers_all: true, shown }
    }

    /// Returns the layout of `syscalls:sys_exit_X`.
    pub fn single(format: &Format, shown: bool) -> ExitLayout {
        ExitLayout { nr: field(format, "__syscall_nr"), ret: field(format, "ret"), covers_all: false, shown }
    }
}

impl EnterLayout {
    /// Returns the layout of `raw_syscalls:sys_enter`.
    pub fn of_all(format: &Format, shown: bool) -> EnterLayout {
        let args = format.fields.iter().find(|f| f.name == "args").map_or(16, |f| f.offset as u16);
        EnterLayout { nr: field(format, "id"), args, count: 6, single: false, shown, copies: SmallVec::new() }
    }

    /// Returns the layout of `syscalls:sys_enter_X`.
    pub fn single(format: &Format, shown: bool, copied_bytes: u32) -> EnterLayout {
        let nr = format.fields.iter().position(|f| f.name == "__syscall_nr");
        let after = nr.map_or(&[][..], |nr| &format.fields[nr + 1..]);
        let args: Vec<&FormatField> = after.iter().filter(|f| f.place == FieldPlace::Here).take(6).collect();
        let data_locs = after.iter().filter(|f| f.place == FieldPlace::DataLoc);
        let copies = data_locs.filter_map(|f| CopyLayout::new(f, &args, &format.print, copied_bytes));
        EnterLayout {
            nr: field(format, "__syscall_nr"),
            args: args.first().map_or(16, |f| f.offset as u16),
            count: args.len() as u8,
            single: true,
            shown,
            copies: copies.collect(),
        }
    }

    /// Reads the argument registers. Those that the syscall does not have are 0.
    #[inline]
    pub fn args(&self, raw: &[u8]) -> [u64; 6] {
        let mut args = [0; 6];
        let words = raw.get(usize::from(self.args)..).unwrap_or_default().chunks_exact(8);
        for (arg, word) in args.iter_mut().zip(words).take(usize::from(self.count)) {
            *arg = word.first_chunk().copied().map_or(0, u64::from_le_bytes);
        }
        args
    }

    /// Adds the copies of user memory in an entry's record to a call.
    pub fn copy_pieces(&self, raw: &[u8], call: &mut Call) {
        let args = call.args.unwrap_or_default();
        for copy in &self.copies {
            let Some(bytes) = data_loc(raw, copy.at) else { continue };
            let (bytes, wanted, state) = match copy.text {
                true => text_piece(bytes, copy.limit as usize),
                false => bytes_piece(bytes, *args.get(usize::from(copy.arg) + 1).unwrap_or(&0)),
            };
            add_piece(call, copy.arg, wanted, bytes, state);
        }
    }
}

/// Adds a piece that was read at entry.
pub fn add_piece(call: &mut Call, arg: u8, wanted: u64, bytes: &[u8], state: PieceState) {
    let address = call.args.map_or(0, |args| *args.get(usize::from(arg)).unwrap_or(&0));
    let start = call.payload.len() as u32;
    call.payload.extend_from_slice(bytes);
    call.pieces.push(Piece { arg, when: PieceTime::Entry, address, wanted, start, len: bytes.len() as u32, state });
}

impl CopyLayout {
    fn new(field: &FormatField, args: &[&FormatField], print: &str, limit: u32) -> Option<CopyLayout> {
        let of = field.name.strip_prefix("__")?.strip_suffix("_val")?;
        let arg = args.iter().position(|arg| arg.name == of)?;
        let text = print.contains(&format!("__get_str({})", field.name));
        Some(CopyLayout { arg: arg as u8, at: u16::try_from(field.offset).ok()?, text, limit })
    }
}

/// Decodes a copied string. An empty copy means that it could not be read (an empty string has its NUL). The kernel
/// ends a truncated string with dots.
fn text_piece(bytes: &[u8], limit: usize) -> (&[u8], u64, PieceState) {
    let text = until_nul(bytes);
    if bytes.is_empty() {
        return (text, 0, PieceState::Fault);
    }
    match text.strip_suffix(b"...") {
        Some(start) if start.len() >= limit => (start, start.len() as u64 + 1, PieceState::Altered { cut: true }),
        _ => (text, text.len() as u64 + 1, PieceState::Altered { cut: false }),
    }
}

fn bytes_piece(bytes: &[u8], wanted: u64) -> (&[u8], u64, PieceState) {
    let state = match bytes.len() as u64 {
        len if len >= wanted => PieceState::Ok,
        0 => PieceState::Fault,
        _ => PieceState::Cut,
    };
    (bytes, wanted, state)
}

/// Returns the bytes that a `__data_loc` at `at` refers to: length << 16 | offset.
fn data_loc(raw: &[u8], at: u16) -> Option<&[u8]> {
    let place = u32::from_le_bytes(*raw.get(usize::from(at)..)?.first_chunk()?);
    let (start, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
    raw.get(start..start + len)
}

pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_unreadable_and_truncated_strings_are_distinguished() {
        assert_eq!(text_piece(b"", 63), (&b""[..], 0, PieceState::Fault));
        assert_eq!(text_piece(b"\0", 63), (&b""[..], 1, PieceState::Altered { cut: false }));
        assert_eq!(text_piece(b"/etc/a...\0", 63), (&b"/etc/a..."[..], 10, PieceState::Altered { cut: false }));
        assert_eq!(text_piece(b"/etc/a...\0", 6), (&b"/etc/a"[..], 7, PieceState::Altered { cut: true }));
        let long = [&[b'x'; 63][..], b"...\0"].concat();
        assert_eq!(text_piece(&long, 63), (&[b'x'; 63][..], 64, PieceState::Altered { cut: true }));
    }

    #[test]
    fn copied_bytes_are_compared_with_the_length() {
        assert_eq!(bytes_piece(b"ab", 2).2, PieceState::Ok);
        assert_eq!(bytes_piece(b"ab", 3).2, PieceState::Cut);
        assert_eq!(bytes_piece(b"", 3).2, PieceState::Fault);
        assert_eq!(bytes_piece(b"", 0).2, PieceState::Ok);
    }

    #[test]
    fn short_records_read_as_zero() {
        let field = Field { offset: 8, size: 8 };
        assert_eq!(field.signed(&[1; 15]), 0);
        assert_eq!(Field { offset: 0, size: 4 }.unsigned(&[0xff; 4]), 0xffff_ffff);
        assert_eq!(data_loc(&[0xff, 0xff, 0xff, 0xff], 0), None);
    }
}
