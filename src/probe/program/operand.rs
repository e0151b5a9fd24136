//! Parses the arguments of a USDT tracepoint: `-4@%edi 8@-16(%rbp) -4@$5`, sizes with operands in assembler syntax
//! (sys/sdt.h, and the page "UserSpaceProbeImplementation" of SystemTap's wiki).

use crate::probe::grammar::{BasicType, Fetch, Type};
use crate::stack::symbols::elf::Machine;

/// An argument of a USDT tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The text in the note, for messages.
    pub text: String,
    /// The size in bytes: 1, 2, 4 or 8, negative if the argument is signed.
    size: i8,
    place: OperandLocation,
}

/// Where an argument is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OperandLocation {
    /// A register, by the kernel's name.
    Register(String),
    Constant(i64),
    /// Memory at the address in a register plus an offset.
    Memory {
        base: String,
        offset: i64,
    },
    /// Static data at a symbol of the file plus an offset.
    Symbol {
        symbol: String,
        offset: i64,
    },
    /// An operand that the kernel cannot read, with the reason.
    Unreadable(&'static str),
}

/// Parses the list of arguments in a note.
pub fn parse_all(arguments: &str, machine: Machine) -> Vec<Operand> {
    let mut operands = Vec::new();
    let (mut start, mut depth) = (0, 0);
    // On aarch64, operands have blanks within brackets: `8@[sp, 16]`.
    for (at, byte) in arguments.bytes().chain([b' ']).enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth -= 1,
            b' ' if depth <= 0 => {
                if start < at {
                    operands.push(parse(&arguments[start..at], machine));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    operands
}

/// Parses one argument, such as `-4@%edi`; without a size it is a machine word.
fn parse(text: &str, machine: Machine) -> Operand {
    let (size, place) = text.split_once('@').unwrap_or(("8", text));
    let (number, is_float) = size.strip_suffix('f').map_or((size, false), |size| (size, true));
    let size = number.parse().ok().filter(|size: &i8| matches!(size.unsigned_abs(), 1 | 2 | 4 | 8));
    let place = match (is_float, size) {
        (true, _) => OperandLocation::Unreadable("it is a floating-point number"),
        (_, None) => OperandLocation::Unreadable("its size is not 1, 2, 4 or 8 bytes"),
        _ => place_of(place, machine).unwrap_or(OperandLocation::Unreadable("rtrace does not know this kind of operand")),
    };
    Operand { text: text.to_owned(), size: size.unwrap_or(8), place }
}

fn place_of(text: &str, machine: Machine) -> Option<OperandLocation> {
    match machine {
        Machine::X86_64 | Machine::I386 => x86(text),
        Machine::Aarch64 => aarch64(text),
        Machine::Other(_) => None,
    }
}

/// Parses an operand in AT&T syntax.
fn x86(text: &str) -> Option<OperandLocation> {
    if let Some(constant) = text.strip_prefix('$') {
        return number(constant).map(OperandLocation::Constant);
    }
    if text.contains("%fs:") || text.contains("%gs:") {
        return Some(OperandLocation::Unreadable("it is thread-local"));
    }
    if let Some(name) = text.strip_prefix('%') {
        return Some(match name {
            "ah" | "bh" | "ch" | "dh" => OperandLocation::Unreadable("it is the second byte of a register"),
            name => x86_register(name)
                .map_or(OperandLocation::Unreadable("it is in a register that the kernel cannot fetch"), OperandLocation::Register),
        });
    }
    let Some((before, within)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        // `foo` and `foo+8` are static data; a number alone is a constant.
        return number(text).map(OperandLocation::Constant).or_else(|| symbol(text));
    };
    if within.contains(',') {
        return Some(OperandLocation::Unreadable("an index register is part of its address"));
    }
    let base = within.strip_prefix('%')?;
    if matches!(base, "rip" | "eip") {
        return symbol(before);
    }
    let offset = if before.is_empty() { Some(0) } else { number(before) };
    match offset {
        Some(offset) => Some(OperandLocation::Memory { base: x86_register(base)?, offset }),
        None => Some(OperandLocation::Unreadable("a symbol and a register are parts of its address")),
    }
}

/// Parses an operand of aarch64: `x0`, `w0`, `[sp, 16]`, `[x1]`, `5`.
fn aarch64(text: &str) -> Option<OperandLocation> {
    let Some(within) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
        return number(text).map(OperandLocation::Constant).or_else(|| aarch64_register(text).map(OperandLocation::Register));
    };
    let (base, offset) = within.split_once(',').map_or((within, "0"), |(base, offset)| (base, offset.trim()));
    match number(offset.trim_start_matches('#')) {
        Some(offset) => Some(OperandLocation::Memory { base: aarch64_register(base.trim())?, offset }),
        None => Some(OperandLocation::Unreadable("an index register is part of its address")),
    }
}

/// Parses a symbol with an offset: `foo`, `foo+8`, `8+foo`, `foo-4`.
fn symbol(text: &str) -> Option<OperandLocation> {
    let is_name = |name: &str| !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains(['%', '(', ',', '*']);
    let (symbol, offset) = match text.rfind(['+', '-']).filter(|at| *at > 0) {
        None => (text, 0),
        Some(at) => match (number(&text[at..]), number(&text[..at])) {
            (Some(offset), _) => (&text[..at], offset),
            (None, Some(offset)) => (text[at..].strip_prefix('+')?, offset),
            (None, None) => return None,
        },
    };
    is_name(symbol).then(|| OperandLocation::Symbol { symbol: symbol.to_owned(), offset })
}

fn number(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?.cast_signed(),
        None => digits.parse::<u64>().ok()?.cast_signed(),
    };
    Some(if is_negative { number.wrapping_neg() } else { number })
}

/// Returns the kernel's name of a register or of the register that it is the lower part of: `%edi`, `%dil` and `%rdi`
/// are `%di`.
fn x86_register(name: &str) -> Option<String> {
    const LETTERS: [&str; 8] = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];
    if let Some(rest) = name.strip_prefix('r') {
        let digits = rest.trim_end_matches(['d', 'w', 'b', 'l']);
        if matches!(digits.parse(), Ok(8..=15)) && rest.len() <= digits.len() + 1 {
            return Some(format!("r{digits}"));
        }
    }
    let of_byte = match name {
        "al" | "bl" | "cl" | "dl" => Some(format!("{}x", &name[..1])),
        "sil" | "dil" | "bpl" | "spl" => Some(name[..2].to_owned()),
        _ => None,
    };
    let bare = name.strip_prefix(['r', 'e']).filter(|bare| bare.len() == 2).unwrap_or(name);
    of_byte.or_else(|| LETTERS.contains(&bare).then(|| bare.to_owned()))
}

fn aarch64_register(name: &str) -> Option<String> {
    if name == "sp" {
        return Some(name.to_owned());
    }
    let digits = name.strip_prefix(['x', 'w'])?;
    matches!(digits.parse(), Ok(0..=30)).then(|| format!("x{digits}"))
}

impl Operand {
    /// Returns the fetch argument for the operand. `data` returns the number for `@+` of a symbol of the file.
    ///
    /// # Errors
    /// Why the kernel cannot read the operand, as the end of a sentence.
    pub fn fetch(&self, data: &mut dyn FnMut(&str, i64) -> Option<u64>) -> Result<Fetch, String> {
        Ok(match &self.place {
            OperandLocation::Register(name) => Fetch::Register(name.clone()),
            OperandLocation::Constant(number) => Fetch::Immediate(*number),
            OperandLocation::Memory { base, offset } => {
                Fetch::Memory { user: false, offset: *offset, of: Box::new(Fetch::Register(base.clone())) }
            }
            OperandLocation::Symbol { symbol, offset } => match data(symbol, *offset) {
                Some(offset) => Fetch::AtFileOffset(offset),
                None => return Err(format!("the file has no symbol {}", symbol.escape_debug())),
            },
            OperandLocation::Unreadable(why) => return Err((*why).to_owned()),
        })
    }

    /// Returns the type by the size in the note. Unsigned words are shown in hexadecimal, because more of them are
    /// addresses than numbers.
    pub fn kind(&self) -> Type {
        let bits = self.size.unsigned_abs() * 8;
        let base = match self.size {
            8 => BasicType::Hex(bits),
            ..0 => BasicType::Signed(bits),
            _ => BasicType::Unsigned(bits),
        };
        Type { base, array: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fetched(text: &str) -> Result<(Fetch, Type), String> {
        let operand = parse(text, Machine::X86_64);
        let mut data = |symbol: &str, offset: i64| (symbol == "known").then_some(0x4000u64.wrapping_add_signed(offset));
        operand.fetch(&mut data).map(|fetch| (fetch, operand.kind()))
    }

    fn register(name: &str) -> Fetch {
        Fetch::Register(name.to_owned())
    }

    fn kind(base: BasicType) -> Type {
        Type { base, array: None }
    }

    #[test]
    fn parts_of_registers_have_the_kernels_names() {
        assert_eq!(fetched("-4@%edi"), Ok((register("di"), kind(BasicType::Signed(32)))));
        assert_eq!(fetched("8@%rax"), Ok((register("ax"), kind(BasicType::Hex(64)))));
        assert_eq!(fetched("1@%r10b"), Ok((register("r10"), kind(BasicType::Unsigned(8)))));
        for (name, kernel) in [("al", "ax"), ("sil", "si"), ("bp", "bp"), ("rsp", "sp"), ("r8", "r8"), ("r15d", "r15"), ("ecx", "cx")] {
            assert_eq!(x86_register(name).as_deref(), Some(kernel));
        }
        for none in ["r16", "xmm0", "st", "r", "e", "", "r8dd", "rflags"] {
            assert_eq!(x86_register(none), None, "{none}");
        }
    }

    #[test]
    fn memory_and_constants_are_parsed() {
        let memory = |offset, base: &str| Fetch::Memory { user: false, offset, of: Box::new(register(base)) };
        assert_eq!(fetched("8@-16(%rbp)").unwrap().0, memory(-16, "bp"));
        assert_eq!(fetched("2@(%r9)").unwrap(), (memory(0, "r9"), kind(BasicType::Unsigned(16))));
        assert_eq!(fetched("-4@$5").unwrap().0, Fetch::Immediate(5));
        assert_eq!(fetched("-4@$-0x10").unwrap().0, Fetch::Immediate(-16));
        assert_eq!(fetched("8@known(%rip)").unwrap().0, Fetch::AtFileOffset(0x4000));
        assert_eq!(fetched("8@known+8(%rip)").unwrap().0, Fetch::AtFileOffset(0x4008));
        assert_eq!(fetched("8@-8+known(%rip)").unwrap().0, Fetch::AtFileOffset(0x3ff8));
    }

    #[test]
    fn unreadable_operands_are_explained() {
        let why = |text: &str| fetched(text).unwrap_err();
        assert_eq!(why("8@8(%rax,%rcx,4)"), "an index register is part of its address");
        assert_eq!(why("8f@%xmm0"), "it is a floating-point number");
        assert_eq!(why("1@%ah"), "it is the second byte of a register");
        assert_eq!(why("8@%fs:-8"), "it is thread-local");
        assert_eq!(why("8@unknown(%rip)"), "the file has no symbol unknown");
        assert_eq!(why("16@%rax"), "its size is not 1, 2, 4 or 8 bytes");
        assert_eq!(why("8@known(%rbx)"), "a symbol and a register are parts of its address");
    }

    #[test]
    fn lists_of_operands_are_split() {
        let texts = |text: &str, machine| parse_all(text, machine).into_iter().map(|operand| operand.text).collect::<Vec<_>>();
        assert_eq!(texts("-4@%edi 8@-16(%rbp)  -4@$5", Machine::X86_64), ["-4@%edi", "8@-16(%rbp)", "-4@$5"]);
        let arm = parse_all("-4@[sp, 16] 8@x3 4@w1 8@[x0, x1]", Machine::Aarch64);
        assert_eq!(arm[0].place, OperandLocation::Memory { base: "sp".to_owned(), offset: 16 });
        assert_eq!(
            (&arm[1].place, &arm[2].place),
            (&OperandLocation::Register("x3".to_owned()), &OperandLocation::Register("x1".to_owned()))
        );
        assert!(matches!(arm[3].place, OperandLocation::Unreadable(_)) && arm.len() == 4);
        assert!(parse_all("", Machine::X86_64).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-0-9@%$a-z(),+:\\[\\] f]{0,40}") {
            for machine in [Machine::X86_64, Machine::Aarch64] {
                for operand in parse_all(&text, machine) {
                    let _ = operand.fetch(&mut |_, _| Some(0));
                }
            }
        }
    }
}
