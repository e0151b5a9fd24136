//! The objects of `rtrace probe list --json`.

use crate::probe::grammar::{self, Arg, FilePlace, KernelPlace, Line, Probe, ProbePoint, SourceLine, When};
use crate::probe::inventory::{Creator, DynamicEvent};
use crate::text::json::{Bytes, Hex, Integer};
use serde::Serialize;
use std::ops::Not;
use std::os::unix::ffi::OsStrExt;

/// A dynamic event.
#[derive(Serialize)]
#[serde(tag = "type", rename = "dynamic_event")]
pub struct Object<'a> {
    group: &'a str,
    name: &'a str,
    owner: Owner,
    /// The parts of the definition; no members if rtrace cannot parse the definition.
    #[serde(flatten)]
    definition: Option<Definition>,
    /// The line of the event in `dynamic_events`.
    #[serde(rename = "definition")]
    line: &'a str,
    /// Whether ftrace records the event, in its top-level instance or in another one.
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hits: Option<Integer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    misses: Option<Integer>,
    /// The tracers that have enabled a user event.
    #[serde(skip_serializing_if = "Option::is_none")]
    listeners: Option<&'a [String]>,
}

/// The program that created an event.
#[derive(Serialize)]
struct Owner {
    creator: &'static str,
    /// The run of rtrace that created the event for its own use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    #[serde(skip_serializing_if = "Not::not")]
    gone: bool,
}

#[derive(Serialize)]
struct Definition {
    kind: &'static str,
    /// Whether the event is a return probe.
    #[serde(rename = "return", skip_serializing_if = "Not::not")]
    is_return: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    maxactive: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    /// The condition of an event probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    /// The flags of a user event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<Argument>,
    /// The fields of a synthetic or user event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
}

/// The probed place.
#[derive(Serialize)]
#[serde(untagged)]
enum Place {
    Symbol {
        #[serde(skip_serializing_if = "Option::is_none")]
        module: Option<String>,
        symbol: String,
        offset: i64,
    },
    Address {
        address: Hex,
    },
    /// A source line. `of` is its file or function.
    Line {
        of: String,
        line: u32,
    },
    File {
        path: serde_json::Value,
        at: Box<Place>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reference_counter: Option<Hex>,
    },
    FileOffset {
        offset: Integer,
    },
    Tracepoint {
        tracepoint: String,
    },
    Event {
        subsystem: String,
        event: String,
    },
    Usdt {
        path: serde_json::Value,
        provider: String,
        name: String,
    },
}

/// A fetch argument. Its value is an expression of the kernel's language.
#[derive(Serialize)]
struct Argument {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    fetch: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The number of elements of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<u32>,
}

#[derive(Serialize)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
}

impl<'a> Object<'a> {
    pub fn new(event: &'a DynamicEvent, enabled: bool) -> Object<'a> {
        let parsed = match grammar::parse(&event.line) {
            Ok(Line::Make(probe)) => Some(probe),
            Ok(Line::Remove(_)) | Err(_) => None,
        };
        Object {
            group: &event.name.subsystem,
            name: &event.name.name,
            owner: Owner::new(event.creator),
            definition: parsed.map(Definition::from),
            line: &event.line,
            enabled,
            hits: event.hits.map(|hits| Integer(hits.hits)),
            misses: event.hits.and_then(|hits| hits.misses).map(Integer),
            listeners: event.listeners.as_deref(),
        }
    }
}

impl Owner {
    fn new(creator: Creator) -> Owner {
        match creator {
            Creator::ProbeAdd => Owner { creator: "probe_add", pid: None, gone: false },
            Creator::Run(run) => Owner { creator: "run", pid: Some(run.pid()), gone: run.is_gone() },
            Creator::Other => Owner { creator: "other", pid: None, gone: false },
        }
    }
}

impl From<Probe> for Definition {
    fn from(probe: Probe) -> Definition {
        let is_return = probe.place.is_return();
        let maxactive = match &probe.place {
            ProbePoint::Kernel { when, .. } | ProbePoint::Function { when, .. } => maxactive(*when),
            _ => None,
        };
        let arguments = probe.args.into_iter().map(Argument::from).collect();
        let plain =
            |kind, place| Definition { kind, is_return, maxactive, place, filter: None, flags: Vec::new(), arguments, fields: Vec::new() };
        match probe.place {
            ProbePoint::Kernel { at, .. } => plain("kprobe", Some(of_kernel(at))),
            ProbePoint::File { path, at, reference_counter, .. } => {
                let (path, at) = (text(path.as_os_str().as_bytes()), Box::new(of_file(at)));
                plain("uprobe", Some(Place::File { path, at, reference_counter: reference_counter.map(Hex) }))
            }
            ProbePoint::Function { name, .. } => plain("fprobe", Some(Place::Symbol { module: None, symbol: name, offset: 0 })),
            ProbePoint::Tracepoint { name } => plain("tprobe", Some(Place::Tracepoint { tracepoint: name })),
            ProbePoint::Event { subsystem, event, filter } => {
                Definition { filter, ..plain("eprobe", Some(Place::Event { subsystem, event })) }
            }
            ProbePoint::Synthetic { fields } => Definition { fields: self::fields(fields), ..plain("synthetic", None) },
            ProbePoint::User { flags, fields } => Definition { flags, fields: self::fields(fields), ..plain("user_event", None) },
            ProbePoint::Usdt { path, provider, name } => {
                let path = text(path.as_os_str().as_bytes());
                plain("usdt", Some(Place::Usdt { path, provider, name }))
            }
        }
    }
}

fn maxactive(when: When) -> Option<u32> {
    match when {
        When::Return { maxactive } => maxactive,
        When::Entry => None,
    }
}

fn of_kernel(at: KernelPlace) -> Place {
    match at {
        KernelPlace::Symbol { module, symbol, offset } => Place::Symbol { module, symbol, offset },
        KernelPlace::Address(address) => Place::Address { address: Hex(address) },
        KernelPlace::Line(SourceLine { of, line }) => Place::Line { of, line },
    }
}

fn of_file(at: FilePlace) -> Place {
    match at {
        FilePlace::Offset(offset) => Place::FileOffset { offset: Integer(offset) },
        FilePlace::Symbol { symbol, offset } => Place::Symbol { module: None, symbol, offset },
        FilePlace::Line(SourceLine { of, line }) => Place::Line { of, line },
    }
}

/// Returns foreign bytes as JSON.
fn text(bytes: &[u8]) -> serde_json::Value {
    serde_json::to_value(Bytes(bytes)).unwrap_or_default()
}

impl From<Arg> for Argument {
    fn from(arg: Arg) -> Argument {
        Argument {
            name: arg.name,
            fetch: arg.value.to_string(),
            kind: arg.kind.map(|kind| kind.base.to_string()),
            array: arg.kind.and_then(|kind| kind.array),
        }
    }
}

fn fields(fields: Vec<grammar::Field>) -> Vec<Field> {
    fields.into_iter().map(|field| Field { name: field.name, kind: field.kind, size: field.size }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tracefs::EventName;
    use crate::probe::hits::Hits;
    use serde_json::{Value, json};

    fn object(group: &str, name: &str, line: &str, hits: Option<Hits>) -> Value {
        let event = DynamicEvent {
            name: EventName::new(group, name),
            line: line.to_owned(),
            creator: Creator::Other,
            hits,
            listeners: (group == "user_events").then(|| vec!["perf".to_owned()]),
        };
        serde_json::to_value(Object::new(&event, true)).unwrap()
    }

    #[test]
    fn a_kernel_probe_has_its_place_and_its_arguments() {
        let line = "r16:kprobes/open do_sys_openat2+0 ret=$retval:s32 name=+0($arg2):ustring";
        let expected = json!({
            "type": "dynamic_event",
            "group": "kprobes",
            "name": "open",
            "owner": {"creator": "other"},
            "kind": "kprobe",
            "return": true,
            "maxactive": 16,
            "place": {"symbol": "do_sys_openat2", "offset": 0},
            "arguments": [{"name": "ret", "fetch": "$retval", "type": "s32"}, {"name": "name", "fetch": "+0($arg2)", "type": "ustring"}],
            "definition": line,
            "enabled": true,
            "hits": 12,
            "misses": 3
        });
        assert_eq!(object("kprobes", "open", line, Some(Hits { hits: 12, misses: Some(3) })), expected);
    }

    #[test]
    fn other_kinds_have_places_of_their_own() {
        let uprobe = object("uprobes", "main", "p:uprobes/main /bin/app:0x0000000000001139(0x4010) arg1=%di", None);
        assert_eq!(uprobe["place"], json!({"path": "/bin/app", "at": {"offset": 0x1139}, "reference_counter": "0x4010"}));
        assert_eq!((&uprobe["kind"], &uprobe["arguments"][0]["fetch"], &uprobe["hits"]), (&json!("uprobe"), &json!("%di"), &Value::Null));
        let eprobe = object("eprobes", "x", "e:eprobes/x syscalls.sys_enter_openat file=+0($filename):ustring if dfd > 3", None);
        assert_eq!(
            (&eprobe["place"], &eprobe["filter"]),
            (&json!({"subsystem": "syscalls", "event": "sys_enter_openat"}), &json!("dfd > 3"))
        );
        let synthetic = object("synthetic", "lat", "s:synthetic/lat u64 ns; char[16] comm", None);
        assert_eq!(synthetic["fields"], json!([{"name": "ns", "type": "u64"}, {"name": "comm", "type": "char[16]"}]));
        let user = object("user_events", "test", "u:test u32 count", None);
        assert_eq!((&user["kind"], &user["listeners"], &user["place"]), (&json!("user_event"), &json!(["perf"]), &Value::Null));
    }

    #[test]
    fn a_definition_of_a_newer_kernel_is_listed_as_it_is() {
        let new = object("future", "x", "z:future/x something=new", None);
        assert_eq!((&new["kind"], &new["definition"]), (&Value::Null, &json!("z:future/x something=new")));
    }
}
