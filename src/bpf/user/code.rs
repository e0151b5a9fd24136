//! Constructors and tests for single BPF instructions (Documentation/bpf/standardization/instruction-set.rst), as far
//! as rtrace writes instructions itself.

use crate::sys::bpf::Instruction;

/// Helpers by their numbers (include/uapi/linux/bpf.h).
pub const GET_UID_GID: i32 = 15;
/// `bpf_perf_event_output()`: writes a record to an event in a perf event array.
pub const PERF_EVENT_OUTPUT: i32 = 25;
/// `bpf_current_task_under_cgroup()`: whether the task is in a cgroup or below it.
pub const TASK_UNDER_CGROUP: i32 = 37;
/// `bpf_probe_read_user()`: copies bytes of user memory; 0, or a negative errno.
pub const READ_USER: i32 = 112;
/// `bpf_probe_read_kernel()`: the same for kernel memory.
pub const READ_KERNEL: i32 = 113;
/// `bpf_probe_read_user_str()`: copies a string up to its NUL, and returns the number of bytes with the NUL.
pub const READ_USER_TEXT: i32 = 114;
/// `bpf_probe_read_kernel_str()`: the same for kernel memory.
pub const READ_KERNEL_TEXT: i32 = 115;
/// `bpf_task_storage_get()`: a pointer to a task's value in a map, or null.
pub const TASK_STORAGE_GET: i32 = 156;
/// `bpf_get_current_task_btf()`: a typed pointer to the current task, as task storage requires.
pub const GET_CURRENT_TASK: i32 = 158;

/// `BPF_PSEUDO_MAP_FD`, `BPF_PSEUDO_CALL` and `BPF_PSEUDO_FUNC`: values of the source register that say what the
/// immediate is.
const MAP_FD: u8 = 1;
const OF_PROGRAM: u8 = 1;
const FUNCTION: u8 = 4;

/// The register that points to the top of the stack.
pub const STACK: u8 = 10;

const EXIT: u8 = 0x95;
const CALL: u8 = 0x85;
const JUMP: u8 = 0x05;
const LOAD_LONG: u8 = 0x18;

fn instruction(code: u8, to: u8, from: u8, off: i16, imm: i32) -> Instruction {
    let mut one = Instruction { code, off, imm, ..Default::default() };
    one.set_dst_reg(to);
    one.set_src_reg(from);
    one
}

/// Returns the size bits of an access to this many bytes.
fn width(bytes: u8) -> u8 {
    match bytes {
        1 => 0x10,
        2 => 0x08,
        4 => 0x00,
        _ => 0x18,
    }
}

/// `to = *(from + off)`, of 1, 2, 4 or 8 bytes.
pub fn load(to: u8, from: u8, off: i16, bytes: u8) -> Instruction {
    instruction(0x61 | width(bytes), to, from, off, 0)
}

/// `*(to + off) = from`, of 1, 2, 4 or 8 bytes.
pub fn store(to: u8, off: i16, from: u8, bytes: u8) -> Instruction {
    instruction(0x63 | width(bytes), to, from, off, 0)
}

/// `*(to + off) = 0`, of 8 bytes.
pub fn clear(to: u8, off: i16) -> Instruction {
    instruction(0x7a, to, 0, off, 0)
}

/// `to = from`, 64 bits.
pub fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

/// `to = number`, 32 bits; the upper bits become 0.
pub fn set(to: u8, number: i32) -> Instruction {
    instruction(0xb4, to, 0, 0, number)
}

/// `to += number`, 64 bits; the number is sign-extended.
pub fn add(to: u8, number: i32) -> Instruction {
    instruction(0x07, to, 0, 0, number)
}

/// `to += from`, 64 bits.
pub fn add_register(to: u8, from: u8) -> Instruction {
    instruction(0x0f, to, from, 0, 0)
}

/// `to &= number`, 64 bits; the number is sign-extended.
pub fn and(to: u8, number: i32) -> Instruction {
    instruction(0x57, to, 0, 0, number)
}

/// Loads a map by its descriptor: two instructions.
pub fn map(to: u8, fd: i32) -> [Instruction; 2] {
    [instruction(LOAD_LONG, to, MAP_FD, 0, fd), Instruction::default()]
}

/// Calls a helper by its number. Its arguments are in registers 1 to 5, its result in register 0.
pub fn call(helper: i32) -> Instruction {
    instruction(CALL, 0, 0, 0, helper)
}

/// Jumps always. This distance and those of other jumps are in instructions, from the next one.
pub fn jump(off: i16) -> Instruction {
    instruction(JUMP, 0, 0, off, 0)
}

/// Jumps if the lower 32 bits are this number.
pub fn jump_if(register: u8, number: i32, off: i16) -> Instruction {
    instruction(0x16, register, 0, off, number)
}

/// Jumps if a pointer is null.
pub fn jump_if_null(register: u8, off: i16) -> Instruction {
    instruction(0x15, register, 0, off, 0)
}

/// Jumps unless the lower 32 bits are this number.
pub fn jump_unless(register: u8, number: i32, off: i16) -> Instruction {
    instruction(0x56, register, 0, off, number)
}

/// Returns whether an instruction is a conditional jump that rtrace writes.
pub fn is_branch(one: &Instruction) -> bool {
    matches!(one.code, 0x15 | 0x16 | 0x56)
}

/// Returns from the function, or from the program; register 0 is the result.
pub fn exit() -> Instruction {
    instruction(EXIT, 0, 0, 0, 0)
}

/// Returns whether an instruction is the return from a function or from the program.
pub fn is_exit(one: &Instruction) -> bool {
    one.code == EXIT
}

/// Returns the distance from the next instruction to the function of the same program that this instruction calls or
/// loads.
pub fn function_named(one: &Instruction) -> Option<i32> {
    let names = one.code == CALL && one.src_reg() == OF_PROGRAM || one.code == LOAD_LONG && one.src_reg() == FUNCTION;
    names.then_some(one.imm)
}

/// Returns how many bytes below the top of the stack an access is that uses the stack register.
pub fn below_top(one: &Instruction) -> Option<u32> {
    let base = match one.code & 0x07 {
        1 => one.src_reg(),
        2 | 3 => one.dst_reg(),
        _ => return None,
    };
    (base == STACK && one.off < 0).then(|| u32::from(one.off.unsigned_abs()))
}

/// Returns the register that becomes a copy of the stack register.
pub fn copies_top(one: &Instruction) -> Option<u8> {
    (one.code == 0xbf && one.src_reg() == STACK).then(|| one.dst_reg())
}

/// Returns the register from which an instruction subtracts a constant, and the constant.
pub fn subtracts(one: &Instruction) -> Option<(u8, u32)> {
    (one.code == 0x07 && one.imm < 0).then(|| (one.dst_reg(), one.imm.unsigned_abs()))
}
