//! Requests of io_uring as calls: their numbers, names and arguments.
//!
//! A request has a number beyond those of syscalls, which the kernel reads as an `int`. It is the same in every ABI,
//! because requests have the layouts of the machine's native ABI. The number has a request's opcode, and what else
//! decides about the meaning of its arguments.
//!
//! The arguments of a request are those of its row in `beauty/requests.tbl`, if the BPF programs have read them
//! ([`Call::args`]), and three that every request has ([`OWN_ARGUMENTS`], [`Call::request`]).
//!
//! [`Call::args`]: crate::event::Call::args
//! [`Call::request`]: crate::event::Call::request

use crate::beauty::row::{
    Arg, ArgumentKind, Condition, ConstantTable, Flow, Groups, Length, Outcomes, RequestRow, Return, Special, SqeField, Syscall, Traits,
};
use crate::beauty::tables::REQUESTS;
use crate::beauty::tables::constants::{IO_URING_CQE_FLAGS, IO_URING_OP, IO_URING_SQE_FLAGS};
use std::sync::LazyLock;

/// The number of the request with the opcode 0.
const FIRST: i64 = 1 << 32;

/// The number of opcodes for which `struct io_uring_sqe` has room.
pub const OPCODES: u16 = 256;

/// Stands for the opcode of a completion whose request is not known, or that was posted without a request.
pub const COMPLETION: u16 = OPCODES;

bitflags::bitflags! {
    /// What changes the meaning of a request's arguments and of its result, in its number as a call. The BPF programs
    /// have the same bits (`src/bpf/requests.h`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Files: u16 {
        /// The descriptor is the index of a file that is registered with the ring (IOSQE_FIXED_FILE).
        const REGISTERED = 1 << 10;
        /// What the request opens is registered with the ring, and the result is no descriptor (`file_index` in struct
        /// io_uring_sqe).
        const OPENS_REGISTERED = 1 << 11;
    }
}

/// The arguments that every request has besides those of its row: the two that the program chose, and the flags of the
/// completion.
pub static OWN_ARGUMENTS: [Arg; 3] = [
    argument("user_data", ArgumentKind::Hex, Traits::empty()),
    argument("sqe_flags", ArgumentKind::Table(&IO_URING_SQE_FLAGS), Traits::OPTIONAL),
    argument("cqe_flags", ArgumentKind::Table(&IO_URING_CQE_FLAGS), Traits::OPTIONAL),
];

/// The row of a request without arguments of its own.
static PLAIN: Syscall = Syscall {
    name: "io_uring",
    event: "",
    numbers: [None; 4],
    args: &[],
    returns: Return::Int,
    groups: Groups::empty(),
    does: Special::Plain,
    variants: &[],
};

const fn argument(name: &'static str, kind: ArgumentKind, traits: Traits) -> Arg {
    Arg {
        name,
        kind,
        flow: Flow::In,
        written: Outcomes::SUCCEEDED,
        traits,
        fd_of: None,
        socket: None,
        length: Length::OfType,
        used: Condition::Always,
    }
}

/// The rows of an opcode, by [`Files`].
struct Rows([Syscall; 4]);

/// By opcode.
static ROWS: LazyLock<Vec<Rows>> = LazyLock::new(|| (0..=COMPLETION).map(rows).collect());

fn rows(opcode: u16) -> Rows {
    let row = request(opcode);
    Rows([Files::empty(), Files::REGISTERED, Files::OPENS_REGISTERED, Files::all()].map(|files| match row {
        None => changed(&PLAIN, PLAIN.args, Return::Int),
        Some(row) => {
            let returns = match row.call.returns {
                Return::Fd if files.contains(Files::OPENS_REGISTERED) => Return::Int,
                returns => returns,
            };
            changed(&row.call, if files.contains(Files::REGISTERED) { registered(row) } else { row.call.args }, returns)
        }
    }))
}

fn changed(of: &'static Syscall, args: &'static [Arg], returns: Return) -> Syscall {
    let Syscall { name, event, numbers, groups, does, variants, .. } = *of;
    Syscall { name, event, numbers, args, returns, groups, does, variants }
}

/// Returns the arguments of a request whose descriptor is the index of a registered file. The rows are made once, and
/// kept.
fn registered(row: &'static RequestRow) -> &'static [Arg] {
    let is_file = |at: usize| row.fields.get(at) == Some(&SqeField::Fd);
    let of = |(at, arg): (usize, &Arg)| match arg.kind {
        ArgumentKind::Fd | ArgumentKind::DirFd if is_file(at) => Arg { name: "file_index", kind: ArgumentKind::Uint, ..*arg },
        // Without the descriptor, the protocol of a socket is not known.
        _ => Arg { socket: None, ..*arg },
    };
    row.call.args.iter().enumerate().map(of).collect::<Vec<Arg>>().leak()
}

/// Returns the row of an opcode in `beauty/requests.tbl`.
pub fn request(opcode: u16) -> Option<&'static RequestRow> {
    let opcode = u8::try_from(opcode).ok()?;
    REQUESTS.binary_search_by_key(&opcode, |row| row.opcode).ok().map(|at| &REQUESTS[at])
}

/// Returns the row of a request by its number as a call.
pub fn row(nr: i64) -> Option<&'static Syscall> {
    let files = usize::from(files(nr).bits() >> 10);
    ROWS.get(usize::from(opcode(nr)?)).map(|rows| &rows.0[files])
}

/// Returns the registers that contain the values of [`OWN_ARGUMENTS`].
pub fn registers(user_data: u64, sqe_flags: u64, cqe_flags: u64) -> [u64; 6] {
    [user_data, sqe_flags, cqe_flags, 0, 0, 0]
}

/// Returns the number of a request as a call. `opcode` is one of IORING_OP_*, or [`COMPLETION`].
pub fn number(opcode: u16) -> i64 {
    FIRST + i64::from(opcode)
}

/// Returns the number of a request with such files.
#[cfg(any(test, feature = "bpf"))]
pub fn number_with(opcode: u16, files: Files) -> i64 {
    number(opcode) + i64::from(files.bits())
}

/// Returns the number of a request that has this number in a record of the BPF programs: its opcode and [`Files`].
pub fn number_of_record(nr: i32) -> i64 {
    number(nr as u16 & ((OPCODES - 1) | Files::all().bits()))
}

/// Returns the opcode of a request, or [`COMPLETION`]; `None` for the number of a syscall.
#[inline]
pub fn opcode(nr: i64) -> Option<u16> {
    let above = nr.checked_sub(FIRST).and_then(|above| u16::try_from(above).ok())?;
    Some(above & !Files::all().bits()).filter(|opcode| *opcode <= COMPLETION)
}

fn files(nr: i64) -> Files {
    Files::from_bits_truncate(nr as u16)
}

/// Returns the name of a request without `io_uring:`, such as `openat` for IORING_OP_OPENAT.
pub fn name(opcode: u16) -> String {
    match IO_URING_OP.name(u64::from(opcode)) {
        Some(name) => name.strip_prefix(IO_URING_OP.prefix).unwrap_or(name).to_ascii_lowercase(),
        None if opcode == COMPLETION => "completion".to_owned(),
        None => format!("op_{opcode}"),
    }
}

/// The names of all requests as in lines, by opcode.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| (0..=COMPLETION).map(full_name).collect());

/// Returns the names of the known requests: `io_uring:openat`.
pub fn names() -> impl Iterator<Item = &'static str> {
    (0..).zip(NAMES.iter()).filter(|(opcode, _)| IO_URING_OP.name(*opcode).is_some()).map(|(_, name)| name.as_str())
}

/// Returns the name of a request as in lines: `io_uring:openat`.
pub fn full_name(opcode: u16) -> String {
    format!("io_uring:{}", name(opcode))
}

/// Writes the name of a request: `io_uring:openat`.
pub fn write_name(out: &mut Vec<u8>, opcode: u16) {
    out.extend_from_slice(NAMES.get(usize::from(opcode)).map_or(&[][..], |name| name.as_bytes()));
}

/// Returns whether a completion with these flags announces further completions of its request.
pub fn more_follow(cqe_flags: u64) -> bool {
    static MORE: LazyLock<u64> = LazyLock::new(|| bits(&IO_URING_CQE_FLAGS, "IORING_CQE_F_MORE"));
    cqe_flags & *MORE != 0
}

/// Returns whether a request with these flags asks for no completion if it succeeds.
pub fn is_silent(sqe_flags: u64) -> bool {
    static SILENT: LazyLock<u64> = LazyLock::new(|| bits(&IO_URING_SQE_FLAGS, "IOSQE_CQE_SKIP_SUCCESS"));
    sqe_flags & *SILENT != 0
}

fn bits(table: &'static ConstantTable, name: &str) -> u64 {
    table.entries.iter().find(|entry| entry.name == name).map_or(0, |entry| entry.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::lookup;
    use crate::event::Abi;

    #[test]
    fn requests_have_the_names_of_their_opcodes() {
        let name = |nr| {
            let mut name = Vec::new();
            lookup::write_name(&mut name, lookup::row(Abi::X86_64, nr), Abi::X86_64, nr);
            String::from_utf8(name).unwrap()
        };
        assert_eq!([name(number(0)), name(number(18))], ["io_uring:nop", "io_uring:openat"]);
        assert_eq!([name(number(255)), name(number(COMPLETION))], ["io_uring:op_255", "io_uring:completion"]);
        assert_eq!((opcode(number(18)), opcode(18), opcode(-1), opcode(i64::MIN), opcode(i64::MAX)), (Some(18), None, None, None, None));
        assert_eq!(opcode(number(COMPLETION) + 1), None);
        assert_eq!((name(number_with(18, Files::all())), opcode(number_with(18, Files::all()))), ("io_uring:openat".into(), Some(18)));
    }

    #[test]
    fn every_request_of_the_headers_has_a_row() {
        let missing: Vec<&str> = IO_URING_OP.entries.iter().filter(|entry| request(entry.value as u16).is_none()).map(|e| e.name).collect();
        assert!(missing.is_empty(), "without a row in beauty/requests.tbl: {missing:?}");
        for row in REQUESTS {
            assert_eq!(row.call.name, format!("io_uring:{}", name(row.opcode.into())));
            assert_eq!(row.fields.len(), row.call.args.len(), "{}", row.call.name);
        }
    }

    #[test]
    fn registered_files_are_no_descriptors() {
        let row = |files| row(number_with(18, files)).unwrap();
        assert!(matches!((row(Files::empty()).args[0].kind, row(Files::empty()).returns), (ArgumentKind::DirFd, Return::Fd)));
        assert_eq!(row(Files::REGISTERED).args[0].name, "file_index");
        assert!(matches!((row(Files::REGISTERED).args[0].kind, row(Files::REGISTERED).returns), (ArgumentKind::Uint, Return::Fd)));
        assert!(matches!(row(Files::OPENS_REGISTERED).returns, Return::Int));
    }

    #[test]
    fn flags_of_headers_are_found() {
        assert!(more_follow(1 << 1) && !more_follow(1 << 3));
        assert!(is_silent(1 << 6) && !is_silent(1 << 5));
    }
}
