//! `rtrace probe`: probes that stay, made, listed, shown, deleted; user events, emitted and traced.

use crate::line::Line;
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::{Trace, plain, shell, start, trace, workload};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Events of one test: all have names of its own, and are deleted when it ends, however it does.
pub struct Events<'m> {
    machine: &'m Machine,
    pub prefix: String,
}

impl Events<'_> {
    pub fn new(machine: &Machine) -> Events<'_> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Events { machine, prefix: format!("live{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    /// A name of the test's own.
    pub fn name(&self, what: &str) -> String {
        format!("{}{what}", self.prefix)
    }

    pub fn probe(&self, words: &[&str]) -> Trace {
        plain(self.machine, &[&["probe"], words].concat())
    }

    /// What it prints to stdout when all is well.
    pub fn says(&self, words: &[&str]) -> String {
        let run = self.probe(words);
        assert_eq!(run.status, 0, "{words:?}: {}", run.stderr);
        run.stdout
    }

    /// What it says when it fails.
    pub fn fails(&self, words: &[&str]) -> String {
        let run = self.probe(words);
        assert_eq!((run.status, run.stdout.as_str()), (125, ""), "{words:?}: {}", run.stderr);
        run.stderr
    }

    /// The lines of all events of the test.
    fn listed(&self) -> Vec<String> {
        let all = self.says(&["list"]);
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

/// Makes a probe as somebody else would.
pub fn by_hand(line: &str) {
    use std::io::Write;
    let mut file = fs::File::options().append(true).open(tracefs().join("dynamic_events")).expect("tracefs takes probes");
    file.write_all(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
}

pub fn has(text: &str, words: &[&str]) {
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
    let program = machine::workload();
    let name = format!("{}:begins", events.prefix);
    assert_eq!(events.says(&["add", &format!("p:{}/begins {program}:main", events.prefix)]), format!("{name}\n"));
    let listed = events.listed();
    has(&listed[0], &[&name, " probe-add ", " hits=0 ", &format!("p:{}/begins {program}:0x", events.prefix)]);
    let traced = workload(&machine, &["-e", &name], "tag 1").succeeded();
    assert_eq!(traced.text.matches(&format!("{name}(")).count(), 1, "{}", traced.text);
    has(&events.listed()[0], &[" hits=1 "]);
    let shown = events.says(&["show", &name]);
    has(
        &shown,
        &[
            "    owner       probe-add\n",
            "    counts      hits=1\n",
            "    enabled     no\n",
            "    filter      none\n",
            " __probe_ip  offset   8",
        ],
    );
    assert_eq!(events.says(&["del", &name]), "");
    assert_eq!(events.listed(), Vec::<String>::new());
    has(&events.fails(&["list", &name]), &["no dynamic event matches"]);
}

#[test]
fn a_file_is_taken_as_a_whole_or_not_at_all() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let (group, program) = (&events.prefix, machine::workload());
    let good = format!("# two probes\np:{group}/one {program}:main   # one\n\nr:{group}/two {program}:main\n");
    let bad = events.file(&format!("{good}p:{group}/three {program}:0x1 %nonsense\n"));
    has(&events.fails(&["add", "-f", &bad]), &["line 5", "%nonsense"]);
    assert_eq!(events.listed(), Vec::<String>::new(), "nothing was made before the mistake was found");
    // What only the kernel refuses comes when others are made already.
    let bad = events.file(&format!("{good}-:{group}/one\nr:{group}/two {program}:main\n"));
    has(&events.fails(&["add", "-f", &bad]), &["line 6", "already"]);
    assert_eq!(events.listed(), Vec::<String>::new());
    let file = events.file(&format!("{good}-:{group}/one\n"));
    events.says(&["add", "-f", &file]);
    let listed = events.listed();
    assert_eq!(listed.len(), 1, "{listed:?}");
    has(&listed[0], &[&format!("{group}:two "), " probe-add "]);
}

#[test]
fn what_others_made_is_left_alone() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let (group, program) = (&events.prefix, machine::workload());
    events.says(&["add", &format!("p:{group}/ours {program}:main")]);
    let line = events.listed()[0].split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
    by_hand(&line.replace("/ours ", "/theirs "));
    has(&events.listed().concat(), &[" probe-add ", " other "]);
    let theirs = format!("{group}:theirs");
    has(&events.fails(&["del", &theirs]), &["was not made by `rtrace probe add`", "--force"]);
    let file = events.file(&format!("-:{group}/theirs\n"));
    has(&events.fails(&["add", "-f", &file]), &["line 1", "--force"]);
    has(&events.fails(&["add", &format!("p:{group}/theirs {program}:main")]), &["already"]);
    // A glob means one's own.
    events.says(&["del", &format!("{group}:*")]);
    assert_eq!(events.listed().len(), 1);
    // Whoever is not the one that was written down is somebody else's, though he has the name.
    by_hand(&line.replacen("p:", "r:", 1));
    has(&events.fails(&["del", &format!("{group}:ours")]), &["--force"]);
    events.says(&["add", "--force", "-f", &file]);
    events.says(&["del", "--force", &format!("{group}:ours")]);
    assert_eq!(events.listed(), Vec::<String>::new());
}

#[test]
fn what_is_in_use_is_said_to_be() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let name = format!("{}:busy", events.prefix);
    events.says(&["add", &format!("p:{}/busy {}:main", events.prefix, machine::workload())]);
    let enable = tracefs().join("events").join(&events.prefix).join("busy/enable");
    fs::write(&enable, "1").expect("it can be enabled");
    has(&events.fails(&["del", &name]), &["is in use", "it is enabled in tracefs"]);
    has(&events.says(&["show", &name]), &["    enabled     yes\n"]);
    fs::write(&enable, "0").expect("it can be disabled");
    events.says(&["del", &name]);
}

#[test]
fn filters_triggers_and_histograms_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Uprobes, Need::Histograms]) {
        return;
    }
    let events = Events::new(&machine);
    let name = format!("{}:counted", events.prefix);
    events.says(&["add", &format!("p:{}/counted {}:main number=%di", events.prefix, machine::workload())]);
    let directory = tracefs().join("events").join(&events.prefix).join("counted");
    fs::write(directory.join("filter"), "number > 1").expect("it takes a filter");
    fs::write(directory.join("trigger"), "hist:keys=number").expect("it takes a trigger");
    trace(&machine, &["-e", "lseek"], &[&machine::workload(), "tag", "1"]).succeeded();
    let shown = events.says(&["show", &name]);
    has(
        &shown,
        &["    filter      number > 1\n", "    trigger     hist:keys=number", "    histogram   { number:", "hitcount:", " u64 number "],
    );
    has(&events.fails(&["del", &name]), &["is in use", "a trigger in tracefs has it (hist:keys=number"]);
    fs::write(directory.join("trigger"), "!hist:keys=number").expect("the trigger can be taken away");
}

#[test]
fn mistakes_are_explained() {
    let Some(machine) = Machine::shared() else { return };
    let events = Events::new(&machine);
    has(&events.fails(&["show", "sched:sched_swich"]), &["no event matches `sched:sched_swich`", "sched:sched_switch"]);
    has(&events.fails(&["show", "sched:*"]), &["is the name of", "events: sched:"]);
    has(&events.fails(&["add", "-:some/thing"]), &["rtrace probe del"]);
    has(&events.fails(&["add", "q:x y"]), &["is no kind of probe"]);
    has(&events.fails(&["add", "-f", "/nonexistent/probes"]), &["cannot read /nonexistent/probes"]);
    for words in [&["add"][..], &["del"], &["emit"], &[]] {
        let run = events.probe(words);
        assert_eq!(run.status, 125, "{words:?}");
        assert!(run.stderr.starts_with("rtrace: ") && run.stderr.contains("Usage:"), "{}", run.stderr);
    }
}

#[test]
fn kernels_without_user_events_are_said_to_have_none() {
    let Some(machine) = Machine::shared() else { return };
    if tracefs().join("user_events_data").exists() {
        return;
    }
    let events = Events::new(&machine);
    has(&events.fails(&["add", &format!("u:{} u32 count", events.name("x"))]), &["this kernel has no user events (CONFIG_USER_EVENTS)"]);
    has(&events.fails(&["emit", "x", "count=1"]), &["this kernel has no user events (CONFIG_USER_EVENTS)"]);
    // A program goes on without.
    let run = shell(&machine, r#""$workload" mark some_event 1"#);
    has(&run.stderr, &["this kernel has no user events"]);
}

#[test]
fn a_user_event_is_made_emitted_and_traced() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("test");
    let event = format!("user_events:{name}");
    assert_eq!(events.says(&["add", &format!("u:{name} u32 count; char[20] msg")]), format!("{event}\n"));
    has(&events.listed()[0], &[" probe-add ", " listeners=none ", &format!("u:{name} u32 count; char[20] msg")]);
    has(&events.says(&["show", &name]), &[" u32 count     offset   8, size  4, unsigned\n", " char msg[20]  offset  12, size 20,"]);
    let unheard = events.probe(&["emit", &name, "count=3 msg=hello"]);
    assert_eq!(unheard.status, 0, "{}", unheard.stderr);
    has(&unheard.stderr, &[&format!("nobody listens to {event}")]);
    let command = [machine::rtrace(), "probe", "emit", &name, "count=3 msg=\"hello, world\""];
    let traced = trace(&machine, &["-e", &event], &command).succeeded();
    has(&traced.text, &[&format!("{event}(count: 3, msg: \"hello, world\")")]);
    has(&events.fails(&["emit", &name, "count=3"]), &["no value for char[20] msg"]);
    has(&events.fails(&["emit", &name, "count=-1 msg=x"]), &["`-1` is no u32", "0 to 4294967295"]);
    has(&events.fails(&["emit", "sched:sched_switch", "x=1"]), &["sched:sched_switch is no user event"]);
    has(&events.fails(&["add", &format!("u:{name} u64 count")]), &["already", "u32 count"]);
    let enable = tracefs().join("events/user_events").join(&name).join("enable");
    fs::write(&enable, "1").expect("it can be enabled");
    has(&events.listed()[0], &[" listeners=ftrace "]);
    has(&events.fails(&["del", &name]), &["is in use", "enabled in tracefs"]);
    fs::write(&enable, "0").expect("it can be disabled");
    events.says(&["del", &name]);
    assert_eq!(events.listed(), Vec::<String>::new());
}

#[test]
fn fields_of_all_types_arrive() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("all");
    let fields =
        "u8 a; s16 b; u32 c; s64 d; __rel_loc char[] e; __data_loc char[] f; struct point g 3; unsigned char[4] h; __rel_loc u8[] i";
    events.says(&["add", &format!("u:{name} {fields}")]);
    let values = "a=0xff b=-2 c=4294967295 d=-9223372036854775808 e=\"rel loc\" f=data g=010203 h=0a0b0c0d i=aabb";
    let traced = trace(&machine, &["-e", &format!("user_events:{name}")], &[machine::rtrace(), "probe", "emit", &name, values]).succeeded();
    let expected = "(a: 255, b: -2, c: 4294967295, d: -9223372036854775808, e: \"rel loc\", f: \"data\", g: 010203, h: 0a0b0c0d, i: aabb)";
    has(&traced.text, &[expected]);
}

#[test]
fn one_name_may_have_several_formats() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("many");
    events.says(&["add", &format!("u:{name} u8 single")]);
    let first = events.says(&["add", &format!("u:{name}:multi_format u32 a")]);
    let second = events.says(&["add", &format!("u:{name}:multi_format u64 a")]);
    has(&first, &[&format!("user_events_multi:{name}.")]);
    assert_ne!(first, second);
    has(&events.fails(&["add", &format!("u:{name}:multi_format u64 a")]), &["already"]);
    let value = u64::MAX.to_string();
    let command = [machine::rtrace(), "probe", "emit", second.trim(), &format!("a={value}")];
    let traced = trace(&machine, &["-e", "user_events_multi:*"], &command).succeeded();
    has(&traced.text, &[&format!("{}(a: {value})", second.trim())]);
    events.says(&["del", first.trim()]);
    let left = events.listed();
    assert_eq!(left.len(), 2, "{left:?}");
    has(&left.concat(), &[second.trim(), &format!("user_events:{name} ")]);
}

#[test]
fn programs_set_marks() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::UserEvents]) {
        return;
    }
    let events = Events::new(&machine);
    let name = events.name("mark");
    let event = format!("user_events:{name}");
    events.says(&["add", &format!("u:{name} u32 number; s64 change; __rel_loc char[] text; u8 last")]);
    let traced = workload(&machine, &["-e", &event, "--show-zeros"], &format!("mark {name} 3")).succeeded();
    assert_eq!(traced.stdout, "set 3\n");
    for (number, change, last) in [(0, 0, 0), (1, -1i64 << 32, 0), (2, -2i64 << 32, 1)] {
        has(&traced.text, &[&format!("{event}(number: {number}, change: {change}, text: \"mark \\\"{number}\\\"\", last: {last})")]);
    }
    assert_eq!(traced.text.matches(&event).count(), 3, "{}", traced.text);
    // Whom nobody traces sets none.
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
    events.says(&["add", &format!("u:{} u32 number; s64 change; __rel_loc char[] text; u8 last", events.name("fork"))]);
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
    assert!(forked.wait().expect("it is our child").success(), "both end when nobody traces them any more");
}

#[test]
fn an_event_that_nobody_keeps_is_gone_at_exec() {
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
    has(&there.stdout, &[&format!("user_events:{name} "), " other "]);
    let run = start(&machine, &["-e", "lseek"], &[&machine::workload(), "mark-exec", &name, "sh", "-c", &gone]).finish();
    assert_eq!(run.status, 0, "{}", run.stderr);
}

#[test]
fn probes_of_the_kernel_of_every_kind() {
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
    let made = events.says(&["add", "-f", &events.file(&(lines.join("\n") + "\n"))]);
    assert_eq!(made.lines().count(), lines.len(), "{made}");
    trace(&machine, &["-e", &format!("{group}:entry")], &["cat", "/dev/null"]).succeeded();
    let listed = events.listed();
    assert_eq!(listed.len(), lines.len(), "{listed:?}");
    assert!(listed.iter().all(|line| line.contains(" probe-add ")), "{listed:?}");
    let entry = listed.iter().find(|line| line.contains(":entry ")).expect("it is listed");
    assert!(entry.contains(" misses=") && !entry.contains(" hits=0 "), "{entry}");
    has(&events.says(&["show", &events.name("synthetic")]), &["    definition  s:synthetic/", " u64 lat", " pid_t pid"]);
    events.says(&["del", &format!("{group}:*"), &events.name("*")]);
    assert_eq!(events.listed(), Vec::<String>::new());
}

#[test]
fn a_runs_own_user_event_ends_with_it() {
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
