//! Calls whose memory was copied: every family of structs, in the layouts of x86-64 and of i386.

use super::super::super::lookup;
use super::*;
use crate::event::PieceTime;

/// Returns the little-endian bytes of numbers, each in the width of its type.
macro_rules! bytes {
    ($($number:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend_from_slice(&$number.to_le_bytes());)*
        bytes
    }};
}

mod addresses;
mod brief;
mod commands;
mod files;
mod kernel_objects;
mod sockets;
mod system;
mod tasks;

/// A call of an ABI, by its name, with the memory of its arguments.
struct SampleCall {
    call: Call,
}

fn sample_call(abi: Abi, name: &str, args: &[u64], ret: i64) -> SampleCall {
    let row = lookup::index_by_name(name).map(|index| &crate::beauty::tables::SYSCALLS[usize::from(index)]).unwrap();
    let mut registers = [0; 6];
    registers[..args.len()].copy_from_slice(args);
    SampleCall { call: Call { abi, nr: i64::from(row.numbers[abi as usize].unwrap()), ..call(registers, ret) } }
}

fn native(name: &str, args: &[u64], ret: i64) -> SampleCall {
    sample_call(Abi::X86_64, name, args, ret)
}

fn compat(name: &str, args: &[u64], ret: i64) -> SampleCall {
    sample_call(Abi::I386, name, args, ret)
}

impl SampleCall {
    /// Adds memory at an address, as long as the call specifies.
    fn at(self, arg: u8, when: PieceTime, address: u64, bytes: &[u8]) -> SampleCall {
        SampleCall { call: with_memory(self.call, arg, when, address, bytes, PieceState::Ok) }
    }

    fn entry(self, arg: u8, bytes: &[u8]) -> SampleCall {
        let address = self.call.args.unwrap()[usize::from(arg)];
        self.at(arg, PieceTime::Entry, address, bytes)
    }

    fn exit(self, arg: u8, bytes: &[u8]) -> SampleCall {
        let address = self.call.args.unwrap()[usize::from(arg)];
        self.at(arg, PieceTime::Exit, address, bytes)
    }

    /// Sets the length that the call specifies for the last piece, which may be longer than its bytes.
    fn with_length(mut self, wanted: u64) -> SampleCall {
        let last = self.call.pieces.last_mut().unwrap();
        last.wanted = wanted;
        last.state = if wanted > u64::from(last.len) { PieceState::Cut } else { PieceState::Ok };
        self
    }

    /// Checks the text between the parentheses of the line with `--full`.
    fn prints(&self, expected: &str) {
        self.prints_as(&Show { alignment: 0, full: true, ..show() }, expected);
    }

    /// Checks the text between the parentheses of the line without `--full`.
    fn prints_briefly(&self, expected: &str) {
        self.prints_as(&Show { alignment: 0, ..show() }, expected);
    }

    fn prints_as(&self, show: &Show, expected: &str) {
        let line = event_line(show, &event(Time(1_000_050_000), EventKind::Call(Box::new(self.call.clone()))));
        let body = line.split_once("sh/20131 ").unwrap().1.trim_end();
        let arguments = body.rsplit_once(") = ").unwrap().0.split_once('(').unwrap().1;
        assert_eq!(arguments, expected);
    }
}

#[test]
fn cut_memory_ends_in_dots() {
    native("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u64]).with_length(16).prints("rqtp: {.tv_sec: 1, ...}");
    native("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u64, 2u16]).with_length(16).prints("rqtp: {.tv_sec: 1, ...}");
    native("nanosleep", &[0x1000, 0], 0).entry(0, &[]).with_length(16).prints("rqtp: {...}");
    let how = bytes![0u64, 0u64, 0u64];
    let opened = |bytes: &[u8], size: u64| native("openat2", &[CWD, 0, 0x1000, size], 3).entry(2, bytes).with_length(size);
    opened(&how[..16], 16).prints("dfd: CWD, filename: NULL, how: {.flags: RDONLY, .mode: 0}, usize: 16");
    opened(&how[..12], 12).prints("dfd: CWD, filename: NULL, how: {.flags: RDONLY, ...}, usize: 12");
    opened(&how, 32).prints("dfd: CWD, filename: NULL, how: {.flags: RDONLY, .mode: 0, .resolve: 0, ...}, usize: 32");
    native("writev", &[1, 0x1000, 40], 5)
        .entry(1, &[0; 32 * 16])
        .with_length(40 * 16)
        .prints(&format!("fd: 1, vec: [{}, ...], vlen: 40", ["{.iov_base: NULL, .iov_len: 0}"; 32].join(", ")));
    // The bytes of altered text are not decoded as numbers.
    let altered = with_memory(
        native("nanosleep", &[0x1000, 0], 0).call,
        0,
        PieceTime::Entry,
        0x1000,
        &[b'.'; 16],
        PieceState::Altered { cut: false },
    );
    SampleCall { call: altered }.prints("rqtp: 0x1000");
    let fault = with_memory(native("nanosleep", &[0x1000, 0], -14).call, 0, PieceTime::Entry, 0x1000, &[], PieceState::Fault);
    SampleCall { call: fault.clone() }.prints("rqtp: 0x1000");
    SampleCall { call: with_memory(fault, 0, PieceTime::Retry, 0x1000, &bytes![1u64, 2u64], PieceState::Ok) }
        .prints("rqtp: {.tv_sec: 1, .tv_nsec: 2}");
}

#[test]
fn memory_that_many_pointers_share_is_printed_up_to_a_limit() {
    let message = bytes![0u64, 0u64, 0x5000u64, 32u64, 0u64, 0u64, 0u64, 0u64];
    let parts = bytes![0x6000u64, 32u64].repeat(32);
    let sent = native("sendmmsg", &[3, 0x1000, 32, 0], 32).entry(1, &message.repeat(32)).at(1, PieceTime::Entry, 0x5000, &parts).at(
        1,
        PieceTime::Entry,
        0x6000,
        &[0; 32],
    );
    let line = event_line(&Show { full: true, ..show() }, &event(Time(1), EventKind::Call(Box::new(sent.call))));
    assert!(line.matches("iov_base").count() > 500 && line.len() < 1 << 18, "{}", line.len());
    assert!(line.contains(", ...], vlen: 32)"), "{line}");
}

/// An address from a small range, so that pointers in pieces often point to other pieces.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1u64..9, 1 => any::<u64>()]
}

/// Bytes that are often addresses.
fn memory() -> impl Strategy<Value = Vec<u8>> {
    let words =
        proptest::collection::vec(address(), 0..80).prop_map(|words| words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
    let halves =
        proptest::collection::vec(0u32..9, 0..80).prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    prop_oneof![words, halves, proptest::collection::vec(any::<u8>(), 0..300)]
}

fn state() -> impl Strategy<Value = PieceState> {
    prop_oneof![
        3 => Just(PieceState::Ok),
        1 => Just(PieceState::Cut),
        1 => Just(PieceState::Fault),
        1 => any::<bool>().prop_map(|cut| PieceState::Altered { cut }),
    ]
}

fn when() -> impl Strategy<Value = PieceTime> {
    prop_oneof![Just(PieceTime::Entry), Just(PieceTime::Exit), Just(PieceTime::Retry)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any memory, with any pointers in it, yields one line of printable characters and of bounded length.
    #[test]
    fn any_memory_is_one_line_of_printable_characters(
        row in 0..crate::beauty::tables::SYSCALLS.len(), abi in 0usize..4, args in proptest::array::uniform6(address()), ret in -2i64..300,
        own in proptest::array::uniform6((when(), memory(), state())),
        others in proptest::collection::vec((0u8..6, when(), address(), memory(), state(), prop_oneof![Just(None), address().prop_map(Some)]), 0..12),
        full in any::<bool>(),
    ) {
        let nr = crate::beauty::tables::SYSCALLS[row].numbers[abi].map_or(row as i64, i64::from);
        let mut call = Call { abi: Abi::ALL[abi], nr, ..call(args, ret) };
        for (arg, (when, bytes, state)) in own.iter().enumerate() {
            call = with_memory(call, arg as u8, *when, args[arg], bytes, *state);
        }
        for (arg, when, address, bytes, state, wanted) in &others {
            call = with_memory(call, *arg, *when, *address, bytes, *state);
            if let (Some(wanted), Some(last)) = (wanted, call.pieces.last_mut()) {
                last.wanted = *wanted;
            }
        }
        let line = event_line(&Show { full, ..show() }, &event(Time(1), EventKind::Call(Box::new(call))));
        prop_assert!(line.ends_with('\n') && !line.trim_end_matches('\n').contains(char::is_control), "{line:?}");
        prop_assert!(line.len() < 1 << 20, "{}", line.len());
    }
}
