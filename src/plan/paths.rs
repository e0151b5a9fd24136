//! `--path`: the paths as the user wrote them and as the kernel names them.

use super::{PathNameSource, PathNames};
use crate::gate::Paths;
use crate::request::Trace;
use crate::text::glob;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Returns each path as it was written, as calls may name it, and absolute without symbolic links, as descriptors have
/// it.
pub fn find(written: &[OsString]) -> Paths {
    let mut paths = Vec::new();
    for path in written {
        let mut add = |path: Vec<u8>| {
            if !paths.contains(&path) {
                paths.push(path);
            }
        };
        add(path.as_bytes().to_vec());
        if let Ok(absolute) = std::path::absolute(path) {
            add(absolute.into_os_string().into_vec());
        }
        if !glob::is_pattern(&path.to_string_lossy())
            && let Ok(real) = Path::new(path).canonicalize()
        {
            add(real.into_os_string().into_vec());
        }
    }
    Paths(paths)
}

/// Returns the remark for a trace with `--path` in which no path names are known. Descriptors alone match hardly any
/// call.
pub fn remark(request: &Trace, names: Option<&PathNames>) -> Option<String> {
    let unknown = names.is_some_and(|names| names.source == PathNameSource::None);
    (unknown && !request.show.paths.is_empty())
        .then(|| "--path finds hardly anything here, because path names are not known without BPF (-v says why)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_as_written_and_as_the_kernel_names_them() {
        let of = |path: &str| find(&[OsString::from(path)]).0;
        assert_eq!(of("/nonexistent/*"), [b"/nonexistent/*".to_vec()]);
        assert_eq!(of("/proc/self/../self/../sys"), [b"/proc/self/../self/../sys".to_vec(), b"/proc/sys".to_vec()]);
        let here = std::env::current_dir().unwrap().join("x.c").into_os_string().into_vec();
        assert_eq!(of("x.c"), [b"x.c".to_vec(), here]);
    }
}
