//! Prints memory that a call both read and wrote. Each innermost value that changed is printed as `old => new`.

use super::value::{close, member, write as write_one};
use crate::beauty::value::{ArrayValue, StructValue, Value};

/// Appends the new value, with `old => new` for the parts that differ. A part whose memory could be read only at entry
/// or only at exit is printed as unchanged.
pub fn write(out: &mut Vec<u8>, old: &Value, new: &Value, prefixes: bool) {
    if old == new {
        return write_one(out, new, prefixes);
    }
    match (old, new) {
        (Value::Unread(1..), new) => write_one(out, new, prefixes),
        // A NULL pointer has no memory that could be read.
        (old, Value::Unread(1..)) if *old != Value::Unread(0) => write_one(out, old, prefixes),
        (Value::Struct(old), Value::Struct(new)) if is_part(old, new) || is_part(new, old) => members(out, old, new, prefixes),
        (Value::Array(old), Value::Array(new)) if old.items.len() == new.items.len() => items(out, old, new, prefixes),
        (old, new) => {
            write_one(out, old, prefixes);
            out.extend_from_slice(b" => ");
            write_one(out, new, prefixes);
        }
    }
}

/// Returns whether the members of a struct are members of the other one, in the same order. A call may read fewer
/// members than it writes, or the other way round.
fn is_part(part: &StructValue, whole: &StructValue) -> bool {
    let mut rest = whole.members.iter();
    part.members.iter().all(|(name, _)| rest.any(|(other, _)| other == name))
}

fn members(out: &mut Vec<u8>, old: &StructValue, new: &StructValue, prefixes: bool) {
    // The struct with fewer members, the other one, and whether that is the new one.
    let (part, whole, is_new) = if is_part(old, new) { (old, new, true) } else { (new, old, false) };
    let mut parts = part.members.iter().peekable();
    out.push(b'{');
    for (i, (name, value)) in whole.members.iter().enumerate() {
        member(out, i, name);
        match parts.next_if(|(other, _)| other == name) {
            Some((_, before)) if is_new => write(out, before, value, prefixes),
            Some((_, after)) => write(out, value, after, prefixes),
            None => write_one(out, value, prefixes),
        }
    }
    close(out, whole.members.is_empty(), new.more, b'}');
}

fn items(out: &mut Vec<u8>, old: &ArrayValue, new: &ArrayValue, prefixes: bool) {
    out.push(b'[');
    for (i, (old, new)) in old.items.iter().zip(&new.items).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write(out, old, new, prefixes);
    }
    close(out, new.items.is_empty(), new.more, b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure<const N: usize>(members: [(&'static str, Value<'static>); N]) -> Value<'static> {
        Value::Struct(StructValue { name: "s", address: 0x1000, members: members.into(), more: false })
    }

    fn array(items: &[u64]) -> Value<'static> {
        Value::Array(ArrayValue { items: items.iter().copied().map(Value::Uint).collect(), ..ArrayValue::default() })
    }

    fn written(old: &Value, new: &Value) -> String {
        let mut out = Vec::new();
        write(&mut out, old, new, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_changed_parts_have_an_old_value() {
        assert_eq!(written(&Value::Uint(1), &Value::Uint(1)), "1");
        let of = |b| structure([("a", Value::Uint(1)), ("b", Value::Uint(b))]);
        assert_eq!(written(&of(2), &of(3)), "{.a: 1, .b: 2 => 3}");
        assert_eq!(written(&structure([("a", Value::Uint(1))]), &of(3)), "{.a: 1, .b: 3}");
        assert_eq!(written(&of(3), &structure([("a", Value::Uint(2))])), "{.a: 1 => 2, .b: 3}", "the call wrote only `a`");
        let read = structure([("b", Value::Uint(2))]);
        assert_eq!(written(&read, &of(3)), "{.a: 1, .b: 2 => 3}", "the call read only `b`");
        let nothing = Value::Struct(StructValue { name: "s", address: 0x1000, members: [].into(), more: true });
        assert_eq!(written(&of(3), &nothing), "{.a: 1, .b: 3, ...}");
        assert_eq!(written(&array(&[0, 4]), &array(&[0, 5])), "[0, 4 => 5]");
        assert_eq!(written(&array(&[]), &array(&[5])), "[] => [5]");
    }

    #[test]
    fn a_value_that_was_read_only_once_is_unchanged() {
        let of = |value| structure([("a", value)]);
        assert_eq!(written(&of(Value::Unread(9)), &of(Value::Uint(2))), "{.a: 2}");
        assert_eq!(written(&Value::Uint(1), &Value::Unread(9)), "1");
        assert_eq!(written(&Value::Unread(0), &Value::Unread(9)), "NULL => 0x9", "a null pointer has no memory to read");
    }
}
