//! Tests of parsing and of syntax errors; `grammar/tests.rs` tests that printed lines are parsed again.

use super::super::{Fetch, FilePlace, KernelPlace, Line, PathStep, Probe, ProbePoint, Removal, SourceLine, When};
use super::parse;

fn probe(line: &str) -> Probe {
    match parse(line) {
        Ok(Line::Make(probe)) => probe,
        other => panic!("{line}: {other:?}"),
    }
}

fn value(line: &str) -> Fetch {
    probe(line).args.remove(0).value
}

/// Returns the message, and the text that is marked by carets.
fn mistake(line: &str) -> (String, String) {
    let wrong = parse(line).expect_err(line);
    (wrong.message.clone(), wrong.text[wrong.at].to_owned())
}

#[test]
fn a_number_behind_a_colon_is_a_line_and_a_name_a_symbol() {
    let ProbePoint::Kernel { at: KernelPlace::Line(line), .. } = probe("p getname_flags:72 result->name").place else { panic!() };
    assert_eq!(line, SourceLine { of: "getname_flags".into(), line: 72 });
    let ProbePoint::Kernel { at, .. } = probe("p xfs:xfs_trans_alloc+0x10").place else { panic!() };
    assert_eq!(at, KernelPlace::Symbol { module: Some("xfs".into()), symbol: "xfs_trans_alloc".into(), offset: 16 });
    let ProbePoint::Kernel { at, .. } = probe("p snd-hda-intel:azx_probe").place else { panic!() };
    assert!(matches!(at, KernelPlace::Symbol { module: Some(module), .. } if module == "snd-hda-intel"));
}

#[test]
fn a_place_with_a_slash_is_in_a_file() {
    let at = |line| match probe(line).place {
        ProbePoint::File { path, at, .. } => (path.to_str().unwrap().to_owned(), at),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(at("p /bin/bash:0x4245c0"), ("/bin/bash".into(), FilePlace::Offset(0x4245c0)));
    assert_eq!(at("p /bin/bash:16"), ("/bin/bash".into(), FilePlace::Offset(16)));
    assert_eq!(at("p /tmp/a:b:0x10"), ("/tmp/a:b".into(), FilePlace::Offset(16)));
    assert_eq!(at("p \"/tmp/a:b c\":main"), ("/tmp/a:b c".into(), FilePlace::Symbol { symbol: "main".into(), offset: 0 }));
    assert_eq!(at("p ./app:ns::handle+0x8"), ("./app".into(), FilePlace::Symbol { symbol: "ns::handle".into(), offset: 8 }));
    assert_eq!(at("p ./app:src/main.c:72"), ("./app".into(), FilePlace::Line(SourceLine { of: "src/main.c".into(), line: 72 })));
    assert_eq!(at("p ./app:ns::handle:3"), ("./app".into(), FilePlace::Line(SourceLine { of: "ns::handle".into(), line: 3 })));
    assert_eq!(at("p ./app:\"f(int, char)\"-4"), ("./app".into(), FilePlace::Symbol { symbol: "f(int, char)".into(), offset: -4 }));
    assert_eq!(at("p ./app:operator+"), ("./app".into(), FilePlace::Symbol { symbol: "operator+".into(), offset: 0 }));
}

#[test]
fn a_reference_counter_follows_the_place() {
    let counter = |line| match probe(line).place {
        ProbePoint::File { reference_counter, when, .. } => (reference_counter, when),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(counter("p /bin/x:0x10(0x20)"), (Some(0x20), When::Entry));
    assert_eq!(counter("p /bin/x:0x10%return(0x20)"), (Some(0x20), When::Return { maxactive: None }));
    assert_eq!(counter("p /bin/x:f(int)"), (None, When::Entry));
    assert_eq!(counter("p /bin/x:f(0x20)"), (Some(0x20), When::Entry));
}

#[test]
fn return_probes_and_their_maxactive_are_parsed() {
    let when = |line| match probe(line).place {
        ProbePoint::Kernel { when, .. } | ProbePoint::Function { when, .. } | ProbePoint::File { when, .. } => when,
        other => panic!("{line}: {other:?}"),
    };
    for line in
        ["r vfs_read", "p vfs_read%return", "r vfs_read+0", "r0 vfs_read", "r /bin/bash:readline", "f vfs_read%return", "r vfs_read%return"]
    {
        assert_eq!(when(line), When::Return { maxactive: None }, "{line}");
    }
    assert_eq!(when("r16:x vfs_read"), When::Return { maxactive: Some(16) });
    assert_eq!(when("f8 vfs_read%return"), When::Return { maxactive: Some(8) });
    assert_eq!(when("p vfs_read"), When::Entry);
}

#[test]
fn the_oldest_spellings_are_for_kprobes_only() {
    assert_eq!(value("p vfs_read a0"), Fetch::Argument(1));
    assert_eq!(value("p vfs_read s2"), Fetch::Stack(2));
    assert_eq!(value("p vfs_read sa"), Fetch::StackAddress);
    assert_eq!(value("r vfs_read rv"), Fetch::Return(vec![]));
    assert!(matches!(value("r vfs_read ra"), Fetch::Register(name) if name == "ip" || name == "pc"));
    assert_eq!(value("p vfs_read +8(a1):u32"), Fetch::Memory { user: false, offset: 8, of: Box::new(Fetch::Argument(2)) });
    for line in ["p ./app:handle sa", "f vfs_read sa", "t sched_switch sa"] {
        assert_eq!(value(line), Fetch::Variable { name: "sa".into(), path: vec![] }, "{line}");
    }
    assert_eq!(value("p connect sa->family"), Fetch::Variable { name: "sa".into(), path: vec![PathStep::Arrow("family".into())] });
}

#[test]
fn values_of_every_kind_are_parsed() {
    assert_eq!(value("p f \\0xffffffffffffffff"), Fetch::Immediate(-1));
    assert_eq!(value("p f \\-5"), Fetch::Immediate(-5));
    assert_eq!(value("p f \\\"te\\xt\""), Fetch::ImmediateText("te\\xt".into()));
    assert_eq!(value("p f @jiffies-8"), Fetch::AtSymbol { symbol: "jiffies".into(), offset: -8 });
    assert_eq!(value("p /bin/x:0 @+0x20"), Fetch::AtFileOffset(0x20));
    assert_eq!(value("e sched.sched_switch $stack0"), Fetch::Field("stack0".into()));
    let steps = vec![PathStep::Arrow("a".into()), PathStep::Dot("b".into()), PathStep::Index(3)];
    assert_eq!(value("p ./app:f req->a.b[3]:string"), Fetch::Variable { name: "req".into(), path: steps.clone() });
    assert_eq!(value("f f%return $retval->a.b[3]"), Fetch::Return(steps));
}

#[test]
fn removals_are_parsed() {
    let removal =
        |group: Option<&str>, event: Option<&str>| Line::Remove(Removal { group: group.map(Into::into), event: event.map(Into::into) });
    assert_eq!(parse("-:kprobes/myprobe"), Ok(removal(Some("kprobes"), Some("myprobe"))));
    assert_eq!(parse("-:myprobe"), Ok(removal(None, Some("myprobe"))));
    assert_eq!(parse("-:kprobes/"), Ok(removal(Some("kprobes"), None)));
}

#[test]
fn a_line_of_synthetic_events_has_no_kind() {
    assert_eq!(probe("latency\tu64 lat; pid_t pid").to_string(), "s:latency u64 lat; pid_t pid");
    assert_eq!(mistake("vfs_read file buf").1, "vfs_read");
}

#[test]
fn at_most_128_arguments_are_accepted() {
    let line = |count: usize| format!("p f{}", (0..count).map(|nth| format!(" a{nth}=%ax")).collect::<String>());
    assert_eq!(probe(&line(128)).args.len(), 128);
    assert_eq!(mistake(&line(129)), ("a probe has 128 arguments at most; this is one more".into(), "a128=%ax".into()));
}

/// The line, the beginning of the message, and the text that is marked by carets.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("", "a probe is missing", ""),
    ("q vfs_read", "`q` is not a kind of probe", "q"),
    ("p", "the place is missing", ""),
    ("p:", "the name of an event is missing", ""),
    ("p:9x vfs_read", "`9x` cannot be the name of an event", "9x"),
    ("p:a/b/c vfs_read", "`b/c` cannot be", "b/c"),
    ("p:/b vfs_read", "the name of a group is missing", ""),
    (
        "p:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa f",
        "the name of an event has 63",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
    ("p16:x vfs_read", "the number of calls to follow", "16"),
    ("r5000 vfs_read", "a return probe follows at most 4096 calls", "5000"),
    ("f5 vfs_read", "the number of calls to follow", "5"),
    ("r5 /bin/bash:readline", "a return probe of a program", "5"),
    ("p vfs_read%ret", "only %return may follow a place", "%ret"),
    ("r vfs_read+4", "a return probe is on a whole function", "vfs_read+4"),
    ("r ./app:f+4 $retval", "a return probe is on a whole function", "f+4"),
    ("r open.c:72", "a line has no return", "open.c:72"),
    ("t sched_switch%return", "a tracepoint has no return", "%return"),
    ("t sched:sched_switch", "a tracepoint's name", "sched:sched_switch"),
    ("e sched.sched_switch%return", "an event has no return", "%return"),
    ("e sched_switch", "an event is written", "sched_switch"),
    ("e sched.sched_switch if", "the condition on the event's fields is missing", ""),
    ("e sched.sched_switch prev_pid", "a field of the event is written $prev_pid", "prev_pid"),
    ("e sched.sched_switch %ax", "a probe on an event has no registers", "%ax"),
    ("f vfs_read+4", "f probes a function's entry", "vfs_read+4"),
    ("usdt /usr/bin/python3:function__entry", "a USDT tracepoint", "/usr/bin/python3:function__entry"),
    ("p /bin/bash", "the place in the file is missing", ""),
    ("p /bin/bash:", "the place in the file is expected", ""),
    ("p /bin/bash:0x10(0x20", "the parenthesis of the reference counter", ""),
    ("p /bin/bash:0x10(0x20)%return", "nothing may follow the reference counter", "%return"),
    ("p \"/bin/bash:0", "this quote is not closed", "\"/bin/bash:0"),
    ("p 0x10g", "`0x10g` is not a number", "0x10g"),
    ("p 099", "`099` is not a number (with a leading 0 it is octal)", "099"),
    ("p f 5", "`5` cannot be fetched", "5"),
    ("p f $retval", "only a return probe", "$retval"),
    ("p f rv", "only a return probe", "rv"),
    ("p f $argv", "`v` is not a decimal number", "v"),
    ("p f $arg0", "arguments are counted from 1", "$arg0"),
    ("p f x=$arg*", "`$arg*` stands for all", "x=$arg*"),
    ("p f +0($arg*)", "`$arg*` cannot be in parentheses", "$arg*"),
    ("p f $rteval", "there is no `$rteval`", "$rteval"),
    ("p f x=", "the value to fetch is missing", ""),
    ("p f =%ax", "the name of an argument is missing", ""),
    ("p f x=%ax x=%bx", "there is an argument `x` already", "x=%bx"),
    ("p f __probe_ip=%ax", "`__probe_ip` is in every event", "__probe_ip"),
    ("p f +0(%ax", "this parenthesis is not closed", ""),
    ("p f +0(+8(%ax)", "this parenthesis is not closed", ""),
    ("p f +0(%ax)x", "only :TYPE may follow the parenthesis", "x"),
    ("p f +0(%ax))", "this closing parenthesis has no opening one", ")"),
    ("p f +0", "a parenthesis is missing", ""),
    ("p f +x(%ax)", "`x` is not a number", "x"),
    ("p f +0()", "there is nothing to fetch", ""),
    ("p f @+0x10", "@+OFFSET is a place in a program's file", "@+0x10"),
    ("p f \\\"a:b\"", "the kernel accepts no blanks, colons, quotes or #", "a:b"),
    ("p f \\\"a b\":string", "the kernel accepts no blanks, colons, quotes or #", "a b"),
    ("p f \\\"a\"b", "a text ends with a quote", "\\\"a\"b"),
    ("p f \\\"a=b\"", "a text with = in it needs a name", "\\\"a=b\""),
    ("p f \\\"ab", "this quote is not closed", "\"ab"),
    ("p f %ax:u32[0]", "an array has 1 to 64", "0"),
    ("p f %ax:u32[4", "the ] at the end of the type is missing", ""),
    ("p f %ax:b9@0/8", "9 bits from bit 0 on do not fit into 8", "b9@0/8"),
    ("p f %ax:b1@0/9", "the container of a bit field has", "9"),
    ("p ./app:f req->", "a member's name is missing", ""),
    ("p ./app:f req[1", "this bracket is not closed", "[1"),
    ("s:x", "the fields are missing", ""),
    ("s u64 x", "the event's name is missing", ""),
    ("s:x foo bar", "a field of a synthetic event cannot have the type `foo`", "foo bar"),
    ("s:kprobes/x u64 a", "the group of synthetic events", "kprobes/x"),
    ("u:x long a", "the size of a long differs", "long a"),
    ("u:x struct a b", "a field that is a struct needs its size", "struct a b"),
    ("u:x u32 a; u32 a", "there is a field `a` already", "u32 a"),
    ("u:x u32", "a field is written TYPE NAME", "u32"),
    ("- x", "a probe is removed by", "-"),
    ("-:", "the name of an event is missing", ""),
    ("-:x y", "nothing may follow the name", "y"),
];

#[test]
fn each_syntax_error_is_explained_and_marked() {
    for (line, what, place) in MISTAKES {
        let (sentence, shown) = mistake(line);
        assert!(sentence.starts_with(what) && shown == *place, "{line}: {sentence} at `{shown}`");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn similar_names_are_suggested() {
    assert_eq!(mistake("p f %rsi").0, "the kernel knows no register `%rsi`; similar: si");
    assert!(mistake("p f %ax:sting").0.ends_with("; similar: string"), "{}", mistake("p f %ax:sting").0);
    assert!(mistake("p f $retvl").0.ends_with("; similar: retval"));
    assert!(mistake("s:x u46 a").0.contains("similar: "));
}
