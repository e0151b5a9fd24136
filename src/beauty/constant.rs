//! The constants that lines print for a number, from their names: what a condition such as `sig == USR1` compares with.
//!
//! Each kind of argument says which families of names it prints. The decoders go from a number to names, this module
//! goes back.

use super::row::{Kind, Return, Table};
use super::{errno, signal};
use crate::event::Abi;
use crate::kernel::constant::Constant;
use smallvec::{SmallVec, smallvec};

/// Where a table's values stand in a number that is put together of several.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub table: &'static Table,
    /// The bits that hold one of the table's values; 0 where each constant has bits of its own.
    pub mask: u64,
    /// From the table's value to the number.
    pub put: fn(u64) -> u64,
}

/// Names that have something in common.
#[derive(Clone, Debug)]
enum Family {
    Table(&'static Table),
    Place(Place),
    /// USR1, SIGUSR1, RT_3
    Signals,
    /// The names of `errno`; what a call returns is the negative number.
    Errnos {
        returned: bool,
    },
    /// One name.
    One(&'static str, i32),
    /// What a tracepoint's print format prints.
    Printed(Vec<(String, Constant)>),
}

/// All the names that one kind of argument, return or field prints.
#[derive(Clone, Debug, Default)]
pub struct Constants(SmallVec<[Family; 1]>);

impl Constants {
    /// Those of an argument, in the calls of an ABI.
    pub fn of_kind(kind: &Kind, abi: Abi) -> Constants {
        Constants(match kind {
            Kind::Table(table) => smallvec![Family::Table(table.in_abi(abi))],
            Kind::Custom(_, places) => {
                places.iter().map(|place| Family::Place(Place { table: place.table.in_abi(abi), ..*place })).collect()
            }
            Kind::Signal => smallvec![Family::Signals],
            Kind::DirFd => smallvec![Family::One("AT_FDCWD", -100), Family::One("CWD", -100)],
            Kind::Address | Kind::Bytes | Kind::StrArray | Kind::Struct(_) | Kind::StructArray(_) | Kind::Number { .. } | Kind::Pointer => {
                smallvec![Family::One("NULL", 0)]
            }
            _ => SmallVec::new(),
        })
    }

    /// Those of what a call returns.
    pub fn of_return(returns: Return, abi: Abi) -> Constants {
        let mut families: SmallVec<[Family; 1]> = smallvec![Family::Errnos { returned: true }];
        match returns {
            Return::Table(table) => families.push(Family::Table(table.in_abi(abi))),
            Return::Ready => families.push(Family::One("Timeout", 0)),
            _ => {}
        }
        Constants(families)
    }

    /// Those of `errno`.
    pub fn of_errno() -> Constants {
        Constants(smallvec![Family::Errnos { returned: false }])
    }

    /// Those of a field that is a signal.
    pub fn of_signal() -> Constants {
        Constants(smallvec![Family::Signals])
    }

    /// Those that a tracepoint's print format has for a field.
    pub fn printed(names: Vec<(String, Constant)>) -> Constants {
        Constants(smallvec![Family::Printed(names)])
    }

    /// With those of another kind, which the same argument has in some calls.
    pub fn and(mut self, others: Constants) -> Constants {
        self.0.extend(others.0);
        self
    }

    /// What a name stands for, with or without the prefix of its table.
    pub fn find(&self, name: &str) -> Option<Constant> {
        self.0.iter().find_map(|family| family.find(name))
    }

    /// All names, as lines print them and with their prefixes.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(Family::names).collect()
    }
}

impl Family {
    fn find(&self, name: &str) -> Option<Constant> {
        match self {
            Family::Table(table) => table.constant(name),
            Family::Place(place) => {
                let own = place.table.constant(name)?;
                let value = (place.put)(own.value as u64);
                Some(if place.mask == 0 { Constant::of_bits(value) } else { Constant { value: value.into(), mask: place.mask } })
            }
            Family::Signals => signal::number(name).map(Constant::whole),
            Family::Errnos { returned: false } => errno::number(name).map(Constant::whole),
            // `ret == ENOENT` is what the line says, `ret == -ENOENT` what the kernel's sources say.
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
            Family::Place(place) => place.table.all_names(),
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

    fn of(syscall: &str, argument: &str) -> Constants {
        let row = &SYSCALLS[usize::from(lookup::index_by_name(syscall).unwrap())];
        Constants::of_kind(&row.args.iter().find(|arg| arg.name == argument).unwrap().kind, Abi::X86_64)
    }

    #[test]
    fn what_lines_print_is_found_by_its_name() {
        let value = |syscall, argument, name| of(syscall, argument).find(name).map(|constant| constant.value);
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
    fn returns_have_the_names_of_their_errors() {
        let ret = Constants::of_return(Return::Fd, Abi::X86_64);
        assert_eq!(ret.find("ENOENT").map(|constant| constant.value), Some(-2));
        assert_eq!(ret.find("-ENOENT"), ret.find("ENOENT"));
        assert_eq!(Constants::of_errno().find("ENOENT").map(|constant| constant.value), Some(2));
        assert_eq!(Constants::of_errno().find("-ENOENT"), None);
    }

    #[test]
    fn values_of_a_field_speak_of_its_bits() {
        assert_eq!(of("openat", "flags").find("RDONLY"), Some(Constant { value: 0, mask: 3 }));
        assert_eq!(of("openat", "flags").find("CREAT"), Some(Constant { value: 0o100, mask: 0o100 }));
        assert_eq!(of("mmap", "prot").find("NONE"), Some(Constant { value: 0, mask: u64::MAX }));
        assert_eq!(of("ioprio_set", "ioprio").find("IOPRIO_CLASS_NONE"), Some(Constant { value: 0, mask: 7 << 13 }));
    }
}
