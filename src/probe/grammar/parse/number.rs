//! Numbers as the kernel reads them: decimal, hexadecimal with 0x, octal with a leading zero.

use super::super::piece::{Parsed, Piece};

/// A number without a sign.
///
/// # Errors
/// What is none, or does not fit into 64 bits.
pub fn number(piece: Piece) -> Parsed<u64> {
    let text = piece.text();
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        let octal = if base == 8 && digits.bytes().all(|b| b.is_ascii_digit()) { " (with a leading 0 it is octal)" } else { "" };
        return Err(piece.wrong(format!("`{}` is no number{octal}; write 16 or 0x10", text.escape_debug())));
    }
    u64::from_str_radix(digits, base).map_err(|_| piece.wrong(format!("`{text}` is more than 64 bits hold")))
}

/// A number with `+` or `-` before it.
///
/// # Errors
/// What is none, or does not fit into 64 bits.
pub fn signed(piece: Piece) -> Parsed<i64> {
    let (sign, digits) = piece.split_while(|c| c == '+' || c == '-');
    match sign.text() {
        "+" => i64::try_from(number(digits)?).map_err(|_| piece.wrong("an offset of more than 63 bits leads nowhere")),
        "-" => 0i64.checked_sub_unsigned(number(digits)?).ok_or_else(|| piece.wrong("an offset of more than 63 bits leads nowhere")),
        _ => Err(sign.wrong("one sign is wanted here, + or -")),
    }
}

/// A decimal number as in `$arg1`.
///
/// # Errors
/// What is none, or does not fit.
pub fn index(piece: Piece) -> Parsed<u32> {
    let text = piece.text();
    let good = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    good.then(|| text.parse().ok()).flatten().ok_or_else(|| piece.wrong(format!("`{}` is no number from 0 up", text.escape_debug())))
}
