//! The language of `--inject` and of strace's `-e inject=` and `-e fault=`: which calls are answered, delayed or
//! accompanied by a signal.
//!
//! ```text
//! openat,%network:error=ENOENT:when=3..9+2
//! ```

use super::{Item, Selector, select};
use crate::beauty::{errno, signal};
use crate::session::Terms;
use crate::text::quantity;

/// The greatest number in `when=`.
const WHEN_MAX: u16 = u16::MAX;
/// The kernel's first real-time signal (include/uapi/asm-generic/signal.h).
const SIGRTMIN: i32 = 32;
/// MAX_ERRNO (include/linux/err.h).
const ERRNO_MAX: i32 = 4095;

/// The method of changing calls (`--inject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectBy {
    /// The BPF programs if they can do it, otherwise a supervisor.
    #[default]
    Auto,
    /// The BPF programs, which override the results of the kernel's functions.
    Override,
    /// A supervisor that a seccomp filter of the command asks.
    Seccomp,
}

/// One `--inject`.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// The option as it was typed.
    pub text: String,
    /// The items that select the calls.
    pub items: Vec<Item>,
    /// What happens to each of them.
    pub effect: Effect,
}

/// What happens to a call, and to which calls of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Effect {
    /// The value that the call returns without being executed: a negative errno if it fails.
    pub returns: Option<i64>,
    /// That value was given as a value (`retval=`), and not as an error.
    pub by_value: bool,
    /// The nanoseconds that the call waits before it is executed or answered.
    pub delay: Option<u64>,
    /// The signal that the thread gets.
    pub signal: Option<i32>,
    /// Which calls of a thread.
    pub when: When,
}

impl Effect {
    /// Returns whether the calls return a value that would be taken for an error, or for another number of 32 bits.
    pub fn is_value(&self) -> bool {
        self.inadvertent_error().is_some() || self.by_value && self.returns.is_some_and(|value| i32::try_from(value).is_err())
    }

    /// Returns a warning about the value of `retval=` in the words of strace, if there is a reason for one: the program
    /// takes it for an error, or a 32-bit program would do so, or would get less of it.
    pub fn warning(&self) -> Option<String> {
        let value = self.returns.filter(|_| self.by_value)? as u64;
        let of_32_bits = value as u32;
        let error_there = (of_32_bits as i32).wrapping_neg();
        match self.inadvertent_error() {
            Some(error) => Some(format!("Inadvertent injection of error {error} is possible for retval={value}")),
            None if (1..=ERRNO_MAX).contains(&error_there) => {
                Some(format!("Inadvertent injection of error {error_there} is possible in compat personality for retval={value}"))
            }
            None if u64::from(of_32_bits) != value => {
                Some(format!("Injected return value {value} will be clipped to {of_32_bits} in compat personality"))
            }
            None => None,
        }
    }

    /// Returns the errno that the value of `retval=` stands for, if it does.
    pub fn inadvertent_error(&self) -> Option<i64> {
        self.returns.map(|value| value.wrapping_neg()).filter(|errno| self.by_value && (1..=i64::from(ERRNO_MAX)).contains(errno))
    }
}

/// Which calls of one syscall by one thread are meant, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct When {
    /// The first one.
    pub first: u16,
    /// The last one.
    pub last: u16,
    /// The distance from one to the next; 0 for the first one only.
    pub step: u16,
}

impl Default for When {
    fn default() -> When {
        When { first: 1, last: WHEN_MAX, step: 1 }
    }
}

impl When {
    /// Returns whether all calls are meant.
    pub fn is_always(self) -> bool {
        self == When::default()
    }

    /// Returns whether the call with this number is meant. `last` has no end if it is the greatest number.
    pub fn applies(self, number: u64) -> bool {
        let Some(after) = number.checked_sub(self.first.into()) else { return false };
        if self.step == 0 {
            return after == 0;
        }
        (number <= self.last.into() || self.last == WHEN_MAX) && after.is_multiple_of(self.step.into())
    }
}

/// Parses `SET:ACTION[:ACTION]...`.
///
/// # Errors
/// A sentence says which part is wrong, and why.
pub fn parse(text: &str) -> Result<Injection, String> {
    let (set, actions) = split_set(text);
    let items = if set == "all" { vec![everything()] } else { select::parse_list(set, 0).map_err(|error| error.to_string())? };
    if let Some(item) = items.iter().find(|item| !item.selector.selects_syscalls() || item.terms != Terms::default()) {
        return Err(format!("{}: only syscalls can be changed, which are named without terms", item.selector));
    }
    let actions = actions.ok_or("what is to happen to the calls is missing: write SET:error=ENOENT, for example")?;
    Ok(Injection { text: text.to_owned(), items, effect: effect(actions)? })
}

/// Splits at the first colon that does not belong to a regex. A regex without its second slash ends at the first colon.
pub fn split_set(text: &str) -> (&str, Option<&str>) {
    let mut in_regex = false;
    let mut begins = true;
    for (at, character) in text.char_indices() {
        match character {
            '/' if begins && !in_regex => in_regex = true,
            '/' if in_regex => in_regex = false,
            ':' if !in_regex => return (&text[..at], Some(&text[at + 1..])),
            _ => {}
        }
        begins = matches!(character, ',' | '!');
    }
    match text.split_once(':').filter(|_| in_regex) {
        Some((set, actions)) => (set, Some(actions)),
        None => (text, None),
    }
}

/// Returns the item of all syscalls.
fn everything() -> Item {
    Item { negated: false, selector: Selector::Syscall("*".to_owned()), terms: Terms::default(), filter: None, list: 0 }
}

/// Parses the actions, which are separated by colons.
///
/// # Errors
/// A sentence says which action is wrong, and why.
pub fn effect(actions: &str) -> Result<Effect, String> {
    let mut effect = Effect::default();
    let mut seen: Vec<&str> = Vec::new();
    for action in actions.split(':') {
        let (name, value) = action.split_once('=').unwrap_or((action, ""));
        if seen.contains(&name) && name != "when" {
            return Err(format!("{name}= is there twice"));
        }
        seen.push(name);
        let wrong = |what: &str| format!("{action}: {what}");
        match name {
            "error" => effect.returns = Some(-i64::from(error(value).ok_or_else(|| wrong(ERROR))?)),
            "retval" => {
                (effect.returns, effect.by_value) = (Some(value_of(value).ok_or_else(|| wrong("the value is no number of 64 bits"))?), true)
            }
            "signal" => effect.signal = Some(signal_of(value).ok_or_else(|| wrong("there is no such signal"))?),
            "delay_enter" => effect.delay = Some(delay(value).ok_or_else(|| wrong(DELAY))?),
            "when" => effect.when = when(value).ok_or_else(|| wrong(WHEN))?,
            "delay_exit" => {
                return Err(wrong("rtrace does not stop calls at their return, so it can delay them only before (delay_enter=)"));
            }
            "poke_enter" | "poke_exit" => return Err(wrong("rtrace does not write to the memory of programs")),
            "syscall" => return Err(wrong("rtrace cannot exchange a call for another one; error= and retval= answer it")),
            _ => return Err(wrong("an action is error=, retval=, signal=, delay_enter= or when=")),
        }
    }
    match () {
        () if seen.contains(&"error") && seen.contains(&"retval") => Err("error= and retval= exclude each other".to_owned()),
        () if seen.iter().all(|name| *name == "when") => {
            Err("when= only says which calls: what is to happen to them is missing (error=, for example)".to_owned())
        }
        () => Ok(effect),
    }
}

const ERROR: &str = "the error is a name (ENOENT) or a number from 1 to 4095";
const DELAY: &str = "the delay is a number with or without us (the default), ms, s or ns";
const WHEN: &str = "write FIRST, FIRST+, FIRST+STEP, FIRST..LAST or FIRST..LAST+STEP, with numbers from 1 to 65535 (LAST is at most 65534)";

fn error(text: &str) -> Option<i32> {
    let number = text.parse().ok().or_else(|| errno::number(&text.to_uppercase()));
    number.filter(|number| (1..=ERRNO_MAX).contains(number))
}

/// Parses a number as C has it: decimal, hexadecimal (0x), octal (0) or binary (0b), signed or not.
fn value_of(text: &str) -> Option<i64> {
    let text = text.trim_start().to_lowercase();
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text.strip_prefix('+').unwrap_or(&text)), |digits| (true, digits));
    let (radix, digits) = match (digits.strip_prefix("0x"), digits.strip_prefix("0b"), digits.strip_prefix('0')) {
        (Some(hex), ..) => (16, hex),
        (_, Some(binary), _) => (2, binary),
        (.., Some("")) => (10, "0"),
        (.., Some(octal)) => (8, octal),
        _ => (10, digits),
    };
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()? as i64;
    Some(if is_negative { value.wrapping_neg() } else { value })
}

fn signal_of(text: &str) -> Option<i32> {
    let name = text.to_uppercase();
    let first_of_all = matches!(name.as_str(), "SIGRTMIN" | "RTMIN").then_some(SIGRTMIN);
    let number = text.parse().ok().or(first_of_all).or_else(|| signal::number(&name));
    number.filter(|number| (1..=64).contains(number))
}

/// Returns nanoseconds.
fn delay(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
    let number = &text[..text.len() - unit.len()];
    let scale =
        quantity::time_scale(if unit.is_empty() { "us" } else { unit }).filter(|_| matches!(unit, "" | "s" | "ms" | "us" | "ns"))?;
    quantity::scaled(number, scale).ok()
}

fn when(text: &str) -> Option<When> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|number| *number > 0);
    let (range, step) = match text.split_once('+') {
        Some((range, "")) => (range, Some(1)),
        Some((range, step)) => (range, Some(number(step)?)),
        None => (text, None),
    };
    let (first, last) = match range.split_once("..") {
        Some((first, last)) => (number(first)?, Some(number(last)?)),
        None => (number(range)?, None),
    };
    // The greatest number stands for no end.
    if last.is_some_and(|last| last < first || last == WHEN_MAX) {
        return None;
    }
    let single = last.is_none() && step.is_none();
    Some(When { first, last: last.unwrap_or(WHEN_MAX), step: step.unwrap_or(u16::from(!single)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<u64> {
        let when = when(text).unwrap();
        (1..=12).filter(|number| when.applies(*number)).collect()
    }

    #[test]
    fn when_selects_calls_by_number() {
        assert_eq!(numbers("3"), [3]);
        assert_eq!(numbers("10+"), [10, 11, 12]);
        assert_eq!(numbers("2+4"), [2, 6, 10]);
        assert_eq!(numbers("3..5"), [3, 4, 5]);
        assert_eq!(numbers("3..8+2"), [3, 5, 7]);
        assert!(When::default().applies(70_000) && when("2+").unwrap().applies(70_000));
        for wrong in ["", "0", "a", "1..", "..2", "3..2", "1+0", "65536", "1..65535", "1..65536", "1+2+3", "-1", "1..2..3"] {
            assert_eq!(when(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn actions_have_values() {
        let of = |text: &str| effect(text).unwrap();
        assert_eq!(of("error=ENOENT").returns, Some(-2));
        assert_eq!((of("error=eperm").returns, of("error=4095").returns), (Some(-1), Some(-4095)));
        assert_eq!((of("retval=0x10").returns, of("retval=-3").returns, of("retval=0").returns), (Some(16), Some(-3), Some(0)));
        assert_eq!(of("retval=18446744073709551615").returns, Some(-1));
        assert_eq!((of("signal=SIGUSR1").signal, of("signal=usr1").signal, of("signal=9").signal), (Some(10), Some(10), Some(9)));
        let delays = ["7", "7us", "1.5ms", "2s", "300ns"].map(|text| of(&format!("delay_enter={text}")).delay);
        assert_eq!(delays, [Some(7_000), Some(7_000), Some(1_500_000), Some(2_000_000_000), Some(300)]);
        let values = ["0x1F", "077", "0", "00", "-0x1", "+5", " 5", "0b101", "0xffffffffffffffff"];
        let values = values.map(|value| of(&format!("retval={value}")).returns.unwrap());
        assert_eq!(values, [31, 63, 0, 0, -1, 5, 5, 5, -1]);
        assert_eq!((of("signal=SIGRTMIN").signal, of("signal=rt_2").signal), (Some(32), Some(34)));
        assert_eq!(of("error=1:when=2:when=3").when.first, 3, "the last one counts");
        assert_eq!((of("retval=-2").is_value(), of("retval=-4096").is_value(), of("error=2").is_value()), (true, false, false));
        assert!(of("retval=0x100000000").is_value() && of("retval=0xfffffffe").is_value() && !of("retval=0x7fffffff").is_value());
        let all = of("error=5:delay_enter=1:signal=1:when=2");
        assert_eq!((all.returns, all.delay, all.signal, all.when.first), (Some(-5), Some(1000), Some(1), 2));
    }

    #[test]
    fn mistakes_have_sentences() {
        for (text, expected) in [
            ("error=EFOO", "error=EFOO: the error is a name"),
            ("error=4096", "error=4096: the error is a name"),
            ("error", "error: the error is a name"),
            ("retval=08", "retval=08: the value is no number"),
            ("retval=0x", "the value is no number"),
            ("retval=--1", "the value is no number"),
            ("retval=1x", "retval=1x: the value is no number"),
            ("retval=18446744073709551616", "the value is no number"),
            ("signal=65", "there is no such signal"),
            ("delay_enter=1x", "the delay is a number"),
            ("delay_enter=1min", "the delay is a number"),
            ("delay_enter=-1", "the delay is a number"),
            ("when=1", "what is to happen to them is missing"),
            ("error=1:when=0", "when=0: write FIRST"),
            ("error=1:error=2", "error= is there twice"),
            ("error=1:retval=2", "exclude each other"),
            ("delay_exit=1", "delay_exit=1: rtrace does not stop calls at their return"),
            ("poke_enter=@arg1=00", "rtrace does not write"),
            ("syscall=getpid", "rtrace cannot exchange"),
            ("", "an action is error="),
            ("bogus=1", "bogus=1: an action is error="),
        ] {
            let refused = effect(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    #[test]
    fn the_set_ends_at_the_first_colon_outside_of_a_regex() {
        assert_eq!(split_set("openat,%file:error=1:when=2"), ("openat,%file", Some("error=1:when=2")));
        assert_eq!(split_set("!/a:b/,x:error=1"), ("!/a:b/,x", Some("error=1")));
        assert_eq!(split_set("openat"), ("openat", None));
        assert_eq!(split_set("/^open:error=1:when=2"), ("/^open", Some("error=1:when=2")), "a regex without its end");
        assert!(parse("openat").unwrap_err().contains("what is to happen"));
        assert!(parse("io_uring:openat:error=1").is_err());
        assert_eq!(parse("all:error=1").unwrap().items.len(), 1);
        assert_eq!(parse("openat,close:error=1").unwrap().items.len(), 2);
    }
}
