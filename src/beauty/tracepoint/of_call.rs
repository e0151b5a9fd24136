//! Decodes the fields of tracepoints at the entry and exit of a call by the call, of which more is known than the
//! record of the tracepoint has: strings, structs, and the files behind descriptors.
//!
//! | event | fields | and, of the call |
//! |---|---|---|
//! | `syscalls:sys_enter_X` | the arguments | |
//! | `syscalls:sys_exit_X` | `ret` | the memory that the call wrote, by the names of the arguments |
//! | `raw_syscalls:sys_enter` | `id`, `args` | the arguments, by their names |
//! | `raw_syscalls:sys_exit` | `id`, `ret` | the memory that the call wrote, by the names of the arguments |

use super::TracepointDecoder;
use crate::beauty::decode::{Argument, Context, Decoded, Values};
use crate::beauty::lookup;
use crate::beauty::value::{Failure, Returned, Value};
use crate::event::Call;
use crate::kernel::format::Format;
use crate::kernel::print_fmt::{NamedNumber, NumberName};

/// A field of a tracepoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'a> {
    /// The name in the event's format file, or that of the argument for [`Part::OfCall`].
    pub name: &'a str,
    /// The value of the field in the record, or the value in the call where more is known of it there.
    pub value: Value<'a>,
    /// Whether the event has the field, and whether lines show it.
    pub part: Part,
    /// The value carries no information, so that lines may leave it out.
    pub is_default: bool,
}

/// What a field of a tracepoint at the end of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A field of the event.
    Own,
    /// A field of the event that lines do not show: the register of an argument that the kernel does not use, or
    /// registers that are shown as arguments.
    Hidden,
    /// An argument of the call, which the event does not have under this name.
    OfCall,
}

/// The end of a call that an event is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Entry,
    Exit,
}

/// Returns the end of calls that the event with this format is at, if its fields can be those of a call.
pub(super) fn end(format: &Format) -> Option<End> {
    let of_one = format.field("__syscall_nr").is_some();
    let of_all = format.field("id").is_some();
    match format.name.as_str() {
        "sys_enter" if of_all => Some(End::Entry),
        "sys_exit" if of_all => Some(End::Exit),
        name if of_one && name.starts_with("sys_enter_") => Some(End::Entry),
        name if of_one && name.starts_with("sys_exit_") => Some(End::Exit),
        _ => None,
    }
}

impl TracepointDecoder {
    /// Returns the fields of a record, in the order of the format, and what is known of the call that the event is at.
    /// With `call`, the fields are decoded as in the line of the call.
    pub fn fields<'a>(&'a self, raw: &'a [u8], call: Option<&'a Call>, context: Context<'a>) -> Vec<Field<'a>> {
        let own = self.decode(raw, context.comm);
        match (self.end, call) {
            (Some(End::Entry), Some(call)) => entry(own, &Decoded::new(call, context), call),
            (Some(End::Exit), Some(call)) => exit(own, &Decoded::new(call, context), call),
            _ => own.into_iter().map(|(name, value)| self.plain(name, value)).collect(),
        }
    }

    fn plain<'a>(&self, name: &'a str, value: Value<'a>) -> Field<'a> {
        // The user requested each argument of a probe.
        let is_default = !self.is_probe && crate::beauty::default::is_zero(&value);
        Field { name, value, part: Part::Own, is_default }
    }
}

fn entry<'a>(own: Vec<(&'a str, Value<'a>)>, decoded: &Decoded<'a>, call: &Call) -> Vec<Field<'a>> {
    let registers = call.args.unwrap_or_default();
    let is_of_all = own.iter().any(|(name, _)| *name == "args");
    let mut fields: Vec<Field<'a>> = Vec::with_capacity(own.len() + registers.len());
    for (at, (name, value)) in own.into_iter().enumerate() {
        let field = Field { name, value, part: Part::Own, is_default: false };
        fields.push(match decoded.args().nth(at).filter(|_| decoded.row().is_some()) {
            _ if is_of_all && name == "id" => with_id(field, decoded, call),
            _ if is_of_all => Field { part: if decoded.row().is_some() { Part::Hidden } else { Part::Own }, ..field },
            Some(argument) if argument.is_used() => {
                let value = at_entry(&argument, &registers);
                Field { is_default: argument.is_default(&value), value, ..field }
            }
            _ => Field { part: Part::Hidden, ..field },
        });
    }
    if is_of_all && decoded.row().is_some() {
        fields.extend(decoded.args().filter(Argument::is_used).map(|argument| {
            let value = at_entry(&argument, &registers);
            Field { name: argument.name(), part: Part::OfCall, is_default: argument.is_default(&value), value }
        }));
    }
    fields
}

/// Returns the value of an argument at the entry of its call: the address of memory that the call only writes.
fn at_entry<'a>(argument: &Argument<'_, 'a>, registers: &[u64; 6]) -> Value<'a> {
    match argument.values() {
        Values::Entry(value) => value,
        Values::Both(both) => both[0].clone(),
        Values::Exit(_) => match argument.word().map_or(0, |word| word.raw(registers)) {
            0 => Value::Unread(0),
            address => Value::Address(address),
        },
    }
}

fn exit<'a>(own: Vec<(&'a str, Value<'a>)>, decoded: &Decoded<'a>, call: &Call) -> Vec<Field<'a>> {
    let own = own.into_iter().map(|(name, value)| {
        let field = Field { name, value, part: Part::Own, is_default: false };
        match name {
            "id" => with_id(field, decoded, call),
            "ret" => match decoded.returned() {
                Returned::Value(value) => Field { value, ..field },
                Returned::Timeout => Field { value: Value::Failure(Failure::Timeout), ..field },
                Returned::Error(errno) => Field { value: Value::Failure(Failure::Error(errno)), ..field },
                Returned::Restart(errno) => Field { value: Value::Failure(Failure::Restart(errno)), ..field },
                Returned::Never | Returned::Unseen | Returned::Pending => field,
            },
            _ => field,
        }
    });
    let has_memory = call.args.is_some() && decoded.row().is_some();
    let written = decoded.args().filter(|argument| has_memory && argument.is_used()).filter_map(|argument| {
        let value = match argument.values() {
            Values::Entry(_) => return None,
            Values::Exit(value) => value,
            Values::Both(both) => both[1].clone(),
        };
        let is_read = !matches!(value, Value::Unread(_) | Value::Address(_) | Value::Unknown);
        is_read.then(|| Field { name: argument.name(), value, part: Part::OfCall, is_default: false })
    });
    own.chain(written).collect()
}

/// Returns the field with the number of the call, which has a name unless it is unknown.
fn with_id<'a>(field: Field<'a>, decoded: &Decoded, call: &Call) -> Field<'a> {
    let (Value::Int(number), Some(name)) =
        (&field.value, decoded.row().map(|row| row.name).or_else(|| lookup::other_name(call.abi, call.nr)))
    else {
        return field;
    };
    // rt_sigreturn(2) returns without a number.
    if *number < 0 {
        return field;
    }
    let names = vec![NumberName { separator: String::new(), name: name.to_owned() }];
    Field { value: Value::Named(NamedNumber { number: *number as u64, names, rest: 0 }), ..field }
}
