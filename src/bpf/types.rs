//! The part of the kernel's type information (BTF) that the loader needs: an excerpt of the types, and type ids.
//!
//! libbpf searches all types of the kernel, some hundred thousand, for each struct that the programs read; that takes a
//! millisecond for each struct, after six milliseconds for reading the types. An excerpt with the types that the object
//! names is made in a single pass. The kernel also needs ids from its own list: of structs, tracepoints and functions.

use crate::kernel::btf::{Btf, LookupKind};
use crate::sys::bpf::ProgramType;
use anyhow::{Context, anyhow};
use libbpf_rs::btf as object_btf;
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The struct of the object whose members have the names of the kernel's structs that `MEMBER` reads.
const IDENTIFIERS: &str = "kernel_types";

/// The kernel's function that casts an address to a struct, available from 6.2 on.
pub(super) const CAST: &str = "bpf_rdonly_cast";
/// `enum kernel_function`: the kernel's functions that the programs call. `KERNEL_FUNCTIONS`: the number of the helper
/// as which the first of them is called in the object.
const FUNCTIONS: [&str; 4] = [CAST, "bpf_task_from_pid", "bpf_task_from_vpid", "bpf_task_release"];
const CALLED_AS: i32 = 0x7fff_0000;

/// The kernel's types that the programs name.
#[derive(Debug)]
pub(super) struct Types {
    /// An anonymous file (memfd); `None` where the file size limit (`ulimit -f`), which applies to such files too, is
    /// too small for it.
    excerpt: Option<File>,
    identifiers: Vec<u8>,
    /// The helper numbers in the object, and the ids of the kernel's functions that are called in their place.
    functions: Vec<(i32, u32)>,
}

impl Types {
    /// Finds the kernel's types that this object names.
    ///
    /// # Errors
    /// The types are not as expected.
    pub fn of(kernel: &Btf, object: &[u8]) -> anyhow::Result<Types> {
        let (names, identified) = names(object).context("the built-in BPF object has no type information")?;
        let found = kernel.named(LookupKind::Struct, &names.iter().map(String::as_str).collect());
        let functions = kernel.named(LookupKind::Function, &FUNCTIONS.into_iter().collect());
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

    /// Returns the path of the excerpt, or of all types of the kernel, in which libbpf searches longer.
    pub fn path(&self) -> PathBuf {
        match &self.excerpt {
            Some(excerpt) => format!("/proc/self/fd/{}", excerpt.as_raw_fd()).into(),
            None => "/sys/kernel/btf/vmlinux".into(),
        }
    }

    /// Returns the numbers of the placeholder helpers, and the ids of the kernel's functions that are called in their
    /// place.
    pub fn functions(&self) -> &[(i32, u32)] {
        &self.functions
    }

    /// Returns the bytes of `kernel_types`.
    pub fn identifiers(&self) -> &[u8] {
        &self.identifiers
    }
}

/// Returns the types of the programs in these sections, in their order.
///
/// # Errors
/// The kernel has no such tracepoint or iterator.
pub(super) fn kinds(kernel: &Btf, sections: &[String]) -> anyhow::Result<Vec<ProgramType>> {
    let (mut typedefs, mut functions) = (FxHashSet::default(), FxHashSet::default());
    let named: Vec<AttachTarget> = sections.iter().map(|section| AttachTarget::of(section)).collect::<anyhow::Result<_>>()?;
    for one in &named {
        match one {
            AttachTarget::RawTracepoint(name) => _ = typedefs.insert(name.as_str()),
            AttachTarget::Iterator(name) => _ = functions.insert(name.as_str()),
            AttachTarget::Event | AttachTarget::Functions => {}
        }
    }
    let typedefs = kernel.named(LookupKind::Typedef, &typedefs);
    let functions = kernel.named(LookupKind::Function, &functions);
    let id = |found: &[(&str, u32)], name: &str| {
        found.iter().find(|(of, _)| *of == name).map(|(_, id)| *id).with_context(|| format!("this kernel has no {name}"))
    };
    let kind = |one: &AttachTarget| match one {
        AttachTarget::RawTracepoint(name) => id(&typedefs, name).map(ProgramType::RawTracepoint),
        AttachTarget::Iterator(name) => id(&functions, name).map(ProgramType::Iterator),
        AttachTarget::Event => Ok(ProgramType::Event),
        AttachTarget::Functions => Ok(ProgramType::Functions),
    };
    named.iter().map(kind).collect()
}

/// The name of an attach point in the kernel's types.
enum AttachTarget {
    RawTracepoint(String),
    Iterator(String),
    /// A tracepoint's perf event, which is not found by a type.
    Event,
    /// Functions of the kernel, which are found by their addresses.
    Functions,
}

impl AttachTarget {
    fn of(section: &str) -> anyhow::Result<AttachTarget> {
        match section.split_once('/') {
            Some(("tp_btf", name)) => Ok(AttachTarget::RawTracepoint(format!("btf_trace_{name}"))),
            Some(("iter" | "iter.s", name)) => Ok(AttachTarget::Iterator(format!("bpf_iter_{name}"))),
            Some(("tp", _)) => Ok(AttachTarget::Event),
            None if section == "kprobe.multi" => Ok(AttachTarget::Functions),
            _ => Err(anyhow!("the built-in BPF object has a program with the unknown section {section}")),
        }
    }
}

/// Returns the names of all structs in the object, and of the members of `kernel_types`.
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
    fn attach_points_are_found_by_section_names() {
        let Ok(kernel) = btf::of_the_kernel() else {
            eprintln!("SKIPPED: this kernel has no type information at {}; nothing was tested", btf::VMLINUX);
            return;
        };
        let kernel = Btf::parse(&kernel).unwrap();
        let kinds = |sections: &[&str]| kinds(&kernel, &sections.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let found = kinds(&["tp/raw_syscalls/sys_enter", "iter/task", "tp_btf/sys_exit", "tp_btf/sys_enter"]).unwrap();
        let [ProgramType::Event, ProgramType::Iterator(list), ProgramType::RawTracepoint(exit), ProgramType::RawTracepoint(enter)] =
            found[..]
        else {
            panic!("{found:?}");
        };
        assert!(list != exit && exit != enter, "{found:?}");
        assert_eq!(kinds(&["tp_btf/no_such"]).unwrap_err().to_string(), "this kernel has no btf_trace_no_such");
        assert!(kinds(&["xdp"]).is_err());
    }
}
