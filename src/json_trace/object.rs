//! The objects of a trace, as far as they are read. Members that are not known here are passed over.

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// The member that says what an object is.
#[derive(Deserialize)]
pub struct Kind<'l> {
    /// `type`
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'l, str>,
}

/// The version of the first object.
#[derive(Deserialize)]
pub struct Version {
    /// The version of the schema.
    pub schema: u64,
}

/// The first object.
#[derive(Deserialize)]
pub struct Begin {
    /// The kernel's release.
    #[serde(default)]
    pub release: Bytes,
    /// The machine's ABI.
    pub abi: String,
    /// `command`, `tasks` or `system`.
    pub scope: String,
    /// When the trace began.
    pub started: Stamp,
}

/// A time by both clocks.
#[derive(Clone, Copy, Deserialize)]
pub struct Stamp {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub monotonic: Integer,
    /// Nanoseconds of CLOCK_REALTIME.
    pub realtime: Integer,
}

/// The members that every object of a task has.
#[derive(Deserialize)]
pub struct Task {
    /// When the event happened; for a call, when it ended.
    pub time: Stamp,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The name of the task.
    pub comm: Option<Bytes>,
    /// The CPU.
    #[serde(default)]
    pub cpu: u32,
    /// The process that created this one, if this is its first object.
    pub parent: Option<i32>,
    /// The program that the process has executed since the object before.
    pub program: Option<Bytes>,
}

/// The members of a call.
#[derive(Deserialize)]
pub struct Call {
    /// The ABI, or `io_uring` for a request.
    pub abi: String,
    /// The number of the call in its ABI, or the opcode.
    pub number: Integer,
    /// What is known of the entry.
    pub entry: Entry,
    /// How the call ended.
    pub exit: Exit,
    /// When the call was entered, if that was seen.
    pub start: Option<Stamp>,
    /// The arguments; `None` if they are not known.
    pub arguments: Option<Vec<Argument>>,
    /// The result, if the call returned.
    #[serde(rename = "return")]
    pub returned: Option<Returned>,
}

/// What is known of the entry of a call.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The entry was recorded.
    Seen,
    /// The call has no entry.
    None,
    /// The entry may have been lost.
    Lost,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned.
    Returned,
    /// It does not return.
    Never,
    /// It was in flight when the trace ended.
    Pending,
    /// The exit was not seen.
    Unseen,
}

/// An argument of a call.
#[derive(Deserialize)]
pub struct Argument {
    /// The kernel's name; empty if it is not known.
    #[serde(default)]
    pub name: String,
    /// The registers with the value; none if they were not recorded.
    #[serde(default)]
    pub registers: Vec<Hex>,
    /// The value at entry.
    pub entry: Option<Value>,
    /// The value at exit.
    pub exit: Option<Value>,
}

/// The result of a call.
#[derive(Deserialize)]
pub struct Returned {
    /// The returned number.
    pub raw: Integer,
    /// What it means, if the call succeeded.
    pub value: Option<Value>,
}

/// A tracepoint or probe.
#[derive(Deserialize)]
pub struct Tracepoint {
    /// The name in the kernel.
    pub name: Bytes,
    /// The name that the user gave to the event.
    pub called: Option<Bytes>,
}

/// The end of a task.
#[derive(Deserialize)]
pub struct TaskEnd {
    /// The exit status, if the task exited.
    pub status: Option<i32>,
    /// The signal that killed the task, if one did.
    pub killed: Option<Signal>,
    /// Whether the kernel wrote a core dump.
    pub core_dumped: Option<bool>,
    /// The task still runs, and is not traced any more.
    #[serde(default)]
    pub not_traced: bool,
}

/// A signal.
#[derive(Deserialize)]
pub struct Signal {
    /// The number.
    pub signal: i32,
}

/// Lost records.
#[derive(Deserialize)]
pub struct Lost {
    /// How many there are, if that is known.
    pub records: Option<Integer>,
}

/// The last object.
#[derive(Deserialize)]
pub struct End {
    /// The number of lost records.
    #[serde(default)]
    pub lost_records: Integer,
    /// The number of calls that the user may not trace.
    #[serde(default)]
    pub not_permitted: Integer,
    /// What else is missing.
    #[serde(default)]
    pub shortages: Vec<Shortage>,
    /// Files that were not read, because their file systems do not answer.
    #[serde(default)]
    pub unanswered_files: Vec<Bytes>,
    /// The account of the calls.
    pub calls: Option<Account>,
}

/// A kind of data that is missing.
#[derive(Deserialize)]
pub struct Shortage {
    /// What is missing.
    pub of: String,
    /// How often, if that is known.
    pub count: Option<Integer>,
}

/// The account of the calls.
#[derive(Deserialize)]
pub struct Account {
    /// Calls that could not be written.
    #[serde(default)]
    pub given_up: Integer,
}

/// An integer, which is a string of its digits if a reader might round it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Integer(pub i128);

impl Integer {
    /// Returns the integer of a value, if it is one.
    pub fn of(value: &Value) -> Option<Integer> {
        match value {
            Value::Number(number) => number.as_i128().map(Integer),
            Value::String(text) => text.parse().ok().map(Integer),
            _ => None,
        }
    }

    /// Returns the nearest number of 64 bits without a sign.
    pub fn unsigned(self) -> u64 {
        self.0.clamp(0, u64::MAX.into()) as u64
    }

    /// Returns the nearest number of 64 bits with a sign.
    pub fn signed(self) -> i64 {
        self.0.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Integer, D::Error> {
        deserializer.deserialize_any(IntegerVisitor)
    }
}

struct IntegerVisitor;

impl Visitor<'_> for IntegerVisitor {
    type Value = Integer;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an integer")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Integer, E> {
        Ok(Integer(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Integer, E> {
        Ok(Integer(number.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Integer, E> {
        text.parse().map(Integer).map_err(|_| E::custom(format_args!("{text:?} is no integer")))
    }
}

/// A number of hexadecimal digits after 0x.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hex(pub u64);

impl Hex {
    /// Returns the number of a value, if it is one.
    pub fn of(value: &Value) -> Option<Hex> {
        Hex::parse(value.as_str()?)
    }

    fn parse(text: &str) -> Option<Hex> {
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Hex)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hex, D::Error> {
        deserializer.deserialize_str(HexVisitor)
    }
}

struct HexVisitor;

impl Visitor<'_> for HexVisitor {
    type Value = Hex;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a hexadecimal number in a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Hex, E> {
        Hex::parse(text).ok_or_else(|| E::custom(format_args!("{text:?} is no hexadecimal number")))
    }
}

/// Bytes: a string, or an object with their hexadecimal digits if they are not UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Returns the bytes of a value, if it has some.
    pub fn of(value: &Value) -> Option<Vec<u8>> {
        match value {
            Value::String(text) => Some(text.as_bytes().to_vec()),
            Value::Object(object) => digits(object.get("bytes")?.as_str()?),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        deserializer.deserialize_any(BytesVisitor)
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string or bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        Ok(Bytes(text.as_bytes().to_vec()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bytes, A::Error> {
        match map.next_entry::<Cow<str>, Cow<str>>()? {
            Some((name, text)) if name == "bytes" => {
                digits(&text).map(Bytes).ok_or_else(|| A::Error::custom("bytes have two hexadecimal digits each"))
            }
            _ => Err(A::Error::custom("the bytes are missing")),
        }
    }
}

/// Returns the bytes that these hexadecimal digits stand for.
fn digits(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks();
    let bytes = pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect();
    if rest.is_empty() { bytes } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes_are_those_that_were_written() {
        let integer = |text: &str| serde_json::from_str::<Integer>(text).map(|integer| integer.0).ok();
        assert_eq!([integer("-7"), integer("\"18446744073709551615\""), integer("\"x\"")], [Some(-7), Some(u64::MAX.into()), None]);
        let hex = |text: &str| serde_json::from_str::<Hex>(text).map(|hex| hex.0).ok();
        assert_eq!([hex("\"0xffffffffffffffff\""), hex("\"12\""), hex("12")], [Some(u64::MAX), None, None]);
        let bytes = |text: &str| serde_json::from_str::<Bytes>(text).map(|bytes| bytes.0).ok();
        assert_eq!(bytes("\"a\\u001b\""), Some(b"a\x1b".to_vec()));
        assert_eq!(bytes("{\"bytes\":\"2fff\"}"), Some(b"/\xff".to_vec()));
        for wrong in ["{\"bytes\":\"2\"}", "{\"bytes\":\"zz\"}", "{\"bytes\":\"\u{e4}\"}", "{}", "7"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
