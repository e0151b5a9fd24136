//! Resolves the variables in fetch arguments.

use super::field_name;
use super::location::ValueLocation;
use super::types::{Bits, Shape, Types};
use super::walk::{Data, PathValue, described, names, shortened};
use crate::probe::grammar::{Arg, BasicType, ELEMENTS_MAX, Fetch, PathStep, Type};
use anyhow::{anyhow, bail};

/// The variables in scope at a probed address.
pub trait Scope: Types {
    /// Returns the location and the type of a variable.
    ///
    /// # Errors
    /// There is no such variable, or its value cannot be fetched at this address.
    fn variable(&self, name: &str) -> anyhow::Result<(ValueLocation, Self::Id)>;

    /// Returns the names of all arguments of the function, in order.
    ///
    /// # Errors
    /// The arguments are not known.
    fn arguments(&self) -> anyhow::Result<Vec<String>>;

    /// Returns the function's return type; `None` if it returns nothing or the type is not known.
    fn returned(&self) -> Option<Self::Id>;

    /// Returns the fetch argument that reads the probed file's static data at an address.
    ///
    /// # Errors
    /// A fetch argument cannot express the address.
    fn data(&self, svma: u64) -> anyhow::Result<Fetch>;
}

/// Converts all arguments into the kernel's own grammar: variables become their locations, with a name, and with a type
/// if the user gave none.
///
/// # Errors
/// An argument that cannot be expressed; the first of them.
pub fn resolve_all<S: Scope>(args: &[Arg], scope: &S) -> anyhow::Result<Vec<Arg>> {
    let mut resolved = Vec::with_capacity(args.len());
    for arg in args {
        match &arg.value {
            Fetch::Arguments => {
                for name in scope.arguments()? {
                    let value = Fetch::Variable { name, path: Vec::new() };
                    resolved.push(resolve_one(&Arg { name: None, value, kind: arg.kind }, scope)?);
                }
            }
            _ => resolved.push(resolve_one(arg, scope)?),
        }
    }
    Ok(resolved)
}

/// Returns the name of the variable in a value, if it has one.
pub fn name_in(value: &Fetch) -> Option<&str> {
    match value {
        Fetch::Variable { name, .. } => Some(name),
        Fetch::Memory { of, .. } => name_in(of),
        _ => None,
    }
}

/// The error for a member of a returned value whose type is not known.
const NO_RETURN_TYPE: &str = "the function's return type is not known, so $retval has no members";

/// Whether the function's return type has to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TypeNeed {
    None,
    /// The type only selects how the value is read and shown. Without it, `$retval` is fetched as the user wrote it.
    Useful,
    /// A member of the returned value is fetched.
    Required,
}

/// Returns whether these arguments need the function's return type.
pub fn needs_return_type(args: &[Arg]) -> TypeNeed {
    fn of(value: &Fetch) -> TypeNeed {
        match value {
            Fetch::Return(path) if path.is_empty() => TypeNeed::Useful,
            Fetch::Return(_) => TypeNeed::Required,
            Fetch::Memory { of: inner, .. } => {
                if of(inner) == TypeNeed::Required {
                    TypeNeed::Required
                } else {
                    TypeNeed::None
                }
            }
            _ => TypeNeed::None,
        }
    }
    // A type of the user's choice is enough for a number. A string is at the returned address only if the function
    // returns a pointer, so it needs the return type.
    let is_typed = |arg: &Arg| arg.kind.as_ref().is_some_and(|kind| !matches!(kind.base, BasicType::String | BasicType::UserString));
    let need = |arg: &Arg| match of(&arg.value) {
        TypeNeed::Useful if is_typed(arg) => TypeNeed::None,
        need => need,
    };
    args.iter().map(need).max().unwrap_or(TypeNeed::None)
}

fn resolve_one<S: Scope>(arg: &Arg, scope: &S) -> anyhow::Result<Arg> {
    let data = |svma| scope.data(svma);
    let target = match &arg.value {
        Fetch::Variable { name, path } => follow(name, path, scope, &data)?,
        Fetch::Return(path) => match (returned(scope), path.is_empty()) {
            (Some(start), _) => follow_path(start, path, scope, &data)?,
            (None, true) => return Ok(arg.clone()),
            (None, false) => bail!("{NO_RETURN_TYPE}"),
        },
        other => return Ok(Arg { value: resolve_nested(other, scope, &data)?, ..arg.clone() }),
    };
    let (value, kind) = match &arg.kind {
        Some(kind) => (as_typed_by_user(&target, kind, scope, &data)?, Some(*kind)),
        None => by_type(&target, scope, &data)?,
    };
    let name = match &arg.value {
        Fetch::Return(path) if path.is_empty() => arg.name.clone(),
        _ => Some(arg.name.clone().unwrap_or_else(|| field_name::of(&target.text))),
    };
    Ok(Arg { name, value, kind })
}

fn follow<S: Scope>(name: &str, path: &[PathStep], scope: &S, data: Data<'_>) -> anyhow::Result<PathValue<S::Id>> {
    let (place, of) = scope.variable(name)?;
    follow_path(PathValue::new(name, place, of), path, scope, data)
}

fn follow_path<S: Scope>(start: PathValue<S::Id>, path: &[PathStep], scope: &S, data: Data<'_>) -> anyhow::Result<PathValue<S::Id>> {
    path.iter().try_fold(start, |target, step| target.step(step, scope, data))
}

/// Returns `$retval` with its type, if a register can hold a value of that type.
fn returned<S: Scope>(scope: &S) -> Option<PathValue<S::Id>> {
    let of = scope.returned().filter(|of| matches!(scope.shape(*of), Shape::Number { bytes: 1..=8, .. } | Shape::Pointer { .. }))?;
    Some(PathValue::new("retval", ValueLocation::Value(Fetch::Return(Vec::new())), of))
}

/// Replaces the variable in an expression such as `+8(name)` by the fetch argument of its value.
fn resolve_nested<S: Scope>(value: &Fetch, scope: &S, data: Data<'_>) -> anyhow::Result<Fetch> {
    match value {
        Fetch::Variable { name, path } => follow(name, path, scope, data)?.read(data),
        Fetch::Return(path) if !path.is_empty() => {
            let start = returned(scope).ok_or_else(|| anyhow!("{NO_RETURN_TYPE}"))?;
            follow_path(start, path, scope, data)?.read(data)
        }
        Fetch::Memory { user, offset, of } => {
            Ok(Fetch::Memory { user: *user, offset: *offset, of: Box::new(resolve_nested(of, scope, data)?) })
        }
        other => Ok(other.clone()),
    }
}

/// Returns the fetch argument of a value whose type the user chose.
fn as_typed_by_user<S: Scope>(target: &PathValue<S::Id>, kind: &Type, scope: &S, data: Data<'_>) -> anyhow::Result<Fetch> {
    let is_text = matches!(kind.base, BasicType::String | BasicType::UserString);
    let shape = scope.shape(target.of);
    let is_word = matches!(shape, Shape::Number { bytes: 8, .. });
    let is_behind = match shape {
        Shape::Pointer { .. } => is_text || kind.array.is_some(),
        // An integer of eight bytes may hold an address.
        Shape::Number { .. } if is_text && !is_word => bail!("{} is a number, not text", target.text),
        Shape::Number { .. } => is_text,
        Shape::Float { .. } if is_text => bail!("{} is a floating-point number, not text", target.text),
        Shape::Aggregate { ref name, .. } if is_text => {
            bail!("{} is {}, not text; it has {}", target.text, name.escape_debug(), shortened(&names(target.of, scope)))
        }
        _ => false,
    };
    if is_behind {
        let user = matches!(shape, Shape::Pointer { user: true, .. });
        let place = target.pointee(user, scope, data)?;
        return PathValue { place, ..target.clone() }.read(data);
    }
    let fetch = target.read(data)?;
    let in_memory = matches!(target.place, ValueLocation::Memory { .. });
    if (is_text || kind.array.is_some()) && !in_memory {
        bail!("{} is not in memory at this address, so it cannot be fetched as {}", target.text, if is_text { "text" } else { "an array" });
    }
    Ok(fetch)
}

/// Returns the fetch argument of a value and the kernel's basic type that matches the value's own type.
fn by_type<S: Scope>(target: &PathValue<S::Id>, scope: &S, data: Data<'_>) -> anyhow::Result<(Fetch, Option<Type>)> {
    let (base, array) = match (scope.shape(target.of), target.bits) {
        (_, Some(Bits { width, offset, container })) => (BasicType::Bits { width, offset, container }, None),
        (Shape::Array { of, count }, _) => array(target, of, count, scope)?,
        (shape, _) => (basic_type(&shape, scope).ok_or_else(|| anyhow!("{}", unsupported_type(target, &shape, scope)))?, None),
    };
    Ok((target.read(data)?, Some(Type { base, array })))
}

fn basic_type<S: Scope>(shape: &Shape<S::Id>, scope: &S) -> Option<BasicType> {
    match shape {
        Shape::Number { bytes: bytes @ (1 | 2 | 4 | 8), is_signed, .. } => {
            Some(if *is_signed { BasicType::Signed(bytes * 8) } else { BasicType::Unsigned(bytes * 8) })
        }
        Shape::Pointer { .. } => Some(BasicType::Hex(scope.pointer_bytes() * 8)),
        _ => None,
    }
}

/// Returns the basic type and the count of an array. An array of characters is fetched as a string, others element by
/// element.
fn array<S: Scope>(target: &PathValue<S::Id>, of: S::Id, count: Option<u64>, scope: &S) -> anyhow::Result<(BasicType, Option<u32>)> {
    let text = &target.text;
    if !matches!(target.place, ValueLocation::Memory { .. }) {
        bail!("{text} is an array that is not in memory at this address");
    }
    let shape = scope.shape(of);
    if matches!(shape, Shape::Number { bytes: 1, is_character: true, .. }) {
        return Ok((BasicType::String, None));
    }
    let Some(base) = basic_type(&shape, scope) else {
        bail!("{text} is an array whose elements are {}; name one element, as in {text}[0]", described(&shape))
    };
    match count {
        Some(count @ 1..=ELEMENTS_MAX) => Ok((base, Some(count as u32))),
        Some(0) | None => {
            bail!(
                "the number of elements of {text} is not known; write a type with a number, as in :x64[4], or name one element: {text}[0]"
            )
        }
        Some(count) => bail!(
            "{text} has {count} elements, but the kernel fetches at most {ELEMENTS_MAX}; write a type with a number, as in :x64[{ELEMENTS_MAX}], or name one element: {text}[0]"
        ),
    }
}

/// Explains why a value of this type cannot be fetched as a whole.
fn unsupported_type<S: Scope>(target: &PathValue<S::Id>, shape: &Shape<S::Id>, scope: &S) -> String {
    let text = &target.text;
    match shape {
        Shape::Aggregate { name, .. } => {
            let members = names(target.of, scope);
            let list = if members.is_empty() { String::new() } else { format!(": {}", shortened(&members)) };
            format!("{text} is {} as a whole; name one of its members{list}", name.escape_debug())
        }
        Shape::Float { .. } => {
            format!("{text} is a floating-point number, which the kernel cannot show; write :x64 or :x32 to fetch its bits")
        }
        Shape::Number { bytes, .. } => format!("{text} has {bytes} bytes, which the kernel cannot show as a number"),
        other => format!("{text} is {}, which cannot be fetched", described(other)),
    }
}
