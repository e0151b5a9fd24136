//! Parses the section name of a program: its attach point, and the fields of its event.
//!
//! ```text
//! SECTION  PLACE{ ARGUMENT}
//! PLACE    tp/SUBSYSTEM/EVENT  tracepoint/SUBSYSTEM/EVENT  SUBSYSTEM:EVENT
//!          raw_tp/EVENT  raw_tracepoint/EVENT  tp_btf/EVENT
//!          kprobe/FUNCTION[+OFFSET]  kretprobe/FUNCTION  fentry/FUNCTION  fexit/FUNCTION
//!          uprobe/FILE:FUNCTION[+OFFSET]  uretprobe/FILE:FUNCTION
//! ARGUMENT [NAME=]VALUE[:TYPE]
//! VALUE    a field or argument by name | argN | ret | +[u]OFFSET(VALUE)
//! TYPE     u8 u16 u32 u64  s8 s16 s32 s64  x8 x16 x32 x64  string  ustring
//! ```
//!
//! Attach points are written as for libbpf (`.s` for programs that may sleep), arguments as for the kernel's dynamic
//! events. The parser looks nothing up.

use anyhow::{Context, anyhow, bail};
use std::path::PathBuf;

/// A parsed section name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Where the program is attached.
    pub place: AttachPoint,
    /// The fields of the program's event. If it is empty, the event has the fields that the attach point has by
    /// default.
    pub arguments: Vec<Argument>,
    /// Whether the program is loaded as one that may sleep (`.s`).
    pub may_sleep: bool,
}

/// The attach point of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// A tracepoint in tracefs: the program's context is the record.
    Tracepoint { subsystem: String, name: String },
    /// A raw tracepoint: the program's context is the tracepoint's arguments, with types (`tp_btf`) or without.
    Raw { name: String, typed: bool },
    /// The entry or return of a kernel function: the program's context is the function's arguments.
    Function { name: String, returns: bool },
    /// An instruction of the kernel, or the return of a function: the program's context is the registers.
    KernelProbe { function: String, offset: u64, returns: bool },
    /// The same in a user program. A function that is a number (`0x...`) is an offset in the file.
    ProgramProbe { file: PathBuf, function: String, offset: u64, returns: bool },
}

/// A field of the program's event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The name of the field; that of `of`, unless the section has another one (`NAME=`).
    pub name: String,
    /// The field, argument or register of the context that the value comes from.
    pub of: String,
    /// The location of the value in memory, relative to the address in `of`; `None` if `of` is the value itself.
    pub behind: Option<Behind>,
    /// The type in the section; `None` if the field has the type that the context gives it.
    pub shown: Option<Type>,
}

/// The location of a value in memory, relative to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The distance from the address in bytes.
    pub offset: i32,
    /// Whether it is user memory rather than kernel memory.
    pub user: bool,
}

/// The type in which an argument is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Unsigned(u8),
    Signed(u8),
    Hex(u8),
    /// A string in kernel memory or in user memory.
    Text {
        user: bool,
    },
}

impl Section {
    /// Parses a section name.
    ///
    /// # Errors
    /// The attach point or an argument is not valid.
    pub fn parse(text: &str) -> anyhow::Result<Section> {
        let mut words = text.split_ascii_whitespace();
        let place = words.next().unwrap_or_default();
        let (place, may_sleep) = self::place(place).with_context(|| format!("the section {place:?}"))?;
        let arguments = words.map(|word| argument(word).with_context(|| format!("the argument {word:?} of the section {text:?}")));
        Ok(Section { place, arguments: arguments.collect::<anyhow::Result<_>>()?, may_sleep })
    }
}

impl AttachPoint {
    /// Returns the name of the program's event.
    pub fn event(&self) -> String {
        let of = |kind: &str, returns: bool, name: &str| format!("{}{kind}:{name}", if returns { "ret_" } else { "" });
        match self {
            AttachPoint::Tracepoint { subsystem, name } => format!("{subsystem}:{name}"),
            AttachPoint::Raw { name, .. } => of("raw_tp", false, name),
            AttachPoint::Function { name, returns } => of("function", *returns, name),
            AttachPoint::KernelProbe { function, returns, .. } => of("kprobe", *returns, function),
            AttachPoint::ProgramProbe { function, returns, .. } => of("uprobe", *returns, function),
        }
    }
}

fn place(word: &str) -> anyhow::Result<(AttachPoint, bool)> {
    let Some((kind, rest)) = word.split_once('/') else {
        return match word.split_once(':') {
            Some((subsystem, name)) if is_name(subsystem) && is_name(name) => {
                Ok((AttachPoint::Tracepoint { subsystem: subsystem.to_owned(), name: name.to_owned() }, false))
            }
            _ => Err(unknown()),
        };
    };
    let (kind, may_sleep) = kind.strip_suffix(".s").map_or((kind, false), |kind| (kind, true));
    let place = match kind {
        "tp" | "tracepoint" => {
            let (subsystem, name) =
                rest.split_once('/').filter(|(a, b)| is_name(a) && is_name(b)).context("a tracepoint is written tp/SUBSYSTEM/EVENT")?;
            AttachPoint::Tracepoint { subsystem: subsystem.to_owned(), name: name.to_owned() }
        }
        "raw_tp" | "raw_tracepoint" | "tp_btf" => AttachPoint::Raw { name: named(rest)?, typed: kind == "tp_btf" },
        "fentry" | "fexit" => AttachPoint::Function { name: named(rest)?, returns: kind == "fexit" },
        "kprobe" | "kretprobe" => {
            let (function, offset) = with_offset(rest)?;
            AttachPoint::KernelProbe { function: named(function)?, offset, returns: kind == "kretprobe" }
        }
        "uprobe" | "uretprobe" => {
            let (file, at) = rest.rsplit_once(':').context("a uprobe is written uprobe/FILE:FUNCTION")?;
            let (function, offset) = with_offset(at)?;
            if file.is_empty() || function.is_empty() {
                bail!("a uprobe is written uprobe/FILE:FUNCTION");
            }
            AttachPoint::ProgramProbe { file: file.into(), function: function.to_owned(), offset, returns: kind == "uretprobe" }
        }
        _ => return Err(unknown()),
    };
    match &place {
        AttachPoint::KernelProbe { offset: 1.., returns: true, .. } | AttachPoint::ProgramProbe { offset: 1.., returns: true, .. } => {
            Err(anyhow!("a return probe is on a whole function and has no offset"))
        }
        _ => Ok((place, may_sleep)),
    }
}

fn unknown() -> anyhow::Error {
    anyhow!(
        "this is no attach point of rtrace (they are tp, tracepoint, SUBSYSTEM:EVENT, raw_tp, tp_btf, kprobe, kretprobe, uprobe, uretprobe, fentry, fexit)"
    )
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn named(text: &str) -> anyhow::Result<String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err(anyhow!("{text:?} is not a valid name of an event or function")) }
}

/// `NAME+OFFSET`
fn with_offset(text: &str) -> anyhow::Result<(&str, u64)> {
    let Some((name, offset)) = text.split_once('+') else { return Ok((text, 0)) };
    Ok((name, number(offset).with_context(|| format!("the offset {offset:?} is not a number"))?))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn argument(word: &str) -> anyhow::Result<Argument> {
    let (name, rest) = match word.split_once('=') {
        Some((name, rest)) => (Some(name), rest),
        None => (None, word),
    };
    let (value, shown) = match rest.rsplit_once(':') {
        Some((value, shown)) => (value, Some(kind(shown)?)),
        None => (rest, None),
    };
    let (of, behind) = match value.strip_suffix(')').and_then(|value| value.split_once('(')) {
        Some((offset, of)) => (of, Some(self::behind(offset).context("an offset is written +[u]NUMBER or -[u]NUMBER")?)),
        None => (value, None),
    };
    let name = name.unwrap_or(of);
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_plain(name) || !is_plain(of) {
        bail!("an argument is written [NAME=]VALUE[:TYPE]");
    }
    match (behind, shown) {
        (Some(_), None) => bail!("a value in memory needs a type, as in +8({of}):u64"),
        (Some(Behind { user: true, .. }), Some(Type::Text { user: false })) => {
            bail!("a string in user memory has the type ustring, not string")
        }
        _ => Ok(Argument { name: name.to_owned(), of: of.to_owned(), behind, shown }),
    }
}

/// `+8`, `+u8`, `-8`, `-u8`
fn behind(text: &str) -> Option<Behind> {
    let (minus, rest) = text.strip_prefix('-').map(|rest| (true, rest)).or_else(|| Some((false, text.strip_prefix('+')?)))?;
    let (user, digits) = rest.strip_prefix('u').map_or((false, rest), |digits| (true, digits));
    let offset = i32::try_from(number(digits)?).ok()?;
    Some(Behind { offset: if minus { -offset } else { offset }, user })
}

fn kind(text: &str) -> anyhow::Result<Type> {
    let bytes = |digits: &str| match digits {
        "8" => Some(1),
        "16" => Some(2),
        "32" => Some(4),
        "64" => Some(8),
        _ => None,
    };
    let number = |prefix: char, make: fn(u8) -> Type| text.strip_prefix(prefix).and_then(bytes).map(make);
    let text_of = |user| (text == if user { "ustring" } else { "string" }).then_some(Type::Text { user });
    let found = number('u', Type::Unsigned).or_else(|| number('s', Type::Signed)).or_else(|| number('x', Type::Hex));
    found
        .or_else(|| text_of(false))
        .or_else(|| text_of(true))
        .with_context(|| format!("there is no type {text} (types are u8 to u64, s8 to s64, x8 to x64, string, ustring)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_of(text: &str) -> AttachPoint {
        Section::parse(text).unwrap().place
    }

    #[test]
    fn attach_points_of_every_kind_are_parsed() {
        let tracepoint = |subsystem: &str, name: &str| AttachPoint::Tracepoint { subsystem: subsystem.into(), name: name.into() };
        let openat = tracepoint("syscalls", "sys_enter_openat");
        for text in ["tp/syscalls/sys_enter_openat", "tracepoint/syscalls/sys_enter_openat", "syscalls:sys_enter_openat"] {
            assert_eq!(place_of(text), openat);
        }
        assert_eq!(openat.event(), "syscalls:sys_enter_openat");
        assert_eq!(place_of("tp_btf/sched_switch"), AttachPoint::Raw { name: "sched_switch".into(), typed: true });
        assert_eq!(place_of("fexit/vfs_read"), AttachPoint::Function { name: "vfs_read".into(), returns: true });
        assert_eq!(place_of("kprobe/vfs_read+0x10"), AttachPoint::KernelProbe { function: "vfs_read".into(), offset: 16, returns: false });
        let probe = AttachPoint::ProgramProbe { file: "/bin/a:b".into(), function: "main".into(), offset: 4, returns: false };
        assert_eq!(place_of("uprobe//bin/a:b:main+4"), probe);
        assert_eq!(probe.event(), "uprobe:main");
        assert!(Section::parse("uprobe.s/bash:readline").unwrap().may_sleep);
    }

    #[test]
    fn arguments_of_every_kind_are_parsed() {
        let section = Section::parse("tp/x/y filename:ustring flags=arg3 ns=+u8(rqtp):s64 at=-0x10(p):string").unwrap();
        let text = |user| Some(Type::Text { user });
        let argument = |name: &str, of: &str, behind: Option<(i32, bool)>, shown| Argument {
            name: name.into(),
            of: of.into(),
            behind: behind.map(|(offset, user)| Behind { offset, user }),
            shown,
        };
        let expected = [
            argument("filename", "filename", None, text(true)),
            argument("flags", "arg3", None, None),
            argument("ns", "rqtp", Some((8, true)), Some(Type::Signed(8))),
            argument("at", "p", Some((-16, false)), text(false)),
        ];
        assert_eq!(section.arguments, expected);
    }

    #[test]
    fn errors_name_the_wrong_part() {
        for (text, message) in [
            ("xdp", "this is no attach point of rtrace"),
            ("usdt//bin/x:a:b", "this is no attach point of rtrace"),
            ("tp/openat", "a tracepoint is written tp/SUBSYSTEM/EVENT"),
            ("uprobe/main", "a uprobe is written uprobe/FILE:FUNCTION"),
            ("kretprobe/x+4", "a return probe is on a whole function and has no offset"),
            ("kprobe/x+y", "the offset \"y\" is not a number"),
            ("raw_tp/", "\"\" is not a valid name"),
            ("tp/x/y a->b", "an argument is written [NAME=]VALUE[:TYPE]"),
            ("tp/x/y a:u7", "there is no type u7"),
            ("tp/x/y +8(a)", "a value in memory needs a type, as in +8(a):u64"),
            ("tp/x/y +8u(a):u8", "an offset is written"),
            ("tp/x/y +u8(a):string", "has the type ustring, not string"),
        ] {
            let error = format!("{:#}", Section::parse(text).unwrap_err());
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_without_panic(text in ".{0,24}|(tp/x/y|uprobe/a:b) [a-z=+:()0-9-]{0,16}") {
            let _ = Section::parse(&text);
        }
    }
}
