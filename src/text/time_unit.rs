//! Chooses units of time for display.

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The abbreviation that is printed (`ms`).
    pub name: &'static str,
    nanoseconds: u64,
}

const UNITS: [Unit; 4] = [
    Unit { name: "s", nanoseconds: 1_000_000_000 },
    Unit { name: "ms", nanoseconds: 1_000_000 },
    Unit { name: "us", nanoseconds: 1_000 },
    Unit { name: "ns", nanoseconds: 1 },
];

impl Unit {
    /// Chooses a common unit for times that are shown with three decimals. It is the largest unit in which the smallest
    /// time has at least two digits and the largest time is at least 1. If there is no such unit, it is the largest one
    /// in which no time is shown as 0.000.
    pub fn of_all(values: impl Iterator<Item = u64> + Clone) -> Unit {
        let (least, most) = (values.clone().filter(|value| *value > 0).min().unwrap_or(0), values.max().unwrap_or(0));
        let fits = |unit: &&Unit| least * 100 >= unit.nanoseconds && most >= unit.nanoseconds;
        let shows = |unit: &&Unit| least.saturating_mul(1_000) >= unit.nanoseconds;
        let found = if most <= u64::MAX / 1_000 { UNITS.iter().find(fits) } else { UNITS.first() };
        *found.or_else(|| UNITS.iter().find(shows)).unwrap_or(&UNITS[3])
    }

    /// Formats nanoseconds in this unit. Only 0 is shown as 0.
    pub fn text(self, nanoseconds: u64) -> String {
        match (nanoseconds, self.nanoseconds) {
            (0, _) => "0".to_owned(),
            (_, 1) => nanoseconds.to_string(),
            (_, unit) => {
                let thousandths = ((u128::from(nanoseconds) * 1_000 + u128::from(unit) / 2) / u128::from(unit)).max(1);
                format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
            }
        }
    }
}

/// Formats a time with three digits and the largest unit that is not greater: `812 ns`, `1.02 us`, `16.8 ms`.
pub fn short(nanoseconds: u64) -> String {
    let unit = UNITS.iter().find(|unit| nanoseconds >= unit.nanoseconds).unwrap_or(&UNITS[3]);
    let value = nanoseconds as f64 / unit.nanoseconds as f64;
    let decimals = match value {
        _ if unit.nanoseconds == 1 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[u64]) -> (&'static str, Vec<String>) {
        let unit = Unit::of_all(values.iter().copied());
        (unit.name, values.iter().map(|value| unit.text(*value)).collect())
    }

    #[test]
    fn a_column_has_one_unit_for_all_its_times() {
        assert_eq!(column(&[12, 999]), ("ns", vec!["12".into(), "999".into()]));
        assert_eq!(column(&[254, 37_336_000]), ("us", vec!["0.254".into(), "37336.000".into()]));
        assert_eq!(column(&[277_000, 37_336_123]), ("ms", vec!["0.277".into(), "37.336".into()]));
        assert_eq!(column(&[1_200_000, 5_000_000_000]), ("ms", vec!["1.200".into(), "5000.000".into()]));
        assert_eq!(column(&[20_000_000, 5_000_000_000]), ("s", vec!["0.020".into(), "5.000".into()]));
        assert_eq!(column(&[0, 0]), ("ns", vec!["0".into(), "0".into()]));
        assert_eq!(column(&[]), ("ns", vec![]));
    }

    #[test]
    fn times_above_zero_are_never_shown_as_zero() {
        for values in [[1, u64::MAX], [1, 1_000_000_000], [9, 4_000_000], [499, 1_000_000]] {
            let (unit, texts) = column(&values);
            assert!(texts.iter().all(|text| text.chars().any(|c| ('1'..='9').contains(&c))), "{values:?}: {texts:?} {unit}");
        }
    }

    #[test]
    fn short_times_have_three_digits() {
        let texts = [0, 812, 1_024, 65_536, 131_072, 16_777_216, 1_073_741_824].map(short);
        assert_eq!(texts, ["0 ns", "812 ns", "1.02 us", "65.5 us", "131 us", "16.8 ms", "1.07 s"]);
    }
}
