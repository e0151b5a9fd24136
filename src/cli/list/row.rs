//! Prints the row of a syscall.

use super::{SeenBy, group_names};
use crate::beauty::row::{Arg, ArgumentKind, Condition, Flow, Length, Outcomes, Return, StructLayout, Syscall, Traits, Variant};
use crate::beauty::value::Value;
use crate::event::Abi;
use crate::kernel::machine::NATIVE_ABI;
use std::io::{self, Write};

/// Writes `NAME NR SEEN_BY GROUPS SIGNATURE`. SEEN_BY is `event` if the kernel has a tracepoint of its own for this
/// syscall, `raw` if only raw_syscalls shows it, and `?` if tracefs cannot be read.
pub fn line(syscall: &Syscall, seen_by: Option<SeenBy>, out: &mut Vec<u8>) -> io::Result<()> {
    let seen_by = match seen_by {
        Some(SeenBy::Event) => "event",
        Some(SeenBy::RawSyscalls) => "raw",
        None => "?",
    };
    let number = syscall.numbers[NATIVE_ABI as usize].map_or("-".to_owned(), |number| number.to_string());
    let groups = Some(group_names(syscall.groups).join(",")).filter(|groups| !groups.is_empty()).unwrap_or_else(|| "-".to_owned());
    let (arguments, returned) = (arguments(syscall.args), returned(&syscall.returns));
    writeln!(out, "{:<24} {number:>4} {seen_by:<5} {groups:<24} ({arguments}) = {returned}", syscall.name)
}

/// Writes the line of [`line()`], and below it the other facts of the row.
pub fn full(syscall: &Syscall, seen_by: Option<SeenBy>, out: &mut Vec<u8>) -> io::Result<()> {
    line(syscall, seen_by, out)?;
    let number = |abi: &Abi| {
        let number = syscall.numbers[*abi as usize].map_or("-".to_owned(), |number| number.to_string());
        format!("{} {number}", abi.name())
    };
    writeln!(out, "    numbers   {}", Abi::ALL.iter().map(number).collect::<Vec<_>>().join(", "))?;
    let explanation = match seen_by {
        Some(SeenBy::Event) => "this kernel has it",
        Some(SeenBy::RawSyscalls) => "this kernel does not have it: traced through raw_syscalls",
        None => "tracefs cannot be read",
    };
    writeln!(out, "    event     syscalls:sys_enter_{}, {explanation}", syscall.event)?;
    if let Some((word, effect)) = syscall.does.described() {
        writeln!(out, "    does      {word}: {effect}")?;
    }
    for (index, arg) in syscall.args.iter().enumerate() {
        let used = match arg.used {
            Condition::Always => String::new(),
            Condition::Never => ", never used".to_owned(),
            Condition::If { text, .. } => format!(", used if {text}"),
        };
        writeln!(out, "    argument  {} {}: {}{used}{}", index + 1, arg.name, kind_and_length(arg, syscall.args), reference(&arg.kind))?;
    }
    variants("", syscall.variants, syscall.args, out)
}

/// Writes the variants of a row with the arguments `args`. Each variant is followed by its own variants. `tested` is
/// the text of the values that select this row.
fn variants(tested: &str, of: &[Variant], args: &[Arg], out: &mut Vec<u8>) -> io::Result<()> {
    for variant in of {
        let chooser = args.get(usize::from(variant.arg));
        let named = |value: &u64| constant(chooser, *value).unwrap_or_else(|| value.to_string());
        let names = variant.values.iter().map(named).collect::<Vec<_>>().join("|");
        let tested = format!("{tested}{}={names}", chooser.map_or("?", |arg| arg.name));
        writeln!(out, "    if        {tested}: ({}) = {}", arguments(variant.args), returned(&variant.returns))?;
        variants(&format!("{tested} "), variant.variants, variant.args, out)?;
    }
    Ok(())
}

/// Returns the constant that names a value of `chooser`, the argument that selects a variant.
pub fn constant(chooser: Option<&Arg>, value: u64) -> Option<String> {
    chooser.and_then(|arg| match arg.kind {
        ArgumentKind::Table(table) => table.entries.iter().find(|entry| entry.value == value).map(|entry| entry.name.to_owned()),
        ArgumentKind::Custom(decode, _) => match decode(&[value; 6], 0, NATIVE_ABI) {
            Value::Symbol { table, value } => table.name(value).map(str::to_owned),
            _ => None,
        },
        _ => None,
    })
}

/// Returns the command that lists the constants or members of this kind.
fn reference(kind: &ArgumentKind) -> String {
    match kind {
        ArgumentKind::Table(table) => format!(" ({} names from {}: rtrace list tables {})", table.entries.len(), table.header, table.name),
        ArgumentKind::Struct(of) | ArgumentKind::StructArray(of) => match of.layout {
            StructLayout::Opaque => String::new(),
            _ => format!(" (rtrace list tables {})", of.name),
        },
        _ => String::new(),
    }
}

fn arguments(args: &[Arg]) -> String {
    args.iter().map(|arg| format!("{}: {}", arg.name, kind_and_length(arg, args))).collect::<Vec<_>>().join(", ")
}

fn kind_and_length(arg: &Arg, args: &[Arg]) -> String {
    let flow = match arg.flow {
        Flow::In => String::new(),
        Flow::Out => format!("out{} ", written(arg.written)),
        Flow::InOut => format!("inout{} ", written(arg.written)),
    };
    let words = [
        (Traits::OPTIONAL, "optional "),
        (Traits::SHALLOW, "shallow "),
        (Traits::SENDS, "sends "),
        (Traits::COUNTED, "counted "),
        (Traits::VARIES, "varies "),
        (Traits::ARRAY, "array "),
    ];
    let mut prefixes: String = words.iter().filter(|(is, _)| arg.traits.contains(*is)).map(|(_, word)| *word).collect();
    if let Some(owner) = arg.fd_of.and_then(|owner| args.get(usize::from(owner))) {
        prefixes += &format!("fd_of({}) ", owner.name);
    }
    if let Some(socket) = arg.socket.and_then(|socket| args.get(usize::from(socket))) {
        prefixes += &format!("socket({}) ", socket.name);
    }
    format!("{prefixes}{flow}{}{}", kind(&arg.kind), length(arg.length, |index| args.get(index).map(|arg| arg.name)))
}

/// Returns the outcomes of the call with which it writes memory, as `(interrupted)`; nothing if it must succeed.
fn written(outcomes: Outcomes) -> String {
    if outcomes == Outcomes::SUCCEEDED { String::new() } else { format!("({})", outcome_names(outcomes).join("|")) }
}

/// Returns the names of outcomes of a call.
pub fn outcome_names(outcomes: Outcomes) -> Vec<&'static str> {
    let words = [
        (Outcomes::SUCCEEDED, "succeeded"),
        (Outcomes::POSITIVE, "positive"),
        (Outcomes::FAILED, "failed"),
        (Outcomes::INTERRUPTED, "interrupted"),
        (Outcomes::TOO_BIG, "E2BIG"),
        (Outcomes::OVERFLOW, "EOVERFLOW"),
    ];
    let mut left = outcomes;
    let mut names = Vec::new();
    for (outcome, word) in words {
        if left.contains(outcome) {
            left.remove(outcome);
            names.push(word);
        }
    }
    names
}

/// Returns a length as `[count]`, with the name of the argument or member that has it.
pub fn length(length: Length, name: impl Fn(usize) -> Option<&'static str>) -> String {
    match length {
        Length::OfType => String::new(),
        Length::Arg(index) => format!("[{}]", name(usize::from(index)).unwrap_or("?")),
        Length::Ret => "[ret]".to_owned(),
        Length::Fixed(count) => format!("[{count}]"),
    }
}

/// Returns a kind as the row files spell it.
pub fn kind(kind: &ArgumentKind) -> String {
    let name = match kind {
        ArgumentKind::Int => "int",
        ArgumentKind::Uint => "uint",
        ArgumentKind::Long => "long",
        ArgumentKind::Ulong => "ulong",
        ArgumentKind::Hex => "hex",
        ArgumentKind::Size => "size",
        ArgumentKind::Offset => "offset",
        ArgumentKind::Loff => "loff",
        ArgumentKind::Fd => "fd",
        ArgumentKind::DirFd => "dirfd",
        ArgumentKind::Pid => "pid",
        ArgumentKind::Uid => "uid",
        ArgumentKind::Gid => "gid",
        ArgumentKind::Signal => "signal",
        ArgumentKind::Mode => "mode",
        ArgumentKind::Dev => "dev",
        ArgumentKind::Port => "port",
        ArgumentKind::Address => "address",
        ArgumentKind::Table(table) => table.name,
        ArgumentKind::Path => "path",
        ArgumentKind::Str => "str",
        ArgumentKind::Bytes => "bytes",
        ArgumentKind::StrArray => "strings",
        ArgumentKind::Struct(of) => of.name,
        ArgumentKind::StructArray(of) => return format!("{}*", of.name),
        ArgumentKind::Number { bytes, signed } => return format!("{}{}*", if *signed { 's' } else { 'u' }, u32::from(*bytes) * 8),
        ArgumentKind::Pointer => "pointer",
        ArgumentKind::Custom(..) => "custom",
    };
    name.to_owned()
}

/// Returns the kind of a return as the row files spell it.
pub fn returned(returns: &Return) -> &'static str {
    match returns {
        Return::Int | Return::Int32 => "int",
        Return::Uint => "uint",
        Return::Long => "long",
        Return::Size => "size",
        Return::Offset => "offset",
        Return::Hex => "hex",
        Return::Address => "address",
        Return::Fd => "fd",
        Return::Pid => "pid",
        Return::Uid => "uid",
        Return::Gid => "gid",
        Return::Mode => "mode",
        Return::Ready => "ready",
        Return::Never => "never",
        Return::Table(table) => table.name,
        Return::Custom(..) => "custom",
    }
}
