//! Prints a syntax tree as a line. The kernel accepts the line if it has no extension of rtrace.

use super::ast::{
    Arg, BasicType, Fetch, Field, FilePlace, KernelPlace, Line, PathStep, Probe, ProbePoint, Removal, SourceLine, Type, When,
};
use super::parse::{is_plain_name, is_plain_path};
use super::piece::quote;
use std::fmt::{self, Display, Formatter};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Display for Line {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Line::Make(probe) => probe.fmt(f),
            Line::Remove(removal) => removal.fmt(f),
        }
    }
}

impl Display for Removal {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("-:")?;
        name(f, self.group.as_deref(), self.event.as_deref())
    }
}

impl Display for Probe {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(letters(&self.place))?;
        if let ProbePoint::Kernel { when: When::Return { maxactive: Some(count) }, .. }
        | ProbePoint::Function { when: When::Return { maxactive: Some(count) }, .. } = &self.place
        {
            write!(f, "{count}")?;
        }
        if self.group.is_some() || self.event.is_some() {
            f.write_str(":")?;
            name(f, self.group.as_deref(), self.event.as_deref())?;
        }
        self.place.fmt(f)?;
        for arg in &self.args {
            write!(f, " {arg}")?;
        }
        if let ProbePoint::Event { filter: Some(filter), .. } = &self.place {
            write!(f, " if {filter}")?;
        }
        Ok(())
    }
}

fn name(f: &mut Formatter, group: Option<&str>, event: Option<&str>) -> fmt::Result {
    if let Some(group) = group {
        write!(f, "{group}/")?;
    }
    f.write_str(event.unwrap_or_default())
}

fn letters(place: &ProbePoint) -> &'static str {
    match place {
        ProbePoint::Kernel { .. } | ProbePoint::File { .. } => {
            if place.is_return() {
                "r"
            } else {
                "p"
            }
        }
        ProbePoint::Function { .. } => "f",
        ProbePoint::Tracepoint { .. } => "t",
        ProbePoint::Event { .. } => "e",
        ProbePoint::Synthetic { .. } => "s",
        ProbePoint::User { .. } => "u",
        ProbePoint::Usdt { .. } => "usdt",
    }
}

/// Prints the part of the line behind the event's name, with a leading blank. The condition of an event probe is
/// printed by [`Probe`], because it follows the arguments.
impl Display for ProbePoint {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            ProbePoint::Kernel { at, .. } => write!(f, " {at}"),
            ProbePoint::File { path, at, reference_counter, .. } => {
                let plain = matches!(at, FilePlace::Offset(_));
                write!(f, " {}:{at}", path_text(path, plain))?;
                reference_counter.map_or(Ok(()), |at| write!(f, "({at:#x})"))
            }
            ProbePoint::Function { name, when } => write!(f, " {name}{}", if *when == When::Entry { "" } else { "%return" }),
            ProbePoint::Tracepoint { name } => write!(f, " {name}"),
            ProbePoint::Event { subsystem, event, .. } => write!(f, " {subsystem}.{event}"),
            ProbePoint::Synthetic { fields } => write_fields(f, fields),
            ProbePoint::User { flags, fields } => {
                if !flags.is_empty() {
                    write!(f, ":{}", flags.join(","))?;
                }
                write_fields(f, fields)
            }
            ProbePoint::Usdt { path, provider, name } => write!(f, " {}:{provider}:{name}", path_text(path, false)),
        }
    }
}

/// Quotes a path if necessary. `colons`: an offset follows, so that the path may have colons.
fn path_text(path: &Path, colons: bool) -> String {
    match path.to_str().filter(|text| is_plain_path(text) && (colons || !text.contains(':'))) {
        Some(text) => text.to_owned(),
        None => quote(path.as_os_str().as_bytes()),
    }
}

fn write_fields(f: &mut Formatter, fields: &[Field]) -> fmt::Result {
    if fields.is_empty() { Ok(()) } else { write!(f, " {}", Field::declarations(fields)) }
}

impl Field {
    /// Formats fields as the kernel expects them: `TYPE NAME; TYPE NAME`.
    pub fn declarations(fields: &[Field]) -> String {
        fields.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        self.size.map_or(Ok(()), |bytes| write!(f, " {bytes}"))
    }
}

impl Display for KernelPlace {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            KernelPlace::Symbol { module, symbol, offset } => {
                if let Some(module) = module {
                    write!(f, "{module}:")?;
                }
                f.write_str(symbol)?;
                distance(f, *offset)
            }
            KernelPlace::Address(address) => write!(f, "{address:#x}"),
            KernelPlace::Line(SourceLine { of, line }) => write!(f, "{of}:{line}"),
        }
    }
}

impl Display for FilePlace {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            FilePlace::Offset(offset) => write!(f, "{offset:#x}"),
            FilePlace::Symbol { symbol, offset } => {
                f.write_str(&name_text(symbol, b""))?;
                distance(f, *offset)
            }
            FilePlace::Line(SourceLine { of, line }) => write!(f, "{}:{line}", name_text(of, b"/-+")),
        }
    }
}

fn name_text(name: &str, extra: &[u8]) -> String {
    if is_plain_name(name, extra) { name.to_owned() } else { quote(name.as_bytes()) }
}

fn distance(f: &mut Formatter, offset: i64) -> fmt::Result {
    if offset == 0 { Ok(()) } else { write!(f, "{offset:+}") }
}

impl Display for Arg {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}=")?;
        }
        self.value.fmt(f)?;
        self.kind.map_or(Ok(()), |kind| write!(f, ":{kind}"))
    }
}

impl Display for Fetch {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Fetch::Register(name) => write!(f, "%{name}"),
            Fetch::StackAddress => f.write_str("$stack"),
            Fetch::Stack(nth) => write!(f, "$stack{nth}"),
            Fetch::At(address) => write!(f, "@{address:#x}"),
            Fetch::AtSymbol { symbol, offset } => {
                write!(f, "@{symbol}")?;
                distance(f, *offset)
            }
            Fetch::AtFileOffset(offset) => write!(f, "@+{offset:#x}"),
            Fetch::Argument(nth) => write!(f, "$arg{nth}"),
            Fetch::Arguments => f.write_str("$arg*"),
            Fetch::Return(path) => {
                f.write_str("$retval")?;
                steps(f, path)
            }
            Fetch::Comm => f.write_str("$comm"),
            Fetch::Field(name) => write!(f, "${name}"),
            Fetch::Memory { user, offset, of } => {
                let sign = if *offset < 0 { '-' } else { '+' };
                write!(f, "{sign}{}{}({of})", if *user { "u" } else { "" }, offset.unsigned_abs())
            }
            Fetch::Immediate(number) => write!(f, "\\{number}"),
            Fetch::ImmediateText(text) => write!(f, "\\\"{text}\""),
            Fetch::Variable { name, path } => {
                f.write_str(name)?;
                steps(f, path)
            }
        }
    }
}

fn steps(f: &mut Formatter, path: &[PathStep]) -> fmt::Result {
    for step in path {
        match step {
            PathStep::Arrow(name) => write!(f, "->{name}")?,
            PathStep::Dot(name) => write!(f, ".{name}")?,
            PathStep::Index(nth) => write!(f, "[{nth}]")?,
        }
    }
    Ok(())
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.base.fmt(f)?;
        self.array.map_or(Ok(()), |count| write!(f, "[{count}]"))
    }
}

impl Display for BasicType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            BasicType::Bits { width, offset, container } => write!(f, "b{width}@{offset}/{container}"),
            _ => f.write_str(BasicType::NAMED.iter().find(|(_, base)| base == self).map_or("", |(name, _)| name)),
        }
    }
}
