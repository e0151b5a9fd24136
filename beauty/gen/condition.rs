//! The syntax of the conditions behind `?`, which say when a call uses an argument.

use super::fault::is_name;

/// A condition as a row states it, with unresolved names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionRow {
    /// `?never`
    Never,
    /// `?flags&A|B||op==C`: at least one of the tests holds.
    If { text: String, any: Vec<TestRow> },
}

/// A test of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRow {
    pub arg: String,
    /// The bits that are compared, where the row names them: `mode&S_IFMT==...`.
    pub mask: Option<String>,
    pub comparison: Comparison,
    pub constants: Vec<String>,
}

/// A comparison of an argument with constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `flags&A|B`
    SomeBit,
    /// `!flags&A|B`
    NoBit,
    /// `op==A|B`
    OneOf,
    /// `op!=A|B`
    NoneOf,
}

/// Parses the text after `?`.
pub fn parse(text: &str) -> Result<ConditionRow, String> {
    if text == "never" {
        return Ok(ConditionRow::Never);
    }
    let any = text.split("||").map(test).collect::<Option<Vec<TestRow>>>();
    let any = any.ok_or_else(|| {
        format!(
            "`?{text}` is not a condition: use `flags&A|B`, `!flags&A|B`, `op==A|B`, `op!=A|B`, `mode&MASK==A|B`, several of them \
             with `||`, or `never`"
        )
    })?;
    Ok(ConditionRow::If { text: text.to_string(), any })
}

fn test(text: &str) -> Option<TestRow> {
    let compared = text.split_once("==").map(|parts| (Comparison::OneOf, parts));
    let compared = compared.or_else(|| text.split_once("!=").map(|parts| (Comparison::NoneOf, parts)));
    let (arg, mask, comparison, constants) = match (compared, text.strip_prefix('!')) {
        (Some((comparison, (left, constants))), _) => {
            let (arg, mask) = left.split_once('&').map_or((left, None), |(arg, mask)| (arg, Some(mask)));
            (arg, mask, comparison, constants)
        }
        (None, Some(rest)) => rest.split_once('&').map(|(arg, bits)| (arg, None, Comparison::NoBit, bits))?,
        (None, None) => text.split_once('&').map(|(arg, bits)| (arg, None, Comparison::SomeBit, bits))?,
    };
    let is_constant = |word: &str| number(word).is_some() || word.split('.').all(is_name) && word.matches('.').count() < 2;
    let constants: Vec<String> = constants.split('|').map(str::to_string).collect();
    let is_good = is_name(arg) && mask.is_none_or(is_constant) && constants.iter().all(|word| is_constant(word));
    is_good.then(|| TestRow { arg: arg.to_string(), mask: mask.map(str::to_string), comparison, constants })
}

/// Parses a number of a row: decimal, or hexadecimal with `0x`.
pub fn number(word: &str) -> Option<u64> {
    word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

impl ConditionRow {
    /// Returns the names of the tested arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        let any = if let ConditionRow::If { any, .. } = self { any.as_slice() } else { &[] };
        any.iter().map(|test| test.arg.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_an_argument_and_constants() {
        assert_eq!(parse("never"), Ok(ConditionRow::Never));
        let tests = |text: &str| match parse(text) {
            Ok(ConditionRow::If { any, .. }) => {
                any.into_iter().map(|test| (test.arg, test.mask, test.comparison, test.constants.join(" "))).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        let one = |arg: &str, mask: Option<&str>, comparison, constants: &str| {
            (arg.to_string(), mask.map(str::to_string), comparison, constants.to_string())
        };
        assert_eq!(tests("flags&A|B"), [one("flags", None, Comparison::SomeBit, "A B")]);
        assert_eq!(tests("!flags&A"), [one("flags", None, Comparison::NoBit, "A")]);
        assert_eq!(tests("op==A||op&0x20"), [one("op", None, Comparison::OneOf, "A"), one("op", None, Comparison::SomeBit, "0x20")]);
        assert_eq!(tests("mode&t.M!=t.A|7"), [one("mode", Some("t.M"), Comparison::NoneOf, "t.A 7")]);
    }

    #[test]
    fn invalid_conditions_are_named_in_the_error() {
        for text in ["", "creates", "flags&", "&A", "flags=A", "a==b c", "a==x.y.z", "flags&A||"] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(&format!("`?{text}` is not a condition: ")), "{error}");
        }
    }
}
