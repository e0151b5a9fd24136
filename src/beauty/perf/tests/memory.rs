//! What calls print when their memory was copied: every family of structs, as x86-64 and as i386 have it.

use super::super::super::lookup;
use super::*;
use crate::event::When;

/// Bytes of numbers, each as wide as said.
macro_rules! bytes {
    ($($number:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend_from_slice(&$number.to_le_bytes());)*
        bytes
    }};
}

mod files;
mod sockets;
mod system;
mod tasks;

/// A call by its name, as an ABI has it, with the memory of its arguments.
struct Made {
    call: Call,
}

fn made(abi: Abi, name: &str, args: &[u64], ret: i64) -> Made {
    let row = lookup::index_by_name(name).map(|index| &crate::beauty::tables::SYSCALLS[usize::from(index)]).unwrap();
    let mut registers = [0; 6];
    registers[..args.len()].copy_from_slice(args);
    Made { call: Call { abi, nr: i64::from(row.numbers[abi as usize].unwrap()), ..call(registers, ret) } }
}

fn native(name: &str, args: &[u64], ret: i64) -> Made {
    made(Abi::X86_64, name, args, ret)
}

fn compat(name: &str, args: &[u64], ret: i64) -> Made {
    made(Abi::I386, name, args, ret)
}

impl Made {
    /// Memory at an address, all that the call names.
    fn at(self, arg: u8, when: When, address: u64, bytes: &[u8]) -> Made {
        Made { call: with_memory(self.call, arg, when, address, bytes, PieceState::Ok) }
    }

    fn entry(self, arg: u8, bytes: &[u8]) -> Made {
        let address = self.call.args.unwrap()[usize::from(arg)];
        self.at(arg, When::Entry, address, bytes)
    }

    fn exit(self, arg: u8, bytes: &[u8]) -> Made {
        let address = self.call.args.unwrap()[usize::from(arg)];
        self.at(arg, When::Exit, address, bytes)
    }

    /// The last piece, when the call names more than was copied.
    fn of(mut self, wanted: u64) -> Made {
        let last = self.call.pieces.last_mut().unwrap();
        last.wanted = wanted;
        last.state = if wanted > u64::from(last.len) { PieceState::Cut } else { PieceState::Ok };
        self
    }

    /// What stands between the brackets.
    fn says(&self, expected: &str) {
        let line = event_line(&Show { alignment: 0, ..show() }, &event(Time(1_000_050_000), What::Call(Box::new(self.call.clone()))));
        let body = line.split_once("sh/20131 ").unwrap().1.trim_end();
        let arguments = body.rsplit_once(") = ").unwrap().0.split_once('(').unwrap().1;
        assert_eq!(arguments, expected);
    }
}

#[test]
fn what_is_cut_says_so() {
    native("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u64]).of(16).says("rqtp: {.tv_sec: 1, ...}");
    native("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u64, 2u16]).of(16).says("rqtp: {.tv_sec: 1, ...}");
    native("nanosleep", &[0x1000, 0], 0).entry(0, &[]).of(16).says("rqtp: {...}");
    let how = bytes![0u64, 0u64, 0u64];
    let opened = |bytes: &[u8], size: u64| native("openat2", &[CWD, 0, 0x1000, size], 3).entry(2, bytes).of(size);
    opened(&how[..16], 16).says("dfd: CWD, filename: NULL, how: {.flags: RDONLY, .mode: 0}, usize: 16");
    opened(&how[..12], 12).says("dfd: CWD, filename: NULL, how: {.flags: RDONLY, ...}, usize: 12");
    opened(&how, 32).says("dfd: CWD, filename: NULL, how: {.flags: RDONLY, .mode: 0, .resolve: 0, ...}, usize: 32");
    native("writev", &[1, 0x1000, 40], 5)
        .entry(1, &[0; 32 * 16])
        .of(40 * 16)
        .says(&format!("fd: 1, vec: [{}, ...], vlen: 40", ["{.iov_base: NULL, .iov_len: 0}"; 32].join(", ")));
    // Dots in place of bytes are no numbers.
    let altered =
        with_memory(native("nanosleep", &[0x1000, 0], 0).call, 0, When::Entry, 0x1000, &[b'.'; 16], PieceState::Altered { cut: false });
    Made { call: altered }.says("rqtp: 0x1000");
    let fault = with_memory(native("nanosleep", &[0x1000, 0], -14).call, 0, When::Entry, 0x1000, &[], PieceState::Fault);
    Made { call: fault.clone() }.says("rqtp: 0x1000");
    Made { call: with_memory(fault, 0, When::Retry, 0x1000, &bytes![1u64, 2u64], PieceState::Ok) }.says("rqtp: {.tv_sec: 1, .tv_nsec: 2}");
}

#[test]
fn memory_that_is_pointed_to_often_is_not_told_without_end() {
    let message = bytes![0u64, 0u64, 0x5000u64, 32u64, 0u64, 0u64, 0u64, 0u64];
    let parts = bytes![0x6000u64, 32u64].repeat(32);
    let sent = native("sendmmsg", &[3, 0x1000, 32, 0], 32).entry(1, &message.repeat(32)).at(1, When::Entry, 0x5000, &parts).at(
        1,
        When::Entry,
        0x6000,
        &[0; 32],
    );
    let line = event_line(&show(), &event(Time(1), What::Call(Box::new(sent.call))));
    assert!(line.matches("iov_base").count() > 500 && line.len() < 1 << 18, "{}", line.len());
    assert!(line.contains(", ...], vlen: 32)"), "{line}");
}

/// An address that pieces and pointers in them like to share, so that memory is found behind memory.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1u64..9, 1 => any::<u64>()]
}

/// Bytes that are addresses as often as not.
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

fn when() -> impl Strategy<Value = When> {
    prop_oneof![Just(When::Entry), Just(When::Exit), Just(When::Retry)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the memory holds and however it is linked: one line, of printable characters, of bounded length.
    #[test]
    fn any_memory_is_one_clean_line(
        row in 0..crate::beauty::tables::SYSCALLS.len(), abi in 0usize..4, args in proptest::array::uniform6(address()), ret in -2i64..300,
        own in proptest::array::uniform6((when(), memory(), state())),
        others in proptest::collection::vec((0u8..6, when(), address(), memory(), state(), prop_oneof![Just(None), address().prop_map(Some)]), 0..12),
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
        let line = event_line(&show(), &event(Time(1), What::Call(Box::new(call))));
        prop_assert!(line.ends_with('\n') && !line.trim_end_matches('\n').contains(char::is_control), "{line:?}");
        prop_assert!(line.len() < 1 << 20, "{}", line.len());
    }
}
