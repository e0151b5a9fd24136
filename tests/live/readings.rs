//! Details of lines and notices that a reader would stumble over.

use crate::machine::{self, Machine};
use crate::probe_command::Events;
use crate::trace::{plain, shell, trace};

#[test]
fn a_persistent_probe_is_named_after_its_function() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[crate::needs::Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let program = machine::workload();
    let name = events.stdout_of(&["add", &format!("p {program}:main")]);
    let first = name.trim().to_owned();
    let again = events.stdout_of(&["add", &format!("p {program}:main")]);
    let second = again.trim().to_owned();
    events.stdout_of(&["del", &first, &second]);
    assert!(first == "uprobes:main" || first.starts_with("uprobes:main_"), "{first}");
    assert!(second.starts_with("uprobes:main_") && first != second, "{first}, {second}");
}

#[test]
fn syscall_names_of_the_c_library_are_accepted_with_a_notice() {
    let Some(machine) = Machine::shared() else { return };
    let run = plain(&machine, &["-e", "umount", "true"]);
    let notes: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("rtrace: ")).collect();
    let told = "rtrace: umount is traced as umount2: the C library's umount() uses the syscall umount2";
    assert_eq!((notes[0], notes.len()), (told, 2), "{}", run.stderr);
    assert!(notes[1].starts_with("rtrace: nothing matched umount") && !notes[1].contains("similar: umount"), "{}", run.stderr);
}

#[test]
fn a_filter_that_held_back_all_calls_is_named() {
    let Some(machine) = Machine::shared() else { return };
    for (options, what) in [
        (
            &["-e", "lseek", "--filter", "offset > 1000"][..],
            "nothing matched lseek; 10 calls were traced but not shown, held back by --filter 'offset > 1000'",
        ),
        (&["-e", "getppid", "--failure"], "held back by --failure"),
        (&["-e", "lseek,getpgid", "--switch-on", "getpgid"], "held back by --switch-on getpgid"),
        (&["-e", "lseek", "--path", "/nonexistent"], "held back by --path"),
        (&["-e", "lseek", "--duration", "1h"], "held back by --duration"),
    ] {
        let run =
            crate::trace::workload(&machine, options, if options.contains(&"getppid") { "calls getppid 1 10" } else { "calls lseek 1 10" })
                .succeeded();
        let note = run.stderr.lines().find(|line| line.contains("nothing matched")).unwrap_or_default();
        assert!(note.contains(what), "{options:?}: {}", run.stderr);
        assert!(!note.contains("near:"), "{options:?}: {note}");
    }
    let everything = crate::trace::workload(&machine, &["--filter", "offset == 1000000"], "calls lseek 1 10").succeeded();
    assert!(everything.stderr.contains("held back by --filter 'offset == 1000000'"), "{}", everything.stderr);
}

#[test]
fn an_unknown_user_is_named() {
    let Some(machine) = Machine::shared() else { return };
    let run = plain(&machine, &["--run-as", "nosuch", "ls"]);
    assert_eq!((run.status, run.stderr.as_str()), (126, "rtrace: --run-as nosuch: there is no user with this name or number\n"));
}

/// The first call that ends began after the sleep.
#[test]
fn no_stamp_is_negative() {
    let Some(machine) = Machine::shared() else { return };
    let run = trace(&machine, &["-e", "clock_nanosleep,mkdir,mkdirat"], &["sh", "-c", "sleep 0.3 & sleep 0.1; mkdir /proc/no; wait"]);
    let stamps: Vec<f64> = run.lines().iter().filter_map(|line| line.time.as_deref()?.parse().ok()).collect();
    assert!(stamps.len() >= 3 && stamps.iter().all(|stamp| *stamp >= 0.0), "{}", run.text);
    let whole = trace(&machine, &[], &["true"]).succeeded();
    assert!(whole.text.starts_with("     0.000 ("), "{}", whole.text);
}

#[test]
fn local_time_has_a_date_on_request() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"export TZ=UTC; $rtrace --time-format local -q -e execve true; $rtrace --time-format local-date -q -e execve true
        TZ=XYZ-5:45 $rtrace --time-format local-date -q -e execve true"#;
    let run = shell(&machine, script);
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("execve(")).collect();
    let is = |pattern: &str, line: &str| regex::Regex::new(pattern).expect("the pattern is right").is_match(line);
    assert!(is(r"^\d\d:\d\d:\d\d\.\d{9} \(", lines[0]), "{}", run.stderr);
    assert!(is(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}\+00:00 \(", lines[1]), "{}", run.stderr);
    assert!(is(r"\+05:45 \(", lines[2]), "the offset is that of TZ: {}", run.stderr);
}

/// For engines that read memory: the remaining time of a sleep that was not interrupted, and the events that a waiting
/// poll has not found yet, are not shown.
#[cfg(feature = "bpf")]
#[test]
fn outputs_that_the_kernel_did_not_write_are_not_shown() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let options = ["--engine", "bpf", "-e", "clock_nanosleep"];
    let slept = trace(&machine, &options, &["sleep", "0.01"]).succeeded();
    let calls = slept.lines();
    let calls = crate::line::calls(&calls);
    assert!(calls.iter().all(|(_, call)| !call.args.contains("rmtp: {")) && calls[0].1.args.contains("rqtp: {"), "{}", slept.text);
    // If a signal interrupts the sleep, the kernel writes the remaining time.
    // The process is stopped after it has begun to sleep, and continued after it has stopped: an earlier SIGCONT would
    // cancel the SIGSTOP.
    let script = "is() { until grep -q \") $1\" /proc/$!/stat; do sleep .01; done; }; sleep 1000 & is S; sleep .1; kill -STOP $!; is T; kill -CONT $!; kill $!; wait; true";
    let stopped = trace(&machine, &options, &["bash", "-c", script]).succeeded();
    assert!(stopped.text.contains("rmtp: {.tv_sec: 9"), "{}", stopped.text);
    let script = "import select,os,threading\nr,w=os.pipe()\np=select.poll()\np.register(r,1)\nthreading.Timer(0.6,lambda:os.write(w,b'x')).start()\np.poll();p.poll()";
    let polled = trace(&machine, &["--engine", "bpf", "-e", "poll"], &["python3", "-c", script]);
    let waiting: Vec<&str> = polled.text.lines().filter(|line| line.contains(" poll(") && line.contains("...")).collect();
    if polled.status == 0 {
        assert!(waiting.iter().all(|line| line.contains(".events: IN") && !line.contains("revents")), "{}", polled.text);
        assert!(polled.text.contains(".revents: IN"), "{}", polled.text);
    }
}
