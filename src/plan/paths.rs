//! `--path`: what the user wrote, and what the kernel calls it.

use super::{PathNames, Way};
use crate::gate::Paths;
use crate::request::Trace;
use crate::text::glob;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The paths as they were written, which is how a call may name them, and as descriptors have them: absolute and
/// without symbolic links.
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

/// What is to be said where no names of paths are known, so that nothing can be found by them: by a descriptor alone
/// there is little to find.
pub fn remark(request: &Trace, names: Option<&PathNames>) -> Option<String> {
    let unknown = names.is_some_and(|names| names.way == Way::None);
    (unknown && !request.show.paths.is_empty())
        .then(|| "--path finds hardly anything here, because path names are not known without BPF (-v says why)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_meant_as_written_and_as_the_kernel_has_it() {
        let of = |path: &str| find(&[OsString::from(path)]).0;
        assert_eq!(of("/nonexistent/*"), [b"/nonexistent/*".to_vec()]);
        assert_eq!(of("/proc/self/../self/../sys"), [b"/proc/self/../self/../sys".to_vec(), b"/proc/sys".to_vec()]);
        let here = std::env::current_dir().unwrap().join("x.c").into_os_string().into_vec();
        assert_eq!(of("x.c"), [b"x.c".to_vec(), here]);
    }
}
