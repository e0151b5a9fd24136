//! A syscall's row, as text.

use super::group_names;
use crate::beauty::row::{Arg, Condition, Flow, Kind, Layout, Length, Outcomes, Return, Syscall, Traits};
use crate::beauty::value::Value;
use crate::event::Abi;
use crate::kernel::machine::NATIVE_ABI;
use std::io::{self, Write};

/// `NAME NR HERE GROUPS SIGNATURE`; HERE is `event` if the kernel has a tracepoint for it, `raw` if it is seen through raw_syscalls only.
pub fn line(syscall: &Syscall, here: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let number = syscall.numbers[NATIVE_ABI as usize].map_or("-".to_owned(), |number| number.to_string());
    let groups = Some(group_names(syscall.groups).join(",")).filter(|groups| !groups.is_empty()).unwrap_or_else(|| "-".to_owned());
    writeln!(out, "{:<24} {number:>4} {here:<5} {groups:<24} ({}) = {}", syscall.name, arguments(syscall.args), returned(&syscall.returns))
}

/// The line, and everything else the row says.
pub fn whole(syscall: &Syscall, here: &str, out: &mut Vec<u8>) -> io::Result<()> {
    line(syscall, here, out)?;
    let number = |abi: &Abi| {
        let number = syscall.numbers[*abi as usize].map_or("-".to_owned(), |number| number.to_string());
        format!("{} {number}", abi.name())
    };
    writeln!(out, "    numbers   {}", Abi::ALL.iter().map(number).collect::<Vec<_>>().join(", "))?;
    let seen = match here {
        "event" => "this kernel has it",
        "raw" => "this kernel does not have it: traced through raw_syscalls",
        _ => "tracefs cannot be read",
    };
    writeln!(out, "    event     syscalls:sys_enter_{}, {seen}", syscall.event)?;
    for (index, arg) in syscall.args.iter().enumerate() {
        let used = match arg.used {
            Condition::Always => String::new(),
            Condition::Never => ", never used".to_owned(),
            Condition::If { text, .. } => format!(", used if {text}"),
        };
        writeln!(
            out,
            "    argument  {} {}: {}{used}{}",
            index + 1,
            arg.name,
            kind_and_length(arg, syscall.args),
            where_it_is_listed(&arg.kind)
        )?;
    }
    for variant in syscall.variants {
        let chooser = syscall.args.get(usize::from(variant.arg));
        let names = variant.values.iter().map(|value| constant(chooser, *value)).collect::<Vec<_>>().join("|");
        let name = chooser.map_or("?", |arg| arg.name);
        writeln!(out, "    if        {name}={names}: ({}) = {}", arguments(variant.args), returned(&variant.returns))?;
    }
    Ok(())
}

fn constant(chooser: Option<&Arg>, value: u64) -> String {
    let name = chooser.and_then(|arg| match arg.kind {
        Kind::Table(table) => table.entries.iter().find(|entry| entry.value == value).map(|entry| entry.name.to_owned()),
        Kind::Custom(decode, _) => match decode(&[value; 6], 0, NATIVE_ABI) {
            Value::Symbol { table, value } => table.name(value).map(str::to_owned),
            _ => None,
        },
        _ => None,
    });
    name.unwrap_or_else(|| value.to_string())
}

fn where_it_is_listed(kind: &Kind) -> String {
    match kind {
        Kind::Table(table) => format!(" ({} names from {}: rtrace list tables {})", table.entries.len(), table.header, table.name),
        Kind::Struct(of) | Kind::StructArray(of) => match of.layout {
            Layout::Opaque => String::new(),
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
    let words = [(Traits::OPTIONAL, "optional "), (Traits::SHALLOW, "shallow "), (Traits::SENDS, "sends "), (Traits::COUNTED, "counted ")];
    let mut said: String = words.iter().filter(|(is, _)| arg.traits.contains(*is)).map(|(_, word)| *word).collect();
    if let Some(owner) = arg.fd_of.and_then(|owner| args.get(usize::from(owner))) {
        said += &format!("fd_of({}) ", owner.name);
    }
    format!("{said}{flow}{}{}", kind(&arg.kind), length(arg.length, |index| args.get(index).map(|arg| arg.name)))
}

/// `(interrupted)`: how the call ends when memory is written, where that is not only when it succeeds.
fn written(outcomes: Outcomes) -> String {
    let words = [
        (Outcomes::SUCCEEDED, "succeeded"),
        (Outcomes::POSITIVE, "positive"),
        (Outcomes::FAILED, "failed"),
        (Outcomes::INTERRUPTED, "interrupted"),
    ];
    let mut left = outcomes;
    let mut said = Vec::new();
    for (outcome, word) in words {
        if left.contains(outcome) {
            left.remove(outcome);
            said.push(word);
        }
    }
    if outcomes == Outcomes::SUCCEEDED { String::new() } else { format!("({})", said.join("|")) }
}

/// `[count]`, by the name of what says it.
pub fn length(length: Length, name: impl Fn(usize) -> Option<&'static str>) -> String {
    match length {
        Length::OfType => String::new(),
        Length::Arg(index) => format!("[{}]", name(usize::from(index)).unwrap_or("?")),
        Length::Ret => "[ret]".to_owned(),
        Length::Fixed(count) => format!("[{count}]"),
    }
}

/// The kind as the row files write it.
pub fn kind(kind: &Kind) -> String {
    let name = match kind {
        Kind::Int => "int",
        Kind::Uint => "uint",
        Kind::Long => "long",
        Kind::Ulong => "ulong",
        Kind::Hex => "hex",
        Kind::Size => "size",
        Kind::Offset => "offset",
        Kind::Loff => "loff",
        Kind::Fd => "fd",
        Kind::DirFd => "dirfd",
        Kind::Pid => "pid",
        Kind::Uid => "uid",
        Kind::Gid => "gid",
        Kind::Signal => "signal",
        Kind::Mode => "mode",
        Kind::Dev => "dev",
        Kind::Address => "address",
        Kind::Table(table) => table.name,
        Kind::Path => "path",
        Kind::Str => "str",
        Kind::Bytes => "bytes",
        Kind::StrArray => "strings",
        Kind::Struct(of) => of.name,
        Kind::StructArray(of) => return format!("{}*", of.name),
        Kind::Number { bytes, signed } => return format!("{}{}*", if *signed { 's' } else { 'u' }, u32::from(*bytes) * 8),
        Kind::Pointer => "pointer",
        Kind::Custom(..) => "custom",
    };
    name.to_owned()
}

fn returned(returns: &Return) -> &'static str {
    match returns {
        Return::Int => "int",
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
    }
}
