//! Types in DWARF debug information.

use super::debug::{Debug, Value, first_outermost};
use super::die::{Die, DieId};
use crate::probe::value::{Member, Shape};
use gimli::Operation;
use gimli::constants as dw;
use std::ops::ControlFlow;

/// A type. For a multidimensional array, `dimension` is the number of indices applied so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeId {
    die: Option<DieId>,
    dimension: u8,
}

impl TypeId {
    /// Returns the type of an entry; `void` if the entry has no type.
    pub fn of(die: &Die<'_>) -> TypeId {
        let typed = die.with_origins().into_iter().find_map(|die| die.reference(dw::DW_AT_type));
        TypeId { die: typed, dimension: 0 }
    }

    /// Returns whether this is `void`, for which DWARF has no entry.
    pub fn is_nothing(self) -> bool {
        self.die.is_none()
    }
}

/// The maximum length of a chain of typedefs and qualifiers.
const DEPTH_MAX: usize = 32;

/// Returns the entry of a type behind typedefs and qualifiers, and the definition of a type that is only declared.
fn bare(debug: &Debug, id: TypeId) -> Option<Die<'_>> {
    let mut die = debug.die(id.die?)?;
    for _ in 0..DEPTH_MAX {
        match die.tag() {
            dw::DW_TAG_typedef
            | dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
            | dw::DW_TAG_atomic_type
            | dw::DW_TAG_immutable_type
            | dw::DW_TAG_packed_type => die = die.refers(dw::DW_AT_type)?,
            _ if die.flag(dw::DW_AT_declaration) => return Some(definition(debug, &die).unwrap_or(die)),
            _ => return Some(die),
        }
    }
    None
}

/// Finds the definition of a struct that a unit only declares.
fn definition<'d>(debug: &'d Debug, declared: &Die<'d>) -> Option<Die<'d>> {
    let name = declared.own_name()?;
    let tag = declared.tag();
    let (number, entry) = debug.find_unit(|number, unit| {
        // The definition of a type that is declared at file scope is at file scope too.
        let found = first_outermost(unit, |entry| {
            entry.tag() == tag && entry.attr_value(dw::DW_AT_declaration).is_none() && debug.is_named(unit, entry, &name)
        });
        found.map_or(ControlFlow::Continue(()), |entry| ControlFlow::Break((number, entry)))
    })?;
    let root = debug.root(number)?;
    Some(Die { entry, ..root })
}

/// Returns the structure of a type.
pub fn shape(debug: &Debug, id: TypeId) -> Shape<TypeId> {
    let Some(die) = bare(debug, id) else { return Shape::Other("nothing") };
    let bytes = die.number(dw::DW_AT_byte_size);
    let few = || bytes.and_then(|bytes| u8::try_from(bytes).ok()).unwrap_or(0);
    match die.tag() {
        dw::DW_TAG_base_type => base(&die, few()),
        dw::DW_TAG_enumeration_type => {
            let of = bare(debug, TypeId::of(&die)).filter(|of| of.tag() == dw::DW_TAG_base_type);
            let is_signed = of.is_some_and(|of| matches!(base(&of, 0), Shape::Number { is_signed: true, .. }));
            Shape::Number { bytes: few(), is_signed, is_character: false }
        }
        dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => {
            let to = TypeId::of(&die);
            Shape::Pointer { to: (!to.is_nothing()).then_some(to), user: false }
        }
        dw::DW_TAG_array_type => array(&die, id.dimension),
        dw::DW_TAG_structure_type => aggregate(&die, "struct", bytes),
        dw::DW_TAG_union_type => aggregate(&die, "union", bytes),
        dw::DW_TAG_class_type => aggregate(&die, "class", bytes),
        dw::DW_TAG_subroutine_type => Shape::Other("a function"),
        _ => Shape::Other("of a type that rtrace does not know"),
    }
}

fn base(die: &Die<'_>, bytes: u8) -> Shape<TypeId> {
    let encoding = match die.value(dw::DW_AT_encoding) {
        Some(Value::Encoding(encoding)) => encoding,
        _ => dw::DW_ATE_unsigned,
    };
    match encoding {
        dw::DW_ATE_float | dw::DW_ATE_complex_float | dw::DW_ATE_decimal_float => Shape::Float { bytes },
        _ => {
            let is_signed = matches!(encoding, dw::DW_ATE_signed | dw::DW_ATE_signed_char);
            // By convention in C, an array of `unsigned char` holds bytes, and an array of `char` holds text.
            let is_character = die.own_name().as_deref() == Some("char");
            Shape::Number { bytes, is_signed, is_character }
        }
    }
}

fn array(die: &Die<'_>, dimension: u8) -> Shape<TypeId> {
    let ranges: Vec<Die<'_>> = die.children().into_iter().filter(|child| child.tag() == dw::DW_TAG_subrange_type).collect();
    let count = ranges
        .get(usize::from(dimension))
        .and_then(|range| range.number(dw::DW_AT_count).or_else(|| range.number(dw::DW_AT_upper_bound)?.checked_add(1)));
    let of = match usize::from(dimension) + 1 < ranges.len() {
        true => TypeId { die: Some(die.id()), dimension: dimension.saturating_add(1) },
        false => TypeId::of(die),
    };
    Shape::Array { of, count }
}

fn aggregate(die: &Die<'_>, keyword: &str, bytes: Option<u64>) -> Shape<TypeId> {
    let name = match die.own_name() {
        Some(name) => format!("{keyword} {name}"),
        None => format!("a {keyword} without a name"),
    };
    Shape::Aggregate { name, bytes }
}

/// Returns the members of a struct, union or class. Base classes are anonymous members.
pub fn members(debug: &Debug, id: TypeId) -> Vec<Member<TypeId>> {
    let Some(die) = bare(debug, id) else { return Vec::new() };
    if !matches!(die.tag(), dw::DW_TAG_structure_type | dw::DW_TAG_union_type | dw::DW_TAG_class_type) {
        return Vec::new();
    }
    let is_member =
        |child: &Die<'_>| matches!(child.tag(), dw::DW_TAG_member | dw::DW_TAG_inheritance) && !child.flag(dw::DW_AT_declaration);
    die.children().iter().filter(|child| is_member(child)).filter_map(|child| member(child)).collect()
}

fn member(die: &Die<'_>) -> Option<Member<TypeId>> {
    let name = die.own_name().filter(|_| die.tag() == dw::DW_TAG_member);
    let width = die.number(dw::DW_AT_bit_size).map(u8::try_from).transpose().ok()?;
    let bytes = match die.value(dw::DW_AT_data_member_location) {
        Some(value) => value.udata_value().or_else(|| added(die, value)).unwrap_or(u64::MAX),
        None => 0,
    };
    let start = bytes.checked_mul(8)?;
    let offset = match (die.number(dw::DW_AT_data_bit_offset), die.number(dw::DW_AT_bit_offset), width) {
        (Some(bits), _, _) => start.checked_add(bits)?,
        // Before DWARF 4, the offset is counted from the most significant bit of the storage unit.
        (None, Some(from_top), Some(width)) => {
            let storage = die.number(dw::DW_AT_byte_size).or_else(|| die.refers(dw::DW_AT_type)?.number(dw::DW_AT_byte_size))?;
            start.checked_add(storage.checked_mul(8)?)?.checked_sub(from_top)?.checked_sub(width.into())?
        }
        _ => start,
    };
    Some(Member { name, offset, width, of: TypeId::of(die) })
}

/// Returns the offset of a member from an expression that adds it to the struct's address, as the oldest compilers
/// wrote it.
fn added(die: &Die<'_>, value: Value) -> Option<u64> {
    let expression = value.exprloc_value()?;
    match expression.operations(die.unit.encoding()).next().ok()?? {
        Operation::PlusConstant { value } => Some(value),
        _ => None,
    }
}
