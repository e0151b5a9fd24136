//! What the loader must know of the kernel's types: an excerpt of them, and identifiers.
//!
//! libbpf looks for each struct that the programs read among all types of the kernel, some hundred thousand: a millisecond a struct. An excerpt with those that are named in the
//! object takes one pass. The programs need identifiers of the kernel's own list besides, because the verifier knows no other.

use crate::kernel::btf::{self, Btf};
use anyhow::Context;
use libbpf_rs::btf as object_btf;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// The struct of the object whose members are named as the kernel's structs that `MEMBER` reads.
const IDENTIFIERS: &str = "kernel_types";

/// The kernel's types, as far as the programs name them.
#[derive(Debug)]
pub(super) struct Types {
    object: &'static [u8],
    /// A file without a name.
    excerpt: File,
    identifiers: Vec<u8>,
}

impl Types {
    /// Reads the running kernel's, for the object that `choose` takes by what functions the kernel has for programs.
    ///
    /// # Errors
    /// The kernel shows none (CONFIG_DEBUG_INFO_BTF), or not what is expected.
    pub fn of_the_kernel(choose: impl Fn(&dyn Fn(&str) -> bool) -> &'static [u8]) -> anyhow::Result<Types> {
        let kernel = btf::of_the_kernel().with_context(|| format!("this kernel does not show its types (BTF) at {}", btf::VMLINUX))?;
        let kernel = Btf::parse(&kernel).with_context(|| format!("cannot understand {}", btf::VMLINUX))?;
        let object = choose(&|name| kernel.has_function(name));
        let (names, identified) = names(object).context("the built-in BPF object has no type information")?;
        let found = kernel.structs(&names.iter().map(String::as_str).collect());
        let id = |name: &String| found.iter().find(|(of, _)| of == name).map_or(0, |(_, id)| *id);
        let identifiers = identified.iter().flat_map(|name| id(name).to_ne_bytes()).collect();
        let mut excerpt: File = rustix::fs::memfd_create("rtrace-types", rustix::fs::MemfdFlags::CLOEXEC)?.into();
        excerpt.write_all(&kernel.excerpt(found.iter().map(|(_, id)| *id)))?;
        Ok(Types { object, excerpt, identifiers })
    }

    /// The programs that this kernel takes.
    pub fn object(&self) -> &'static [u8] {
        self.object
    }

    /// Where this process finds the excerpt.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.excerpt.as_raw_fd()).into()
    }

    /// The bytes of `kernel_types`.
    pub fn identifiers(&self) -> &[u8] {
        &self.identifiers
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
