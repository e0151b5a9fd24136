//! The fields of probes that record path names.

use super::layout::{Field, field, until_nul};
use crate::event::PieceState;
use crate::kernel::format::Format;

/// A probe that records path names.
#[derive(Clone, Copy, Debug)]
pub struct PathNameLayout {
    /// The name, a `__data_loc` field.
    text: Field,
    /// The name's user address; size 0 if the probe does not record it.
    address: Field,
    /// The return value of the probed function: a pointer or an error; size 0 if the probe does not record it.
    result: Field,
    /// The probe is a return probe.
    pub at_exit: bool,
}

/// A path name that the kernel copied during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathName<'a> {
    /// The name without its NUL. Empty if it could not be read.
    pub bytes: &'a [u8],
    /// The user address that it was copied from; `None` if the probe does not record it.
    pub address: Option<u64>,
    /// Complete, truncated, or unreadable.
    pub state: PieceState,
}

/// The text that probes record for a string that could not be read (FAULT_STRING in kernel/trace/trace_probe_kernel.h).
const UNREADABLE: &[u8] = b"(fault)";

impl PathNameLayout {
    pub fn new(format: &Format, at_exit: bool) -> PathNameLayout {
        // `pathname` is the field's name by perf's convention (`perf probe 'vfs_getname=...'`).
        let text = ["name", "pathname"].into_iter().find(|name| format.fields.iter().any(|f| f.name == *name && f.is_text()));
        let at = |name| field(format, name);
        PathNameLayout { text: at(text.unwrap_or_default()), address: at("address"), result: at("result"), at_exit }
    }

    /// Reads the name. Returns `None` for a name that could not be read or exceeds PATH_MAX; a return probe returns
    /// such a name with the state `Fault` instead.
    pub fn read<'a>(&self, raw: &'a [u8]) -> Option<PathName<'a>> {
        let record = self.text.data(raw)?;
        let bytes = until_nul(record);
        let address = self.address.exists().then(|| self.address.unsigned(raw));
        // Without a result field, a file that is really named `(fault)` is taken for an error.
        let failed = match self.result.exists() {
            false => bytes == UNREADABLE || record.is_empty(),
            true => matches!(self.result.signed(raw), -4095..=0) || record.is_empty(),
        };
        match failed {
            true => self.at_exit.then_some(PathName { bytes: b"", address, state: PieceState::Fault }),
            false => Some(PathName { bytes, address, state: if bytes.len() < record.len() { PieceState::Ok } else { PieceState::Cut } }),
        }
    }
}
