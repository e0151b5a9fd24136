//! What a call is about, without what is different in each run.

use super::noise;
use super::random_names::RandomNames;
use crate::beauty::decode::{Context, Decoded};
use crate::beauty::file;
use crate::beauty::lookup;
use crate::beauty::row::ArgumentKind;
use crate::beauty::signal;
use crate::beauty::table::FlagPart;
use crate::beauty::value::Value;
use crate::event::{Call, File, SocketAddresses, UnixName};
use std::net::SocketAddr;

/// The first port that the kernel gives to a socket by itself (net.ipv4.ip_local_port_range).
const EPHEMERAL: u16 = 32768;

/// The object of calls on the descriptor 2.
pub const STANDARD_ERROR: &[u8] = b"standard error";

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
}

/// Describes a call of a process. `pids` are its number and those of its ancestors.
pub fn describe(call: &Call, names: &RandomNames, pids: &[i32]) -> Described {
    let decoded = Decoded::new(call, Context::new(&|_| None, 1 << 12));
    let mut out = Described::default();
    let mut paths: Vec<Vec<u8>> = Vec::new();
    let mut folder: Option<(i32, Option<&File>)> = None;
    let (mut flags, mut mode) = (0, None);
    let name = decoded.row().map_or("", |row| row.name);
    for argument in decoded.args().filter(|argument| argument.is_used()) {
        let values = argument.values();
        let Some(value) = values.entry() else { continue };
        match value {
            Value::DirFd { fd, file } => folder = Some((*fd, *file)),
            Value::Fd { fd, file } if paths.is_empty() => out.of_descriptor(*fd, *file, &mut paths, (names, pids)),
            Value::Str(text) if matches!(argument.row().map(|row| row.kind), Some(ArgumentKind::Path)) => {
                let folder = folder.take();
                match folder.filter(|_| text.bytes.is_empty()) {
                    Some((fd, file)) => out.of_descriptor(fd, file, &mut paths, (names, pids)),
                    None => paths.push(path(folder.and_then(|(_, file)| file), &text.bytes)),
                }
            }
            Value::Str(text) if name == "write" && call.args.is_some_and(|args| args[0] == 2) => {
                out.complaint = Some(text.bytes.to_vec());
            }
            Value::Array(array) if matches!(name, "execve" | "execveat") && out.args.is_empty() => {
                out.args = array.items.iter().filter_map(|item| word(item, names, pids)).collect();
            }
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
        out.of_descriptor(fd, file, &mut paths, (names, pids));
    }
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
        out.object.extend(names.without(&path, pids));
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
    /// Takes the descriptor that the call is about. Where the standard streams lead to is the caller's choice, and no
    /// property of the program.
    fn of_descriptor(&mut self, fd: i32, file: Option<&File>, paths: &mut Vec<Vec<u8>>, (names, pids): (&RandomNames, &[i32])) {
        const STREAMS: [&[u8]; 3] = [b"standard input", b"standard output", STANDARD_ERROR];
        if !self.object.is_empty() {
            return;
        }
        let stream = usize::try_from(fd).ok().and_then(|fd| STREAMS.get(fd));
        if let Some(stream) = stream.filter(|_| !matches!(file, Some(File::Socket(_)))) {
            self.object = stream.to_vec();
            self.waits = true;
            return;
        }
        match file {
            Some(File::Path(path) | File::OldPath { path, .. } | File::Device { path, .. }) => paths.push(path.to_vec()),
            Some(file) => {
                self.object = names.without(&kind(file), pids);
                self.waits = noise::waits_for_relatives(file);
            }
            None => {}
        }
    }
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
fn word(value: &Value, names: &RandomNames, pids: &[i32]) -> Option<Vec<u8>> {
    match value {
        Value::Str(text) if text.cut => {
            let end = text.bytes.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |last| last + 1);
            Some([&names.without(&text.bytes[..end], pids), &b"..."[..]].concat())
        }
        Value::Str(text) => Some(names.without(&text.bytes, pids)),
        _ => None,
    }
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
