//! What programs at a place see: the fields of their context.

use super::own::{Context, described};
use super::section::Place;
use crate::kernel::btf::function::Parameter;
use crate::kernel::btf::{self, Btf, Sort};
use crate::kernel::format::FormatField;
use crate::kernel::tracefs::Tracefs;
use anyhow::{Context as _, anyhow};
use rustc_hash::FxHashSet;

/// Where `struct pt_regs` has the arguments of a call, and what it returned (arch/*/include/uapi/asm/ptrace.h, and the calling conventions).
const ARGUMENTS: [u32; 6] = if cfg!(target_arch = "aarch64") { [0, 8, 16, 24, 32, 40] } else { [112, 104, 96, 88, 72, 64] };
const RETURNED: u32 = if cfg!(target_arch = "aarch64") { 0 } else { 80 };

/// A place among the kernel's types, and what is there.
#[derive(Clone, Debug)]
pub struct Seen {
    pub context: Context,
    /// The identifier of the function, or of the raw tracepoint's prototype; 0 where there is none.
    pub id: u32,
}

/// # Errors
/// The kernel has no such event or function, or its types are needed and not there.
pub fn of(place: &Place, tracefs: &Tracefs) -> anyhow::Result<Seen> {
    Ok(match place {
        Place::Tracepoint { subsystem, name } => {
            let format = tracefs.format(subsystem, name)?;
            let fields = format.own_fields().filter(|field| !field.is_internal()).cloned().collect();
            Seen { context: Context { fields, print: format.print, shows_all: true }, id: 0 }
        }
        Place::Raw { name, typed } => {
            // A typedef is what programs are attached by; the function that calls them has the names.
            let typedef = by_types(Sort::Typedef, &format!("btf_trace_{name}"), 1, false);
            match (typedef, by_types(Sort::Function, &format!("__traceiter_{name}"), 1, false)) {
                (Ok(typedef), Ok(iterator)) => Seen { id: typedef.id, ..iterator },
                (Ok(typedef), Err(_)) => typedef,
                // Without the kernel's types, its arguments have no names.
                (Err(_), _) if !typed => Seen { context: Context::default(), id: 0 },
                (Err(error), _) => return Err(error.context(format!("there is no raw tracepoint {name} to attach to"))),
            }
        }
        Place::Function { name, returns } => {
            by_types(Sort::Function, name, 0, *returns).with_context(|| format!("there is no function {name} to attach to"))?
        }
        Place::KernelProbe { returns, .. } | Place::ProgramProbe { returns, .. } => {
            let register = |name: String, offset| FormatField { offset, ..described(name, "u64", 8, false, None) };
            let fields = match returns {
                true => vec![register("ret".to_owned(), RETURNED)],
                false => ARGUMENTS.iter().zip(1..).map(|(&offset, number)| register(format!("arg{number}"), offset)).collect(),
            };
            Seen { context: Context { fields, print: String::new(), shows_all: false }, id: 0 }
        }
    })
}

/// Arguments are words, one behind the other; the first parameters may be none of them. What is returned stands behind.
fn by_types(sort: Sort, name: &str, skipped: usize, returns: bool) -> anyhow::Result<Seen> {
    let blob = btf::of_the_kernel().with_context(|| format!("this kernel does not show its types (BTF) at {}", btf::VMLINUX))?;
    let types = Btf::parse(&blob).with_context(|| format!("cannot understand {}", btf::VMLINUX))?;
    let found = types.named(sort, &FxHashSet::from_iter([name]));
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
    Ok(Seen { context: Context { fields, print: String::new(), shows_all: true }, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_tracepoints_and_functions_have_the_names_of_the_kernels_types() {
        if btf::of_the_kernel().is_err() {
            eprintln!("SKIPPED: this kernel does not show its types; nothing was tested");
            return;
        }
        let names = |seen: &Seen| seen.context.fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        let Ok(tracefs) = Tracefs::find() else {
            eprintln!("SKIPPED: there is no tracefs; nothing was tested");
            return;
        };
        let raw = of(&Place::Raw { name: "sys_exit".to_owned(), typed: true }, &tracefs).unwrap();
        assert_eq!(names(&raw), ["regs", "ret"]);
        assert_eq!((raw.context.fields[1].offset, raw.context.fields[1].signed), (8, true));
        assert!(raw.id != 0);
        assert_eq!(names(&by_types(Sort::Function, "vfs_read", 0, true).unwrap()), ["file", "buf", "count", "pos", "ret"]);
        assert!(by_types(Sort::Function, "no_such_function", 0, true).unwrap_err().to_string().contains("have no no_such_function"));
    }
}
