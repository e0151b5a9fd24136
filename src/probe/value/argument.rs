//! Fetch arguments whose variables were looked up.

use super::field_name;
use super::place::Place;
use super::types::{Bits, Shape, Types};
use super::walk::{Data, Reached, described, names, shortened};
use crate::probe::grammar::{Arg, Base, ELEMENTS_MAX, Fetch, Step, Type};
use anyhow::{anyhow, bail};

/// The variables that can be named at a place.
pub trait Scope: Types {
    /// # Errors
    /// There is no such variable, or it has no value that could be fetched here.
    fn variable(&self, name: &str) -> anyhow::Result<(Place, Self::Id)>;

    /// What stands for the function's arguments, all of them, in their order.
    ///
    /// # Errors
    /// They are not known.
    fn arguments(&self) -> anyhow::Result<Vec<String>>;

    /// The type that the function returns; `None` if it returns nothing or that is not known.
    fn returned(&self) -> Option<Self::Id>;

    /// What reads the data that a file has at one of its addresses.
    ///
    /// # Errors
    /// The kernel has no words for it.
    fn data(&self, svma: u64) -> anyhow::Result<Fetch>;
}

/// All arguments in the kernel's words: variables where they are, with names, and with types where none were given.
///
/// # Errors
/// The first that cannot be said.
pub fn resolve_all<S: Scope>(args: &[Arg], scope: &S) -> anyhow::Result<Vec<Arg>> {
    let mut resolved = Vec::with_capacity(args.len());
    for arg in args {
        match &arg.value {
            Fetch::Arguments => {
                for name in scope.arguments()? {
                    let value = Fetch::Variable { name, path: Vec::new() };
                    resolved.push(one(&Arg { name: None, value, kind: arg.kind }, scope)?);
                }
            }
            _ => resolved.push(one(arg, scope)?),
        }
    }
    Ok(resolved)
}

/// The variable in it that has to be looked up.
pub fn name_in(value: &Fetch) -> Option<&str> {
    match value {
        Fetch::Variable { name, .. } => Some(name),
        Fetch::Memory { of, .. } => name_in(of),
        _ => None,
    }
}

/// Whether the type of what a function returns has to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    None,
    /// It would say how to show the value.
    Wish,
    /// A member is asked for.
    Must,
}

/// For these arguments.
pub fn needs_return_type(args: &[Arg]) -> Need {
    fn of(value: &Fetch) -> Need {
        match value {
            Fetch::Return(path) if path.is_empty() => Need::Wish,
            Fetch::Return(_) => Need::Must,
            Fetch::Memory { of: inner, .. } => {
                if of(inner) == Need::Must {
                    Need::Must
                } else {
                    Need::None
                }
            }
            _ => Need::None,
        }
    }
    // A number's type shows it; text of the user's choice is behind it, if it is a pointer.
    let is_told = |arg: &Arg| arg.kind.as_ref().is_some_and(|kind| !matches!(kind.base, Base::String | Base::UserString));
    let need = |arg: &Arg| match of(&arg.value) {
        Need::Wish if is_told(arg) => Need::None,
        need => need,
    };
    args.iter().map(need).max().unwrap_or(Need::None)
}

fn one<S: Scope>(arg: &Arg, scope: &S) -> anyhow::Result<Arg> {
    let data = |svma| scope.data(svma);
    let reached = match &arg.value {
        Fetch::Variable { name, path } => reach(name, path, scope, &data)?,
        Fetch::Return(path) => match (returned(scope), path.is_empty()) {
            (Some(start), _) => walked(start, path, scope, &data)?,
            (None, true) => return Ok(arg.clone()),
            (None, false) => bail!("the type of what the function returns is not known, so $retval has no members"),
        },
        other => return Ok(Arg { value: within(other, scope, &data)?, ..arg.clone() }),
    };
    let (value, kind) = match &arg.kind {
        Some(kind) => (as_told(&reached, kind, scope, &data)?, Some(*kind)),
        None => by_type(&reached, scope, &data)?,
    };
    let name = match &arg.value {
        Fetch::Return(path) if path.is_empty() => arg.name.clone(),
        _ => Some(arg.name.clone().unwrap_or_else(|| field_name::of(&reached.text))),
    };
    Ok(Arg { name, value, kind })
}

fn reach<S: Scope>(name: &str, path: &[Step], scope: &S, data: Data<'_>) -> anyhow::Result<Reached<S::Id>> {
    let (place, of) = scope.variable(name)?;
    walked(Reached::new(name, place, of), path, scope, data)
}

fn walked<S: Scope>(start: Reached<S::Id>, path: &[Step], scope: &S, data: Data<'_>) -> anyhow::Result<Reached<S::Id>> {
    path.iter().try_fold(start, |reached, step| reached.step(step, scope, data))
}

/// `$retval` with its type, if that is one that a register can hold.
fn returned<S: Scope>(scope: &S) -> Option<Reached<S::Id>> {
    let of = scope.returned().filter(|of| matches!(scope.shape(*of), Shape::Number { bytes: 1..=8, .. } | Shape::Pointer { .. }))?;
    Some(Reached::new("retval", Place::Value(Fetch::Return(Vec::new())), of))
}

/// Variables in `+8(name)`: their values.
fn within<S: Scope>(value: &Fetch, scope: &S, data: Data<'_>) -> anyhow::Result<Fetch> {
    match value {
        Fetch::Variable { name, path } => reach(name, path, scope, data)?.read(data),
        Fetch::Return(path) if !path.is_empty() => {
            let start =
                returned(scope).ok_or_else(|| anyhow!("the type of what the function returns is not known, so $retval has no members"))?;
            walked(start, path, scope, data)?.read(data)
        }
        Fetch::Memory { user, offset, of } => Ok(Fetch::Memory { user: *user, offset: *offset, of: Box::new(within(of, scope, data)?) }),
        other => Ok(other.clone()),
    }
}

/// With a type of the user's.
fn as_told<S: Scope>(reached: &Reached<S::Id>, kind: &Type, scope: &S, data: Data<'_>) -> anyhow::Result<Fetch> {
    let is_text = matches!(kind.base, Base::String | Base::UserString);
    let shape = scope.shape(reached.of);
    let is_word = matches!(shape, Shape::Number { bytes: 8, .. });
    let is_behind = match shape {
        Shape::Pointer { .. } => is_text || kind.array.is_some(),
        // Addresses are kept in whole words too.
        Shape::Number { .. } if is_text && !is_word => bail!("{} is a number, not text", reached.text),
        Shape::Number { .. } => is_text,
        Shape::Float { .. } if is_text => bail!("{} is a floating-point number, not text", reached.text),
        Shape::Aggregate { ref name, .. } if is_text => {
            bail!("{} is {}, not text; it has {}", reached.text, name.escape_debug(), shortened(&names(reached.of, scope)))
        }
        _ => false,
    };
    if is_behind {
        let user = matches!(shape, Shape::Pointer { user: true, .. });
        let place = reached.pointee(user, scope, data)?;
        return Reached { place, ..reached.clone() }.read(data);
    }
    let fetch = reached.read(data)?;
    let in_memory = matches!(reached.place, Place::Memory { .. });
    if (is_text || kind.array.is_some()) && !in_memory {
        bail!("{} is not in memory here, so it is no {}", reached.text, if is_text { "text" } else { "array" });
    }
    Ok(fetch)
}

/// With the type that it has.
fn by_type<S: Scope>(reached: &Reached<S::Id>, scope: &S, data: Data<'_>) -> anyhow::Result<(Fetch, Option<Type>)> {
    let (base, array) = match (scope.shape(reached.of), reached.bits) {
        (_, Some(Bits { width, offset, container })) => (Base::Bits { width, offset, container }, None),
        (Shape::Array { of, count }, _) => array(reached, of, count, scope)?,
        (shape, _) => (of_one(&shape, scope).ok_or_else(|| anyhow!("{}", unsaid(reached, &shape, scope)))?, None),
    };
    Ok((reached.read(data)?, Some(Type { base, array })))
}

fn of_one<S: Scope>(shape: &Shape<S::Id>, scope: &S) -> Option<Base> {
    match shape {
        Shape::Number { bytes: bytes @ (1 | 2 | 4 | 8), is_signed, .. } => {
            Some(if *is_signed { Base::Signed(bytes * 8) } else { Base::Unsigned(bytes * 8) })
        }
        Shape::Pointer { .. } => Some(Base::Hex(scope.pointer_bytes() * 8)),
        _ => None,
    }
}

/// An array of characters is text; others are given element by element.
fn array<S: Scope>(reached: &Reached<S::Id>, of: S::Id, count: Option<u64>, scope: &S) -> anyhow::Result<(Base, Option<u32>)> {
    let text = &reached.text;
    if !matches!(reached.place, Place::Memory { .. }) {
        bail!("{text} is an array that is not in memory here");
    }
    let shape = scope.shape(of);
    if matches!(shape, Shape::Number { bytes: 1, is_character: true, .. }) {
        return Ok((Base::String, None));
    }
    let Some(base) = of_one(&shape, scope) else {
        bail!("{text} is an array whose elements are {}; name one, as in {text}[0]", described(&shape))
    };
    match count {
        Some(count @ 1..=ELEMENTS_MAX) => Ok((base, Some(count as u32))),
        Some(0) | None => {
            bail!("how many elements {text} has is not known; give a type with a number, as in :x64[4], or name one: {text}[0]")
        }
        Some(count) => bail!(
            "{text} has {count} elements, of which the kernel takes {ELEMENTS_MAX}; give a type with a number, as in :x64[{ELEMENTS_MAX}], or name one: {text}[0]"
        ),
    }
}

/// Why a value as a whole is no fetch argument.
fn unsaid<S: Scope>(reached: &Reached<S::Id>, shape: &Shape<S::Id>, scope: &S) -> String {
    let text = &reached.text;
    match shape {
        Shape::Aggregate { name, .. } => {
            let members = names(reached.of, scope);
            let list = if members.is_empty() { String::new() } else { format!(": {}", shortened(&members)) };
            format!("{text} is {} as a whole; name one of its members{list}", name.escape_debug())
        }
        Shape::Float { .. } => format!("{text} is a floating-point number, which the kernel cannot show; :x64 or :x32 gives its bits"),
        Shape::Number { bytes, .. } => format!("{text} has {bytes} bytes, which the kernel cannot show as a number"),
        other => format!("{text} is {}, which cannot be fetched", described(other)),
    }
}
