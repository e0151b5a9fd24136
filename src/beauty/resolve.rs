//! From a call to what its row says of it: which variant holds, and for each argument in which registers it is, how wide
//! it is, and whether the kernel looks at it.
//!
//! Whoever reads a row asks here: decoding, filters (those of rtrace and those of the BPF programs), descriptors and
//! path names that are followed, and the plan of what is copied. So they cannot disagree.

use super::row::{Arg, Kind, Length, Return, Syscall};
use crate::event::Abi;

/// The arguments and the return of a call: those of its row, or of the variant that holds for it.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    pub args: &'static [Arg],
    pub returns: Return,
}

/// Where an argument's value is in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// The register, from 0; with [`Width::Split`] the first of two.
    pub register: u8,
    pub width: Width,
}

/// How much of a register is an argument's value, as the kernel's entry point for the ABI declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Width {
    Signed32 = 0,
    Unsigned32 = 1,
    Signed64 = 2,
    Unsigned64 = 3,
    Unsigned16 = 4,
    /// Signed, 64 bits: the lower half in this register, the upper half in the next (i386's `loff_t`).
    Split = 5,
}

impl Syscall {
    /// What holds where no variant does.
    pub fn signature(&self) -> Signature {
        Signature { args: self.args, returns: self.returns }
    }

    /// What holds for a call with these registers.
    #[inline]
    pub fn signature_of(&self, registers: &[u64; 6]) -> Signature {
        let holds = |variant: &&super::row::Variant| {
            registers.get(usize::from(variant.arg)).is_some_and(|chooser| variant.values.contains(&(chooser & variant.mask)))
        };
        let variant = self.variants.iter().find(holds);
        variant.map_or(self.signature(), |variant| Signature { args: variant.args, returns: variant.returns })
    }

    /// All that may hold: the row's own first, then the variants'.
    pub fn signatures(&self) -> impl Iterator<Item = Signature> + use<> {
        let variants = self.variants.iter().map(|variant| Signature { args: variant.args, returns: variant.returns });
        std::iter::once(self.signature()).chain(variants)
    }
}

impl Signature {
    /// Where the argument at this place is.
    #[inline]
    pub fn word(&self, at: usize, abi: Abi) -> Option<Word> {
        let kind = &self.args.get(at)?.kind;
        let before = match abi {
            Abi::I386 => self.args[..at].iter().filter(|arg| matches!(arg.kind, Kind::Loff)).count(),
            _ => 0,
        };
        Some(Word { register: (at + before) as u8, width: Width::of(kind, abi) })
    }

    /// Whether the kernel looks at the argument at this place.
    #[inline]
    pub fn uses(&self, at: usize, registers: &[u64; 6]) -> bool {
        self.args.get(at).is_some_and(|arg| arg.used.holds(registers))
    }

    /// What the length of the argument at this place says, where a register or the return (`ret`) has it: bytes, or
    /// elements of an array. `None` where the type says it, or a number in memory.
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

impl Kind {
    /// The value is in the register itself, which points to nothing.
    #[inline]
    pub fn is_in_register(&self) -> bool {
        use Kind::{Bytes, Number, Path, Pointer, Str, StrArray, Struct, StructArray};
        !matches!(self, Path | Str | Bytes | StrArray | Struct(_) | StructArray(_) | Number { .. } | Pointer)
    }
}

impl Width {
    /// That of a kind in an ABI: pointers and `long` are as wide as the ABI's registers.
    #[inline]
    pub fn of(kind: &Kind, abi: Abi) -> Width {
        let (signed, unsigned) = match abi {
            Abi::I386 => (Width::Signed32, Width::Unsigned32),
            _ => (Width::Signed64, Width::Unsigned64),
        };
        match kind {
            Kind::Int | Kind::Fd | Kind::DirFd | Kind::Pid | Kind::Signal => Width::Signed32,
            Kind::Uint | Kind::Uid | Kind::Gid | Kind::Dev | Kind::Custom(..) => Width::Unsigned32,
            Kind::Table(table) if table.bits == 32 => Width::Unsigned32,
            Kind::Mode => Width::Unsigned16,
            Kind::Loff if abi == Abi::I386 => Width::Split,
            Kind::Loff => Width::Signed64,
            Kind::Long | Kind::Offset => signed,
            _ => unsigned,
        }
    }

    /// Whether a number below zero has all higher bits set.
    pub fn is_signed(self) -> bool {
        matches!(self, Width::Signed32 | Width::Signed64 | Width::Split)
    }

    /// Whether the kernel looks at 32 bits of the register, or fewer.
    pub fn is_narrow(self) -> bool {
        matches!(self, Width::Signed32 | Width::Unsigned32 | Width::Unsigned16)
    }
}

impl Word {
    /// How many registers it takes.
    pub fn registers(self) -> usize {
        if self.width == Width::Split { 2 } else { 1 }
    }

    /// The value, with all higher bits as its sign has them.
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

    /// The value as a number.
    pub fn number(self, registers: &[u64; 6]) -> i128 {
        let raw = self.raw(registers);
        if self.width.is_signed() { i128::from(raw as i64) } else { i128::from(raw) }
    }

    /// The value as a count, which the kernel compares as a number without a sign.
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
    fn offsets_of_64_bits_take_two_registers_of_32() {
        assert_eq!(numbers("fallocate", Abi::I386, [3, 0, 0x1000, 1, 0x2000, 2]), [3, 0, 0x1_0000_1000, 0x2_0000_2000]);
        assert_eq!(numbers("fallocate", Abi::X86_64, [3, 0, 0x1_0000_1000, 0x2000, 9, 9]), [3, 0, 0x1_0000_1000, 0x2000]);
        assert_eq!(numbers("fadvise64", Abi::I386, [3, 0x1000, ONES, 7, 4, 0]), [3, 0x1000 - (1 << 32), 7, 4]);
        assert_eq!(numbers("lseek", Abi::I386, [3, ONES, 1, 9, 9, 9]), [3, -1, 1], "off_t has 32 bits there");
    }

    #[test]
    fn a_number_has_the_sign_and_width_that_its_abi_declares() {
        assert_eq!(numbers("lseek", Abi::X86_64, [ONES, u64::MAX, 0, 0, 0, 0]), [-1, -1, 0]);
        assert_eq!(numbers("mkdir", Abi::X86_64, [1, 0x7777_0001_01ff, 0, 0, 0, 0]), [1, 0o777], "umode_t has 16 bits");
        assert_eq!(numbers("munmap", Abi::I386, [0x9_0000_1000, u64::MAX, 0, 0, 0, 0]), [0x1000, i128::from(ONES)]);
    }

    #[test]
    fn a_variant_has_words_of_its_own() {
        let set_owner = libc::F_SETOWN as u64;
        assert_eq!(numbers("fcntl", Abi::X86_64, [3, set_owner, ONES, 0, 0, 0])[2], -1);
        assert_eq!(numbers("fcntl", Abi::X86_64, [3, 0x7fff, ONES, 0, 0, 0])[2], i128::from(ONES));
        let get_flags = row("fcntl").signature_of(&[3, libc::F_GETFL as u64, 0, 0, 0, 0]);
        assert!(get_flags.word(2, Abi::X86_64).is_none() && !get_flags.uses(2, &[0; 6]));
    }

    /// Addresses, descriptors and tasks are looked for in the register of the argument's place (BPF's plans, descriptors that are followed).
    #[test]
    fn only_numbers_follow_what_takes_two_registers() {
        for signature in SYSCALLS.iter().flat_map(Syscall::signatures) {
            let behind = signature.args.iter().skip_while(|arg| !matches!(arg.kind, Kind::Loff));
            for arg in behind {
                let is_number = matches!(arg.kind, Kind::Loff | Kind::Int | Kind::Uint | Kind::Ulong | Kind::Size | Kind::Table(_));
                assert!(is_number && arg.used == Condition::Always, "{}", arg.name);
            }
        }
    }

    #[test]
    fn lengths_are_read_at_the_width_of_their_argument() {
        let length = |name: &str, abi, registers: [u64; 6], ret| row(name).signature_of(&registers).length(1, abi, &registers, ret);
        let registers = [1, 0x1000, 0x7_0000_0005, 0, 0, 0];
        assert_eq!(length("write", Abi::X86_64, registers, None), Some(0x7_0000_0005));
        assert_eq!(length("write", Abi::I386, registers, None), Some(5));
        assert_eq!(length("bind", Abi::X86_64, registers, None), Some(5), "an int");
        assert_eq!((length("read", Abi::X86_64, registers, Some(3)), length("read", Abi::X86_64, registers, Some(-9))), (Some(3), None));
        assert_eq!(length("accept", Abi::X86_64, registers, None), None, "the length is in memory");
    }
}
