//! Prints file handles (name_to_handle_at(2)), of which strace shows what the caller has set, and what the call has.

use super::quote;
use super::value::{Options, write};
use crate::beauty::value::{StructValue, Value};
use crate::show::strace::InHex;

/// Appends a struct file_handle: the number of bytes that the caller has room for and, if `after` is the handle after
/// the call, the number of its bytes if that differs, and its type and bytes if there was room for them.
pub fn write_both(out: &mut Vec<u8>, before: &Value, after: Option<&Value>, options: Options) {
    let Some(room) = member(before, "handle_bytes") else { return write(out, before, options) };
    out.extend_from_slice(b"{handle_bytes=");
    write(out, room, options);
    if let Some(after) = after {
        of_call(out, room, after, options);
    }
    out.push(b'}');
}

fn of_call(out: &mut Vec<u8>, room: &Value, after: &Value, options: Options) {
    let Some(size) = member(after, "handle_bytes") else { return };
    if size != room {
        out.extend_from_slice(b" => ");
        write(out, size, options);
    }
    // EOVERFLOW: the kernel has only said how many bytes it needs.
    if let (Value::Uint(size), Value::Uint(room)) = (size, room)
        && size > room
    {
        return;
    }
    if let Some(kind) = member(after, "handle_type") {
        out.extend_from_slice(b", handle_type=");
        write(out, kind, options);
    }
    if let Some(Value::Str(text)) = member(after, "f_handle") {
        out.extend_from_slice(b", f_handle=");
        quote::quoted(out, &text.bytes, InHex::Always);
    }
}

fn member<'v, 'a>(value: &'v Value<'a>, name: &str) -> Option<&'v Value<'a>> {
    let Value::Struct(StructValue { members, .. }) = value else { return None };
    members.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(bytes: u64, content: &'static [u8]) -> Value<'static> {
        let text = crate::beauty::value::Text { bytes: content.into(), address: 0x1000, wanted: None, cut: false, altered: false };
        let members = vec![("handle_bytes", Value::Uint(bytes)), ("handle_type", Value::Int(1)), ("f_handle", Value::Str(text))];
        Value::Struct(StructValue { name: "file_handle", members, ..StructValue::default() })
    }

    fn text(before: &Value, after: Option<&Value>) -> String {
        let mut out = Vec::new();
        write_both(&mut out, before, after, Options::default());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_handle_has_a_type_and_bytes_if_there_was_room() {
        assert_eq!(text(&handle(8, b""), None), "{handle_bytes=8}");
        assert_eq!(text(&handle(0, b""), Some(&handle(12, b""))), "{handle_bytes=0 => 12}");
        let filled = handle(2, b"ab");
        assert_eq!(text(&handle(2, b""), Some(&filled)), r#"{handle_bytes=2, handle_type=1, f_handle="\x61\x62"}"#);
        assert_eq!(text(&handle(128, b""), Some(&filled)), r#"{handle_bytes=128 => 2, handle_type=1, f_handle="\x61\x62"}"#);
    }
}
