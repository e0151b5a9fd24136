//! The types of the fields of marks, and tuples of them.

use crate::record::{OffsetBase, Record, WORD_BYTES};

/// A type of fields.
pub trait Field {
    /// The type of the values.
    type Value<'a>;
    /// The name of the type in declarations of user events.
    const KIND: &'static str;
    /// The size of the field in a record, without the contents of texts.
    const BYTES: usize;
    /// Adds the value to a record as the next field.
    fn put(value: Self::Value<'_>, record: &mut Record);
}

/// Text of any length. Its values are `&str`.
#[derive(Clone, Copy, Debug)]
pub enum Text {}

impl Field for Text {
    type Value<'a> = &'a str;
    const KIND: &'static str = "__rel_loc char[]";
    const BYTES: usize = WORD_BYTES;

    fn put(value: &str, record: &mut Record) {
        record.put_text(value.as_bytes(), OffsetBase::FieldEnd);
    }
}

impl Field for bool {
    type Value<'a> = bool;
    const KIND: &'static str = "u8";
    const BYTES: usize = 1;

    fn put(value: bool, record: &mut Record) {
        record.put(&[u8::from(value)]);
    }
}

macro_rules! integers {
    ($($integer:ty: $kind:literal),*) => {$(
        impl Field for $integer {
            type Value<'a> = $integer;
            const KIND: &'static str = $kind;
            const BYTES: usize = size_of::<$integer>();

            fn put(value: $integer, record: &mut Record) {
                record.put(&value.to_ne_bytes());
            }
        }
    )*};
}

integers!(u8: "u8", i8: "s8", u16: "u16", i16: "s16", u32: "u32", i32: "s32", u64: "u64", i64: "s64");

/// The fields of a mark: a tuple of [`Field`]s.
pub trait Fields {
    /// The names of the fields.
    type Names<'a>: AsRef<[&'a str]>;
    /// The values of the fields.
    type Values<'a>;
    /// [`Field::KIND`] of each field.
    const KINDS: &'static [&'static str];
    /// The sum of [`Field::BYTES`] of all fields.
    const BYTES: usize;
    /// Adds the values to a record, in order.
    fn put(values: Self::Values<'_>, record: &mut Record);
}

macro_rules! tuples {
    ($($count:literal: $($field:ident $at:tt)*;)*) => {$(
        impl<$($field: Field),*> Fields for ($($field,)*) {
            type Names<'a> = [&'a str; $count];
            type Values<'a> = ($($field::Value<'a>,)*);
            const KINDS: &'static [&'static str] = &[$($field::KIND),*];
            const BYTES: usize = 0 $(+ $field::BYTES)*;

            fn put(_values: Self::Values<'_>, _record: &mut Record) {
                $($field::put(_values.$at, _record);)*
            }
        }
    )*};
}

tuples! {
    0: ;
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_declared_and_added_in_order() {
        type All = (u8, i16, Text, bool, u64);
        assert_eq!(All::KINDS, ["u8", "s16", "__rel_loc char[]", "u8", "u64"]);
        let mut record = Record::of(All::BYTES);
        All::put((1, -2, "hi", true, 3), &mut record);
        let fields = record.fields().unwrap();
        assert_eq!(fields, [1, 0xfe, 0xff, 9, 0, 3, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, b'h', b'i', 0]);
    }
}
