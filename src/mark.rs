//! Marks that a program sets in traces of itself: what it was doing, with numbers and text, in order among its system calls.
//!
//! A [`Mark`] is a user event of Linux ([Documentation/trace/user_events.rst]). It costs one load while nobody traces it. `rtrace -e user_events:frame ./program` prints it, and so does every
//! other tool that reads tracepoints.
//!
//! ```no_run
//! use rtrace::mark::{Mark, Text};
//!
//! # fn draw() -> u32 { 0 }
//! let frame: Mark<(u32, Text)> = Mark::register("frame", ["number", "scene"]).unwrap_or_else(|why| {
//!     eprintln!("frames are not marked: {why}");
//!     Mark::silent()
//! });
//! for number in 0..100 {
//!     draw();
//!     frame.set((number, "menu"))?;
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The event is there from the first program that registers it until the last one ends. So that it can be asked for before, `rtrace probe add 'u:frame u32 number; __rel_loc char[] scene'`
//! makes one that stays. Children made by fork keep their parent's marks; a program that is executed registers its own.
//!
//! Registering takes Linux 6.4, CONFIG_USER_EVENTS and permission to write tracefs's `user_events_data`, which only root has unless somebody changes that. The crate needs neither clang nor
//! libelf with `default-features = false`.
//!
//! [Documentation/trace/user_events.rst]: https://docs.kernel.org/trace/user_events.html

use crate::probe::user_events::access;
use crate::probe::user_events::record::{CountedFrom, Record, WORD_BYTES};
use crate::sys::user_events::{Flags, Registration};
use std::io;
use std::marker::PhantomData;

pub use crate::probe::user_events::UserEventError;

/// A user event of the fields `F`: a tuple of up to eight integers, `bool`s and [`Text`]s.
#[derive(Debug)]
pub struct Mark<F> {
    registration: Option<Registration>,
    fields: PhantomData<fn(F)>,
}

impl<F: Fields> Mark<F> {
    /// Declares the event `user_events:NAME`, with a name for each field.
    ///
    /// # Errors
    /// [`UserEventError`]: the kernel has no user events or does not let this program write any, there is one of this name with other fields, a name is none.
    pub fn register(name: &str, fields: F::Names<'_>) -> Result<Mark<F>, UserEventError> {
        let fields = fields.as_ref();
        let declarations: Vec<String> = F::KINDS.iter().zip(fields).map(|(kind, field)| format!("{kind} {field}")).collect();
        fields.iter().try_for_each(|field| access::check_name(field))?;
        let registration = access::register(name, &declarations.join("; "), Flags::default())?;
        Ok(Mark { registration: Some(registration), fields: PhantomData })
    }

    /// One that does nothing, for where there are none.
    pub fn silent() -> Mark<F> {
        Mark { registration: None, fields: PhantomData }
    }

    /// Whether somebody traces it: one load. To be asked where values take work.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.registration.as_ref().is_some_and(Registration::is_listened_to)
    }

    /// Sets the mark, if somebody traces it: one system call. Gives whether the kernel took it. (A tracer that has only just attached may not record yet.)
    ///
    /// # Errors
    /// The texts are more than a record holds (8 KiB), or the kernel refuses the record.
    #[inline]
    pub fn set(&self, values: F::Values<'_>) -> io::Result<bool> {
        match &self.registration {
            Some(registration) if registration.is_listened_to() => write::<F>(registration, values),
            _ => Ok(false),
        }
    }
}

#[cold]
fn write<F: Fields>(registration: &Registration, values: F::Values<'_>) -> io::Result<bool> {
    let mut record = Record::of(F::BYTES);
    F::put(values, &mut record);
    let bytes = record.finish().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    registration.write(bytes)
}

/// A type that a field may have.
pub trait Field {
    /// What the mark is set with.
    type Value<'a>;
    /// As the kernel spells it.
    const KIND: &'static str;
    /// What it takes among the fields.
    const BYTES: usize;
    /// Puts it into a record.
    fn put(value: Self::Value<'_>, record: &mut Record);
}

/// Text of any length: its values are `&str`.
#[derive(Clone, Copy, Debug)]
pub enum Text {}

impl Field for Text {
    type Value<'a> = &'a str;
    const KIND: &'static str = "__rel_loc char[]";
    const BYTES: usize = WORD_BYTES;

    fn put(value: &str, record: &mut Record) {
        record.put_text(value.as_bytes(), CountedFrom::FieldsEnd);
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
    /// A name for each.
    type Names<'a>: AsRef<[&'a str]>;
    /// A value for each.
    type Values<'a>;
    /// [`Field::KIND`] of each.
    const KINDS: &'static [&'static str];
    /// [`Field::BYTES`] of all.
    const BYTES: usize;
    /// Puts them into a record.
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
    fn fields_are_declared_and_put_in_order() {
        type All = (u8, i16, Text, bool, u64);
        assert_eq!(All::KINDS, ["u8", "s16", "__rel_loc char[]", "u8", "u64"]);
        let mut record = Record::of(All::BYTES);
        All::put((1, -2, "hi", true, 3), &mut record);
        let bytes = record.finish().unwrap();
        assert_eq!(bytes[4..], [1, 0xfe, 0xff, 9, 0, 3, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, b'h', b'i', 0]);
    }

    #[test]
    fn a_silent_mark_does_nothing() {
        let mark = Mark::<(u32,)>::silent();
        assert!(!mark.is_traced());
        assert!(!mark.set((1,)).unwrap());
    }

    #[test]
    fn names_are_checked_before_the_kernel_is_asked() {
        let wrong = |name: &str, field: &str| Mark::<(u32,)>::register(name, [field]).unwrap_err().to_string();
        assert!(wrong("frame", "a b").contains("`a b` is no name"));
        assert!(wrong("fra:me", "a").contains("`fra:me` is no name"));
    }
}
