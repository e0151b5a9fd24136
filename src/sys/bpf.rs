//! bpf(2), where libbpf does more than is needed, or one thing after the other.
//!
//! libbpf opens objects, makes their maps and relocates their programs; loading and attaching them is this file's. It refuses to know what programs are for.

use libbpf_rs::{AsRawLibbpf, Object, OpenObject, Program};
use libbpf_sys as sys;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub use libbpf_sys::bpf_insn as Instruction;

/// All of ours; the kernel asks for it before it lends its functions.
const LICENSE: &CStr = c"Dual BSD/GPL";
/// `BPF_ALU64 | BPF_MOV | BPF_K` and `BPF_JMP | BPF_EXIT`: return 0.
const RETURN_0: [u8; 2] = [0xb7, 0x95];
/// `BPF_JMP | BPF_CALL`
const CALL: u8 = 0x85;

/// What a program is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A raw tracepoint, by the identifier of `btf_trace_NAME` among the kernel's types.
    RawTracepoint(u32),
    /// A list of what the kernel has, by the identifier of `bpf_iter_NAME`.
    Iterator(u32),
    /// A tracepoint's perf event.
    Event,
}

/// A program as the kernel is given it.
#[derive(Debug)]
pub struct Code<'a> {
    pub name: &'a CStr,
    pub kind: Kind,
    pub instructions: Vec<Instruction>,
    /// Where its functions begin, and their types; those stand in the object's type information.
    functions: &'a [sys::bpf_func_info],
    types: i32,
}

/// Makes an object's maps, and relocates its programs, so that their [`Code`] can be taken; none is loaded.
///
/// # Errors
/// The kernel makes no maps for this user, or does not have what the programs are relocated to.
pub fn prepare(open: OpenObject) -> libbpf_rs::Result<Object> {
    // SAFETY: the object is open, and nobody else has it.
    let answer = unsafe { sys::bpf_object__prepare(open.as_libbpf_object().as_ptr()) };
    if answer < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-answer));
    }
    // SAFETY: we had it as our own; of a prepared object all is there that is there of a loaded one, except for its programs' descriptors, which nobody asks it for.
    Ok(unsafe { Object::from_ptr(open.take_ptr()) })
}

impl<'a> Code<'a> {
    /// That of a program of a prepared object.
    pub fn of(object: &'a Object, program: &Program<'a>, kind: Kind) -> Code<'a> {
        let (object, of) = (object.as_libbpf_object().as_ptr(), program.as_libbpf_object().as_ptr());
        // SAFETY: both are live as long as 'a, in which nobody changes them: libbpf does so only when it loads them. The name ends with NUL, and the list has as many entries as libbpf says.
        unsafe {
            let (list, count) = (sys::bpf_program__func_info(of), sys::bpf_program__func_info_cnt(of));
            Code {
                name: CStr::from_ptr(sys::bpf_program__name(of)),
                kind,
                instructions: program.insns().to_vec(),
                functions: if list.is_null() { &[] } else { std::slice::from_raw_parts(list, count as usize) },
                types: sys::bpf_object__btf_fd(object),
            }
        }
    }

    /// Calls a function of the kernel, by its identifier, wherever a helper of this number would be called.
    pub fn call_instead(&mut self, number: i32, function: u32) {
        for instruction in self.instructions.iter_mut().filter(|one| one.code == CALL && one.src_reg() == 0 && one.imm == number) {
            instruction.set_src_reg(sys::BPF_PSEUDO_KFUNC_CALL as u8);
            instruction.imm = function as i32;
        }
    }

    /// Lets the kernel verify it.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn load(&self) -> io::Result<OwnedFd> {
        let (kind, attach_type, attach_to) = match self.kind {
            Kind::RawTracepoint(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_RAW_TP, id),
            Kind::Iterator(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_ITER, id),
            Kind::Event => (sys::BPF_PROG_TYPE_TRACEPOINT, 0, 0),
        };
        // Without the lines of its source, which only the verifier's log would show.
        let opts = sys::bpf_prog_load_opts {
            expected_attach_type: attach_type,
            attach_btf_id: attach_to,
            prog_btf_fd: self.types as u32,
            func_info: self.functions.as_ptr().cast(),
            func_info_cnt: self.functions.len() as u32,
            func_info_rec_size: size_of::<sys::bpf_func_info>() as u32,
            ..Default::default()
        };
        load(kind, self.name, &self.instructions, opts)
    }
}

fn load(kind: sys::bpf_prog_type, name: &CStr, code: &[Instruction], opts: sys::bpf_prog_load_opts) -> io::Result<OwnedFd> {
    let mut opts = sys::bpf_prog_load_opts { sz: size_of::<sys::bpf_prog_load_opts>() as _, ..opts };
    // SAFETY: libbpf reads two strings with their NUL, as many instructions as it is told, what `opts` points to, and reads and writes `opts` up to the size in it; it keeps none of them.
    let fd = unsafe { sys::bpf_prog_load(kind, name.as_ptr(), LICENSE.as_ptr(), code.as_ptr(), code.len() as _, &raw mut opts) };
    descriptor(fd)
}

/// Attaches a program to its raw tracepoint, until the descriptor is closed.
///
/// # Errors
/// The kernel's.
pub fn attach_to_raw_tracepoint(program: BorrowedFd) -> io::Result<OwnedFd> {
    link(program, sys::BPF_TRACE_RAW_TP)
}

/// What an iterator's program writes, from now on, is read here.
///
/// # Errors
/// The kernel's.
pub fn iterate(program: BorrowedFd) -> io::Result<OwnedFd> {
    let link = link(program, sys::BPF_TRACE_ITER)?;
    // SAFETY: it takes a descriptor and no memory.
    descriptor(unsafe { sys::bpf_iter_create(link.as_raw_fd()) })
}

fn link(program: BorrowedFd, attach_type: sys::bpf_attach_type) -> io::Result<OwnedFd> {
    // SAFETY: it takes a descriptor; options may be null.
    descriptor(unsafe { sys::bpf_link_create(program.as_raw_fd(), 0, attach_type, std::ptr::null()) })
}

/// What libbpf gives: a descriptor, or an errno below zero.
fn descriptor(answer: i32) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::from_raw_os_error(-answer));
    }
    // SAFETY: it is a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}

/// Whether programs on raw tracepoints of system calls may sleep (from Linux 7.2). On such a kernel those that do not sleep may lose the CPU, too; on older ones they cannot.
pub fn raw_tracepoints_may_sleep() -> bool {
    let code = RETURN_0.map(|code| Instruction { code, ..Default::default() });
    let opts = sys::bpf_prog_load_opts { prog_flags: sys::BPF_F_SLEEPABLE, ..Default::default() };
    load(sys::BPF_PROG_TYPE_RAW_TRACEPOINT, c"may_sleep", &code, opts).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_called_in_place_of_helpers() {
        let call = |imm, src: u8| {
            let mut one = Instruction { code: CALL, imm, ..Default::default() };
            one.set_src_reg(src);
            one
        };
        // A call of a function in the program itself may go as far as the helper's number says.
        let other_kind = sys::BPF_PSEUDO_CALL as u8;
        let instructions = vec![call(7, 0), call(7, other_kind), call(8, 0), Instruction { imm: 7, ..Default::default() }];
        let mut code = Code { name: c"x", kind: Kind::Event, instructions, functions: &[], types: -1 };
        code.call_instead(7, 1234);
        let seen: Vec<_> = code.instructions.iter().map(|one| (one.src_reg(), one.imm)).collect();
        assert_eq!(seen, [(sys::BPF_PSEUDO_KFUNC_CALL as u8, 1234), (other_kind, 7), (0, 8), (0, 7)]);
    }
}
