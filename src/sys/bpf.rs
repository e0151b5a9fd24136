//! bpf(2), where libbpf does more than is needed, or one thing after the other.
//!
//! libbpf opens objects, makes their maps and relocates their programs; loading and attaching them is this file's. It refuses to know what programs are for.

use super::lent;
use libbpf_rs::{AsRawLibbpf, MapHandle, MapType, Object, OpenObject, Program};
use libbpf_sys as sys;
use std::borrow::Cow;
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
/// Room for what the verifier says of one program. It keeps the end of more than that.
const LOG_BYTES: usize = 1 << 20;

/// What a program is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A raw tracepoint, by the identifier of `btf_trace_NAME` among the kernel's types.
    RawTracepoint(u32),
    /// A list of what the kernel has, by the identifier of `bpf_iter_NAME`.
    Iterator(u32),
    /// A tracepoint's perf event.
    Event,
    /// A raw tracepoint, by its name.
    UntypedRawTracepoint,
    /// The perf event of a probe in the kernel or in a program.
    Probe,
    /// Where a function of the kernel begins or returns, by its identifier among the kernel's types.
    FunctionEntry(u32),
    FunctionReturn(u32),
}

/// A program as the kernel is given it.
#[derive(Debug)]
pub struct Code<'a> {
    pub name: &'a CStr,
    pub kind: Kind,
    pub instructions: Vec<Instruction>,
    /// What it is given away under: the kernel lends some helpers only to the GPL.
    pub license: &'a CStr,
    /// It may sleep, where the kernel lets programs of its kind do so.
    pub may_sleep: bool,
    /// Where its functions begin, and their types; those stand in the object's type information.
    functions: Cow<'a, [sys::bpf_func_info]>,
    /// Where the lines of its source begin. Only the verifier's log shows them.
    lines: Cow<'a, [sys::bpf_line_info]>,
    types: i32,
}

/// A program that the verifier does not take.
#[derive(Debug)]
pub struct Refusal {
    pub error: io::Error,
    /// What the verifier said, line by line.
    pub log: String,
}

impl Refusal {
    /// Why, in the verifier's words; nothing if the program did not come so far.
    pub fn reason(&self) -> Option<&str> {
        self.log.lines().rev().find(|line| !line.is_empty() && !line.starts_with("processed ") && !line.starts_with("verification time "))
    }
}

/// Makes an object's maps, and relocates its programs, so that their [`Code`] can be taken; none is loaded.
///
/// # Errors
/// The kernel makes no maps for this user, or does not have what the programs are relocated to.
pub fn prepare(open: OpenObject) -> libbpf_rs::Result<Object> {
    // SAFETY: the object is open, and nobody else has it.
    let answer = lent::with(|| unsafe { sys::bpf_object__prepare(open.as_libbpf_object().as_ptr()) });
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
                license: LICENSE,
                may_sleep: false,
                functions: Cow::Borrowed(if list.is_null() { &[] } else { std::slice::from_raw_parts(list, count as usize) }),
                lines: Cow::Borrowed(&[]),
                types: sys::bpf_object__btf_fd(object),
            }
        }
    }

    /// The same, with the lines of its source.
    pub fn with_lines(object: &'a Object, program: &Program<'a>, kind: Kind) -> Code<'a> {
        let of = program.as_libbpf_object().as_ptr();
        // SAFETY: as above: the list has as many entries as libbpf says, and nobody changes it.
        let lines = unsafe {
            let (list, count) = (sys::bpf_program__line_info(of), sys::bpf_program__line_info_cnt(of));
            if list.is_null() { &[] } else { std::slice::from_raw_parts(list, count as usize) }
        };
        Code { lines: Cow::Borrowed(lines), ..Code::of(object, program, kind) }
    }

    /// Puts other instructions in place of these. `place` says where an instruction is now that begins a function or a line.
    pub fn replace(&mut self, instructions: Vec<Instruction>, place: impl Fn(u32) -> u32) {
        self.instructions = instructions;
        self.functions.to_mut().iter_mut().for_each(|one| one.insn_off = place(one.insn_off));
        self.lines.to_mut().iter_mut().for_each(|one| one.insn_off = place(one.insn_off));
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
        self.load_with(&mut [])
    }

    /// The same; a refusal comes with the verifier's reasons.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn load_or_say_why(&self) -> Result<OwnedFd, Refusal> {
        if let Ok(loaded) = self.load() {
            return Ok(loaded);
        }
        // A log costs the verifier time: only now.
        let mut log = vec![0; LOG_BYTES];
        self.load_with(&mut log).map_err(|error| {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            Refusal { error, log: String::from_utf8_lossy(&log[..end]).into_owned() }
        })
    }

    /// `log`: where the verifier writes what it sees; empty for nothing.
    fn load_with(&self, log: &mut [u8]) -> io::Result<OwnedFd> {
        let (kind, attach_type, attach_to) = match self.kind {
            Kind::RawTracepoint(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_RAW_TP, id),
            Kind::Iterator(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_ITER, id),
            Kind::FunctionEntry(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_FENTRY, id),
            Kind::FunctionReturn(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_FEXIT, id),
            Kind::Event => (sys::BPF_PROG_TYPE_TRACEPOINT, 0, 0),
            Kind::UntypedRawTracepoint => (sys::BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0),
            Kind::Probe => (sys::BPF_PROG_TYPE_KPROBE, 0, 0),
        };
        let opts = sys::bpf_prog_load_opts {
            expected_attach_type: attach_type,
            attach_btf_id: attach_to,
            prog_btf_fd: u32::try_from(self.types).unwrap_or_default(),
            prog_flags: if self.may_sleep { sys::BPF_F_SLEEPABLE } else { 0 },
            func_info: self.functions.as_ptr().cast(),
            func_info_cnt: self.functions.len() as u32,
            func_info_rec_size: size_of::<sys::bpf_func_info>() as u32,
            line_info: self.lines.as_ptr().cast(),
            line_info_cnt: self.lines.len() as u32,
            line_info_rec_size: size_of::<sys::bpf_line_info>() as u32,
            log_level: u32::from(!log.is_empty()),
            log_size: log.len() as u32,
            log_buf: if log.is_empty() { std::ptr::null_mut() } else { log.as_mut_ptr().cast() },
            ..Default::default()
        };
        load(kind, self.name, self.license, &self.instructions, opts)
    }
}

fn load(kind: sys::bpf_prog_type, name: &CStr, license: &CStr, code: &[Instruction], opts: sys::bpf_prog_load_opts) -> io::Result<OwnedFd> {
    let mut opts = sys::bpf_prog_load_opts { sz: size_of::<sys::bpf_prog_load_opts>() as _, ..opts };
    // SAFETY: libbpf reads two strings with their NUL, as many instructions as it is told, what `opts` points to, and reads and writes `opts` up to the size in it and the log up to
    // the size that is told; it keeps none of them.
    let fd =
        lent::with(|| unsafe { sys::bpf_prog_load(kind, name.as_ptr(), license.as_ptr(), code.as_ptr(), code.len() as _, &raw mut opts) });
    descriptor(fd)
}

/// An array of descriptors, for programs to find them by number.
///
/// # Errors
/// The kernel makes none for this user.
pub fn descriptors(kind: MapType, entries: u32) -> libbpf_rs::Result<MapHandle> {
    let opts = sys::bpf_map_create_opts { sz: size_of::<sys::bpf_map_create_opts>() as _, ..Default::default() };
    lent::with(|| MapHandle::create(kind, None::<&str>, 4, 4, entries, &opts))
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
    descriptor(lent::with(|| unsafe { sys::bpf_iter_create(link.as_raw_fd()) }))
}

/// Attaches a program to the raw tracepoint of this name, until the descriptor is closed.
///
/// # Errors
/// The kernel's: ENOENT where it has none of this name.
pub fn attach_to_named_raw_tracepoint(program: BorrowedFd, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: it reads a string with its NUL and takes a descriptor.
    descriptor(lent::with(|| unsafe { sys::bpf_raw_tracepoint_open(name.as_ptr(), program.as_raw_fd()) }))
}

/// Attaches a program to its function of the kernel, until the descriptor is closed.
///
/// # Errors
/// The kernel's.
pub fn attach_to_function(program: BorrowedFd, returns: bool) -> io::Result<OwnedFd> {
    link(program, if returns { sys::BPF_TRACE_FEXIT } else { sys::BPF_TRACE_FENTRY })
}

fn link(program: BorrowedFd, attach_type: sys::bpf_attach_type) -> io::Result<OwnedFd> {
    // SAFETY: it takes a descriptor; options may be null.
    descriptor(lent::with(|| unsafe { sys::bpf_link_create(program.as_raw_fd(), 0, attach_type, std::ptr::null()) }))
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
    load(sys::BPF_PROG_TYPE_RAW_TRACEPOINT, c"may_sleep", LICENSE, &code, opts).is_ok()
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
        let mut code = Code {
            name: c"x",
            kind: Kind::Event,
            instructions,
            license: LICENSE,
            may_sleep: false,
            functions: Cow::default(),
            lines: Cow::default(),
            types: -1,
        };
        code.call_instead(7, 1234);
        let seen: Vec<_> = code.instructions.iter().map(|one| (one.src_reg(), one.imm)).collect();
        assert_eq!(seen, [(sys::BPF_PSEUDO_KFUNC_CALL as u8, 1234), (other_kind, 7), (0, 8), (0, 7)]);
    }
}
