//! Finds the fields of the context of programs at an attach point.

use super::program_event::{Context, described};
use super::section::AttachPoint;
use crate::kernel::btf::function::Parameter;
use crate::kernel::btf::{self, Btf, LookupKind};
use crate::kernel::format::FormatField;
use crate::kernel::tracefs::Tracefs;
use anyhow::{Context as _, anyhow};
use rustc_hash::FxHashSet;

/// The offsets in `struct pt_regs` of a function's arguments and of its return value (arch/*/include/uapi/asm/ptrace.h,
/// and the calling conventions).
const ARGUMENTS: [u32; 6] = if cfg!(target_arch = "aarch64") { [0, 8, 16, 24, 32, 40] } else { [112, 104, 96, 88, 72, 64] };
const RETURNED: u32 = if cfg!(target_arch = "aarch64") { 0 } else { 80 };

/// An attach point's context and its type in the kernel's type information.
#[derive(Clone, Debug)]
pub struct AttachContext {
    /// The fields that the program's event can have; none for a raw tracepoint whose types are not known.
    pub context: Context,
    /// The id of the function's type or of the raw tracepoint's prototype; 0 for other attach points.
    pub id: u32,
}

/// Finds the context of an attach point.
///
/// # Errors
/// The kernel has no such event or function, or its type information is needed and missing.
pub fn of(place: &AttachPoint, tracefs: &Tracefs) -> anyhow::Result<AttachContext> {
    Ok(match place {
        AttachPoint::Tracepoint { subsystem, name } => {
            let format = tracefs.format(subsystem, name)?;
            let fields = format.own_fields().filter(|field| !field.is_internal()).cloned().collect();
            AttachContext { context: Context { fields, print: format.print, shows_all: true }, id: 0 }
        }
        AttachPoint::Raw { name, typed } => {
            // Programs are attached by the id of the typedef. The function that calls them has the names of the
            // arguments.
            let typedef = by_types(LookupKind::Typedef, &format!("btf_trace_{name}"), 1, false);
            match (typedef, by_types(LookupKind::Function, &format!("__traceiter_{name}"), 1, false)) {
                (Ok(typedef), Ok(iterator)) => AttachContext { id: typedef.id, ..iterator },
                (Ok(typedef), Err(_)) => typedef,
                // Without the kernel's type information the arguments have no names.
                (Err(_), _) if !typed => AttachContext { context: Context::default(), id: 0 },
                (Err(error), _) => return Err(error.context(format!("there is no raw tracepoint {name} to attach to"))),
            }
        }
        AttachPoint::Function { name, returns } => {
            by_types(LookupKind::Function, name, 0, *returns).with_context(|| format!("there is no function {name} to attach to"))?
        }
        AttachPoint::KernelProbe { returns, .. } | AttachPoint::ProgramProbe { returns, .. } => {
            let register = |name: String, offset| FormatField { offset, ..described(name, "u64", 8, false, None) };
            let fields = match returns {
                true => vec![register("ret".to_owned(), RETURNED)],
                false => ARGUMENTS.iter().zip(1..).map(|(&offset, number)| register(format!("arg{number}"), offset)).collect(),
            };
            AttachContext { context: Context { fields, print: String::new(), shows_all: false }, id: 0 }
        }
    })
}

/// Returns the context of a function by its type: one word for each argument, without the first `skipped` parameters,
/// and then the return value if `returns`.
fn by_types(kind: LookupKind, name: &str, skipped: usize, returns: bool) -> anyhow::Result<AttachContext> {
    let blob = btf::of_the_kernel().with_context(|| format!("this kernel has no type information (BTF) at {}", btf::VMLINUX))?;
    let types = Btf::parse(&blob).with_context(|| format!("cannot parse the type information in {}", btf::VMLINUX))?;
    let found = types.named(kind, &FxHashSet::from_iter([name]));
    let (id, (parameters, returned)) = found
        .iter()
        .find_map(|(_, id)| Some((*id, types.parameters(*id)?)))
        .ok_or_else(|| anyhow!("this kernel's types have no {name}"))?;
    let returned = returned.filter(|_| returns).map(|one| Parameter { name: "ret".to_owned(), ..one });
    let field = |(at, one): (usize, Parameter)| {
        let name = if one.name.is_empty() { format!("arg{}", at + 1) } else { one.name };
        let size = if matches!(one.bytes, 1 | 2 | 4 | 8) { u32::from(one.bytes) } else { 8 };
        FormatField { offset: at as u32 * 8, ..described(name, &one.type_name, size, one.signed, None) }
    };
    let fields = parameters.into_iter().skip(skipped).chain(returned).enumerate().map(field).collect();
    Ok(AttachContext { context: Context { fields, print: String::new(), shows_all: true }, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_names_of_the_kernel_s_types() {
        if btf::of_the_kernel().is_err() {
            eprintln!("SKIPPED: this kernel does not show its types; nothing was tested");
            return;
        }
        let names = |seen: &AttachContext| seen.context.fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        let Ok(tracefs) = Tracefs::find() else {
            eprintln!("SKIPPED: there is no tracefs; nothing was tested");
            return;
        };
        let raw = of(&AttachPoint::Raw { name: "sys_exit".to_owned(), typed: true }, &tracefs).unwrap();
        assert_eq!(names(&raw), ["regs", "ret"]);
        assert_eq!((raw.context.fields[1].offset, raw.context.fields[1].signed), (8, true));
        assert!(raw.id != 0);
        assert_eq!(names(&by_types(LookupKind::Function, "vfs_read", 0, true).unwrap()), ["file", "buf", "count", "pos", "ret"]);
        assert!(by_types(LookupKind::Function, "no_such_function", 0, true).unwrap_err().to_string().contains("have no no_such_function"));
    }
}
