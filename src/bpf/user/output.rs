//! The events of the user's BPF programs.

use crate::kernel::format::Format;

/// A kind of record that a program writes.
#[derive(Clone, Debug)]
pub struct Output {
    /// The index of the item of `-e` whose file contains the program.
    pub item: u16,
    /// The name of the events.
    pub name: String,
    /// The members of the record, read from the type information of the program.
    pub format: Format,
}
