//! Checks `--path` for traces in which rtrace knows no path names.

use super::{PathNameSource, PathNames};
use crate::request::Trace;

/// Returns the remark for a trace with `--path` in which no path names are known. Descriptors alone match hardly any
/// call.
pub fn unknown_paths(request: &Trace, names: Option<&PathNames>) -> Option<String> {
    let unknown = names.is_some_and(|names| *names.source() == PathNameSource::None);
    (unknown && !request.show.paths.is_empty())
        .then(|| "--path finds hardly anything here, because path names are not known without BPF (-v says why)".to_owned())
}
