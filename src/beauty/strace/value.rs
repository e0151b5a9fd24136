//! Prints a value as strace 7.2 does: full names of constants, a comment with the kind of constant that a number has no
//! name for, members as `name=value`, and the macros of C that make a value.

use super::super::tables::constants::PTRACE_EVENT;
use super::super::value::{ArrayValue, BytesForm, Failure, StateChange, StructValue, Text, Value, WaitStatus, file_mode};
use super::super::{errno, signal};
use super::constants::{self, hex};
use super::netlink;
use super::part;
use super::path;
use super::quote;
use crate::event::File;
use crate::session::Zone;
use crate::show::strace::{Constants, Files, InHex};
use crate::text::number;
use std::io::Write;
use std::net::IpAddr;

/// The value of `dfd` that stands for the current directory (openat(2)).
const AT_FDCWD: i32 = -100;

/// What the options of strace say about values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// `-x`, `-xx`
    pub hex: InHex,
    /// `-v`: all members of structs, and all strings of an environment.
    pub whole: bool,
    /// `-X`: how constants are written.
    pub constants: Constants,
    /// `-y`, `-yy`: what is shown of descriptors.
    pub files: Files,
    /// `-e verbose=`: structs and arrays, and not their addresses.
    pub dereferenced: bool,
    /// `-Y`: the comms of tasks.
    pub comms: bool,
    /// `--decode-pids=pidns`: the numbers of tasks in rtrace's PID namespace.
    pub own_pids: bool,
    /// `-s`: the maximum number of bytes of a string, and of elements of an array without `-v`.
    pub string_limit: usize,
    /// The time zone of dates.
    pub zone: Option<&'a Zone>,
}

/// Appends a value.
pub fn write(out: &mut Vec<u8>, value: &Value, options: Options) {
    match value {
        Value::Int(value) => number::int(out, *value),
        Value::Uint(value) => number::uint(out, *value),
        Value::Hex(value) => hex(out, *value),
        Value::Octal(value) => octal(out, *value),
        Value::Address(0) | Value::Unread(0) => out.extend_from_slice(b"NULL"),
        Value::Address(address) | Value::Unread(address) | Value::Code(address) => number::hex(out, *address),
        Value::Flags { table, bits } => constants::styled_flags(out, options.constants, table, *bits),
        Value::Symbol { table, value } => {
            let number = |out: &mut Vec<u8>| constants::number_of(out, table, *value);
            let has_name = table.name(*value).is_some();
            constants::in_style(out, options.constants, has_name, number, |out| constants::constant(out, table, *value));
        }
        Value::Macro { name, parameters, .. } => write_macro(out, name, parameters, options),
        Value::Fd { fd, file } => descriptor(out, *fd, *file, false, options),
        Value::DirFd { fd, file } => descriptor(out, *fd, *file, true, options),
        Value::Pid { pid, comm, translated } => {
            number::int(out, i64::from(*pid));
            comm.iter().filter(|_| options.comms).for_each(|comm| quote::comm(out, comm));
            // Writing to a Vec does not fail.
            translated.iter().filter(|_| options.own_pids).for_each(|own| _ = write!(out, " /* {own} in strace's PID NS */"));
        }
        Value::Id { id, .. } => id_number(out, *id),
        Value::Signal(signal) => styled_signal(out, *signal, options.constants),
        Value::Dev { major, minor } => {
            let (major, minor) = (u64::from(*major), u64::from(*minor));
            // include/linux/kdev_t.h: new_encode_dev()
            let number = |out: &mut Vec<u8>| hex(out, minor & 0xff | major << 8 | (minor & !0xff) << 12);
            constants::in_style(out, options.constants, true, number, |out| make_device(out, major, minor));
        }
        Value::Str(text) => string(out, text, options.hex, options),
        Value::Ip(IpAddr::V4(address)) => {
            let mut call = b"inet_addr(".to_vec();
            quote::quoted(&mut call, address.to_string().as_bytes(), options.hex);
            call.push(b')');
            in_network_order(out, &address.octets(), &call, options);
        }
        Value::Ip(address @ IpAddr::V6(_)) => quote::quoted(out, address.to_string().as_bytes(), options.hex),
        Value::Port(port) => in_network_order(out, &(port.0 as u16).to_be_bytes(), format!("htons({})", port.0).as_bytes(), options),
        Value::SignalCode { signal, code } => signal_code(out, *signal, *code, options.constants),
        Value::WaitStatus(status) => wait_status(out, *status),
        Value::SocketAddress(address) => _ = write!(out, "{address}"),
        Value::Named(named) => out.extend_from_slice(named.to_string().as_bytes()),
        Value::Char(byte) => quote::quoted(out, &[*byte], options.hex),
        Value::Bytes(field) if field.form == BytesForm::Mac => out.extend_from_slice(field.to_string().as_bytes()),
        Value::Bytes(field) => quote::quoted(out, &field.bytes, options.hex),
        Value::UnreadText | Value::Unknown => out.push(b'?'),
        Value::Uncopied { address, count, or_more } => uncopied(out, *address, *count, *or_more),
        Value::FileMode(mode) => {
            let number = |out: &mut Vec<u8>| octal(out, u64::from(*mode));
            constants::in_style(out, options.constants, file_mode(*mode).0.is_some(), number, |out| write_mode(out, *mode));
        }
        Value::Struct(StructValue { members, address: address @ 1.., more: false, .. }) if members.is_empty() => number::hex(out, *address),
        Value::Struct(of) if of.name == "nlmsghdr" => netlink::message(out, of, options),
        Value::Struct(of) if of.name == "nlattr" => netlink::attribute(out, of, options),
        Value::Struct(of) => part::structure(out, of, of.name, options),
        Value::Packed { name, members, .. } => part::packed(out, name, members, options),
        Value::Array(of) => array(out, of, options),
        Value::AllBut(of) => {
            out.push(b'~');
            array(out, of, options);
        }
        Value::Entries { count, first, or_more } => entries(out, first.address, *count, *or_more),
        Value::Errno(number) => match errno::name(*number) {
            Some(name) => {
                out.push(b'-');
                out.extend_from_slice(name.as_bytes());
            }
            None => number::int(out, -i64::from(*number)),
        },
        Value::Failure(failure) => self::failure(out, *failure),
    }
}

/// Writes a descriptor and its file. AT_FDCWD stands for the current directory where a directory is meant.
fn descriptor(out: &mut Vec<u8>, fd: i32, file: Option<&File>, is_directory: bool, options: Options) {
    let number = |out: &mut Vec<u8>| number::int(out, i64::from(fd));
    match is_directory && fd == AT_FDCWD {
        true => constants::in_style(out, options.constants, true, number, |out| out.extend_from_slice(b"AT_FDCWD")),
        false => number(out),
    }
    path::write(out, file, options);
}

/// Writes a number that memory has in network byte order by the macro or function of C that makes it, or as its bytes.
fn in_network_order(out: &mut Vec<u8>, bytes: &[u8], name: &[u8], options: Options) {
    let bytes = |out: &mut Vec<u8>| quote::quoted(out, bytes, InHex::Always);
    constants::in_style(out, options.constants, true, bytes, |out| out.extend_from_slice(name));
}

fn make_device(out: &mut Vec<u8>, major: u64, minor: u64) {
    out.extend_from_slice(b"makedev(");
    hex(out, major);
    out.extend_from_slice(b", ");
    hex(out, minor);
    out.push(b')');
}

/// Writes a number as `%#03o` of C does.
fn octal(out: &mut Vec<u8>, value: u64) {
    // Writing to a Vec does not fail.
    _ = if value == 0 { write!(out, "000") } else { write!(out, "{:0>3}", format!("0{value:o}")) };
}

/// Writes a user or group; the highest number, which stands for none, as -1.
fn id_number(out: &mut Vec<u8>, id: u32) {
    if id == u32::MAX { out.extend_from_slice(b"-1") } else { number::uint(out, u64::from(id)) }
}

/// Appends the name of a signal.
pub fn write_signal(out: &mut Vec<u8>, signal: i32) {
    match signal {
        32 => out.extend_from_slice(b"SIGRTMIN"),
        _ => signal::write_name(out, signal),
    }
}

/// Appends a signal in the style of constants.
pub fn styled_signal(out: &mut Vec<u8>, signal: i32, style: Constants) {
    let number = |out: &mut Vec<u8>| number::int(out, i64::from(signal));
    constants::in_style(out, style, signal > 0, number, |out| write_signal(out, signal));
}

/// Appends the code of a signal.
pub fn signal_code(out: &mut Vec<u8>, signal: i32, code: i32, style: Constants) {
    let name = signal::code_name(signal, code);
    let number = |out: &mut Vec<u8>| hex(out, u64::from(code as u32));
    constants::in_style(out, style, name.is_some(), number, |out| match name {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => hex(out, u64::from(code as u32)),
    });
}

/// Writes a string: `"abc"...` if the text is longer. Bytes of which a part could not be read are their address.
pub fn string(out: &mut Vec<u8>, text: &Text, hex: InHex, options: Options) {
    let wanted = text.wanted.map(|wanted| wanted.min(options.string_limit as u64));
    if text.address != 0 && wanted.is_some_and(|wanted| (text.bytes.len() as u64) < wanted) {
        return number::hex(out, text.address);
    }
    quote::quoted(out, &text.bytes, hex);
    if text.cut {
        out.extend_from_slice(b"...");
    }
}

fn write_macro(out: &mut Vec<u8>, name: &str, parameters: &[Value], options: Options) {
    out.extend_from_slice(name.as_bytes());
    out.push(b'(');
    for (at, parameter) in parameters.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        write(out, parameter, options);
    }
    out.push(b')');
}

/// Writes the address of strings that were counted: `0x7ffd12345678 /* 23 vars */`.
pub fn uncopied(out: &mut Vec<u8>, address: u64, count: u64, or_more: bool) {
    number::hex(out, address);
    let name = if count == 1 { "var" } else { "vars" };
    let more = if or_more { ", unterminated" } else { "" };
    // Writing to a Vec does not fail.
    _ = write!(out, " /* {count} {name}{more} */");
}

/// Appends the number of the entries of a directory. There may be more if not all were copied.
pub fn entries(out: &mut Vec<u8>, address: u64, count: u64, or_more: bool) {
    number::hex(out, address);
    // Writing to a Vec does not fail.
    _ = write!(out, " /* {}{count} entries */", if or_more { "at least " } else { "" });
}

/// Writes the type and permissions of a file: `S_IFREG|0644`.
fn write_mode(out: &mut Vec<u8>, mode: u32) {
    let (kind, permissions) = file_mode(mode);
    if let Some(name) = kind {
        out.extend_from_slice(name.as_bytes());
        out.push(b'|');
    }
    for (bit, name) in [(0o4000, "S_ISUID|"), (0o2000, "S_ISGID|"), (0o1000, "S_ISVTX|")] {
        if kind.is_some() && permissions & bit != 0 {
            out.extend_from_slice(name.as_bytes());
        }
    }
    octal(out, u64::from(if kind.is_some() { permissions & 0o777 } else { permissions }));
}

/// Writes a wait status by the macros of wait(2): `{WIFEXITED(s) && WEXITSTATUS(s) == 0}`.
fn wait_status(out: &mut Vec<u8>, status: WaitStatus) {
    out.push(b'{');
    match status.change {
        StateChange::Continued => out.extend_from_slice(b"WIFCONTINUED(s)"),
        // Writing to a Vec does not fail.
        StateChange::Exited { status } => _ = write!(out, "WIFEXITED(s) && WEXITSTATUS(s) == {status}"),
        StateChange::Stopped { signal, .. } => {
            out.extend_from_slice(b"WIFSTOPPED(s) && WSTOPSIG(s) == ");
            write_stop_signal(out, signal);
        }
        StateChange::Killed { signal, dumped } => {
            out.extend_from_slice(b"WIFSIGNALED(s) && WTERMSIG(s) == ");
            write_signal(out, signal);
            out.extend_from_slice(if dumped { b" && WCOREDUMP(s)" } else { b"" });
        }
    }
    out.push(b'}');
    if let StateChange::Stopped { event: Some(event), .. } = status.change {
        out.extend_from_slice(b" | ");
        match PTRACE_EVENT.name(u64::from(event)) {
            Some(name) => _ = write!(out, "{name} << 16"),
            None => hex(out, u64::from(event) << 16),
        }
    }
}

/// Writes the signal of a stop, to which ptrace(2) may have added a bit (PTRACE_O_TRACESYSGOOD).
fn write_stop_signal(out: &mut Vec<u8>, signal: i32) {
    const SYSCALL: i32 = 0x80;
    write_signal(out, signal & !SYSCALL);
    if signal & SYSCALL != 0 {
        out.extend_from_slice(b" | 0x80");
    }
}

/// Appends members by their names, in brackets; `more` adds dots.
pub fn members_of(out: &mut Vec<u8>, members: &[(&'static str, Value)], more: bool, options: Options) {
    out.push(b'{');
    for (at, (name, value)) in members.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        write(out, value, options);
    }
    close(out, members.is_empty(), more, b'}');
}

fn array(out: &mut Vec<u8>, of: &ArrayValue, options: Options) {
    if let Some(one) = netlink::single(of) {
        return write(out, one, options);
    }
    // A set of signals has blanks between the names, which lack `SIG`.
    let is_of_signals = of.items.first().is_some_and(|item| matches!(item, Value::Signal(_)));
    list(out, of, if is_of_signals { b" " } else { b", " }, options);
}

/// Appends the elements of an array; signals lack `SIG`.
pub fn list(out: &mut Vec<u8>, of: &ArrayValue, separator: &[u8], options: Options) {
    out.push(b'[');
    // The elements of sets have blanks between them, and are all shown.
    let shown = if options.whole || separator == b" " { of.items.len() } else { of.items.len().min(options.string_limit) };
    for (at, item) in of.items[..shown].iter().enumerate() {
        out.extend_from_slice(if at > 0 { separator } else { b"" });
        match item {
            Value::Signal(signal) => {
                let number = |out: &mut Vec<u8>| number::int(out, i64::from(*signal));
                constants::in_style(out, options.constants, true, number, |out| signal_in_set(out, *signal));
            }
            item => write(out, item, options),
        }
    }
    close(out, of.items.is_empty(), of.more || shown < of.items.len(), b']');
}

/// Appends the name of a signal without `SIG`.
fn signal_in_set(out: &mut Vec<u8>, signal: i32) {
    let begin = out.len();
    write_signal(out, signal);
    if out[begin..].starts_with(b"SIG") {
        out.drain(begin..begin + 3);
    }
}

/// Writes the end of a struct or array; `more` adds dots for omitted elements.
pub fn close(out: &mut Vec<u8>, is_empty: bool, more: bool, bracket: u8) {
    if more {
        out.extend_from_slice(if is_empty { b"..." } else { b", ..." });
    }
    out.push(bracket);
}

/// Writes the result of a call that returned no value.
pub fn failure(out: &mut Vec<u8>, failure: Failure) {
    match failure {
        Failure::Timeout => out.extend_from_slice(b"0 (Timeout)"),
        Failure::Error(number) => match (errno::name(number), errno::text(number)) {
            // Writing to a Vec does not fail.
            (Some(name), Some(text)) => _ = write!(out, "-1 {name} ({text})"),
            _ => _ = write!(out, "-1 (errno {number})"),
        },
        Failure::Restart(number) => match (errno::name(number), restart(number)) {
            // Writing to a Vec does not fail.
            (Some(name), Some(text)) => _ = write!(out, "? {name} ({text})"),
            _ => _ = write!(out, "? (errno {number})"),
        },
    }
}

/// Returns what becomes of a call that a signal interrupts, in strace's words.
fn restart(number: i32) -> Option<&'static str> {
    match number {
        512 => Some("To be restarted if SA_RESTART is set"),
        513 => Some("To be restarted"),
        514 => Some("To be restarted if no handler"),
        516 => Some("Interrupted by signal"),
        _ => errno::text(number),
    }
}
