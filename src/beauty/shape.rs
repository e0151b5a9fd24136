//! The layouts of the kernel's structs: the types of the tables that build.rs generates from `beauty/structs/*.tbl`.
//!
//! A layout has the offsets and types of the members for each ABI. The modules `structure` and `pointed` decode bytes
//! by these layouts.

use super::row::{ArgumentKind, Condition, Flow, Length};
use crate::event::Abi;

/// A struct of the kernel's ABI: a row of `beauty/structs/*.tbl`.
#[derive(Debug)]
pub struct Struct {
    /// The name in rows, which is mostly the one in the header (`sigaction`, without `struct`).
    pub name: &'static str,
    /// Size in bytes in each ABI, indexed by `Abi as usize`. For a struct whose length the call specifies, this is the
    /// size of its fixed part, or the largest size.
    pub sizes: [u32; 4],
    /// The unit of the length argument that belongs to the struct.
    pub counted: LengthUnit,
    /// How the BPF programs copy the struct from the caller's memory.
    pub copied: CopyMethod,
    /// The member that has the length of the struct, if no argument has it.
    pub length_at: Option<LengthMember>,
    /// Number of leading bytes that the kernel reads of a struct that it reads and writes; 0 if it reads all of it.
    pub bytes_read: u32,
    /// The header that declares the struct. A colon and the name in the header follow if that name differs; `+` follows
    /// if the header's struct is longer. Empty if no header declares it.
    pub source: &'static str,
    /// The members, or what else the memory contains.
    pub layout: StructLayout,
    /// The part that is shown without `--full`.
    pub brief: Brief,
    /// The structs as which the memory is decoded for some values of a member; `layout` is that of all other values.
    pub choice: Option<StructChoice>,
}

/// A member that has the length of its struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthMember {
    /// Offset in bytes from the beginning of the struct.
    pub offset: u32,
    /// The size of the member: 4, 8 (of which the lower half counts), or 2.
    pub bytes: u8,
    /// The length in bytes for which 0 stands; 0 if it stands for none.
    pub of_zero: u8,
    /// The offset of the member, of 32 bits, with the number of elements of the flexible array that the kernel has
    /// written.
    pub written: Option<u32>,
}

/// The structs that the value of a member selects.
#[derive(Clone, Copy, Debug)]
pub struct StructChoice {
    /// Index of the member in the layouts of all ABIs.
    pub member: u8,
    /// The values of the member, each with its struct.
    pub structs: &'static [(u64, &'static Struct)],
}

/// The brief form of a struct: the part that people look for first.
#[derive(Clone, Copy, Debug)]
pub struct Brief {
    /// Number of elements of an array of the struct.
    pub elements: u32,
    /// The members for each ABI, indexed by `Abi as usize`, in ascending order of offset; `None` for all members.
    pub members: Option<[&'static [BriefMember]; 4]>,
}

/// A member in the brief form of a struct.
#[derive(Clone, Copy, Debug)]
pub struct BriefMember {
    /// Index of the member in the layout.
    pub index: u8,
    /// The condition under which the brief form has the member. Otherwise it counts as left out.
    pub shown: Shown,
}

/// The condition under which a member is in the brief form of its struct.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    Always,
    /// At least one of these bytes of the struct is not 0.
    NotZero {
        offset: u32,
        bytes: u32,
    },
    /// The arguments of the call meet the condition.
    If(Condition),
}

/// The unit of a struct's length argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthUnit {
    /// Bytes of the struct.
    Bytes,
    /// Bits; the kernel copies whole words (`long`).
    Bits,
    /// Bits of descriptors; the kernel copies whole words, and ignores bits for which the caller's table of descriptors
    /// has no room.
    Files,
    /// The number of bits plus one, as the kernel counts memory nodes; it copies whole words.
    Nodes,
    /// Bytes of the memory range that the call is about; the struct has one byte for each page.
    Pages,
    /// Bytes of the data that follows the fixed part of the struct.
    Tail,
    /// Elements of the flexible array that follows the fixed part of the struct.
    Elements,
    /// Bytes of a buffer that holds several entries of variable length (directory entries).
    Entries,
}

/// How the BPF programs copy a struct. Each method other than `Plain` has code of its own there (`bpf/nested.h`,
/// `bpf/indirect_fds.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMethod {
    /// The layout determines what is copied.
    Plain,
    /// An array of buffers; the return value is the number of bytes that are used in them.
    Iovec,
    /// A message header: an address, an array of buffers, and control data.
    Msghdr,
    /// Message headers, each with the number of bytes of its message.
    Mmsghdr,
    /// Elements that have a file descriptor each.
    Pollfd,
    /// Pointers to structs of a fixed size.
    Pointers,
    /// The layout determines what is copied. The first member is a file descriptor, whose file is recorded.
    Fd,
}

impl Struct {
    /// Returns the size in bytes of memory whose length argument is `count`.
    pub fn bytes(&self, count: u64, abi: Abi) -> u64 {
        const PAGE_BYTES: u64 = 4096;
        let word_bits = if abi == Abi::I386 { 32 } else { 64 };
        match self.counted {
            LengthUnit::Bytes | LengthUnit::Entries => count,
            LengthUnit::Bits | LengthUnit::Files => count.div_ceil(word_bits).saturating_mul(word_bits / 8),
            LengthUnit::Nodes => count.saturating_sub(1).div_ceil(word_bits).saturating_mul(word_bits / 8),
            LengthUnit::Pages => count.div_ceil(PAGE_BYTES),
            LengthUnit::Tail => count.saturating_add(u64::from(self.sizes[abi as usize])),
            LengthUnit::Elements => {
                count.saturating_mul(u64::from(self.element_bytes(abi))).saturating_add(u64::from(self.sizes[abi as usize]))
            }
        }
    }

    /// Returns the size in bytes of an element of the flexible array at the end of the struct; 0 if it has none.
    pub fn element_bytes(&self, abi: Abi) -> u32 {
        let StructLayout::Members(layouts) = &self.layout else { return 0 };
        match layouts[abi as usize].last().map(|last| &last.memory_type) {
            Some(MemoryType::Array { stride, count: 0, .. }) => *stride,
            _ => 0,
        }
    }
}

impl Struct {
    /// Returns the number of bytes up to the end of the member that selects another struct; 0 if there is no such
    /// member.
    pub fn chooser_end(&self, abi: Abi) -> u64 {
        let (Some(choice), StructLayout::Members(layouts)) = (&self.choice, &self.layout) else { return 0 };
        let chooser = layouts[abi as usize].get(usize::from(choice.member));
        chooser.map_or(0, |member| u64::from(member.offset) + u64::from(member.memory_type.size(abi)))
    }
}

/// The contents of a struct.
#[derive(Debug)]
pub enum StructLayout {
    /// The row has no members, so the struct is printed as its address.
    Opaque,
    /// The members for each ABI, indexed by `Abi as usize`, in ascending order of offset. Reserved members are omitted.
    Members([&'static [StructMember]; 4]),
    /// One number; its type for each ABI, indexed by `Abi as usize`.
    Number([MemoryType; 4]),
    /// A function of `crate::beauty::decoders`, for contents that a row cannot describe.
    Decoder(super::memory::StructDecoder),
}

/// A member of a struct.
#[derive(Debug)]
pub struct StructMember {
    /// The name of the field in the row. Members of a union may have the same name.
    pub name: &'static str,
    /// Offset in bytes from the beginning of the struct.
    pub offset: u32,
    /// The type of the value there, which also determines the size of the member.
    pub memory_type: MemoryType,
    /// [`Flow::Out`] if the kernel writes the member and never reads it. For a pointer, this is about the memory that
    /// it points to.
    pub flow: Flow,
    /// The condition under which the member is valid. With [`Flow::Out`], it is the condition under which the kernel
    /// writes the member. It tests members of the same struct.
    pub used: Condition,
}

impl StructMember {
    /// Whether the member is output only: the kernel writes it and ignores the value that the caller left there.
    pub fn is_only_written(&self) -> bool {
        let points = matches!(self.memory_type, MemoryType::Number(MemoryNumber { kind, .. }) if !kind.is_in_register());
        self.flow == Flow::Out && !points
    }
}

/// The type of a value in memory: a struct member or an array element.
#[derive(Debug)]
pub enum MemoryType {
    /// A number, which may be a pointer, a descriptor or a constant of a table.
    Number(MemoryNumber),
    /// Text of this many bytes, which a NUL may end earlier; 0 if it extends to the end of the memory.
    Text(u32),
    /// This many bytes; 0 if they extend to the end of the memory.
    Bytes(u32),
    /// A nested struct.
    Struct(&'static Struct),
    /// `count` elements, `stride` bytes apart; a count of 0 means that they extend to the end of the memory.
    Array {
        /// The type of one element.
        element: &'static MemoryType,
        /// The distance from the start of one element to that of the next, in bytes.
        stride: u32,
        /// The number of elements; 0 if they extend to the end of the memory.
        count: u32,
    },
}

/// A number in memory. Its kind and length mean the same as for a number in an argument register.
#[derive(Debug)]
pub struct MemoryNumber {
    /// The size of the number: 1, 2, 4 or 8. It may differ from the width that the kind has in a register.
    pub bytes: u8,
    /// Whether the number is negative if its highest bit is set.
    pub signed: bool,
    /// Whether the number is in network byte order.
    pub big_endian: bool,
    /// The meaning of the number: for a pointer, what it points to.
    pub kind: ArgumentKind,
    /// The source of the length of the memory that the number points to, if it is a pointer.
    pub length: Length,
}

impl MemoryType {
    /// Returns the size in bytes; 0 if the size is not fixed.
    pub fn size(&self, abi: Abi) -> u32 {
        match self {
            MemoryType::Number(number) => u32::from(number.bytes),
            MemoryType::Text(bytes) | MemoryType::Bytes(bytes) => *bytes,
            MemoryType::Struct(of) => of.sizes[abi as usize],
            MemoryType::Array { stride, count, .. } => stride * count,
        }
    }
}

/// Each struct is one static, so structs with equal names are the same.
impl PartialEq for Struct {
    fn eq(&self, other: &Struct) -> bool {
        self.name == other.name
    }
}
