//! The structs and arrays in the caller's memory, as values.

use super::file;
use super::object::{Bytes, Hex, Integer};
use crate::beauty::row::{ArgumentKind, MemoryNumber, MemoryType, Struct, StructLayout};
use crate::beauty::tables::constants::FILE_TYPE;
use crate::beauty::tables::{STRUCTS, TABLES};
use crate::beauty::value::{ArrayValue, StructValue, Text, Value};
use crate::event::{Call, FdPlace, Port};
use crate::kernel::constant::Constant;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json};
use std::sync::LazyLock;

pub use crate::beauty::memory::Moment;

/// A value of an argument that is not in the registers and strings of the call.
#[derive(Debug)]
pub struct Given<'c> {
    /// The index of the argument.
    pub argument: usize,
    /// When the value was there.
    pub moment: Moment,
    /// The struct or array.
    pub value: Value<'c>,
}

/// The rows of structs by their names.
static BY_NAME: LazyLock<FxHashMap<&str, &Struct>> = LazyLock::new(|| STRUCTS.iter().map(|of| (of.name, *of)).collect());

/// How deep values may be nested in each other.
const DEPTH_MAX: u32 = 32;

/// Returns the struct or array that an object is; `None` for other values. `kind` is that of the argument.
pub fn given<'c>(json: &Json, (call, argument): (&'c Call, usize), kind: Option<&ArgumentKind>) -> Option<Value<'c>> {
    let object = json.as_object().filter(|object| object.contains_key("struct") || object.contains_key("array"))?;
    Some(Values { call, argument: argument as u8, depth: 0 }.object(object, kind))
}

/// Makes values of one argument.
#[derive(Clone, Copy)]
struct Values<'c> {
    call: &'c Call,
    argument: u8,
    depth: u32,
}

impl<'c> Values<'c> {
    fn value(self, json: &Json, kind: Option<&ArgumentKind>) -> Value<'c> {
        match (json, Integer::of(json)) {
            (_, Some(number)) if matches!(kind, Some(ArgumentKind::Port)) => Value::Port(Port(number.unsigned() as u32)),
            (_, Some(number)) if number.0 < 0 => Value::Int(number.signed()),
            (_, Some(number)) => Value::Uint(number.unsigned()),
            (Json::Object(object), None) if self.depth < DEPTH_MAX => Values { depth: self.depth + 1, ..self }.object(object, kind),
            _ => Value::Unknown,
        }
    }

    fn object(self, object: &Map<String, Json>, kind: Option<&ArgumentKind>) -> Value<'c> {
        let number = |name: &str| object.get(name).and_then(Integer::of);
        let hex = |name: &str| object.get(name).and_then(Hex::of).map(|hex| hex.0);
        let small = |name: &str| number(name).and_then(|number| i32::try_from(number.0).ok());
        let ip = || object.get("ip")?.as_str()?.parse().ok();
        if let Some(name) = object.get("struct").and_then(Json::as_str) {
            return self.structure(name, object);
        }
        if let Some(Json::Array(items)) = object.get("array") {
            let items = items.iter().map(|item| self.value(item, kind)).collect();
            return Value::Array(ArrayValue { address: hex("address").unwrap_or_default(), items, more: is(object, "more") });
        }
        if let Some(bytes) = object.get("text").and_then(Bytes::of) {
            return Value::Str(text(bytes, object));
        }
        if let Some(Json::Array(names)) = object.get("flags") {
            return flags(names, hex("rest"), kind);
        }
        if let (Some(name), Some(value)) = (object.get("constant"), number("value")) {
            return constant(name.as_str(), value, kind);
        }
        if let Some(fd) = small("fd") {
            return Value::Fd { fd, file: self.call.file(FdPlace::Inside { arg: self.argument, fd }) };
        }
        if let Some(address) = file::address(object) {
            return Value::SocketAddress(address);
        }
        if let Some(permissions) = number("permissions") {
            let kind_bits = object.get("type").and_then(Json::as_str).and_then(|name| FILE_TYPE.constant(name));
            let mode = permissions.unsigned() | kind_bits.map_or(0, bits);
            return if matches!(kind, Some(ArgumentKind::Mode)) { Value::Octal(mode) } else { Value::FileMode(mode as u32) };
        }
        let id = || Some(Value::Id { id: number("id")?.unsigned() as u32, initial: number("here")?.unsigned() as u32 });
        let address = || match (hex("address"), is(object, "unread")) {
            (Some(address), true) => Some(Value::Unread(address)),
            (address, _) => address.map(Value::Address),
        };
        let signal = small("signal").map(Value::Signal);
        signal.or_else(|| ip().map(Value::Ip)).or_else(id).or_else(|| hex("hex").map(Value::Hex)).or_else(address).unwrap_or(Value::Unknown)
    }

    /// Returns a struct with the members that its row has and the object has too, in the order of the row. A struct
    /// without a row has no members.
    fn structure(self, name: &str, object: &Map<String, Json>) -> Value<'c> {
        let Some(of) = BY_NAME.get(name) else { return Value::Unknown };
        let mut members: Vec<(&'static str, Value)> = Vec::new();
        if let (StructLayout::Members(layouts), Some(Json::Object(found))) = (&of.layout, object.get("members")) {
            for member in layouts[self.call.abi as usize] {
                if let Some(json) = found.get(member.name)
                    && members.last().is_none_or(|(last, _)| *last != member.name)
                {
                    members.push((member.name, self.value(json, kind_of(&member.memory_type))));
                }
            }
        }
        let address = object.get("address").and_then(Hex::of).unwrap_or_default().0;
        Value::Struct(StructValue { name: of.name, address, members, more: is(object, "more") })
    }
}

/// Returns the kind of a number in memory, or of the numbers of an array.
fn kind_of(memory: &'static MemoryType) -> Option<&'static ArgumentKind> {
    match memory {
        MemoryType::Number(MemoryNumber { kind, .. }) => Some(kind),
        MemoryType::Array { element, .. } => kind_of(element),
        _ => None,
    }
}

/// Returns the text of an object.
pub fn text(bytes: Vec<u8>, object: &Map<String, Json>) -> Text<'static> {
    Text {
        bytes: bytes.into(),
        address: object.get("address").and_then(Hex::of).unwrap_or_default().0,
        wanted: object.get("wanted").and_then(Integer::of).map(Integer::unsigned),
        cut: is(object, "cut"),
        altered: is(object, "altered"),
    }
}

fn flags<'c>(names: &[Json], rest: Option<u64>, kind: Option<&ArgumentKind>) -> Value<'c> {
    let Some(ArgumentKind::Table(table)) = kind else { return Value::Unknown };
    let of = names.iter().filter_map(|name| table.constant(name.as_str()?)).map(bits);
    Value::Flags { table, bits: of.fold(rest.unwrap_or_default(), |all, one| all | one) }
}

/// Returns a constant. If the row does not say of which table it is, it is of the first one that has the name.
fn constant<'c>(name: Option<&str>, value: Integer, kind: Option<&ArgumentKind>) -> Value<'c> {
    let value = if value.0 < 0 { value.signed() as u64 } else { value.unsigned() };
    let of_name = || TABLES.iter().copied().find(|table| name.is_some() && table.name(value) == name);
    match kind {
        Some(ArgumentKind::Table(table)) => Value::Symbol { table, value },
        _ => of_name().map_or(Value::Uint(value), |table| Value::Symbol { table, value }),
    }
}

fn bits(constant: Constant) -> u64 {
    constant.value as u64
}

fn is(object: &Map<String, Json>, name: &str) -> bool {
    object.get(name).and_then(Json::as_bool) == Some(true)
}
