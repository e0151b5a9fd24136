//! Reads the generator's inputs: the files of `beauty/`, and the UAPI headers of the build machine or of `RTRACE_UAPI`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The environment variable that names the directory of the UAPI headers; the default is /usr/include.
pub const UAPI_VARIABLE: &str = "RTRACE_UAPI";

/// The subdirectory in which multiarch distributions keep the `asm/` headers.
const MULTIARCH: &str = "x86_64-linux-gnu";

/// The directories that are searched for headers, in this order.
pub struct Headers {
    pub directories: Vec<PathBuf>,
}

impl Headers {
    pub fn from_env() -> Headers {
        Headers::below(env::var_os(UAPI_VARIABLE).map_or("/usr/include".into(), PathBuf::from))
    }

    pub fn below(directory: PathBuf) -> Headers {
        Headers { directories: vec![directory.join(MULTIARCH), directory] }
    }

    /// Returns the path and the text of a header, by its name in `#include`.
    pub fn load(&self, name: &str) -> Option<(PathBuf, String)> {
        self.directories.iter().map(|directory| directory.join(name)).find_map(|path| {
            let bytes = fs::read(&path).ok()?;
            Some((path, String::from_utf8_lossy(&bytes).into_owned()))
        })
    }
}

/// Returns the paths and texts of all `.tbl` files below the directory, sorted by path.
pub fn rows(directory: &Path) -> Result<Vec<(String, String)>, String> {
    files_below(directory, "tbl")
}

/// Returns the text of all `.rs` files below the directory, concatenated in the order of their paths.
pub fn rust(directory: &Path) -> Result<String, String> {
    Ok(files_below(directory, "rs")?.into_iter().map(|(_, text)| text).collect())
}

fn files_below(directory: &Path, extension: &str) -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let failed = |error: io::Error| format!("failed to list {}: {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|own| own == extension) {
                files.push((path.display().to_string(), text(&path)?));
            }
        }
    }
    files.sort();
    Ok(files)
}

pub fn text(path: impl AsRef<Path>) -> Result<String, String> {
    fs::read_to_string(&path).map_err(|error| format!("failed to read {}: {error}", path.as_ref().display()))
}
