//! Parses numbers as the kernel does: decimal, hexadecimal with 0x, octal with a leading zero.

use super::super::piece::{Parsed, Piece};

/// Parses a number without a sign.
///
/// # Errors
/// It is not a number, or does not fit into 64 bits.
pub fn number(piece: Piece) -> Parsed<u64> {
    let text = piece.text();
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        let octal = if base == 8 && digits.bytes().all(|b| b.is_ascii_digit()) { " (with a leading 0 it is octal)" } else { "" };
        return Err(piece.error(format!("`{}` is not a number{octal}; write 16 or 0x10", text.escape_debug())));
    }
    u64::from_str_radix(digits, base).map_err(|_| piece.error(format!("`{text}` does not fit into 64 bits")))
}

/// Parses a number with `+` or `-` before it.
///
/// # Errors
/// It is not a number with one sign, or does not fit into 64 bits.
pub fn signed(piece: Piece) -> Parsed<i64> {
    let (sign, digits) = piece.split_while(|c| c == '+' || c == '-');
    match sign.text() {
        "+" => i64::try_from(number(digits)?).map_err(|_| piece.error("the offset does not fit into 64 bits")),
        "-" => 0i64.checked_sub_unsigned(number(digits)?).ok_or_else(|| piece.error("the offset does not fit into 64 bits")),
        _ => Err(sign.error("exactly one sign, + or -, is expected here")),
    }
}

/// Parses a decimal number as in `$arg1`.
///
/// # Errors
/// It is not a decimal number, or does not fit into 32 bits.
pub fn index(piece: Piece) -> Parsed<u32> {
    let text = piece.text();
    let good = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    good.then(|| text.parse().ok()).flatten().ok_or_else(|| piece.error(format!("`{}` is not a decimal number", text.escape_debug())))
}
