//! The values of printed constants by their names, for conditions such as `sig == USR1`.
//!
//! The decoders translate a number to names; this module translates a name back to a number. The kind of an argument
//! determines which families of names it prints.

use super::row::{ArgumentKind, ConstantTable, Return};
use super::{errno, signal};
use crate::event::Abi;
use crate::kernel::constant::Constant;
use smallvec::{SmallVec, smallvec};

/// A field of a number that packs several values: the table of its constants, and its position.
#[derive(Clone, Copy, Debug)]
pub struct PackedField {
    /// The names of the field's values. [`PackedField::put`] converts the values to those in the number.
    pub table: &'static ConstantTable,
    /// The bits that hold a value of the table; 0 if each constant is compared with its own bits.
    pub mask: u64,
    /// Converts a value of the table to its position in the number.
    pub put: fn(u64) -> u64,
}

/// A set of names that a value is printed with.
#[derive(Clone, Debug)]
enum Family {
    Table(&'static ConstantTable),
    Packed(PackedField),
    /// Signals, with and without the prefix: USR1, SIGUSR1, RT_3.
    Signals,
    /// Names of errors. In a return value (`returned`), they stand for the negative number.
    Errnos {
        returned: bool,
    },
    /// A single name and its value.
    One(&'static str, i32),
    /// The names in the print format of a tracepoint.
    Printed(Vec<(String, Constant)>),
}

/// The names that the values of an argument, a return or a field are printed with.
#[derive(Clone, Debug, Default)]
pub struct Constants(SmallVec<[Family; 1]>);

impl Constants {
    /// Returns the constants of an argument of this kind in the calls of an ABI.
    pub fn of_kind(kind: &ArgumentKind, abi: Abi) -> Constants {
        Constants(match kind {
            ArgumentKind::Table(table) => smallvec![Family::Table(table.in_abi(abi))],
            ArgumentKind::Custom(_, fields) => packed(fields, abi).collect(),
            ArgumentKind::Signal => smallvec![Family::Signals],
            ArgumentKind::DirFd => smallvec![Family::One("AT_FDCWD", -100), Family::One("CWD", -100)],
            // They are compared as text.
            ArgumentKind::Path | ArgumentKind::Str => SmallVec::new(),
            ArgumentKind::Address => smallvec![Family::One("NULL", 0)],
            kind if !kind.is_in_register() => smallvec![Family::One("NULL", 0)],
            _ => SmallVec::new(),
        })
    }

    /// Returns the constants of a return value.
    pub fn of_return(returns: Return, abi: Abi) -> Constants {
        let mut families: SmallVec<[Family; 1]> = smallvec![Family::Errnos { returned: true }];
        match returns {
            Return::Table(table) => families.push(Family::Table(table.in_abi(abi))),
            Return::Custom(_, fields) => families.extend(packed(fields, abi)),
            Return::Ready => families.push(Family::One("Timeout", 0)),
            _ => {}
        }
        Constants(families)
    }

    /// Returns the constants of `errno`.
    pub fn of_errno() -> Constants {
        Constants(smallvec![Family::Errnos { returned: false }])
    }

    /// Returns the constants of a tracepoint field that is a signal number.
    pub fn of_signal() -> Constants {
        Constants(smallvec![Family::Signals])
    }

    /// Returns the constants of a field whose names are in the print format of its tracepoint.
    pub fn printed(names: Vec<(String, Constant)>) -> Constants {
        Constants(smallvec![Family::Printed(names)])
    }

    /// Adds the constants of another kind, which the same argument has in some calls.
    pub fn and(mut self, others: Constants) -> Constants {
        self.0.extend(others.0);
        self
    }

    /// Returns the value of a name, which may lack the prefix of its table.
    pub fn find(&self, name: &str) -> Option<Constant> {
        self.0.iter().find_map(|family| family.find(name))
    }

    /// Returns all names, without and with the prefixes of their tables.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(Family::names).collect()
    }
}

/// Returns the constants that a function of [`super::custom`] prints.
fn packed(fields: &'static [PackedField], abi: Abi) -> impl Iterator<Item = Family> {
    fields.iter().map(move |field| Family::Packed(PackedField { table: field.table.in_abi(abi), ..*field }))
}

impl Family {
    fn find(&self, name: &str) -> Option<Constant> {
        match self {
            Family::Table(table) => table.constant(name),
            Family::Packed(field) => {
                let own = field.table.constant(name)?;
                let value = (field.put)(own.value as u64);
                Some(if field.mask == 0 { Constant::of_bits(value) } else { Constant { value: value.into(), mask: field.mask } })
            }
            Family::Signals => signal::number(name).map(Constant::whole),
            Family::Errnos { returned: false } => errno::number(name).map(Constant::whole),
            // Lines print `ENOENT`; the kernel's sources write `-ENOENT`. Both are accepted.
            Family::Errnos { returned: true } => {
                errno::number(name.strip_prefix('-').unwrap_or(name)).map(|number| Constant::whole(-number))
            }
            Family::One(known, value) => (*known == name).then(|| Constant::whole(*value)),
            Family::Printed(names) => names.iter().find(|(known, _)| known == name).map(|(_, constant)| *constant),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Family::Table(table) => table.all_names(),
            Family::Packed(field) => field.table.all_names(),
            Family::Signals => signal::names().flat_map(|name| [name[3..].to_owned(), name.to_owned()]).collect(),
            Family::Errnos { .. } => errno::names().map(str::to_owned).collect(),
            Family::One(name, _) => vec![(*name).to_owned()],
            Family::Printed(names) => names.iter().map(|(name, _)| name.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::lookup;
    use crate::beauty::tables::SYSCALLS;

    fn constants_of(syscall: &str, argument: &str) -> Constants {
        let row = &SYSCALLS[usize::from(lookup::index_by_name(syscall).unwrap())];
        Constants::of_kind(&row.args.iter().find(|arg| arg.name == argument).unwrap().kind, Abi::X86_64)
    }

    #[test]
    fn printed_names_are_found_with_and_without_their_prefix() {
        let value = |syscall, argument, name| constants_of(syscall, argument).find(name).map(|constant| constant.value);
        assert_eq!(value("kill", "sig", "USR1"), Some(10));
        assert_eq!(value("kill", "sig", "SIGRT_2"), Some(34));
        assert_eq!(value("openat", "dfd", "CWD"), Some(-100));
        assert_eq!(value("openat", "flags", "O_RDWR"), Some(2));
        assert_eq!(value("clone", "clone_flags", "CHLD"), Some(17));
        assert_eq!(value("clone", "clone_flags", "CHILD_CLEARTID"), Some(0x0020_0000));
        assert_eq!(value("ioctl", "cmd", "TCGETS"), Some(0x5401));
        assert_eq!(value("ioprio_set", "ioprio", "IOPRIO_CLASS_BE"), Some(2 << 13));
        assert_eq!(value("quotactl", "cmd", "USRQUOTA"), Some(0));
        assert_eq!(value("quotactl", "cmd", "Q_GETQUOTA"), Some(0x8000_0700));
        assert_eq!(value("mknodat", "mode", "IFCHR"), Some(0o020_000));
        assert_eq!(value("munmap", "addr", "NULL"), Some(0));
        assert_eq!(value("kill", "sig", "USR3"), None);
    }

    #[test]
    fn error_names_stand_for_negative_return_values() {
        let ret = Constants::of_return(Return::Fd, Abi::X86_64);
        assert_eq!(ret.find("ENOENT").map(|constant| constant.value), Some(-2));
        assert_eq!(ret.find("-ENOENT"), ret.find("ENOENT"));
        assert_eq!(Constants::of_errno().find("ENOENT").map(|constant| constant.value), Some(2));
        assert_eq!(Constants::of_errno().find("-ENOENT"), None);
    }

    #[test]
    fn a_constant_of_a_bit_field_has_the_mask_of_the_field() {
        assert_eq!(constants_of("openat", "flags").find("RDONLY"), Some(Constant { value: 0, mask: 3 }));
        assert_eq!(constants_of("openat", "flags").find("CREAT"), Some(Constant { value: 0o100, mask: 0o100 }));
        assert_eq!(constants_of("mmap", "prot").find("NONE"), Some(Constant { value: 0, mask: u64::MAX }));
        assert_eq!(constants_of("ioprio_set", "ioprio").find("IOPRIO_CLASS_NONE"), Some(Constant { value: 0, mask: 7 << 13 }));
    }
}
