//! The outputs of lines, and what happens to files that exist already.

use crate::line;
use crate::machine::Machine;
use crate::trace::{plain, shell};
use std::os::unix::fs::PermissionsExt;

/// A device that every Linux system has.
const NOBODY: u32 = 65_534;
const TRUE: [&str; 2] = ["--", "true"];

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn lines_go_to_stderr_and_the_commands_own_output_is_untouched() {
    let Some(machine) = Machine::shared() else { return };
    let run = plain(&machine, &["-e", "write", "--", "echo", "hello"]).succeeded();
    assert_eq!(run.stdout, "hello\n");
    let lines = line::parse(&run.stderr);
    assert_eq!(line::calls(&lines).len(), 1, "{}", run.stderr);
}

#[test]
fn a_file_is_private_and_an_older_one_is_kept() {
    let Some(machine) = Machine::shared() else { return };
    let file = machine.path("trace");
    plain(&machine, &[&["-o", &file][..], &TRUE].concat()).succeeded();
    let first = read(&file);
    assert!(!line::parse(&first).is_empty(), "{first}");
    let mode = std::fs::metadata(&file).map(|m| m.permissions().mode() & 0o7777);
    assert_eq!(mode.ok(), Some(0o600));
    assert!(!std::fs::exists(format!("{file}.old")).unwrap_or(true));
    plain(&machine, &[&["-o", &file][..], &TRUE].concat()).succeeded();
    assert_eq!(read(&format!("{file}.old")), first);
    assert_ne!(read(&file), first);
}

#[test]
fn a_link_is_not_followed() {
    let Some(machine) = Machine::shared() else { return };
    let (target, link) = (machine.file("target", 5), machine.path("link"));
    std::os::unix::fs::symlink(&target, &link).expect("the test's directory is writable");
    let run = plain(&machine, &[&["-o", &link][..], &TRUE].concat());
    assert_eq!(read(&target), ".....", "status {}: {}", run.status, run.stderr);
}

/// In directories that everybody may write to, another user may have created the file of this name.
#[test]
fn files_and_fifos_of_other_users_are_not_written() {
    let Some(machine) = Machine::shared() else { return };
    let precious = machine.file("precious", 5);
    let shared = machine.path("shared");
    std::fs::create_dir(&shared).expect("the test's directory is writable");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).expect("it is ours");
    let in_memory = format!("/dev/shm/rtrace-live-{}", std::process::id());
    for place in [format!("{shared}/x"), in_memory] {
        let refused = |what: &str, option: &str| {
            std::os::unix::fs::lchown(&place, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
            let run = plain(&machine, &[&[option, &place][..], &TRUE].concat());
            assert_eq!((run.status, run.stderr), (125, format!("rtrace: cannot write to {place}: {what}\n")), "{option}");
        };
        std::os::unix::fs::symlink(&precious, &place).expect("the directory is writable");
        refused("it is a symbolic link; give the path of the file itself", "-o");
        refused("it is a symbolic link; give the path of the file itself", "--flamegraph");
        std::fs::remove_file(&place).expect("it is there");
        std::fs::write(&place, "theirs").expect("the directory is writable");
        refused("it is a file of another user, in a directory that others may write to", "-o");
        assert_eq!(read(&place), "theirs");
        std::fs::remove_file(&place).expect("it is there");
        rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o666), 0)
            .expect("pipes can be made");
        refused("it is a pipe of another user, in a directory that others may write to", "-o");
        std::fs::remove_file(&place).expect("it is there");

        let old = format!("{place}.old");
        std::fs::write(&place, "ours").expect("the directory is writable");
        std::fs::write(&old, "theirs").expect("the directory is writable");
        std::os::unix::fs::chown(&old, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
        let run = plain(&machine, &[&["-o", &place][..], &TRUE].concat());
        let why = "its .old file is another user's, in a directory that others may write to";
        assert_eq!((run.status, run.stderr), (125, format!("rtrace: cannot write to {place}: {why}\n")));
        std::fs::remove_file(&old).expect("it is there");
        plain(&machine, &[&["-o", &place][..], &TRUE].concat()).succeeded();
        assert_eq!(read(&old), "ours", "an older trace of ours is kept");
        assert!(!line::parse(&read(&place)).is_empty());
        std::fs::remove_file(&old).expect("it is there");
        std::fs::remove_file(&place).expect("it is there");
    }
    assert_eq!(read(&precious), ".....");
}

#[test]
fn stdout_devices_and_pipes_are_written() {
    let Some(machine) = Machine::shared() else { return };
    let stdout = plain(&machine, &[&["-o", "-"][..], &TRUE].concat()).succeeded();
    assert!(!line::parse(&stdout.stdout).is_empty());
    assert!(line::parse(&stdout.stderr).is_empty());

    plain(&machine, &[&["-o", "/dev/null"][..], &TRUE].concat()).succeeded();
    assert!(!std::fs::exists("/dev/null.old").unwrap_or(true));

    let copy = machine.path("copy");
    plain(&machine, &[&["-o", &format!("|cat >{copy}")][..], &TRUE].concat()).succeeded();
    assert!(!line::parse(&read(&copy)).is_empty(), "what was piped is there when rtrace has ended");
}

#[test]
fn an_output_that_cannot_be_opened_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    let (file, ran) = ("/no/such/directory/trace", machine.path("ran"));
    let run = plain(&machine, &["-o", file, "--", "touch", &ran]);
    assert_eq!(run.status, 125);
    assert!(run.stderr.contains(file), "{}", run.stderr);
    assert!(!std::fs::exists(&ran).unwrap_or(true), "the command was not started");
}

/// Each write to /dev/full fails.
#[test]
fn an_output_that_cannot_be_written_does_not_affect_the_others() {
    let Some(machine) = Machine::shared() else { return };
    let failed = "rtrace: cannot write to /dev/full: No space left on device\n";
    let run = plain(&machine, &[&["-s", "--flamegraph", "/dev/full"][..], &TRUE].concat());
    assert_eq!(run.status, 125, "{}", run.stderr);
    assert!(run.stderr.contains(failed) && run.stderr.contains("execve"), "the table of the summary is there: {}", run.stderr);

    let graph = machine.path("graph");
    let run = plain(&machine, &[&["-s", "--folded", &graph, "--flamegraph", "/dev/full"][..], &TRUE].concat());
    assert_eq!((run.status, run.stderr.matches(failed).count()), (125, 1), "{}", run.stderr);
    assert!(run.stderr.contains(&format!(" are in {graph} (folded stacks)\n")), "{}", run.stderr);
    assert!(read(&graph).contains(";execve"), "{}", read(&graph));

    let last = machine.path("last");
    let run = plain(&machine, &[&["-o", "/dev/full", "--folded", &last][..], &TRUE].concat());
    assert_eq!((run.status, run.stderr.matches(failed).count()), (125, 1), "{}", run.stderr);
    assert!(read(&last).contains(";execve"), "{}", read(&last));

    let run = plain(&machine, &[&["--json", "-o", "-", "-s", "--flamegraph", "/dev/full"][..], &TRUE].concat());
    assert!(run.stdout.lines().last().is_some_and(|line| line.starts_with("{\"type\":\"end\"")), "{}", run.stdout);
}

#[test]
fn output_separately_writes_a_file_for_each_process() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#""$rtrace" --output-separately -o "$dir/each" -e lseek -- "$workload" forks 3"#;
    shell(&machine, script).succeeded();
    let files: Vec<String> = std::fs::read_dir(machine.dir())
        .expect("the test's directory is readable")
        .filter_map(|file| file.ok()?.path().to_str().map(str::to_owned))
        .filter(|name| name.contains("/each."))
        .collect();
    let calls: usize = files.iter().map(|file| line::calls(&line::parse(&read(file))).len()).sum();
    assert_eq!(calls, 3, "{files:?}");
    for file in files {
        let pid = file.rsplit('.').next().and_then(|pid| pid.parse::<i32>().ok());
        assert!(line::parse(&read(&file)).iter().all(|line| Some(line.tid) == pid), "{file} holds its own process only");
    }
}

#[test]
fn output_has_no_colour_unless_requested() {
    let Some(machine) = Machine::shared() else { return };
    let escapes =
        |options: &[&str]| plain(&machine, &[options, &["-o", "-", "--", "sleep", "0.01"]].concat()).succeeded().stdout.contains('\x1b');
    assert!(!escapes(&[]));
    assert!(!escapes(&["--color", "never"]));
    assert!(escapes(&["--color", "always"]));
}

/// Opens a terminal of this width; text that is written to the path can be read from the file.
pub fn terminal(columns: u16) -> (String, std::fs::File, rustix::fd::OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).expect("there are pseudoterminals");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is ours");
    let theirs = ioctl_tiocgptpeer(&ours, flags).expect("it is unlocked");
    let size = rustix::termios::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&ours, size).expect("it is a terminal");
    let path = ptsname(&ours, Vec::new()).expect("it has a name").into_string().expect("its name is ASCII");
    (path, ours.into(), theirs)
}

#[test]
fn lines_fit_the_terminal_and_keep_the_return_value() {
    let Some(machine) = Machine::shared() else { return };
    let command = ["-e", "execve", "--color", "never", "--", "/bin/sh", "-c", "exit 0", "an argument that is long enough to fill a line"];
    let on_terminal = |columns: u16, options: &[&str]| {
        let (path, mut ours, _theirs) = terminal(columns);
        plain(&machine, &[&["-o", &path], options, &command].concat()).succeeded();
        let mut bytes = vec![0; 4096];
        let read = std::io::Read::read(&mut ours, &mut bytes).expect("lines were written");
        let text = String::from_utf8(bytes[..read].to_vec()).expect("lines are UTF-8");
        text.lines().find(|line| line.contains("execve(")).expect("execve has a line").to_owned()
    };
    let [cut, narrower, whole] = [on_terminal(70, &["--width", "auto"]), on_terminal(70, &["--width", "60"]), on_terminal(70, &[])];
    assert_eq!((cut.len(), narrower.len()), (70, 60), "{cut}\n{narrower}");
    assert!(cut.ends_with("...) = 0") && narrower.ends_with("...) = 0"), "{cut}\n{narrower}");
    assert!(whole.len() > 100 && !whole.contains("...)") && whole.ends_with(" = 0"), "{whole}");
    let file = machine.path("lines");
    plain(&machine, &[&["-o", &file, "--width", "60"][..], &command].concat()).succeeded();
    assert!(read(&file).lines().any(|line| line.contains("execve(") && line.len() > 100), "a file has whole lines:\n{}", read(&file));
}

#[test]
fn durations_have_the_unit_that_fits_on_a_terminal_and_milliseconds_elsewhere() {
    let Some(machine) = Machine::shared() else { return };
    let command = ["-e", "clock_nanosleep", "--no-pending", "--color", "never", "--", "sleep", "0.02"];
    let (path, mut ours, _theirs) = terminal(200);
    plain(&machine, &[&["-o", &path][..], &command].concat()).succeeded();
    let mut bytes = vec![0; 4096];
    let count = std::io::Read::read(&mut ours, &mut bytes).expect("lines were written");
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let matches = |pattern: &str, text: &str| regex::Regex::new(pattern).expect("the pattern is right").is_match(text);
    assert!(
        matches(r"(?m)^ +[0-9]+\.[0-9]{3} \( +([0-9]\.[0-9]{2}|[0-9]{2}\.[0-9]|[0-9]{3}) m?s\): sleep/[0-9]+ clock_nanosleep\(", &text),
        "{text}"
    );
    let file = machine.path("lines");
    plain(&machine, &[&["-o", &file][..], &command].concat()).succeeded();
    assert!(matches(r"(?m)^ +[0-9]+\.[0-9]{3} \( *[0-9]+\.[0-9]{3} ms\): sleep/[0-9]+ clock_nanosleep\(", &read(&file)), "{}", read(&file));
}
