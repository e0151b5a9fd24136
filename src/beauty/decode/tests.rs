use super::super::samples::{self, *};
use super::*;
use crate::beauty::tables::SYSCALLS;
use crate::beauty::value::{ArrayValue, Text};
use crate::event::{Abi, EntryState, File, PieceState, PieceTime, Port, Time};
use std::borrow::Cow;

const CONTEXT: Context = Context::new(&samples::comms, 8);

fn args<'a>(row: &'static Syscall, call: &'a Call) -> Vec<(&'static str, Value<'a>)> {
    let decoded = Decoded::with_row(call, Some(row), CONTEXT);
    let used = decoded.args().filter(Argument::is_used);
    let last = |values: &Values<'a>| values.exit().or(values.entry()).cloned();
    let values = used.filter_map(|argument| Some((argument.name(), last(&argument.values())?)));
    values.map(|(name, value)| (name, without_addresses(value))).collect()
}

/// Removes addresses and lengths from a value.
fn without_addresses(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Str(text) => Value::Str(Text { address: 0, wanted: None, ..text }),
        Value::Array(all) => list(all.items.into_iter().map(without_addresses).collect(), all.more),
        other => other,
    }
}

fn list(items: Vec<Value<'_>>, more: bool) -> Value<'_> {
    Value::Array(ArrayValue { address: 0, items, more })
}

fn returned(row: &'static Syscall, ret: i64) -> Returned<'static> {
    let call = Box::leak(Box::new(call([0; 6], ret)));
    Decoded::with_row(call, Some(row), CONTEXT).returned()
}

fn text(bytes: &str, cut: bool, altered: bool) -> Value<'_> {
    Value::Str(Text { bytes: Cow::Borrowed(bytes.as_bytes()), cut, altered, ..Text::default() })
}

#[test]
fn registers_are_cut_to_the_width_that_the_kernel_reads() {
    let call = call([0xdead_beef_ffff_ff9c, 0x7fff_0000_1000, 0xabcd_0000_0000_0001, 0xffff_ffff_0001_01a4, 0, 0], 3);
    assert_eq!(
        args(&OPENAT, &call),
        [
            ("dfd", Value::DirFd { fd: -100, file: None }),
            ("filename", Value::Unread(0x7fff_0000_1000)),
            ("flags", Value::Flags { table: &OPEN_FLAGS, bits: 1 })
        ],
        "the mode is not used without O_CREAT"
    );
    let creating = Call { args: Some([3, 0, 0o101, 0xffff_0001_01a4, 0, 0]), ..call };
    assert_eq!(args(&OPENAT, &creating)[3], ("mode", Value::Octal(0o644)));
    let seek = samples::call([1, -5i64 as u64, 0x1_0000_0002, 0, 0, 0], 0);
    assert_eq!(
        args(&LSEEK, &seek),
        [("fd", Value::Fd { fd: 1, file: None }), ("offset", Value::Int(-5)), ("whence", Value::Symbol { table: &WHENCE, value: 2 })]
    );
}

#[test]
fn a_32_bit_abi_has_32_bit_words_and_split_offsets() {
    let mut call = call([1, 0xffff_ffff_8000_0000, 16, 0x9000_0000, 0x1, 0], 0);
    call.abi = Abi::I386;
    let pread = args(&PREAD, &call);
    assert_eq!(pread[1].1, Value::Unread(0x8000_0000));
    assert_eq!(pread[3].1, Value::Int(0x1_9000_0000));
    call.args = Some([1, 0xffff_fffb, 0, 0, 0, 0]);
    assert_eq!(args(&LSEEK, &call)[1].1, Value::Int(-5), "lseek's offset is one register");
}

#[test]
fn strings_consist_of_the_copied_bytes_only() {
    let base = || call([0x1000, 0x2000, 3, 0, 0, 0], 0);
    let name = |call: &Call| args(&SETHOSTNAME, call)[0].1.clone().into_owned_text();
    assert_eq!(name(&base()), Err(Value::Unread(0x1000)));
    assert_eq!(name(&with_piece(base(), 0, b"abc\0junk", PieceState::Ok)), Ok(("abc".into(), false, false)));
    assert_eq!(name(&with_piece(base(), 0, b"\0", PieceState::Ok)), Ok((String::new(), false, false)), "empty is not unreadable");
    assert_eq!(name(&with_piece(base(), 0, b"", PieceState::Fault)), Err(Value::Unread(0x1000)));
    assert_eq!(name(&with_piece(base(), 0, b"0123456789", PieceState::Ok)), Ok(("01234567".into(), true, false)), "the limit cuts");
    assert_eq!(name(&with_piece(base(), 0, b"abc", PieceState::Cut)), Ok(("abc".into(), true, false)));
    assert_eq!(name(&with_piece(base(), 0, b"a.c", PieceState::Altered { cut: true })), Ok(("a.c".into(), true, true)));

    let path = with_piece(base(), 0, b"/a/path/longer/than/the/limit\0", PieceState::Ok);
    assert_eq!(args(&CHOWN, &path)[0].1, text("/a/path/longer/than/the/limit", false, false), "no limit cuts a path");
    let bytes = with_piece(base(), 1, b"a\0b", PieceState::Ok);
    assert_eq!(args(&WRITE, &bytes)[1].1, text("a\0b", false, false), "bytes do not end with NUL");
}

impl Value<'_> {
    /// Returns the string with `cut` and `altered`, or the value that replaces it if the memory is unread.
    fn into_owned_text(self) -> Result<(String, bool, bool), Value<'static>> {
        match self {
            Value::Str(text) => Ok((String::from_utf8(text.bytes.into_owned()).unwrap(), text.cut, text.altered)),
            Value::Unread(address) => Err(Value::Unread(address)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_selected_variant_determines_the_arguments() {
    let lock = call([3, 0xffff_0000_0000_0006, 0x1000, 0, 0, 0], 0);
    assert_eq!(args(&FCNTL_ROW, &lock)[2], ("lock", Value::Unread(0x1000)));
    let get = call([3, 1, 5, 0, 0, 0], 1);
    assert_eq!(args(&FCNTL_ROW, &get)[2], ("arg", Value::Uint(5)));
    assert_eq!(Decoded::with_row(&get, Some(&FCNTL_ROW), CONTEXT).returned(), Returned::Value(Value::Hex(1)));
    assert_eq!(Decoded::with_row(&lock, Some(&FCNTL_ROW), CONTEXT).returned(), Returned::Value(Value::Int(0)));
}

#[test]
fn arrays_of_strings_are_followed_pointer_by_pointer() {
    let pointers = |ends: u64| [0x5000u64, 0x6000, 0x7000, ends].map(u64::to_le_bytes).concat();
    let base = with_piece(call([0x1000, 0x2000, 3, 0, 0, 0], 0), 0, b"/bin/ls\0", PieceState::Ok);
    let argv = |ends, state| {
        let call = with_piece(base.clone(), 1, &pointers(ends), state);
        let call = with_memory(call, 1, PieceTime::Entry, 0x6000, b"-l\0", PieceState::Ok);
        let call = with_memory(call, 1, PieceTime::Entry, 0x5000, b"ls\0", PieceState::Ok);
        args(&EXECVE, Box::leak(Box::new(with_memory(call, 1, PieceTime::Entry, 0x7000, b"", PieceState::Fault))))
    };
    let items = || vec![text("ls", false, false), text("-l", false, false), Value::Unread(0x7000)];
    let whole = argv(0, PieceState::Ok);
    assert_eq!(whole[1].1, list(items(), false));
    assert_eq!(whole[2].1, Value::Unread(3));
    let mut more = items();
    more.push(Value::Unread(0x8000));
    assert_eq!(argv(0x8000, PieceState::Cut)[1].1, list(more, true));
}

#[test]
fn ids_devices_and_tasks_are_decoded_by_their_kind() {
    let call = call([7, u64::from(u32::MAX), 0x1234_5678_0000_0801, 0, 0, 0], 0);
    assert_eq!(args(&KILL, &call)[0].1, Value::Pid { pid: 7, translated: None, comm: samples::comms(7) });
    assert_eq!(args(&CHOWN, &call)[1].1, Value::Int(-1));
    assert_eq!(args(&CHOWN, &call)[2].1, Value::Uint(0x801));
    assert_eq!(args(&MKNOD, &call)[2].1, Value::Dev { major: 8, minor: 1 });
}

#[test]
fn descriptors_have_the_file_at_the_time_of_the_call() {
    let call = with_file(with_file(call([3, 0, 0, 0, 0, 0], 4), FdPlace::Arg(0), "/in"), FdPlace::Return, "/out");
    let path = |path: &str| File::Path(path.as_bytes().into());
    assert_eq!(args(&READ, &call)[0].1, Value::Fd { fd: 3, file: Some(&path("/in")) });
    assert_eq!(
        Decoded::with_row(&call, Some(&OPENAT), CONTEXT).returned(),
        Returned::Value(Value::Fd { fd: 4, file: Some(&path("/out")) })
    );
}

#[test]
fn return_values_are_distinguished_from_errors() {
    assert_eq!(returned(&READ, 832), Returned::Value(Value::Uint(832)));
    assert_eq!(returned(&READ, -2), Returned::Error(2));
    assert_eq!(returned(&READ, -4095), Returned::Error(4095));
    assert_eq!(returned(&LSEEK, -4096), Returned::Value(Value::Int(-4096)));
    assert_eq!(returned(&MMAP, 0x7f00_0000_0000), Returned::Value(Value::Address(0x7f00_0000_0000)));
    assert_eq!([512, 513, 514, 515, 516].map(|errno| returned(&READ, -errno)), [512, 513, 514, 515, 516].map(Returned::Restart));
    assert_eq!(returned(&POLL, 0), Returned::Timeout);
    assert_eq!(returned(&POLL, 2), Returned::Value(Value::Int(2)));
    assert_eq!(returned(&GETPPID, 7), Returned::Value(Value::Pid { pid: 7, translated: None, comm: samples::comms(7) }));
    let ended = |exit| Decoded::with_row(Box::leak(Box::new(Call { exit, ..call([0; 6], 0) })), Some(&READ), CONTEXT).returned();
    assert_eq!(
        [ExitState::Never, ExitState::Pending, ExitState::Unseen].map(ended),
        [Returned::Never, Returned::Pending, Returned::Unseen]
    );
}

#[test]
fn unseen_registers_and_unknown_calls_are_not_guessed() {
    let unseen = Call { args: None, entry: EntryState::Unseen, ..call([0; 6], 0) };
    assert_eq!(args(&KILL, &unseen), [("pid", Value::Unknown), ("sig", Value::Unknown)]);
    assert_eq!(Decoded::with_row(&unseen, None, CONTEXT).args().count(), 0);
    let unknown = Call { nr: 9999, exit: ExitState::Returned { at: Time(0), ret: -38 }, ..call([1, 2, 3, 4, 5, u64::MAX], 0) };
    let decoded = Decoded::new(&unknown, CONTEXT);
    let registers = decoded.args().map(|argument| (argument.name(), argument.values()));
    assert_eq!(registers.collect::<Vec<_>>(), [1, 2, 3, 4, 5, u64::MAX].map(|r| ("", Values::Entry(Value::Hex(r)))));
    assert_eq!(decoded.returned(), Returned::Error(38));
}

/// Returns the number of elements of an argument's value in a context with this bound, and whether there are more.
fn elements(syscall: &str, at: usize, call: &Call, elements_max: usize) -> (usize, bool) {
    let row = lookup::index_by_name(syscall).map(|index| &SYSCALLS[usize::from(index)]);
    let decoded = Decoded::with_row(call, row, CONTEXT.elements(elements_max));
    let values = decoded.args().nth(at).unwrap().values();
    match values.exit().or(values.entry()) {
        Some(Value::Array(array)) => (array.items.len(), array.more),
        other => panic!("{syscall}: {other:?}"),
    }
}

#[test]
fn ports_have_a_type_of_their_own() {
    let port = |family: u16, bytes: &[u8]| {
        let address = [&family.to_le_bytes(), bytes].concat();
        let call = with_piece(call([3, 0x1000, address.len() as u64, 0, 0, 0], 0), 1, &address, PieceState::Ok);
        let row = lookup::index_by_name("connect").map(|index| &SYSCALLS[usize::from(index)]);
        match Decoded::with_row(Box::leak(Box::new(call)), row, CONTEXT).args().nth(1).unwrap().values().entry() {
            Some(Value::Struct(of)) => of.members[1].clone(),
            other => panic!("{other:?}"),
        }
    };
    let big_endian = [&[1, 0xbb][..], &[0; 24]].concat();
    assert_eq!(port(2, &big_endian[..14]), ("sin_port", Value::Port(Port(443))));
    assert_eq!(port(10, &big_endian), ("sin6_port", Value::Port(Port(443))));
    assert_eq!(port(16, &[0, 0, 7, 0, 0, 0, 0, 0, 0, 0]), ("nl_pid", Value::Port(Port(7))));
    assert_eq!(port(40, &[&[0, 0, 0x88, 0x13][..], &[0; 10]].concat()), ("svm_port", Value::Port(Port(5000))));
}

#[test]
fn the_context_bounds_the_number_of_elements() {
    let pointers = [0x5000u64; 40].iter().chain(&[0]).flat_map(|pointer| pointer.to_le_bytes()).collect::<Vec<u8>>();
    let argv = with_piece(call([0x1000, 0x2000, 0, 0, 0, 0], 0), 1, &pointers, PieceState::Ok);
    let argv = with_memory(argv, 1, PieceTime::Entry, 0x5000, b"x\0", PieceState::Ok);
    // The length of an entry, 24 bytes, is at its offset 16.
    let entry = [&[1; 16][..], &[24, 0, 8], b"name\0"].concat();
    let entries = with_memory(call([3, 0x1000, 960, 0, 0, 0], 960), 1, PieceTime::Exit, 0x1000, &entry.repeat(40), PieceState::Ok);
    let descriptors = with_piece(call([40, 0x1000, 0, 0, 0, 0], 1), 1, &[0xff; 8], PieceState::Ok);
    let polled = with_piece(call([0x1000, 40, 0, 0, 0, 0], 1), 0, &[0; 320], PieceState::Ok);
    let groups = with_piece(call([40, 0x1000, 0, 0, 0, 0], 0), 1, &[0; 160], PieceState::Ok);
    let mapped = with_memory(call([0, 40 << 12, 0x1000, 0, 0, 0], 0), 2, PieceTime::Exit, 0x1000, &[1; 40], PieceState::Ok);
    let calls =
        [("execve", 1, argv), ("getdents64", 1, entries), ("select", 1, descriptors), ("poll", 0, polled), ("setgroups", 1, groups)];
    for (syscall, at, call) in calls.iter().chain(&[("mincore", 2, mapped)]) {
        let found = [3, ELEMENTS_MAX, 40, usize::MAX].map(|most| elements(syscall, *at, call, most));
        assert_eq!(found, [(3, true), (32, true), (40, false), (40, false)], "{syscall}");
    }
}
