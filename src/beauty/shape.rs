//! The shape of structs in the generated tables: what `beauty/structs/*.tbl` says, as build.rs emits it.
//!
//! Places and types stand here, by ABI; how bytes become values is `structure`'s and `pointed`'s.

use super::row::{Condition, Flow, Kind, Length};
use crate::event::Abi;

/// A struct of the kernel's ABI: a row of `beauty/structs/*.tbl`.
#[derive(Debug)]
pub struct Struct {
    pub name: &'static str,
    /// Its size in bytes in each ABI, by `Abi as usize`. Of those whose length the call says, what is fixed of it, or at most.
    pub sizes: [u32; 4],
    /// What a length that belongs to it counts.
    pub counted: Counted,
    pub copied: Copied,
    /// Its first member, of 32 bits, says how long it is where the call does not.
    pub has_length: bool,
    /// How many bytes the kernel reads of it when it reads and writes it; 0 for all.
    pub asked: u32,
    /// Where C finds it: a header, and its name there after a colon if that differs, with `+` if it is longer there; empty where no header has it.
    pub source: &'static str,
    pub layout: Layout,
}

/// What the length of a struct is the number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Its bytes.
    Bytes,
    /// Bits, in whole words as the kernel has them (`long`).
    Bits,
    /// One more than bits, in whole words.
    Nodes,
    /// Bytes of memory; the struct has one byte for each page.
    Pages,
    /// The bytes behind what is fixed of it.
    Tail,
    /// The bytes of as many of it as there is room for, each with what follows what is fixed.
    Entries,
}

/// How a struct is copied where its layout alone does not say it: the BPF programs know these by themselves
/// (`bpf/nested.h`, `bpf/elsewhere.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// As its layout says.
    Plain,
    /// An array of buffers, of which the return says how much is used.
    Iovec,
    /// A message: an address, an array of buffers, control data.
    Msghdr,
    /// Messages, each with its length.
    Mmsghdr,
    /// Each names a descriptor.
    Pollfd,
    /// An ioctl's command says direction and size.
    Command,
}

impl Struct {
    /// How many bytes a length of `count` names.
    pub fn bytes(&self, count: u64, abi: Abi) -> u64 {
        const PAGE_BYTES: u64 = 4096;
        let word_bits = if abi == Abi::I386 { 32 } else { 64 };
        match self.counted {
            Counted::Bytes | Counted::Entries => count,
            Counted::Bits => count.div_ceil(word_bits).saturating_mul(word_bits / 8),
            Counted::Nodes => count.saturating_sub(1).div_ceil(word_bits).saturating_mul(word_bits / 8),
            Counted::Pages => count.div_ceil(PAGE_BYTES),
            Counted::Tail => count.saturating_add(u64::from(self.sizes[abi as usize])),
        }
    }
}

/// What a struct is made of.
#[derive(Debug)]
pub enum Layout {
    /// Nobody has said it yet.
    Opaque,
    /// By `Abi as usize`, in ascending order of offset; reserved ones are left out.
    Members([&'static [Member]; 4]),
    /// It is one number, by `Abi as usize`.
    Number([Form; 4]),
    /// A function of `crate::beauty::decoders`, for what rows cannot say.
    Decoder(super::memory::Decoder),
}

/// A member of a struct.
#[derive(Debug)]
pub struct Member {
    pub name: &'static str,
    /// In bytes from the struct's beginning.
    pub offset: u32,
    pub form: Form,
    /// [`Flow::Out`]: the kernel writes it and never reads it; of a pointer, what it points to.
    pub flow: Flow,
    /// When the kernel writes it; the condition is about members of the same struct.
    pub used: Condition,
}

impl Member {
    /// Whether it holds nothing that the call was given: only the kernel writes it.
    pub fn is_only_written(&self) -> bool {
        let points = matches!(self.form, Form::Number(Number { kind, .. }) if !kind.is_in_register());
        self.flow == Flow::Out && !points
    }
}

/// How a member stands in memory.
#[derive(Debug)]
pub enum Form {
    Number(Number),
    /// So many bytes of text, which may end earlier with NUL; 0 for all that are there.
    Text(u32),
    /// So many bytes; 0 for all that are there.
    Bytes(u32),
    /// A struct within the struct.
    Struct(&'static Struct),
    /// `count` elements, one each `stride` bytes; 0 for all that are there.
    Array {
        element: &'static Form,
        stride: u32,
        count: u32,
    },
}

/// A number in memory, and what it is: the same as if an argument's register held it.
#[derive(Debug)]
pub struct Number {
    pub bytes: u8,
    pub signed: bool,
    pub big_endian: bool,
    pub kind: Kind,
    pub length: Length,
}

impl Form {
    /// Its bytes; what has no fixed number of them has none.
    pub fn size(&self, abi: Abi) -> u32 {
        match self {
            Form::Number(number) => u32::from(number.bytes),
            Form::Text(bytes) | Form::Bytes(bytes) => *bytes,
            Form::Struct(of) => of.sizes[abi as usize],
            Form::Array { stride, count, .. } => stride * count,
        }
    }
}

/// Structs are statics: the same name is the same struct.
impl PartialEq for Struct {
    fn eq(&self, other: &Struct) -> bool {
        self.name == other.name
    }
}
