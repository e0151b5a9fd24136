//! Decodes the memory that a pointer points to: text, bytes, numbers, structs, and arrays of them.

use super::decoders;
use super::memory::{ELEMENTS_MAX, Memory, MemoryReader, load, pointer_size};
use super::row::{ArgumentKind, LengthUnit, MemoryType, Struct, StructLayout, Traits};
use super::tables::structs;
use super::value::{ArrayValue, Text, Value};
use crate::event::PieceState;
use std::borrow::Cow;

impl<'a> MemoryReader<'a> {
    /// Decodes the memory at an address, or returns the address if its memory was not copied. `count` is the length in
    /// the unit of the row, if the row has a length.
    pub fn pointed(&mut self, kind: &ArgumentKind, address: u64, count: Option<u64>) -> Value<'a> {
        let wanted = match kind {
            ArgumentKind::StructArray(of) => count.map(|count| count.saturating_mul(u64::from(of.sizes[self.abi() as usize]))),
            ArgumentKind::Struct(of) => count.map(|count| of.bytes(count, self.abi())),
            ArgumentKind::Number { bytes, .. } => count.map(|count| count.saturating_mul(u64::from(*bytes))),
            _ => count,
        };
        let Some(memory) = self.find(address, wanted, count) else { return Value::Unread(address) };
        let is_text = matches!(kind, ArgumentKind::Path | ArgumentKind::Str | ArgumentKind::Bytes);
        if !is_text && matches!(memory.state, PieceState::Altered { .. }) {
            return Value::Unread(address);
        }
        match kind {
            ArgumentKind::Path => self.text(memory, usize::MAX, true),
            ArgumentKind::Str => self.text(memory, self.context.string_limit, true),
            ArgumentKind::Bytes if self.protocol.is_some() && !matches!(memory.state, PieceState::Altered { .. }) => {
                decoders::netlink_messages(self, memory)
            }
            ArgumentKind::Bytes => self.text(memory, self.context.string_limit, false),
            ArgumentKind::StrArray => self.strings(memory),
            ArgumentKind::Struct(of) => self.pointed_struct(of, memory),
            ArgumentKind::StructArray(of) => self.structs(of, memory),
            ArgumentKind::Number { bytes, signed } => self.numbers(memory, usize::from(*bytes), *signed),
            _ => Value::Unread(address),
        }
    }

    /// Decodes a struct whose length the call specifies. Memory that is shorter than the struct is shown as bytes,
    /// unless the row says that the length varies. For a struct that is a number, memory of any other length is shown
    /// as bytes.
    pub fn sized_struct(&mut self, of: &'static Struct, traits: Traits, address: u64, count: Option<u64>) -> Value<'a> {
        let wanted = count.map(|count| of.bytes(count, self.abi()));
        let Some(memory) = self.find(address, wanted, count) else { return Value::Unread(address) };
        if matches!(memory.state, PieceState::Altered { .. }) {
            return Value::Unread(address);
        }
        if traits.contains(Traits::ARRAY) {
            return self.structs(of, memory);
        }
        let size = u64::from(of.sizes[self.abi() as usize]);
        let is_whole = match &of.layout {
            StructLayout::Number(_) => memory.wanted == size,
            // The structs that the member can select have different sizes.
            StructLayout::Members(_) if of.choice.is_some() => memory.wanted == 0 || memory.wanted >= of.chooser_end(self.abi()),
            StructLayout::Members(_) => memory.wanted >= size || traits.contains(Traits::VARIES) || of.counted != LengthUnit::Bytes,
            StructLayout::Decoder(_) | StructLayout::Opaque => true,
        };
        if is_whole { self.pointed_struct(of, memory) } else { self.text(memory, self.context.string_limit, false) }
    }

    /// Decodes text or bytes, cut to `limit` bytes.
    pub fn text(&mut self, memory: Memory<'a>, limit: usize, ends_with_nul: bool) -> Value<'a> {
        let end = if ends_with_nul { memchr::memchr(0, memory.bytes) } else { None };
        let bytes = &memory.bytes[..end.unwrap_or(memory.bytes.len())];
        let shown = &bytes[..self.spend(bytes.len().min(limit))];
        let (cut, altered) = match memory.state {
            PieceState::Cut => (end.is_none(), false),
            // The kernel replaces bytes with dots, so text without a dot is unaltered.
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

    /// Decodes an array of pointers to strings that ends with NULL (argv). If no string was copied (an environment),
    /// returns their number.
    fn strings(&mut self, memory: Memory<'a>) -> Value<'a> {
        let pointers = memory.bytes.chunks_exact(pointer_size(self.abi())).map(|bytes| load(bytes, false, false).unwrap_or_default());
        let mut items = Vec::new();
        // Cleared when the terminating NULL is found.
        let mut more = true;
        if let Some(count) = self.uncopied(pointers.clone()) {
            return Value::Uncopied { address: memory.address, count: count as u64, or_more: count == pointers.len() };
        }
        for pointer in pointers {
            if pointer == 0 {
                more = false;
                break;
            }
            if items.len() == self.elements_max() || !self.spend_value() {
                break;
            }
            items.push(self.pointed(&ArgumentKind::Str, pointer, None));
        }
        Value::Array(ArrayValue { address: memory.address, items, more })
    }

    /// Returns the number of pointers before NULL if there was no attempt to copy any of their strings. Returns `None`
    /// if there is no pointer.
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

    /// Decodes a struct. A struct that is a number becomes an array of one element, so that styles print it in brackets
    /// and it cannot be mistaken for its address.
    fn pointed_struct(&mut self, of: &'static Struct, memory: Memory<'a>) -> Value<'a> {
        match of.layout {
            StructLayout::Number(_) => self.structs(of, memory),
            _ => self.structure(of, memory),
        }
    }

    fn structs(&mut self, of: &'static Struct, memory: Memory<'a>) -> Value<'a> {
        if self.protocol.is_some() && std::ptr::eq(of, &structs::IOVEC) {
            self.begin_parts(memory);
        }
        let is_brief = self.context.is_brief && !matches!(of.layout, StructLayout::Number(_));
        let most = if is_brief { of.brief.elements as usize } else { usize::MAX };
        let stride = of.sizes[self.abi() as usize] as usize;
        self.elements(memory, (stride, most.min(self.elements_max())), |reader, element| Some(reader.structure(of, element)))
    }

    fn numbers(&mut self, memory: Memory<'a>, bytes: usize, signed: bool) -> Value<'a> {
        self.elements(memory, (bytes, self.elements_max()), |_, element| {
            let value = load(element.bytes, signed, false)?;
            Some(if signed { Value::Int(value as i64) } else { Value::Uint(value) })
        })
    }

    /// Decodes an array that is a struct member or the content of an attribute. It is shown whole if its struct is.
    pub(super) fn array(&mut self, element: &'static MemoryType, stride: usize, memory: Memory<'a>) -> Value<'a> {
        let most = if self.context.is_brief { self.elements_max() } else { usize::MAX };
        self.elements(memory, (stride, most), |reader, memory| reader.typed(element, memory, None))
    }

    /// Decodes the elements that were copied completely, at most `most` of them.
    fn elements(
        &mut self,
        memory: Memory<'a>,
        (stride, most): (usize, usize),
        mut value: impl FnMut(&mut MemoryReader<'a>, Memory<'a>) -> Option<Value<'a>>,
    ) -> Value<'a> {
        let stride = stride.max(1);
        let whole = memory.bytes.len() / stride;
        let most = whole.min(most);
        // Values are limited, however large the array is.
        let mut items = Vec::with_capacity(most.min(ELEMENTS_MAX));
        for at in 0..most {
            let element = memory.part(at * stride, stride).filter(|_| self.spend_value());
            match element.and_then(|element| value(self, element)) {
                Some(item) => items.push(item),
                None => break,
            }
        }
        let more = items.len() < whole || memory.is_cut() || !memory.bytes.len().is_multiple_of(stride);
        Value::Array(ArrayValue { address: memory.address, items, more })
    }
}
