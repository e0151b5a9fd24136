//! Chooses the source for the names in a probe of the kernel: BTF, which most kernels have built in, for the arguments
//! of functions and tracepoints, and debug information for everything else.
//! arguments; its debug information for all else.

use super::signature::Signature;
use super::{place, signature};
use crate::kernel::btf::{Btf, LookupKind, Types};
use crate::kernel::machine;
use crate::probe::grammar::{Arg, Fetch, KernelPlace, Probe, ProbePoint};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use crate::probe::value::{self, TypeNeed};
use crate::text::near;
use anyhow::{Context, bail};

/// The function or tracepoint that a probe is on, as BTF describes it.
#[derive(Clone, Copy, Debug)]
enum Described<'p> {
    Function { name: &'p str, module: Option<&'p str> },
    Tracepoint { name: &'p str },
}

/// Resolves a probe with [`ProbePoint::Kernel`], [`ProbePoint::Function`] or [`ProbePoint::Tracepoint`].
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let has_names = probe.args.iter().any(|arg| value::name_in(&arg.value).is_some() || arg.value == Fetch::Arguments);
    let of_return = value::needs_return_type(&probe.args);
    let described = match &probe.place {
        ProbePoint::Kernel { at: at @ KernelPlace::Line(_), when } => return place::resolve(probe, at, *when, surroundings),
        _ if !has_names && of_return == TypeNeed::None => return Ok(Resolved::unchanged(probe)),
        ProbePoint::Kernel { at: KernelPlace::Symbol { module, symbol, offset: 0 }, .. } => {
            Described::Function { name: symbol, module: module.as_deref() }
        }
        ProbePoint::Kernel { at, when } if has_names => return place::resolve(probe, at, *when, surroundings),
        ProbePoint::Function { name, .. } if has_names && name.contains(['*', '?']) => {
            bail!("{} may match several functions with different arguments; fetch them by $arg1, $arg2", name.escape_debug())
        }
        ProbePoint::Function { name, .. } => Described::Function { name, module: None },
        ProbePoint::Tracepoint { name } => Described::Tracepoint { name },
        _ => return Ok(Resolved::unchanged(probe)),
    };
    if has_names && probe.place.is_return() {
        arguments_at_return(surroundings)?;
    }
    match by_types(probe, described, surroundings) {
        Ok(args) => Ok(Resolved { probes: vec![Probe { args, ..probe.clone() }], notes: Vec::new() }),
        // The type would only have selected how the returned value is shown.
        Err(_) if !has_names && of_return == TypeNeed::Useful => Ok(Resolved::unchanged(probe)),
        Err(error) => Err(error),
    }
}

/// Checks that the kernel keeps a function's arguments until it returns, as Linux does since 6.9.
fn arguments_at_return(surroundings: &mut dyn Surroundings) -> anyhow::Result<()> {
    let release = surroundings.release()?;
    match machine::version(&release) {
        Some(version) if version < (6, 9) => {
            bail!(
                "this kernel ({}, before 6.9) can fetch a function's arguments only at its entry, not at its return",
                release.escape_debug()
            )
        }
        _ => Ok(()),
    }
}

fn by_types(probe: &Probe, described: Described<'_>, surroundings: &mut dyn Surroundings) -> anyhow::Result<Vec<Arg>> {
    let what =
        "this kernel has no type information (CONFIG_DEBUG_INFO_BTF), so arguments cannot be fetched by name; fetch them by $arg1, $arg2";
    let kernel = surroundings.types(None).context(what)?;
    let own = Types::of_kernel(Btf::parse(&kernel)?);
    let module = match described {
        Described::Function { module, .. } => module,
        Described::Tracepoint { .. } => None,
    };
    if module.is_none()
        && let Some(signature) = described_by(described, &own)
    {
        return value::resolve_all(&probe.args, &signature);
    }
    let modules = module.map_or_else(|| surroundings.modules(), |module| vec![module.to_owned()]);
    for module in modules {
        let Ok(blob) = surroundings.types(Some(&module)) else { continue };
        let types = Types::of_module(Btf::parse(&kernel)?, Btf::parse(&blob)?);
        if let Some(signature) = described_by(described, &types) {
            return value::resolve_all(&probe.args, &signature);
        }
    }
    bail!("{}", unknown(described, &own))
}

fn described_by<'t, 'a>(described: Described<'_>, types: &'t Types<'a>) -> Option<Signature<'t, 'a>> {
    match described {
        Described::Function { name, .. } => Signature::of_function(name, types),
        Described::Tracepoint { name } => Signature::of_tracepoint(name, types),
    }
}

/// Explains that there is no such function or tracepoint, with similar names.
fn unknown(described: Described<'_>, types: &Types<'_>) -> String {
    let (wanted, prefix, what) = match described {
        Described::Function { name, .. } => (name, "", "function"),
        Described::Tracepoint { name } => (name, signature::TRACEPOINT, "tracepoint"),
    };
    let names = types.names(LookupKind::Function).filter_map(|name| str::from_utf8(name).ok()?.strip_prefix(prefix));
    let near = near::nearest(wanted, names, 5);
    let hint = if near.is_empty() { "; fetch its arguments by $arg1, $arg2".to_owned() } else { near::hint(&near) };
    format!("the kernel's type information has no {what} {}{hint}", wanted.escape_debug())
}

#[cfg(test)]
mod tests;
