//! Parses the value that an argument fetches.

use super::super::ast::{Fetch, KernelPlace, PathStep, ProbePoint};
use super::super::piece::{Parsed, Piece};
use super::names::{is_identifier, symbol};
use super::number::{index, number, signed};
use crate::text::near;

/// Parentheses nested deeper than this are refused, so that no text can exhaust the stack. The kernel accepts fewer.
const DEPTH_MAX: usize = 32;

/// Parses a value. Which values are allowed depends on the kind of probe.
///
/// # Errors
/// A syntax error in it.
pub fn fetch(value: Piece, place: &ProbePoint) -> Parsed<Fetch> {
    ValueParser { place, depth: 0 }.value(value)
}

struct ValueParser<'a> {
    place: &'a ProbePoint,
    depth: usize,
}

impl ValueParser<'_> {
    fn value(&mut self, value: Piece) -> Parsed<Fetch> {
        let Some(first) = value.text().chars().next() else {
            return Err(value.error("there is nothing to fetch here"));
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
        matches!(self.place, ProbePoint::Event { .. })
    }

    /// Returns whether this is a kprobe: the oldest kind of probe, the only one with the spellings `a0` and `rv`.
    fn on_kprobe(&self) -> bool {
        matches!(self.place, ProbePoint::Kernel { at: KernelPlace::Symbol { .. } | KernelPlace::Address(_), .. })
    }

    fn register(&self, value: Piece) -> Parsed<Fetch> {
        let name = value.split_at(1).1;
        if self.on_event() {
            return Err(value.error("a probe on an event has no registers; fetch the event's fields as $NAME"));
        }
        if !REGISTERS.contains(&name.text()) {
            let near = near::nearest(name.text(), REGISTERS, 3);
            return Err(value.error(format!("the kernel knows no register `{}`{}", value.text().escape_debug(), near::hint(&near))));
        }
        Ok(Fetch::Register(name.text().to_owned()))
    }

    fn special(&self, value: Piece) -> Parsed<Fetch> {
        let name = value.split_at(1).1;
        match name.text() {
            "comm" | "COMM" => return Ok(Fetch::Comm),
            _ if self.on_event() && is_identifier(name.text()) => return Ok(Fetch::Field(name.text().to_owned())),
            _ if self.on_event() => return Err(value.error("a field of the event is written $NAME")),
            "stack" => return Ok(Fetch::StackAddress),
            "arg*" if self.depth == 0 => return Ok(Fetch::Arguments),
            "arg*" => return Err(value.error("`$arg*` cannot be in parentheses")),
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
                    "there is no `{}`; there are $retval, $stack, $stackN, $argN, $arg* and $comm, and $NAME for the fields of an event (e)",
                    value.text().escape_debug()
                );
                Err(value.error(what + &near::hint(&near)))
            }
            Some(number) => match number? {
                0 => Err(value.error("arguments are counted from 1: $arg1")),
                number => Ok(Fetch::Argument(number)),
            },
        }
    }

    fn returned(&self, value: Piece, steps: Vec<PathStep>) -> Parsed<Fetch> {
        if !self.place.is_return() {
            return Err(value.error("only a return probe has the return value: use r, or %return behind the place"));
        }
        Ok(Fetch::Return(steps))
    }

    fn absolute(&self, value: Piece) -> Parsed<Fetch> {
        let behind = value.split_at(1).1;
        if behind.text().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Fetch::At(number(behind)?));
        }
        if let Some(offset) = behind.strip_prefix("+") {
            if !matches!(self.place, ProbePoint::File { .. } | ProbePoint::Usdt { .. }) {
                return Err(value.error("@+OFFSET is a place in a program's file; the kernel's memory is @ADDRESS or @SYMBOL"));
            }
            return Ok(Fetch::AtFileOffset(number(offset)?));
        }
        let (name, offset) = behind.split_while(|c| c != '+' && c != '-');
        Ok(Fetch::AtSymbol { symbol: symbol(name)?, offset: if offset.is_empty() { 0 } else { signed(offset)? } })
    }

    fn memory(&mut self, value: Piece) -> Parsed<Fetch> {
        if self.depth == DEPTH_MAX {
            return Err(value.error("this is nested too deep"));
        }
        let Some((before, inside)) = value.split_once('(') else {
            return Err(value.error_behind("a parenthesis is missing: memory is fetched by +OFFSET(ADDRESS)"));
        };
        let Some(inside) = inside.strip_suffix(")") else {
            return Err(if inside.text().contains(')') {
                inside.rsplit_once(')').map_or(inside, |(_, behind)| behind).error("only :TYPE may follow the parenthesis")
            } else {
                value.error_behind("this parenthesis is not closed")
            });
        };
        if inside.text().matches(')').count() > inside.text().matches('(').count() {
            return Err(value.split_at(value.text().len() - 1).1.error("this closing parenthesis has no opening one"));
        }
        let (sign, digits) = before.split_at(1);
        let (user, digits) = digits.strip_prefix("u").map_or((false, digits), |digits| (true, digits));
        // The kernel reads +-8 as -8.
        let (negative, digits) =
            digits.strip_prefix("-").filter(|_| sign.text() == "+").map_or((sign.text() == "-", digits), |digits| (true, digits));
        let magnitude = number(digits)?;
        let offset = if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
        let offset = offset.ok_or_else(|| before.error("the offset does not fit into 64 bits"))?;
        self.depth += 1;
        let of = self.value(inside)?;
        self.depth -= 1;
        Ok(Fetch::Memory { user, offset, of: Box::new(of) })
    }

    fn immediate(&self, value: Piece) -> Parsed<Fetch> {
        let behind = value.split_at(1).1;
        if let Some(text) = behind.strip_prefix("\"") {
            let Some(text) = text.strip_suffix("\"") else {
                return Err(value.error("a text ends with a quote: \\\"TEXT\""));
            };
            if self.depth > 0 {
                return Err(value.error("a text has no address, so it cannot be in parentheses"));
            }
            if text.text().contains(|c: char| "\":#".contains(c) || c.is_whitespace() || c.is_control()) {
                return Err(text.error("the kernel accepts no blanks, colons, quotes or # in a text"));
            }
            return Ok(Fetch::ImmediateText(text.text().to_owned()));
        }
        match behind.text().chars().next() {
            Some('+' | '-') => Ok(Fetch::Immediate(signed(behind)?)),
            // The bits are the same: \0xffffffffffffffff is \-1.
            _ => Ok(Fetch::Immediate(number(behind)?.cast_signed())),
        }
    }

    fn variable(&self, value: Piece) -> Parsed<Fetch> {
        let (name, steps) = value.split_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_identifier(name.text()) {
            let what = format!(
                "`{}` cannot be fetched: write %REGISTER, $stack0, $arg1, $retval, +0(...), @SYMBOL, \\1, or a variable's name",
                value.text().escape_debug()
            );
            return Err(value.error(what));
        }
        if self.on_event() {
            return Err(value.error(format!("a field of the event is written ${}", name.text())));
        }
        if steps.is_empty()
            && self.on_kprobe()
            && let Some(old) = self.old_spelling(name)?
        {
            return Ok(old);
        }
        Ok(Fetch::Variable { name: name.text().to_owned(), path: self.steps(steps)? })
    }

    /// Parses the spellings of 2009, when kprobe events were new (kernel/trace/trace_kprobe.c of that time): `a0` is
    /// the first argument.
    fn old_spelling(&self, name: Piece) -> Parsed<Option<Fetch>> {
        match name.text() {
            "sa" => return Ok(Some(Fetch::StackAddress)),
            "rv" => return self.returned(name, Vec::new()).map(Some),
            "ra" if self.place.is_return() => return Ok(Some(Fetch::Register(INSTRUCTION_POINTER.to_owned()))),
            "ra" => {
                return Err(
                    name.error("only a return probe has the address that the function returns to: use r, or %return behind the place")
                );
            }
            _ => {}
        }
        let (letter, digits) = name.split_at(1);
        if digits.is_empty() || !digits.text().bytes().all(|b| b.is_ascii_digit()) {
            return Ok(None);
        }
        match letter.text() {
            "a" => match index(digits)?.checked_add(1) {
                Some(number) => Ok(Some(Fetch::Argument(number))),
                None => Err(name.error("no function has so many arguments")),
            },
            "s" => Ok(Some(Fetch::Stack(index(digits)?))),
            _ => Ok(None),
        }
    }

    fn steps(&self, steps: Piece) -> Parsed<Vec<PathStep>> {
        let mut path = Vec::new();
        let mut rest = steps;
        while !rest.is_empty() {
            let (step, behind) = if let Some(behind) = rest.strip_prefix("->") {
                let (name, behind) = behind.split_while(|c| c.is_ascii_alphanumeric() || c == '_');
                (PathStep::Arrow(member(name)?), behind)
            } else if let Some(behind) = rest.strip_prefix(".") {
                let (name, behind) = behind.split_while(|c| c.is_ascii_alphanumeric() || c == '_');
                (PathStep::Dot(member(name)?), behind)
            } else if let Some(behind) = rest.strip_prefix("[") {
                let (number, behind) = behind.split_once(']').ok_or_else(|| rest.error("this bracket is not closed"))?;
                (PathStep::Index(element(number)?), behind)
            } else {
                return Err(rest.error("only ->MEMBER, .MEMBER, [NUMBER] or :TYPE may follow a variable"));
            };
            path.push(step);
            rest = behind;
        }
        Ok(path)
    }
}

/// Parses the name of a member, or its number in a tuple.
fn member(name: Piece) -> Parsed<String> {
    if name.is_empty() {
        return Err(name.error("a member's name is missing here"));
    }
    Ok(name.text().to_owned())
}

fn element(number: Piece) -> Parsed<i64> {
    match number.text().chars().next() {
        Some('+' | '-') => signed(number),
        _ => i64::try_from(self::number(number)?).map_err(|_| number.error("no array has so many elements")),
    }
}

/// The kernel's names of the registers (regs_query_register_offset() in arch/*/kernel/ptrace.c).
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
