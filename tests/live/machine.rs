//! The machine that the tests run on: whether it can trace, which test runs alone on it, and where the programs are.

use crate::needs::unsupported;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

/// Parallel tests hold it for reading; a test that must run alone holds it for writing.
static NEIGHBOURS: RwLock<()> = RwLock::new(());

/// The permission to run a live test on this machine, as long as it is held.
pub struct Machine {
    _share: Share,
    dir: PathBuf,
}

enum Share {
    Some { _guard: RwLockReadGuard<'static, ()> },
    All { _guard: RwLockWriteGuard<'static, ()> },
}

impl Machine {
    /// For a test that runs in parallel with others. If tracing is impossible, reports so and returns `None`.
    pub fn shared() -> Option<Machine> {
        can_trace().then(|| Machine::new(Share::Some { _guard: NEIGHBOURS.read().unwrap_or_else(|e| e.into_inner()) }))
    }

    /// For a test during which no other test runs, because its result depends on the machine's load.
    pub fn alone() -> Option<Machine> {
        can_trace().then(|| Machine::new(Share::All { _guard: NEIGHBOURS.write().unwrap_or_else(|e| e.into_inner()) }))
    }

    fn new(share: Share) -> Machine {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let name = format!("rtrace-live-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let dir = std::env::temp_dir().join(name);
            match std::fs::create_dir(&dir) {
                Ok(()) => return Machine { _share: share, dir },
                // An earlier process with this pid left the directory of a test that failed.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", dir.display()),
            }
        }
    }

    /// The directory of the test, which is kept if the test fails.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).to_str().expect("the temporary directory's name is UTF-8").to_owned()
    }

    /// Copies a program, and returns the path of the copy. Another process writes the copy: a process that another
    /// thread of the tests is starting would inherit the open file, and the copy could not be executed meanwhile.
    pub fn copy_of(&self, program: &str, name: &str) -> String {
        let path = self.path(name);
        let status = std::process::Command::new("cp").args(["--", program, &path]).status();
        assert!(status.is_ok_and(|status| status.success()), "{program} cannot be copied to {path}");
        path
    }

    /// Creates a file of this size.
    pub fn file(&self, name: &str, bytes: usize) -> String {
        let path = self.path(name);
        std::fs::write(&path, vec![b'.'; bytes]).unwrap_or_else(|e| panic!("{path}: {e}"));
        path
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Returns the path of the rtrace under test.
pub fn rtrace() -> &'static str {
    env!("CARGO_BIN_EXE_rtrace")
}

/// Returns the engine that the tests must use, if the environment names one (`RTRACE_TEST_ENGINE`). Every test holds
/// for each engine.
pub fn engine_asked_for() -> Option<String> {
    std::env::var("RTRACE_TEST_ENGINE").ok()
}

/// Returns the engine under test: the one of the environment, or the one that rtrace chooses according to `rtrace
/// check`.
pub fn engine() -> &'static str {
    static ENGINE: LazyLock<String> = LazyLock::new(|| {
        engine_asked_for().unwrap_or_else(|| {
            let report = Command::new(rtrace()).arg("check").output().expect("rtrace starts").stdout;
            let report = String::from_utf8_lossy(&report);
            let engine = report.lines().find_map(|line| line.split_once(" engine ")?.1.trim().split(':').next());
            engine.unwrap_or_else(|| panic!("no engine in\n{report}")).to_owned()
        })
    });
    &ENGINE
}

/// Returns the path of the test program whose calls are known (`tests/programs`).
///
/// # Panics
/// Panics if the program was not built since its last change: `cargo test --test live` alone builds no examples.
pub fn workload() -> String {
    let path = Path::new(rtrace()).with_file_name("examples").join("workload");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let newest: Option<SystemTime> = std::fs::read_dir(sources).into_iter().flatten().filter_map(|file| modified(&file.ok()?.path())).max();
    assert!(
        modified(&path).is_some_and(|built| Some(built) >= newest),
        "{} is not up to date: run `cargo build --examples`",
        path.display()
    );
    path.to_str().expect("the target directory's name is UTF-8").to_owned()
}

fn can_trace() -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "not root"
    } else if !["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"].iter().any(|dir| Path::new(dir).is_dir()) {
        "no tracefs (mount -t tracefs tracefs /sys/kernel/tracing)"
    } else {
        return true;
    };
    assert!(std::env::var_os("RTRACE_REQUIRE_LIVE").is_none_or(|v| v.is_empty() || v == "0"), "live tests are required, but: {reason}");
    unsupported(reason);
    false
}
