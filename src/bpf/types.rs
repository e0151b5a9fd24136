//! What the loader must know of the kernel's types: an excerpt of them, and identifiers.
//!
//! libbpf looks for each struct that the programs read among all types of the kernel, some hundred thousand: a millisecond a struct, and six to read them at all. An excerpt with
//! those that are named in the object takes one pass. The kernel wants identifiers of its own list besides: of structs, tracepoints and functions.

use crate::kernel::btf::{Btf, Sort};
use crate::sys::bpf::Kind;
use anyhow::{Context, anyhow};
use libbpf_rs::btf as object_btf;
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The struct of the object whose members are named as the kernel's structs that `MEMBER` reads.
const IDENTIFIERS: &str = "kernel_types";

/// The kernel's function that takes an address for a struct: from 6.2 on.
pub(super) const CAST: &str = "bpf_rdonly_cast";
/// `enum kernel_function`: the kernel's functions that are called; and `KERNEL_FUNCTIONS`, the number of the helper that the first is called as.
const FUNCTIONS: [&str; 4] = [CAST, "bpf_task_from_pid", "bpf_task_from_vpid", "bpf_task_release"];
const CALLED_AS: i32 = 0x7fff_0000;

/// The kernel's types, as far as the programs name them.
#[derive(Debug)]
pub(super) struct Types {
    /// A file without a name; none where the limit for files (`ulimit -f`) is too small for it, which counts for files in memory, too.
    excerpt: Option<File>,
    identifiers: Vec<u8>,
    /// Of the kernel's functions that are called, and how they are called in the object.
    functions: Vec<(i32, u32)>,
}

impl Types {
    /// Those of the kernel that this object names.
    ///
    /// # Errors
    /// They are not what is expected.
    pub fn of(kernel: &Btf, object: &[u8]) -> anyhow::Result<Types> {
        let (names, identified) = names(object).context("the built-in BPF object has no type information")?;
        let found = kernel.named(Sort::Struct, &names.iter().map(String::as_str).collect());
        let functions = kernel.named(Sort::Function, &FUNCTIONS.into_iter().collect());
        let id = |name: &str| found.iter().chain(&functions).find(|(of, _)| *of == name).map_or(0, |(_, id)| *id);
        let identifiers = identified.iter().flat_map(|name| id(name).to_ne_bytes()).collect();
        let functions = (CALLED_AS..).zip(FUNCTIONS).map(|(helper, name)| (helper, id(name))).filter(|(_, id)| *id != 0).collect();
        let mut excerpt: File = rustix::fs::memfd_create("rtrace-types", rustix::fs::MemfdFlags::CLOEXEC)?.into();
        let excerpt = match excerpt.write_all(&kernel.excerpt(found.iter().map(|(_, id)| *id))) {
            Ok(()) => Some(excerpt),
            Err(error) if error.raw_os_error() == Some(libc::EFBIG) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Types { excerpt, identifiers, functions })
    }

    /// Where this process finds the excerpt, or all of the kernel's types, in which libbpf searches longer.
    pub fn path(&self) -> PathBuf {
        match &self.excerpt {
            Some(excerpt) => format!("/proc/self/fd/{}", excerpt.as_raw_fd()).into(),
            None => "/sys/kernel/btf/vmlinux".into(),
        }
    }

    /// The helpers that there are not, by number, and the identifiers of the functions that are to be called in their place.
    pub fn functions(&self) -> &[(i32, u32)] {
        &self.functions
    }

    /// The bytes of `kernel_types`.
    pub fn identifiers(&self) -> &[u8] {
        &self.identifiers
    }
}

/// What programs of these sections are attached to, in their order.
///
/// # Errors
/// The kernel has no such tracepoint or list.
pub(super) fn kinds(kernel: &Btf, sections: &[String]) -> anyhow::Result<Vec<Kind>> {
    let (mut typedefs, mut functions) = (FxHashSet::default(), FxHashSet::default());
    let named: Vec<Named> = sections.iter().map(|section| Named::of(section)).collect::<anyhow::Result<_>>()?;
    for one in &named {
        match one {
            Named::RawTracepoint(name) => _ = typedefs.insert(name.as_str()),
            Named::Iterator(name) => _ = functions.insert(name.as_str()),
            Named::Event => {}
        }
    }
    let typedefs = kernel.named(Sort::Typedef, &typedefs);
    let functions = kernel.named(Sort::Function, &functions);
    let id = |found: &[(&str, u32)], name: &str| {
        found.iter().find(|(of, _)| *of == name).map(|(_, id)| *id).with_context(|| format!("this kernel has no {name}"))
    };
    let kind = |one: &Named| match one {
        Named::RawTracepoint(name) => id(&typedefs, name).map(Kind::RawTracepoint),
        Named::Iterator(name) => id(&functions, name).map(Kind::Iterator),
        Named::Event => Ok(Kind::Event),
    };
    named.iter().map(kind).collect()
}

/// By what name the kernel's types have what a program is attached to.
enum Named {
    RawTracepoint(String),
    Iterator(String),
    /// By none.
    Event,
}

impl Named {
    fn of(section: &str) -> anyhow::Result<Named> {
        match section.split_once('/') {
            Some(("tp_btf", name)) => Ok(Named::RawTracepoint(format!("btf_trace_{name}"))),
            Some(("iter" | "iter.s", name)) => Ok(Named::Iterator(format!("bpf_iter_{name}"))),
            Some(("tp", _)) => Ok(Named::Event),
            _ => Err(anyhow!("the built-in BPF object has a program for something unknown, {section}")),
        }
    }
}

/// The names of all structs in the object, and those of the members of `kernel_types`.
fn names(object: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let btf = object_btf::Btf::from_raw("rtrace", object).ok()??;
    let structs = (1..btf.len() as u32).filter_map(|id| btf.type_by_id::<object_btf::types::Struct>(id.into()));
    let names = structs.filter_map(|one| Some(one.name()?.to_str()?.to_owned())).collect();
    let identified: object_btf::types::Struct = btf.type_by_name(IDENTIFIERS)?;
    Some((names, identified.iter().filter_map(|member| Some(member.name?.to_str()?.to_owned())).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::btf;

    #[test]
    fn what_programs_are_attached_to_is_found_by_their_sections() {
        let Ok(kernel) = btf::of_the_kernel() else {
            eprintln!("SKIPPED: this kernel has no type information at {}; nothing was tested", btf::VMLINUX);
            return;
        };
        let kernel = Btf::parse(&kernel).unwrap();
        let kinds = |sections: &[&str]| kinds(&kernel, &sections.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let found = kinds(&["tp/raw_syscalls/sys_enter", "iter/task", "tp_btf/sys_exit", "tp_btf/sys_enter"]).unwrap();
        let [Kind::Event, Kind::Iterator(list), Kind::RawTracepoint(exit), Kind::RawTracepoint(enter)] = found[..] else {
            panic!("{found:?}");
        };
        assert!(list != exit && exit != enter, "{found:?}");
        assert_eq!(kinds(&["tp_btf/no_such"]).unwrap_err().to_string(), "this kernel has no btf_trace_no_such");
        assert!(kinds(&["xdp"]).is_err());
    }
}
