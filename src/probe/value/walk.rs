//! Follows a path into a variable: members, elements of arrays, and what pointers point to.

use super::location::{LocationBase, ValueLocation};
use super::types::{Bits, Member, Shape, Types};
use crate::probe::grammar::{Fetch, PathStep};
use crate::text::near;
use anyhow::{anyhow, bail};

/// The value at the end of a path into a variable.
#[derive(Clone, Debug)]
pub struct PathValue<Id> {
    /// The expression in C.
    pub text: String,
    /// The location of the value, or of the bytes that contain it.
    pub place: ValueLocation,
    /// The type of the value.
    pub of: Id,
    /// If set, the value is only these bits of what is at the location.
    pub bits: Option<Bits>,
}

/// Converts an address of the probed file's static data into a fetch argument, for [`LocationBase::Image`].
pub type Data<'a> = &'a dyn Fn(u64) -> anyhow::Result<Fetch>;

impl<Id: Copy> PathValue<Id> {
    pub fn new(name: &str, place: ValueLocation, of: Id) -> PathValue<Id> {
        PathValue { text: name.escape_debug().to_string(), place, of, bits: None }
    }

    /// Follows one step of the path.
    ///
    /// # Errors
    /// The type has no such member or element, or a fetch argument cannot express its location.
    pub fn step<T: Types<Id = Id> + ?Sized>(self, step: &PathStep, types: &T, data: Data<'_>) -> anyhow::Result<PathValue<Id>> {
        let shape = types.shape(self.of);
        match (step, shape) {
            (PathStep::Arrow(name), Shape::Pointer { to, user }) => {
                let place = self.pointee(user, types, data)?;
                let of = to.ok_or_else(|| anyhow!("the type that {} points to is not known", self.text))?;
                PathValue { text: self.text, place, of, bits: None }.member(name, "->", types)
            }
            (PathStep::Dot(name), Shape::Aggregate { .. }) => self.member(name, ".", types),
            (PathStep::Arrow(name), Shape::Aggregate { .. }) => {
                bail!("{0} is not a pointer: write {0}.{1}", self.text, name.escape_debug())
            }
            (PathStep::Dot(name), Shape::Pointer { .. }) => bail!("{0} is a pointer: write {0}->{1}", self.text, name.escape_debug()),
            (PathStep::Index(index), Shape::Array { of, count }) => {
                if count.is_some_and(|count| u64::try_from(*index).is_ok_and(|index| index >= count)) || *index < 0 {
                    bail!(
                        "{} has {} elements, so [{index}] is out of range",
                        self.text,
                        count.map_or("no known number of".to_owned(), |count| count.to_string())
                    );
                }
                self.element(*index, of, types)
            }
            (PathStep::Index(index), Shape::Pointer { to, user }) => {
                let place = self.pointee(user, types, data)?;
                let of = to.ok_or_else(|| anyhow!("the type that {} points to is not known", self.text))?;
                PathValue { text: self.text, place, of, bits: None }.element(*index, of, types)
            }
            (PathStep::Index(_), _) => bail!("{} is neither an array nor a pointer, so it has no elements", self.text),
            (PathStep::Arrow(name) | PathStep::Dot(name), shape) => {
                bail!("{} is {}, so it has no member {}", self.text, described(&shape), name.escape_debug())
            }
        }
    }

    /// Returns the location that the value points to, if the value is a pointer.
    ///
    /// # Errors
    /// The kernel cannot read the pointer's value.
    pub fn pointee<T: Types<Id = Id> + ?Sized>(&self, user: bool, types: &T, data: Data<'_>) -> anyhow::Result<ValueLocation> {
        if types.pointer_bytes() != 8 && matches!(self.place, ValueLocation::Memory { .. }) {
            // To dereference a pointer in memory, the kernel always reads eight bytes.
            bail!("{} is a pointer of a 32-bit program, stored in memory, which the kernel cannot dereference", self.text);
        }
        Ok(match &self.place {
            ValueLocation::Address { base, offset } => ValueLocation::Memory { base: base.clone(), offset: *offset },
            _ => ValueLocation::Memory { base: LocationBase::Of { fetch: self.read(data)?, user }, offset: 0 },
        })
    }

    /// Returns the fetch argument for the value. For a value in memory, the same fetch argument serves the types
    /// `string` and arrays, which take its address.
    ///
    /// # Errors
    /// No fetch argument can express the value.
    pub fn read(&self, data: Data<'_>) -> anyhow::Result<Fetch> {
        match &self.place {
            ValueLocation::Value(fetch) => Ok(fetch.clone()),
            ValueLocation::Constant(number) => Ok(Fetch::Immediate(*number)),
            ValueLocation::Memory { base: LocationBase::Of { fetch, user }, offset } => {
                Ok(Fetch::Memory { user: *user, offset: *offset, of: Box::new(fetch.clone()) })
            }
            ValueLocation::Memory { base: LocationBase::Image, offset } => data(offset.cast_unsigned()),
            ValueLocation::Address { base: LocationBase::Of { fetch, .. }, offset: 0 } => Ok(fetch.clone()),
            ValueLocation::Address { .. } => {
                bail!(
                    "{0} is a computed address, which the kernel cannot fetch; fetch what it points to, as in {0}->MEMBER or {0}[0]",
                    self.text
                )
            }
        }
    }

    fn element<T: Types<Id = Id> + ?Sized>(self, index: i64, of: Id, types: &T) -> anyhow::Result<PathValue<Id>> {
        let text = format!("{}[{index}]", self.text);
        let size = types.size(of).and_then(|size| i64::try_from(size).ok());
        let distance = size
            .and_then(|size| size.checked_mul(index))
            .ok_or_else(|| anyhow!("{text} cannot be located: the size of an element is not known"))?;
        let place = self.place.moved(distance).ok_or_else(|| anyhow!("{text} is not in memory"))?;
        Ok(PathValue { text, place, of, bits: None })
    }

    fn member<T: Types<Id = Id> + ?Sized>(self, name: &str, between: &str, types: &T) -> anyhow::Result<PathValue<Id>> {
        let text = format!("{}{between}{}", self.text, name.escape_debug());
        let Some(found) = find(self.of, name, types, 0) else { bail!("{}", unknown_member(&self.text, self.of, name, types)) };
        let (bytes, bits) = match found.width {
            None => (found.offset / 8, None),
            Some(width) => {
                let (bytes, bits) =
                    container(found.offset, width).ok_or_else(|| anyhow!("{text} spans more bits than the kernel can read at once"))?;
                (bytes, Some(bits))
            }
        };
        let moved = i64::try_from(bytes).ok().and_then(|bytes| self.place.moved(bytes));
        let place = moved.ok_or_else(|| anyhow!("{} is not stored in memory at this address, so {text} cannot be fetched", self.text))?;
        Ok(PathValue { text, place, of: found.of, bits })
    }
}

/// The maximum depth of nested anonymous structs.
const DEPTH_MAX: u32 = 16;

/// Finds a member by its name, also in anonymous structs and unions. The offset is counted from the outermost struct.
fn find<T: Types + ?Sized>(of: T::Id, name: &str, types: &T, depth: u32) -> Option<Member<T::Id>> {
    let members = types.members(of);
    if let Some(found) = members.iter().find(|member| member.name.as_deref() == Some(name)) {
        return Some(found.clone());
    }
    members.into_iter().filter(|member| member.name.is_none() && depth < DEPTH_MAX).find_map(|outer| {
        let inner = find(outer.of, name, types, depth + 1)?;
        Some(Member { offset: outer.offset.checked_add(inner.offset)?, ..inner })
    })
}

fn unknown_member<T: Types + ?Sized>(text: &str, of: T::Id, name: &str, types: &T) -> String {
    let shape = types.shape(of);
    let mut names = names(of, types);
    if names.is_empty() {
        return format!("the members of {text} are not known: {} is only declared", described(&shape));
    }
    names.retain(|known| known != name);
    let near = near::nearest(name, names.iter().map(String::as_str), 3);
    let hint = if near.is_empty() { format!("; it has {}", shortened(&names)) } else { near::hint(&near) };
    format!("{} has no member {}{hint}", described(&shape), name.escape_debug())
}

/// Returns the names of all members, including those of anonymous structs and unions.
pub fn names<T: Types + ?Sized>(of: T::Id, types: &T) -> Vec<String> {
    fn collect<T: Types + ?Sized>(of: T::Id, types: &T, depth: u32, into: &mut Vec<String>) {
        for member in types.members(of) {
            match member.name {
                Some(name) => into.push(name.escape_debug().to_string()),
                None if depth < DEPTH_MAX => collect(member.of, types, depth + 1, into),
                None => {}
            }
        }
    }
    let mut names = Vec::new();
    collect(of, types, 0, &mut names);
    names
}

/// Joins names for a message, and shortens a long list.
pub fn shortened(names: &[String]) -> String {
    const LISTED_MAX: usize = 12;
    let more = if names.len() > LISTED_MAX { ", ..." } else { "" };
    names[..names.len().min(LISTED_MAX)].join(", ") + more
}

/// Describes a type in a message.
pub fn described<Id>(shape: &Shape<Id>) -> String {
    match shape {
        Shape::Number { .. } => "a number".to_owned(),
        Shape::Float { .. } => "a floating-point number".to_owned(),
        Shape::Pointer { .. } => "a pointer".to_owned(),
        Shape::Array { .. } => "an array".to_owned(),
        Shape::Aggregate { name, .. } => name.escape_debug().to_string(),
        Shape::Other(what) => (*what).to_owned(),
    }
}

/// Returns the first byte and the bits to read for a bit field: the smallest container that holds it.
fn container(offset: u64, width: u8) -> Option<(u64, Bits)> {
    let within = (offset % 8) as u8;
    let container = [8, 16, 32, 64].into_iter().find(|bits| within.checked_add(width).is_some_and(|end| end <= *bits))?;
    Some((offset / 8, Bits { width, offset: within, container }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_are_read_with_as_few_bytes_as_hold_them() {
        let bits = |width, offset, container| Some(Bits { width, offset, container });
        let read = |offset, width| container(offset, width).map(|(byte, bits)| (byte, Some(bits)));
        assert_eq!(read(8, 4), Some((1, bits(4, 0, 8))));
        assert_eq!(read(13, 4), Some((1, bits(4, 5, 16))));
        assert_eq!(read(0, 64), Some((0, bits(64, 0, 64))));
        assert_eq!(read(1, 64), None);
        // A damaged file may state any width.
        assert_eq!(read(7, u8::MAX), None);
    }
}
