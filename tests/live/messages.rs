//! The messages of rtrace: foreign text in them cannot move a terminal's cursor or imitate a message of rtrace, and
//! failed writes are reported.

use crate::machine::{self, Machine};
use crate::needs::unsupported;
use crate::trace::{Trace, plain, shell, shell_with_engine};
use rustix::fs::XattrFlags;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Text that makes a terminal's text red, sets its title, ends the line, and imitates a verdict.
const HOSTILE: &str = "x\x1b[31m\x1b]0;t\x07\u{9b}1m\u{202e}\nrtrace: 7 calls issued, 7 printed, 0 lost";

fn is_harmless(text: &str, what: &str) {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
    assert!(!text.chars().any(harmful), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("rtrace: 7 calls")), "{what}: {text}");
}

fn refused(machine: &Machine, words: &[&str]) -> Trace {
    let run = plain(machine, words);
    assert!((125..=127).contains(&run.status), "{words:?}: {}", run.status);
    assert!(run.stderr.starts_with("rtrace: "), "{words:?}: {}", run.stderr);
    run
}

#[test]
fn text_from_outside_is_escaped() {
    let Some(machine) = Machine::shared() else { return };
    let in_directory = format!("/nonexistent/{HOSTILE}");
    let own_file = machine.path("probes");
    std::fs::write(&own_file, format!("p:{HOSTILE}")).expect("the test's directory is writable");
    let named = machine.path(&HOSTILE.replace('/', "-"));
    std::fs::write(&named, "p:").expect("the test's directory is writable");
    let program = format!("{named}.o");
    std::fs::write(&program, "not ELF").expect("the test's directory is writable");
    let item = |kind: &str| format!("{kind}{HOSTILE}");
    let all: &[&[&str]] = &[
        &[HOSTILE],
        &[&in_directory],
        &["--", &named],
        &["-o", &in_directory, "true"],
        &["--folded", &in_directory, "true"],
        &["--chdir", HOSTILE, "true"],
        &["--run-as", HOSTILE, "true"],
        &["-u", HOSTILE],
        &["-G", HOSTILE],
        &["-p", HOSTILE],
        &["-e", HOSTILE, "true"],
        &["-e", &item("%"), "true"],
        &["-e", &item("sched:"), "true"],
        &["-e", &item("/("), "true"],
        &["-e", &program, "true"],
        &["-e", "openat", "--filter", HOSTILE, "true"],
        &["--probe", HOSTILE, "true"],
        &["--probe", &item("p "), "true"],
        &["--probe", &format!("p {program}:main"), "true"],
        &["-m", HOSTILE, "true"],
        &["--duration", HOSTILE, "true"],
        &["--color", HOSTILE, "true"],
        &["--engine", HOSTILE, "true"],
        &[&item("--"), "true"],
        &[&item("--color="), "true"],
        &[&item("-"), "true"],
        &["list", HOSTILE, HOSTILE],
        &["list", HOSTILE],
        &["list", &item("usdt:")],
        &["probe", HOSTILE],
        &["probe", "show", HOSTILE],
        &["probe", "del", HOSTILE],
        &["probe", "emit", HOSTILE],
        &["probe", "add", HOSTILE],
        &["probe", "add", "-f", &own_file],
        &["probe", "add", "-f", &named],
        &["probe", "add", "-f", &in_directory],
    ];
    for words in all {
        is_harmless(&refused(&machine, words).stderr, &format!("{words:?}"));
    }
}

/// Checks variables, configuration, and a name that is not UTF-8: `(variable, value)`, or the text of a configuration
/// file.
#[test]
fn text_from_the_configuration_is_escaped() {
    let Some(machine) = Machine::shared() else { return };
    let run = |variable: &str, value: &OsStr| {
        let output = Command::new(machine::rtrace())
            .arg("true")
            .env("XDG_CONFIG_HOME", machine.dir())
            .env_remove("RTRACE_OPTS")
            .env_remove("PERF_CONFIG")
            .env(variable, value)
            .output()
            .expect("rtrace starts");
        let said = String::from_utf8(output.stderr).expect("messages are UTF-8");
        assert_eq!(output.status.code(), Some(125), "{variable}={value:?}: {said}");
        assert!(said.starts_with("rtrace: "), "{said}");
        is_harmless(&said, variable);
    };
    run("RTRACE_OPTS", format!("'{HOSTILE}'").as_ref());
    run("RTRACE_OPTS", format!("--color '{HOSTILE}'").as_ref());
    run("RTRACE_OPTS", OsStr::from_bytes(b"\xff\x1b[31m"));
    let config = machine.path("rtrace/config.toml");
    std::fs::create_dir(machine.path("rtrace")).expect("the test's directory is writable");
    let escaped = HOSTILE.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect::<String>();
    for text in [format!("color = \"{escaped}\""), format!("\"{escaped}\" = 1"), format!("mmap_pages = \"{escaped}\""), HOSTILE.to_owned()]
    {
        std::fs::write(&config, text).expect("the test's directory is writable");
        run("LANG", OsStr::new("C"));
    }
    std::fs::remove_file(&config).expect("it is there");
    let perf = machine.path("perf");
    std::fs::write(&perf, format!("[trace]\nshow_zeros = {}\n", HOSTILE.replace('\n', ""))).expect("the test's directory is writable");
    run("PERF_CONFIG", perf.as_ref());
    let named = machine.dir().join(OsStr::from_bytes(b"n\xff\x1b[31m\nrtrace: 7"));
    std::fs::write(&named, "[trace]\nshow_zeros = x\n").expect("the test's directory is writable");
    run("PERF_CONFIG", named.as_ref());
}

/// Checks notices about traced programs: a reader, a program, events that matched nothing.
#[test]
fn text_from_traced_programs_is_escaped() {
    let Some(machine) = Machine::shared() else { return };
    let named = machine.copy_of("/bin/true", &HOSTILE.replace('/', "-"));
    for options in
        [&["-v"][..], &["-v", "-e", "openat", "--filter", "filename == \"\x1b[31m\""], &["-v", "--path", HOSTILE], &["-v", "-p", "1"]]
    {
        let run = plain(&machine, &[options, &["-o", "/dev/null", "--", &named]].concat()).succeeded();
        is_harmless(&run.stderr, &format!("{options:?}"));
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert!(lines.iter().all(|line| ["rtrace: ", "plan: ", "    "].iter().any(|start| line.starts_with(start))), "{lines:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let Some(machine) = Machine::shared() else { return };
    for words in
        ["--help", "-h", "--version", "list", "list syscalls", "check", "completions bash", "probe show sched:sched_switch", "probe --help"]
    {
        for (to, why) in [(">/dev/full", "No space left on device"), (">&-", "it is closed")] {
            let run = shell(&machine, &format!(r#""$rtrace" {words} {to}"#));
            let said = format!("rtrace: cannot write to stdout: {why}\n");
            assert!(run.status == 125 && run.stderr.ends_with(&said), "{words} {to}: {} {}", run.status, run.stderr);
        }
        let gone = shell(&machine, &format!(r#"{{ "$rtrace" {words}; echo $? >"$dir/end"; }} | true; cat "$dir/end""#));
        assert!(matches!(gone.stdout.as_str(), "0\n") && !gone.stderr.contains("stdout"), "a reader that is gone: {words}: {gone:?}");
    }
}

/// On a full file system, and with a limit on the size of files, the message names the file, whatever is written to it.
#[test]
fn a_write_without_space_names_its_file() {
    let Some(machine) = Machine::shared() else { return };
    // The lines of these calls need far more space than there is; every other output fails at its first byte.
    let writes = [
        ("-o lines", 20_000, 64),
        ("-o lines --max-size 100K --rotate 40", 20_000, 64),
        ("--output-separately -o lines", 20_000, 64),
        ("-s -o lines", 10, 0),
        ("--folded lines", 10, 0),
        ("--flamegraph lines", 10, 0),
    ];
    for (how, calls, room_kib) in writes {
        let traced = format!(r#""$rtrace" $engine {how} "$workload" calls lseek 1 {calls} >/dev/null; echo status $?"#);
        let full = format!(
            r#"mkdir -p "$dir/full"; unshare --mount sh -c 'mount -t tmpfs -o size={}k full "$dir/full"; cd "$dir/full"; head -c 8k /dev/zero >filler; {traced}'"#,
            room_kib + 8
        );
        let limited = format!(r#"mkdir -p "$dir/limited"; sh -c 'cd "$dir/limited"; ulimit -f {}; {traced}'"#, room_kib * 2);
        for (script, why) in [(full, "No space left on device"), (limited, "the limit for files (ulimit -f)")] {
            // The answer goes through a pipe, to which the limit does not apply.
            let said = shell_with_engine(&machine, &format!("{{ {script}; }} 2>&1 | cat")).stdout;
            let named = said.lines().any(|line| line.starts_with("rtrace: cannot write to lines") && line.contains(why));
            assert!(said.contains("status 125\n") && named, "{how}: {said}");
        }
    }
}

#[test]
fn a_relative_home_has_no_configuration() {
    let Some(machine) = Machine::shared() else { return };
    for folder in ["rtrace", ".config/rtrace"] {
        std::fs::create_dir_all(machine.path(folder)).expect("the test's directory is writable");
        std::fs::write(machine.path(&format!("{folder}/config.toml")), "nonsense = 1\n").expect("the test's directory is writable");
    }
    for (variables, status) in [
        ("XDG_CONFIG_HOME=.", 0),
        ("XDG_CONFIG_HOME=./", 0),
        ("XDG_CONFIG_HOME= HOME=.", 0),
        ("XDG_CONFIG_HOME=. HOME=.", 0),
        (r#"XDG_CONFIG_HOME=$dir"#, 125),
        (r#"XDG_CONFIG_HOME=. HOME=$dir"#, 125),
    ] {
        let run = shell(&machine, &format!(r#"cd "$dir"; HOME=/nonexistent; export HOME; env {variables} "$rtrace" -o /dev/null true"#));
        assert_eq!(run.status, status, "{variables}: {}", run.stderr);
    }
}

/// With more privileges than its caller, rtrace reads only the files that the caller may read, and reveals nothing of
/// the others. (`lent.rs` has the other tests of lent privileges.)
#[test]
fn a_file_that_the_caller_may_not_read_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    let mode = |path: &str, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap_or_else(|e| panic!("{path}: {e}"));
    };
    mode(&machine.path("."), 0o755);
    let program = machine.copy_of(machine::rtrace(), "rtrace");
    for (folder, folder_mode, file_mode) in [("open", 0o755, 0o644), ("secret", 0o755, 0o600), ("closed", 0o700, 0o644)] {
        std::fs::create_dir(machine.path(folder)).expect("the test's directory is writable");
        std::fs::create_dir(machine.path(&format!("{folder}/rtrace"))).expect("the test's directory is writable");
        for file in ["probes", "rtrace/config.toml"] {
            let file = machine.path(&format!("{folder}/{file}"));
            std::fs::write(&file, "precious = 1\n").expect("the test's directory is writable");
            mode(&file, file_mode);
        }
        mode(&machine.path(folder), folder_mode);
    }
    // This is a struct vfs_cap_data of version 2 with CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_SYS_ADMIN,
    // effective.
    let capabilities = [0x0200_0001u32, 0b110 | 1 << 21, 0, 0, 0].map(u32::to_le_bytes).concat();
    mode(&program, 0o755);
    if let Err(error) = rustix::fs::setxattr(Path::new(&program), "security.capability", &capabilities, XattrFlags::empty()) {
        return unsupported(&format!("no file capabilities: {error}"));
    }
    let asks = |words: &str, folder: &str| {
        let config = if words == "true" { format!("$dir/{folder}") } else { "/nonexistent".to_owned() };
        shell(
            &machine,
            &format!(r#"XDG_CONFIG_HOME="{config}" exec setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/rtrace" {words}"#),
        )
    };
    let open = asks("true", "open");
    assert!(open.status == 125 && open.stderr.contains("precious"), "{open:?}");
    for folder in ["secret", "closed"] {
        let kept = asks("true", folder);
        let path = machine.path(&format!("{folder}/rtrace/config.toml"));
        assert!(kept.status == 125 && !kept.stderr.contains("precious"), "{folder}: {kept:?}");
        assert!(kept.stderr.contains(&path) && kept.stderr.contains("Permission denied"), "{folder}: {kept:?}");
        let probes = asks(&format!("probe add -f \"$dir/{folder}/probes\""), folder);
        assert!(probes.status == 125 && !probes.stderr.contains("precious"), "{folder}: {probes:?}");
    }
    // Probes are not listed either, because only root may list them.
    let list = asks("probe list", "open");
    assert!(list.status == 125 && list.stderr.contains("ermission"), "{list:?}");
}
