//! Tests that a recording is shown as the live trace was, byte for byte, and what becomes of recordings that end early.

use crate::cgroup::Cgroup;
use crate::compiled::compiled;
use crate::json_events::{json_events, within};
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::{Trace, shell, shell_with_engine};

/// The options with which traces are recorded and shown.
const OPTIONS: [&str; 14] = [
    "",
    "--style strace",
    "--json",
    "-s",
    "-S --errno-summary",
    "-s --by path --json",
    "-s --summary-mode thread",
    "-e openat,%process",
    "-e '!futex' --failure",
    "--full --json",
    "-T --comm --show-cpu",
    "--duration 0.01",
    "-e 'signal:*,write' --filter 'pid > 0' --json",
    "--time-format local --no-syscalls -F all",
];

/// Traces a command, which records, and shows the recording. Returns how the second differs from the first.
fn differences(machine: &Machine, options: &str, command: &str) -> String {
    let script = format!(
        "cd $dir && rm -f live shown data; $rtrace $engine {options} --no-pending -q --record data -o live {command} >/dev/null; test -s live || echo 'nothing was traced'; \
         $rtrace {options} --no-pending -q -i data -o shown; diff live shown"
    );
    let dir = machine.dir().display();
    shell_with_engine_at(machine, &format!("dir={dir}; {script}"))
}

/// Returns the standard output of a shell line, whatever its exit status is.
fn shell_with_engine_at(machine: &Machine, script: &str) -> String {
    shell_with_engine(machine, &format!("{{ {script}; }} 2>&1; true")).text
}

#[test]
fn a_recording_is_shown_as_the_live_trace_was() {
    let Some(machine) = Machine::shared() else { return };
    let commands = ["ls -lR /etc/apt", "sh -c 'ls /etc | sort | head -n 3; kill -URG $$; (sleep 0.01 & wait)'", "$workload threads 4"];
    for options in OPTIONS {
        for command in commands {
            assert_eq!(differences(&machine, options, command), "", "{options}: {command}");
        }
    }
}

/// The styles in which the scenes below are traced, in turn.
const STYLES: [&str; 4] = ["--full --json", "", "--style strace", "-s"];

/// Replays a recording in the styles in which it was not traced, and returns what fails or is empty.
fn other_styles(machine: &Machine, traced: &str) -> String {
    let styles = STYLES.iter().filter(|style| **style != traced);
    let replay =
        |style: &str| format!("$rtrace {style} -q -i data -o other || echo 'status' $?; test -s other || echo '{style}: nothing is shown'");
    shell_with_engine_at(
        machine,
        &format!("cd {}; {}", machine.dir().display(), styles.map(|style| replay(style)).collect::<Vec<_>>().join("; ")),
    )
}

/// Each scene of the test program that ends by itself, in one of the styles.
#[test]
fn scenes_are_shown_as_the_live_trace_was() {
    let Some(machine) = Machine::shared() else { return };
    // One of the scenes waits until somebody kills it.
    let is_scene = |line: &&str| !line.starts_with('#') && !line.is_empty() && *line != "signals wait";
    let scenes = include_str!("../depth/scenes.txt").lines().filter(is_scene);
    for (at, scene) in scenes.enumerate() {
        let (style, words) = (STYLES[at % STYLES.len()], scene.replace("DIR", "files"));
        let command = format!("sh -c 'rm -rf files; mkdir files; exec $workload {words}'");
        assert_eq!(differences(&machine, style, &command), "", "{style}: {scene}");
        assert_eq!(other_styles(&machine, style), "", "{scene}");
    }
}

/// Threads, processes, other ABIs, requests of io_uring, events and probes, in each style.
#[test]
fn tasks_and_events_of_all_kinds_are_shown_as_the_live_trace_was() {
    let Some(machine) = Machine::shared() else { return };
    let rows: [(&str, &str); 16] = [
        ("", "$workload threads 20"),
        ("", "$workload burst 4 20"),
        ("", "$workload forks 10"),
        ("", "$workload exec leader"),
        ("", "$workload exec thread"),
        ("", "$workload outlive 50 3"),
        ("", "$workload waits 2"),
        ("", "$workload unknown"),
        ("", "$workload seccomp 5"),
        ("", "$workload numbers 400 470 1"),
        ("", "$workload tcp 100 70000"),
        ("-e '*,io_uring:*'", "$workload uring chains file"),
        ("-e '*,io_uring:*'", "$workload uring multishot file"),
        ("-e sched:sched_process_exec,sched:sched_process_exit,openat", "sh -c 'ls / | cat'"),
        ("-F all", "ls /"),
        ("-s --sched", "$workload threads 3"),
    ];
    for (at, (options, command)) in rows.into_iter().enumerate() {
        let style = STYLES[at % STYLES.len()];
        // Lines of strace show neither events nor page faults.
        let style = if style.contains("strace") && !options.is_empty() || options.contains("-s ") { "" } else { style };
        assert_eq!(differences(&machine, &format!("{style} {options}"), command), "", "{style} {options}: {command}");
    }
    if cfg!(target_arch = "x86_64") {
        assert_eq!(differences(&machine, "--json", "$workload int80 5"), "", "32-bit calls");
    }
}

/// Running tasks, a cgroup and the whole machine.
#[test]
fn traces_of_other_targets_are_shown_as_they_were_live() {
    let Some(machine) = Machine::shared() else { return };
    let attach = |options: &str, target: &str| {
        format!(
            "cd $dir && rm -f live shown data; {target} $rtrace $engine {options} --no-pending -q --record data -o live $whom $waits >/dev/null; \
             test -s live || echo 'nothing was traced'; kill $caller 2>/dev/null; $rtrace {options} --no-pending -q -i data -o shown; diff live shown"
        )
    };
    let caller = "sh -c 'while sleep 0.05; do read -r line </proc/loadavg; done' & caller=$! whom=\"-p $!\" waits='sleep 0.5';";
    for style in STYLES {
        for target in [caller, "whom=-a waits='sleep 0.2';", "whom='-u root' waits='sleep 0.2';"] {
            let script = format!("dir={}; {}", machine.dir().display(), attach(style, target));
            assert_eq!(shell_with_engine_at(&machine, &script), "", "{style}: {target}");
        }
        let cgroup = Cgroup::new(&machine, "recorded");
        let inside = "sh -c 'echo $$ >$0/cgroup.procs; while sleep 0.05; do read -r line </proc/loadavg; done'";
        let target = format!("{inside} {} & caller=$! whom='-G {}' waits='sleep 0.5';", cgroup.dir.display(), cgroup.path);
        let script = format!("dir={}; {}", machine.dir().display(), attach(style, &target));
        assert_eq!(shell_with_engine_at(&machine, &script), "", "{style}: {target}");
    }
}

/// Events of a tracefs instance: an event probe, and path names that are read when calls return. The recorder that
/// shows nothing records the same.
#[test]
fn events_of_a_tracefs_instance_are_shown_as_they_were_live() {
    let Some(machine) = Machine::shared() else { return };
    let rows = [
        ("$engine --probe 'e:path syscalls.sys_enter_openat' -e close", &[Need::Eprobes][..], "path("),
        ("--engine tracepoint --strings-by eprobe -e openat", &[Need::Eprobes, Need::SyntheticEvents, Need::Histograms], "\"/etc\""),
    ];
    for (options, needs, line) in rows.iter().filter(|(_, needs, _)| !machine.lacks(needs)) {
        for style in ["", "--json"] {
            let script = format!(
                "cd $dir && rm -f live shown data alone; $rtrace {options} {style} --no-pending -q --record data -o live ls /etc >/dev/null; \
                 $rtrace {style} --no-pending -q -i data -o shown; diff live shown; $rtrace record {options} -q -o alone ls /etc >/dev/null; \
                 for data in data alone; do $rtrace -q -i $data -o shown; grep -c -F '{line}' shown; done"
            );
            let said = shell_with_engine_at(&machine, &format!("dir={}; {script}", machine.dir().display()));
            let counts: Vec<&str> = said.lines().collect();
            assert!(counts.len() == 2 && counts[0] == counts[1] && counts[0] != "0", "{options} {style} {needs:?}: {said}");
        }
    }
}

/// Names of code that a program generated, and source lines, are in the recording, also of a recorder that shows
/// nothing. The file with the names of the code is removed by the program.
#[test]
fn generated_code_and_source_lines_are_named_as_they_were_live() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O1", "-g", "-fno-omit-frame-pointer"], "stacks/chain.c", "chain") else { return };
    // The generated code's names are removed when they are in these files.
    let rows = [
        ("made 7", "--call-graph dwarf", "made_function", ["live data", "alone"]),
        ("dumped 7", "--call-graph dwarf", "made_function", ["live data", "alone"]),
        ("plain 7", "--call-graph dwarf --lines --inline", "chain.c:", ["", ""]),
    ];
    for (scene, options, name, [both, one]) in rows {
        let script = format!(
            "cd $dir && rm -f live shown data copy && cp {program} copy; $rtrace $engine -e lseek {options} --no-pending -q --record data -o live ./copy {scene} {both} >/dev/null; \
             grep -q {name} live || echo 'there are no names in the stacks'; rm copy; $rtrace {options} --no-pending -q -i data -o shown; diff live shown"
        );
        assert_eq!(shell_with_engine_at(&machine, &format!("dir={}; {script}", machine.dir().display())), "", "{options}");
        let alone = format!(
            "cd $dir && rm -f alone && cp {program} copy; $rtrace record $engine -e lseek -q --lines --call-graph dwarf -o alone ./copy {scene} {one} >/dev/null; \
             rm copy; $rtrace {options} -q -i alone -o shown; grep -c {name} shown"
        );
        let found = shell_with_engine_at(&machine, &format!("dir={}; {alone}", machine.dir().display()));
        assert!(found.trim().parse::<u32>().is_ok_and(|lines| lines > 0), "{options}: {found}");
    }
}

/// The program is replaced after it was recorded, and its stacks are still those of the recorded program.
#[test]
fn stacks_of_a_recording_are_those_of_the_recorded_program() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O1", "-g", "-fno-omit-frame-pointer"], "stacks/chain.c", "chain") else { return };
    for options in [
        "--call-graph dwarf",
        "--call-graph dwarf --kernel-stack --json",
        "--call-graph fp -e lseek --min-stack 2",
        "--style strace --call-graph dwarf",
    ] {
        let script = format!(
            "cd $dir && rm -f live shown data copy && cp {program} copy; $rtrace $engine {options} --no-pending -q --record data -o live ./copy plain 7 >/dev/null; \
             grep -q main live || echo 'there are no names in the stacks'; cp /bin/true copy; $rtrace {options} --no-pending -q -i data -o shown; diff live shown"
        );
        assert_eq!(shell_with_engine_at(&machine, &format!("dir={}; {script}", machine.dir().display())), "", "{options}");
    }
}

/// The program makes a few calls and sleeps; what it did is in the file before it ends.
#[test]
fn a_killed_recorder_of_a_slow_program_has_written_what_happened() {
    let Some(machine) = Machine::shared() else { return };
    for options in ["", "-z"] {
        let script = format!(
            "cd $dir; rm -f slow.data slow.pid; $rtrace record $engine {options} -q -o slow.data sh -c 'echo $$ >slow.pid; exec sleep 300' & \
             until [ -s slow.pid ] && $rtrace -i slow.data -e execve -o - 2>/dev/null | grep -q 'sleep\"'; do sleep 0.1; done; \
             kill -KILL $!; wait; kill $(cat slow.pid); $rtrace -i slow.data -o shown; cat shown"
        );
        let said = shell_with_engine_at(&machine, &script);
        assert!(said.contains("/sleep\"") && said.contains("the recording is incomplete"), "{options}: {said}");
    }
}

/// Returns what a trace printed on standard error, with its own output.
fn all(trace: &Trace) -> String {
    format!("{}{}", trace.stdout, trace.stderr)
}

#[test]
fn a_replay_opens_only_the_recording_and_its_own_libraries() {
    let Some(machine) = Machine::shared() else { return };
    let script = "dir=@; cd $dir; $rtrace record $engine -q -o only.data --call-graph dwarf ls / >/dev/null; \
        $rtrace -q -e open,openat,openat2 --style strace -o opened $rtrace --no-config -i only.data -o - >/dev/null; \
        grep -v -e ' = -1 ' -e +++ -e '/lib/' -e ld.so -e /proc/self/ -e /proc/filesystems -e /proc/mounts -e /sys/ -e '/dev/' opened"
        .replace('@', &machine.dir().display().to_string());
    let opened = shell_with_engine_at(&machine, &script);
    let lines: Vec<&str> = opened.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains("\"only.data\", O_RDONLY|O_NONBLOCK|O_CLOEXEC) = 3"), "{opened}");
}

#[test]
fn a_killed_recorder_leaves_a_recording_that_is_shown_as_far_as_it_goes() {
    let Some(machine) = Machine::shared() else { return };
    let script = "cd @; $rtrace record $engine -q -o killed.data dd if=/dev/zero of=/dev/null bs=1 count=5000000 >/dev/null 2>&1 & \
        until [ \"$(stat -c %s killed.data 2>/dev/null || echo 0)\" -gt 2000000 ]; do sleep 0.05; done; kill -KILL $!; wait; \
        $rtrace -i killed.data -o shown; echo status $?; wc -l <shown"
        .replace('@', &machine.dir().display().to_string());
    let said = shell_with_engine_at(&machine, &script);
    assert!(said.contains("the recording is incomplete: it was not completed: the recorder was killed, or could not write"), "{said}");
    let lines: u64 = said.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or_default();
    assert!(said.contains("status 0") && lines > 1000, "{said}");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let Some(machine) = Machine::shared() else { return };
    let script = "cd @; mkdir -p small; unshare -m sh -c 'mount -t tmpfs -o size=3m none small; \
        $rtrace record $engine -o small/data dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none; echo recorded $?; $rtrace -i small/data -o shown; echo shown $?'; wc -l <shown"
        .replace('@', &machine.dir().display().to_string());
    let said = shell_with_engine_at(&machine, &script);
    assert!(
        said.contains("the recording could not be written to its end: No space left on device") && said.contains("recorded 125"),
        "{said}"
    );
    assert!(said.contains("the recorder was killed, or could not write") && said.contains("shown 0"), "{said}");
    let lines: u64 = said.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or_default();
    assert!(lines > 1000, "{said}");
}

/// A file system that is frozen does not complete any write until it is thawed.
#[test]
fn a_disk_that_does_not_answer_delays_nobody() {
    let Some(machine) = Machine::shared() else { return };
    let script = "cd @; truncate -s 64M image; mkdir -p frozen; mkfs.ext4 -q image; unshare -m sh -c 'mount -o loop image frozen || exit; \
        $rtrace record $engine -o frozen/data dash -c \"until [ -e go ]; do sleep 0.05; done; dd if=/dev/zero of=/dev/null bs=1 count=20000 status=none; \
        echo >ended\" & recorder=$!; until [ -s frozen/data ]; do sleep 0.05; done; fsfreeze -f frozen; echo >go; \
        for i in $(seq 600); do [ -e ended ] && break; sleep 0.1; done; ls ended; fsfreeze -u frozen; wait $recorder; \
        $rtrace -v -q -i frozen/data -o shown; cp frozen/data data.size; umount frozen'; rm image"
        .replace('@', &machine.dir().display().to_string());
    let said = shell_with_engine_at(&machine, &script);
    if said.contains("mount: ") {
        return eprintln!("SKIPPED: this machine cannot mount a file as a file system: {said}");
    }
    assert!(said.starts_with("ended\n"), "the command waited for the disk: {said}");
    assert!(said.contains("rtrace: recorded ") && adds_up(&said), "{said}");
}

/// Returns whether a line says how many calls were issued, and the numbers add up.
fn adds_up(said: &str) -> bool {
    let number = |part: &str| part.split(' ').next().and_then(|number| number.parse::<u64>().ok());
    let parts = |line: &str| line.trim_start_matches("rtrace: ").split(", ").map_while(number).collect::<Vec<_>>();
    said.lines().filter(|line| line.contains(" calls issued, ")).any(|line| match parts(line)[..] {
        [issued, ref others @ ..] => issued > 40_000 && issued == others.iter().sum::<u64>(),
        [] => false,
    })
}

#[test]
fn what_a_recorder_lost_is_missing_in_its_place() {
    let Some(machine) = Machine::shared() else { return };
    // It does not run while dd does. It has emptied its rings once all its threads sleep again, which on a busy machine
    // takes long, and only then the last program runs.
    let script = "cd @; mkfifo go; $rtrace record $engine -m 64K -o gap.data dash -c 'ls / >/dev/null; kill -STOP $PPID; \
        dd if=/dev/zero of=/dev/null bs=1 count=20000 status=none; kill -CONT $PPID; echo >continued; read word <go; cat /dev/null' & \
        until [ -s continued ] && ! cat /proc/$!/task/*/status | grep -q '^State:.[^S]'; do sleep 0.05; done; echo go >go; wait; \
        $rtrace -v -q -i gap.data -o shown"
        .replace('@', &machine.dir().display().to_string());
    let said = shell_with_engine_at(&machine, &script);
    assert!(!said.contains(", 0 lost") && adds_up(&said), "{said}");
    let shown = std::fs::read_to_string(machine.dir().join("shown")).unwrap();
    let at = |part: &str| shown.lines().position(|line| line.contains(part));
    let gap = at(" LOST ").expect("there is a line about the loss");
    assert!(at(" ls/") < Some(gap) && shown.lines().skip(gap).any(|line| line.contains(" cat/")), "{said}");
}

/// Runs rtrace, and returns how many bytes it read by pread(2), as it reads recordings.
fn bytes_read(machine: &Machine, words: &str) -> u64 {
    let script = format!(
        "cd {}; strace -f -e trace=pread64 -o reads $rtrace {words}; awk '/= [0-9]+$/ {{ sum += $NF }} END {{ print sum }}' reads",
        machine.dir().display()
    );
    let said = shell_with_engine_at(machine, &script);
    said.trim().parse().unwrap_or_else(|_| panic!("strace is not installed, or wrote no reads: {said}"))
}

#[test]
fn a_span_of_a_long_recording_has_the_lines_of_the_whole_and_is_read_in_part() {
    let Some(machine) = Machine::shared() else { return };
    for packing in ["", "-z"] {
        let script = format!(
            "cd {}; $rtrace record $engine {packing} -q -o long.data dash -c 'ls / >/dev/null; dd if=/dev/zero of=/dev/null bs=1 count=90000 \
             status=none; ls /' >/dev/null; $rtrace -q -i long.data --json -o whole.jsonl; stat -c %s long.data",
            machine.dir().display()
        );
        let size: u64 = shell_with_engine_at(&machine, &script).trim().parse().expect("it is the size of the recording");
        let objects = |file: &str| json_events(&std::fs::read_to_string(machine.dir().join(file)).expect("rtrace wrote it"));
        let whole = objects("whole.jsonl");
        let (mut least, mut least_of_script) = (u64::MAX, u64::MAX);
        let records = shell_with_engine_at(&machine, &format!("cd {}; $rtrace script -i long.data", machine.dir().display()));
        for (first, last) in [(0, 5), (30, 31), (55, 60), (90, 91), (99, 100)] {
            let [from, to] = [first, last].map(|share| whole[(whole.len() - 1) * share / 100].0);
            let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
            let span = format!("{},{}", seconds(from), seconds(to));
            let words = format!("-q -i long.data --json -o part.jsonl --time-format monotonic --time {span}");
            least = least.min(bytes_read(&machine, &words));
            let expected = within(&whole, from..=to);
            let part = objects("part.jsonl");
            assert!(within(&part, 0..=u64::MAX) == expected, "{packing} {first}: {} and {} lines", part.len(), expected.len());
            least_of_script = least_of_script.min(bytes_read(&machine, &format!("script -i long.data --time {span} > part.script")));
            let part = std::fs::read_to_string(machine.dir().join("part.script")).expect("it was written");
            let lines = part.lines().count();
            assert!(records.contains(&part) && lines >= expected.len(), "{packing} {first}: {lines} records and {} lines", expected.len());
        }
        // A MiB is read at once, which is all of a compressed recording of this size.
        assert!(size < 4 << 20 || least < size / 3, "{packing}: {least} of {size} bytes");
        assert!(size < 4 << 20 || least_of_script < size / 3, "{packing}: {least_of_script} of {size} bytes");
    }
}

/// A recorder that shows nothing reads no names of tasks that are not traced. Nothing else differs, and a line says so.
#[test]
fn names_of_tasks_that_are_not_traced_are_in_a_recording_beside_lines_only() {
    let Some(machine) = Machine::shared() else { return };
    let script = format!(
        r#"cd {}; sleep 1000 & other=$!
        printf 'trap "kill -0 %s; exit" USR1; echo $$ >pid; while :; do sleep 0.05; done' $other >script
        run() {{ rm -f pid; "$@" -q -e kill --signals dash script >/dev/null & recorder=$!
            until [ -s pid ]; do sleep 0.05; done; kill -USR1 $(cat pid); wait $recorder; }}
        run $rtrace $engine --no-pending --record both -o live; run $rtrace record $engine -o alone; kill $other
        for data in both alone; do $rtrace -i $data -o shown 2>>messages; grep -e 'kill(' -e ' SIGUSR1 ' shown; done; cat messages"#,
        machine.dir().display()
    );
    let said = shell_with_engine_at(&machine, &script);
    let lines: Vec<&str> = said.lines().collect();
    let [signal, call, signal_alone, call_alone, message] = lines[..] else { panic!("{said}") };
    assert!(signal.contains(" --- SIGUSR1 {") && call.contains(" (sleep), sig: 0)"), "{said}");
    assert!(call_alone.contains(" kill(pid: ") && call_alone.contains(", sig: 0)") && !call_alone.contains("sleep"), "{said}");
    // The BPF programs record the sender's name.
    let has_sender = |line: &str| line.split_once("si_pid=").is_some_and(|(_, rest)| rest.split([',', '}']).next().unwrap().contains(" ("));
    assert!(has_sender(signal) && has_sender(signal_alone) == (machine::engine() == "bpf"), "{said}");
    let lacking = if machine::engine() == "bpf" { "the name of a task that is" } else { "the names of 2 tasks that are" };
    assert!(message.starts_with(&format!("rtrace: the recording lacks {lacking} named by calls or signals and not traced: ")), "{said}");
}

/// The paths that the recorder names, and the numbers that it says.
#[test]
fn a_recorder_says_what_it_recorded() {
    let Some(machine) = Machine::shared() else { return };
    let script = "cd @; $rtrace record $engine -o said.data true; $rtrace record $engine -o said.data true; ls said.data.old; stat -c '(%s bytes)' said.data"
        .replace('@', &machine.dir().display().to_string());
    let said = shell_with_engine_at(&machine, &script);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(lines[1].starts_with("rtrace: recorded ") && lines[1].ends_with(", 0 lost") && lines[1].contains(lines[3]), "{said}");
    assert_eq!(lines[2], "said.data.old");
}

#[test]
fn what_cannot_be_recorded_or_shown_is_refused_in_one_sentence() {
    let Some(machine) = Machine::shared() else { return };
    let rows = [
        (
            "record -o /dev/null true",
            "cannot write the recording to /dev/null: it is not a regular file, and the header of a recording is written at its end",
        ),
        (
            "record -o - true",
            "a recording is not written to standard output, because its header is written at its end: give a file (./- is a file of this name)",
        ),
        (
            "-i - </dev/null",
            "a recording is not read from standard input, because its end is read first: write it to a file (./- is a file of this name)",
        ),
        ("record --max-events 3 true", "record --max-events: a recorder does not count lines; give it to `rtrace -i FILE`"),
        ("-i /nowhere", "cannot open the recording /nowhere: No such file or directory"),
        ("-i /etc/hostname", "/etc/hostname is no recording: it has only"),
        ("-i pipe", "pipe is not a regular file, and recordings are"),
        ("-i /dev/null", "/dev/null is not a regular file, and recordings are"),
        ("-i x.data true", "-i x.data: a recording has its command already; leave `true` out"),
        ("-i x.data -p 1", "the argument '--input <FILE>' cannot be used with '--pid <PID,...>'"),
    ];
    for (words, expected) in rows {
        let run = shell(&machine, &format!("cd $dir; mkfifo pipe 2>/dev/null; $rtrace {words}"));
        assert_eq!(run.status, 125, "{words}: {}", all(&run));
        assert!(all(&run).contains(expected) && all(&run).lines().count() == 1, "{words}: {}", all(&run));
    }
}
