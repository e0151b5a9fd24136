//! `--by`: what a call is about. What is not known is an object of its own, and so is that a call has none.

use super::numbers::shown;
use crate::beauty::decode::{Argument, Context, Decoded};
use crate::beauty::perf::{self, value};
use crate::beauty::row::Kind;
use crate::beauty::value::{Returned, Text, Value};
use crate::beauty::{errno, file};
use crate::event::{Call, Event, Exit, File};
use crate::show::SummaryObject;
use crate::sink::View;
use rustc_hash::FxHashMap;

/// So many objects are told apart; what comes after that is counted as one.
const OBJECTS_MAX: usize = 1 << 16;

/// An object, by its place in [`Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u32);

impl ObjectId {
    /// Objects are not told apart.
    pub const ANY: ObjectId = ObjectId(0);
    /// The call has one, which is not known.
    const UNKNOWN: ObjectId = ObjectId(1);
    /// The call has none.
    const NONE: ObjectId = ObjectId(2);
    /// One of those that came when there were too many.
    const BEYOND: ObjectId = ObjectId(3);
    const FIRST: u32 = 4;
}

/// All objects that there were.
pub struct Objects {
    kind: Option<SummaryObject>,
    names: Vec<String>,
    ids: FxHashMap<String, ObjectId>,
    string_limit: usize,
}

/// What a call says of its object.
enum Told {
    Is(String),
    Unknown,
    None,
}

impl Objects {
    pub fn new(kind: Option<SummaryObject>, string_limit: usize) -> Objects {
        Objects { kind, names: Vec::new(), ids: FxHashMap::default(), string_limit }
    }

    /// What the column is called.
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

    /// What the signs mean that stand in the place of an object.
    pub fn legend(&self, id: ObjectId) -> Option<&'static str> {
        match id {
            ObjectId::UNKNOWN => Some("?: it has one that is not known"),
            ObjectId::NONE => Some("-: it has none"),
            _ => None,
        }
    }

    pub fn of(&mut self, event: &Event, call: &Call, view: &View) -> ObjectId {
        let Some(kind) = &self.kind else { return ObjectId::ANY };
        let comm = |tid| view.tasks.comm_at(tid, event.time);
        let decoded = Decoded::new(call, Context::new(&comm, self.string_limit));
        let told = match kind {
            SummaryObject::Comm => event.comm.as_ref().map_or(Told::Unknown, |comm| Told::Is(shown(comm))),
            SummaryObject::Errno => of_errno(call),
            SummaryObject::Path => of_path(call, &decoded),
            SummaryObject::Fd => of_fd(call, &decoded),
            SummaryObject::Peer => of_peer(&decoded),
            SummaryObject::Arg(name) => of_argument(&decoded, name),
        };
        match told {
            Told::Is(name) => self.id(name),
            Told::Unknown => ObjectId::UNKNOWN,
            Told::None => ObjectId::NONE,
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

fn of_errno(call: &Call) -> Told {
    match (call.exit, call.errno()) {
        (Exit::Never, _) => Told::None,
        (Exit::Returned { .. }, None) => Told::Is("0".to_owned()),
        (_, Some(number)) => Told::Is(errno::name(number).map_or_else(|| number.to_string(), str::to_owned)),
        _ => Told::Unknown,
    }
}

fn text(value: &Value) -> String {
    let mut out = Vec::new();
    value::write(&mut out, value, false);
    String::from_utf8_lossy(&out).into_owned()
}

fn of_argument(decoded: &Decoded, name: &str) -> Told {
    let Some(argument) = decoded.args().find(|argument| argument.name() == name && argument.is_used()) else { return Told::None };
    match (argument.entry(), argument.exit()) {
        (Some(Value::Unknown), _) => Told::Unknown,
        (entry, exit) => {
            let mut out = Vec::new();
            perf::write_argument(&mut out, entry.as_ref(), exit.as_ref(), false);
            Told::Is(String::from_utf8_lossy(&out).into_owned())
        }
    }
}

/// The file that a call opened, the one that its path names, or the one that its descriptor is.
fn of_path(call: &Call, decoded: &Decoded) -> Told {
    if let Returned::Value(Value::Fd { file: Some(file), .. }) = decoded.returned() {
        return Told::Is(named(file));
    }
    let Some(row) = decoded.row() else { return Told::None };
    let names_path = |name: &str| row.args.iter().any(|arg| arg.name == name && matches!(arg.kind, Kind::Path));
    let mut directory: Option<Option<&File>> = None;
    let mut file: Option<Option<&File>> = None;
    for argument in decoded.args().filter(Argument::is_used) {
        let Some(value) = argument.entry() else { continue };
        match value {
            _ if names_path(argument.name()) => {
                return match value {
                    Value::Str(Text { bytes, cut: false, altered: false, .. }) => at(directory.flatten(), &bytes),
                    _ => Told::Unknown,
                };
            }
            Value::DirFd { file, .. } => directory = Some(file),
            Value::Fd { file: found, .. } => file = file.or(Some(found)),
            _ => {}
        }
    }
    match file.or(directory) {
        Some(Some(file)) => Told::Is(named(file)),
        Some(None) if call.args.is_none() => Told::Unknown,
        Some(None) => Told::Unknown,
        None if call.args.is_none() && row.args.iter().any(|arg| matches!(arg.kind, Kind::Path | Kind::Fd)) => Told::Unknown,
        None => Told::None,
    }
}

fn named(file: &File) -> String {
    shown(&file::name(file))
}

/// A path as it is found from a directory, if that is known; otherwise as the program wrote it.
fn at(directory: Option<&File>, path: &[u8]) -> Told {
    match directory {
        Some(File::Path(directory)) if !path.starts_with(b"/") && directory.starts_with(b"/") => {
            let between: &[u8] = if path.is_empty() || directory.ends_with(b"/") { b"" } else { b"/" };
            Told::Is(shown(&[directory, between, path].concat()))
        }
        _ => Told::Is(shown(path)),
    }
}

/// The descriptor that a call is given first; else the one that it returns.
fn of_fd(call: &Call, decoded: &Decoded) -> Told {
    let given = decoded.args().filter(Argument::is_used).find_map(|argument| match argument.entry() {
        Some(Value::Fd { fd, file }) => Some((fd, file)),
        _ => None,
    });
    let returned = || match decoded.returned() {
        Returned::Value(Value::Fd { fd, file }) => Some((fd, file)),
        _ => None,
    };
    match given.or_else(returned) {
        Some((fd, Some(file))) => Told::Is(format!("{fd}<{}>", named(file))),
        Some((fd, None)) => Told::Is(format!("{fd}<?>")),
        None if call.args.is_none() && decoded.row().is_some_and(|row| row.args.iter().any(|arg| matches!(arg.kind, Kind::Fd))) => {
            Told::Unknown
        }
        None => Told::None,
    }
}

/// Whom a call talks to: the address that it is given, or the other end of its socket.
fn of_peer(decoded: &Decoded) -> Told {
    const ADDRESSES: [(&str, &str); 2] = [("connect", "uservaddr"), ("sendto", "addr")];
    let name = decoded.row().map_or("", |row| row.name);
    let mut told = Told::None;
    for argument in decoded.args().filter(Argument::is_used) {
        let Some(value) = argument.entry() else { continue };
        match value {
            Value::Struct(_) if ADDRESSES.contains(&(name, argument.name())) => return Told::Is(text(&value)),
            Value::Fd { file, .. } if matches!(told, Told::None) => told = file.map_or(Told::Unknown, other_end),
            _ => {}
        }
    }
    match decoded.returned() {
        Returned::Value(Value::Fd { file: Some(file), .. }) if matches!(told, Told::None | Told::Unknown) => other_end(file),
        _ => told,
    }
}

/// Of `TCP:[127.0.0.1:51234->127.0.0.1:80]`, what the arrow points to.
fn other_end(file: &File) -> Told {
    let File::Socket(socket) = file else { return Told::None };
    if socket.protocol.is_empty() {
        return Told::Unknown;
    }
    let name = named(file);
    match (name.split_once(":["), name.rsplit_once("->")) {
        (Some((protocol, _)), Some((_, end))) => Told::Is(format!("{protocol} {}", end.trim_end_matches(']'))),
        _ => Told::None,
    }
}
