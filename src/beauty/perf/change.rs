//! What a call changed in memory that it both read and wrote: `old => new` where the two differ, as deep inside as they are alike.

use super::value::{close, member, write as write_one};
use crate::beauty::value::{List, Record, Value};

/// Appends the new value, with `old => new` where they differ. What could not be read at one of the two moments did not change.
pub fn write(out: &mut Vec<u8>, old: &Value, new: &Value, prefixes: bool) {
    if old == new {
        return write_one(out, new, prefixes);
    }
    match (old, new) {
        (Value::Unread(_), new) => write_one(out, new, prefixes),
        (old, Value::Unread(_)) => write_one(out, old, prefixes),
        (Value::Struct(old), Value::Struct(new)) if alike(old, new) => members(out, old, new, prefixes),
        (Value::Array(old), Value::Array(new)) if old.items.len() == new.items.len() => items(out, old, new, prefixes),
        (old, new) => {
            write_one(out, old, prefixes);
            out.extend_from_slice(b" => ");
            write_one(out, new, prefixes);
        }
    }
}

/// Whether these are the same members; the call may have read fewer than it wrote.
fn alike(old: &Record, new: &Record) -> bool {
    old.members.len() <= new.members.len() && old.members.iter().zip(&new.members).all(|((old, _), (new, _))| old == new)
}

fn members(out: &mut Vec<u8>, old: &Record, new: &Record, prefixes: bool) {
    out.push(b'{');
    for (i, (name, value)) in new.members.iter().enumerate() {
        member(out, i, name);
        match old.members.get(i) {
            Some((_, old)) => write(out, old, value, prefixes),
            None => write_one(out, value, prefixes),
        }
    }
    close(out, new.members.is_empty(), new.more, b'}');
}

fn items(out: &mut Vec<u8>, old: &List, new: &List, prefixes: bool) {
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
        Value::Struct(Record { name: "s", address: 0x1000, members: members.into(), more: false })
    }

    fn array(items: &[u64]) -> Value<'static> {
        Value::Array(List { items: items.iter().copied().map(Value::Uint).collect(), ..List::default() })
    }

    fn told(old: &Value, new: &Value) -> String {
        let mut out = Vec::new();
        write(&mut out, old, new, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_differs_is_told_twice() {
        assert_eq!(told(&Value::Uint(1), &Value::Uint(1)), "1");
        let of = |b| structure([("a", Value::Uint(1)), ("b", Value::Uint(b))]);
        assert_eq!(told(&of(2), &of(3)), "{.a: 1, .b: 2 => 3}");
        assert_eq!(told(&structure([("a", Value::Uint(1))]), &of(3)), "{.a: 1, .b: 3}");
        assert_eq!(told(&array(&[0, 4]), &array(&[0, 5])), "[0, 4 => 5]");
        assert_eq!(told(&array(&[]), &array(&[5])), "[] => [5]");
    }

    #[test]
    fn what_was_unreadable_once_did_not_change() {
        let of = |value| structure([("a", value)]);
        assert_eq!(told(&of(Value::Unread(9)), &of(Value::Uint(2))), "{.a: 2}");
        assert_eq!(told(&Value::Uint(1), &Value::Unread(9)), "1");
    }
}
