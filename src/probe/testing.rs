//! Helpers for tests: a simulated machine, and programs that the tests compile.

use super::surroundings::Surroundings;
use crate::kernel::btf::Blob;
use crate::stack::symbols::{BuildId, ReadAt};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A machine with the real files, and with the BTF and symbols that a test chooses.
#[derive(Default)]
pub struct Machine {
    /// The bytes of the kernel's BTF; `None` if it has none. The modules never have any.
    pub types: Option<Vec<u8>>,
    /// The text of /proc/kallsyms; `None` if there is no such file.
    pub kallsyms: Option<Vec<u8>>,
    /// The build ID of the kernel; `None` if it has none.
    pub build_id: Option<BuildId>,
    /// Paths that are redirected: the first one is opened as the second one.
    pub instead: Vec<(PathBuf, PathBuf)>,
}

impl Surroundings for Machine {
    fn absolute(&mut self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn open(&mut self, path: &Path) -> Option<Box<dyn ReadAt>> {
        let path = self.instead.iter().find(|(from, _)| from == path).map_or(path, |(_, to)| to);
        Some(Box::new(std::fs::read(path).ok()?))
    }

    fn release(&mut self) -> anyhow::Result<String> {
        Ok("6.1.0-test".to_owned())
    }

    fn kernel_build_id(&mut self) -> Option<BuildId> {
        self.build_id
    }

    fn kallsyms(&mut self) -> io::Result<Vec<u8>> {
        self.kallsyms.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn types(&mut self, module: Option<&str>) -> io::Result<Blob> {
        self.types.clone().filter(|_| module.is_none()).map(Blob::Read).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn modules(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// A compiled program in a temporary directory, which is removed on drop.
pub struct Built {
    directory: TempDir,
    /// The absolute path of the program, without symbolic links.
    pub path: PathBuf,
}

impl Built {
    /// Compiles `tests/programs/probes/SOURCE`. If there is no compiler, reports that the test is skipped and returns
    /// `None`.
    pub fn new(source: &str, flags: &[&str]) -> Option<Built> {
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let built = Built { path: directory.path().canonicalize().expect("the directory exists").join("app"), directory };
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/probes").join(source);
        let compiler = if source.ends_with(".cc") { "g++" } else { "gcc" };
        match Command::new(compiler).args(flags).arg("-o").arg(&built.path).arg(&from).status() {
            Ok(status) => {
                assert!(status.success(), "{compiler} does not compile {source} with {flags:?}");
                Some(built)
            }
            Err(error) => {
                eprintln!("SKIPPED: {compiler} cannot be run ({error}); nothing was tested");
                None
            }
        }
    }

    /// Moves the program's debug information into a separate file, as distributions do.
    pub fn move_debug_information_away(&self) {
        let objcopy = |args: &[&str]| {
            let status = Command::new("objcopy").args(args).status().expect("objcopy comes with the compiler");
            assert!(status.success(), "objcopy {args:?}");
        };
        let (program, debug) = (self.path.display().to_string(), self.directory.path().join("app.debug").display().to_string());
        objcopy(&["--only-keep-debug", &program, &debug]);
        objcopy(&["--strip-all", &format!("--add-gnu-debuglink={debug}"), &program]);
    }

    /// Returns the address of a symbol, as `nm` prints it.
    pub fn svma_of(&self, symbol: &str) -> u64 {
        self.svmas_of(symbol)[0]
    }

    /// Returns the addresses of all symbols with this name, as `nm` prints them; none if there is no such symbol.
    pub fn svmas_of(&self, symbol: &str) -> Vec<u64> {
        let output = Command::new("nm").arg(&self.path).output().expect("nm comes with the compiler");
        let text = String::from_utf8(output.stdout).expect("names in C");
        let lines = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, rest)| rest.split_once(' ').is_some_and(|(_, name)| name == symbol));
        lines.map(|(address, _)| u64::from_str_radix(address, 16).expect("an address")).collect()
    }
}
