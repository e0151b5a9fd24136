//! Amounts with units as the command line writes them: durations (`1ms`, `50us`, `2s`) and sizes (`4K`, `8M`).
//!
//! Exact or refused: nothing is rounded.

/// Nanoseconds of a duration. A bare number is milliseconds, as in perf; units are ns, us, ms, s, m and h; a fraction is fine
/// as long as it is a whole number of nanoseconds.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn duration(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" => 1_000_000,
        unit => time_scale(unit).ok_or_else(|| format!("`{unit}` is no unit of time (ns, us, ms, s, m, h)"))?,
    };
    scaled(number, scale)
}

/// Bytes of a size: K, M and G are powers of 1024; a bare number is bytes.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "B" => 1,
        unit => size_scale(unit).ok_or_else(|| format!("`{unit}` is no unit of size (K, M, G)"))?,
    };
    scaled(number, scale)
}

/// Bytes of a buffer: like [`size`], but a bare number counts pages.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn pages_or_size(text: &str, page_bytes: u64) -> Result<u64, String> {
    let bytes = match split(text) {
        (number, "") => scaled(number, page_bytes)?,
        _ => size(text)?,
    };
    if bytes == 0 { Err("it must be more than nothing".to_owned()) } else { Ok(bytes) }
}

/// Nanoseconds of one unit of time.
pub fn time_scale(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Bytes of one unit of size.
pub fn size_scale(unit: &str) -> Option<u64> {
    Some(match unit {
        "K" | "k" | "KB" => 1 << 10,
        "M" | "MB" => 1 << 20,
        "G" | "GB" => 1 << 30,
        _ => return None,
    })
}

/// A decimal number, with or without a fraction, times a scale.
///
/// # Errors
/// No number, too large, or a fraction finer than one.
pub fn scaled(number: &str, scale: u64) -> Result<u64, String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
        return Err(if number.is_empty() { "a number is missing".to_owned() } else { format!("`{number}` is no number") });
    }
    let too_large = || format!("`{number}` is too large");
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let whole = whole.checked_mul(scale).ok_or_else(too_large)?;
    whole.checked_add(fraction_of(fraction, scale)?).ok_or_else(too_large)
}

/// The largest unit in which a duration is a whole number: `1500us`.
pub fn print_duration(ns: u64) -> String {
    let unit = ["s", "ms", "us"].into_iter().find_map(|unit| {
        let scale = time_scale(unit)?;
        (ns != 0 && ns.is_multiple_of(scale)).then(|| format!("{}{unit}", ns / scale))
    });
    unit.unwrap_or_else(|| format!("{ns}ns"))
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

fn fraction_of(digits: &str, scale: u64) -> Result<u64, String> {
    let digits = digits.trim_end_matches('0');
    let finer = || format!("`.{digits}` is finer than can be told apart");
    let Some(parts) = 10u128.checked_pow(digits.len() as u32) else { return Err(finer()) };
    let value = digits.bytes().fold(0u128, |sum, digit| sum * 10 + u128::from(digit - b'0')) * u128::from(scale);
    if !value.is_multiple_of(parts) {
        return Err(finer());
    }
    u64::try_from(value / parts).map_err(|_| finer())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ns) in [
            ("1ms", 1_000_000),
            ("50us", 50_000),
            ("2s", 2_000_000_000),
            ("1m", 60_000_000_000),
            ("500", 500_000_000),
            ("0.5", 500_000),
            ("1.25us", 1_250),
            ("7ns", 7),
            ("0", 0),
            ("1h", 3_600_000_000_000),
        ] {
            assert_eq!(duration(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn bad_durations_say_why() {
        for (text, why) in [
            ("", "a number is missing"),
            ("ms", "a number is missing"),
            ("x", "`x` is no unit of time (ns, us, ms, s, m, h)"),
            ("1x", "`x` is no unit of time (ns, us, ms, s, m, h)"),
            ("1.2.3s", "`1.2.3` is no number"),
            ("1.s", "`1.` is no number"),
            (".5s", "`.5` is no number"),
            ("-1s", "`-1s` is no unit of time (ns, us, ms, s, m, h)"),
            ("0.5ns", "`.5` is finer than can be told apart"),
            ("99999999999999999999s", "`99999999999999999999` is too large"),
            ("99999999999999s", "`99999999999999` is too large"),
        ] {
            assert_eq!(duration(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4K"), Ok(4096));
        assert_eq!(size("8M"), Ok(8 << 20));
        assert_eq!(size("1G"), Ok(1 << 30));
        assert_eq!(size("1.5K"), Ok(1536));
        assert_eq!(size("17"), Ok(17));
        assert_eq!(size("4T"), Err("`T` is no unit of size (K, M, G)".to_owned()));
    }

    #[test]
    fn a_bare_number_of_a_buffer_is_pages() {
        assert_eq!(pages_or_size("128", 4096), Ok(512 << 10));
        assert_eq!(pages_or_size("8M", 4096), Ok(8 << 20));
        assert_eq!(pages_or_size("0", 4096), Err("it must be more than nothing".to_owned()));
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for ns in [0, 1, 999, 1_000, 1_500_000, 2_000_000_000, u64::MAX] {
            assert_eq!(duration(&print_duration(ns)), Ok(ns));
        }
        assert_eq!(print_duration(1_500_000), "1500us");
    }
}
