use super::*;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary directory of one test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = std::env::temp_dir().join(format!("rtrace-output-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(to: request::Sink, separately: bool) -> Result<Output> {
    Output::open(&request::Output { to, separately, color: Color::Auto, rotation: None })
}

fn write_once(path: PathBuf, text: &str) {
    let mut output = open(request::Sink::File(path), false).unwrap();
    output.write(Some(1), text.as_bytes()).unwrap();
    output.finish().unwrap();
}

#[test]
fn an_old_file_is_kept_and_a_new_one_is_private() {
    let directory = Directory::new();
    let path = directory.path("trace");
    write_once(path.clone(), "first\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    write_once(path.clone(), "second\n");
    assert_eq!((directory.read("trace"), directory.read("trace.old")), ("second\n".into(), "first\n".into()));
    write_once(path, "third\n");
    assert_eq!(directory.read("trace.old"), "second\n");
}

#[test]
fn a_pipe_and_a_terminal_are_watched_and_a_file_is_not() {
    let directory = Directory::new();
    let is_watched = |to| open(to, false).unwrap().is_watched();
    assert!(!is_watched(request::Sink::File(directory.path("trace"))));
    assert!(!is_watched(request::Sink::File("/dev/null".into())));
    assert!(is_watched(request::Sink::Pipe("cat >/dev/null".into())));
    let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::unlockpt(&terminal).unwrap();
    let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    assert!(is_watched(request::Sink::File(name.into())));
    let separate =
        request::Output { to: request::Sink::File(directory.path("each")), separately: true, color: Color::Auto, rotation: None };
    assert!(!Output::open(&separate).unwrap().is_watched());
}

#[test]
fn an_empty_old_file_is_not_kept() {
    let directory = Directory::new();
    std::fs::write(directory.path("trace"), "").unwrap();
    write_once(directory.path("trace"), "x");
    assert!(!directory.path("trace.old").exists());
    assert_eq!(directory.path("trace").metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn links_and_directories_are_rejected() {
    let directory = Directory::new();
    std::fs::write(directory.path("precious"), "keep me").unwrap();
    symlink(directory.path("precious"), directory.path("link")).unwrap();
    symlink(directory.path("nothing"), directory.path("dangling")).unwrap();
    for (name, reason) in [("link", "symbolic link"), ("dangling", "symbolic link"), ("", "directory")] {
        let error = format!("{:#}", open(request::Sink::File(directory.path(name)), false).unwrap_err());
        assert!(error.starts_with("cannot write to /") && error.contains(reason), "{error}");
    }
    assert_eq!(directory.read("precious"), "keep me");
    assert!(!directory.path("nothing").exists());
    std::fs::write(directory.path("trace"), "old").unwrap();
    symlink(directory.path("precious"), directory.path("trace.old")).unwrap();
    write_once(directory.path("trace"), "new");
    assert_eq!(directory.read("precious"), "keep me", "the link is replaced, not followed");
}

#[test]
fn a_file_that_is_appended_to_keeps_its_text() {
    let directory = Directory::new();
    for (separately, pid, name) in [(false, None, "trace"), (true, Some(7), "each.7")] {
        let to = request::Sink::Append(directory.path(name.split('.').next().unwrap()));
        for line in ["one\n", "two\n"] {
            open(to.clone(), separately).unwrap().write(pid, line.as_bytes()).unwrap();
        }
        assert_eq!(directory.read(name), "one\ntwo\n");
        assert!(!directory.path(&format!("{name}.old")).exists());
    }
    std::fs::write(directory.path("precious"), "keep me").unwrap();
    symlink(directory.path("precious"), directory.path("link")).unwrap();
    assert!(open(request::Sink::Append(directory.path("link")), false).is_err());
}

#[test]
fn devices_and_pipes_are_written_as_they_are() {
    write_once("/dev/null".into(), "gone");
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    let directory = Directory::new();
    let path = directory.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, 0).unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || std::fs::read_to_string(path).unwrap()
    });
    write_once(path.clone(), "through\n");
    assert_eq!(reader.join().unwrap(), "through\n");
    assert!(path.metadata().unwrap().file_type().is_fifo());
}

#[test]
fn a_write_error_names_the_output() {
    let mut output = open(request::Sink::File("/dev/full".into()), false).unwrap();
    let error = output.write(None, b"x").unwrap_err().error;
    assert!(error.to_string().starts_with("cannot write to /dev/full: No space left"), "{error}");
    assert!(!is_quiet_end(&error));
}

#[test]
fn a_command_reads_all_and_is_waited_for() {
    let directory = Directory::new();
    let mut command = OsString::from("sleep 0.05; cat > ");
    command.push(directory.path("copy"));
    let mut output = open(request::Sink::Pipe(command), false).unwrap();
    assert!(output.reader().is_some());
    output.write(Some(1), b"one\n").unwrap();
    output.write(None, b"two\n").unwrap();
    output.finish().unwrap();
    assert_eq!(directory.read("copy"), "one\ntwo\n");
}

#[test]
fn a_broken_pipe_to_a_command_is_a_quiet_end() {
    let mut output = open(request::Sink::Pipe("exec true".into()), false).unwrap();
    let line = vec![b'x'; 1 << 20];
    assert!(is_quiet_end(&output.write(None, &line).unwrap_err().error), "more than a pipe holds");
    output.finish().unwrap();
    let mut output = open(request::Sink::Pipe("/nonexistent/reader 2>/dev/null".into()), false).unwrap();
    assert!(output.finish().unwrap_err().to_string().contains("could not be run"));
}

#[test]
fn separate_output_has_a_file_per_process() {
    let directory = Directory::new();
    std::fs::write(directory.path("t.7"), "of another run").unwrap();
    let mut output = open(request::Sink::File(directory.path("t")), true).unwrap();
    assert!(output.is_separate());
    for (pid, text) in [(Some(7), "a\n"), (Some(8), "b\n"), (Some(7), "c\n"), (None, "all\n")] {
        output.write(pid, text.as_bytes()).unwrap();
    }
    assert_eq!(["t.7", "t.8", "t", "t.7.old"].map(|name| directory.read(name)), ["a\nc\n", "b\n", "all\n", "of another run"]);
    assert!(open(request::Sink::Stderr, true).unwrap_err().to_string().contains("-o FILE"));
}

#[test]
fn each_file_begins_with_the_header() {
    let directory = Directory::new();
    for (name, separately, expected) in
        [("one", false, [None, None, Some("header\na\nb\nc\n")]), ("each", true, [Some("header\na\nc\n"), Some("header\nb\n"), None])]
    {
        let mut output = open(request::Sink::File(directory.path(name)), separately).unwrap();
        output.begin_files_with(b"header\n");
        for (pid, text) in [(Some(7), "a\n"), (Some(8), "b\n"), (Some(7), "c\n")] {
            output.write(pid, text.as_bytes()).unwrap();
        }
        let read = |ending: &str| std::fs::read_to_string(directory.path(&format!("{name}{ending}"))).ok();
        assert_eq!([".7", ".8", ""].map(read), expected.map(|text| text.map(str::to_owned)), "{name}");
    }
}

#[test]
fn colours_are_used_on_terminals_unless_requested_otherwise() {
    let chosen = |color, terminal, no_color, force| chooses_color(color, terminal, no_color, force);
    assert!(chosen(Color::Always, false, true, false) && !chosen(Color::Never, true, false, true));
    assert!(chosen(Color::Auto, true, false, false) && !chosen(Color::Auto, false, false, false));
    assert!(!chosen(Color::Auto, true, true, false) && chosen(Color::Auto, false, false, true));
}
