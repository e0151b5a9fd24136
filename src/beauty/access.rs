//! Paths into a value: the members of structs and elements of arrays that conditions name (`statbuf.st_size`,
//! `argv[1]`, `events[*].data`).
//!
//! [`target`] follows a path through the rows, before there is a call, and [`each`] follows it through a decoded value.
//! These are two walks because they answer different questions: before a call, it is open which struct a member selects
//! and how long an array is, so the rows yield the union of all possible targets; a value has one of them, and also the
//! parts that are missing or unknown.

use super::constant::Constants;
use super::contents::{Contents, contents};
use super::row::{Arg, ArgumentKind, Condition, MemoryNumber, MemoryType, Struct, StructLayout};
use super::tables::structs;
use super::value::Value;
use crate::event::{Abi, File};

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A member of a struct, or a property of a descriptor (`path`) or a device number (`major`, `minor`).
    Member(Box<str>),
    /// The element of an array with this index, from 0.
    Element(u32),
    /// Every element of an array.
    AnyElement,
}

/// The values that a path can lead to, according to the rows.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The value is a number in some calls.
    pub is_number: bool,
    /// The value is text in some calls.
    pub is_text: bool,
    /// The constants by which the number is printed.
    pub constants: Constants,
    /// The place of the number in the memory that the argument points to. It is there only if every such argument has
    /// the number there, and if the decoded value is equal to the number in memory.
    pub place: Option<Place>,
}

/// A number at a fixed place in the memory that an argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The distance in bytes from the address in the argument.
    pub offset: u32,
    /// The size of the number: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether the number is negative if its highest bit is set.
    pub signed: bool,
    /// Whether the number is in network byte order.
    pub big_endian: bool,
}

impl Target {
    fn text() -> Target {
        Target { is_text: true, ..Target::default() }
    }

    fn number(constants: Constants) -> Target {
        Target { is_number: true, constants, ..Target::default() }
    }

    /// Returns a target that may be either of two.
    pub fn or(self, other: Target) -> Target {
        Target {
            is_number: self.is_number || other.is_number,
            is_text: self.is_text || other.is_text,
            constants: self.constants.and(other.constants),
            place: None,
        }
    }

    /// Returns the target in memory that begins `offset` bytes after the argument's address.
    fn after(self, offset: u32) -> Target {
        let place = self.place.and_then(|place| Some(Place { offset: place.offset.checked_add(offset)?, ..place }));
        Target { place, ..self }
    }

    /// Returns the target without its place: it is in other memory, or not in every call.
    fn anywhere(self) -> Target {
        Target { place: None, ..self }
    }
}

/// Returns the target of the steps from an argument in the calls of an ABI. Bytes that may be the messages of a socket
/// have the targets of both.
pub fn argument_target(arg: &Arg, steps: &[Step], abi: Abi) -> Option<Target> {
    let own = target(&arg.kind, steps, abi);
    let is_data = arg.socket.is_some() && matches!(arg.kind, ArgumentKind::Bytes) && !steps.is_empty();
    let messages = if is_data { in_struct(&structs::NETLINK_MESSAGES, steps, abi) } else { None };
    own.into_iter().chain(messages).reduce(Target::or)
}

/// Returns the target of the steps from an argument or a number in memory of this kind, in the calls of an ABI. Returns
/// `None` if they lead nowhere.
pub fn target(kind: &ArgumentKind, steps: &[Step], abi: Abi) -> Option<Target> {
    match (kind, steps) {
        (ArgumentKind::Path | ArgumentKind::Str, []) => Some(Target::text()),
        (ArgumentKind::Bytes, []) => Some(Target::number(Constants::of_kind(kind, abi)).or(Target::text())),
        // The functions decode numbers or Internet addresses. The latter are compared as text.
        (ArgumentKind::Custom(..), []) => Some(Target::number(Constants::of_kind(kind, abi)).or(Target::text())),
        (_, []) => Some(Target::number(Constants::of_kind(kind, abi))),
        (ArgumentKind::Fd | ArgumentKind::DirFd, [Step::Member(name)]) if **name == *"path" => Some(Target::text()),
        (ArgumentKind::Dev, [Step::Member(name)]) if matches!(&**name, "major" | "minor") => Some(Target::number(Constants::default())),
        (ArgumentKind::Struct(of), _) => in_struct(of, steps, abi),
        (ArgumentKind::StructArray(of), [Step::Element(_) | Step::AnyElement, rest @ ..]) => in_struct(of, rest, abi).map(Target::anywhere),
        (ArgumentKind::StrArray, [Step::Element(_) | Step::AnyElement]) => Some(Target::text()),
        (ArgumentKind::Number { .. }, [Step::Element(_) | Step::AnyElement]) => Some(Target::number(Constants::default())),
        _ => None,
    }
}

fn in_struct(of: &Struct, steps: &[Step], abi: Abi) -> Option<Target> {
    match (&of.layout, steps) {
        (StructLayout::Members(layouts), [Step::Member(name), rest @ ..]) => {
            let member = layouts[abi as usize].iter().find(|member| *member.name == **name);
            let own = member.and_then(|member| {
                let target = in_memory(&member.memory_type, rest, abi)?.after(member.offset);
                let is_always_there = member.used == Condition::Always && of.choice.is_none();
                Some(if is_always_there { target } else { target.anywhere() })
            });
            own.into_iter().chain(chosen(of).filter_map(|of| in_struct(of, steps, abi).map(Target::anywhere))).reduce(Target::or)
        }
        (StructLayout::Number(types), _) => match steps {
            // An argument that points to numbers is an array of them.
            [Step::Element(_) | Step::AnyElement, rest @ ..] => in_memory(&types[abi as usize], rest, abi).map(Target::anywhere),
            _ => in_memory(&types[abi as usize], steps, abi).map(Target::anywhere),
        },
        (StructLayout::Decoder(_), _) => decoded(of, steps, abi).map(Target::anywhere),
        // Without further steps, the value is the address of the memory.
        (StructLayout::Members(_) | StructLayout::Opaque, []) => Some(Target::number(Constants::default())),
        _ => None,
    }
}

/// Returns the structs that a member of this struct can select.
fn chosen(of: &Struct) -> impl Iterator<Item = &'static Struct> {
    of.choice.iter().flat_map(|choice| choice.structs).map(|(_, of)| *of)
}

fn in_memory(of: &MemoryType, steps: &[Step], abi: Abi) -> Option<Target> {
    match (of, steps) {
        (MemoryType::Number(number), []) => Some(Target { place: in_place(number), ..target(&number.kind, steps, abi)? }),
        (MemoryType::Number(number), _) => target(&number.kind, steps, abi).map(Target::anywhere),
        (MemoryType::Text(_) | MemoryType::Bytes(_), []) => Some(Target::text()),
        (MemoryType::Struct(of), _) => in_struct(of, steps, abi),
        (MemoryType::Array { element, stride, count }, [Step::Element(at), rest @ ..]) if at < count => {
            in_memory(element, rest, abi).map(|target| target.after(at * stride))
        }
        (MemoryType::Array { element, .. }, [Step::Element(_) | Step::AnyElement, rest @ ..]) => {
            in_memory(element, rest, abi).map(Target::anywhere)
        }
        _ => None,
    }
}

/// Returns a number at the beginning of memory as a place, if its decoded value is equal to it.
fn in_place(number: &MemoryNumber) -> Option<Place> {
    let is_unchanged = match number.kind {
        ArgumentKind::Long | ArgumentKind::Ulong | ArgumentKind::Hex | ArgumentKind::Size => true,
        ArgumentKind::Table(table) => !number.signed && number.bytes * 8 <= table.bits,
        _ => false,
    };
    let MemoryNumber { bytes, signed, big_endian, .. } = *number;
    is_unchanged.then_some(Place { offset: 0, bytes, signed, big_endian })
}

/// Returns the target of the steps in the value that a function decodes.
fn decoded(of: &Struct, steps: &[Step], abi: Abi) -> Option<Target> {
    let in_any = |structs: &[&Struct], steps: &[Step]| structs.iter().filter_map(|of| in_struct(of, steps, abi)).reduce(Target::or);
    match (contents(of)?, steps) {
        (Contents::Text, []) => Some(Target::text()),
        (Contents::Members(kinds, structs), [Step::Member(name), rest @ ..]) => {
            let own = kinds.iter().find(|(known, _)| **known == **name).and_then(|(_, kind)| target(kind, rest, abi));
            own.into_iter().chain(in_any(structs, steps)).reduce(Target::or)
        }
        (Contents::Structs(structs), [Step::Element(_) | Step::AnyElement, rest @ ..]) => in_any(structs, rest),
        (Contents::Numbers(kind), [Step::Element(_) | Step::AnyElement, rest @ ..]) => target(&kind, rest, abi),
        (Contents::Text, _) => None,
        // Without further steps, the value is the address of the memory.
        (_, []) => Some(Target::number(Constants::default())),
        _ => None,
    }
}

/// Returns the names of the members that a value of this kind can have at its first step.
pub fn member_names(kind: &ArgumentKind, abi: Abi) -> Vec<&'static str> {
    match kind {
        ArgumentKind::Struct(of) => names_in(of, abi),
        _ => Vec::new(),
    }
}

fn names_in(of: &Struct, abi: Abi) -> Vec<&'static str> {
    match &of.layout {
        StructLayout::Members(layouts) => {
            let own = layouts[abi as usize].iter().map(|member| member.name);
            own.chain(chosen(of).flat_map(|of| names_in(of, abi))).collect()
        }
        StructLayout::Decoder(_) => match contents(of) {
            Some(Contents::Members(kinds, structs)) => {
                kinds.iter().map(|(name, _)| *name).chain(structs.iter().flat_map(|of| names_in(of, abi))).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The part of a value that a path leads to.
#[derive(Debug)]
pub enum Found<'v, 'a> {
    Value(&'v Value<'a>),
    Number(i128),
    /// The file behind a descriptor; `None` if it is not known.
    File(Option<&'a File>),
    /// The value has no such part: the member belongs to another struct, or the element is after the last one.
    Absent,
    /// The part was not copied or could not be read.
    Unknown,
}

/// Visits each part that the steps lead to. This is one part of the value, or one part of each element with
/// [`Step::AnyElement`].
pub fn each<'a>(value: &Value<'a>, steps: &[Step], visit: &mut dyn FnMut(Found<'_, 'a>)) {
    let Some((step, rest)) = steps.split_first() else { return visit(Found::Value(value)) };
    match (step, value) {
        // A NULL pointer points to no memory.
        (_, Value::Unread(0)) => visit(Found::Absent),
        (_, Value::Unread(_) | Value::Unknown | Value::Uncopied { .. }) => visit(Found::Unknown),
        (Step::Member(name), Value::Struct(of)) => match of.members.iter().find(|(known, _)| **known == **name) {
            Some((_, member)) => each(member, rest, visit),
            None => visit(if of.more { Found::Unknown } else { Found::Absent }),
        },
        (Step::Member(name), Value::Fd { file, .. } | Value::DirFd { file, .. }) if **name == *"path" => visit(Found::File(*file)),
        (Step::Member(name), Value::Dev { major, minor }) => visit(match &**name {
            "major" => Found::Number((*major).into()),
            "minor" => Found::Number((*minor).into()),
            _ => Found::Absent,
        }),
        (Step::Element(at), Value::Array(array)) => match array.items.get(*at as usize) {
            Some(element) => each(element, rest, visit),
            None => visit(if array.more { Found::Unknown } else { Found::Absent }),
        },
        (Step::AnyElement, Value::Array(array)) => {
            array.items.iter().for_each(|element| each(element, rest, visit));
            if array.more {
                visit(Found::Unknown);
            }
        }
        (Step::AnyElement, Value::AllBut(others)) => {
            const SIGNALS: i32 = 64;
            let others = |signal: &i32| others.items.contains(&Value::Signal(*signal));
            (1..=SIGNALS).filter(|signal| !others(signal)).for_each(|signal| visit(Found::Number(signal.into())));
        }
        _ => visit(Found::Absent),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lookup;
    use super::super::tables::SYSCALLS;
    use super::super::value::{ArrayValue, StructValue};
    use super::*;

    const ABI: Abi = Abi::X86_64;

    fn kind(syscall: &str, argument: &str) -> &'static ArgumentKind {
        let row = &SYSCALLS[usize::from(lookup::index_by_name(syscall).unwrap())];
        &row.args.iter().find(|arg| arg.name == argument).unwrap().kind
    }

    fn member(name: &str) -> Step {
        Step::Member(name.into())
    }

    /// Returns whether the target is a number, and whether it is text.
    fn types(syscall: &str, argument: &str, steps: &[Step]) -> Option<(bool, bool)> {
        target(kind(syscall, argument), steps, ABI).map(|target| (target.is_number, target.is_text))
    }

    #[test]
    fn rows_say_what_a_path_leads_to() {
        let (number, text, either) = (Some((true, false)), Some((false, true)), Some((true, true)));
        assert_eq!(types("newfstatat", "statbuf", &[member("st_size")]), number);
        assert_eq!(types("newfstatat", "statbuf", &[member("st_sice")]), None);
        assert_eq!(types("newfstatat", "statbuf", &[]), number, "its address");
        assert_eq!(types("newfstatat", "statbuf", &[Step::Element(0)]), None);
        assert_eq!(types("execve", "argv", &[Step::Element(1)]), text);
        assert_eq!(types("write", "buf", &[]), either);
        assert_eq!(types("poll", "ufds", &[Step::AnyElement, member("fd"), member("path")]), text);
        assert_eq!(types("connect", "uservaddr", &[member("sin_port")]), number);
        assert_eq!(types("connect", "uservaddr", &[member("sin6_addr")]), text);
        assert_eq!(types("connect", "uservaddr", &[member("st_size")]), None);
        assert_eq!(types("rt_sigprocmask", "nset", &[Step::AnyElement]), number);
        assert_eq!(types("getdents64", "dirent", &[Step::Element(0), member("d_name")]), text);
        assert_eq!(types("recvmsg", "msg", &[member("msg_iov"), Step::Element(0), member("iov_base")]), either);
    }

    #[test]
    fn constants_of_a_member_are_those_that_its_line_prints() {
        let constant = |syscall, argument, steps: &[Step], name| {
            target(kind(syscall, argument), steps, ABI).and_then(|target| target.constants.find(name)).map(|constant| constant.value)
        };
        assert_eq!(constant("poll", "ufds", &[Step::AnyElement, member("events")], "POLLIN"), Some(1));
        assert_eq!(constant("rt_sigprocmask", "nset", &[Step::AnyElement], "USR1"), Some(10));
        assert_eq!(constant("connect", "uservaddr", &[member("sin_family")], "AF_INET"), Some(2));
    }

    fn found(value: &Value, steps: &[Step]) -> Vec<String> {
        let mut all = Vec::new();
        each(value, steps, &mut |found| {
            all.push(match found {
                Found::Value(value) => format!("{value:?}"),
                Found::Number(number) => number.to_string(),
                other => format!("{other:?}"),
            });
        });
        all
    }

    #[test]
    fn a_path_leads_to_parts_of_a_value() {
        let pair = |number, more| {
            Value::Struct(StructValue { name: "pair", address: 1, members: vec![("a", Value::Int(number)), ("b", Value::Unread(0))], more })
        };
        let pairs = |more| Value::Array(ArrayValue { address: 1, items: vec![pair(5, false), pair(6, true)], more });
        let path = |steps: &[Step]| found(&pairs(false), steps);
        assert_eq!(path(&[Step::Element(1), member("a")]), ["Int(6)"]);
        assert_eq!(path(&[Step::AnyElement, member("a")]), ["Int(5)", "Int(6)"]);
        assert_eq!(path(&[Step::Element(2), member("a")]), ["Absent"]);
        assert_eq!(path(&[Step::AnyElement, member("c")]), ["Absent", "Unknown"], "the second struct is longer than its members");
        assert_eq!(path(&[Step::Element(0), member("b"), member("c")]), ["Absent"], "a null pointer");
        assert_eq!(found(&pairs(true), &[Step::Element(2)]), ["Unknown"]);
        assert_eq!(found(&pairs(true), &[Step::AnyElement, member("a")]), ["Int(5)", "Int(6)", "Unknown"]);
        assert_eq!(found(&Value::Unread(0x1000), &[member("a")]), ["Unknown"]);
        let all_but = Value::AllBut(ArrayValue { address: 1, items: (3..=64).map(Value::Signal).collect(), more: false });
        assert_eq!(found(&all_but, &[Step::AnyElement]), ["1", "2"]);
    }

    #[test]
    fn a_number_has_a_place_in_memory_if_its_value_is_the_number() {
        let place = |syscall, argument, steps: &[Step]| target(kind(syscall, argument), steps, ABI).and_then(|target| target.place);
        let size = Place { offset: 48, bytes: 8, signed: true, big_endian: false };
        assert_eq!(place("newfstatat", "statbuf", &[member("st_size")]), Some(size));
        assert_eq!(place("newfstatat", "statbuf", &[member("st_dev")]), None, "device numbers are decoded");
        assert_eq!(place("connect", "uservaddr", &[member("sin_port")]), None, "the family decides which members there are");
        assert_eq!(place("newfstatat", "statbuf", &[]), None, "an address is no number in memory");
        assert_eq!(place("poll", "ufds", &[Step::Element(0), member("events")]), None, "there may be no element");
        assert_eq!(place("sendmsg", "msg", &[member("msg_iov"), Step::Element(0), member("iov_len")]), None, "it is behind a pointer");
        let nanoseconds = Place { offset: 8, ..size };
        assert_eq!(place("clock_nanosleep", "rqtp", &[member("tv_nsec")]), Some(nanoseconds));
    }
}
