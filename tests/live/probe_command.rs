//! Tests of `rtrace probe`: persistent probes are created, listed, shown and deleted; user events are written and
//! traced.

use crate::line::Line;
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::{Trace, plain, shell, start, trace, workload};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The events of one test. Their names have a prefix that no other test uses. They are deleted when the test ends.
pub struct Events<'m> {
    machine: &'m Machine,
    pub prefix: String,
}

impl Events<'_> {
    pub fn new(machine: &Machine) -> Events<'_> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Events { machine, prefix: format!("live{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Returns an event name with the test's prefix.
    pub fn name(&self, what: &str) -> String {
        format!("{}{what}", self.prefix)
    }

    pub fn probe(&self, words: &[&str]) -> Trace {
        plain(self.machine, &[&["probe"], words].concat())
    }

    /// Runs `rtrace probe`, which must succeed, and returns its stdout.
    pub fn stdout_of(&self, words: &[&str]) -> String {
        let run = self.probe(words);
        assert_eq!(run.status, 0, "{words:?}: {}", run.stderr);
        run.stdout
    }

    /// Runs `rtrace probe`, which must fail, and returns its stderr.
    pub fn stderr_of(&self, words: &[&str]) -> String {
        let run = self.probe(words);
        assert_eq!((run.status, run.stdout.as_str()), (125, ""), "{words:?}: {}", run.stderr);
        run.stderr
    }

    /// Returns the lines of `probe list` about the test's events.
    fn listed(&self) -> Vec<String> {
        let all = self.stdout_of(&["list"]);
        all.lines().filter(|line| line.contains(&self.prefix)).map(str::to_owned).collect()
    }

    pub fn file(&self, text: &str) -> String {
        let path = self.machine.path("probes");
        fs::write(&path, text).expect("the test's directory is writable");
        path
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        for place in [format!("{}*:*", self.prefix), format!("*:{}*", self.prefix)] {
            self.probe(&["del", "--force", &place]);
        }
    }
}

pub fn tracefs() -> PathBuf {
    let dirs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(Path::new);
    dirs.into_iter().find(|dir| dir.join("events").is_dir()).unwrap_or(dirs[0]).to_owned()
}

/// Creates a probe without rtrace, as another program would.
pub fn write_probe(line: &str) {
    use std::io::Write;
    let mut file = fs::File::options().append(true).open(tracefs().join("dynamic_events")).expect("tracefs is writable");
    file.write_all(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
}

pub fn assert_contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
}

#[test]
fn a_probe_stays_until_it_is_deleted() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    // The kernel counts the hits of all programs with this file, and other tests run the workload as well.
    let program = machine.copy_of(&machine::workload(), "counted");
    let name = format!("{}:begins", events.prefix);
    assert_eq!(events.stdout_of(&["add", &format!("p:{}/begins {program}:main", events.prefix)]), format!("{name}\n"));
    let listed = events.listed();
    assert_contains(&listed[0], &[&name, " probe-add ", " hits=0 ", &format!("p:{}/begins {program}:0x", events.prefix)]);
    let traced = trace(&machine, &["-e", &name], &[&program, "tag", "1"]).succeeded();
    assert_eq!(traced.text.matches(&format!("{name}(")).count(), 1, "{}", traced.text);
    assert_contains(&events.listed()[0], &[" hits=1 "]);
    let shown = events.stdout_of(&["show", &name]);
    assert_contains(
        &shown,
        &[
            "    owner       probe-add\n",
            "    counts      hits=1\n",
            "    enabled     no\n",
            "    filter      none\n",
            " __probe_ip  offset   8",
        ],
    );
    assert_eq!(events.stdout_of(&["del", &name]), "");
    assert_eq!(events.listed(), Vec::<String>::new());
    assert_contains(&events.stderr_of(&["list", &name]), &["no dynamic event matches"]);
}

#[test]
fn a_file_is_applied_completely_or_not_at_all() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let (group, program) = (&events.prefix, machine::workload());
    let good = format!("# two probes\np:{group}/one {program}:main   # one\n\nr:{group}/two {program}:main\n");
    let bad = events.file(&format!("{good}p:{group}/three {program}:0x1 %nonsense\n"));
    assert_contains(&events.stderr_of(&["add", "-f", &bad]), &["line 5", "%nonsense"]);
    assert_eq!(events.listed(), Vec::<String>::new(), "a syntax error is found before any event is created");
    // The kernel refuses this line after the other events have been created.
    let bad = events.file(&format!("{good}-:{group}/one\nr:{group}/two {program}:main\n"));
    assert_contains(&events.stderr_of(&["add", "-f", &bad]), &["line 6", "already"]);
    assert_eq!(events.listed(), Vec::<String>::new());
    let file = events.file(&format!("{good}-:{group}/one\n"));
    events.stdout_of(&["add", "-f", &file]);
    let listed = events.listed();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_contains(&listed[0], &[&format!("{group}:two "), " probe-add "]);
}

#[test]
fn probes_of_others_are_not_deleted() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let (group, program) = (&events.prefix, machine::workload());
    events.stdout_of(&["add", &format!("p:{group}/ours {program}:main")]);
    let line = events.listed()[0].split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
    write_probe(&line.replace("/ours ", "/theirs "));
    assert_contains(&events.listed().concat(), &[" probe-add ", " other "]);
    let theirs = format!("{group}:theirs");
    assert_contains(&events.stderr_of(&["del", &theirs]), &["was not created by `rtrace probe add`", "--force"]);
    let file = events.file(&format!("-:{group}/theirs\n"));
    assert_contains(&events.stderr_of(&["add", "-f", &file]), &["line 1", "--force"]);
    assert_contains(&events.stderr_of(&["add", &format!("p:{group}/theirs {program}:main")]), &["already"]);
    // A glob selects only probes of `rtrace probe add`.
    events.stdout_of(&["del", &format!("{group}:*")]);
    assert_eq!(events.listed().len(), 1);
    // A probe that differs from the recorded line belongs to somebody else, even if it has the same name.
    write_probe(&line.replacen("p:", "r:", 1));
    assert_contains(&events.stderr_of(&["del", &format!("{group}:ours")]), &["--force"]);
    events.stdout_of(&["add", "--force", "-f", &file]);
    events.stdout_of(&["del", "--force", &format!("{group}:ours")]);
    assert_eq!(events.listed(), Vec::<String>::new());
}

#[test]
fn a_probe_in_use_is_not_deleted() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let name = format!("{}:busy", events.prefix);
    events.stdout_of(&["add", &format!("p:{}/busy {}:main", events.prefix, machine::workload())]);
    let enable = tracefs().join("events").join(&events.prefix).join("busy/enable");
    fs::write(&enable, "1").expect("it can be enabled");
    assert_contains(&events.stderr_of(&["del", &name]), &["is in use", "it is enabled in tracefs"]);
    assert_contains(&events.stdout_of(&["show", &name]), &["    enabled     yes\n"]);
    fs::write(&enable, "0").expect("it can be disabled");
    events.stdout_of(&["del", &name]);
}

#[test]
fn filters_triggers_and_histograms_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes, Need::Histograms]) {
        return;
    }
    let events = Events::new(&machine);
    let name = format!("{}:counted", events.prefix);
    events.stdout_of(&["add", &format!("p:{}/counted {}:main number=%di", events.prefix, machine::workload())]);
    let directory = tracefs().join("events").join(&events.prefix).join("counted");
    fs::write(directory.join("filter"), "number > 1").expect("it takes a filter");
    fs::write(directory.join("trigger"), "hist:keys=number").expect("it takes a trigger");
    trace(&machine, &["-e", "lseek"], &[&machine::workload(), "tag", "1"]).succeeded();
    let shown = events.stdout_of(&["show", &name]);
    assert_contains(
        &shown,
        &["    filter      number > 1\n", "    trigger     hist:keys=number", "    histogram   { number:", "hitcount:", " u64 number "],
    );
    assert_contains(&events.stderr_of(&["del", &name]), &["is in use", "it has a trigger in tracefs (hist:keys=number"]);
    fs::write(directory.join("trigger"), "!hist:keys=number").expect("the trigger can be removed");
}

#[test]
fn mistakes_are_explained() {
    let Some(machine) = Machine::shared() else { return };
    let events = Events::new(&machine);
    assert_contains(&events.stderr_of(&["show", "sched:sched_swich"]), &["no event matches `sched:sched_swich`", "sched:sched_switch"]);
    assert_contains(&events.stderr_of(&["show", "sched:*"]), &["is the name of", "events: sched:"]);
    assert_contains(&events.stderr_of(&["add", "-:some/thing"]), &["rtrace probe del"]);
    assert_contains(&events.stderr_of(&["add", "q:x y"]), &["is not a kind of probe"]);
    assert_contains(&events.stderr_of(&["add", "-f", "/nonexistent/probes"]), &["cannot read /nonexistent/probes"]);
    for words in [&["add"][..], &["del"], &["emit"], &[]] {
        let run = events.probe(words);
        assert_eq!(run.status, 125, "{words:?}");
        assert!(run.stderr.starts_with("rtrace: ") && run.stderr.contains("`rtrace probe"), "{}", run.stderr);
    }
}

#[test]
fn missing_user_events_are_reported() {
    let Some(machine) = Machine::shared() else { return };
    if tracefs().join("user_events_data").exists() {
        return;
    }
    let events = Events::new(&machine);
    assert_contains(
        &events.stderr_of(&["add", &format!("u:{} u32 count", events.name("x"))]),
        &["this kernel has no user events (CONFIG_USER_EVENTS)"],
    );
    assert_contains(&events.stderr_of(&["emit", "x", "count=1"]), &["this kernel has no user events (CONFIG_USER_EVENTS)"]);
    // A program continues without user events.
    let run = shell(&machine, r#""$workload" mark some_event 1"#);
    assert_contains(&run.stderr, &["this kernel has no user events"]);
}

#[test]
fn a_user_event_is_created_written_and_traced() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("test");
    let event = format!("user_events:{name}");
    assert_eq!(events.stdout_of(&["add", &format!("u:{name} u32 count; char[20] msg")]), format!("{event}\n"));
    assert_contains(&events.listed()[0], &[" probe-add ", " listeners=none ", &format!("u:{name} u32 count; char[20] msg")]);
    assert_contains(
        &events.stdout_of(&["show", &name]),
        &[" u32 count     offset   8, size  4, unsigned\n", " char msg[20]  offset  12, size 20,"],
    );
    let unheard = events.probe(&["emit", &name, "count=3 msg=hello"]);
    assert_eq!(unheard.status, 0, "{}", unheard.stderr);
    assert_contains(&unheard.stderr, &[&format!("no tracer listens to {event}")]);
    let command = [machine::rtrace(), "probe", "emit", &name, "count=3 msg=\"hello, world\""];
    let traced = trace(&machine, &["-e", &event], &command).succeeded();
    assert_contains(&traced.text, &[&format!("{event}(count: 3, msg: \"hello, world\")")]);
    assert_contains(&events.stderr_of(&["emit", &name, "count=3"]), &["no value for char[20] msg"]);
    assert_contains(&events.stderr_of(&["emit", &name, "count=-1 msg=x"]), &["`-1` is not a valid u32", "0 to 4294967295"]);
    assert_contains(&events.stderr_of(&["emit", "sched:sched_switch", "x=1"]), &["sched:sched_switch is not a user event"]);
    assert_contains(&events.stderr_of(&["add", &format!("u:{name} u64 count")]), &["already", "u32 count"]);
    let enable = tracefs().join("events/user_events").join(&name).join("enable");
    fs::write(&enable, "1").expect("it can be enabled");
    assert_contains(&events.listed()[0], &[" listeners=ftrace "]);
    assert_contains(&events.stderr_of(&["del", &name]), &["is in use", "enabled in tracefs"]);
    fs::write(&enable, "0").expect("it can be disabled");
    events.stdout_of(&["del", &name]);
    assert_eq!(events.listed(), Vec::<String>::new());
}

#[test]
fn fields_of_all_types_are_traced() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("all");
    let fields =
        "u8 a; s16 b; u32 c; s64 d; __rel_loc char[] e; __data_loc char[] f; struct point g 3; unsigned char[4] h; __rel_loc u8[] i";
    events.stdout_of(&["add", &format!("u:{name} {fields}")]);
    let values = "a=0xff b=-2 c=4294967295 d=-9223372036854775808 e=\"rel loc\" f=data g=010203 h=0a0b0c0d i=aabb";
    let traced = trace(&machine, &["-e", &format!("user_events:{name}")], &[machine::rtrace(), "probe", "emit", &name, values]).succeeded();
    let expected = "(a: 255, b: -2, c: 4294967295, d: -9223372036854775808, e: \"rel loc\", f: \"data\", g: 010203, h: 0a0b0c0d, i: aabb)";
    assert_contains(&traced.text, &[expected]);
}

#[test]
fn one_name_may_have_several_formats() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("many");
    events.stdout_of(&["add", &format!("u:{name} u8 single")]);
    let first = events.stdout_of(&["add", &format!("u:{name}:multi_format u32 a")]);
    let second = events.stdout_of(&["add", &format!("u:{name}:multi_format u64 a")]);
    assert_contains(&first, &[&format!("user_events_multi:{name}.")]);
    assert_ne!(first, second);
    assert_contains(&events.stderr_of(&["add", &format!("u:{name}:multi_format u64 a")]), &["already"]);
    let value = u64::MAX.to_string();
    let command = [machine::rtrace(), "probe", "emit", second.trim(), &format!("a={value}")];
    let traced = trace(&machine, &["-e", "user_events_multi:*"], &command).succeeded();
    assert_contains(&traced.text, &[&format!("{}(a: {value})", second.trim())]);
    events.stdout_of(&["del", first.trim()]);
    let left = events.listed();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_contains(&left.concat(), &[second.trim(), &format!("user_events:{name} ")]);
}

#[test]
fn programs_write_marks() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("mark");
    let event = format!("user_events:{name}");
    events.stdout_of(&["add", &format!("u:{name} u32 number; s64 change; __rel_loc char[] text; u8 last")]);
    let traced = workload(&machine, &["-e", &event, "--show-zeros"], &format!("mark {name} 3")).succeeded();
    assert_eq!(traced.stdout, "set 3\n");
    for (number, change, last) in [(0, 0, 0), (1, -1i64 << 32, 0), (2, -2i64 << 32, 1)] {
        assert_contains(
            &traced.text,
            &[&format!("{event}(number: {number}, change: {change}, text: \"mark \\\"{number}\\\"\", last: {last})")],
        );
    }
    assert_eq!(traced.text.matches(&event).count(), 3, "{}", traced.text);
    // A program that nobody traces writes no marks.
    assert_eq!(shell(&machine, &format!(r#""$workload" mark {name} 3"#)).stdout, "set 0\n");
}

#[test]
fn marks_are_inherited_by_fork() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let event = format!("user_events:{}", events.name("fork"));
    events.stdout_of(&["add", &format!("u:{} u32 number; s64 change; __rel_loc char[] text; u8 last", events.name("fork"))]);
    let mut forked = Command::new(machine::workload()).args(["mark-fork", &events.name("fork")]).spawn().expect("the workload starts");
    let mut run = start(&machine, &["-a", "-e", &event, "--show-zeros"], &[]);
    let of = |lines: &[Line], number: u32| {
        let line = lines.iter().find(|line| line.text.contains(&format!("{event}(number: {number}, ")));
        line.map(|line| line.tid)
    };
    run.wait_for("marks of parent and child", |lines| of(lines, 0).is_some() && of(lines, 1).is_some());
    kill_process(run.pid(), Signal::INT).expect("it runs");
    let lines = run.finish().succeeded().lines();
    assert_eq!(of(&lines, 0), Some(forked.id() as i32));
    assert_ne!(of(&lines, 0), of(&lines, 1));
    assert!(forked.wait().expect("it is our child").success(), "both processes exit when nobody traces them any more");
}

#[test]
fn an_event_without_registrations_is_removed_at_exec() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("exec");
    let gone = format!(r#"for i in $(seq 100); do "$rtrace" probe list {name} 2>/dev/null || exit 0; sleep 0.1; done; exit 1"#);
    let there = shell(
        &machine,
        &format!(
            r#""$workload" mark-fork {name} & for i in $(seq 100); do "$rtrace" probe list {name} 2>/dev/null && break; sleep 0.1; done; kill $!"#
        ),
    );
    assert_contains(&there.stdout, &[&format!("user_events:{name} "), " other "]);
    let run = start(&machine, &["-e", "lseek"], &[&machine::workload(), "mark-exec", &name, "sh", "-c", &gone]).finish();
    assert_eq!(run.status, 0, "{}", run.stderr);
}

#[test]
fn every_kind_of_kernel_probe_is_created() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes, Need::Fprobes, Need::Eprobes, Need::SyntheticEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let group = &events.prefix;
    let lines = [
        format!("p:{group}/entry do_sys_openat2 dfd=%di"),
        format!("r:{group}/back do_sys_openat2 ret=$retval"),
        format!("f:{group}/function do_sys_openat2"),
        format!("e:{group}/event syscalls.sys_enter_openat"),
        format!("s:{} u64 lat; pid_t pid", events.name("synthetic")),
    ];
    let made = events.stdout_of(&["add", "-f", &events.file(&(lines.join("\n") + "\n"))]);
    assert_eq!(made.lines().count(), lines.len(), "{made}");
    trace(&machine, &["-e", &format!("{group}:entry")], &["cat", "/dev/null"]).succeeded();
    let listed = events.listed();
    assert_eq!(listed.len(), lines.len(), "{listed:?}");
    assert!(listed.iter().all(|line| line.contains(" probe-add ")), "{listed:?}");
    let entry = listed.iter().find(|line| line.contains(":entry ")).expect("it is listed");
    assert!(entry.contains(" misses=") && !entry.contains(" hits=0 "), "{entry}");
    assert_contains(&events.stdout_of(&["show", &events.name("synthetic")]), &["    definition  s:synthetic/", " u64 lat", " pid_t pid"]);
    events.stdout_of(&["del", &format!("{group}:*"), &events.name("*")]);
    assert_eq!(events.listed(), Vec::<String>::new());
}

#[test]
fn a_user_event_of_a_run_is_removed_at_its_end() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("run");
    let spec = format!("u:{name} u32 number; s64 change; __rel_loc char[] text; u8 last");
    let traced = workload(&machine, &["--probe", &spec], &format!("mark {name} 3")).succeeded();
    assert_eq!(traced.stdout, "set 3\n");
    assert_eq!(traced.text.matches(&format!("user_events:{name}(")).count(), 3, "{}", traced.text);
    let gone = format!(r#"for i in $(seq 100); do "$rtrace" probe list {name} 2>/dev/null || exit 0; sleep 0.1; done; exit 1"#);
    assert_eq!(shell(&machine, &gone).status, 0, "{:?}", events.listed());
}
