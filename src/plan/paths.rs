//! Resolves the paths of `--path`, and checks the option for traces in which rtrace knows no path names.

use super::{PathNameSource, PathNames};
use crate::request::Trace;
use crate::session;
use crate::text::glob;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the names that this machine has for the paths: absolute, and without symbolic links.
pub fn named(written: &[OsString]) -> Vec<session::PathNames> {
    let names = |path: &OsString| {
        let is_pattern = glob::is_pattern(&path.to_string_lossy());
        let real = if is_pattern { None } else { Path::new(path).canonicalize().ok() };
        let others = std::path::absolute(path).ok().into_iter().chain(real);
        let bytes = |path: PathBuf| path.into_os_string().as_bytes().to_vec();
        session::PathNames { written: path.as_bytes().to_vec(), others: others.map(bytes).collect() }
    };
    written.iter().map(names).collect()
}

/// Returns the remark for a trace with `--path` in which no path names are known. Descriptors alone match hardly any
/// call.
pub fn unknown_paths(request: &Trace, names: Option<&PathNames>) -> Option<String> {
    let unknown = names.is_some_and(|names| *names.source() == PathNameSource::None);
    (unknown && !request.show.paths.is_empty())
        .then(|| "--path finds hardly anything here, because path names are not known without BPF (-v says why)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_named_absolutely_and_without_links() {
        let of = |path: &str| named(&[OsString::from(path)]).remove(0).others;
        assert_eq!(of("/nonexistent/*"), [b"/nonexistent/*"]);
        assert_eq!(of("/proc/self/../self/../sys"), [&b"/proc/self/../self/../sys"[..], b"/proc/sys"]);
        assert_eq!(of("x.c"), [std::env::current_dir().unwrap().join("x.c").as_os_str().as_bytes()]);
    }
}
