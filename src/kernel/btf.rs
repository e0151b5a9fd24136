//! The kernel's type information (BTF): where its structs have their members.
//!
//! Only what it takes to find structs by name and to excerpt them is read; the format is that of Documentation/bpf/btf.rst and include/uapi/linux/btf.h, in the machine's own byte
//! order. Whatever the bytes are, reading them gives types or an error.

pub mod function;
pub mod shape;
mod types;

pub use types::{Made, Member, Parameter, Types};

use crate::sys::mapped::Mapped;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// Where the running kernel shows its own.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// `struct btf_type`
const TYPE_BYTES: usize = 12;
/// `struct btf_member`
const MEMBER_BYTES: usize = 12;
/// `struct btf_param`
const PARAMETER_BYTES: usize = 8;
/// `BTF_INT_SIGNED`
const INT_SIGNED: u32 = 1;
/// Types in types in types: no kernel's struct is as deep.
const DEPTH_MAX: u32 = 32;

/// BTF that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the type information is damaged: {0}")]
pub struct Damaged(&'static str);

/// `BTF_KIND_*`
mod kind {
    pub const INT: u8 = 1;
    pub const PTR: u8 = 2;
    pub const ARRAY: u8 = 3;
    pub const STRUCT: u8 = 4;
    pub const UNION: u8 = 5;
    pub const ENUM: u8 = 6;
    pub const FWD: u8 = 7;
    pub const TYPEDEF: u8 = 8;
    pub const VOLATILE: u8 = 9;
    pub const CONST: u8 = 10;
    pub const RESTRICT: u8 = 11;
    pub const FUNC: u8 = 12;
    pub const FUNC_PROTO: u8 = 13;
    pub const VAR: u8 = 14;
    pub const DATASEC: u8 = 15;
    pub const FLOAT: u8 = 16;
    pub const DECL_TAG: u8 = 17;
    pub const TYPE_TAG: u8 = 18;
    pub const ENUM64: u8 = 19;
}

/// What can be looked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sort {
    Struct = kind::STRUCT,
    Typedef = kind::TYPEDEF,
    Function = kind::FUNC,
}

const SORTS: [Sort; 3] = [Sort::Struct, Sort::Typedef, Sort::Function];

/// All types of a BTF blob.
#[derive(Debug)]
pub struct Btf<'a> {
    strings: &'a [u8],
    types: &'a [u8],
    /// Where each type begins, by its identifier; the first (0) is void.
    starts: Vec<u32>,
    /// The identifiers of the types of each [`Sort`].
    sorted: [Vec<u32>; SORTS.len()],
}

/// A type.
#[derive(Clone, Copy, Debug)]
struct Type<'a> {
    name: u32,
    info: u32,
    /// `size` or `type`, as the kind has it.
    word: u32,
    /// What stands behind.
    rest: &'a [u8],
}

impl<'a> Type<'a> {
    fn kind(&self) -> u8 {
        kind_of(self.info)
    }

    /// Of a number or an enum.
    fn is_signed(&self) -> bool {
        match self.kind() {
            kind::INT => word(self.rest, 0) >> 24 & INT_SIGNED != 0,
            _ => self.info >> 31 == 1,
        }
    }

    /// Of a struct or union; of others none.
    fn members(&self) -> impl Iterator<Item = RawMember> + use<'a> {
        let is_one = matches!(self.kind(), kind::STRUCT | kind::UNION);
        let has_bit_fields = self.info >> 31 == 1;
        let rest = if is_one { self.rest } else { &[] };
        rest.chunks_exact(MEMBER_BYTES).map(move |member| {
            let place = word(member, 8);
            // With bit fields among them, the upper byte is their width.
            let (offset, width) = if has_bit_fields { (place & 0x00ff_ffff, (place >> 24) as u8) } else { (place, 0) };
            RawMember { name: word(member, 0), of: word(member, 4), offset, width: (width > 0).then_some(width) }
        })
    }

    /// Of a function's prototype, each by where its name is and its type; of others none.
    fn parameters(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let rest = if self.kind() == kind::FUNC_PROTO { self.rest } else { &[] };
        rest.chunks_exact(PARAMETER_BYTES).map(|parameter| (word(parameter, 0), word(parameter, 4)))
    }
}

/// A member of a struct.
#[derive(Clone, Copy, Debug)]
struct RawMember {
    /// Where its name is.
    name: u32,
    of: u32,
    /// In bits from the beginning.
    offset: u32,
    /// Of a bit field.
    width: Option<u8>,
}

fn kind_of(info: u32) -> u8 {
    (info >> 24 & 0x1f) as u8
}

/// How many bytes stand behind a `struct btf_type`.
fn rest_bytes(info: u32) -> Option<usize> {
    let count = (info & 0xffff) as usize;
    Some(match kind_of(info) {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
        kind::ENUM | kind::FUNC_PROTO => 8 * count,
        // PTR, FWD, TYPEDEF and other names of types, FUNC, FLOAT, TYPE_TAG
        2 | kind::FWD..=kind::FUNC | kind::FLOAT | kind::TYPE_TAG => 0,
        _ => return None,
    })
}

impl<'a> Btf<'a> {
    /// # Errors
    /// It is no BTF of this byte order, or it is cut.
    pub fn parse(bytes: &'a [u8]) -> Result<Btf<'a>, Damaged> {
        if bytes.len() < HEADER_BYTES || u16::from_ne_bytes([bytes[0], bytes[1]]) != MAGIC {
            return Err(Damaged("it does not begin as BTF does"));
        }
        let body = bytes.get(word(bytes, 4) as usize..).ok_or(Damaged("its header is longer than all of it"))?;
        let section = |at: usize| {
            let (start, len) = (word(bytes, at) as usize, word(bytes, at + 4) as usize);
            body.get(start..start.checked_add(len)?)
        };
        let (types, strings) = section(8).zip(section(16)).ok_or(Damaged("a section lies outside"))?;
        let (mut starts, mut sorted) = (vec![0], [const { Vec::new() }; SORTS.len()]);
        let mut at = 0;
        while at < types.len() {
            let head = types.get(at..at + TYPE_BYTES).ok_or(Damaged("the last type is cut"))?;
            let info = word(head, 4);
            if let Some(of_sort) = SORTS.iter().position(|sort| *sort as u8 == kind_of(info)) {
                sorted[of_sort].push(starts.len() as u32);
            }
            starts.push(at as u32);
            at += TYPE_BYTES + rest_bytes(info).ok_or(Damaged("it has types of an unknown kind"))?;
        }
        if at > types.len() {
            return Err(Damaged("the last type is cut"));
        }
        Ok(Btf { strings, types, starts, sorted })
    }

    fn get(&self, id: u32) -> Option<Type<'a>> {
        let start = *self.starts.get(id as usize).filter(|_| id != 0)? as usize;
        let head = self.types.get(start..start + TYPE_BYTES)?;
        let info = word(head, 4);
        let rest = self.types.get(start + TYPE_BYTES..)?.get(..rest_bytes(info)?)?;
        Some(Type { name: word(head, 0), info, word: word(head, 8), rest })
    }

    fn string(&self, at: u32) -> &'a [u8] {
        let behind = self.strings.get(at as usize..).unwrap_or_default();
        &behind[..memchr::memchr(0, behind).unwrap_or(behind.len())]
    }

    /// The identifiers of all that is of this sort, in the order in which they are numbered.
    fn ids(&self, sort: Sort) -> impl Iterator<Item = u32> {
        SORTS.iter().zip(&self.sorted).filter(move |(of, _)| **of == sort).flat_map(|(_, ids)| ids).copied()
    }

    /// The identifiers of what is of this sort and has one of these names.
    pub fn named<'n>(&self, sort: Sort, names: &FxHashSet<&'n str>) -> Vec<(&'n str, u32)> {
        // Most names are told apart by how they begin, and need not be looked at any further.
        let beginnings: FxHashSet<[u8; 4]> = names.iter().map(|name| beginning(name.as_bytes())).collect();
        let of_sort = self.ids(sort).map(|id| (word(self.types, self.starts[id as usize] as usize), id));
        let behind = |at: u32| self.strings.get(at as usize..).unwrap_or_default();
        let candidates = of_sort.filter(|(name, _)| beginnings.contains(&beginning(behind(*name))));
        candidates.filter_map(|(name, id)| Some((*names.get(str::from_utf8(self.string(name)).ok()?)?, id))).collect()
    }

    /// A blob with these structs alone, and the types that their members are made of; pointers in it point to nothing that is known.
    pub fn excerpt(&self, ids: impl Iterator<Item = u32>) -> Vec<u8> {
        let mut excerpt = Excerpt::new(self);
        for id in ids {
            excerpt.copy(id, 0);
        }
        excerpt.finish()
    }
}

/// Types that were copied, under new identifiers.
struct Excerpt<'b, 'a> {
    from: &'b Btf<'a>,
    types: Vec<u8>,
    strings: Vec<u8>,
    /// New identifiers by old ones.
    ids: FxHashMap<u32, u32>,
    next: u32,
}

impl<'b, 'a> Excerpt<'b, 'a> {
    fn new(from: &'b Btf<'a>) -> Excerpt<'b, 'a> {
        let mut new = Excerpt { from, types: Vec::new(), strings: vec![0], ids: FxHashMap::default(), next: 1 };
        // The one pointer that all others become: to void.
        new.add(b"", u32::from(kind::PTR) << 24, 0, &[]);
        new
    }

    fn add(&mut self, name: &[u8], info: u32, word: u32, rest: &[u8]) -> u32 {
        let name = self.add_string(name);
        [name, info, word].iter().for_each(|word| self.types.extend(word.to_ne_bytes()));
        self.types.extend(rest);
        self.next += 1;
        self.next - 1
    }

    fn add_string(&mut self, text: &[u8]) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(text);
        self.strings.push(0);
        at
    }

    /// The new identifier of a type; 0, void, for what is no data.
    fn copy(&mut self, id: u32, depth: u32) -> u32 {
        if let Some(known) = self.ids.get(&id) {
            return *known;
        }
        let Some(old) = self.from.get(id).filter(|_| depth < DEPTH_MAX) else { return 0 };
        let name = self.from.string(old.name);
        let new = match old.kind() {
            kind::PTR => 1,
            kind::INT | kind::FLOAT => self.add(name, old.info, old.word, old.rest),
            // Their constants are of no use here.
            kind::ENUM | kind::ENUM64 => self.add(name, old.info & !0xffff, old.word, &[]),
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => self.copy(old.word, depth + 1),
            kind::ARRAY => {
                let [element, index] = [0, 4].map(|at| self.copy(word(old.rest, at), depth + 1));
                let rest: Vec<u8> = [element, index, word(old.rest, 8)].iter().flat_map(|word| word.to_ne_bytes()).collect();
                self.add(name, old.info, old.word, &rest)
            }
            kind::STRUCT | kind::UNION => {
                let mut members = Vec::with_capacity(old.rest.len());
                for member in old.rest.chunks_exact(MEMBER_BYTES) {
                    let (name, of) = (self.from.string(word(member, 0)), self.copy(word(member, 4), depth + 1));
                    let words = [self.add_string(name), of, word(member, 8)];
                    members.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
                }
                self.add(name, old.info, old.word, &members)
            }
            _ => 0,
        };
        self.ids.insert(id, new);
        new
    }

    fn finish(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.types.len() + self.strings.len());
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend([1, 0]);
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        [HEADER_BYTES as u32, 0, types, types, strings].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(self.types);
        bytes.extend(self.strings);
        bytes
    }
}

/// A name's first bytes, up to a NUL.
fn beginning(name: &[u8]) -> [u8; 4] {
    let first = name.first_chunk().copied().unwrap_or_else(|| {
        let mut short = [0; 4];
        short[..name.len()].copy_from_slice(name);
        short
    });
    match first {
        [0, ..] => [0; 4],
        [a, 0, ..] => [a, 0, 0, 0],
        [a, b, 0, _] => [a, b, 0, 0],
        whole => whole,
    }
}

/// The word at a place that is there, or 0.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u32::from_ne_bytes)
}

/// The running kernel's. Newer ones (from 6.16) let it be mapped, which saves copying its megabytes.
///
/// # Errors
/// The kernel was built without it (CONFIG_DEBUG_INFO_BTF), or it cannot be read.
pub fn of_the_kernel() -> std::io::Result<Blob> {
    let file = File::open(VMLINUX)?;
    match Mapped::whole(&file) {
        Ok(mapped) => Ok(Blob::Mapped(mapped)),
        Err(_) => Ok(Blob::Read(std::fs::read(VMLINUX)?)),
    }
}

const DIRECTORY: &str = "/sys/kernel/btf";

/// A loaded module's: its types are numbered on from the kernel's, and so are its strings.
///
/// # Errors
/// There is no such module, or it was built without (CONFIG_DEBUG_INFO_BTF_MODULES).
pub fn of_a_module(module: &str) -> std::io::Result<Blob> {
    std::fs::read(Path::new(DIRECTORY).join(module)).map(Blob::Read)
}

/// Loaded modules that have type information, by name.
pub fn modules() -> Vec<String> {
    let entries = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name != "vmlinux");
    names.sort_unstable();
    names
}

/// The bytes of a kernel's type information.
#[derive(Debug)]
pub enum Blob {
    Mapped(Mapped),
    Read(Vec<u8>),
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Blob::Mapped(mapped) => mapped,
            Blob::Read(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shape::{Shape, Shaped};
    use super::*;
    use proptest::prelude::*;

    impl<'a> Btf<'a> {
        /// The members of a struct: their names, and where they are in bits.
        fn members(&self, id: u32) -> Vec<(&'a [u8], u32)> {
            self.get(id).into_iter().flat_map(|of| of.members()).map(|member| (self.string(member.name), member.offset)).collect()
        }
    }

    /// Types of all kinds that an excerpt meets, numbered from 1.
    fn sample() -> Vec<u8> {
        let mut strings = b"\0".to_vec();
        let mut types = Vec::new();
        let mut add = |name: &str, info: u32, word: u32, rest: &[u32]| {
            let at = if name.is_empty() { 0 } else { strings.len() };
            strings.extend(name.as_bytes());
            strings.push(0);
            [&[at as u32, info, word], rest].concat().iter().for_each(|word| types.extend(word.to_ne_bytes()));
            at as u32
        };
        let int = 1 << 24;
        add("int", int, 4, &[32]);
        add("", 2 << 24, 6, &[]);
        add("", 3 << 24, 0, &[1, 1, 3]);
        let names: Vec<u32> = ["first", "second", "third"].map(|name| add(name, 7 << 24, 0, &[])).to_vec();
        // 7: an unnamed union of an int and an array; 8: a typedef of it; 9: the struct; 10: one that nobody asks for.
        add("", 5 << 24 | 2, 12, &[names[0], 1, 0, names[1], 3, 0]);
        add("both_t", 8 << 24, 7, &[]);
        add("wanted", 4 << 24 | 3, 24, &[0, 8, 0, names[2], 2, 128, names[0], 11, 96]);
        add("other", 4 << 24 | 1, 8, &[names[0], 9, 0]);
        add("choice", 6 << 24 | 1, 4, &[names[0], 5]);
        let mut bytes = [&MAGIC.to_ne_bytes()[..], &[1, 0]].concat();
        let words = [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32];
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        [bytes, types, strings].concat()
    }

    fn named(bytes: &[u8], name: &str) -> Vec<u32> {
        Btf::parse(bytes).unwrap().named(Sort::Struct, &FxHashSet::from_iter([name])).into_iter().map(|(_, id)| id).collect()
    }

    #[test]
    fn an_excerpt_has_what_was_asked_for_and_what_it_is_made_of() {
        let all = sample();
        assert_eq!(named(&all, "wanted"), [9]);
        let excerpt = Btf::parse(&all).unwrap().excerpt([9].into_iter());
        let (id, btf) = (named(&excerpt, "wanted")[0], Btf::parse(&excerpt).unwrap());
        assert_eq!(btf.members(id), [(&b""[..], 0), (b"third", 128), (b"first", 96)]);
        assert!(named(&excerpt, "other").is_empty());
        let kinds: Vec<u8> = (1..btf.starts.len() as u32).map(|id| btf.get(id).unwrap().kind()).collect();
        assert_eq!(kinds, [kind::PTR, kind::INT, kind::ARRAY, kind::UNION, kind::ENUM, kind::STRUCT], "each once, no typedef, one pointer");
    }

    #[test]
    fn types_have_shapes() {
        let all = sample();
        let btf = Btf::parse(&all).unwrap();
        let number = Shape::Number { name: "int".to_owned(), bytes: 4, signed: false };
        assert_eq!(btf.shape(1), Shaped { alias: None, shape: number });
        assert_eq!(btf.shape(2).shape, Shape::Pointer(6));
        assert_eq!((btf.shape(3).shape, btf.size(3)), (Shape::Array { element: 1, count: 3 }, Some(12)));
        assert_eq!(btf.shape(8), Shaped { alias: Some("both_t".to_owned()), shape: Shape::Union { bytes: 12 } });
        let Shape::Struct { bytes: 24, members } = btf.shape(9).shape else { panic!("{:?}", btf.shape(9)) };
        let names: Vec<(&str, u32, Option<u32>)> = members.iter().map(|one| (one.name.as_str(), one.of, one.offset)).collect();
        assert_eq!(names, [("", 8, Some(0)), ("third", 2, Some(16)), ("first", 11, Some(12))]);
        let Shape::Enum { values, .. } = btf.shape(11).shape else { panic!("{:?}", btf.shape(11)) };
        assert_eq!(values, [(5, "first".to_owned())]);
        assert_eq!((btf.shape(99).shape, btf.size(6), btf.variable("wanted")), (Shape::Other, None, None));
    }

    #[test]
    fn names_begin_alike_however_short_they_are() {
        assert_eq!(beginning(b"task_struct"), beginning(b"task\0"));
        assert_eq!(beginning(b"pid"), beginning(b"pid\0file\0"));
        assert_eq!(beginning(b"p"), beginning(b"p\0q\0"));
        assert_eq!(beginning(b""), beginning(b"\0pid\0"));
        assert_ne!(beginning(b"pid"), beginning(b"pids\0"));
    }

    #[test]
    fn the_kernels_own_is_read() {
        let Ok(all) = of_the_kernel() else {
            eprintln!("SKIPPED: this kernel has no type information at {VMLINUX}; nothing was tested");
            return;
        };
        let id = named(&all, "task_struct")[0];
        let excerpt = Btf::parse(&all).unwrap().excerpt([id].into_iter());
        let members = |bytes: &[u8], id| -> Vec<(String, u32)> {
            let list = Btf::parse(bytes).unwrap().members(id);
            list.into_iter().map(|(name, at)| (String::from_utf8(name.to_vec()).unwrap(), at)).collect()
        };
        let before = members(&all, id);
        assert!(before.iter().any(|(name, _)| name == "comm"));
        assert_eq!(members(&excerpt, named(&excerpt, "task_struct")[0]), before);
        let btf = Btf::parse(&all).unwrap();
        let is_there = |sort, name| !btf.named(sort, &FxHashSet::from_iter([name])).is_empty();
        let functions = ["vfs_read", "vfs_rea", "task_struct"].map(|name| is_there(Sort::Function, name));
        assert_eq!(functions, [true, false, false]);
        assert!(is_there(Sort::Typedef, "btf_trace_sys_enter"));
        assert!(excerpt.len() * 20 < all.len(), "{} of {} bytes", excerpt.len(), all.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(at in 0usize..400, with in any::<u8>(), cut in 0usize..400) {
            let mut bytes = sample();
            let len = bytes.len();
            bytes[at % len] = with;
            bytes.truncate(len - cut % len);
            if let Ok(btf) = Btf::parse(&bytes) {
                let ids = 0..btf.starts.len() as u32 + 1;
                for id in ids.clone() {
                    let _ = (btf.shape(id), btf.size(id), btf.parameters(id));
                }
                let _ = btf.variable("wanted");
                let excerpt = btf.excerpt(ids);
                prop_assert!(Btf::parse(&excerpt).is_ok());
            }
        }
    }
}
