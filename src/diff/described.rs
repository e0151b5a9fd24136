//! What a call is about, without what is different in each run.

use super::file_state::{self, FileState};
use super::noise;
use super::random_names::RandomNames;
use super::streams::{STREAMS, Streams};
use crate::beauty::decode::{Context, Decoded};
use crate::beauty::file;
use crate::beauty::lookup;
use crate::beauty::row::ArgumentKind;
use crate::beauty::signal;
use crate::beauty::table::FlagPart;
use crate::beauty::value::{ArrayValue, Text, Value};
use crate::event::{Call, File, SocketAddresses, UnixName};
use crate::json_trace::{Given, Moment};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The first port that the kernel gives to a socket by itself (net.ipv4.ip_local_port_range).
const EPHEMERAL: u16 = 32768;

/// The most bytes of an object or a detail.
const TEXT_MAX: usize = 4096;

/// A call in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The path, or the file behind the descriptor. Two paths have an arrow between them.
    pub object: Vec<u8>,
    /// The flags, commands and addresses among the arguments.
    pub detail: Vec<u8>,
    /// The object is the path of a file, whose reads may find nothing.
    pub is_path: bool,
    /// How long the call takes depends on other processes of the recording, or on the user.
    pub waits: bool,
    /// The call creates the object, which did not exist before, and only the owner may use it if the flag is set.
    pub creates: Option<(Vec<u8>, bool)>,
    /// The words of the new program.
    pub args: Vec<Vec<u8>>,
    /// What the call writes to standard error.
    pub complaint: Option<Vec<u8>>,
    /// What the call says about the object.
    pub state: FileState,
    /// The call opens the object for writing, or replaces it.
    pub writes: bool,
    /// The file that the call uses as a standard stream, if the caller may have chosen it.
    pub stream: Option<File>,
    /// The error of an operation on the object that went on by itself: connect(2) without blocking.
    pub late_error: Option<i32>,
    /// The call has a path among its arguments that the recording does not have.
    pub lacks_path: bool,
}

/// What is known of a process when it makes a call.
pub struct Around<'a> {
    /// The names of the recording.
    pub names: &'a RandomNames,
    /// The number of the process, and those of its ancestors.
    pub pids: &'a [i32],
    /// Where the standard streams of the recording lead.
    pub streams: &'a Streams,
    /// The standard streams that the process, or an ancestor, has opened: the bit 1 << N for the descriptor N.
    pub own_streams: u8,
    /// Arguments of the call that are not in its registers and its copies of memory.
    pub given: &'a [Given<'a>],
}

impl Around<'_> {
    fn given(&self, argument: usize, moment: Moment) -> Option<&Value<'_>> {
        self.given.iter().find(|given| given.argument == argument && given.moment == moment).map(|given| &given.value)
    }
}

/// Describes a call of a process.
pub fn describe(call: &Call, around: &Around) -> Described {
    let decoded = Decoded::new(call, Context::new(&|_| None, 1 << 12));
    let mut out = Described::default();
    let mut paths: Vec<Vec<u8>> = Vec::new();
    let mut folder: Option<(i32, Option<&File>)> = None;
    let (mut flags, mut mode) = (0, None);
    let name = decoded.row().map_or("", |row| row.name);
    let to_standard_error = call.args.is_some_and(|args| args[0] == 2);
    for argument in decoded.args().filter(|argument| argument.is_used()) {
        let values = argument.values();
        let of = |moment, value| around.given(argument.index(), moment).or(value);
        if let Some(value) = of(Moment::Exit, values.exit()) {
            out.found(name, value);
        }
        let Some(value) = of(Moment::Entry, values.entry()) else { continue };
        let is_path = matches!(argument.row().map(|row| row.kind), Some(ArgumentKind::Path));
        match value {
            Value::DirFd { fd, file } => folder = Some((*fd, *file)),
            Value::Fd { fd, file } if paths.is_empty() => out.of_descriptor(*fd, *file, &mut paths, around),
            Value::Str(text) if is_path => {
                let folder = folder.take();
                match folder.filter(|_| text.bytes.is_empty()) {
                    Some((fd, file)) => out.of_descriptor(fd, file, &mut paths, around),
                    None => paths.push(path(folder.and_then(|(_, file)| file), &text.bytes)),
                }
            }
            Value::Unread(_) if is_path => out.lacks_path = true,
            Value::Str(text) if name == "write" && to_standard_error => {
                written(text, out.complaint.get_or_insert_default());
            }
            Value::Array(array) if name == "writev" && to_standard_error => {
                parts(array).for_each(|text| written(text, out.complaint.get_or_insert_default()));
            }
            Value::Array(array) if matches!(name, "execve" | "execveat") && out.args.is_empty() => {
                out.args = array.items.iter().filter_map(|item| word(item, around)).collect();
            }
            Value::Array(array) if matches!(name, "poll" | "ppoll" | "ppoll_time64") => out.of_set(array, around),
            Value::Octal(bits) => mode = Some(*bits),
            value => {
                if let Value::Flags { bits, .. } = value {
                    flags = *bits;
                }
                constants(value, &mut out.detail);
            }
        }
    }
    if let Some((fd, file)) = folder.filter(|_| paths.is_empty()) {
        out.of_descriptor(fd, file, &mut paths, around);
    }
    out.writes = match name {
        "open" | "openat" | "openat2" => flags & (libc::O_ACCMODE | libc::O_CREAT) as u64 != 0,
        "creat" | "truncate" | "rename" | "renameat" | "renameat2" | "link" | "linkat" => true,
        _ => false,
    };
    const EXCLUSIVE: u64 = (libc::O_CREAT | libc::O_EXCL) as u64;
    out.creates = match (paths.first(), name) {
        (Some(path), "mkdir" | "mkdirat") => Some((path.clone(), mode == Some(0o700))),
        (Some(path), "open" | "openat") if flags & EXCLUSIVE == EXCLUSIVE => Some((path.clone(), mode == Some(0o600))),
        _ => None,
    };
    out.is_path |= !paths.is_empty() && out.object.is_empty();
    for path in paths {
        if !out.object.is_empty() {
            out.object.extend(b" -> ");
        }
        out.object.extend(around.names.without(&path, around.pids));
    }
    out.object.truncate(TEXT_MAX);
    out.detail.truncate(TEXT_MAX);
    out
}

/// Returns the name of a call.
pub fn name(call: &Call) -> Vec<u8> {
    let mut name = Vec::new();
    lookup::write_name(&mut name, lookup::row(call.abi, call.nr), call.abi, call.nr);
    name
}

impl Described {
    /// Takes the descriptor that the call is about. Where the caller lets the standard streams lead is no property of
    /// the program.
    fn of_descriptor(&mut self, fd: i32, file: Option<&File>, paths: &mut Vec<Vec<u8>>, around: &Around) {
        if !self.object.is_empty() {
            return;
        }
        let stream = usize::try_from(fd).ok().and_then(|fd| STREAMS.get(fd).map(|name| (fd, name)));
        if let Some((fd, name)) = stream.filter(|_| !matches!(file, Some(File::Socket(_)))) {
            let is_own = around.own_streams & 1 << fd != 0;
            if !is_own || file.is_none_or(|file| around.streams.is_callers(file)) {
                self.object = name.to_vec();
                self.waits = !file.is_some_and(noise::is_on_disk);
                self.stream = file.filter(|_| !is_own).cloned();
                return;
            }
        }
        match file {
            Some(File::Path(path) | File::OldPath { path, .. } | File::Device { path, .. }) => paths.push(path.to_vec()),
            Some(file) => {
                self.object = around.names.without(&kind(file), around.pids);
                self.waits = noise::waits_for_relatives(file);
            }
            None => {}
        }
    }

    /// Takes the descriptors that a call waits for, if one of them is a socket with an address of the internet.
    fn of_set(&mut self, array: &ArrayValue, around: &Around) {
        let sockets = array.items.iter().filter_map(|item| match item {
            Value::Struct(of) => of.members.iter().find_map(|(_, member)| match member {
                Value::Fd { file: Some(file @ File::Socket(socket)), .. } if matches!(socket.ends, SocketAddresses::Internet { .. }) => {
                    Some(around.names.without(&kind(file), around.pids))
                }
                _ => None,
            }),
            _ => None,
        });
        let sockets: BTreeSet<Vec<u8>> = sockets.collect();
        if let (1, Some(socket)) = (sockets.len(), sockets.into_iter().next()) {
            self.object = socket;
        }
    }

    /// Takes what the kernel returned in memory.
    fn found(&mut self, name: &str, value: &Value) {
        match value {
            Value::Struct(of) => self.state.add(&file_state::read(of)),
            Value::Array(array) if name == "getsockopt" && self.detail.ends_with(b"SO_ERROR") => {
                if let [Value::Symbol { value, .. }] = &array.items[..] {
                    self.late_error = i32::try_from(*value).ok().filter(|errno| *errno != 0);
                }
            }
            _ => {}
        }
    }
}

/// Appends what is written to a file, with a mark if the recording has only its beginning.
fn written(text: &Text, out: &mut Vec<u8>) {
    out.extend(&text.bytes[..]);
    if text.cut {
        out.extend(b"...");
    }
}

/// Returns the texts of an array of struct iovec.
fn parts<'a>(array: &'a ArrayValue) -> impl Iterator<Item = &'a Text<'a>> {
    array.items.iter().filter_map(|item| match item {
        Value::Struct(of) => of.members.iter().find_map(|(_, member)| if let Value::Str(text) = member { Some(text) } else { None }),
        _ => None,
    })
}

/// Returns the path of an argument, behind the path of its directory if it is relative.
fn path(folder: Option<&File>, path: &[u8]) -> Vec<u8> {
    match folder {
        Some(folder) if !path.starts_with(b"/") => [&file::name(folder), &b"/"[..], path].concat(),
        _ => path.to_vec(),
    }
}

/// Returns the name of a file that has no path, without identifiers and without the ports that the kernel chose.
fn kind(file: &File) -> Vec<u8> {
    let File::Socket(socket) = file else {
        return match file {
            File::Pipe { .. } => b"pipe".to_vec(),
            File::Namespace { kind, .. } => [&b"namespace "[..], kind].concat(),
            File::Process { .. } => b"pidfd".to_vec(),
            other => file::name(other).into_owned(),
        };
    };
    let mut text = if socket.protocol.is_empty() { b"socket".to_vec() } else { socket.protocol.to_vec() };
    match &socket.ends {
        SocketAddresses::Internet { local, remote } => {
            // The other side of a client has the address that matters, and of a server its own.
            let address = if file::is_set(*remote) && remote.port() < EPHEMERAL { remote } else { local };
            if file::is_set(*address) {
                text.push(b' ');
                text.extend(without_chosen_port(*address).bytes());
            }
        }
        SocketAddresses::Unix { name: UnixName::Path(name) | UnixName::Abstract(name), .. } => {
            text.push(b' ');
            text.extend(&name[..]);
        }
        _ => {}
    }
    text
}

fn without_chosen_port(address: SocketAddr) -> String {
    if address.port() < EPHEMERAL { address.to_string() } else { address.ip().to_string() }
}

/// Returns a word of a command line. Its end may be cut off, and with it a part of a random name or of a number.
fn word(value: &Value, around: &Around) -> Option<Vec<u8>> {
    let without = |text: &[u8]| around.names.without(text, around.pids);
    match value {
        Value::Str(text) if text.cut => {
            let end = text.bytes.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |last| last + 1);
            Some([&without(without_part_of_uuid(&text.bytes[..end])), &b"..."[..]].concat())
        }
        Value::Str(text) => Some(without(&text.bytes)),
        _ => None,
    }
}

/// Returns a text without the beginning of a UUID at its end, which is `0338c8ad-a5e6-` for example.
fn without_part_of_uuid(text: &[u8]) -> &[u8] {
    let hex = |part: &[u8]| part.iter().all(u8::is_ascii_hexdigit);
    let from = text.iter().rposition(|byte| !byte.is_ascii_hexdigit() && *byte != b'-').map_or(0, |last| last + 1);
    let mut parts = text[from..].split(|byte| *byte == b'-');
    let is_part = parts.next().is_some_and(|first| first.len() == 8 && hex(first)) && parts.all(|part| part.len() <= 4 && hex(part));
    if is_part { &text[..from] } else { text }
}

/// Appends the names of the constants in a value, and the addresses of sockets.
fn constants(value: &Value, out: &mut Vec<u8>) {
    let text = match value {
        Value::Flags { table, bits } => {
            let parts = table.flags(*bits).map(|part| match part {
                FlagPart::Constant { name, .. } => name.to_owned(),
                FlagPart::Rest(bits) => format!("{bits:#x}"),
            });
            parts.collect::<Vec<_>>().join("|")
        }
        Value::Symbol { table, value } => table.name(*value).map_or_else(|| format!("{value:#x}"), str::to_owned),
        Value::Macro { name, .. } => (*name).to_owned(),
        Value::Signal(number) => signal::name(*number).map_or_else(|| number.to_string(), str::to_owned),
        Value::Ip(address) => address.to_string(),
        Value::Port(port) => port.0.to_string(),
        Value::SocketAddress(address) => address.to_string(),
        Value::Struct(of) if of.name.starts_with("sockaddr") => {
            for (_, member) in &of.members {
                match member {
                    Value::Str(text) => {
                        out.push(b' ');
                        out.extend(&text.bytes[..]);
                    }
                    member => constants(member, out),
                }
            }
            return;
        }
        _ => return,
    };
    if !out.is_empty() {
        out.push(b' ');
    }
    out.extend(text.bytes());
}
