//! When a call uses an argument: what rows say behind `?`.

use super::fault::is_name;
use super::kind::Kind;
use super::link::{Found, Lookup};

/// A condition as a row says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionRow {
    /// `?never`
    Never,
    /// `?flags&A|B||op==C`: one of these tests holds.
    If { text: String, any: Vec<TestRow> },
}

/// A test of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRow {
    pub arg: String,
    /// The bits that are compared, where the row says them: `mode&S_IFMT==...`.
    pub mask: Option<String>,
    pub how: How,
    pub constants: Vec<String>,
}

/// How the argument is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `flags&A|B`
    SomeBit,
    /// `!flags&A|B`
    NoBit,
    /// `op==A|B`
    OneOf,
    /// `op!=A|B`
    NoneOf,
}

/// A condition with the constants' values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Never,
    If { text: String, any: Vec<Test> },
}

/// A test of the lower half of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    pub arg: usize,
    pub mask: u32,
    pub how: How,
    /// With `OneOf` and `NoneOf`.
    pub values: Vec<u32>,
}

/// Reads what stands behind `?`.
pub fn parse(text: &str) -> Result<ConditionRow, String> {
    if text == "never" {
        return Ok(ConditionRow::Never);
    }
    let any = text.split("||").map(test).collect::<Option<Vec<TestRow>>>();
    let any = any.ok_or_else(|| {
        format!(
            "`?{text}` is no condition: `flags&A|B`, `!flags&A|B`, `op==A|B`, `op!=A|B`, `mode&MASK==A|B`, several with `||`, or `never`"
        )
    })?;
    Ok(ConditionRow::If { text: text.to_string(), any })
}

fn test(text: &str) -> Option<TestRow> {
    let compared = text.split_once("==").map(|parts| (How::OneOf, parts));
    let compared = compared.or_else(|| text.split_once("!=").map(|parts| (How::NoneOf, parts)));
    let (arg, mask, how, constants) = match (compared, text.strip_prefix('!')) {
        (Some((how, (left, constants))), _) => {
            let (arg, mask) = left.split_once('&').map_or((left, None), |(arg, mask)| (arg, Some(mask)));
            (arg, mask, how, constants)
        }
        (None, Some(rest)) => rest.split_once('&').map(|(arg, bits)| (arg, None, How::NoBit, bits))?,
        (None, None) => text.split_once('&').map(|(arg, bits)| (arg, None, How::SomeBit, bits))?,
    };
    let is_constant = |word: &str| number(word).is_some() || word.split('.').all(is_name) && word.matches('.').count() < 2;
    let constants: Vec<String> = constants.split('|').map(str::to_string).collect();
    let is_good = is_name(arg) && mask.is_none_or(is_constant) && constants.iter().all(|word| is_constant(word));
    is_good.then(|| TestRow { arg: arg.to_string(), mask: mask.map(str::to_string), how, constants })
}

/// A number as rows write it, in decimal or behind `0x`.
pub fn number(word: &str) -> Option<u64> {
    word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

impl ConditionRow {
    /// The arguments that are tested.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        let any = if let ConditionRow::If { any, .. } = self { any.as_slice() } else { &[] };
        any.iter().map(|test| test.arg.as_str())
    }

    /// The condition with the values of its constants, among arguments (or a struct's fields) by name and kind; `None`
    /// if a table has faults of its own.
    pub fn resolve(&self, args: &[(&str, &Kind)], value: &Lookup) -> Result<Option<Condition>, String> {
        let ConditionRow::If { text, any } = self else { return Ok(Some(Condition::Never)) };
        let any: Option<Vec<Test>> = any.iter().map(|test| test.resolve(args, value)).collect::<Result<_, _>>()?;
        Ok(any.map(|any| Condition::If { text: text.clone(), any }))
    }
}

impl TestRow {
    fn resolve(&self, args: &[(&str, &Kind)], value: &Lookup) -> Result<Option<Test>, String> {
        let arg = args.iter().position(|(name, _)| *name == self.arg).ok_or_else(|| format!("{} is no argument", self.arg))?;
        let mut values = Vec::new();
        let mut mask = u64::from(u32::MAX);
        for word in &self.constants {
            let Some((number, bits)) = constant(word, args[arg], value)? else { return Ok(None) };
            mask = bits & u64::from(u32::MAX);
            values.push(number);
        }
        if let Some(word) = &self.mask {
            let Some((number, _)) = constant(word, args[arg], value)? else { return Ok(None) };
            mask = number;
        }
        let values: Option<Vec<u32>> = values.into_iter().map(|value| u32::try_from(value).ok()).collect();
        let (Some(values), Ok(mask)) = (values, u32::try_from(mask)) else {
            return Err(format!("a condition looks at 32 bits, and the constants of {} have more", self.arg));
        };
        let is_of_bits = matches!(self.how, How::SomeBit | How::NoBit);
        if let Some((word, _)) = self.constants.iter().zip(&values).find(|(_, value)| is_of_bits && **value == 0) {
            return Err(format!("{word} is 0, so no bit shows it: `{}==` and `{}!=` compare values", self.arg, self.arg));
        }
        if let Some((word, _)) = self.constants.iter().zip(&values).find(|(_, value)| !is_of_bits && **value & !mask != 0) {
            return Err(format!("{word} has bits beside the mask {mask:#x}, so that it is never equal"));
        }
        Ok(Some(match is_of_bits {
            true => Test { arg, mask: values.iter().fold(0, |all, value| all | value), how: self.how, values: Vec::new() },
            false => Test { arg, mask, how: self.how, values },
        }))
    }
}

/// The value of a constant that an argument is compared with, and the bits that are compared: a number, a constant of
/// the argument's table, or `table.CONSTANT`. `None` if the table has faults of its own.
pub fn constant(word: &str, of: (&str, &Kind), value: &Lookup) -> Result<Option<(u64, u64)>, String> {
    let found = found(word, of, value)?;
    found.map(|found| Ok((found.value?, found.mask))).transpose()
}

/// The same of a constant that chooses a variant, which behind `@any` may have other values in other ABIs: all of them.
pub fn constants(word: &str, of: (&str, &Kind), value: &Lookup) -> Result<Option<(Vec<u64>, u64)>, String> {
    let Some(of_any) = word.strip_suffix("@any") else {
        return Ok(constant(word, of, value)?.map(|(value, mask)| (vec![value], mask)));
    };
    Ok(found(of_any, of, value)?.map(|found| (found.of_any, found.mask)))
}

fn found(word: &str, (name, kind): (&str, &Kind), value: &Lookup) -> Result<Option<Found>, String> {
    match (kind, number(word)) {
        (_, Some(number)) => Ok(Some(Found { value: Ok(number), of_any: vec![number], mask: u32::MAX.into() })),
        // What a function names, and a number without a table, may have constants of any table.
        (_, None) if word.contains('.') => {
            let (table, word) = word.split_once('.').unwrap_or_default();
            value(table, word)?.map(Some).ok_or_else(|| format!("{table} is no table"))
        }
        (Kind::Table(table), None) => value(table, word),
        _ => Err(format!("{word} is no number, and {name} has no table")),
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
                any.into_iter().map(|test| (test.arg, test.mask, test.how, test.constants.join(" "))).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        let one =
            |arg: &str, mask: Option<&str>, how, constants: &str| (arg.to_string(), mask.map(str::to_string), how, constants.to_string());
        assert_eq!(tests("flags&A|B"), [one("flags", None, How::SomeBit, "A B")]);
        assert_eq!(tests("!flags&A"), [one("flags", None, How::NoBit, "A")]);
        assert_eq!(tests("op==A||op&0x20"), [one("op", None, How::OneOf, "A"), one("op", None, How::SomeBit, "0x20")]);
        assert_eq!(tests("mode&t.M!=t.A|7"), [one("mode", Some("t.M"), How::NoneOf, "t.A 7")]);
    }

    #[test]
    fn what_is_no_condition_is_named() {
        for text in ["", "creates", "flags&", "&A", "flags=A", "a==b c", "a==x.y.z", "flags&A||"] {
            let said = parse(text).expect_err(text);
            assert!(said.starts_with(&format!("`?{text}` is no condition: ")), "{said}");
        }
    }
}
