//! Parses the quantities of the command line: durations (`1ms`, `50us`, `2s`) and sizes (`4K`, `8M`).
//!
//! A quantity is exact or an error; nothing is rounded.

/// Parses a duration and returns it in nanoseconds. The units are ns, us, ms, s, m and h. A number without a unit is
/// milliseconds, as in perf. Fractions are allowed if the result is a whole number of nanoseconds.
///
/// # Errors
/// The text is not a duration; the error is a sentence with the reason.
pub fn duration(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" => 1_000_000,
        unit => time_scale(unit).ok_or_else(|| format!("`{unit}` is not a unit of time (use ns, us, ms, s, m or h)"))?,
    };
    scaled(number, scale)
}

/// Parses a size and returns it in bytes. K, M and G are powers of 1024. A number without a unit is bytes.
///
/// # Errors
/// The text is not a size; the error is a sentence with the reason.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" | "B" => 1,
        unit => size_scale(unit).ok_or_else(|| format!("`{unit}` is not a unit of size (use K, M or G)"))?,
    };
    scaled(number, scale)
}

/// Parses a share in percent, with or without decimals.
///
/// # Errors
/// The text is not a number between 0 and 100; the error is a sentence with the reason.
pub fn percent(text: &str) -> Result<f64, String> {
    let share = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| "a share is a number between 0 and 100".to_owned())
}

/// Parses the size of a buffer and returns it in bytes, like [`size`], but a number without a unit is pages.
///
/// # Errors
/// The text is not a size, or is 0; the error is a sentence with the reason.
pub fn pages_or_size(text: &str, page_bytes: u64) -> Result<u64, String> {
    let bytes = match split(text) {
        (number, "") => scaled(number, page_bytes)?,
        _ => size(text)?,
    };
    if bytes == 0 { Err("the size must be greater than 0".to_owned()) } else { Ok(bytes) }
}

/// Returns the nanoseconds of a unit of time.
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

/// Returns the bytes of a unit of size.
pub fn size_scale(unit: &str) -> Option<u64> {
    Some(match unit {
        "K" | "k" | "KB" => 1 << 10,
        "M" | "MB" => 1 << 20,
        "G" | "GB" => 1 << 30,
        _ => return None,
    })
}

/// Parses a decimal number, with or without a fraction, and multiplies it by a scale.
///
/// # Errors
/// The text is not a number, the product is too large, or it is not a whole number.
pub fn scaled(number: &str, scale: u64) -> Result<u64, String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || number.ends_with('.') {
        return Err(if number.is_empty() { "a number is missing".to_owned() } else { format!("`{number}` is not a number") });
    }
    let too_large = || format!("`{number}` is too large");
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let whole = whole.checked_mul(scale).ok_or_else(too_large)?;
    whole.checked_add(fraction_of(fraction, scale)?).ok_or_else(too_large)
}

/// Formats a duration in the largest unit in which it is a whole number: `1500us`.
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
    let finer = || format!("`.{digits}` is finer than the smallest unit (1 ns or 1 byte)");
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
    fn durations_are_parsed() {
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
    fn errors_name_the_reason() {
        for (text, why) in [
            ("", "a number is missing"),
            ("ms", "a number is missing"),
            ("x", "`x` is not a unit of time (use ns, us, ms, s, m or h)"),
            ("1x", "`x` is not a unit of time (use ns, us, ms, s, m or h)"),
            ("1.2.3s", "`1.2.3` is not a number"),
            ("1.s", "`1.` is not a number"),
            (".5s", "`.5` is not a number"),
            ("-1s", "`-1s` is not a unit of time (use ns, us, ms, s, m or h)"),
            ("0.5ns", "`.5` is finer than the smallest unit (1 ns or 1 byte)"),
            ("99999999999999999999s", "`99999999999999999999` is too large"),
            ("99999999999999s", "`99999999999999` is too large"),
        ] {
            assert_eq!(duration(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(size("4K"), Ok(4096));
        assert_eq!(size("8M"), Ok(8 << 20));
        assert_eq!(size("1G"), Ok(1 << 30));
        assert_eq!(size("1.5K"), Ok(1536));
        assert_eq!(size("17"), Ok(17));
        assert_eq!(size("4T"), Err("`T` is not a unit of size (use K, M or G)".to_owned()));
    }

    #[test]
    fn a_buffer_size_without_a_unit_is_pages() {
        assert_eq!(pages_or_size("128", 4096), Ok(512 << 10));
        assert_eq!(pages_or_size("8M", 4096), Ok(8 << 20));
        assert_eq!(pages_or_size("0", 4096), Err("the size must be greater than 0".to_owned()));
    }

    #[test]
    fn printed_durations_are_parsed_back() {
        for ns in [0, 1, 999, 1_000, 1_500_000, 2_000_000_000, u64::MAX] {
            assert_eq!(duration(&print_duration(ns)), Ok(ns));
        }
        assert_eq!(print_duration(1_500_000), "1500us");
    }
}
