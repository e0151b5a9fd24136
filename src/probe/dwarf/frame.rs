//! Names of registers, and the canonical frame address (CFA), from which locations of variables are counted.

use crate::probe::value::LocationBase;
use crate::stack::symbols::ElfFile;
use crate::stack::symbols::elf::Machine;
use gimli::{BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, Register, RunTimeEndian, UnwindContext, UnwindSection};

/// Returns the name of a register in fetch arguments, by its DWARF number; `None` for registers that are not in the
/// kernel's `pt_regs` (`regs_query_register_offset` in arch/*/kernel/ptrace.c).
pub fn register(machine: Machine, number: Register) -> Option<String> {
    const X86_64: [&str; 8] = ["ax", "dx", "cx", "bx", "si", "di", "bp", "sp"];
    const I386: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    let number = number.0;
    match (machine, number) {
        (Machine::X86_64, 0..8) => Some(X86_64[usize::from(number)].to_owned()),
        (Machine::X86_64, 8..16) => Some(format!("r{number}")),
        (Machine::I386, 0..8) => Some(I386[usize::from(number)].to_owned()),
        (Machine::Aarch64, 0..31) => Some(format!("x{number}")),
        (Machine::Aarch64, 31) => Some("sp".to_owned()),
        _ => None,
    }
}

/// The CFA of a function: the caller's stack pointer after the return.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The register from whose value the CFA is counted.
    pub base: LocationBase,
    /// The distance of the CFA from that value, in bytes.
    pub offset: i64,
}

/// The unwind tables of a file.
pub struct Frames {
    eh_frame: Vec<u8>,
    eh_frame_svma: u64,
    debug_frame: Vec<u8>,
    endian: RunTimeEndian,
    machine: Machine,
    address_bytes: u8,
}

impl Frames {
    /// Reads the unwind tables of a file. A section that cannot be read counts as empty.
    pub fn read(file: &ElfFile) -> Frames {
        Frames {
            eh_frame: file.contents(".eh_frame").unwrap_or_default(),
            eh_frame_svma: file.section(".eh_frame").map_or(0, |section| section.sh_addr),
            debug_frame: file.contents(".debug_frame").unwrap_or_default(),
            endian: file.byte_order().into(),
            machine: file.machine(),
            address_bytes: file.address_bytes(),
        }
    }

    /// Returns the CFA at an address; `None` if no table covers the address, or if the CFA is not a register plus an
    /// offset.
    pub fn at(&self, svma: u64) -> Option<Frame> {
        let mut eh_frame = EhFrame::from(EndianSlice::new(&self.eh_frame, self.endian));
        eh_frame.set_address_size(self.address_bytes);
        let mut debug_frame = DebugFrame::from(EndianSlice::new(&self.debug_frame, self.endian));
        debug_frame.set_address_size(self.address_bytes);
        let bases = BaseAddresses::default().set_eh_frame(self.eh_frame_svma);
        let rule = rule(&eh_frame, &bases, svma).or_else(|| rule(&debug_frame, &bases, svma))?;
        let CfaRule::RegisterAndOffset { register: number, offset } = rule else { return None };
        Some(Frame { base: LocationBase::register(&register(self.machine, number)?), offset })
    }
}

fn rule<'a, S>(section: &S, bases: &BaseAddresses, svma: u64) -> Option<CfaRule<usize>>
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    let mut context = UnwindContext::new();
    let row = section.unwind_info_for_address(bases, &mut context, svma, S::cie_from_offset).ok()?;
    Some(row.cfa().clone())
}
