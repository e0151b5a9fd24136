//! The properties of each syscall that pairing and descriptor tracking use, by ABI and number, taken from the syscall's
//! row.
//!
//! The tables are built once, so that a record costs one array access. Nothing is decoded here: the properties only say
//! which registers hold descriptors and pids.

use super::special::Special;
use crate::beauty::row::{Arg, ArgumentKind, Condition, Return, Syscall};
use crate::beauty::tables::SYSCALLS;
use crate::event::Abi;

/// The properties of one syscall.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behavior {
    /// The effect on the tracked state that the row declares, whatever the arguments are.
    pub special: Special,
    /// Bit i: argument i is a descriptor that the call uses, or the directory that a path starts from.
    pub fds: u8,
    /// Bit i: the call may succeed without using this descriptor (dirfd with an absolute path). A subset of `fds`.
    pub unproved: u8,
    /// Bit i: argument i is a process or thread id.
    pub pids: u8,
    /// Bit i: argument i is a path.
    pub paths: u8,
    /// The kind of the return value, as far as it matters to descriptors and pids.
    pub returns: Returns,
    /// The row, if other arguments select a variant or determine whether an argument is used.
    pub row: Option<&'static Syscall>,
}

/// The kind of a return value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Returns {
    #[default]
    Other,
    /// A new descriptor.
    Fd,
    /// A process or thread id.
    Pid,
    /// An int in the lower half of the register, whose upper half is 0.
    Int32,
}

/// The properties of all syscalls.
#[derive(Clone, Debug)]
pub struct Behaviors {
    by_number: [Vec<Behavior>; 4],
    /// The properties of numbers without a row.
    plain: Behavior,
}

impl Behaviors {
    /// Builds the tables from the decoders' rows, and from the effects of all known syscalls.
    pub fn new(rows: &'static [Syscall]) -> Behaviors {
        let mut all = Behaviors { by_number: Default::default(), plain: Behavior::default() };
        for row in rows {
            for (abi, number) in row.numbers.iter().enumerate() {
                if let Some(number) = number {
                    *all.entry(abi, *number) = Behavior::of_row(row);
                }
            }
        }
        // Entries and exits must be paired correctly whatever rows are passed.
        for row in SYSCALLS.iter().filter(|row| row.does != Special::Plain) {
            for (abi, number) in row.numbers.iter().enumerate() {
                if let Some(number) = number {
                    all.entry(abi, *number).special = row.does;
                }
            }
        }
        all
    }

    /// Returns the properties of the syscall with this number (x32's without bit 30), before its arguments are known. A
    /// number without a row, which may be negative, has no effect.
    #[inline]
    pub fn get(&self, abi: Abi, nr: i64) -> &Behavior {
        usize::try_from(nr).ok().and_then(|nr| self.by_number[abi as usize].get(nr)).unwrap_or(&self.plain)
    }

    fn entry(&mut self, abi: usize, number: u32) -> &mut Behavior {
        let numbers = &mut self.by_number[abi];
        let at = number as usize;
        if numbers.len() <= at {
            numbers.resize(at + 1, Behavior::default());
        }
        &mut numbers[at]
    }
}

impl Behavior {
    fn of_row(row: &'static Syscall) -> Behavior {
        let mut behavior = Behavior { returns: Returns::of(row.returns), ..Behavior::default() };
        behavior.add_args(row.args);
        let depends = !row.variants.is_empty() || row.args.iter().any(|arg| arg.used != Condition::Always);
        behavior.row = depends.then_some(row);
        behavior
    }

    fn add_args(&mut self, args: &[Arg]) {
        for (i, arg) in args.iter().enumerate().take(6) {
            match arg.kind {
                ArgumentKind::Fd => self.fds |= 1 << i,
                ArgumentKind::DirFd => {
                    self.fds |= 1 << i;
                    self.unproved |= 1 << i;
                }
                ArgumentKind::Pid => self.pids |= 1 << i,
                ArgumentKind::Path => self.paths |= 1 << i,
                _ => {}
            }
        }
    }

    /// Returns the properties of a call with these arguments: those of its variant, without unused arguments.
    #[inline]
    pub fn with(&self, args: &[u64; 6]) -> Behavior {
        match self.row {
            None => *self,
            Some(row) => self.resolved(row, args),
        }
    }

    fn resolved(&self, row: &'static Syscall, args: &[u64; 6]) -> Behavior {
        let signature = row.signature_of(args);
        let mut behavior =
            Behavior { special: self.special, returns: Returns::of(signature.returns), row: self.row, ..Behavior::default() };
        behavior.add_args(signature.args);
        let used = (0..signature.args.len().min(6)).filter(|at| signature.uses(*at, args)).fold(0, |bits, at| bits | 1 << at);
        behavior.fds &= used;
        behavior.pids &= used;
        behavior.paths &= used;
        behavior
    }
}

impl Returns {
    /// Returns the value of a return register, with the sign that the call's return has.
    #[inline]
    pub fn extended(self, ret: i64) -> i64 {
        if self == Returns::Int32 { i64::from(ret as i32) } else { ret }
    }

    fn of(returns: Return) -> Returns {
        match returns {
            Return::Fd => Returns::Fd,
            Return::Pid => Returns::Pid,
            Return::Int32 => Returns::Int32,
            _ => Returns::Other,
        }
    }
}

/// Returns whether a call can change the file that a descriptor number refers to. (Calls that only allocate unused
/// numbers, as pipe does, do not change known ones.)
pub fn may_change_descriptors(row: &Syscall) -> bool {
    let returns_one = row.signatures().any(|signature| matches!(signature.returns, Return::Fd));
    let plain = matches!(
        row.does,
        Special::Plain | Special::Exit | Special::ExitGroup | Special::SigReturn | Special::Splice | Special::Setns | Special::Rename
    );
    returns_one || !plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_syscalls_do_not_depend_on_the_rows() {
        let all = Behaviors::new(&[]);
        assert_eq!(all.get(Abi::X86_64, 59).special, Special::Execve);
        assert_eq!(all.get(Abi::I386, 59).special, Special::Plain);
        assert_eq!(all.get(Abi::X32, 520).special, Special::Execve);
        assert_eq!(all.get(Abi::Aarch64, 221).special, Special::Execve);
        assert_eq!(all.get(Abi::I386, 119).special, Special::SigReturn, "sigreturn");
        assert_eq!(all.get(Abi::I386, 102).special, Special::MaybeDescriptor, "socketcall");
        assert_eq!(all.get(Abi::I386, 221).special, Special::Fcntl, "fcntl64");
        assert_eq!(all.get(Abi::X86_64, -1).special, Special::Plain);
        assert_eq!(all.get(Abi::X86_64, i64::MAX).special, Special::Plain);
    }
}
