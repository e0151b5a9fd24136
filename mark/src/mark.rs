//! Marks of fields that are known when the program is compiled.

use crate::data;
use crate::error::Error;
use crate::event::{Declaration, Flags, Registration, check_name};
use crate::fields::Fields;
use crate::record::Record;
use std::io;
use std::marker::PhantomData;

/// A user event of the fields `F`: a tuple of up to eight integers, `bool`s and [`Text`](crate::Text)s.
#[derive(Debug)]
pub struct Mark<F> {
    registration: Option<Registration>,
    fields: PhantomData<fn(F)>,
}

impl<F: Fields> Mark<F> {
    /// Declares the event `user_events:NAME`, with a name for each field.
    ///
    /// # Errors
    /// [`Error`] says which it is: the kernel has no user events or does not let this program write any, there is an
    /// event of this name with other fields, or a name is none.
    pub fn register(name: &str, fields: F::Names<'_>) -> Result<Mark<F>, Error> {
        let fields = fields.as_ref();
        fields.iter().try_for_each(|field| check_name(field))?;
        let declarations: Vec<String> = F::KINDS.iter().zip(fields).map(|(kind, field)| format!("{kind} {field}")).collect();
        let declaration = Declaration::new(name, &declarations.join("; "))?;
        let registration = declaration.register(data::open()?, Flags::default())?;
        Ok(Mark { registration: Some(registration), fields: PhantomData })
    }

    /// A mark that does nothing, for where none can be registered.
    pub fn silent() -> Mark<F> {
        Mark { registration: None, fields: PhantomData }
    }

    /// Whether somebody traces it: one load. It is worth asking where it takes work to make the values.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.registration.as_ref().is_some_and(Registration::is_listened_to)
    }

    /// Sets the mark if somebody traces it, by one system call, and returns whether the kernel took it. (A tracer that
    /// has only just attached may not record yet.)
    ///
    /// # Errors
    /// The texts are longer than a record holds (8 KiB), or the kernel refuses the record.
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
    fn names_are_checked_before_the_kernel_is_asked() {
        let wrong = |name: &str, field: &str| Mark::<(u32,)>::register(name, [field]).unwrap_err().to_string();
        assert!(wrong("frame", "a b").contains("`a b` is no name"));
        assert!(wrong("fra:me", "a").contains("`fra:me` is no name"));
    }
}
