//! The event of a BPF program: its fields, their locations in the program's context, and the format of its records.
//!
//! A record is a copy of numbers and strings, some of them read from memory. A value that was read from memory is
//! preceded by its address and the result of the helper that read it, so that a value that could not be read is shown
//! as its address ([`crate::kernel::fetched`]).

use super::code;
use super::section::{Argument, Type};
use crate::kernel::ctype::CType;
use crate::kernel::fetched::{from_field, got_field};
use crate::kernel::format::{FieldPlace, Format, FormatField};
use crate::sys::bpf::Instruction;
use anyhow::{anyhow, bail};

/// The size of a string in a record, including its NUL: the whole stack has 512 bytes.
const TEXT_BYTES: u32 = 192;
/// The size of a string where the record has all fields of an event, of which many may be strings.
const TEXT_BYTES_OF_ALL: u32 = 64;
/// The size of the address and the helper's result before a value that was read from memory.
const HEAD_BYTES: u32 = 16;

/// An event, and how the program fills its records.
#[derive(Clone, Debug)]
pub struct ProgramEvent {
    /// The format of the records, in the form of a tracepoint's. Its id is 0.
    pub format: Format,
    /// How the program fills a record: one entry for each value, with its offsets in the context and in the record.
    pub fetches: Vec<Fetch>,
    /// The size of a record: a multiple of 8, never 0.
    pub bytes: u32,
}

/// How a value is copied from the context to the record. `from` and `to` are offsets in these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    Copy {
        from: u32,
        to: u32,
        bytes: u32,
    },
    /// A string at another offset of a tracepoint's record (`__data_loc`).
    DataLoc {
        from: u32,
        to: u32,
        room: u32,
    },
    /// A value in memory, at `offset` from the address in a field of `width` bytes.
    Memory {
        from: u32,
        width: u8,
        offset: i32,
        helper: i32,
        to: u32,
        bytes: u32,
    },
}

/// The context of programs at one attach point: its fields by name, with their offsets.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The fields, with their offsets from the address that the program gets in register 1.
    pub fields: Vec<FormatField>,
    /// A tracepoint's print format, which may contain names of values.
    pub print: String,
    /// Whether an event without arguments has all these fields, or none.
    pub shows_all: bool,
}

impl ProgramEvent {
    /// Makes the event of a program with these arguments.
    ///
    /// # Errors
    /// An argument names a field that the context does not have.
    pub fn new(name: &str, context: &Context, arguments: &[Argument]) -> anyhow::Result<ProgramEvent> {
        let mut builder = ProgramEventBuilder { context, fields: Vec::new(), fetches: Vec::new(), bytes: 0, hex: Vec::new() };
        for argument in arguments {
            builder.argument(argument)?;
        }
        if arguments.is_empty() && context.shows_all {
            context.fields.iter().for_each(|field| builder.field(field, field.name.clone(), TEXT_BYTES_OF_ALL));
        }
        let print = match builder.hex.as_slice() {
            [] => context.print.clone(),
            hex => format!("\"{}\"{}", "%llx ".repeat(hex.len()), hex.iter().map(|name| format!(", REC->{name}")).collect::<String>()),
        };
        let name = name.split_once(':').map_or(name, |(_, name)| name);
        let format = Format { name: name.to_owned(), id: 0, fields: builder.fields, print };
        Ok(ProgramEvent { format, fetches: builder.fetches, bytes: builder.bytes.max(8) })
    }

    /// Returns the same event without any fields.
    pub fn bare(&self) -> ProgramEvent {
        ProgramEvent { format: Format { fields: Vec::new(), ..self.format.clone() }, fetches: Vec::new(), bytes: 8 }
    }
}

struct ProgramEventBuilder<'a> {
    context: &'a Context,
    fields: Vec<FormatField>,
    fetches: Vec<Fetch>,
    bytes: u32,
    /// The names of the fields that are shown in hexadecimal.
    hex: Vec<String>,
}

impl ProgramEventBuilder<'_> {
    fn argument(&mut self, argument: &Argument) -> anyhow::Result<()> {
        let field = self.context.fields.iter().find(|field| field.name == argument.of).ok_or_else(|| {
            let names: Vec<&str> = self.context.fields.iter().map(|field| field.name.as_str()).collect();
            anyhow!("the context has no {} (it has {})", argument.of, names.join(", "))
        })?;
        let name = argument.name.clone();
        if self.fields.iter().any(|known| known.name == name) {
            bail!("two fields are called {name}");
        }
        let is_word = field.place == FieldPlace::Here && field.array.is_none() && matches!(field.size, 1 | 2 | 4 | 8);
        match (argument.behind, argument.shown) {
            (None, None) => self.field(field, name, TEXT_BYTES),
            (None, Some(Type::Text { .. })) if field.is_text() => self.field(field, name, TEXT_BYTES),
            _ if !is_word => bail!("{} is not a number, so that it cannot be an address or be shown as a number", argument.of),
            (behind, Some(Type::Text { user })) => {
                let helper = if user { code::READ_USER_TEXT } else { code::READ_KERNEL_TEXT };
                let text = described(name, "char", TEXT_BYTES, false, Some(TEXT_BYTES));
                self.memory(field, behind.map_or(0, |behind| behind.offset), helper, text);
            }
            (Some(behind), Some(shown)) => {
                let helper = if behind.user { code::READ_USER } else { code::READ_KERNEL };
                let number = self.number(name, shown);
                self.memory(field, behind.offset, helper, number);
            }
            (None, Some(shown)) => {
                let mut number = self.number(name, shown);
                number.size = number.size.min(field.size);
                self.copy(field.offset, number);
            }
            (Some(_), None) => bail!("{name} needs a type"),
        }
        Ok(())
    }

    /// Adds a field of the context as it is.
    fn field(&mut self, field: &FormatField, name: String, text_bytes: u32) {
        let same = FormatField { name, ..field.clone() };
        match field.place {
            FieldPlace::Here if field.size > 0 => self.copy(field.offset, same),
            FieldPlace::DataLoc if field.ctype() == CType::Char => {
                let text = described(same.name, "char", text_bytes, false, Some(text_bytes));
                self.fetches.push(Fetch::DataLoc { from: field.offset, to: self.bytes, room: text_bytes });
                self.place(text, text_bytes);
            }
            // Other arrays of unknown length are left out: their location alone is not useful.
            _ => {}
        }
    }

    fn copy(&mut self, from: u32, field: FormatField) {
        self.fetches.push(Fetch::Copy { from, to: self.bytes, bytes: field.size });
        let bytes = field.size;
        self.place(field, bytes);
    }

    fn memory(&mut self, pointer: &FormatField, offset: i32, helper: i32, field: FormatField) {
        let (to, bytes) = (self.bytes, field.size);
        self.fetches.push(Fetch::Memory { from: pointer.offset, width: pointer.size as u8, offset, helper, to, bytes });
        self.place(described(from_field(&field.name), "u64", 8, false, None), 8);
        self.place(described(got_field(&field.name), "s64", 8, true, None), 8);
        self.place(field, bytes);
    }

    fn number(&mut self, name: String, shown: Type) -> FormatField {
        match shown {
            Type::Signed(bytes) => described(name, &format!("s{}", bytes * 8), bytes.into(), true, None),
            Type::Unsigned(bytes) => described(name, &format!("u{}", bytes * 8), bytes.into(), false, None),
            Type::Hex(bytes) => {
                self.hex.push(name.clone());
                described(name, &format!("u{}", bytes * 8), bytes.into(), false, None)
            }
            Type::Text { .. } => described(name, "char", TEXT_BYTES, false, Some(TEXT_BYTES)),
        }
    }

    /// Adds a field at the end of the record.
    fn place(&mut self, field: FormatField, bytes: u32) {
        self.fields.push(FormatField { offset: self.bytes, ..field });
        self.bytes += bytes.next_multiple_of(8);
    }
}

/// Returns a field whose offset is not set yet.
pub fn described(name: String, type_name: &str, size: u32, signed: bool, array: Option<u32>) -> FormatField {
    FormatField { name, type_name: type_name.to_owned(), offset: 0, size, signed, array, place: FieldPlace::Here }
}

impl Fetch {
    /// Appends the instructions for this value. Register 6 has the context, and the record is at `record` from the top
    /// of the stack.
    pub fn code(&self, record: i16, into: &mut Vec<Instruction>) {
        let at = |place: u32| record + place as i16;
        match *self {
            Fetch::Copy { from, to, bytes } => {
                if bytes % 8 != 0 {
                    into.push(code::clear(code::STACK, at(to + bytes / 8 * 8)));
                }
                let mut done = 0;
                while done < bytes {
                    let step = step(from + done, to + done, bytes - done);
                    into.push(code::load(1, 6, (from + done) as i16, step));
                    into.push(code::store(code::STACK, at(to + done), 1, step));
                    done += u32::from(step);
                }
            }
            Fetch::DataLoc { from, to, room } => {
                // The lower half is the offset in the record.
                into.extend([code::load(1, 6, from as i16, 4), code::and(1, 0xffff), code::copy(3, 6), code::add_register(3, 1)]);
                into.extend(read(code::READ_KERNEL_TEXT, at(to), room));
            }
            Fetch::Memory { from, width, offset, helper, to, bytes } => {
                into.push(code::load(3, 6, from as i16, width));
                if offset != 0 {
                    into.push(code::add(3, offset));
                }
                into.push(code::store(code::STACK, at(to), 3, 8));
                let data = to + HEAD_BYTES;
                if bytes % 8 != 0 {
                    into.push(code::clear(code::STACK, at(data + bytes / 8 * 8)));
                }
                into.extend(read(helper, at(data), bytes));
                into.push(code::store(code::STACK, at(to + 8), 0, 8));
            }
        }
    }
}

/// Reads the memory that register 3 points to.
fn read(helper: i32, to: i16, bytes: u32) -> [Instruction; 4] {
    [code::copy(1, code::STACK), code::add(1, to.into()), code::set(2, bytes as i32), code::call(helper)]
}

/// Returns the widest access for which both offsets are aligned.
fn step(from: u32, to: u32, left: u32) -> u8 {
    [8u8, 4, 2]
        .into_iter()
        .find(|&step| {
            let step = u32::from(step);
            step <= left && from.is_multiple_of(step) && to.is_multiple_of(step)
        })
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::super::section::Section;
    use super::*;

    fn context() -> Context {
        let at = |offset, field: FormatField| FormatField { offset, ..field };
        let fields = vec![
            at(8, described("dfd".into(), "int", 8, false, None)),
            at(16, described("filename".into(), "const char *", 8, false, None)),
            at(26, described("comm".into(), "char", 16, false, Some(16))),
            FormatField { place: FieldPlace::DataLoc, ..at(44, described("path".into(), "__data_loc char[]", 4, false, None)) },
        ];
        Context { fields, print: "\"%d\", REC->dfd".into(), shows_all: true }
    }

    fn own(arguments: &str) -> anyhow::Result<ProgramEvent> {
        ProgramEvent::new("x:y", &context(), &Section::parse(&format!("x:y {arguments}")).unwrap().arguments)
    }

    fn places(event: &ProgramEvent) -> Vec<(&str, u32, u32)> {
        event.format.fields.iter().map(|field| (field.name.as_str(), field.offset, field.size)).collect()
    }

    #[test]
    fn events_without_arguments_have_all_fields() {
        let event = own("").unwrap();
        assert_eq!(places(&event), [("dfd", 0, 8), ("filename", 8, 8), ("comm", 16, 16), ("path", 32, 64)]);
        assert_eq!((event.bytes, event.format.name.as_str(), event.format.print.as_str()), (96, "y", "\"%d\", REC->dfd"));
        assert_eq!(places(&event.bare()), []);
    }

    #[test]
    fn arguments_become_the_fields_of_the_event() {
        let event = own("fd=dfd:s32 filename:ustring n=+u8(filename):x16").unwrap();
        let expected = [
            ("fd", 0, 4),
            ("__filename_from", 8, 8),
            ("__filename_got", 16, 8),
            ("filename", 24, 192),
            ("__n_from", 216, 8),
            ("__n_got", 224, 8),
            ("n", 232, 2),
        ];
        assert_eq!(places(&event), expected);
        assert_eq!((event.bytes, event.format.print.as_str()), (240, "\"%llx \", REC->n"));
        let memory = |offset, helper, to, bytes| Fetch::Memory { from: 16, width: 8, offset, helper, to, bytes };
        assert_eq!(event.fetches[0], Fetch::Copy { from: 8, to: 0, bytes: 4 });
        assert_eq!(event.fetches[1..], [memory(0, code::READ_USER_TEXT, 8, 192), memory(8, code::READ_USER, 216, 2)]);
    }

    #[test]
    fn errors_name_the_wrong_argument() {
        for (arguments, message) in [
            ("nix", "the context has no nix (it has dfd, filename, comm, path)"),
            ("dfd dfd:u8", "two fields are called dfd"),
            ("comm:u8", "comm is not a number"),
            ("n=+4(path):u8", "path is not a number"),
        ] {
            let error = own(arguments).unwrap_err().to_string();
            assert!(error.starts_with(message), "{arguments}: {error}");
        }
    }

    #[test]
    fn copies_use_the_widest_aligned_access() {
        let mut instructions = Vec::new();
        // 16 bytes from offset 26, which is aligned for 2 bytes.
        Fetch::Copy { from: 26, to: 16, bytes: 16 }.code(-100, &mut instructions);
        assert_eq!(instructions.len(), 16);
        assert_eq!((step(8, 16, 8), step(8, 16, 7), step(8, 20, 8), step(9, 16, 8)), (8, 4, 4, 1));
    }
}
