//! Constants that rows compare arguments with, and the conditions that they make.

use super::condition::{ConditionRow, How, TestRow, number};
use super::kind::Kind;

/// A table's constant.
pub struct Found {
    /// What it is in all ABIs, or why it is not the same in all.
    pub value: Result<u64, String>,
    /// What it is in any ABI, each value once.
    pub of_any: Vec<u64>,
    /// The bits that the kernel looks at.
    pub mask: u64,
}

/// A constant by its table's name and its own; `None` if the table has faults of its own.
pub type Lookup<'a> = dyn Fn(&str, &str) -> Result<Option<Found>, String> + 'a;

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

impl ConditionRow {
    /// The condition with the values of its constants, among arguments (or a struct's fields) by name and kind; `None` if a
    /// table has faults of its own.
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

/// The value of a constant that an argument is compared with, and the bits that are compared: a number, a constant of the
/// argument's table, or `table.CONSTANT`. `None` if the table has faults of its own.
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
