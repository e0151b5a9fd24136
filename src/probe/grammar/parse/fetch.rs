//! What is fetched: one value of an argument.

use super::super::ast::{Fetch, KernelPlace, Place, Step};
use super::super::piece::{Parsed, Piece};
use super::names::{is_identifier, symbol};
use super::number::{index, number, signed};
use crate::text::near;

/// Parentheses deeper than this are refused, so that no text can exhaust the stack. The kernel takes fewer.
const DEPTH_MAX: usize = 32;

/// A value; the place says what there is to be fetched.
///
/// # Errors
/// A mistake in it.
pub fn fetch(value: Piece, place: &Place) -> Parsed<Fetch> {
    Values { place, depth: 0 }.value(value)
}

struct Values<'a> {
    place: &'a Place,
    depth: usize,
}

impl Values<'_> {
    fn value(&mut self, value: Piece) -> Parsed<Fetch> {
        let Some(first) = value.text().chars().next() else {
            return Err(value.wrong("there is nothing to fetch here"));
        };
        match first {
            '%' => self.register(value),
            '$' => self.special(value),
            '@' => self.absolute(value),
            '+' | '-' => self.memory(value),
            '\\' => self.immediate(value),
            _ => self.variable(value),
        }
    }

    fn on_event(&self) -> bool {
        matches!(self.place, Place::Event { .. })
    }

    /// The code is the kernel's, and no function of it by ftrace: the probes that were there when `a0` and `rv` were.
    fn on_kprobe(&self) -> bool {
        matches!(self.place, Place::Kernel { at: KernelPlace::Symbol { .. } | KernelPlace::Address(_), .. })
    }

    fn register(&self, value: Piece) -> Parsed<Fetch> {
        let name = value.split_at(1).1;
        if self.on_event() {
            return Err(value.wrong("a probe on an event has no registers; its fields are $NAME"));
        }
        if !REGISTERS.contains(&name.text()) {
            let near = near::nearest(name.text(), REGISTERS, 3);
            return Err(value.wrong(format!("the kernel knows no register `{}`{}", value.text().escape_debug(), near::hint(&near))));
        }
        Ok(Fetch::Register(name.text().to_owned()))
    }

    fn special(&self, value: Piece) -> Parsed<Fetch> {
        let name = value.split_at(1).1;
        match name.text() {
            "comm" | "COMM" => return Ok(Fetch::Comm),
            _ if self.on_event() && is_identifier(name.text()) => return Ok(Fetch::Field(name.text().to_owned())),
            _ if self.on_event() => return Err(value.wrong("a field of the event is written $NAME")),
            "stack" => return Ok(Fetch::StackAddress),
            "arg*" if self.depth == 0 => return Ok(Fetch::Arguments),
            "arg*" => return Err(value.wrong("`$arg*` stands alone, not in parentheses")),
            _ => {}
        }
        if let Some(steps) =
            name.strip_prefix("retval").filter(|steps| !steps.text().starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        {
            return self.returned(value, self.steps(steps)?);
        }
        if let Some(number) = name.strip_prefix("stack") {
            return Ok(Fetch::Stack(index(number)?));
        }
        match name.strip_prefix("arg").map(index) {
            None => {
                let near = near::nearest(name.text(), ["retval", "stack", "stack0", "arg1", "arg*", "comm"], 2);
                let what = format!(
                    "there is no `{}`, but $retval, $stack, $stackN, $argN, $arg* and $comm; $NAME is for the fields of an event (e)",
                    value.text().escape_debug()
                );
                Err(value.wrong(what + &near::hint(&near)))
            }
            Some(number) => match number? {
                0 => Err(value.wrong("arguments are counted from 1: $arg1")),
                number => Ok(Fetch::Argument(number)),
            },
        }
    }

    fn returned(&self, value: Piece, steps: Vec<Step>) -> Parsed<Fetch> {
        if !self.place.is_return() {
            return Err(value.wrong("only a return probe knows what is returned: r, or %return behind the place"));
        }
        Ok(Fetch::Return(steps))
    }

    fn absolute(&self, value: Piece) -> Parsed<Fetch> {
        let behind = value.split_at(1).1;
        if behind.text().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Fetch::At(number(behind)?));
        }
        if let Some(offset) = behind.strip_prefix("+") {
            if !matches!(self.place, Place::File { .. } | Place::Usdt { .. }) {
                return Err(value.wrong("@+OFFSET is a place in a program's file; the kernel's memory is @ADDRESS or @SYMBOL"));
            }
            return Ok(Fetch::AtFileOffset(number(offset)?));
        }
        let (name, offset) = behind.split_while(|c| c != '+' && c != '-');
        Ok(Fetch::AtSymbol { symbol: symbol(name)?, offset: if offset.is_empty() { 0 } else { signed(offset)? } })
    }

    fn memory(&mut self, value: Piece) -> Parsed<Fetch> {
        if self.depth == DEPTH_MAX {
            return Err(value.wrong("this is nested too deep"));
        }
        let Some((before, inside)) = value.split_once('(') else {
            return Err(value.wrong_behind("a parenthesis is missing: memory is fetched by +OFFSET(ADDRESS)"));
        };
        let Some(inside) = inside.strip_suffix(")") else {
            return Err(if inside.text().contains(')') {
                inside.rsplit_once(')').map_or(inside, |(_, behind)| behind).wrong("behind the parenthesis nothing may stand but :TYPE")
            } else {
                value.wrong_behind("this parenthesis is not closed")
            });
        };
        if inside.text().matches(')').count() > inside.text().matches('(').count() {
            return Err(value.split_at(value.text().len() - 1).1.wrong("this parenthesis closes nothing"));
        }
        let (sign, digits) = before.split_at(1);
        let (user, digits) = digits.strip_prefix("u").map_or((false, digits), |digits| (true, digits));
        // The kernel reads +-8 as -8.
        let (negative, digits) =
            digits.strip_prefix("-").filter(|_| sign.text() == "+").map_or((sign.text() == "-", digits), |digits| (true, digits));
        let magnitude = number(digits)?;
        let offset = if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
        let offset = offset.ok_or_else(|| before.wrong("an offset of more than 63 bits leads nowhere"))?;
        self.depth += 1;
        let of = self.value(inside)?;
        self.depth -= 1;
        Ok(Fetch::Memory { user, offset, of: Box::new(of) })
    }

    fn immediate(&self, value: Piece) -> Parsed<Fetch> {
        let behind = value.split_at(1).1;
        if let Some(text) = behind.strip_prefix("\"") {
            let Some(text) = text.strip_suffix("\"") else {
                return Err(value.wrong("a text ends with a quote: \\\"TEXT\""));
            };
            if self.depth > 0 {
                return Err(value.wrong("a text has no address that could stand in parentheses"));
            }
            if text.text().contains(|c: char| "\":#".contains(c) || c.is_whitespace() || c.is_control()) {
                return Err(text.wrong("the kernel's language has no blanks, colons, quotes and # in a text"));
            }
            return Ok(Fetch::ImmediateText(text.text().to_owned()));
        }
        match behind.text().chars().next() {
            Some('+' | '-') => Ok(Fetch::Immediate(signed(behind)?)),
            // The same bits: \0xffffffffffffffff is \-1.
            _ => Ok(Fetch::Immediate(number(behind)?.cast_signed())),
        }
    }

    fn variable(&self, value: Piece) -> Parsed<Fetch> {
        let (name, steps) = value.split_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_identifier(name.text()) {
            let what = format!(
                "`{}` is nothing that can be fetched: %REGISTER, $stack0, $arg1, $retval, +0(...), @SYMBOL, \\1, or a variable's name",
                value.text().escape_debug()
            );
            return Err(value.wrong(what));
        }
        if self.on_event() {
            return Err(value.wrong(format!("a field of the event is written ${}", name.text())));
        }
        if steps.is_empty()
            && self.on_kprobe()
            && let Some(old) = self.old_spelling(name)?
        {
            return Ok(old);
        }
        Ok(Fetch::Variable { name: name.text().to_owned(), path: self.steps(steps)? })
    }

    /// As it was in 2009, when kprobe events were new (kernel/trace/trace_kprobe.c then): `a0` is the first argument.
    fn old_spelling(&self, name: Piece) -> Parsed<Option<Fetch>> {
        match name.text() {
            "sa" => return Ok(Some(Fetch::StackAddress)),
            "rv" => return self.returned(name, Vec::new()).map(Some),
            "ra" if self.place.is_return() => return Ok(Some(Fetch::Register(INSTRUCTION_POINTER.to_owned()))),
            "ra" => return Err(name.wrong("only a return probe knows where it returns to: r, or %return behind the place")),
            _ => {}
        }
        let (letter, digits) = name.split_at(1);
        if digits.is_empty() || !digits.text().bytes().all(|b| b.is_ascii_digit()) {
            return Ok(None);
        }
        match letter.text() {
            "a" => match index(digits)?.checked_add(1) {
                Some(number) => Ok(Some(Fetch::Argument(number))),
                None => Err(name.wrong("no function has so many arguments")),
            },
            "s" => Ok(Some(Fetch::Stack(index(digits)?))),
            _ => Ok(None),
        }
    }

    fn steps(&self, steps: Piece) -> Parsed<Vec<Step>> {
        let mut path = Vec::new();
        let mut rest = steps;
        while !rest.is_empty() {
            let (step, behind) = if let Some(behind) = rest.strip_prefix("->") {
                let (name, behind) = behind.split_while(|c| c.is_ascii_alphanumeric() || c == '_');
                (Step::Arrow(member(name)?), behind)
            } else if let Some(behind) = rest.strip_prefix(".") {
                let (name, behind) = behind.split_while(|c| c.is_ascii_alphanumeric() || c == '_');
                (Step::Dot(member(name)?), behind)
            } else if let Some(behind) = rest.strip_prefix("[") {
                let (number, behind) = behind.split_once(']').ok_or_else(|| rest.wrong("this bracket is not closed"))?;
                (Step::Index(element(number)?), behind)
            } else {
                return Err(rest.wrong("behind a variable stand ->MEMBER, .MEMBER, [NUMBER] or :TYPE"));
            };
            path.push(step);
            rest = behind;
        }
        Ok(path)
    }
}

/// A member's name, or its number in a tuple.
fn member(name: Piece) -> Parsed<String> {
    if name.is_empty() {
        return Err(name.wrong("a member's name is missing here"));
    }
    Ok(name.text().to_owned())
}

fn element(number: Piece) -> Parsed<i64> {
    match number.text().chars().next() {
        Some('+' | '-') => signed(number),
        _ => i64::try_from(self::number(number)?).map_err(|_| number.wrong("no array has so many elements")),
    }
}

/// What the kernel calls the registers (regs_query_register_offset() in arch/*/kernel/ptrace.c).
#[cfg(target_arch = "x86_64")]
const REGISTERS: [&str; 21] = [
    "ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ip", "flags", "cs", "ss",
    "orig_ax",
];
#[cfg(target_arch = "x86_64")]
const INSTRUCTION_POINTER: &str = "ip";
#[cfg(target_arch = "aarch64")]
const REGISTERS: [&str; 35] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19",
    "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "lr", "sp", "pc", "pstate",
];
#[cfg(target_arch = "aarch64")]
const INSTRUCTION_POINTER: &str = "pc";
