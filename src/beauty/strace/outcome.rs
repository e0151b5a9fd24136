//! Prints the results of calls.

use super::{Strace, forms, value};
use crate::beauty::decode::Decoded;
use crate::beauty::value::{Failure, Returned, Value};
use crate::show::strace::Constants;
use crate::text::number;
use std::io::Write;

/// The kernel's internal errors (include/linux/errno.h), and what strace says about them.
const RESTARTS: [(i32, &str, &str); 4] = [
    (512, "ERESTARTSYS", "To be restarted if SA_RESTART is set"),
    (513, "ERESTARTNOINTR", "To be restarted"),
    (514, "ERESTARTNOHAND", "To be restarted if no handler"),
    (516, "ERESTART_RESTARTBLOCK", "Interrupted by signal"),
];

impl Strace {
    /// Appends the result of a call.
    pub(super) fn outcome(&self, out: &mut Vec<u8>, decoded: &Decoded, returned: &Returned) {
        let form = || decoded.row().map_or("", |row| forms::of_call(row.name).result);
        match returned {
            Returned::Value(value @ Value::Flags { bits, .. }) if form() == "constant" => {
                self.number_and_name(out, *bits, value);
            }
            Returned::Value(Value::Flags { bits: 0, .. }) => out.push(b'0'),
            Returned::Value(value @ Value::Flags { bits, .. }) => {
                number::hex(out, *bits);
                out.extend_from_slice(b" (flags ");
                // The flags of an open file have their names in any case.
                let is_of_file = matches!(value, Value::Flags { table, .. } if table.name == "open_flags");
                let constants = if is_of_file { Constants::Abbreviated } else { self.show.strace.constants };
                value::write(out, value, value::Options { constants, ..self.options() });
                out.push(b')');
            }
            Returned::Value(value @ Value::Signal(signal @ 1..)) => self.number_and_name(out, *signal as u64, value),
            Returned::Value(value @ (Value::Symbol { value: raw, .. } | Value::Packed { raw, .. })) => {
                self.number_and_name(out, *raw, value);
            }
            Returned::Value(Value::Address(0)) => out.push(b'0'),
            Returned::Value(value) => value::write(out, value, self.options()),
            Returned::Timeout if form() == "number" => out.push(b'0'),
            Returned::Timeout => value::failure(out, Failure::Timeout),
            Returned::Error(errno) => value::failure(out, Failure::Error(*errno)),
            Returned::Restart(errno) => match RESTARTS.iter().find(|(known, ..)| known == errno) {
                // Writing to a Vec does not fail.
                Some((_, name, text)) => _ = write!(out, "? {name} ({text})"),
                None => value::failure(out, Failure::Restart(*errno)),
            },
            Returned::Never | Returned::Pending | Returned::Unseen => out.push(b'?'),
        }
    }

    /// Writes a number with what it means in parentheses: `10 (SIGUSR1)`.
    fn number_and_name(&self, out: &mut Vec<u8>, number: u64, value: &Value) {
        number::uint(out, number);
        out.extend_from_slice(b" (");
        value::write(out, value, self.options());
        out.push(b')');
    }
}
