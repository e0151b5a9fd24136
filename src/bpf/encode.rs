//! What the programs are asked, as their constants: the mirror of `plan.h`.

use super::capture::{self, Op};
use super::settings::{Seed, Settings, Whose};
use crate::beauty::lookup;
use crate::beauty::row::Return;
use crate::beauty::tables::SYSCALLS;
use crate::event::Abi;
use crate::syscall::special::{self, Special};

/// `NR_COUNT`, `OPS_MAX`: numbers that have a plan in each ABI, and the operations of one.
const NR_COUNT: usize = 1024;
pub(super) const OPS_MAX: usize = 6;
/// `sizeof(struct plan)`
pub(super) const PLAN_BYTES: usize = 8 + OPS_MAX * capture::OP_BYTES;

/// `PLAN_*`
const WANTED: u16 = 1;
const EXIT_MATTERS: u16 = 2;
const CLONES: u16 = 4;
const EXECUTES: u16 = 8;
const NEVER_RETURNS: u16 = 16;
const SIGRETURN: u16 = 32;
const OPENS: u16 = 64;
const WORKS_AT_EXIT: u16 = 128;

impl Seed {
    /// A key of the map `seeds`.
    pub(super) fn key(self) -> u64 {
        match self {
            Seed::Task(tid) => u64::from(tid as u32),
            Seed::Process(pid) => u64::from(pid as u32) | 1 << 32,
        }
    }
}

impl Settings {
    /// The bytes of `struct settings`.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let scope = match self.whose {
            Whose::Tasks => 0u32,
            Whose::Everyone => 1,
            Whose::Cgroup(_) => 2,
        };
        let sigreturn = self.unknown || self.calls.iter().any(|row| Special::of_name(row.name) == Special::SigReturn);
        let words = [scope, self.inherit.into(), self.ends.into(), self.pending_after, sigreturn.into(), self.string_limit as u32];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// The bytes of `plans`: one of each number in each ABI, and one for all other numbers.
    pub(super) fn plans(&self) -> Vec<u8> {
        let mut bytes = vec![0; (Abi::ALL.len() * NR_COUNT + 1) * PLAN_BYTES];
        let mut wanted = vec![false; SYSCALLS.len()];
        self.calls.iter().filter_map(|call| lookup::index_by_name(call.name)).for_each(|row| wanted[usize::from(row)] = true);
        let mut plans = bytes.chunks_exact_mut(PLAN_BYTES);
        for (abi, plan) in Abi::ALL.into_iter().flat_map(|abi| (0..NR_COUNT as u32).map(move |nr| (abi, nr))).zip(&mut plans) {
            self.fill(plan, &wanted, abi.0, abi.1);
        }
        plans.for_each(|other| put_flags(other, if self.unknown { WANTED } else { 0 }));
        for (_, special, numbers) in special::ROWS {
            let flags = flags_of(*special);
            for (abi, nr) in numbers.iter().enumerate().filter_map(|(abi, nr)| Some((abi, (*nr)? as usize))) {
                let place = (abi * NR_COUNT + nr) * PLAN_BYTES;
                put_flags(&mut bytes[place..place + PLAN_BYTES], flags);
            }
        }
        bytes
    }

    fn fill(&self, plan: &mut [u8], wanted: &[bool], abi: Abi, nr: u32) {
        match lookup::index(abi, i64::from(nr)).map(usize::from) {
            Some(index) if wanted[index] => {
                let row = &SYSCALLS[index];
                let ops = capture::ops(row, abi, self.string_limit);
                let opens = if matches!(row.returns, Return::Fd) { OPENS | WORKS_AT_EXIT } else { 0 };
                let works_at_exit = if ops.iter().any(|op| op.is_at_exit()) { WORKS_AT_EXIT } else { 0 };
                put_flags(plan, WANTED | opens | works_at_exit);
                put_ops(plan, &ops);
                plan[3] = capture::descriptors(row);
            }
            Some(_) => {}
            None => {
                let has_name = lookup::other_name(abi, i64::from(nr)).is_some();
                if if has_name { self.others.contains(&(abi, nr)) } else { self.unknown } {
                    put_flags(plan, WANTED);
                }
            }
        }
    }
}

/// What a call is to the programs, wanted or not.
fn flags_of(special: Special) -> u16 {
    match special {
        // execveat returns under execve's number when it changes the ABI.
        Special::Execve | Special::Execveat => EXECUTES | EXIT_MATTERS,
        Special::Clone => CLONES,
        Special::Exit | Special::ExitGroup => NEVER_RETURNS,
        Special::SigReturn => SIGRETURN,
        _ => 0,
    }
}

fn put_flags(plan: &mut [u8], flags: u16) {
    let now = u16::from_ne_bytes([plan[0], plan[1]]) | flags;
    plan[..2].copy_from_slice(&now.to_ne_bytes());
}

fn put_ops(plan: &mut [u8], ops: &[Op]) {
    plan[2] = ops.len() as u8;
    for (place, op) in plan[8..].chunks_exact_mut(capture::OP_BYTES).zip(ops) {
        place.copy_from_slice(&op.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::row::Syscall;

    fn settings(calls: Vec<&'static Syscall>, unknown: bool) -> Settings {
        Settings {
            whose: Whose::Tasks,
            seeds_max: 1,
            inherit: true,
            ends: true,
            pending_after: 5,
            calls,
            others: Vec::new(),
            unknown,
            string_limit: 32,
        }
    }

    fn row(name: &str) -> &'static Syscall {
        &SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())]
    }

    /// Flags, count of operations, descriptors.
    fn plan(bytes: &[u8], abi: Abi, nr: usize) -> (u16, u8, u8) {
        let plan = &bytes[(abi as usize * NR_COUNT + nr) * PLAN_BYTES..][..PLAN_BYTES];
        (u16::from_ne_bytes([plan[0], plan[1]]), plan[2], plan[3])
    }

    #[test]
    fn only_what_is_asked_for_is_wanted_in_every_abi() {
        let bytes = settings(vec![row("openat"), row("close")], false).plans();
        assert_eq!(bytes.len(), (4 * NR_COUNT + 1) * PLAN_BYTES);
        assert_eq!(plan(&bytes, Abi::X86_64, 257), (WANTED | OPENS | WORKS_AT_EXIT, 1, 1));
        assert_eq!(plan(&bytes, Abi::I386, 295), (WANTED | OPENS | WORKS_AT_EXIT, 1, 1));
        assert_eq!(plan(&bytes, Abi::X86_64, 3), (WANTED, 0, 1));
        assert_eq!(plan(&bytes, Abi::X86_64, 0), (0, 0, 0));
        assert_eq!(plan(&bytes, Abi::X86_64, 59), (EXECUTES | EXIT_MATTERS, 0, 0), "its exit may be another's");
        assert_eq!(plan(&bytes, Abi::X86_64, NR_COUNT - 1), (0, 0, 0));
        assert_eq!(bytes[bytes.len() - PLAN_BYTES..][..2], [0, 0]);
    }

    #[test]
    fn numbers_without_a_name_are_wanted_where_all_were_meant() {
        let all_but_read = SYSCALLS.iter().filter(|row| row.name != "read").collect();
        let bytes = settings(all_but_read, true).plans();
        assert_eq!(plan(&bytes, Abi::X86_64, 0).0 & WANTED, 0, "it was taken away");
        assert_eq!(plan(&bytes, Abi::X86_64, NR_COUNT - 1), (WANTED, 0, 0));
        assert_eq!(plan(&bytes, Abi::X86_64, 60).0, WANTED | NEVER_RETURNS);
        assert_eq!(bytes[bytes.len() - PLAN_BYTES..][..2], WANTED.to_ne_bytes());
    }

    #[test]
    fn rt_sigreturn_is_told_apart() {
        let at = |calls| settings(calls, false).bytes()[16];
        assert_eq!((at(vec![row("read")]), at(vec![row("read"), row("rt_sigreturn")])), (0, 1));
    }
}
