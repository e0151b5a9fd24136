//! Resolves the constants in conditions and variants to their values.

use super::condition::{Comparison, ConditionRow, TestRow, number};
use super::kind::ArgumentKind;

/// The values of a constant in the ABIs.
pub struct ConstantValue {
    /// The value that it has in all ABIs, or the error that its values differ.
    pub value: Result<u64, String>,
    /// Its values in all ABIs, without duplicates.
    pub in_any_abi: Vec<u64>,
    /// The bits of the argument that are compared with it.
    pub mask: u64,
}

/// Returns a constant by the name of its table and its own name, or `None` if the table could not be resolved.
pub type Lookup<'a> = dyn Fn(&str, &str) -> Result<Option<ConstantValue>, String> + 'a;

/// A condition with the values of its constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Never,
    If { text: String, any: Vec<BitTest> },
}

/// A test of the lower 32 bits of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitTest {
    pub arg: usize,
    pub mask: u32,
    pub comparison: Comparison,
    /// The values of `OneOf` and `NoneOf`; empty for the others.
    pub values: Vec<u32>,
}

impl ConditionRow {
    /// Resolves the names of arguments (or of a struct's fields) and of constants. `args` are the names and kinds of
    /// the arguments. Returns `None` if a table could not be resolved.
    pub fn resolve(&self, args: &[(&str, &ArgumentKind)], value: &Lookup) -> Result<Option<Condition>, String> {
        let ConditionRow::If { text, any } = self else { return Ok(Some(Condition::Never)) };
        let any: Option<Vec<BitTest>> = any.iter().map(|test| test.resolve(args, value)).collect::<Result<_, _>>()?;
        Ok(any.map(|any| Condition::If { text: text.clone(), any }))
    }
}

impl TestRow {
    fn resolve(&self, args: &[(&str, &ArgumentKind)], value: &Lookup) -> Result<Option<BitTest>, String> {
        let arg =
            args.iter().position(|(name, _)| *name == self.arg).ok_or_else(|| format!("there is no argument or field {}", self.arg))?;
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
            return Err(format!("a condition compares 32 bits, but a constant for {} has more", self.arg));
        };
        let is_of_bits = matches!(self.comparison, Comparison::SomeBit | Comparison::NoBit);
        if let Some((word, _)) = self.constants.iter().zip(&values).find(|(_, value)| is_of_bits && **value == 0) {
            return Err(format!("{word} is 0 and has no bit to test: compare the value, with `{}==` or `{}!=`", self.arg, self.arg));
        }
        if let Some((word, _)) = self.constants.iter().zip(&values).find(|(_, value)| !is_of_bits && **value & !mask != 0) {
            return Err(format!("{word} has bits outside the mask {mask:#x}, so that it is never equal"));
        }
        Ok(Some(match is_of_bits {
            true => BitTest { arg, mask: values.iter().fold(0, |all, value| all | value), comparison: self.comparison, values: Vec::new() },
            false => BitTest { arg, mask, comparison: self.comparison, values },
        }))
    }
}

/// Returns the value of a constant that an argument is compared with, and the bits that are compared. The word is a
/// number, a constant of the argument's table, or `table.CONSTANT`. `None` if the table could not be resolved.
pub fn constant(word: &str, of: (&str, &ArgumentKind), value: &Lookup) -> Result<Option<(u64, u64)>, String> {
    let constant = resolve(word, of, value)?;
    constant.map(|constant| Ok((constant.value?, constant.mask))).transpose()
}

/// Like `constant`, for a constant that selects a variant. With the suffix `@any`, it may have different values in
/// different ABIs, and all of them are returned.
pub fn constants(word: &str, of: (&str, &ArgumentKind), value: &Lookup) -> Result<Option<(Vec<u64>, u64)>, String> {
    let Some(in_any_abi) = word.strip_suffix("@any") else {
        return Ok(constant(word, of, value)?.map(|(value, mask)| (vec![value], mask)));
    };
    Ok(resolve(in_any_abi, of, value)?.map(|constant| (constant.in_any_abi, constant.mask)))
}

fn resolve(word: &str, (name, kind): (&str, &ArgumentKind), value: &Lookup) -> Result<Option<ConstantValue>, String> {
    match (kind, number(word)) {
        (_, Some(number)) => Ok(Some(ConstantValue { value: Ok(number), in_any_abi: vec![number], mask: u32::MAX.into() })),
        // An argument of a custom function, or a number without a table, may be compared with constants of any table.
        (_, None) if word.contains('.') => {
            let (table, word) = word.split_once('.').unwrap_or_default();
            value(table, word)?.map(Some).ok_or_else(|| format!("there is no table {table}"))
        }
        (ArgumentKind::Table(table), None) => value(table, word),
        _ => Err(format!("{word} is not a number, and {name} has no table: use `table.{word}`")),
    }
}
