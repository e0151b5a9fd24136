//! Prints the arguments of a call, and what strace shows of them behind the result.

use super::constants::{has_flag, hex, is_called};
use super::forms;
use super::part::{self, is_shown};
use super::value::Options;
use super::words;
use crate::beauty::decode::{Argument, Decoded, Values};
use crate::beauty::row::{Flow, Form, Part, Side, Test, When};
use crate::beauty::value::{Returned, Value};
use crate::text::number;
use smallvec::SmallVec;

/// The parts of a call, in strace's order.
type CallParts = SmallVec<[Part; 6]>;

/// Which part of a call a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The whole call.
    Both,
    /// What is known when it begins (`<unfinished ...>`).
    First,
    /// What is known when it ends (`<... read resumed>`).
    Second,
    /// Nothing: the trace ends behind the first half.
    Neither,
}

/// An argument that is shown.
struct Shown<'d, 'a> {
    argument: Argument<'d, 'a>,
    part: Part,
    values: Values<'a>,
}

/// Appends the arguments that a half of a call shows: those before the first one that the kernel writes, or the others.
/// `names`: each has its name.
pub fn write(out: &mut Vec<u8>, decoded: &Decoded, half: Half, names: bool, options: Options) {
    let arguments = shown(decoded);
    let first_written = || arguments.iter().position(is_written).unwrap_or(arguments.len());
    let range = match half {
        Half::Both => 0..arguments.len(),
        Half::First => 0..first_written(),
        Half::Second => first_written()..arguments.len(),
        Half::Neither => 0..0,
    };
    for (at, Shown { part, values, argument }) in arguments.iter().enumerate().filter(|(at, _)| range.contains(at)) {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        let label = if part.label.is_empty() && names { argument.name() } else { part.label };
        if !label.is_empty() {
            out.extend_from_slice(label.as_bytes());
            out.push(b'=');
        }
        match pointer(values).filter(|_| !options.dereferenced) {
            Some(address) => number::hex(out, address),
            None => whole(out, values, part, options),
        }
    }
}

/// Returns whether strace writes something about the arguments of a call only when it has returned.
pub fn has_second_half(decoded: &Decoded) -> bool {
    let is_behind = || parts(decoded).is_some_and(|parts| parts.iter().any(|part| part.is_behind));
    shown(decoded).iter().any(is_written) || is_behind()
}

/// Returns whether the kernel writes an argument, so that strace shows it when the call has returned.
fn is_written(one: &Shown) -> bool {
    one.part.side != Side::Before && one.argument.row().is_some_and(|row| row.flow != Flow::In)
}

/// Appends all arguments as numbers (`-e raw=`).
pub fn write_raw(out: &mut Vec<u8>, decoded: &Decoded, names: bool) {
    for (at, argument) in decoded.args().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        if names {
            out.extend_from_slice(argument.name().as_bytes());
            out.push(b'=');
        }
        for (part, register) in argument.registers().iter().enumerate() {
            out.extend_from_slice(if part > 0 { b", " } else { b"" });
            hex(out, *register);
        }
    }
}

/// Returns the address of the struct or array that an argument points to.
fn pointer(values: &Values) -> Option<u64> {
    let address = match values.entry().or(values.exit())? {
        Value::Str(_) => None,
        Value::Entries { first, .. } => Some(first.address),
        Value::Uncopied { address, .. } => Some(*address),
        value => part::address_of(value),
    };
    address.filter(|address| *address != 0)
}

/// Returns the arguments that strace shows, in its order.
fn shown<'d, 'a>(decoded: &'d Decoded<'a>) -> SmallVec<[Shown<'d, 'a>; 6]> {
    let Some(parts) = parts(decoded) else {
        let plain = |argument: Argument<'d, 'a>| Shown { argument, part: PLAIN, values: argument.values() };
        return decoded.args().filter(Argument::is_used).map(plain).collect();
    };
    let holds =
        |name: &str, test: &dyn Fn(&Value) -> bool| find(decoded, name).is_some_and(|other| other.values().entry().is_some_and(test));
    let one = |part: Part| {
        let argument = find(decoded, part.name).filter(|argument| argument.is_used() || part.test == Test::Unused)?;
        let values = match (part.form, argument.values()) {
            (Form::Option | Form::Int, values) if !matches!(values.exit().or(values.entry()), Some(Value::Unread(_))) => {
                Values::Entry(argument.bytes())
            }
            (Form::Bytes, Values::Entry(value) | Values::Exit(value)) if !matches!(value, Value::Str(_) | Value::Unread(_)) => {
                Values::Entry(argument.bytes())
            }
            (Form::Words, Values::Entry(value)) => {
                let words = words::of_nodes(&argument, decoded.args(), &value);
                Values::Entry(words.unwrap_or(value))
            }
            (Form::Words, Values::Exit(value)) => {
                let words = words::of_nodes(&argument, decoded.args(), &value);
                Values::Exit(words.unwrap_or(value))
            }
            (Form::Success, _) if matches!(decoded.returned(), Returned::Error(_)) => {
                Values::Entry(Value::Address(argument.registers().first().copied().unwrap_or_default()))
            }
            (_, values) => values,
        };
        let is_left_out = values.entry().or(values.exit()).is_some_and(|value| !is_shown(&part, value, &holds));
        (!is_left_out).then_some(Shown { argument, part, values })
    };
    parts.into_iter().filter(|part| !part.is_behind).filter_map(one).collect()
}

/// Appends what the call has written to the arguments that strace shows behind the result: ` (in [3])`.
pub fn behind(out: &mut Vec<u8>, decoded: &Decoded, options: Options) {
    let Some(parts) = parts(decoded).filter(|_| options.dereferenced) else { return };
    let mut separator: &[u8] = b" (";
    for part in parts.iter().filter(|part| part.is_behind) {
        let Some(argument) = find(decoded, part.name) else { continue };
        let values = argument.values();
        let Some(value) = values.exit().or(values.entry()).filter(|value| !is_nothing(value)) else { continue };
        out.extend_from_slice(std::mem::replace(&mut separator, b", "));
        if !part.label.is_empty() {
            out.extend_from_slice(part.label.as_bytes());
            out.push(b' ');
        }
        part::write_as(out, value, part.form, options);
    }
    out.extend_from_slice(if separator == b", " { b")" } else { b"" });
}

/// An argument that no row describes.
const PLAIN: Part =
    Part { name: "", label: "", side: Side::Both, form: Form::Plain, test: Test::Always, is_verbose: false, is_behind: false };

/// Returns the parts of a call: those of its row, or else all arguments, and in place of some those of the rows for
/// certain values of arguments. `None`: no row describes the call.
fn parts(decoded: &Decoded) -> Option<CallParts> {
    let name = decoded.row()?.name;
    let form = forms::of_call(name);
    let own = form.parts;
    let rules: SmallVec<[&When; 4]> = form.when.iter().filter(|rule| applies(rule, decoded)).collect();
    if own.is_none() && rules.is_empty() {
        return None;
    }
    let mut parts: CallParts = match own {
        Some(own) => own.iter().copied().collect(),
        None => decoded.args().map(|argument| Part { name: argument.name(), ..PLAIN }).collect(),
    };
    for part in parts.iter_mut().filter(|part| !part.is_behind) {
        let other = rules.iter().flat_map(|rule| rule.parts).find(|other| other.name == part.name && !other.is_behind);
        *part = other.copied().unwrap_or(*part);
    }
    parts.extend(rules.iter().flat_map(|rule| rule.parts).filter(|part| part.is_behind).copied());
    Some(parts)
}

fn find<'d, 'a>(decoded: &'d Decoded<'a>, name: &str) -> Option<Argument<'d, 'a>> {
    decoded.args().find(|argument| argument.name() == name)
}

/// Returns whether a row applies: each argument that it tests has one of the values, or one of the flags.
fn applies(rule: &When, decoded: &Decoded) -> bool {
    let is_one_of = |value: &Value, names: &[&str]| names.iter().any(|name| is_called(value, name) || has_flag(value, name));
    rule.tests.iter().all(|(name, values)| {
        find(decoded, name).is_some_and(|argument| argument.values().entry().is_some_and(|value| is_one_of(value, values)))
    })
}

fn whole(out: &mut Vec<u8>, values: &Values, part: &Part, options: Options) {
    match values {
        Values::Entry(only) | Values::Exit(only) => part::write_as(out, only, part.form, options),
        Values::Both(both) => part::write_both(out, both, part, options),
    }
}

/// Returns whether there is nothing that could be shown behind a result.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(of) => of.items.is_empty(),
        Value::Unread(_) | Value::Address(_) => true,
        _ => false,
    }
}
