//! The object of a call, and its forms in text and in JSON.

use crate::beauty::decode::{Argument, Context, Decoded, Values};
use crate::beauty::json::value as json_value;
use crate::beauty::perf::{self, value};
use crate::beauty::row::ArgumentKind;
use crate::beauty::value::{Returned, Text, Value};
use crate::beauty::{errno, file};
use crate::event::{Call, Event, ExitState, File};
use crate::show::SummaryObject;
use crate::sink::View;
use crate::sink::summary::numbers::shown;
use crate::text::json::Bytes;
use serde_json::{Map, Value as Json, json};

/// The object of a call.
pub enum CallObject<'c> {
    File(&'c File),
    Path(Vec<u8>),
    Descriptor {
        fd: i32,
        file: Option<&'c File>,
    },
    /// The address of a peer in the caller's memory.
    Address(Value<'c>),
    /// The socket whose other end is the peer, and the name of that end.
    OtherEnd {
        socket: &'c File,
        name: String,
    },
    Comm(&'c [u8]),
    /// The error number; 0 if the call succeeded.
    Errno(i32),
    Argument {
        name: &'c str,
        values: Values<'c>,
    },
    Unknown,
    None,
}

/// Passes the object of a call to a function. `string_limit` is the maximum number of bytes of a string.
pub fn with<T>(
    kind: &SummaryObject,
    event: &Event,
    call: &Call,
    view: &View,
    string_limit: usize,
    then: impl FnOnce(&CallObject) -> T,
) -> T {
    let comm = |tid| view.tasks.comm_at(tid, event.time);
    let decoded = Decoded::new(call, Context::new(&comm, string_limit));
    then(&match kind {
        SummaryObject::Comm => event.comm.as_ref().map_or(CallObject::Unknown, |comm| CallObject::Comm(comm)),
        SummaryObject::Errno => of_errno(call),
        SummaryObject::Path => of_path(call, &decoded),
        SummaryObject::Fd => of_fd(call, &decoded),
        SummaryObject::Peer => of_peer(&decoded),
        SummaryObject::Arg(name) => of_argument(&decoded, name),
    })
}

impl CallObject<'_> {
    /// Returns the text of the objects' column.
    pub fn name(&self) -> String {
        match self {
            CallObject::File(file) => named(file),
            CallObject::Path(path) => shown(path),
            CallObject::Descriptor { fd, file: Some(file) } => format!("{fd}<{}>", named(file)),
            CallObject::Descriptor { fd, file: None } => format!("{fd}<?>"),
            CallObject::Address(address) => text(|out| value::write(out, address, false)),
            CallObject::OtherEnd { name, .. } => name.clone(),
            CallObject::Comm(comm) => shown(comm),
            CallObject::Errno(0) => "0".to_owned(),
            CallObject::Errno(number) => errno::name(*number).map_or_else(|| number.to_string(), str::to_owned),
            CallObject::Argument { values, .. } => text(|out| perf::write_argument(out, values, false)),
            CallObject::Unknown | CallObject::None => String::new(),
        }
    }

    /// Returns the object as JSON. The addresses of memory are left out, because they differ between calls with the
    /// same object.
    pub fn value(&self) -> Json {
        match self {
            CallObject::File(file) => parsed(|out| json_value::write_file(out, file)),
            CallObject::Path(path) => json!({ "path": Bytes(path) }),
            CallObject::Descriptor { fd, file } => parsed(|out| json_value::write(out, &Value::Fd { fd: *fd, file: *file })),
            CallObject::Address(address) => json!({ "peer_address": parsed(|out| json_value::write(out, address)) }),
            CallObject::OtherEnd { socket, .. } => json!({ "peer": other_end(parsed(|out| json_value::write_file(out, socket))) }),
            CallObject::Comm(comm) => json!({ "comm": Bytes(comm) }),
            CallObject::Errno(number) => match errno::name(*number) {
                Some(name) => json!({ "errno": number, "name": name }),
                None => json!({ "errno": number }),
            },
            CallObject::Argument { name, values } => {
                let mut object = Map::from_iter([("argument".to_owned(), json!(name))]);
                for (moment, value) in [("entry", values.entry()), ("exit", values.exit())] {
                    object.extend(value.map(|value| (moment.to_owned(), parsed(|out| json_value::write(out, value)))));
                }
                Json::Object(object)
            }
            CallObject::Unknown | CallObject::None => Json::Null,
        }
    }
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns what the JSON style writes, without the addresses of values that were read from memory.
fn parsed(write: impl FnOnce(&mut Vec<u8>)) -> Json {
    let mut out = Vec::new();
    write(&mut out);
    let mut value = serde_json::from_slice(&out).unwrap_or_default();
    forget_addresses(&mut value);
    value
}

fn forget_addresses(value: &mut Json) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(forget_addresses),
        Json::Object(members) => {
            if ["text", "struct", "array", "all_but"].iter().any(|kind| members.contains_key(*kind)) {
                members.remove("address");
            }
            members.values_mut().for_each(forget_addresses);
        }
        _ => {}
    }
}

/// Keeps only those members of a socket's object that describe its other end.
fn other_end(mut file: Json) -> Json {
    let mut socket = file["socket"].take();
    if let Some(members) = socket.as_object_mut() {
        members.remove("inode");
        members.remove("local");
    }
    socket
}

fn of_errno(call: &Call) -> CallObject<'static> {
    match (call.exit, call.errno()) {
        (ExitState::Never, _) => CallObject::None,
        (ExitState::Returned { .. }, None) => CallObject::Errno(0),
        (_, Some(number)) => CallObject::Errno(number),
        _ => CallObject::Unknown,
    }
}

fn of_argument<'c>(decoded: &Decoded<'c>, name: &'c str) -> CallObject<'c> {
    let Some(argument) = decoded.args().find(|argument| argument.name() == name && argument.is_used()) else { return CallObject::None };
    match argument.values() {
        Values::Entry(Value::Unknown) => CallObject::Unknown,
        values => CallObject::Argument { name, values },
    }
}

/// Returns the file that a call opened, that its path names, or that its descriptor refers to.
fn of_path<'c>(call: &Call, decoded: &Decoded<'c>) -> CallObject<'c> {
    if let Returned::Value(Value::Fd { file: Some(file), .. }) = decoded.returned() {
        return CallObject::File(file);
    }
    let Some(row) = decoded.row() else { return CallObject::None };
    let names_path = |name: &str| row.args.iter().any(|arg| arg.name == name && matches!(arg.kind, ArgumentKind::Path));
    let mut directory: Option<Option<&'c File>> = None;
    let mut file: Option<Option<&'c File>> = None;
    for argument in decoded.args().filter(Argument::is_used) {
        let values = argument.values();
        let Some(value) = values.entry() else { continue };
        match value {
            _ if names_path(argument.name()) => {
                return match value {
                    Value::Str(Text { bytes, cut: false, altered: false, .. }) => at(directory.flatten(), bytes),
                    _ => CallObject::Unknown,
                };
            }
            Value::DirFd { file, .. } => directory = Some(*file),
            Value::Fd { file: found, .. } => file = file.or(Some(*found)),
            _ => {}
        }
    }
    match file.or(directory) {
        Some(Some(file)) => CallObject::File(file),
        Some(None) => CallObject::Unknown,
        None if call.args.is_none() && row.args.iter().any(|arg| matches!(arg.kind, ArgumentKind::Path | ArgumentKind::Fd)) => {
            CallObject::Unknown
        }
        None => CallObject::None,
    }
}

fn named(file: &File) -> String {
    shown(&file::name(file))
}

/// Returns a path joined to its directory if that is known, or else the path as the program wrote it.
fn at(directory: Option<&File>, path: &[u8]) -> CallObject<'static> {
    match directory {
        Some(File::Path(directory)) if !path.starts_with(b"/") && directory.starts_with(b"/") => {
            let between: &[u8] = if path.is_empty() || directory.ends_with(b"/") { b"" } else { b"/" };
            CallObject::Path([&directory[..], between, path].concat())
        }
        _ => CallObject::Path(path.to_vec()),
    }
}

/// Returns the call's first descriptor argument, or else the returned descriptor.
fn of_fd<'c>(call: &Call, decoded: &Decoded<'c>) -> CallObject<'c> {
    let argument = decoded.args().filter(Argument::is_used).find_map(|argument| match argument.values().entry() {
        Some(Value::Fd { fd, file }) => Some((*fd, *file)),
        _ => None,
    });
    let returned = || match decoded.returned() {
        Returned::Value(Value::Fd { fd, file }) => Some((fd, file)),
        _ => None,
    };
    match argument.or_else(returned) {
        Some((fd, file)) => CallObject::Descriptor { fd, file },
        None if call.args.is_none() && decoded.row().is_some_and(|row| row.args.iter().any(|arg| matches!(arg.kind, ArgumentKind::Fd))) => {
            CallObject::Unknown
        }
        None => CallObject::None,
    }
}

/// Returns the peer of a call: the address in its arguments, or the other end of its socket.
fn of_peer<'c>(decoded: &Decoded<'c>) -> CallObject<'c> {
    // Rows do not say whose address an argument is: that of bind(2) is the caller's own.
    const ADDRESSES: [(&str, &str); 2] = [("connect", "uservaddr"), ("sendto", "addr")];
    let name = decoded.row().map_or("", |row| row.name);
    let mut object = CallObject::None;
    for argument in decoded.args().filter(Argument::is_used) {
        let values = argument.values();
        let Some(value) = values.entry() else { continue };
        match value {
            Value::Struct(_) if ADDRESSES.contains(&(name, argument.name())) => return CallObject::Address(value.clone()),
            Value::Fd { file, .. } if matches!(object, CallObject::None) => object = file.map_or(CallObject::Unknown, peer),
            _ => {}
        }
    }
    match decoded.returned() {
        Returned::Value(Value::Fd { file: Some(file), .. }) if matches!(object, CallObject::None | CallObject::Unknown) => peer(file),
        _ => object,
    }
}

/// Returns the other end of a socket, which is the part after the arrow of `TCP:[127.0.0.1:51234->127.0.0.1:80]`.
fn peer(socket: &File) -> CallObject<'_> {
    match socket {
        File::Socket(of) if of.protocol.is_empty() => CallObject::Unknown,
        File::Socket(_) => {
            let name = named(socket);
            match (name.split_once(":["), name.rsplit_once("->")) {
                (Some((protocol, _)), Some((_, end))) => {
                    CallObject::OtherEnd { socket, name: format!("{protocol} {}", end.trim_end_matches(']')) }
                }
                _ => CallObject::None,
            }
        }
        _ => CallObject::None,
    }
}
