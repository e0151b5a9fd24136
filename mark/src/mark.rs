//! Marks whose fields are known at compile time.

use crate::data;
use crate::error::Error;
use crate::event::{Declaration, Flags, Registration, check_name};
use crate::fields::Fields;
use crate::record::Record;
use std::io;
use std::marker::PhantomData;

/// A user event with the fields `F`, which is a tuple of up to eight integers, `bool`s and [`Text`](crate::Text)s.
#[derive(Debug)]
pub struct Mark<F> {
    registration: Option<Registration>,
    fields: PhantomData<fn(F)>,
}

impl<F: Fields> Mark<F> {
    /// Registers the event `user_events:NAME`, with a name for each field.
    ///
    /// # Errors
    /// The kernel has no user events or does not permit this program to write any, an event of this name has other
    /// fields, or a name is not valid.
    pub fn register(name: &str, fields: F::Names<'_>) -> Result<Mark<F>, Error> {
        let fields = fields.as_ref();
        fields.iter().try_for_each(|field| check_name(field))?;
        let declarations: Vec<String> = F::KINDS.iter().zip(fields).map(|(kind, field)| format!("{kind} {field}")).collect();
        let declaration = Declaration::new(name, &declarations.join("; "))?;
        let registration = declaration.register(data::open()?, Flags::default())?;
        Ok(Mark { registration: Some(registration), fields: PhantomData })
    }

    /// Returns a mark that does nothing, for use when registration fails.
    pub fn silent() -> Mark<F> {
        Mark { registration: None, fields: PhantomData }
    }

    /// Returns whether a tracer records the event. This takes one load. Call it first if the values take work to
    /// compute.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.registration.as_ref().is_some_and(Registration::is_enabled)
    }

    /// Writes a record of the event by one system call if a tracer records it. Returns whether the kernel accepted the
    /// record. (A tracer that has just attached may not record yet.)
    ///
    /// # Errors
    /// The texts do not fit into a record (8 KiB), or the kernel rejects the record.
    #[inline]
    pub fn set(&self, values: F::Values<'_>) -> io::Result<bool> {
        match &self.registration {
            Some(registration) if registration.is_enabled() => write::<F>(registration, values),
            _ => Ok(false),
        }
    }
}

#[cold]
fn write<F: Fields>(registration: &Registration, values: F::Values<'_>) -> io::Result<bool> {
    let mut record = Record::of(F::BYTES);
    F::put(values, &mut record);
    registration.write(&mut record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_mark_does_nothing() {
        let mark = Mark::<(u32,)>::silent();
        assert!(!mark.is_traced());
        assert!(!mark.set((1,)).unwrap());
    }

    #[test]
    fn names_are_checked_before_registration() {
        let wrong = |name: &str, field: &str| Mark::<(u32,)>::register(name, [field]).unwrap_err().to_string();
        assert!(wrong("frame", "a b").contains("`a b` is not a valid name"));
        assert!(wrong("fra:me", "a").contains("`fra:me` is not a valid name"));
    }
}
