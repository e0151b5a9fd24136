//! `rtrace diff`: two runs of the same command do not differ, and of what differs in others, the first lines name what
//! matters.

use crate::compiled::compiled;
use crate::machine::{self, Machine};
use crate::needs::{self, unsupported};
use crate::trace::{Trace, plain, shell_with_engine};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Records a command in a file of this name, and returns its path. `options` are those of `rtrace record`.
pub fn recorded(machine: &Machine, name: &str, options: &[&str], command: &[&str]) -> String {
    let path = machine.path(name);
    let engine = machine::engine_asked_for();
    let engine: Vec<&str> = engine.iter().flat_map(|engine| ["--engine", engine]).collect();
    let run = plain(machine, &[&["record", "-o", &path][..], &engine, options, &["--"], command].concat());
    assert!(run.stderr.ends_with(", 0 lost\n"), "{}", run.stderr);
    path
}

/// Returns the answer of `rtrace diff` with these words, which has no messages.
pub fn diff(machine: &Machine, words: &[&str]) -> Trace {
    let run = plain(machine, &[&["diff"][..], words].concat());
    assert_eq!(run.stderr, "", "{words:?}");
    run
}

/// Compares two recordings that differ, and returns the first ten lines.
fn differences(machine: &Machine, [a, b]: &[String; 2]) -> Vec<String> {
    let run = diff(machine, &[a, b]);
    assert_eq!(run.status, 1, "{}", run.stdout);
    run.stdout.lines().take(10).map(str::to_owned).collect()
}

/// Returns whether the recordings of the engine under test have the paths that calls name.
pub fn has_paths() -> bool {
    machine::engine() == "bpf"
}

fn script(machine: &Machine, name: &str, text: &str) -> String {
    let path = machine.path(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("the directory is ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    path
}

fn first_with<'l>(lines: &'l [String], part: &str) -> &'l str {
    lines.iter().find(|line| line.contains(part)).unwrap_or_else(|| panic!("no line has {part:?}: {lines:#?}"))
}

/// Processes, threads and temporary names take other numbers in each run, and threads take turns otherwise.
#[test]
fn two_runs_of_the_same_command_do_not_differ() {
    let Some(machine) = Machine::alone() else { return };
    let source = machine.path("main.c");
    fs::write(&source, "int main(void) { return 0; }\n").expect("the directory is ours");
    let (program, workload, dir) = (machine.path("program"), machine::workload(), machine.path("made"));
    let temporary = format!("d=$(mktemp -d); f=$(mktemp); echo a > $d/x; sed -i s/a/b/ $d/x; cat $d/x > {dir}.$$; rm -r $d $f {dir}.$$");
    // The name has the number of a process that ends before the file is used, or four random characters.
    let short = format!(
        "n=$(sh -c 'echo $$'); echo a > {dir}.$n; cat {dir}.$n; rm {dir}.$n; d=$(mktemp -d {dir}.XXXX); echo a > $d/x; cat $d/x; rm -r $d"
    );
    // The processes of a pool end by themselves, and not by a signal that may come too late.
    let pool = "import multiprocessing as m\np = m.Pool(3); print(p.map(abs, range(50))); p.close(); p.join()";
    let commands: [&[&str]; 9] = [
        &["ls", "-lR", "/etc"],
        &["sh", "-c", "cat /etc/passwd | sort | uniq -c | head -3; x=$(date); echo $x"],
        &["sh", "-c", &temporary],
        &["sh", "-c", &short],
        &["cc", "-o", &program, &source],
        &["python3", "-c", "import json, email"],
        &["python3", "-c", pool],
        &[&workload, "calls", "lseek", "4", "5000"],
        &[&workload, "threads", "50"],
    ];
    for (at, command) in commands.iter().enumerate() {
        if !needs::has_program(command[0]) {
            unsupported(&format!("no {}", command[0]));
            continue;
        }
        // The first run may make files that the second one finds.
        let [_, a, b] = [0, 1, 2].map(|run| recorded(&machine, &format!("{at}.{run}"), &[], command));
        let run = diff(&machine, &[&a, &b]);
        assert_eq!((run.stdout.as_str(), run.status), ("", 0), "{command:?}");
    }
}

/// Numbers of versions look like numbers that are different in each run.
#[test]
fn names_that_differ_in_a_version_are_differences() {
    let Some(machine) = Machine::shared() else { return };
    if !has_paths() {
        return unsupported("path names");
    }
    for name in ["libx.so", "python3", "data-2024"] {
        let [one, other] = ["1", "2"].map(|end| machine.file(&format!("{name}.{end}"), 10));
        let a = recorded(&machine, "a", &[], &["cat", &one]);
        let b = recorded(&machine, "b", &[], &["cat", &other]);
        let lines = differences(&machine, &[a, b]);
        first_with(&lines, &format!("only a uses {one}: "));
        first_with(&lines, &format!("only b uses {other}: "));
    }
}

#[test]
fn a_missing_file_is_named_first_with_the_program_and_the_error() {
    let Some(machine) = Machine::shared() else { return };
    let settings = machine.path("settings");
    fs::write(&settings, "x\n").expect("the directory is ours");
    let program = format!("true; cat {settings} | wc -l; test -s {settings}");
    let command = ["sh", "-c", &program];
    let a = recorded(&machine, "there", &[], &command);
    fs::remove_file(&settings).expect("it was just written");
    let b = recorded(&machine, "here", &[], &command);
    let lines = differences(&machine, &[a.clone(), b.clone()]);
    if has_paths() {
        let expected = format!("cat: openat {settings} fails with ENOENT (No such file or directory) in here, and succeeds in there");
        assert!(lines[..2].contains(&expected), "{expected}\n{lines:#?}");
        assert!(first_with(&lines, "standard error").starts_with("cat: writes to standard error in here only: \"cat: "), "{lines:#?}");
    }
    first_with(&lines, "cat, sh: exits with status 1 in here, and exits with status 0 in there");
    if has_paths() {
        // In the other direction, the same call works.
        let lines = differences(&machine, &[b, a]);
        first_with(&lines, " fails with ENOENT (No such file or directory) in here, and ");
    }
}

#[test]
fn json_has_an_object_for_each_difference() {
    let Some(machine) = Machine::shared() else { return };
    let [a, b] = [("a", "3"), ("b", "4")].map(|(name, status)| recorded(&machine, name, &[], &["sh", "-c", "exit $0", status]));
    let run = diff(&machine, &["--json", &a, &b]);
    assert_eq!(run.status, 1);
    let objects: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect();
    crate::json::check(&objects);
    assert_eq!(objects[0]["type"], "diff", "{}", run.stdout);
    assert_eq!((&objects[1]["type"], &objects[1]["kind"]), (&"difference".into(), &"ends".into()), "{}", run.stdout);
    assert_eq!(objects[1]["a"]["ends"][0]["status"], 3);
    assert_eq!(objects[1]["b"]["ends"][0]["status"], 4);
    let text = diff(&machine, &[&a, &b]).stdout;
    assert_eq!(text.lines().count() + 1, objects.len(), "{text}");
}

#[test]
fn another_locale_is_recognized_by_its_files() {
    let Some(machine) = Machine::shared() else { return };
    if !has_paths() {
        return unsupported("path names");
    }
    let locales = std::process::Command::new("locale").arg("-a").output();
    if !locales.is_ok_and(|run| String::from_utf8_lossy(&run.stdout).lines().any(|name| name == "C.utf8")) {
        return unsupported("no locale C.utf8");
    }
    let a = recorded(&machine, "a", &["-E", "LC_ALL=POSIX"], &["ls", "/"]);
    let b = recorded(&machine, "b", &["-E", "LC_ALL=C.UTF-8"], &["ls", "/"]);
    let lines = differences(&machine, &[a, b]);
    assert!(lines.iter().all(|line| line.starts_with("ls: ")), "{lines:#?}");
    first_with(&lines, "ls: only b uses");
    first_with(&lines, "/locale/");
}

#[test]
fn a_server_that_answers_later_makes_the_call_that_waits_for_it_slower() {
    let Some(machine) = Machine::shared() else { return };
    if !needs::has_program("bash") {
        return unsupported("no bash");
    }
    let server = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let port = server.local_addr().expect("it is bound").port();
    let answers = std::thread::spawn(move || {
        for pause in [Duration::ZERO, Duration::from_secs(1)] {
            let (mut client, _) = server.accept().expect("the client connects");
            let mut request = String::new();
            BufReader::new(&client).read_line(&mut request).expect("the client writes");
            std::thread::sleep(pause);
            client.write_all(b"answer\n").expect("the client waits");
        }
    });
    let client = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo request >&3; read -r -u 3 answer; echo $answer");
    let [a, b] = ["a", "b"].map(|name| recorded(&machine, name, &[], &["bash", "-c", &client]));
    answers.join().expect("both clients were served");
    let lines = differences(&machine, &[a, b]);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("bash: read") && lines[0].contains(" takes "), "{lines:#?}");
    assert!(!has_paths() || lines[0].contains(" TCP 127.0.0.1"), "{lines:#?}");
}

#[test]
fn another_version_of_a_program_uses_other_files_and_programs() {
    let Some(machine) = Machine::shared() else { return };
    let old = script(&machine, "old", "read -r x < /etc/passwd; cat /etc/group > /dev/null; ls -d / > /dev/null");
    let new = script(&machine, "new", "read -r x < /etc/hostname; cat /etc/group > /dev/null; uname > /dev/null");
    let both = [("a", &old), ("b", &new)].map(|(name, program)| recorded(&machine, name, &[], &[program]));
    let lines = differences(&machine, &both);
    let ran = |name: &str, program: &str| {
        lines.iter().any(|line| line.contains(&format!("only {name} runs /")) && line.contains(&format!("/{program}")))
    };
    assert!(ran("a", "ls -d /") || ran("a", "ls"), "{lines:#?}");
    assert!(ran("b", "uname"), "{lines:#?}");
    if has_paths() {
        first_with(&lines, "only a uses /etc/passwd");
        first_with(&lines, "only b uses /etc/hostname");
    }
    assert!(!lines.iter().any(|line| line.contains("/etc/group")), "{lines:#?}");
}

/// `env` runs the program in its own process, and a shell in a child.
#[test]
fn a_program_that_runs_the_other_recordings_program_is_one_difference() {
    let Some(machine) = Machine::shared() else { return };
    let list = script(&machine, "list", "read -r x < /etc/passwd; ls -d /");
    let plain = recorded(&machine, "plain", &[], &[&list]);
    for wrapper in [&["env", "NAME=value"][..], &["sh", "-c", "\"$0\"; exit $?"]] {
        let wrapped = recorded(&machine, "wrapped", &[], &[wrapper, &[&list]].concat());
        for [a, b] in [[&plain, &wrapped], [&wrapped, &plain]] {
            let run = diff(&machine, &[a, b]);
            let lines: Vec<&str> = run.stdout.lines().collect();
            let [line] = lines[..] else { panic!("{lines:#?}") };
            assert!(line.contains("only wrapped runs /") && line.contains(&format!("/{}", wrapper[0])), "{line}");
        }
    }
}

/// The caller says where the standard streams lead.
#[test]
fn files_behind_the_standard_streams_may_differ() {
    let Some(machine) = Machine::shared() else { return };
    let both = ["one", "another"].map(|text| {
        let (input, output) = (machine.path(text), machine.path(&format!("{text}.out")));
        fs::write(&input, text).expect("the directory is ours");
        fs::write(&output, text).expect("the directory is ours");
        let words = format!("$rtrace record $engine -q -o {input}.data cat <{input} >>{output}");
        shell_with_engine(&machine, &words);
        format!("{input}.data")
    });
    let run = diff(&machine, &[&both[0], &both[1]]);
    assert_eq!((run.stdout, run.status), (String::new(), 0));
}

#[test]
fn what_is_no_recording_is_refused_with_a_sentence() {
    let Some(machine) = Machine::shared() else { return };
    let good = recorded(&machine, "good", &[], &["true"]);
    let missing = machine.path("missing");
    for words in [["diff", &missing, &good], ["diff", &good, "/etc/passwd"]] {
        let run = plain(&machine, &words);
        assert_eq!((run.status, run.stdout.as_str()), (125, ""), "{words:?}");
        assert!(run.stderr.starts_with("rtrace: ") && run.stderr.lines().count() == 1, "{}", run.stderr);
    }
}

/// Each read of a file takes longer, and no single file by so much that it would be noticed.
#[test]
fn a_slower_disk_is_one_line_that_names_the_call_the_files_and_the_factor() {
    let Some(machine) = Machine::alone() else { return };
    if !needs::has_program("bindfs") || !std::path::Path::new("/dev/fuse").exists() {
        return unsupported("no FUSE, or no bindfs");
    }
    // The second file system passes on 64 KiB in a second.
    let script = "cd $dir; mkdir -p real mount; for file in $(seq 10 49); do head -c 4096 /dev/zero >real/$file; done; head -c 65536 /dev/zero >real/large
        recorded() {
          bindfs -f $2 real mount & server=$!
          until [ -e mount/large ]; do sleep .05; done
          $rtrace record $engine -q -o many.$1 cat $dir/mount/1? $dir/mount/2? $dir/mount/3? $dir/mount/4? >/dev/null
          $rtrace record $engine -q -o one.$1 dd if=$dir/mount/large of=/dev/null bs=4096 status=none
          umount mount; wait $server
        }
        recorded fast; recorded slow --read-rate=65536";
    fs::write(machine.path("script"), format!("dir={}\n{script}\n", machine.dir().display())).expect("the directory is ours");
    let made = shell_with_engine(&machine, "export rtrace; unshare -m sh $dir/script 2>&1");
    let lines = differences(&machine, &["many.fast", "many.slow"].map(|name| machine.path(name)));
    let slower = first_with(&lines, " times as long in many.slow: ");
    assert!(slower.starts_with("cat: read"), "{lines:#?}\n{}", made.text);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    // dd reads from its standard input, of which it is not known without paths whether it is a file.
    if has_paths() {
        let lines = differences(&machine, &["one.fast", "one.slow"].map(|name| machine.path(name)));
        let slower_dd = first_with(&lines, " times as long in one.slow: ");
        assert!(slower.contains(&format!(" files in {}/ (", machine.path("mount"))), "{slower}");
        assert!(slower_dd.starts_with(&format!("dd: read {} takes ", machine.path("mount/large"))), "{lines:#?}");
    }
}

#[test]
fn a_missing_library_is_named_and_the_search_for_it_is_one_line() {
    let Some(machine) = Machine::shared() else { return };
    let Some(library) = compiled(&machine, "cc", &["-shared", "-fPIC"], "stacks/library.c", "liblibrary.so") else { return };
    let folder = format!("-Wl,-rpath,{}", machine.dir().display());
    let place = format!("-L{}", machine.dir().display());
    let options = [&place, "-Wl,--no-as-needed", "-llibrary", &folder];
    let Some(program) = compiled(&machine, "cc", &options, "stacks/chain.c", "program") else { return };
    let a = recorded(&machine, "a", &[], &[&program, "plain", "1"]);
    fs::rename(&library, machine.path("elsewhere")).expect("it was just compiled");
    let b = recorded(&machine, "b", &[], &[&program, "plain", "1"]);
    let lines = differences(&machine, &[a, b]);
    first_with(&lines, "exits with status 127 in b");
    if has_paths() {
        assert!(lines[0].contains(&format!(" {library} fails with ENOENT")), "{lines:#?}");
        first_with(&lines, "writes to standard error in b only: \"");
        let searches: Vec<&String> = lines.iter().filter(|line| line.contains(" tries liblibrary.so in ")).collect();
        assert!(searches.len() == 1 && searches[0].contains(" directories ("), "{lines:#?}");
    }
}

#[test]
fn another_size_mode_or_owner_of_a_file_is_a_difference() {
    let Some(machine) = Machine::shared() else { return };
    if !has_paths() {
        return unsupported("path names");
    }
    let file = machine.file("settings", 10);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("the file is ours");
    let a = recorded(&machine, "a", &[], &["cat", &file]);
    fs::write(&file, "another text\n").expect("the file is ours");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    let b = recorded(&machine, "b", &[], &["cat", &file]);
    let lines = differences(&machine, &[a.clone(), b.clone()]);
    let expected =
        [format!("cat: {file}: the mode is 0600 in b, and 0644 in a"), format!("cat: {file} has 13 bytes in b, and 10 bytes in a")];
    assert_eq!(lines, expected);
    let run = diff(&machine, &["--json", &a, &b]);
    let objects: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect();
    crate::json::check(&objects);
    assert_eq!((&objects[2]["attribute"], &objects[2]["b"]["value"]), (&"size".into(), &13.into()), "{}", run.stdout);
}

/// Without path names, only the number of failures says that a file is missing, if other calls fail in the same way.
#[test]
fn one_more_failure_of_the_same_kind_is_found_without_path_names() {
    let Some(machine) = Machine::shared() else { return };
    let settings = machine.file("settings", 10);
    let command = format!("for file in /nowhere/1 /nowhere/2 {settings}; do [ -e $file ]; done; true");
    let a = recorded(&machine, "a", &[], &["sh", "-c", &command]);
    fs::remove_file(&settings).expect("it was just written");
    let b = recorded(&machine, "b", &[], &["sh", "-c", &command]);
    let lines = differences(&machine, &[a, b]);
    assert!(lines[0].contains("ENOENT (No such file or directory) in b"), "{lines:#?}");
}

/// `-e` and `--filter` choose what is compared.
#[test]
fn a_selection_limits_the_comparison() {
    let Some(machine) = Machine::shared() else { return };
    let program = machine.file("program", 10);
    let a = recorded(&machine, "a", &[], &["cat", &program]);
    fs::remove_file(&program).expect("it was just written");
    let b = recorded(&machine, "b", &[], &["cat", &program]);
    let calls =
        |words: &[&str]| diff(&machine, &[words, &[&a, &b]].concat()).stdout.lines().filter(|line| line.contains(" openat")).count();
    assert!(calls(&[]) > 0);
    assert!(calls(&["-e", "openat"]) > 0);
    assert_eq!(calls(&["-e", "!openat"]), 0);
    assert!(!diff(&machine, &["--filter", "ret >= 0", &a, &b]).stdout.contains(" fails with "));
    let run = plain(&machine, &["diff", "-e", "no_such_call", &a, &b]);
    assert_eq!((run.status, run.stdout.as_str()), (125, ""));
    assert!(run.stderr.contains("no_such_call") && run.stderr.lines().count() == 1, "{}", run.stderr);
}
