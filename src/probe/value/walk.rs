//! Steps into a variable: members, elements, what pointers point to.

use super::place::{Base, Place};
use super::types::{Bits, Member, Shape, Types};
use crate::probe::grammar::{Fetch, Step};
use crate::text::near;
use anyhow::{anyhow, bail};

/// The value at the end of a path into a variable.
#[derive(Clone, Debug)]
pub struct Reached<Id> {
    /// As C would write it.
    pub text: String,
    pub place: Place,
    pub of: Id,
    /// Only these bits of it.
    pub bits: Option<Bits>,
}

/// The addresses of a file's own data, for [`Base::Image`].
pub type Data<'a> = &'a dyn Fn(u64) -> anyhow::Result<Fetch>;

impl<Id: Copy> Reached<Id> {
    pub fn new(name: &str, place: Place, of: Id) -> Reached<Id> {
        Reached { text: name.escape_debug().to_string(), place, of, bits: None }
    }

    /// Goes one step on.
    ///
    /// # Errors
    /// The type has no such step, or the kernel no words for what it leads to.
    pub fn step<T: Types<Id = Id> + ?Sized>(self, step: &Step, types: &T, data: Data<'_>) -> anyhow::Result<Reached<Id>> {
        let shape = types.shape(self.of);
        match (step, shape) {
            (Step::Arrow(name), Shape::Pointer { to, user }) => {
                let place = self.pointee(user, types, data)?;
                let of = to.ok_or_else(|| anyhow!("{} points to nothing whose type is known", self.text))?;
                Reached { text: self.text, place, of, bits: None }.member(name, "->", types)
            }
            (Step::Dot(name), Shape::Aggregate { .. }) => self.member(name, ".", types),
            (Step::Arrow(name), Shape::Aggregate { .. }) => bail!("{0} is no pointer: write {0}.{1}", self.text, name.escape_debug()),
            (Step::Dot(name), Shape::Pointer { .. }) => bail!("{0} is a pointer: write {0}->{1}", self.text, name.escape_debug()),
            (Step::Index(index), Shape::Array { of, count }) => {
                if count.is_some_and(|count| u64::try_from(*index).is_ok_and(|index| index >= count)) || *index < 0 {
                    bail!(
                        "{} has {} elements, so no [{index}]",
                        self.text,
                        count.map_or("no known number of".to_owned(), |count| count.to_string())
                    );
                }
                self.element(*index, of, types)
            }
            (Step::Index(index), Shape::Pointer { to, user }) => {
                let place = self.pointee(user, types, data)?;
                let of = to.ok_or_else(|| anyhow!("{} points to nothing whose type is known", self.text))?;
                Reached { text: self.text, place, of, bits: None }.element(*index, of, types)
            }
            (Step::Index(_), _) => bail!("{} is neither an array nor a pointer, so it has no elements", self.text),
            (Step::Arrow(name) | Step::Dot(name), shape) => {
                bail!("{} is {}, so it has no member {}", self.text, described(&shape), name.escape_debug())
            }
        }
    }

    /// What is behind it, if it is a pointer.
    ///
    /// # Errors
    /// The kernel cannot get at its value.
    pub fn pointee<T: Types<Id = Id> + ?Sized>(&self, user: bool, types: &T, data: Data<'_>) -> anyhow::Result<Place> {
        if types.pointer_bytes() != 8 && matches!(self.place, Place::Memory { .. }) {
            // The kernel reads eight bytes wherever it goes on from what it read.
            bail!("{} is a 32-bit program's pointer in memory, which the kernel cannot follow", self.text);
        }
        Ok(match &self.place {
            Place::Address { base, offset } => Place::Memory { base: base.clone(), offset: *offset },
            _ => Place::Memory { base: Base::Of { fetch: self.read(data)?, user }, offset: 0 },
        })
    }

    /// The fetch argument that gives the value; for what is in memory it is also what gives its address to strings and arrays.
    ///
    /// # Errors
    /// There is none.
    pub fn read(&self, data: Data<'_>) -> anyhow::Result<Fetch> {
        match &self.place {
            Place::Value(fetch) => Ok(fetch.clone()),
            Place::Constant(number) => Ok(Fetch::Immediate(*number)),
            Place::Memory { base: Base::Of { fetch, user }, offset } => {
                Ok(Fetch::Memory { user: *user, offset: *offset, of: Box::new(fetch.clone()) })
            }
            Place::Memory { base: Base::Image, offset } => data(offset.cast_unsigned()),
            Place::Address { base: Base::Of { fetch, .. }, offset: 0 } => Ok(fetch.clone()),
            Place::Address { .. } => {
                bail!("{} is an address that is nowhere kept as such here; what it points to can be fetched, it itself cannot", self.text)
            }
        }
    }

    fn element<T: Types<Id = Id> + ?Sized>(self, index: i64, of: Id, types: &T) -> anyhow::Result<Reached<Id>> {
        let text = format!("{}[{index}]", self.text);
        let size = types.size(of).and_then(|size| i64::try_from(size).ok());
        let distance = size
            .and_then(|size| size.checked_mul(index))
            .ok_or_else(|| anyhow!("{text} cannot be found: the size of an element is not known"))?;
        let place = self.place.moved(distance).ok_or_else(|| anyhow!("{text} is not in memory"))?;
        Ok(Reached { text, place, of, bits: None })
    }

    fn member<T: Types<Id = Id> + ?Sized>(self, name: &str, between: &str, types: &T) -> anyhow::Result<Reached<Id>> {
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
        let place = moved.ok_or_else(|| anyhow!("{} is not in memory as a whole here, so {text} cannot be fetched", self.text))?;
        Ok(Reached { text, place, of: found.of, bits })
    }
}

/// Structs in structs without a name: no deeper.
const DEPTH_MAX: u32 = 16;

/// A member by its name, also of members without a name; from the beginning of the outermost.
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
        return format!("what {text} is made of is not known: {} has no members here", described(&shape));
    }
    names.retain(|known| known != name);
    let near = near::nearest(name, names.iter().map(String::as_str), 3);
    let hint = if near.is_empty() { format!("; it has {}", shortened(&names)) } else { near::hint(&near) };
    format!("{} has no member {}{hint}", described(&shape), name.escape_debug())
}

/// Names of all members, those of nameless ones too.
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

/// So many names are enough for a sentence.
pub fn shortened(names: &[String]) -> String {
    const LISTED_MAX: usize = 12;
    let more = if names.len() > LISTED_MAX { ", ..." } else { "" };
    names[..names.len().min(LISTED_MAX)].join(", ") + more
}

/// A type in a sentence.
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

/// From which byte on how many bytes are to be read for a bit field: as few as hold it.
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
        // As wide as a damaged file may say.
        assert_eq!(read(7, u8::MAX), None);
    }
}
