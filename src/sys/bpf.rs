//! bpf(2) calls for which libbpf does more than is needed, or for which it works sequentially.
//!
//! libbpf opens objects, creates their maps and relocates their programs. This module loads and attaches the programs.
//! It does not depend on the purpose of a program.

use super::file_capabilities;
use libbpf_rs::{AsRawLibbpf, MapHandle, MapType, Object, OpenObject, Program};
use libbpf_sys as sys;
use std::borrow::Cow;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub use libbpf_sys::bpf_insn as Instruction;

/// The license of rtrace's programs, which the kernel checks before it permits GPL-only helpers.
const LICENSE: &CStr = c"Dual BSD/GPL";
/// `BPF_ALU64 | BPF_MOV | BPF_K` and `BPF_JMP | BPF_EXIT`: return 0.
const RETURN_0: [u8; 2] = [0xb7, 0x95];
/// `BPF_JMP | BPF_CALL`.
const CALL: u8 = 0x85;
/// The size of the verifier's log for one program. Of a longer log, the kernel keeps the end.
const LOG_BYTES: usize = 1 << 20;

/// The type of a program, with its attach target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramType {
    /// A raw tracepoint, by the BTF ID of `btf_trace_NAME`.
    RawTracepoint(u32),
    /// A BPF iterator, by the BTF ID of `bpf_iter_NAME`.
    Iterator(u32),
    /// The perf event of a tracepoint.
    Event,
    /// A raw tracepoint, by its name, without BTF.
    UntypedRawTracepoint,
    /// The perf event of a probe in the kernel or in a program.
    Probe,
    /// The entries of kernel functions, by their addresses (kprobe.multi).
    Functions,
    /// The entry of a kernel function (fentry), by its BTF ID.
    FunctionEntry(u32),
    /// The return of a kernel function (fexit), by its BTF ID.
    FunctionReturn(u32),
}

/// A program, ready to be loaded.
#[derive(Debug)]
pub struct Code<'a> {
    /// The name of the program in the kernel, of which it keeps 15 bytes.
    pub name: &'a CStr,
    /// The attach point, which decides what the program may read and call.
    pub program_type: ProgramType,
    /// The instructions, with the descriptors of maps filled in.
    pub instructions: Vec<Instruction>,
    /// The program's license: the kernel permits some helpers only to GPL-compatible programs.
    pub license: &'a CStr,
    /// Whether the program may sleep, where the kernel permits that for programs of its type.
    pub may_sleep: bool,
    /// The first instruction and the BTF ID of each function. The types are in the object's BTF.
    functions: Cow<'a, [sys::bpf_func_info]>,
    /// The first instruction of each source line. Only the verifier's log shows the lines.
    lines: Cow<'a, [sys::bpf_line_info]>,
    /// The descriptor of the object's BTF, negative if there is none.
    types: i32,
}

/// The error for a program that the kernel rejects.
#[derive(Debug)]
pub struct LoadError {
    /// The error of bpf(2).
    pub error: io::Error,
    /// The verifier's log.
    pub log: String,
}

impl LoadError {
    /// Returns the verifier's reason, or `None` if the program did not reach the verifier.
    pub fn reason(&self) -> Option<&str> {
        self.log.lines().rev().find(|line| !line.is_empty() && !line.starts_with("processed ") && !line.starts_with("verification time "))
    }
}

/// Creates an object's maps and relocates its programs, so that their [`Code`] can be obtained. No program is loaded.
///
/// # Errors
/// The kernel does not permit this user to create maps, or lacks a symbol or type to which the programs are relocated.
pub fn prepare(open: OpenObject) -> libbpf_rs::Result<Object> {
    // SAFETY: the object is open, and owned by the caller.
    let answer = file_capabilities::with_raised(|| unsafe { sys::bpf_object__prepare(open.as_libbpf_object().as_ptr()) });
    if answer < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-answer));
    }
    // SAFETY: `open` owned the object. A prepared object has everything that a loaded one has except its programs'
    // descriptors, which are never requested from it.
    Ok(unsafe { Object::from_ptr(open.take_ptr()) })
}

impl<'a> Code<'a> {
    /// Returns the code of a program of a prepared object.
    pub fn of(object: &'a Object, program: &Program<'a>, program_type: ProgramType) -> Code<'a> {
        let (object, of) = (object.as_libbpf_object().as_ptr(), program.as_libbpf_object().as_ptr());
        // SAFETY: both are live during 'a, in which nobody changes them: libbpf does so only when it loads them. The
        // name ends with NUL, and the list has as many entries as libbpf reports.
        unsafe {
            let (list, count) = (sys::bpf_program__func_info(of), sys::bpf_program__func_info_cnt(of));
            Code {
                name: CStr::from_ptr(sys::bpf_program__name(of)),
                program_type,
                instructions: program.insns().to_vec(),
                license: LICENSE,
                may_sleep: false,
                functions: Cow::Borrowed(if list.is_null() { &[] } else { std::slice::from_raw_parts(list, count as usize) }),
                lines: Cow::Borrowed(&[]),
                types: sys::bpf_object__btf_fd(object),
            }
        }
    }

    /// Returns the code of a program, with its source lines.
    pub fn with_lines(object: &'a Object, program: &Program<'a>, program_type: ProgramType) -> Code<'a> {
        let of = program.as_libbpf_object().as_ptr();
        // SAFETY: as above. The list has as many entries as libbpf reports, and nobody changes it.
        let lines = unsafe {
            let (list, count) = (sys::bpf_program__line_info(of), sys::bpf_program__line_info_cnt(of));
            if list.is_null() { &[] } else { std::slice::from_raw_parts(list, count as usize) }
        };
        Code { lines: Cow::Borrowed(lines), ..Code::of(object, program, program_type) }
    }

    /// Replaces the instructions. `place` maps the old index of an instruction that begins a function or a line to its
    /// new index.
    pub fn replace(&mut self, instructions: Vec<Instruction>, place: impl Fn(u32) -> u32) {
        self.instructions = instructions;
        self.functions.to_mut().iter_mut().for_each(|one| one.insn_off = place(one.insn_off));
        self.lines.to_mut().iter_mut().for_each(|one| one.insn_off = place(one.insn_off));
    }

    /// Replaces calls of the helper with this number by calls of a kernel function (kfunc), given by its BTF ID.
    pub fn call_kfunc_instead(&mut self, number: i32, function: u32) {
        for instruction in self.instructions.iter_mut().filter(|one| one.code == CALL && one.src_reg() == 0 && one.imm == number) {
            instruction.set_src_reg(sys::BPF_PSEUDO_KFUNC_CALL as u8);
            instruction.imm = function as i32;
        }
    }

    /// Loads the program into the kernel.
    ///
    /// # Errors
    /// The kernel rejects the program.
    pub fn load(&self) -> io::Result<OwnedFd> {
        self.load_with(&mut [])
    }

    /// Loads the program; an error has the verifier's log.
    ///
    /// # Errors
    /// The kernel rejects the program.
    pub fn load_with_log_on_error(&self) -> Result<OwnedFd, LoadError> {
        if let Ok(loaded) = self.load() {
            return Ok(loaded);
        }
        // A log costs the verifier time, so the program is loaded with one only after a failure.
        let mut log = vec![0; LOG_BYTES];
        self.load_with(&mut log).map_err(|error| {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            LoadError { error, log: String::from_utf8_lossy(&log[..end]).into_owned() }
        })
    }

    /// Loads the program. The verifier writes its log to `log`, or none if `log` is empty.
    fn load_with(&self, log: &mut [u8]) -> io::Result<OwnedFd> {
        let (kernel_type, attach_type, attach_to) = match self.program_type {
            ProgramType::RawTracepoint(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_RAW_TP, id),
            ProgramType::Iterator(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_ITER, id),
            ProgramType::FunctionEntry(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_FENTRY, id),
            ProgramType::FunctionReturn(id) => (sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_FEXIT, id),
            ProgramType::Event => (sys::BPF_PROG_TYPE_TRACEPOINT, 0, 0),
            ProgramType::UntypedRawTracepoint => (sys::BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0),
            ProgramType::Probe => (sys::BPF_PROG_TYPE_KPROBE, 0, 0),
            ProgramType::Functions => (sys::BPF_PROG_TYPE_KPROBE, sys::BPF_TRACE_KPROBE_MULTI, 0),
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
        load(kernel_type, self.name, self.license, &self.instructions, opts)
    }
}

fn load(
    program_type: sys::bpf_prog_type,
    name: &CStr,
    license: &CStr,
    code: &[Instruction],
    opts: sys::bpf_prog_load_opts,
) -> io::Result<OwnedFd> {
    let mut opts = sys::bpf_prog_load_opts { sz: size_of::<sys::bpf_prog_load_opts>() as _, ..opts };
    // SAFETY: libbpf reads two strings with their NUL, the given number of instructions, and the data that `opts`
    // points to. It reads and writes `opts` up to the size in it, and the log up to its given size. It keeps none of
    // them.
    let fd = file_capabilities::with_raised(|| unsafe {
        sys::bpf_prog_load(program_type, name.as_ptr(), license.as_ptr(), code.as_ptr(), code.len() as _, &raw mut opts)
    });
    descriptor(fd)
}

/// Creates an array of descriptors, which programs access by index.
///
/// # Errors
/// The kernel does not permit this user to create it.
pub fn descriptors(map_type: MapType, entries: u32) -> libbpf_rs::Result<MapHandle> {
    let opts = sys::bpf_map_create_opts { sz: size_of::<sys::bpf_map_create_opts>() as _, ..Default::default() };
    file_capabilities::with_raised(|| MapHandle::create(map_type, None::<&str>, 4, 4, entries, &opts))
}

/// Attaches a program to its raw tracepoint until the descriptor is closed.
///
/// # Errors
/// The errors of bpf(2).
pub fn attach_to_raw_tracepoint(program: BorrowedFd) -> io::Result<OwnedFd> {
    link(program, sys::BPF_TRACE_RAW_TP)
}

/// Starts a BPF iterator, and returns the descriptor from which its output is read.
///
/// # Errors
/// The errors of bpf(2).
pub fn iterate(program: BorrowedFd) -> io::Result<OwnedFd> {
    let link = link(program, sys::BPF_TRACE_ITER)?;
    // SAFETY: the call takes a descriptor and no memory.
    descriptor(file_capabilities::with_raised(|| unsafe { sys::bpf_iter_create(link.as_raw_fd()) }))
}

/// Attaches a program to the raw tracepoint of this name until the descriptor is closed.
///
/// # Errors
/// The errors of bpf(2): ENOENT if there is no raw tracepoint of this name.
pub fn attach_to_named_raw_tracepoint(program: BorrowedFd, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the call reads a string with its NUL and takes a descriptor.
    descriptor(file_capabilities::with_raised(|| unsafe { sys::bpf_raw_tracepoint_open(name.as_ptr(), program.as_raw_fd()) }))
}

/// Attaches a program to the entry or return of its kernel function until the descriptor is closed.
///
/// # Errors
/// The errors of bpf(2).
pub fn attach_to_function(program: BorrowedFd, returns: bool) -> io::Result<OwnedFd> {
    link(program, if returns { sys::BPF_TRACE_FEXIT } else { sys::BPF_TRACE_FENTRY })
}

/// Attaches a program to the entries of these functions of the kernel until the descriptor is closed.
///
/// # Errors
/// The errors of bpf(2): EOPNOTSUPP without CONFIG_FPROBE, EINVAL if the program overrides results and the kernel does
/// not permit that for a function.
pub fn attach_to_functions(program: BorrowedFd, addresses: &[u64]) -> io::Result<OwnedFd> {
    let functions = sys::bpf_link_create_opts__bindgen_ty_1__bindgen_ty_2 {
        cnt: addresses.len() as u32,
        addrs: addresses.as_ptr(),
        ..Default::default()
    };
    let mut opts = sys::bpf_link_create_opts { sz: size_of::<sys::bpf_link_create_opts>() as _, ..Default::default() };
    opts.__bindgen_anon_1.kprobe_multi = functions;
    // SAFETY: the call takes a descriptor, and reads the options and as many addresses as they say.
    descriptor(file_capabilities::with_raised(|| unsafe {
        sys::bpf_link_create(program.as_raw_fd(), 0, sys::BPF_TRACE_KPROBE_MULTI, &raw const opts)
    }))
}

/// Returns whether programs on functions of the kernel may return in their place (CONFIG_BPF_KPROBE_OVERRIDE).
pub fn may_override() -> bool {
    // The context is in r1; r2 is the value. Then `BPF_JMP | BPF_CALL` of bpf_override_return, and return 0.
    let call = Instruction { code: CALL, imm: sys::BPF_FUNC_override_return as i32, ..Default::default() };
    let mut value = Instruction { code: RETURN_0[0], ..Default::default() };
    value.set_dst_reg(2);
    let [zero, exit] = RETURN_0.map(|code| Instruction { code, ..Default::default() });
    let opts = sys::bpf_prog_load_opts { expected_attach_type: sys::BPF_TRACE_KPROBE_MULTI, ..Default::default() };
    load(sys::BPF_PROG_TYPE_KPROBE, c"may_override", LICENSE, &[value, call, zero, exit], opts).is_ok()
}

fn link(program: BorrowedFd, attach_type: sys::bpf_attach_type) -> io::Result<OwnedFd> {
    // SAFETY: the call takes a descriptor; the options may be null.
    descriptor(file_capabilities::with_raised(|| unsafe { sys::bpf_link_create(program.as_raw_fd(), 0, attach_type, std::ptr::null()) }))
}

/// Converts a result of libbpf: a descriptor, or a negative errno.
fn descriptor(answer: i32) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::from_raw_os_error(-answer));
    }
    // SAFETY: it is a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}

/// Returns whether programs on raw tracepoints of system calls may sleep (from Linux 7.2 on). On such a kernel,
/// programs that do not sleep may be preempted, too; on older kernels they cannot.
pub fn raw_tracepoints_may_sleep() -> bool {
    let code = RETURN_0.map(|code| Instruction { code, ..Default::default() });
    let opts = sys::bpf_prog_load_opts { prog_flags: sys::BPF_F_SLEEPABLE, ..Default::default() };
    load(sys::BPF_PROG_TYPE_RAW_TRACEPOINT, c"may_sleep", LICENSE, &code, opts).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_helper_become_calls_of_a_kernel_function() {
        let call = |imm, src: u8| {
            let mut one = Instruction { code: CALL, imm, ..Default::default() };
            one.set_src_reg(src);
            one
        };
        // A call of a function in the program itself has a relative offset, which may equal the helper's number.
        let other_kind = sys::BPF_PSEUDO_CALL as u8;
        let instructions = vec![call(7, 0), call(7, other_kind), call(8, 0), Instruction { imm: 7, ..Default::default() }];
        let mut code = Code {
            name: c"x",
            program_type: ProgramType::Event,
            instructions,
            license: LICENSE,
            may_sleep: false,
            functions: Cow::default(),
            lines: Cow::default(),
            types: -1,
        };
        code.call_kfunc_instead(7, 1234);
        let seen: Vec<_> = code.instructions.iter().map(|one| (one.src_reg(), one.imm)).collect();
        assert_eq!(seen, [(sys::BPF_PSEUDO_KFUNC_CALL as u8, 1234), (other_kind, 7), (0, 8), (0, 7)]);
    }
}
