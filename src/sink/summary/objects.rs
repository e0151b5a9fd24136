//! `--by`: the objects of calls, such as paths and peers. Calls without an object, and calls whose object is unknown,
//! have rows of their own.

use super::numbers::shown;
use crate::beauty::decode::{Argument, Context, Decoded, Values};
use crate::beauty::perf::{self, value};
use crate::beauty::row::ArgumentKind;
use crate::beauty::value::{Returned, Text, Value};
use crate::beauty::{errno, file};
use crate::event::{Call, Event, ExitState, File};
use crate::show::SummaryObject;
use crate::sink::View;
use rustc_hash::FxHashMap;

/// The maximum number of objects. Calls of further objects are counted in one row.
const OBJECTS_MAX: usize = 1 << 16;

/// The index of an object in [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u32);

impl ObjectId {
    /// No object: the summary is not by objects.
    pub const ANY: ObjectId = ObjectId(0);
    /// The call has an object that is unknown.
    const UNKNOWN: ObjectId = ObjectId(1);
    /// The call has no object.
    const NONE: ObjectId = ObjectId(2);
    /// An object beyond the maximum number.
    const BEYOND: ObjectId = ObjectId(3);
    const FIRST: u32 = 4;
}

/// All objects of the trace.
pub struct Objects {
    kind: Option<SummaryObject>,
    names: Vec<String>,
    ids: FxHashMap<String, ObjectId>,
    string_limit: usize,
}

/// The object of a call.
enum CallObject {
    Name(String),
    Unknown,
    None,
}

impl Objects {
    pub fn new(kind: Option<SummaryObject>, string_limit: usize) -> Objects {
        Objects { kind, names: Vec::new(), ids: FxHashMap::default(), string_limit }
    }

    /// Returns the title of the objects' column.
    pub fn title(&self) -> Option<&str> {
        self.kind.as_ref().map(SummaryObject::name)
    }

    pub fn name(&self, id: ObjectId) -> &str {
        match id {
            ObjectId::ANY => "",
            ObjectId::UNKNOWN => "?",
            ObjectId::NONE => "-",
            ObjectId::BEYOND => "... (others)",
            ObjectId(id) => self.names.get((id - ObjectId::FIRST) as usize).map_or("?", String::as_str),
        }
    }

    /// Returns the meaning of a sign in the objects' column.
    pub fn legend(&self, id: ObjectId) -> Option<&'static str> {
        match id {
            ObjectId::UNKNOWN => Some("?: the call has an object, which is not known"),
            ObjectId::NONE => Some("-: the call has no object"),
            _ => None,
        }
    }

    pub fn of(&mut self, event: &Event, call: &Call, view: &View) -> ObjectId {
        let Some(kind) = &self.kind else { return ObjectId::ANY };
        let comm = |tid| view.tasks.comm_at(tid, event.time);
        let decoded = Decoded::new(call, Context::new(&comm, self.string_limit));
        let object = match kind {
            SummaryObject::Comm => event.comm.as_ref().map_or(CallObject::Unknown, |comm| CallObject::Name(shown(comm))),
            SummaryObject::Errno => of_errno(call),
            SummaryObject::Path => of_path(call, &decoded),
            SummaryObject::Fd => of_fd(call, &decoded),
            SummaryObject::Peer => of_peer(&decoded),
            SummaryObject::Arg(name) => of_argument(&decoded, name),
        };
        match object {
            CallObject::Name(name) => self.id(name),
            CallObject::Unknown => ObjectId::UNKNOWN,
            CallObject::None => ObjectId::NONE,
        }
    }

    fn id(&mut self, name: String) -> ObjectId {
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        if self.names.len() == OBJECTS_MAX {
            return ObjectId::BEYOND;
        }
        let id = ObjectId(ObjectId::FIRST + self.names.len() as u32);
        self.names.push(name.clone());
        self.ids.insert(name, id);
        id
    }
}

fn of_errno(call: &Call) -> CallObject {
    match (call.exit, call.errno()) {
        (ExitState::Never, _) => CallObject::None,
        (ExitState::Returned { .. }, None) => CallObject::Name("0".to_owned()),
        (_, Some(number)) => CallObject::Name(errno::name(number).map_or_else(|| number.to_string(), str::to_owned)),
        _ => CallObject::Unknown,
    }
}

fn text(value: &Value) -> String {
    let mut out = Vec::new();
    value::write(&mut out, value, false);
    String::from_utf8_lossy(&out).into_owned()
}

fn of_argument(decoded: &Decoded, name: &str) -> CallObject {
    let Some(argument) = decoded.args().find(|argument| argument.name() == name && argument.is_used()) else { return CallObject::None };
    match argument.values() {
        Values::Entry(Value::Unknown) => CallObject::Unknown,
        values => {
            let mut out = Vec::new();
            perf::write_argument(&mut out, &values, false);
            CallObject::Name(String::from_utf8_lossy(&out).into_owned())
        }
    }
}

/// Returns the file that a call opened, that its path names, or that its descriptor refers to.
fn of_path(call: &Call, decoded: &Decoded) -> CallObject {
    if let Returned::Value(Value::Fd { file: Some(file), .. }) = decoded.returned() {
        return CallObject::Name(named(file));
    }
    let Some(row) = decoded.row() else { return CallObject::None };
    let names_path = |name: &str| row.args.iter().any(|arg| arg.name == name && matches!(arg.kind, ArgumentKind::Path));
    let mut directory: Option<Option<&File>> = None;
    let mut file: Option<Option<&File>> = None;
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
        Some(Some(file)) => CallObject::Name(named(file)),
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
fn at(directory: Option<&File>, path: &[u8]) -> CallObject {
    match directory {
        Some(File::Path(directory)) if !path.starts_with(b"/") && directory.starts_with(b"/") => {
            let between: &[u8] = if path.is_empty() || directory.ends_with(b"/") { b"" } else { b"/" };
            CallObject::Name(shown(&[directory, between, path].concat()))
        }
        _ => CallObject::Name(shown(path)),
    }
}

/// Returns the call's first descriptor argument, or else the returned descriptor.
fn of_fd(call: &Call, decoded: &Decoded) -> CallObject {
    let argument = decoded.args().filter(Argument::is_used).find_map(|argument| match argument.values().entry() {
        Some(Value::Fd { fd, file }) => Some((*fd, *file)),
        _ => None,
    });
    let returned = || match decoded.returned() {
        Returned::Value(Value::Fd { fd, file }) => Some((fd, file)),
        _ => None,
    };
    match argument.or_else(returned) {
        Some((fd, Some(file))) => CallObject::Name(format!("{fd}<{}>", named(file))),
        Some((fd, None)) => CallObject::Name(format!("{fd}<?>")),
        None if call.args.is_none() && decoded.row().is_some_and(|row| row.args.iter().any(|arg| matches!(arg.kind, ArgumentKind::Fd))) => {
            CallObject::Unknown
        }
        None => CallObject::None,
    }
}

/// Returns the peer of a call: the address in its arguments, or the other end of its socket.
fn of_peer(decoded: &Decoded) -> CallObject {
    // Rows do not say whose address an argument is: that of bind(2) is the caller's own.
    const ADDRESSES: [(&str, &str); 2] = [("connect", "uservaddr"), ("sendto", "addr")];
    let name = decoded.row().map_or("", |row| row.name);
    let mut object = CallObject::None;
    for argument in decoded.args().filter(Argument::is_used) {
        let values = argument.values();
        let Some(value) = values.entry() else { continue };
        match value {
            Value::Struct(_) if ADDRESSES.contains(&(name, argument.name())) => return CallObject::Name(text(value)),
            Value::Fd { file, .. } if matches!(object, CallObject::None) => object = file.map_or(CallObject::Unknown, other_end),
            _ => {}
        }
    }
    match decoded.returned() {
        Returned::Value(Value::Fd { file: Some(file), .. }) if matches!(object, CallObject::None | CallObject::Unknown) => other_end(file),
        _ => object,
    }
}

/// Returns the part after the arrow of `TCP:[127.0.0.1:51234->127.0.0.1:80]`.
fn other_end(file: &File) -> CallObject {
    let File::Socket(socket) = file else { return CallObject::None };
    if socket.protocol.is_empty() {
        return CallObject::Unknown;
    }
    let name = named(file);
    match (name.split_once(":["), name.rsplit_once("->")) {
        (Some((protocol, _)), Some((_, end))) => CallObject::Name(format!("{protocol} {}", end.trim_end_matches(']'))),
        _ => CallObject::None,
    }
}
