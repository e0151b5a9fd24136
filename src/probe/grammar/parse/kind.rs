//! Parses the types of arguments.

use super::super::ast::{BasicType, Type};
use super::super::limits::ELEMENTS_MAX;
use super::super::piece::{Parsed, Piece};
use super::number::number;
use crate::text::near;

/// Parses `BASE` or `BASE[N]`.
///
/// # Errors
/// The type is unknown, or the array has no or too many elements.
pub fn kind(text: Piece) -> Parsed<Type> {
    let Some((base, behind)) = text.split_once('[') else {
        return Ok(Type { base: self::base(text)?, array: None });
    };
    let count = behind.strip_suffix("]").ok_or_else(|| behind.error_behind("the ] at the end of the type is missing"))?;
    match number(count)? {
        number @ 1..=ELEMENTS_MAX => Ok(Type { base: self::base(base)?, array: Some(number as u32) }),
        _ => Err(count.error(format!("an array has 1 to {ELEMENTS_MAX} elements"))),
    }
}

fn base(text: Piece) -> Parsed<BasicType> {
    if let Some((_, base)) = BasicType::NAMED.iter().find(|(name, _)| *name == text.text()) {
        return Ok(*base);
    }
    if text.text().starts_with('b') && text.text().contains(['@', '/']) {
        return bits(text);
    }
    let near = near::nearest(text.text(), BasicType::NAMED.iter().map(|(name, _)| *name), 3);
    let what = format!(
        "there is no type `{}` (u8 to u64, s8 to s64, x8 to x64, char, string, ustring, symbol, symstr, %pd, %pD, bWIDTH@OFFSET/BITS){}",
        text.text().escape_debug(),
        near::hint(&near)
    );
    Err(text.error(what))
}

fn bits(text: Piece) -> Parsed<BasicType> {
    let wrong = || text.error("a bit field is written bWIDTH@OFFSET/CONTAINER, all three in bits: b4@8/32");
    let (width, behind) = text.split_at(1).1.split_once('@').ok_or_else(wrong)?;
    let (offset, container) = behind.split_once('/').ok_or_else(wrong)?;
    let number = |piece: Piece| number(piece).map(|number| u8::try_from(number).unwrap_or(u8::MAX));
    let (width, offset, bits) = (number(width)?, number(offset)?, number(container)?);
    if !matches!(bits, 8 | 16 | 32 | 64) {
        return Err(container.error("the container of a bit field has 8, 16, 32 or 64 bits"));
    }
    if width == 0 || u16::from(width) + u16::from(offset) > u16::from(bits) {
        return Err(text.error(format!("{width} bits from bit {offset} on do not fit into {bits}")));
    }
    Ok(BasicType::Bits { width, offset, container: bits })
}
