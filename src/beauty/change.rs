//! What a call changed in memory that it both read and wrote: the two values put into one.

use super::value::Value;

/// The new value, with `old => new` where they differ, as deep inside as they are alike. What could not be read at one of the two moments did not change.
pub fn change<'a>(old: Value<'a>, new: Value<'a>) -> Value<'a> {
    if old == new {
        return new;
    }
    match (old, new) {
        (Value::Unread(_), new) => new,
        (old, Value::Unread(_)) => old,
        (Value::Struct { members: old, more: _ }, Value::Struct { members: mut new, more }) if alike(&old, &new) => {
            let rest = new.split_off(old.len());
            let both = old.into_iter().zip(new).map(|((name, old), (_, new))| (name, change(old, new)));
            Value::Struct { members: both.chain(rest).collect(), more }
        }
        (Value::Array { items: old, more: _ }, Value::Array { items: new, more }) if old.len() == new.len() => {
            Value::Array { items: old.into_iter().zip(new).map(|(old, new)| change(old, new)).collect(), more }
        }
        (old, new) => Value::Change(Box::new(old), Box::new(new)),
    }
}

/// Whether these are the same members; the call may have read fewer than it wrote.
fn alike(old: &[(&str, Value)], new: &[(&str, Value)]) -> bool {
    old.len() <= new.len() && old.iter().zip(new).all(|((old, _), (new, _))| old == new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(a: u64, b: Value) -> Value {
        Value::Struct { members: vec![("a", Value::Uint(a)), ("b", b)], more: false }
    }

    fn changed(old: u64, new: u64) -> Value<'static> {
        Value::Change(Box::new(Value::Uint(old)), Box::new(Value::Uint(new)))
    }

    #[test]
    fn only_what_differs_is_told_twice() {
        assert_eq!(change(Value::Uint(1), Value::Uint(1)), Value::Uint(1));
        assert_eq!(change(structure(1, Value::Uint(2)), structure(1, Value::Uint(3))), structure(1, changed(2, 3)));
        let asked = Value::Struct { members: vec![("a", Value::Uint(1))], more: false };
        assert_eq!(change(asked, structure(1, Value::Uint(3))), structure(1, Value::Uint(3)));
        let array = |value| Value::Array { items: vec![Value::Uint(0), value], more: false };
        assert_eq!(change(array(Value::Uint(4)), array(Value::Uint(5))), array(changed(4, 5)));
        let empty = Value::Array { items: vec![], more: false };
        assert_eq!(change(empty.clone(), array(Value::Uint(5))), Value::Change(Box::new(empty), Box::new(array(Value::Uint(5)))));
    }

    #[test]
    fn what_was_unreadable_once_did_not_change() {
        assert_eq!(change(structure(1, Value::Unread(9)), structure(1, Value::Uint(2))), structure(1, Value::Uint(2)));
        assert_eq!(change(Value::Uint(1), Value::Unread(9)), Value::Uint(1));
    }
}
