//! Resolves `--inject` to numbers of syscalls.

use crate::beauty::lookup;
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::event::Abi;
use crate::inject::Rules;
use crate::kernel::machine::NATIVE_ABI;
use crate::request::Trace;
use crate::request::select::{self, Selection};
use anyhow::anyhow;
use std::collections::BTreeMap;

/// The number of syscall numbers in an ABI that are considered.
const NUMBERS: u32 = 1024;

/// The calls that are changed, and what the user should know about them.
#[derive(Debug, Default)]
pub struct Injections {
    /// What is changed.
    pub rules: Rules,
    /// Remarks on how the request was understood.
    pub remarks: Vec<String>,
}

/// Resolves the rules of a request. As in strace, only calls that are traced are changed.
///
/// # Errors
/// A name, pattern or group matches no syscall.
pub fn resolve(request: &Trace, traced: &Selection) -> anyhow::Result<Injections> {
    let mut injections = Injections::default();
    let mut calls = BTreeMap::new();
    for (index, injection) in (0u16..).zip(&request.what.injections) {
        let text = &injection.text;
        let of_set = select::resolve(&injection.items, None, SYSCALLS, OTHER_NAMES).map_err(|why| anyhow!("--inject {text}: {why}"))?;
        let of_rule: Vec<(Abi, u32)> = numbers().filter(|call| is_selected(&of_set, *call)).collect();
        let of_rule: Vec<(Abi, u32)> = of_rule.into_iter().filter(|call| is_selected(traced, *call)).collect();
        if of_rule.is_empty() {
            injections
                .remarks
                .push(format!("--inject {text} changes nothing: none of these calls is traced (only traced calls are changed)"));
        }
        calls.extend(of_rule.into_iter().map(|call| (call, index)));
        injections.rules.effects.push(injection.effect);
    }
    injections.rules.calls = calls.into_iter().map(|((abi, nr), index)| (abi, nr, index)).collect();
    Ok(injections)
}

/// Returns all numbers in the ABIs of this machine.
fn numbers() -> impl Iterator<Item = (Abi, u32)> {
    let abis: &[Abi] = if NATIVE_ABI == Abi::X86_64 { &[Abi::X86_64, Abi::I386, Abi::X32] } else { &[NATIVE_ABI] };
    abis.iter().flat_map(|abi| (0..NUMBERS).map(|nr| (*abi, nr)))
}

fn is_selected(selection: &Selection, (abi, nr): (Abi, u32)) -> bool {
    match lookup::index(abi, nr.into()) {
        Some(row) => selection.rows.get(usize::from(row)).copied().unwrap_or_default(),
        None => selection.others.contains(&(abi, nr)),
    }
}
