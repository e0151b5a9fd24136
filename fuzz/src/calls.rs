//! Calls of every syscall in every variant, with arguments and memory made of the input.
//!
//! The first bytes choose the syscall, the ABI, the variant, the style and the piece of memory that is cut. The others
//! are what arguments and memory are made of, by the kinds in the rows: where a row says that a number is a pointer,
//! there is mostly memory at its address.

use super::render;
use rtrace::events::{Abi, Call, PieceTime};
use rtrace::tables::{Arg, ArgumentKind, Flow, Length, MemoryType, SYSCALLS, Struct, StructLayout, Syscall, Variant};

const ABIS: [Abi; 4] = [Abi::X86_64, Abi::I386, Abi::X32, Abi::Aarch64];
/// The addresses of memory. They have 32 bits, so that they are valid in all ABIs.
const FIRST_ADDRESS: u64 = 0x1000_0000;
const ADDRESS_STEP: u64 = 0x1_0000;
/// How deep pointers are followed.
const DEPTH_MAX: u32 = 3;
/// The maximum number of pieces of a call.
const PIECES_MAX: usize = 24;
/// The maximum number of bytes of a piece.
const PIECE_BYTES_MAX: usize = 288;

pub fn run(bytes: &[u8]) {
    let Some(([how, n0, n1, v0, v1, piece], bytes)) = bytes.split_first_chunk() else { return };
    let abi = ABIS[usize::from(how & 3)];
    let number = u32::from(u16::from_le_bytes([*n0, *n1]));
    let Some(row) = SYSCALLS.iter().find(|row| row.numbers[abi as usize] == Some(number)) else { return };
    let Some(mut call) = made(row, abi, u16::from_le_bytes([*v0, *v1]).into(), bytes) else { return };
    let style = how >> 3;
    render::print(&call, style);
    let count = call.pieces.len().max(1);
    render::print_every_length(&mut call, usize::from(*piece) % count, how & 4 != 0, style);
}

/// Prints the lines of a syscall in every ABI and in every variant, made of these bytes, with each piece of its memory
/// copied to each length. Returns the number of calls. The layouts of x32 and aarch64 differ from those of x86-64 in
/// few structs, so their variants are left out.
pub fn every_length(row: &'static Syscall, bytes: &[u8]) -> usize {
    let mut count = 0;
    for abi in ABIS.into_iter().filter(|abi| row.numbers[*abi as usize].is_some()) {
        let is_wide = matches!(abi, Abi::X32 | Abi::Aarch64);
        for variant in 0..if is_wide { 1 } else { usize::MAX } {
            let Some(mut call) = made(row, abi, variant, bytes) else { break };
            let style = (count % usize::from(render::STYLES)) as u8;
            render::print(&call, style);
            for piece in 0..call.pieces.len() {
                render::print_every_length(&mut call, piece, count % 2 == 0, style);
            }
            count += 1;
        }
    }
    count
}

/// Returns a call of the variant with this number, in the order of the rows; 0 is the one without a variant.
fn made(row: &'static Syscall, abi: Abi, variant: usize, bytes: &[u8]) -> Option<Call> {
    let mut chosen = Vec::new();
    let mut left = variant;
    let args = if variant == 0 { row.args } else { nth_variant(row.variants, &mut left, &mut chosen)? };
    let mut maker = Maker { bytes, address: FIRST_ADDRESS, call: render::call(abi, row.numbers[abi as usize]?.into(), [0; 6], 0) };
    maker.arguments(args);
    if let (Some(registers), true) = (&mut maker.call.args, !chosen.is_empty()) {
        chosen.iter().for_each(|(arg, value)| registers[usize::from(*arg)] = *value);
    }
    Some(maker.call)
}

/// Returns the arguments of the variant that is `left` further, and the registers that select it.
fn nth_variant(variants: &'static [Variant], left: &mut usize, chosen: &mut Vec<(u8, u64)>) -> Option<&'static [Arg]> {
    for variant in variants {
        chosen.push((variant.arg, variant.values.first().copied().unwrap_or_default()));
        *left -= 1;
        if *left == 0 {
            return Some(variant.args);
        }
        if let Some(found) = nth_variant(variant.variants, left, chosen) {
            return Some(found);
        }
        chosen.pop();
    }
    None
}

/// Makes the arguments and the memory of a call from bytes, and from zeros behind them.
struct Maker<'a> {
    bytes: &'a [u8],
    /// The address of the next piece.
    address: u64,
    call: Call,
}

impl Maker<'_> {
    fn byte(&mut self) -> u8 {
        self.bytes.split_off_first().copied().unwrap_or_default()
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        (0..count.min(PIECE_BYTES_MAX)).map(|_| self.byte()).collect()
    }

    /// Returns a number that is mostly small.
    fn number(&mut self) -> u64 {
        match self.byte() {
            0xf0.. => u64::from_le_bytes(self.take(8).try_into().unwrap_or_default()),
            0xe0.. => u64::MAX - u64::from(self.byte()),
            small => small.into(),
        }
    }

    fn arguments(&mut self, args: &'static [Arg]) {
        let mut registers = [0; 6];
        let mut lengths = Vec::new();
        for (at, arg) in args.iter().enumerate().take(6) {
            let times: &[PieceTime] = match arg.flow {
                Flow::In => &[PieceTime::Entry],
                Flow::Out => &[PieceTime::Exit],
                Flow::InOut => &[PieceTime::Entry, PieceTime::Exit],
            };
            let address = self.next_address();
            let made = times.iter().map(|when| self.memory((at as u8, *when), &arg.kind, address, 0)).collect::<Vec<_>>();
            registers[at] = match made.first() {
                Some(Some(count)) => {
                    lengths.push((arg.length, *count));
                    address
                }
                _ => self.number(),
            };
        }
        let ret = self.number() as i64;
        for (length, count) in lengths {
            match length {
                Length::Arg(at) if usize::from(at) < 6 && self.byte() < 0xf0 => registers[usize::from(at)] = count,
                Length::Ret => self.returned(count as i64),
                _ => {}
            }
        }
        if self.byte() < 0x40 {
            self.returned(ret);
        }
        self.call.args = Some(registers);
    }

    fn returned(&mut self, returned: i64) {
        if let rtrace::events::ExitState::Returned { ret, .. } = &mut self.call.exit {
            *ret = returned;
        }
    }

    fn next_address(&mut self) -> u64 {
        self.address += ADDRESS_STEP;
        self.address
    }

    /// Adds memory of a kind at an address, and returns its length in the unit of the row. Returns `None` if the kind
    /// is no pointer to memory, or if there is none behind this one.
    fn memory(&mut self, place: (u8, PieceTime), kind: &ArgumentKind, address: u64, depth: u32) -> Option<u64> {
        if depth > DEPTH_MAX || self.call.pieces.len() >= PIECES_MAX {
            return None;
        }
        let (bytes, count) = match kind {
            ArgumentKind::Struct(of) => {
                let bytes = self.structs(place, of, 1, depth);
                let count = bytes.len() as u64;
                (bytes, count)
            }
            ArgumentKind::StructArray(of) => {
                let count = usize::from(self.byte() % 4);
                (self.structs(place, of, count, depth), count as u64)
            }
            ArgumentKind::Number { bytes, .. } => {
                let count = usize::from(self.byte() % 5).max(1);
                (self.take(count * usize::from(*bytes)), count as u64)
            }
            ArgumentKind::StrArray => (self.strings(place, depth), 0),
            ArgumentKind::Path | ArgumentKind::Str | ArgumentKind::Bytes => {
                let count = usize::from(self.byte() % 80);
                (self.take(count), count as u64)
            }
            _ => return None,
        };
        render::add_memory(&mut self.call, place.0, place.1, address, &bytes);
        Some(count)
    }

    /// Returns pointers to strings, and the null pointer after them.
    fn strings(&mut self, place: (u8, PieceTime), depth: u32) -> Vec<u8> {
        let word = if matches!(self.call.abi, Abi::I386 | Abi::X32) { 4 } else { 8 };
        let mut bytes = Vec::new();
        for _ in 0..self.byte() % 4 {
            let address = self.next_address();
            self.memory(place, &ArgumentKind::Str, address, depth + 1);
            bytes.extend_from_slice(&address.to_le_bytes()[..word]);
        }
        bytes.extend_from_slice(&[0; 8][..word]);
        bytes
    }

    /// Returns consecutive structs, with memory behind most of their pointers.
    fn structs(&mut self, place: (u8, PieceTime), of: &'static Struct, count: usize, depth: u32) -> Vec<u8> {
        let size = of.sizes[self.call.abi as usize] as usize;
        let more = match self.byte() {
            more @ 0xf8.. => usize::from(more - 0xf0),
            _ => 0,
        };
        let mut bytes = self.take((size * count).saturating_add(more));
        let StructLayout::Members(layouts) = &of.layout else { return bytes };
        let members = layouts[self.call.abi as usize];
        for one in 0..count {
            for member in members {
                let MemoryType::Number(number) = &member.memory_type else { continue };
                let at = one * size + member.offset as usize;
                let address = self.next_address();
                let Some(length) = self.memory(place, &number.kind, address, depth + 1) else { continue };
                if self.byte() >= 0xf8 {
                    continue;
                }
                write(&mut bytes, at, number.bytes, address);
                if let Length::Arg(of_length) = number.length
                    && let Some(counter) = members.get(usize::from(of_length))
                    && let MemoryType::Number(number) = &counter.memory_type
                {
                    write(&mut bytes, one * size + counter.offset as usize, number.bytes, length);
                }
            }
        }
        bytes
    }
}

/// Writes the low bytes of a number, if the memory has room for them.
fn write(bytes: &mut [u8], at: usize, size: u8, number: u64) {
    if let Some(place) = bytes.get_mut(at..at + usize::from(size)) {
        place.copy_from_slice(&number.to_le_bytes()[..usize::from(size)]);
    }
}
