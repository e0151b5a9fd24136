//! What stands behind a pointer: text, bytes, numbers, structs, and arrays of them.

use super::memory::{ELEMENTS_MAX, Memory, Reader, load, pointer_size};
use super::row::{Form, Kind, Layout, Struct};
use super::value::{List, Text, Value};
use crate::event::PieceState;
use std::borrow::Cow;

impl<'a> Reader<'a> {
    /// The value at an address, or the address if its memory was not copied. `count` is what the row's length says, if it says one.
    pub fn pointed(&mut self, kind: &Kind, address: u64, count: Option<u64>) -> Value<'a> {
        let wanted = match kind {
            Kind::StructArray(of) => count.map(|count| count.saturating_mul(u64::from(of.sizes[self.abi() as usize]))),
            Kind::Struct(of) => count.map(|count| of.bytes(count, self.abi())),
            Kind::Number { bytes, .. } => count.map(|count| count.saturating_mul(u64::from(*bytes))),
            _ => count,
        };
        let Some(memory) = self.find(address, wanted, count) else { return Value::Unread(address) };
        let is_text = matches!(kind, Kind::Path | Kind::Str | Kind::Bytes);
        if !is_text && matches!(memory.state, PieceState::Altered { .. }) {
            return Value::Unread(address);
        }
        match kind {
            Kind::Path => self.text(memory, usize::MAX, true),
            Kind::Str => self.text(memory, self.context.string_limit, true),
            Kind::Bytes => self.text(memory, self.context.string_limit, false),
            Kind::StrArray => self.strings(memory),
            Kind::Struct(of) => self.pointed_struct(of, memory),
            Kind::StructArray(of) => self.structs(of, memory),
            Kind::Number { bytes, signed } => self.numbers(memory, usize::from(*bytes), *signed),
            _ => Value::Unread(address),
        }
    }

    /// Text or bytes, cut to `limit` of them.
    pub fn text(&mut self, memory: Memory<'a>, limit: usize, ends_with_nul: bool) -> Value<'a> {
        let end = if ends_with_nul { memchr::memchr(0, memory.bytes) } else { None };
        let bytes = &memory.bytes[..end.unwrap_or(memory.bytes.len())];
        let shown = &bytes[..self.spend(bytes.len().min(limit))];
        let (cut, altered) = match memory.state {
            PieceState::Cut => (end.is_none(), false),
            // Without a dot, none stands for anything else.
            PieceState::Altered { cut } => (cut, shown.contains(&b'.')),
            PieceState::Ok | PieceState::Fault => (!ends_with_nul && memory.is_cut(), false),
        };
        Value::Str(Text {
            bytes: Cow::Borrowed(shown),
            address: memory.address,
            wanted: (!ends_with_nul).then_some(memory.wanted),
            cut: cut || shown.len() < bytes.len(),
            altered,
        })
    }

    /// argv: pointers up to NULL, each to a string. Where no string was copied (an environment), how many there are.
    fn strings(&mut self, memory: Memory<'a>) -> Value<'a> {
        let pointers = memory.bytes.chunks_exact(pointer_size(self.abi())).map(|bytes| load(bytes, false, false).unwrap_or_default());
        let mut items = Vec::new();
        // Until NULL was seen.
        let mut more = true;
        if let Some(count) = self.uncopied(pointers.clone()) {
            return Value::Uncopied { address: memory.address, count: count as u64, or_more: count == pointers.len() };
        }
        for pointer in pointers {
            if pointer == 0 {
                more = false;
                break;
            }
            if items.len() == ELEMENTS_MAX || !self.spend_value() {
                break;
            }
            items.push(self.pointed(&Kind::Str, pointer, None));
        }
        Value::Array(List { address: memory.address, items, more })
    }

    /// How many pointers stand before NULL, if there are any and of none the string is here.
    fn uncopied(&self, pointers: impl Iterator<Item = u64>) -> Option<usize> {
        let mut count = 0;
        for pointer in pointers.take_while(|pointer| *pointer != 0) {
            if count < ELEMENTS_MAX && self.was_tried(pointer) {
                return None;
            }
            count += 1;
        }
        (count > 0).then_some(count)
    }

    /// One struct. A number stands in brackets, to be told from its address.
    fn pointed_struct(&mut self, of: &'static Struct, memory: Memory<'a>) -> Value<'a> {
        match of.layout {
            Layout::Number(_) => self.structs(of, memory),
            _ => self.structure(of, memory),
        }
    }

    fn structs(&mut self, of: &'static Struct, memory: Memory<'a>) -> Value<'a> {
        self.elements(memory, of.sizes[self.abi() as usize] as usize, |reader, element| Some(reader.structure(of, element)))
    }

    fn numbers(&mut self, memory: Memory<'a>, bytes: usize, signed: bool) -> Value<'a> {
        self.elements(memory, bytes, |_, element| {
            let value = load(element.bytes, signed, false)?;
            Some(if signed { Value::Int(value as i64) } else { Value::Uint(value) })
        })
    }

    /// An array that is a member.
    pub(super) fn array(&mut self, element: &'static Form, stride: usize, memory: Memory<'a>) -> Value<'a> {
        self.elements(memory, stride, |reader, memory| reader.form(element, memory, None))
    }

    /// The whole elements that are there.
    fn elements(
        &mut self,
        memory: Memory<'a>,
        stride: usize,
        mut value: impl FnMut(&mut Reader<'a>, Memory<'a>) -> Option<Value<'a>>,
    ) -> Value<'a> {
        let stride = stride.max(1);
        let whole = memory.bytes.len() / stride;
        let mut items = Vec::with_capacity(whole.min(ELEMENTS_MAX));
        for at in 0..whole.min(ELEMENTS_MAX) {
            let element = memory.part(at * stride, stride).filter(|_| self.spend_value());
            match element.and_then(|element| value(self, element)) {
                Some(item) => items.push(item),
                None => break,
            }
        }
        let more = items.len() < whole || memory.is_cut() || !memory.bytes.len().is_multiple_of(stride);
        Value::Array(List { address: memory.address, items, more })
    }
}
