//! The values of options: times, precisions, columns of the summary, and sets of words.

use super::Refused;
use crate::show::strace::{Column, Constants, InHex, Precision, Stamps};

/// Returns the message about a value that an option does not have.
pub fn invalid(option: &str, value: &str) -> Refused {
    Refused::Usage(format!("invalid {option} argument: '{value}'"))
}

/// Returns the message about a value that an expression of `-e` does not have.
pub fn wrong(expression: &str, value: &str) -> Refused {
    Refused::Wrong(format!("invalid -e {expression}= argument: '{value}'"))
}

/// Returns a number that is not negative.
pub fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, Refused> {
    value.parse().map_err(|_| invalid(option, value))
}

/// Returns a precision of times, by the name of its unit.
pub fn precision(option: &str, value: &str) -> Result<Precision, Refused> {
    unit(value).ok_or_else(|| invalid(option, value))
}

fn unit(name: &str) -> Option<Precision> {
    Some(match name {
        "s" => Precision::Seconds,
        "ms" => Precision::Millis,
        "us" => Precision::Micros,
        "ns" => Precision::Nanos,
        _ => return None,
    })
}

/// Returns the stamps of `--absolute-timestamps`: a format and a precision in any order, each with its keyword or
/// without.
pub fn stamps(value: &str) -> Result<Option<Stamps>, Refused> {
    let mut stamps = Some(Stamps { is_unix: false, precision: Precision::Seconds });
    for word in value.split(',') {
        let word = word.to_ascii_lowercase();
        let plain = word.strip_prefix("format:").or_else(|| word.strip_prefix("precision:")).unwrap_or(&word);
        match (plain, &mut stamps, unit(plain)) {
            ("none", ..) => stamps = None,
            ("time", Some(stamps), _) => stamps.is_unix = false,
            ("unix", Some(stamps), _) => stamps.is_unix = true,
            (_, Some(stamps), Some(unit)) => stamps.precision = unit,
            (_, None, Some(_)) | ("time" | "unix", None, _) => {}
            _ => return Err(invalid("--absolute-timestamps", value)),
        }
    }
    Ok(stamps)
}

/// Returns what is written in hexadecimal (`--strings-in-hex`).
pub fn in_hex(value: &str) -> Result<InHex, Refused> {
    Ok(match value {
        "none" => InHex::Never,
        "non-ascii-chars" => InHex::Escapes,
        "non-ascii" => InHex::NotAscii,
        "all" => InHex::Always,
        _ => return Err(invalid("--strings-in-hex", value)),
    })
}

/// Returns how constants are written (`-X`).
pub fn constants(value: &str) -> Result<Constants, Refused> {
    Ok(match value {
        "raw" => Constants::Raw,
        "abbrev" => Constants::Abbreviated,
        "verbose" => Constants::Verbose,
        _ => return Err(invalid("-X", value)),
    })
}

/// Returns the column of the summary that has this name, or one of the other names that strace knows.
pub fn column(name: &str) -> Option<Column> {
    Some(match name {
        "time-percent" | "percent" | "time_percent" | "time-percentage" => Column::TimePercent,
        "time" | "time-total" | "time_total" | "total-time" | "total_time" => Column::TotalTime,
        "min-time" | "min_time" | "time-min" | "time_min" | "min" | "shortest" => Column::MinTime,
        "max-time" | "max_time" | "time-max" | "time_max" | "max" | "longest" => Column::MaxTime,
        "avg-time" | "avg_time" | "time-avg" | "time_avg" | "avg" => Column::AvgTime,
        "wall-total" | "wall_total" => Column::WallTotal,
        "wall-min" | "wall_min" => Column::WallMin,
        "wall-max" | "wall_max" => Column::WallMax,
        "wall-avg" | "wall_avg" => Column::WallAvg,
        "calls" | "count" => Column::Calls,
        "errors" | "error" => Column::Errors,
        "name" | "syscall" | "syscall-name" | "syscall_name" => Column::Name,
        _ => return None,
    })
}

/// Returns the column that orders the summary (`-S`); `None` for no order.
pub fn sort_by(value: &str) -> Result<Option<Column>, Refused> {
    match (value, column(value)) {
        ("none" | "nothing", _) => Ok(None),
        (_, None) => Err(Refused::Usage(format!("invalid sortby: '{value}'"))),
        (_, column) => Ok(column),
    }
}

/// Returns the columns of the summary (`-U`).
pub fn columns(value: &str) -> Result<Vec<Column>, Refused> {
    let mut columns = Vec::new();
    let mut left = value;
    for name in value.split(',') {
        let column = column(name).ok_or_else(|| Refused::Usage(format!("unknown column name: '{name}'")))?;
        if columns.contains(&column) {
            let text = "call summary column has been provided more than once";
            return Err(Refused::Usage(format!("{text}: '{name}' (-U option residual: '{left}')")));
        }
        columns.push(column);
        left = left[name.len()..].trim_start_matches(',');
    }
    Ok(columns)
}

/// Returns a time in nanoseconds; without a unit, it is in microseconds.
pub fn overhead(value: &str) -> Result<u64, Refused> {
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &value[digits.len()..] {
        "s" => 1e9,
        "ms" => 1e6,
        "" | "us" => 1e3,
        "ns" => 1.0,
        _ => return Err(invalid("-O", value)),
    };
    let number: f64 =
        digits.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0).ok_or_else(|| invalid("-O", value))?;
    Ok((number * factor) as u64)
}

/// Checks the value of `--tips`: a number and a format in any order, each with its keyword or without.
pub fn tips(value: &str) -> Result<(), Refused> {
    let is_number = |text: &str| text == "random" || text.parse::<u32>().is_ok_and(|number| i32::try_from(number).is_ok());
    let is_format = |text: &str| ["none", "compact", "full"].contains(&text);
    let is_known = |word: &str| match word.split_once(':') {
        Some(("id", number)) => is_number(number),
        Some(("format", format)) => is_format(format),
        _ => is_number(word) || is_format(word),
    };
    let words = value.split(',').filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);
    if words.into_iter().all(|word| is_known(&word)) { Ok(()) } else { Err(invalid("--tips", value)) }
}

/// Returns the words of a set with a comma between each two, and whether a `!` stands before them.
pub fn set(value: &str) -> (bool, &str) {
    value.strip_prefix('!').map_or((false, value), |list| (true, list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_have_a_format_and_a_precision_in_any_order() {
        let of = |is_unix, precision| Ok(Some(Stamps { is_unix, precision }));
        assert_eq!(stamps("time"), of(false, Precision::Seconds));
        assert_eq!(stamps("ns"), of(false, Precision::Nanos));
        assert_eq!(stamps("unix,ms"), of(true, Precision::Millis));
        assert_eq!(stamps("precision:us,format:unix"), of(true, Precision::Micros));
        assert_eq!(stamps("none"), Ok(None));
        assert_eq!(stamps("x"), Err(Refused::Usage("invalid --absolute-timestamps argument: 'x'".to_owned())));
    }

    #[test]
    fn overheads_have_units() {
        assert_eq!(
            [overhead("2"), overhead("1.5ms"), overhead("7ns"), overhead("1s")],
            [Ok(2000), Ok(1_500_000), Ok(7), Ok(1_000_000_000)]
        );
        assert!(["x", "1h", "-1", ""].into_iter().all(|value| overhead(value).is_err()));
    }

    #[test]
    fn columns_are_known_by_several_names_and_stand_once() {
        assert_eq!(columns("name,calls,max"), Ok(vec![Column::Name, Column::Calls, Column::MaxTime]));
        assert!(columns("name,syscall").is_err() && columns("nothing").is_err());
        assert_eq!(sort_by("nothing"), Ok(None));
    }
}
