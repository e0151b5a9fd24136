//! Applies a row to a call: selects the variant, and determines for each argument its registers, its width, and whether
//! the kernel uses it.
//!
//! All code that needs these facts gets them here, so it cannot disagree: the decoders, the filters (rtrace's and those
//! of the BPF programs), the tracking of file descriptors and path names, and the plan of what the BPF programs copy.

use super::row::{Arg, ArgumentKind, Length, Return, Syscall, Traits, Variant};
use super::tables::SYSCALLS;
use crate::event::Abi;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The arguments and the return of a call, from its row or from the variant that the call selects.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The arguments in the order of the row, including those that the call does not use ([`Signature::uses`]).
    pub args: &'static [Arg],
    /// The kind of the value that the call returns if it succeeds.
    pub returns: Return,
}

/// The position of an argument's value in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Index of the register, from 0; with [`Width::Split`], of the first of two.
    pub register: u8,
    /// The width and sign of the value there.
    pub width: Width,
}

/// The width and sign of an argument's value in its register, as the kernel's entry point for the ABI declares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Width {
    /// Signed, 32 bits: the entry point ignores the upper half of a 64-bit register.
    Signed32 = 0,
    /// Unsigned, 32 bits.
    Unsigned32 = 1,
    /// Signed, 64 bits.
    Signed64 = 2,
    /// Unsigned, 64 bits; also addresses.
    Unsigned64 = 3,
    /// Unsigned, 16 bits (`umode_t`).
    Unsigned16 = 4,
    /// Signed, 64 bits: the lower half is in this register, the upper half in the next (i386's `loff_t`).
    Split = 5,
}

impl Syscall {
    /// Returns the signature of calls that select no variant.
    pub fn signature(&self) -> Signature {
        Signature { args: self.args, returns: self.returns }
    }

    /// Returns the signature of a call with these registers.
    #[inline]
    pub fn signature_of(&self, registers: &[u64; 6]) -> Signature {
        let (mut signature, mut variants) = (self.signature(), self.variants);
        while let Some(variant) = select(variants, registers) {
            (signature, variants) = (variant.signature(), variant.variants);
        }
        signature
    }

    /// Returns all possible signatures: first the one without a variant, then those of the variants and of their
    /// variants.
    pub fn signatures(&self) -> impl Iterator<Item = Signature> + use<> {
        std::iter::once(self.signature()).chain(signatures_of(self.variants))
    }
}

/// The number of variants up to which trying them one after the other is fastest.
const VARIANTS_FEW: usize = 16;

/// The values of many variants (ioctl has hundreds), sorted, each with the index of its variant, by the address of the
/// variants.
static BY_VALUE: LazyLock<HashMap<usize, Vec<(u64, u16)>>> = LazyLock::new(|| {
    let mut found = HashMap::new();
    let mut lists: Vec<&'static [Variant]> = SYSCALLS.iter().map(|row| row.variants).collect();
    while let Some(variants) = lists.pop() {
        lists.extend(variants.iter().map(|variant| variant.variants));
        if variants.len() > VARIANTS_FEW {
            let whole = variants[0].mask;
            let exact = (0u16..).zip(variants).filter(|(_, variant)| variant.mask == whole);
            let values = exact.flat_map(|(index, variant)| variant.values.iter().map(move |value| (*value, index)));
            let mut values: Vec<(u64, u16)> = values.collect();
            values.sort_unstable();
            found.insert(variants.as_ptr().addr(), values);
        }
    }
    found
});

/// Returns the variant that the registers select.
#[inline]
fn select(variants: &'static [Variant], registers: &[u64; 6]) -> Option<&'static Variant> {
    let sorted = if variants.len() > VARIANTS_FEW { BY_VALUE.get(&variants.as_ptr().addr()) } else { None };
    let (Some(sorted), Some(first)) = (sorted, variants.first()) else {
        return variants.iter().find(|variant| variant.is_selected_by(registers));
    };
    // All variants of a row are selected by the same bits of the same argument, or by fewer bits if they are the last.
    let value = registers.get(usize::from(first.arg))? & first.mask;
    match sorted.binary_search_by_key(&value, |(value, _)| *value) {
        Ok(place) => variants.get(usize::from(sorted[place].1)),
        Err(_) => {
            let mut wide = variants.iter().rev().take_while(|variant| variant.mask != first.mask);
            wide.find(|variant| variant.is_selected_by(registers))
        }
    }
}

fn signatures_of(variants: &'static [Variant]) -> Box<dyn Iterator<Item = Signature>> {
    Box::new(variants.iter().flat_map(|variant| std::iter::once(variant.signature()).chain(signatures_of(variant.variants))))
}

impl Variant {
    /// Returns the signature of calls that select this variant, but none of the variants within it.
    pub fn signature(&self) -> Signature {
        Signature { args: self.args, returns: self.returns }
    }

    #[inline]
    fn is_selected_by(&self, registers: &[u64; 6]) -> bool {
        registers.get(usize::from(self.arg)).is_some_and(|selector| self.values.contains(&(selector & self.mask)))
    }
}

impl Signature {
    /// Returns the registers of the argument with the index `at`.
    #[inline]
    pub fn word(&self, at: usize, abi: Abi) -> Option<Word> {
        let arg = self.args.get(at)?;
        let is_backwards = |arg: &Arg| arg.traits.contains(Traits::BACKWARDS) && matches!(abi, Abi::I386 | Abi::Aarch64);
        let register = match abi {
            _ if is_backwards(arg) && self.args.get(at + 1).is_some_and(is_backwards) => at + 1,
            _ if is_backwards(arg) => at - 1,
            Abi::I386 => at + self.args[..at].iter().filter(|arg| matches!(arg.kind, ArgumentKind::Loff)).count(),
            _ => at,
        };
        Some(Word { register: register as u8, width: Width::of(&arg.kind, abi) })
    }

    /// Returns whether the kernel uses the argument with the index `at`.
    #[inline]
    pub fn uses(&self, at: usize, registers: &[u64; 6]) -> bool {
        self.args.get(at).is_some_and(|arg| arg.used.holds(registers))
    }

    /// Returns the length of the memory that the argument with the index `at` points to, in bytes or array elements.
    /// Returns `None` if the type determines the length, if it is in memory, or if the return value `ret` has it and
    /// the call failed or did not return.
    pub fn length(&self, at: usize, abi: Abi, registers: &[u64; 6], ret: Option<i64>) -> Option<u64> {
        match self.args.get(at)?.length {
            Length::OfType => None,
            Length::Fixed(count) => Some(count),
            Length::Ret => ret.and_then(|ret| u64::try_from(ret).ok()),
            Length::Arg(other) => {
                let counts = self.args.get(usize::from(other)).is_some_and(|arg| arg.kind.is_in_register());
                counts.then(|| self.word(usize::from(other), abi)).flatten().map(|word| word.unsigned(registers))
            }
        }
    }
}

impl ArgumentKind {
    /// Returns whether the value is in the register itself, which is not a pointer to memory that is decoded.
    #[inline]
    pub fn is_in_register(&self) -> bool {
        use ArgumentKind::{Bytes, Number, Path, Pointer, Str, StrArray, Struct, StructArray};
        !matches!(self, Path | Str | Bytes | StrArray | Struct(_) | StructArray(_) | Number { .. } | Pointer)
    }
}

impl Width {
    /// Returns the width of a kind in an ABI. Pointers and `long` are as wide as the ABI's registers.
    #[inline]
    pub fn of(kind: &ArgumentKind, abi: Abi) -> Width {
        let (signed, unsigned) = match abi {
            Abi::I386 => (Width::Signed32, Width::Unsigned32),
            _ => (Width::Signed64, Width::Unsigned64),
        };
        match kind {
            ArgumentKind::Int | ArgumentKind::Fd | ArgumentKind::DirFd | ArgumentKind::Pid | ArgumentKind::Signal => Width::Signed32,
            ArgumentKind::Uint | ArgumentKind::Uid | ArgumentKind::Gid => Width::Unsigned32,
            ArgumentKind::Dev | ArgumentKind::Port | ArgumentKind::Custom(..) => Width::Unsigned32,
            ArgumentKind::Table(table) if table.bits == 32 => Width::Unsigned32,
            ArgumentKind::Mode => Width::Unsigned16,
            ArgumentKind::Loff if abi == Abi::I386 => Width::Split,
            ArgumentKind::Loff => Width::Signed64,
            ArgumentKind::Long | ArgumentKind::Offset => signed,
            _ => unsigned,
        }
    }

    /// Returns whether the value is sign-extended to 64 bits.
    pub fn is_signed(self) -> bool {
        matches!(self, Width::Signed32 | Width::Signed64 | Width::Split)
    }

    /// Returns whether the kernel reads 32 bits of the register or fewer.
    pub fn is_narrow(self) -> bool {
        matches!(self, Width::Signed32 | Width::Unsigned32 | Width::Unsigned16)
    }
}

impl Word {
    /// Returns the number of registers that hold the value.
    pub fn registers(self) -> usize {
        if self.width == Width::Split { 2 } else { 1 }
    }

    /// Returns the value, extended to 64 bits by its width and sign.
    #[inline]
    pub fn raw(self, registers: &[u64; 6]) -> u64 {
        let register = |at: u8| registers.get(usize::from(at)).copied().unwrap_or_default();
        let raw = register(self.register);
        match self.width {
            Width::Signed32 => i64::from(raw as i32) as u64,
            Width::Unsigned32 => u64::from(raw as u32),
            Width::Signed64 | Width::Unsigned64 => raw,
            Width::Unsigned16 => u64::from(raw as u16),
            Width::Split => u64::from(raw as u32) | register(self.register + 1) << 32,
        }
    }

    /// Returns the value as a number.
    pub fn number(self, registers: &[u64; 6]) -> i128 {
        let raw = self.raw(registers);
        if self.width.is_signed() { i128::from(raw as i64) } else { i128::from(raw) }
    }

    /// Returns the value as an unsigned number of its width, as the kernel reads a length.
    pub fn unsigned(self, registers: &[u64; 6]) -> u64 {
        let raw = self.raw(registers);
        if self.width == Width::Signed32 { u64::from(raw as u32) } else { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lookup;
    use super::super::row::Condition;
    use super::super::tables::SYSCALLS;
    use super::*;

    fn row(name: &str) -> &'static Syscall {
        &SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())]
    }

    fn numbers(name: &str, abi: Abi, registers: [u64; 6]) -> Vec<i128> {
        let signature = row(name).signature_of(&registers);
        (0..signature.args.len()).map(|at| signature.word(at, abi).unwrap().number(&registers)).collect()
    }

    const ONES: u64 = u32::MAX as u64;

    #[test]
    fn a_64_bit_offset_occupies_two_registers_in_i386() {
        assert_eq!(numbers("fallocate", Abi::I386, [3, 0, 0x1000, 1, 0x2000, 2]), [3, 0, 0x1_0000_1000, 0x2_0000_2000]);
        assert_eq!(numbers("fallocate", Abi::X86_64, [3, 0, 0x1_0000_1000, 0x2000, 9, 9]), [3, 0, 0x1_0000_1000, 0x2000]);
        assert_eq!(numbers("fadvise64", Abi::I386, [3, 0x1000, ONES, 7, 4, 0]), [3, 0x1000 - (1 << 32), 7, 4]);
        assert_eq!(numbers("lseek", Abi::I386, [3, ONES, 1, 9, 9, 9]), [3, -1, 1], "off_t has 32 bits there");
    }

    #[test]
    fn numbers_have_the_sign_and_width_of_their_abi() {
        assert_eq!(numbers("lseek", Abi::X86_64, [ONES, u64::MAX, 0, 0, 0, 0]), [-1, -1, 0]);
        assert_eq!(numbers("mkdir", Abi::X86_64, [1, 0x7777_0001_01ff, 0, 0, 0, 0]), [1, 0o777], "umode_t has 16 bits");
        assert_eq!(numbers("munmap", Abi::I386, [0x9_0000_1000, u64::MAX, 0, 0, 0, 0]), [0x1000, i128::from(ONES)]);
    }

    #[test]
    fn a_variant_determines_the_width_of_its_arguments() {
        let set_owner = libc::F_SETOWN as u64;
        assert_eq!(numbers("fcntl", Abi::X86_64, [3, set_owner, ONES, 0, 0, 0])[2], -1);
        assert_eq!(numbers("fcntl", Abi::X86_64, [3, 0x7fff, ONES, 0, 0, 0])[2], i128::from(ONES));
        let dumpable = |abi| numbers("prctl", abi, [libc::PR_SET_DUMPABLE as u64, 0xbad_0000_0001, 0, 0, 0, 0])[1];
        assert_eq!([Abi::X86_64, Abi::X32, Abi::I386].map(dumpable), [0xbad_0000_0001, 0xbad_0000_0001, 1], "an unsigned long");
        let wake = numbers("futex", Abi::X86_64, [0, libc::FUTEX_WAKE_BITSET as u64, 1, 0, 0, 0xbad_0000_0003]);
        assert_eq!(wake[5], 3, "a u32");
        let get_flags = row("fcntl").signature_of(&[3, libc::F_GETFL as u64, 0, 0, 0, 0]);
        assert!(get_flags.word(2, Abi::X86_64).is_none() && !get_flags.uses(2, &[0; 6]));
    }

    #[test]
    fn several_arguments_may_select_a_variant() {
        let value = |name: &str, level: i32, option: i32| {
            let kind = row(name).signature_of(&[3, level as u64, 0xffff_ffff_0000_0000 | option as u64, 0, 0, 0]).args[3].kind;
            if let ArgumentKind::Struct(of) = kind { of.name } else { "" }
        };
        for name in ["getsockopt", "setsockopt"] {
            assert_eq!(value(name, libc::SOL_SOCKET, libc::SO_LINGER), "linger", "{name}");
            assert_eq!(value(name, libc::SOL_SOCKET, libc::SO_REUSEADDR), "option_value", "{name}");
            assert_eq!(value(name, libc::SOL_TCP, libc::SO_LINGER), "", "TCP_CONGESTION has the same number and is a string: {name}");
            assert_eq!(value(name, 0x7777, libc::SO_LINGER), "", "{name}");
        }
        let multicast = |length: u64| row("setsockopt").signature_of(&[3, 0, libc::IP_MULTICAST_IF as u64, 0, length, 0]).args[3].kind;
        let name = |kind: ArgumentKind| if let ArgumentKind::Struct(of) = kind { of.name } else { "" };
        assert_eq!([4, 8, 12, 5].map(|length| name(multicast(length))), ["in_addr", "ip_mreq", "ip_mreqn", "option_value"]);
    }

    #[test]
    fn each_value_selects_its_variant() {
        let rows = || SYSCALLS.iter().filter(|row| row.variants.len() > VARIANTS_FEW);
        assert!(rows().any(|row| row.name == "ioctl"));
        for variant in rows().flat_map(|row| row.variants.iter().map(move |variant| (row, variant))) {
            let (row, variant) = variant;
            for value in variant.values {
                let mut registers = [ONES; 6];
                registers[usize::from(variant.arg)] = *value;
                let selected = select(row.variants, &registers).expect("the variant of its value");
                assert!(std::ptr::eq(selected, variant), "{} {value:#x}", row.name);
            }
        }
    }

    #[test]
    fn all_variants_are_among_the_signatures() {
        let values = row("setsockopt").signatures().filter_map(|of| of.args.get(3)).map(|arg| arg.kind);
        let linger = values.filter(|kind| matches!(kind, ArgumentKind::Struct(of) if of.name == "linger")).count();
        assert_eq!(linger, 1);
    }

    /// The plans of the BPF programs and the tracking of file descriptors assume that addresses, descriptors and tasks
    /// are in the register with the index of their argument.
    #[test]
    fn only_plain_numbers_follow_a_split_offset() {
        for signature in SYSCALLS.iter().flat_map(Syscall::signatures) {
            let following = signature.args.iter().skip_while(|arg| !matches!(arg.kind, ArgumentKind::Loff));
            for arg in following {
                let is_number = matches!(
                    arg.kind,
                    ArgumentKind::Loff
                        | ArgumentKind::Int
                        | ArgumentKind::Uint
                        | ArgumentKind::Ulong
                        | ArgumentKind::Size
                        | ArgumentKind::Table(_)
                );
                assert!(is_number && arg.used == Condition::Always, "{}", arg.name);
            }
        }
    }

    #[test]
    fn lengths_have_the_width_of_their_argument() {
        let length = |name: &str, abi, registers: [u64; 6], ret| row(name).signature_of(&registers).length(1, abi, &registers, ret);
        let registers = [1, 0x1000, 0x7_0000_0005, 0, 0, 0];
        assert_eq!(length("write", Abi::X86_64, registers, None), Some(0x7_0000_0005));
        assert_eq!(length("write", Abi::I386, registers, None), Some(5));
        assert_eq!(length("bind", Abi::X86_64, registers, None), Some(5), "an int");
        assert_eq!((length("read", Abi::X86_64, registers, Some(3)), length("read", Abi::X86_64, registers, Some(-9))), (Some(3), None));
        assert_eq!(length("accept", Abi::X86_64, registers, None), None, "the length is in memory");
    }
}
