//! What programs of the user's give.

use crate::kernel::format::Format;

/// One kind of record.
#[derive(Clone, Debug)]
pub struct Output {
    /// The item of `-e` whose file has the program.
    pub item: u16,
    /// What its events are called.
    pub name: String,
    pub format: Format,
}
