mod fallback;
mod own_only;
mod plan;
mod shown;
mod sums;
mod usage;

use super::*;
use crate::request::filter::Expr;
use crate::request::{Bound, Color, Engine, Faults, Order, ProbeCommand, Replay, Report, Setup, Sink, Target, TaskSelection, Weight};
use crate::session::{CallGraph, Session};
use crate::show::{Mode, Style, SummaryBy, TimeFormat};
use std::io;
use std::os::unix::ffi::OsStringExt;

/// The environment variables and files of a test.
#[derive(Default)]
struct World {
    vars: Vec<(&'static str, &'static str)>,
    files: Vec<(&'static str, &'static str)>,
}

impl World {
    fn parse(&self, argv: &[&str]) -> Result<Request, Stop> {
        let argv: Vec<OsString> = std::iter::once("rtrace").chain(argv.iter().copied()).map(OsString::from).collect();
        self.parse_called(&argv)
    }

    fn parse_called(&self, argv: &[OsString]) -> Result<Request, Stop> {
        let var = |name: &str| self.vars.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        let read = |path: &Path| -> io::Result<Option<String>> {
            Ok(self.files.iter().find(|(known, _)| path == Path::new(known)).map(|(_, text)| (*text).to_owned()))
        };
        request(argv, &Surroundings { var: &var, read: &read, page_bytes: 4096 })
    }
}

fn traced(words: &[&str]) -> Trace {
    match World::default().parse(words) {
        Ok(Request::Trace(trace)) => *trace,
        other => panic!("{words:?}: {other:?}"),
    }
}

/// Parses words that are separated by blanks.
fn traced_by(words: &str) -> Trace {
    traced(&words.split(' ').collect::<Vec<_>>())
}

fn refused(words: &[&str]) -> String {
    match World::default().parse(words) {
        Err(Stop::Wrong(text)) => text,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn argv(target: &Target) -> Vec<String> {
    let command = match target {
        Target::Command(command) => Some(command),
        Target::Running { timer, .. } => timer.as_ref(),
    };
    command.map(|command| command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()).unwrap_or_default()
}

#[test]
fn the_command_begins_at_the_first_word_that_is_no_option() {
    let trace = traced(&["-s", "ls", "-l", "--color=never", "-e", "x", "--", "list"]);
    assert_eq!(argv(&trace.target), ["ls", "-l", "--color=never", "-e", "x", "--", "list"]);
    assert!(matches!(trace.target, Target::Command(_)));
    assert_eq!((trace.show.mode, trace.what.items.len()), (Mode::Summary, 0));
    assert_eq!(argv(&traced(&["-e", "openat", "--", "-odd", "-x"]).target), ["-odd", "-x"]);
}

#[test]
fn subcommand_names_win_except_after_two_dashes() {
    let list = |what, glob: Option<&str>| Ok(Request::List { what, glob: glob.map(str::to_owned), format: AnswerFormat::Text });
    let world = World::default();
    assert_eq!(world.parse(&["list"]), list(Listing::Everything, None));
    assert_eq!(world.parse(&["list", "open*"]), list(Listing::Everything, Some("open*")));
    assert_eq!(world.parse(&["list", "tables", "open_flags"]), list(Listing::Tables, Some("open_flags")));
    assert_eq!(world.parse(&["check"]), Ok(Request::Check(AnswerFormat::Text)));
    assert_eq!(world.parse(&["completions", "fish"]), Ok(Request::Completions(clap_complete::Shell::Fish)));
    assert_eq!(argv(&traced(&["--", "list", "-a"]).target), ["list", "-a"]);
    assert_eq!(argv(&traced(&["-s", "--", "record"]).target), ["record"]);
    assert_eq!(argv(&traced(&["sh", "list"]).target), ["sh", "list"]);
    let sentence = "`rtrace list` does not accept the options before it; to trace a program called list, put -- before its name";
    assert_eq!(refused(&["-e", "openat", "list"]), sentence);
    assert_eq!(world.parse(&["--no-config", "check"]), Ok(Request::Check(AnswerFormat::Text)));
    let setup =
        |group: &str, program: Option<&str>| Ok(Request::Setup(Setup { group: group.to_owned(), program: program.map(Into::into) }));
    assert_eq!(world.parse(&["check", "--setup"]), setup("rtrace", None));
    assert_eq!(world.parse(&["check", "--setup", "--group", "t-1", "--program", "/x"]), setup("t-1", Some("/x")));
    for group in ["", "1", "a b", "$(x)", "-x", "A"] {
        assert!(world.parse(&["check", "--setup", &format!("--group={group}")]).is_err(), "{group}");
    }
    assert!(world.parse(&["check", "--group", "x"]).is_err());
    assert_eq!(refused(&["list", "syscals", "x"]), "`syscals` cannot be listed, only syscalls, groups, events and tables can");
}

#[test]
fn commands_that_list_something_accept_json() {
    let world = World::default();
    let format = AnswerFormat::Json;
    let list = |what, glob: Option<&str>| Ok(Request::List { what, glob: glob.map(str::to_owned), format });
    assert_eq!(world.parse(&["list", "--json"]), list(Listing::Everything, None));
    assert_eq!(world.parse(&["list", "events", "sched:*", "--json"]), list(Listing::Events, Some("sched:*")));
    assert_eq!(world.parse(&["list", "--json", "usdt:/x"]), Ok(Request::ListUsdt { program: "/x".into(), format }));
    assert_eq!(world.parse(&["check", "--json"]), Ok(Request::Check(format)));
    let patterns = vec!["x*".to_owned()];
    assert_eq!(world.parse(&["probe", "list", "--json", "x*"]), Ok(Request::Probe(ProbeCommand::List { patterns, format })));
    assert!(world.parse(&["check", "--setup", "--json"]).is_err());
}

#[test]
fn a_report_is_a_replay() {
    let report = |words: &[&str]| match World::default().parse(words) {
        Ok(Request::Replay(replay)) => *replay,
        other => panic!("{words:?}: {other:?}"),
    };
    let plain = report(&["report"]);
    let shown = |of: &Replay| (of.trace.show.mode, of.trace.graphs.report);
    let default = Report { order: Order::Time, is_inverted: false, frames_max: None, share_min: 0.5 };
    assert_eq!((shown(&plain), plain.file.to_str(), plain.selects), ((Mode::Report, Some(default)), Some("rtrace.data"), false));
    let all =
        report(&["--no-config", "report", "-i", "x", "--sort", "count", "-G", "--max-stack", "3", "--percent-limit", "2.5", "-e", "read"]);
    let wanted = Report { order: Order::Count, is_inverted: true, frames_max: Some(3), share_min: 2.5 };
    assert_eq!((shown(&all).1, all.selects, all.trace.graphs.weight), (Some(wanted), true, Weight::Count));
    assert_eq!(all.words[..3], ["report", "--no-config", "-i"]);
    // What the recorder selected stands in front of the options.
    let recorded = ["-e".to_owned(), "openat".to_owned()];
    let again = with_selection(&recorded, &plain.words, &Surroundings { var: &|_| None, read: &|_| Ok(None), page_bytes: 4096 });
    let Ok(Request::Replay(again)) = again else { panic!("{again:?}") };
    assert_eq!((shown(&again), again.trace.what.items.len()), (shown(&plain), 1));
    let part = report(&["report", "--time", "1.5,1.52s", "-i", "x"]).trace.span.expect("the option is given");
    let bounds = part.bounds(&Session::default(), None).expect("it has no shares");
    assert_eq!((bounds.from, bounds.to), (Some(Bound::Since(1_500_000_000)), Some(Bound::Since(1_520_000_000))));
    assert!(refused(&["report", "--percent-limit", "101"]).contains("between 0 and 100"));
    assert!(refused(&["report", "--inject", "read:error=EIO"]).contains("cannot be changed"));
    assert_eq!(argv(&traced(&["--", "report"]).target), ["report"]);
}

#[test]
fn targets_are_parsed() {
    let who = |words: &[&str]| match traced(words).target {
        Target::Running { tasks, timer } => (tasks, timer.is_some()),
        Target::Command(_) => panic!("{words:?} traces a command"),
    };
    assert_eq!(who(&[]), (TaskSelection::All, false));
    assert_eq!(who(&["-a", "sleep", "5"]), (TaskSelection::All, true));
    assert_eq!(who(&["-C", "0-1,3", "sleep", "5"]), (TaskSelection::All, true));
    assert_eq!(who(&["-p", "12 7\n", "-p", "7,9"]), (TaskSelection::Pids(vec![12, 7, 9]), false));
    assert_eq!(who(&["-t", "12", "-C", "1", "sleep", "1"]), (TaskSelection::Tids(vec![12]), true));
    assert_eq!(who(&["-u", "root"]), (TaskSelection::User("root".to_owned()), false));
    assert_eq!(who(&["-a", "-G", "system.slice"]), (TaskSelection::Cgroup("system.slice".to_owned()), false));
    assert_eq!(who(&["-a", "--container", "web"]), (TaskSelection::Container("web".to_owned()), false));
    assert_eq!(traced(&["-C", "3,0-1,1"]).what.cpus, Some(vec![0, 1, 3]));
}

#[test]
fn wrong_targets_are_refused() {
    assert_eq!(refused(&["-p", "x"]), "-p x: this is not a process or thread ID");
    assert_eq!(refused(&["-p", ""]), "-p has an empty list of IDs; is the program running?");
    assert_eq!(refused(&["--filter-pids", "1,-2"]), "--filter-pids -2: this is not a process or thread ID");
    assert_eq!(refused(&["-C", "3-1"]), "-C 3-1: `3-1` is neither a CPU's number nor a range of them (0-3,8)");
    assert_eq!(refused(&["-a", "--chdir", "/"]), "--chdir applies to a command, and there is none on the command line");
    assert!(refused(&["-p", "1", "-t", "2"]).contains("cannot be used with"));
    assert!(refused(&["-p", "1", "-a"]).contains("cannot be used with"));
}

#[test]
fn a_command_has_its_user_environment_and_directory() {
    let trace = traced(&["--run-as", "nobody", "-E", "A=b=c", "-E", "HOME", "--chdir", "/tmp", "--no-wait", "env"]);
    let Target::Command(command) = trace.target else { panic!("no command") };
    assert_eq!(command.run_as.as_deref(), Some("nobody"));
    assert_eq!(command.env, [("A".into(), Some("b=c".into())), ("HOME".into(), None)]);
    assert_eq!((command.chdir, trace.run.wait), (Some("/tmp".into()), false));
    assert_eq!(refused(&["-E", "=x", "env"]), "-E =x: the variable's name is missing");
}

#[test]
fn a_filter_applies_to_the_list_before_it() {
    let what = traced(&[
        "--filter",
        "pid != 1",
        "-e",
        "openat,!close",
        "--filter",
        "ret < 0",
        "--filter",
        "fd == 3",
        "-e",
        "read",
        "-e",
        "write",
        "--filter",
        "count > 4K",
        "ls",
    ])
    .what;
    let printed: Vec<(usize, String, Option<String>)> =
        what.items.iter().map(|item| (item.list, item.selector.to_string(), item.filter.as_ref().map(Expr::to_string))).collect();
    let expected = [(0, "openat", Some("ret < 0 && fd == 3")), (0, "close", None), (1, "read", None), (2, "write", Some("count > 4096"))];
    assert_eq!(printed, expected.map(|(list, name, filter)| (list, name.to_owned(), filter.map(str::to_owned))));
    assert_eq!(what.filter.unwrap().to_string(), "pid != 1");
}

#[test]
fn probes_are_items_in_the_order_of_the_command_line() {
    let what =
        traced(&["-e", "openat", "--probe", "p /bin/x:main  n=%di", "--filter", "n > 3", "--probe", "f vfs_read%return $retval", "ls"])
            .what;
    let printed: Vec<(usize, String, bool)> =
        what.items.iter().map(|item| (item.list, item.selector.to_string(), item.filter.is_some())).collect();
    let expected = [(0, "openat", false), (1, "p /bin/x:main n=%di", true), (2, "f vfs_read%return $retval", false)];
    assert_eq!(printed, expected.map(|(list, text, filter)| (list, text.to_owned(), filter)));
    assert!(refused(&["--probe", "-:mine/x", "ls"]).starts_with("--probe cannot delete events"));
    assert!(refused(&["--probe", "p /bin/x:main n=%di:u9", "ls"]).contains("^"));
}

#[test]
fn a_filter_after_a_removal_applies_to_the_rest() {
    let what = traced(&["-e", "!futex", "--filter", "ret < 0", "--filter", "fd == 3", "ls"]).what;
    assert_eq!(what.filter.unwrap().to_string(), "ret < 0 && fd == 3");
    for words in [["-e", "!futex", "--filter", "ret < 0", "-e", "sched:*"], ["-e", "%file", "-e", "!statx", "--filter", "ret < 0"]] {
        assert!(refused(&words).starts_with("a --filter follows an -e that only removes items"), "{words:?}");
    }
}

#[test]
fn mistakes_in_lists_and_filters_have_a_caret() {
    assert_eq!(refused(&["-e", "openat,%fil", "ls"]), "-e: there is no group %fil; similar: %file\n    openat,%fil\n           ^~~~");
    assert_eq!(refused(&["-e", "openat", "--filter", "ret = 1", "ls"]), "--filter: use == to test for equality\n    ret = 1\n        ^");
    assert_eq!(
        refused(&["--switch-on", "%file", "ls"]),
        "--switch-on: expected one event, like `sched:sched_switch`, or one syscall\n    %file\n    ^~~~~"
    );
    assert_eq!(refused(&["--no-syscalls", "-e", "sched:*,openat", "ls"]), "--no-syscalls contradicts -e openat: leave one of them out");
}

#[test]
fn call_graph_options_are_parsed() {
    let graphs = |words: &[&str]| traced(&[words, &["ls"]].concat()).graphs;
    let whole = Some(CallGraph::Dwarf { size: None });
    assert_eq!(graphs(&[]).user, None);
    assert_eq!(graphs(&["--call-graph", "fp"]).user, Some(CallGraph::FramePointer));
    assert_eq!(graphs(&["--call-graph", "dwarf,8K"]).user, Some(CallGraph::Dwarf { size: Some(8192) }));
    assert_eq!(graphs(&["--call-graph", "dwarf,1001"]).user, Some(CallGraph::Dwarf { size: Some(1008) }), "whole words");
    for implies in [["--max-stack", "5"], ["--min-stack", "5"], ["--folded", "x"], ["--flamegraph", "x"]] {
        assert_eq!(graphs(&implies).user, whole, "{implies:?}");
    }
    assert_eq!(
        (graphs(&["--lines"]).user, graphs(&["--inline"]).user, graphs(&["-s", "--stack-summary"]).summary),
        (whole, whole, Some(5))
    );
    let kernel = graphs(&["--kernel-syscall-graph", "--max-stack", "3"]);
    assert_eq!((kernel.user, kernel.kernel, kernel.max), (None, true, Some(3)), "frames of the kernel alone");
    assert_eq!(graphs(&["--kernel-stack", "--call-graph", "fp"]).user, Some(CallGraph::FramePointer));
    for (words, why) in [
        (&["--call-graph", "lbr"][..], "--call-graph lbr: the CPU's branch records come only with hardware events"),
        (
            &["--call-graph", "dwarf,70000"],
            "--call-graph dwarf,70000: `70000` is not a valid stack size (a record has room for 1 to 65520 bytes)",
        ),
        (&["--call-graph", "dwarf,x"], "--call-graph dwarf,x: `x` is not a unit of size"),
        (&["--call-graph", "orc"], "--call-graph orc: `orc` is not a call graph method (use fp, dwarf or dwarf:SIZE)"),
        (&["-s", "--call-graph", "fp"], "a summary alone shows no stacks: add --stack-summary"),
        (&["--stack-summary"], "--stack-summary needs a summary: add -s or -S"),
    ] {
        let text = refused(&[words, &["ls"]].concat());
        assert!(text.starts_with(why), "{text}");
    }
}

#[test]
fn times_sizes_and_counts_are_parsed() {
    let trace = traced(&["--duration", "1", "-D", "500ms", "-m", "8M", "--string-limit", "0", "--max-events", "10", "ls"]);
    assert_eq!((trace.show.duration, trace.what.delay), (Some(1_000_000), Some(500_000_000)));
    assert_eq!((trace.run.ring_bytes, trace.show.string_limit, trace.show.max_events), (Some(8 << 20), 0, Some(10)));
    assert_eq!(traced(&["-m", "16", "ls"]).run.ring_bytes, Some(65536));
    assert_eq!(refused(&["-m", "0", "ls"]), "-m 0: the size must be greater than 0");
    assert!(refused(&["--duration", "1x", "ls"]).contains("`x` is not a unit of time (use ns, us, ms, s, m or h)"));
    assert!(refused(&["--max-events", "0", "ls"]).contains("--max-events"));
}

#[test]
fn summary_options_are_parsed() {
    let show = |words: &[&str]| {
        let show = traced(words).show;
        (show.mode, show.errno_summary, show.summary_by, show.max_summary)
    };
    assert_eq!(show(&["ls"]), (Mode::Lines, false, SummaryBy::OneTable, None));
    assert_eq!(show(&["-S", "ls"]).0, Mode::Both);
    assert_eq!(show(&["-s", "-S", "ls"]).0, Mode::Both);
    assert_eq!(show(&["--errno-summary", "ls"]), (Mode::Summary, true, SummaryBy::OneTable, None));
    assert_eq!(
        show(&["-S", "--errno-summary", "--summary-mode", "total", "--max-summary", "5", "ls"]),
        (Mode::Both, true, SummaryBy::Total, Some(5))
    );
    assert!(refused(&["--summary-mode", "total", "ls"]).ends_with("--summary-mode needs a summary: add -s or -S"));
}

#[test]
fn outputs_are_parsed() {
    let to = |words: &[&str]| traced(words).output.to;
    assert_eq!(to(&["ls"]), Sink::Stderr);
    assert_eq!(to(&["-o", "-", "ls"]), Sink::Stdout);
    assert_eq!(to(&["-o", "|grep x", "ls"]), Sink::Pipe("grep x".into()));
    assert_eq!(to(&["-otrace.txt", "ls"]), Sink::File("trace.txt".into()));
    assert!(traced(&["-o", "x", "--output-separately", "ls"]).output.separately);
    assert!(refused(&["--output-separately", "ls"]).contains("--output"));
}

#[test]
fn the_last_of_two_opposites_wins() {
    assert!(!traced(&["--comm", "--no-comm", "ls"]).show.comm);
    assert!(traced(&["--no-comm", "--comm", "ls"]).show.comm);
    assert_eq!(traced(&["--syscalls", "--no-syscalls", "ls"]).what.syscalls, Some(false));
    assert_eq!(traced(&["-T", "ls"]).show.time, TimeFormat::Monotonic);
    assert_eq!(traced(&["-T", "--time-format", "utc", "ls"]).show.time, TimeFormat::Utc);
    assert_eq!(traced(&["--time-format", "utc", "-T", "ls"]).show.time, TimeFormat::Monotonic);
    assert_eq!(traced(&["--color", "never", "--color", "always", "ls"]).output.color, Color::Always);
}

#[test]
fn options_of_perf_trace_are_accepted() {
    traced(&["--sort-events", "--bpf-summary", "--no-bpf-summary", "--expr", "openat", "--event", "close", "--all-cpus", "sleep", "1"]);
    assert_eq!(traced(&["-F", "maj", "ls"]).what.faults, Some(Faults::Major));
    assert_eq!(traced(&["--pf=all", "ls"]).what.faults, Some(Faults::All));
    assert_eq!(traced(&["-vv", "ls"]).run.verbose, 2);
    assert_eq!(traced(&["--engine", "tracepoint", "ls"]).run.engine, Engine::Tracepoint);
}

#[test]
fn the_command_line_overrides_the_environment() {
    let mut world = World { vars: vec![("RTRACE_OPTS", "-e '%file,!statx' --color never -T")], ..World::default() };
    let Ok(Request::Trace(trace)) = world.parse(&["--color", "always", "-e", "close", "ls"]) else { panic!("refused") };
    assert_eq!((trace.what.items.len(), trace.output.color, trace.show.time), (3, Color::Always, TimeFormat::Monotonic));
    let Ok(Request::Trace(trace)) = world.parse(&["--no-config", "ls"]) else { panic!("refused") };
    assert_eq!((trace.what.items.len(), trace.show.time), (0, TimeFormat::Relative));
    assert_eq!(world.parse(&["check"]), Ok(Request::Check(AnswerFormat::Text)), "RTRACE_OPTS has no effect on check");
    for (text, sentence) in [
        ("-T ls", "in RTRACE_OPTS: `ls` is not an option"),
        ("list", "in RTRACE_OPTS: `list` is not an option"),
        ("-e 'x", "in RTRACE_OPTS: a ' is not closed"),
    ] {
        world.vars = vec![("RTRACE_OPTS", text)];
        assert_eq!(world.parse(&["ls"]), Err(Stop::Wrong(sentence.to_owned())), "{text}");
    }
}

#[test]
fn the_environment_overrides_configuration_files() {
    let world = World {
        vars: vec![("HOME", "/root"), ("PERF_CONFIG", "/perfconfig"), ("NO_COLOR", "1"), ("RTRACE_OPTS", "--string-limit 7")],
        files: vec![
            ("/root/.config/rtrace/config.toml", "show_zeros = true\nstring_limit = 64\nsummary_mode = \"total\"\n"),
            ("/perfconfig", "[trace]\nshow_zeros = no\nargs_alignment = 40\nadd_events = sched:sched_switch\n"),
        ],
    };
    let Ok(Request::Trace(trace)) = world.parse(&["ls"]) else { panic!("refused") };
    let show = &trace.show;
    assert_eq!((show.zeros, show.string_limit, show.alignment, show.summary_by, show.mode), (true, 7, 40, SummaryBy::Total, Mode::Lines));
    assert_eq!((trace.output.color, trace.what.syscalls, trace.what.items.len()), (Color::Never, Some(true), 1));
    let Ok(Request::Trace(trace)) = world.parse(&["-e", "openat", "ls"]) else { panic!("refused") };
    assert_eq!((trace.what.syscalls, trace.what.items.len(), trace.what.items[1].list), (None, 2, 1));
    let Ok(Request::Trace(trace)) = world.parse(&["--no-config", "ls"]) else { panic!("refused") };
    assert_eq!((trace.show.zeros, trace.show.string_limit), (false, 32));
}

#[test]
fn a_wrong_setting_is_reported_with_file_and_line() {
    let world = World { vars: vec![("XDG_CONFIG_HOME", "/x")], files: vec![("/x/rtrace/config.toml", "\nstringlimit = 1\n")] };
    let sentence = "/x/rtrace/config.toml:2: there is no setting `stringlimit`; similar: string_limit";
    assert_eq!(world.parse(&["ls"]), Err(Stop::Wrong(sentence.to_owned())));
    assert!(world.parse(&["--no-config", "ls"]).is_ok());
}

#[test]
fn environment_variables_choose_colours() {
    let color = |vars: &[(&'static str, &'static str)], words: &[&str]| {
        let Ok(Request::Trace(trace)) = (World { vars: vars.to_vec(), ..World::default() }).parse(words) else { panic!("refused") };
        trace.output.color
    };
    assert_eq!(color(&[], &["ls"]), Color::Auto);
    assert_eq!(color(&[("CLICOLOR_FORCE", "1")], &["ls"]), Color::Always);
    assert_eq!(color(&[("CLICOLOR_FORCE", "0")], &["ls"]), Color::Auto);
    assert_eq!(color(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], &["ls"]), Color::Never);
    assert_eq!(color(&[("NO_COLOR", "")], &["ls"]), Color::Auto);
    assert_eq!(color(&[("NO_COLOR", "1")], &["--color=always", "ls"]), Color::Always);
}

#[test]
fn help_and_version_are_no_errors() {
    let text = |words: &[&str]| match World::default().parse(words) {
        Err(Stop::Text(text)) => text,
        other => panic!("{words:?}: {other:?}"),
    };
    assert_eq!(text(&["-h"]), format!("{SHORT_HELP}\n"));
    assert!(text(&["--help"]).contains("Whom to trace:"));
    assert_eq!(text(&["-V"]), format!("rtrace {}\n", env!("CARGO_PKG_VERSION")));
    assert!(text(&["list", "--help"]).contains("rtrace list"));
    assert!(refused(&["--nonsense", "ls"]).starts_with("there is no option --nonsense ("));
}

#[test]
fn only_a_command_can_be_delayed() {
    let lossless = |words: &[&str]| {
        let Ok(Request::Trace(trace)) = World::default().parse(words) else { panic!("refused") };
        trace.run.lossless
    };
    assert!(lossless(&["--lossless", "ls"]) && lossless(&["strace", "--lossless", "ls"]) && !lossless(&["ls"]));
    for (option, value) in [("-p", "1"), ("-t", "1"), ("-u", "root"), ("-G", "/x"), ("--container", "x"), ("-C", "0")] {
        let sentence = format!("--lossless delays a command, and {option} selects tasks that rtrace does not start; ");
        assert!(refused(&["--lossless", option, value, "sleep", "1"]).starts_with(&sentence));
    }
    assert!(refused(&["--lossless"]).starts_with("--lossless delays a command, and there is no command; "));
}

#[test]
fn lines_of_strace_show_calls_only() {
    for words in [&["-e", "sched:sched_switch"][..], &["-F", "all"], &["--kernel-stack"], &["--probe", "p:do_exit do_exit"]] {
        let text = refused(&[&["--style", "strace"], words, &["ls"]].concat());
        assert!(text.starts_with("--style strace: lines of strace do not show "), "{text}");
    }
}

#[test]
fn the_name_strace_takes_the_command_line_of_strace() {
    for argv in [&["/usr/local/bin/strace", "-f", "-s", "7", "-T", "ls"][..], &["rtrace", "strace", "-f", "-s7", "-T", "ls"]] {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let Ok(Request::Trace(trace)) = World::default().parse_called(&argv) else { panic!("refused") };
        assert_eq!((trace.show.style, trace.show.string_limit, trace.show.strace.durations.is_some()), (Style::Strace, 7, true));
    }
    let argv: Vec<OsString> = ["strace", "-e", "bogus", "ls"].map(OsString::from).to_vec();
    assert_eq!(World::default().parse_called(&argv), Err(Stop::WrongForStrace("invalid system call 'bogus'".to_owned())));
}

#[test]
fn words_that_are_not_utf8_are_kept() {
    let word = OsString::from_vec(b"/tmp/\xff".to_vec());
    let argv = ["rtrace".into(), "-o".into(), word.clone(), "cat".into(), word.clone()];
    let Ok(Request::Trace(trace)) = World::default().parse_called(&argv) else { panic!("refused") };
    assert_eq!(trace.output.to, Sink::File(word.clone().into()));
    assert!(matches!(trace.target, Target::Command(command) if command.argv[1] == word));
}
