//! Writes values as JSON: typed, and with full names of constants. rtrace-json(5) documents each form.

use super::write::{Elements, array, bytes, int, object, uint, word};
use crate::beauty::errno;
use crate::beauty::file::is_set;
use crate::beauty::row::ConstantTable;
use crate::beauty::signal;
use crate::beauty::table::FlagPart;
use crate::beauty::tables::constants::{ETHERNET_PROTOCOL, NETLINK_FAMILY, PTRACE_EVENT, SOCKET_FAMILY};
use crate::beauty::value::{ArrayValue, BytesForm, Failure, FieldBytes, StateChange, StructValue, Text, Value, WaitStatus, file_mode};
use crate::event::{DeviceKind, File, Socket, SocketAddresses, UnixName};
use crate::kernel::print_fmt::NamedNumber;
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::ptr;

const AT_FDCWD: i32 = -100;

/// Appends a value in the form that rtrace-json(5) documents. Plain numbers are written in place, because most members
/// of structs are such.
#[inline]
pub fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Int(value) => int(out, *value),
        Value::Uint(value) => uint(out, *value),
        _ => write_any(out, value),
    }
}

fn write_any(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Int(value) => int(out, *value),
        Value::Uint(value) => uint(out, *value),
        Value::Hex(value) => object(out, |o| o.hex("hex", *value)),
        Value::Octal(value) => object(out, |o| o.uint("permissions", *value)),
        Value::Address(address) => object(out, |o| o.hex("address", *address)),
        Value::Unread(address) => object(out, |o| {
            o.hex("address", *address);
            o.mark("unread", *address != 0);
        }),
        Value::Code(address) => object(out, |o| o.hex("code", *address)),
        Value::Flags { table, bits } => flags(out, table, *bits),
        Value::Symbol { table, value } => symbol(out, table, *value),
        Value::Macro { name, parameters, value } => constant(out, Some(name), |o| {
            array(o.named("parameters"), |a| parameters.iter().for_each(|parameter| write(a.item(), parameter)));
            o.uint("value", *value);
        }),
        Value::Fd { fd, file } => object(out, |o| descriptor(o, *fd, *file)),
        Value::DirFd { fd, file } => object(out, |o| {
            if *fd == AT_FDCWD {
                o.word("constant", "AT_FDCWD");
            }
            descriptor(o, *fd, *file);
        }),
        Value::Pid { pid, translated, comm } => object(out, |o| {
            o.int("pid", i64::from(*pid));
            translated.iter().for_each(|translated| o.int("here", i64::from(*translated)));
            comm.iter().for_each(|comm| o.bytes("comm", comm));
        }),
        Value::Id { id, initial } => object(out, |o| {
            o.uint("id", u64::from(*id));
            o.uint("here", u64::from(*initial));
        }),
        Value::Signal(signal) => write_signal(out, *signal),
        Value::SignalCode { signal, code } => signal_code(out, *signal, *code),
        Value::Dev { major, minor } => object(out, |o| {
            o.uint("major", u64::from(*major));
            o.uint("minor", u64::from(*minor));
        }),
        Value::Str(text) => string(out, text),
        Value::Ip(address) => object(out, |o| o.word("ip", &address.to_string())),
        Value::Port(port) => uint(out, u64::from(port.0)),
        Value::WaitStatus(status) => object(out, |o| o.object("wait_status", |o| wait_status(o, *status))),
        Value::SocketAddress(address) => object(out, |o| socket_address(o, *address)),
        Value::Named(named) => object(out, |o| named_number(o, named)),
        Value::Char(byte) => object(out, |o| o.uint("char", u64::from(*byte))),
        Value::Bytes(field) => object(out, |o| field_bytes(o, field)),
        Value::UnreadText => object(out, |o| o.mark("unread", true)),
        Value::Uncopied { address, count, or_more } => object(out, |o| {
            o.uint("strings", *count);
            o.mark("or_more", *or_more);
            o.hex("address", *address);
        }),
        Value::FileMode(mode) => object(out, |o| write_mode(o, *mode)),
        Value::Struct(StructValue { name, address, members, more }) => object(out, |o| {
            o.word("struct", name);
            o.object("members", |o| write_members(o, members));
            o.mark("more", *more);
            write_address(o, *address);
        }),
        Value::Packed { name, raw, members } => object(out, |o| {
            o.word("packed", name);
            o.object("members", |o| write_members(o, members));
            o.hex("raw", *raw);
        }),
        Value::Array(list) => object(out, |o| write_list(o, "array", list)),
        Value::AllBut(list) => object(out, |o| write_list(o, "all_but", list)),
        // JSON has the entries themselves. This brief form is for perf style.
        Value::Entries { first, .. } => object(out, |o| write_list(o, "array", first)),
        Value::Errno(number) => object(out, |o| failure(o, Failure::Error(*number))),
        Value::Failure(of) => object(out, |o| o.object("failure", |o| failure(o, *of))),
        Value::Unknown => out.extend_from_slice(b"null"),
    }
}

fn signal_code(out: &mut Vec<u8>, signal: i32, code: i32) {
    let name = signal::code_name(signal, code);
    constant(out, name, |o| {
        o.int("value", i64::from(code));
        o.mark("decimal", name.is_none());
    });
}

/// Writes why a call returned no value.
pub fn failure(o: &mut Elements, failure: Failure) {
    match failure {
        Failure::Timeout => o.mark("timeout", true),
        Failure::Error(number) | Failure::Restart(number) => {
            o.int("errno", i64::from(number));
            errno::name(number).iter().for_each(|name| o.word("name", name));
            o.mark("restarts", matches!(failure, Failure::Restart(_)));
        }
    }
}

fn field_bytes(o: &mut Elements, field: &FieldBytes) {
    let form = match field.form {
        BytesForm::Plain => "data",
        BytesForm::Mac => "mac",
        BytesForm::Uuid => "uuid",
    };
    word(o.named(form), &field.to_string());
    o.mark("more", field.more);
}

fn write_members(o: &mut Elements, members: &[(&'static str, Value)]) {
    members.iter().for_each(|(name, value)| write(o.named(name), value));
}

fn write_list(o: &mut Elements, name: &str, ArrayValue { address, items, more }: &ArrayValue) {
    array(o.named(name), |a| items.iter().for_each(|item| write(a.item(), item)));
    o.mark("more", *more);
    write_address(o, *address);
}

/// Adds the address of a value, if it was in the process's memory.
fn write_address(o: &mut Elements, address: u64) {
    if address != 0 {
        o.hex("address", address);
    }
}

/// Writes the names of the flags in a number, the bits without a name as a number, and the prefixes of the names.
fn flags(out: &mut Vec<u8>, table: &'static ConstantTable, bits: u64) {
    let mut rest = 0;
    // Bit fields have tables of their own.
    let mut prefixes: SmallVec<[&str; 2]> = SmallVec::new();
    object(out, |o| {
        o.array("flags", |a| {
            for part in table.flags(bits) {
                match part {
                    FlagPart::Constant { table, name } => {
                        // Most flags are of the same table as the flag before.
                        let is_listed =
                            prefixes.last().is_some_and(|last| ptr::eq(*last, table.prefix)) || prefixes.contains(&table.prefix);
                        if !is_listed && has_prefix(table, name) {
                            prefixes.push(table.prefix);
                        }
                        a.word_item(name);
                    }
                    FlagPart::Rest(bits) => rest = bits,
                }
            }
        });
        if rest != 0 {
            o.hex("rest", rest);
        }
        if !prefixes.is_empty() {
            o.array("prefixes", |a| prefixes.iter().for_each(|prefix| a.word_item(prefix)));
        }
    });
}

/// Writes a constant of a table, with the prefix of its name.
fn symbol(out: &mut Vec<u8>, table: &'static ConstantTable, value: u64) {
    let name = table.name(value);
    constant(out, name, |o| {
        o.uint("value", value);
        if name.is_some_and(|name| has_prefix(table, name)) {
            o.array("prefixes", |a| a.word_item(table.prefix));
        }
    });
}

/// Returns whether the name is longer than the prefix of its table.
#[inline]
fn has_prefix(table: &'static ConstantTable, name: &'static str) -> bool {
    table.short(name).len() != name.len()
}

/// Writes the names that an event's print format has for a number, and the separators between them unless all are `|`.
fn named_number(o: &mut Elements, named: &NamedNumber) {
    o.array("names", |a| named.names.iter().for_each(|name| bytes(a.item(), name.name.as_bytes())));
    if named.names.iter().skip(1).any(|name| name.separator != "|") {
        o.array("separators", |a| named.names.iter().skip(1).for_each(|name| bytes(a.item(), name.separator.as_bytes())));
    }
    if named.rest != 0 {
        o.hex("rest", named.rest);
    }
    o.uint("value", named.number);
}

fn socket_address(o: &mut Elements, address: SocketAddr) {
    o.word("ip", &address.ip().to_string());
    o.uint("port", u64::from(address.port()));
    if let SocketAddr::V6(address) = address
        && address.scope_id() != 0
    {
        o.uint("scope", u64::from(address.scope_id()));
    }
}

/// Writes a number with its name; the name is `null` if the number has none.
fn constant(out: &mut Vec<u8>, name: Option<&str>, value: impl FnOnce(&mut Elements)) {
    object(out, |o| {
        match name {
            Some(name) => o.word("constant", name),
            None => o.member("constant").extend_from_slice(b"null"),
        }
        value(o);
    });
}

/// Writes a signal by number and name.
pub fn write_signal(out: &mut Vec<u8>, number: i32) {
    object(out, |o| {
        o.int("signal", i64::from(number));
        let mut name = Vec::new();
        signal::write_name(&mut name, number);
        if name.starts_with(b"SIG") {
            o.bytes("name", &name);
        }
    });
}

fn string(out: &mut Vec<u8>, text: &Text) {
    object(out, |o| {
        o.bytes("text", &text.bytes);
        o.mark("cut", text.cut);
        o.mark("altered", text.altered);
        text.wanted.iter().for_each(|wanted| o.uint("wanted", *wanted));
        write_address(o, text.address);
    });
}

fn wait_status(o: &mut Elements, status: WaitStatus) {
    match status.change {
        StateChange::Continued => o.mark("continued", true),
        StateChange::Exited { status } => o.uint("exited", u64::from(status)),
        StateChange::Stopped { signal, event } => {
            write_signal(o.member("stopped"), signal);
            if let Some(event) = event.map(u64::from) {
                symbol(o.member("event"), &PTRACE_EVENT, event);
            }
        }
        StateChange::Killed { signal, dumped } => {
            write_signal(o.member("killed"), signal);
            o.mark("dumped", dumped);
        }
    }
    o.hex("raw", u64::from(status.raw));
}

fn write_mode(o: &mut Elements, mode: u32) {
    let (kind, permissions) = file_mode(mode);
    kind.iter().for_each(|kind| o.word("type", kind));
    o.uint("permissions", u64::from(permissions));
}

fn descriptor(o: &mut Elements, fd: i32, file: Option<&File>) {
    o.int("fd", i64::from(fd));
    if let Some(file) = file {
        write_file(o.member("file"), file);
    }
}

/// Writes the file that a descriptor refers to.
pub fn write_file(out: &mut Vec<u8>, file: &File) {
    object(out, |o| match file {
        File::Path(path) => o.bytes("path", path),
        File::Device { path, kind, major, minor } => {
            o.bytes("path", path);
            o.object("device", |o| {
                o.word("kind", if *kind == DeviceKind::Block { "block" } else { "character" });
                o.uint("major", u64::from(*major));
                o.uint("minor", u64::from(*minor));
            });
        }
        File::OldPath { path, deleted, cut } => {
            o.bytes("path", path);
            o.mark("deleted", *deleted);
            o.mark("cut", *cut);
        }
        File::Socket(socket) => o.object("socket", |o| write_socket(o, socket)),
        File::Pipe { inode } => o.uint("pipe", *inode),
        File::Memory(name) => o.bytes("memfd", name),
        File::Anonymous(name) => o.bytes("anonymous", name),
        File::Namespace { kind, inode } => {
            o.bytes("namespace", kind);
            o.uint("inode", *inode);
        }
        File::Process { pid } => o.int("pidfd", i64::from(*pid)),
    });
}

fn write_socket(o: &mut Elements, socket: &Socket) {
    o.uint("inode", socket.inode);
    if !socket.protocol.is_empty() {
        o.bytes("protocol", &socket.protocol);
    }
    if socket.family != 0 {
        let family = u64::from(socket.family);
        symbol(o.member("family"), &SOCKET_FAMILY, family);
    }
    match &socket.ends {
        SocketAddresses::Unknown => {}
        SocketAddresses::Internet { local, remote } => {
            internet(o, "local", *local);
            internet(o, "remote", *remote);
        }
        SocketAddresses::Unix { peer, name } => {
            if *peer != 0 {
                o.uint("peer", *peer);
            }
            match name {
                UnixName::Unnamed => {}
                UnixName::Path(path) => o.bytes("path", path),
                UnixName::Abstract(name) => o.bytes("abstract", name),
            }
        }
        SocketAddresses::Netlink { protocol, port } => {
            symbol(o.member("number"), &NETLINK_FAMILY, u64::from(*protocol));
            o.uint("port", u64::from(port.0));
        }
        SocketAddresses::Packet { protocol, interface } => {
            symbol(o.member("number"), &ETHERNET_PROTOCOL, u64::from(*protocol));
            o.uint("interface", u64::from(*interface));
        }
        SocketAddresses::Vsock { local, remote } => {
            for (name, (context, port)) in [("local", local), ("remote", remote)] {
                object(o.named(name), |o| {
                    o.uint("context", u64::from(*context));
                    o.uint("port", u64::from(port.0));
                });
            }
        }
    }
}

fn internet(o: &mut Elements, name: &str, address: SocketAddr) {
    if is_set(address) {
        object(o.named(name), |o| socket_address(o, address));
    }
}
