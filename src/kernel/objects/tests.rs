use super::*;
use crate::kernel::procfs::{Mapping, parse_mapping};
use crate::stack::symbols::{KernelNames, Name, Options, Resolver};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A running copy of sleep(1), in a directory that is removed with it.
struct Sleeper {
    directory: PathBuf,
    child: Child,
}

impl Sleeper {
    fn start(name: &str) -> Sleeper {
        let directory = std::env::temp_dir().join(format!("rtrace-objects-{}-{name}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        // If this process wrote the copy, a child that another test forks meanwhile would inherit the file open for
        // writing, and it could not be executed.
        assert!(Command::new("cp").arg("/bin/sleep").arg(directory.join("program")).status().unwrap().success());
        let mut command = Command::new(directory.join("program"));
        let child = command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let sleeper = Sleeper { directory, child };
        // When it sleeps, its libraries are mapped.
        while !fs::read_to_string(format!("/proc/{}/wchan", sleeper.pid())).unwrap().contains("nanosleep") && sleeper.is_starting() {
            std::thread::yield_now();
        }
        sleeper
    }

    /// Whether it does not sleep yet. Without the right to read wchan, the state must do.
    fn is_starting(&self) -> bool {
        procfs::stat(self.pid()).is_none_or(|stat| stat.state != b'S')
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn program(&self) -> PathBuf {
        self.directory.join("program")
    }

    /// Calls `check` with the mapping of the program's code.
    fn mapped<T>(&self, check: impl FnOnce(Mapped<'_>, Mapping<'_>) -> T) -> T {
        let maps = fs::read(format!("/proc/{}/maps", self.pid())).unwrap();
        let lines = maps.split(|byte| *byte == b'\n').filter_map(parse_mapping);
        let line =
            lines.into_iter().find(|line| line.is_executable && line.path.starts_with(self.program().as_os_str().as_bytes())).unwrap();
        let Mapping { addresses, path, device, inode, .. } = line;
        check(Mapped { pid: self.pid(), addresses, path, device, inode }, line)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: needs root");
    }
    is_root
}

fn contents(file: &dyn ReadAt) -> Vec<u8> {
    let mut bytes = vec![0; file.size() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_file_of_a_mapping_is_opened_and_found_again() {
    let sleeper = Sleeper::start("mapped");
    let expected = fs::read("/bin/sleep").unwrap();
    let metadata = fs::metadata(sleeper.program()).unwrap();
    sleeper.mapped(|mapped, _| {
        let file = open_mapped(&mapped, Reach::Everywhere).unwrap();
        assert_eq!(contents(&file), expected);
        assert_eq!(file.identity().inode, std::os::unix::fs::MetadataExt::ino(&metadata));
        // The mapping no longer has these addresses.
        let file = open_mapped(&Mapped { addresses: (0x1000, 0x2000), ..mapped }, Reach::Everywhere).unwrap();
        assert_eq!(contents(&file), expected);
        let origin = origin(&mapped);
        let again = LiveFiles.find(Want::Again { identity: file.identity(), origin: &origin }).unwrap();
        assert_eq!(contents(&*again), expected);
        let other = Identity { size: 1, ..file.identity() };
        assert!(LiveFiles.find(Want::Again { identity: other, origin: &origin }).is_none());
        let replaced = open_mapped(&Mapped { addresses: (0x1000, 0x2000), inode: 1, ..mapped }, Reach::Everywhere);
        assert!(matches!(replaced, Err(ObjectError::Replaced)), "{replaced:?}");
        assert!(open_mapped(&Mapped { pid: -1, ..mapped }, Reach::Everywhere).is_ok(), "the process has ended, but the file exists");
    });
}

#[test]
fn mapped_files_are_opened_after_they_were_deleted_or_replaced() {
    if !is_root() {
        return;
    }
    let sleeper = Sleeper::start("deleted");
    let expected = fs::read("/bin/sleep").unwrap();
    fs::remove_file(sleeper.program()).unwrap();
    sleeper.mapped(|mapped, _| {
        assert!(mapped.path.ends_with(b" (deleted)"));
        assert_eq!(contents(&open_mapped(&mapped, Reach::Everywhere).unwrap()), expected);
        // The file is found by the addresses of its present mappings.
        assert_eq!(contents(&open_mapped(&Mapped { addresses: (0x1000, 0x2000), ..mapped }, Reach::Everywhere).unwrap()), expected);
        fs::write(sleeper.program(), "another").unwrap();
        let path = mapped.path.strip_suffix(b" (deleted)").unwrap();
        assert_eq!(contents(&open_mapped(&Mapped { path, ..mapped }, Reach::Everywhere).unwrap()), expected);
    });
}

#[test]
fn files_that_are_not_regular_are_refused() {
    let directory = std::env::temp_dir().join(format!("rtrace-objects-{}-regular", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let fifo = directory.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let own = std::process::id() as i32;
    for path in [fifo.as_path(), Path::new("/dev/null"), Path::new("/"), Path::new("/nonexistent"), Path::new("relative")] {
        for seen_by in [None, Some(own)] {
            assert!(LiveFiles.find(Want::Path { path, seen_by }).is_none(), "{path:?}");
        }
    }
    assert!(LiveFiles.find(Want::Path { path: Path::new("/bin/sh"), seen_by: Some(own) }).is_some());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn links_are_resolved_within_the_root_of_the_process() {
    if !is_root() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("rtrace-objects-{}-root", std::process::id()));
    fs::create_dir_all(directory.join("bin")).unwrap();
    fs::write(directory.join("inside"), "inside").unwrap();
    std::os::unix::fs::symlink("/inside", directory.join("link")).unwrap();
    std::os::unix::fs::symlink("../../../../etc/passwd", directory.join("out")).unwrap();
    let busy = Command::new("cc").args(["-static", "-x", "c", "-", "-o"]).arg(directory.join("bin/wait")).stdin(Stdio::piped()).spawn();
    let mut busy = busy.unwrap();
    io::Write::write_all(&mut busy.stdin.take().unwrap(), b"#include <unistd.h>\nint main(void) { return pause(); }").unwrap();
    assert!(busy.wait().unwrap().success());
    let mut child = Command::new("chroot").arg(&directory).arg("/bin/wait").spawn().unwrap();
    let pid = child.id() as i32;
    while procfs::comm(pid).unwrap() != b"wait" {
        std::thread::yield_now();
    }
    let find = |path: &str| LiveFiles.find(Want::Path { path: Path::new(path), seen_by: Some(pid) }).map(|file| contents(&*file));
    assert_eq!(find("/link").unwrap(), b"inside");
    assert_eq!((find("/out"), find("/../etc/passwd"), find("/etc/passwd")), (None, None, None));
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn files_of_just_in_time_compilers_are_opened_and_grow() {
    let sleeper = Sleeper::start("jit");
    let pid = sleeper.pid();
    let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let own = |path: PathBuf| Some(open_own(pid, &path, Reach::Everywhere).ok()?.growing());
    let perf_map = |pid| own(perf_map_path(pid)?);
    let jitdump = |path: &[u8]| own(jitdump_path(path)?);
    assert!(perf_map(pid).is_none());
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(perf_map(pid).is_none(), "a link");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "1000 10 first\n").unwrap();
    let map = perf_map(pid).unwrap();
    assert_eq!(contents(&*map), b"1000 10 first\n");
    fs::write(&path, "1000 10 first\n2000 10 second\n").unwrap();
    assert_eq!(contents(&*map), b"1000 10 first\n2000 10 second\n");
    if is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert!(perf_map(pid).is_none(), "another user's");
    }
    fs::remove_file(&path).unwrap();
    let dump = sleeper.directory.join(format!("jit-{pid}.dump"));
    fs::write(&dump, "x").unwrap();
    assert!(jitdump(dump.as_os_str().as_bytes()).is_some());
    assert!(jitdump(sleeper.program().as_os_str().as_bytes()).is_none(), "its name is not that of a dump");
}

#[test]
fn functions_of_the_vdso_have_symbols() {
    let maps = fs::read("/proc/self/maps").unwrap();
    let Some(vdso) = maps.split(|byte| *byte == b'\n').filter_map(parse_mapping).find(|line| line.path == b"[vdso]") else {
        eprintln!("skipped: this process has no vdso");
        return;
    };
    let bytes = image(std::process::id() as i32, vdso.addresses).unwrap();
    let mut resolver = Resolver::new(LiveFiles, Options::default());
    let object = resolver.image(bytes.clone()).unwrap();
    assert_eq!(resolver.image(bytes).unwrap(), object);
    let names = (0..vdso.addresses.1 - vdso.addresses.0).filter_map(|svma| match resolver.resolve(object, svma) {
        Name::Symbol { name, .. } => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    });
    assert!(names.into_iter().any(|name| name.ends_with("clock_gettime")));
    assert!(image(std::process::id() as i32, (0, 1 << 30)).is_err());
}

#[test]
fn ksys_read_of_this_kernel_has_a_name() {
    let text = String::from_utf8(kallsyms().unwrap()).unwrap();
    let line = text.lines().find(|line| line.ends_with(" T ksys_read")).expect("every kernel has ksys_read");
    let address = u64::from_str_radix(&line[..16], 16).unwrap();
    let mut names = KernelNames::default();
    if address == 0 {
        assert_eq!(names.at(address, Instant::now(), kallsyms), None);
        assert!(names.take_problem().is_some());
    } else {
        let found = names.at(address + 5, Instant::now(), kallsyms).unwrap();
        assert_eq!((found.name, found.module, found.offset), (&b"ksys_read"[..], None, 5));
    }
}
