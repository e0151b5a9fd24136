//! Tests of `--probe` on programs: probes are hit from the first call on, and are removed at the end of the run,
//! however it ends.

use crate::compiled::compiled;
use crate::machine::{self, Machine};
use crate::needs::{reads, unsupported};
use crate::trace::{Trace, plain, shell, start, start_on_a_terminal, trace};
use rtrace::program::{self, Parsed, Request};
use rtrace::tracing::{self, RunEvents, Tracefs, Wanted};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;

/// Compiles the probed program; without a C compiler, reports that the test is skipped.
pub fn program(machine: &Machine) -> Option<String> {
    built(machine, "calls", &["-g"])
}

/// Compiles the probed program under another name and with further flags.
fn built(machine: &Machine, name: &str, flags: &[&str]) -> Option<String> {
    compiled(machine, "cc", &[&["-O1", "-pthread"], flags].concat(), "probes/calls.c", name)
}

/// Returns the text behind the task in each line of an event.
pub fn events(trace: &Trace) -> Vec<String> {
    let lines = trace.lines();
    let texts = lines.iter().filter_map(|line| line.text.split_once("): ")?.1.split_once(' '));
    texts.map(|(_, what)| what.to_owned()).filter(|what| !what.starts_with("+++")).collect()
}

/// Returns the lines of tracefs's files that have the path of a program, which no other test probes.
pub fn left(program: &str) -> Vec<String> {
    let lines: Vec<String> = ["dynamic_events", "kprobe_events", "uprobe_events"]
        .iter()
        .flat_map(|file| reads(file).lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.into_iter().filter(|line| line.contains(program)).collect()
}

/// Asserts that tracefs has no probe of the program, and no directory that a process owns.
pub fn assert_gone(program: &str, pid: Option<Pid>) {
    assert_eq!(left(program), [""; 0]);
    let Some(pid) = pid else { return };
    let owned = format!("rtrace_{}_", pid.as_raw_nonzero());
    for directory in ["events", "instances"] {
        let entries = std::fs::read_dir(format!("/sys/kernel/tracing/{directory}")).expect("tracefs is mounted").flatten();
        let names: Vec<_> = entries.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with(&owned)).collect();
        assert!(names.is_empty(), "{directory}: {names:?}");
    }
}

#[test]
fn probes_are_hit_from_the_first_call_in_children_and_threads() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("p {program}:handle text=+0(%di):ustring number=%si:s32");
    let trace = trace(&machine, &["--probe", &probe], &[&program]).succeeded();
    let expected = ["\"first\", number: 1", "\"child\", number: 2", "\"thread\", number: 3", "\"again\", number: 1", "(fault), number: 5"];
    assert_eq!(events(&trace), expected.map(|args| format!("probe_calls:handle(text: {args})")));
    assert!(trace.stderr.contains("rtrace: probe_calls:handle: 5 issued, 5 received, 0 lost"), "{}", trace.stderr);
    assert_gone(&program, None);
}

#[test]
fn a_return_probe_shows_the_return_address() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("r {program}:handle $retval:s32");
    for options in [&["--probe", &probe][..], &["--resolve-at-end", "--probe", &probe]] {
        let trace = trace(&machine, options, &[&program]).succeeded();
        let events = events(&trace);
        let callers = ["middle", "main", "thread", "main", "main"];
        assert_eq!(events.len(), callers.len(), "{}", trace.text);
        for (event, caller) in events.iter().zip(callers) {
            let rest = event.strip_prefix(&format!("probe_calls:handle__return({caller}+0x"));
            assert!(rest.is_some_and(|rest| rest.split_once(" <- handle, arg1: ").is_some()), "not {caller}: {event}");
        }
        assert!(events[0].ends_with(" <- handle, arg1: 2)"), "{events:?}");
    }
    // Without symbols, the return address is shown as an offset in the file.
    let Some(bare) = built(&machine, "bare", &["-s"]) else { return };
    let trace = trace(&machine, &["--probe", &format!("r {bare}:{}", place_of(&program, "handle"))], &[&bare]).succeeded();
    let events = events(&trace);
    let first = events.first().and_then(|event| event.split_once("__return(")?.1.strip_prefix(&format!("{bare}+0x")));
    assert!(events.len() == 5 && first.is_some_and(|rest| rest.contains(" <- 0x")), "{events:?}");
}

/// Returns the offset of a function in a program's file.
fn place_of(program: &str, function: &str) -> String {
    let bytes = std::fs::read(program).expect("the program exists");
    let elf = goblin::elf::Elf::parse(&bytes).expect("the program is an ELF file");
    let symbol = elf.syms.iter().find(|symbol| elf.strtab.get_at(symbol.st_name) == Some(function)).expect("the program has this function");
    let code = elf
        .program_headers
        .iter()
        .find(|header| header.vm_range().contains(&(symbol.st_value as usize)))
        .expect("the function is in a segment");
    format!("{:#x}", symbol.st_value - code.p_vaddr + code.p_offset)
}

#[test]
fn every_type_of_argument_is_shown() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let args = [
        ("text=+0(%di):ustring", "text: \"first\""),
        ("letter=+0(%di):char", "letter: 'f'"),
        ("letters=+0(%di):char[5]", "letters: \"first\""),
        ("bytes=+0(%di):u8[3]", "bytes: [102, 105, 114]"),
        ("hex=+0(%di):x16[2]", "hex: [0x6966, 0x7372]"),
        ("signed=%si:s8", "signed: 1"),
        ("plain=%si", "plain: 0x1"),
        ("bits=+0(%di):b4@4/8", "bits: 6"),
        ("number=\\-7:s32", "number: -7"),
        ("comm=$comm", "comm: \"calls\""),
    ];
    let readme = std::fs::read_to_string("/sys/kernel/tracing/README").unwrap_or_default();
    // Linux 6.2 and later have the type `char`.
    let has_characters = readme.contains(" char,");
    if !has_characters {
        unsupported("no arguments of type char");
    }
    for (arg, shown) in args.into_iter().filter(|(arg, _)| has_characters || !arg.contains(":char")) {
        let probe = format!("p {program}:handle {arg}");
        let events = events(&trace(&machine, &["--probe", &probe], &[&program]).succeeded());
        assert_eq!(events.first().map(String::as_str), Some(format!("probe_calls:handle({shown})").as_str()), "{arg}");
    }
}

#[test]
fn stacks_begin_at_the_probed_function() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let trace = trace(&machine, &["--call-graph", "dwarf", "--probe", &format!("p {program}:handle")], &[&program]).succeeded();
    let frames: Vec<String> = trace.text.lines().skip(1).map_while(crate::stacks::frame).map(|frame| frame.name).collect();
    assert_eq!(frames[..3], ["handle", "middle", "main"], "{}", trace.text);
}

/// A return probe replaces the return address on the stack, so that unwinding by tables cannot find the caller.
#[test]
fn stacks_end_at_a_function_with_a_return_probe() {
    let Some(machine) = Machine::shared() else { return };
    // With frame pointers, the replaced return address could be taken for a caller.
    for (name, flags) in [("calls", &["-g"][..]), ("framed", &["-g", "-fno-omit-frame-pointer"])] {
        let Some(program) = built(&machine, name, flags) else { return };
        let probes = [format!("p {program}:handle"), format!("r {program}:middle")];
        let options = ["--call-graph", "dwarf", "--probe", &probes[0], "--probe", &probes[1]];
        let run = trace(&machine, &options, &[&program]).succeeded();
        let mut stacks: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in run.text.lines() {
            match stacks.last_mut() {
                Some((_, frames)) if !line.contains("): ") => frames.push(line.trim()),
                _ => stacks.push((line, Vec::new())),
            }
        }
        let stacks_of =
            |what: &str| stacks.iter().filter(|(line, _)| line.contains(what)).map(|(_, frames)| frames.clone()).collect::<Vec<_>>();
        let handled = stacks_of(":handle(");
        let inside = &handled[0];
        assert!(inside.len() == 3 && inside[0].starts_with("handle ") && inside[1].starts_with("middle "), "{}", run.text);
        assert_eq!(inside[2], "[the callers are unknown: a return probe has replaced the return address of this function]");
        // Stacks after the return, and of calls outside of the function, are complete.
        let returned = stacks_of(":middle__return(main+0x");
        assert!(returned[0].len() > 2 && returned[0][0].starts_with("main "), "{}", run.text);
        assert!(handled[1].len() > 2 && handled[1][1].starts_with("main "), "{}", run.text);
    }
}

#[test]
fn names_chosen_by_the_user_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probes =
        [format!("p:mine/entered {program}:handle"), format!("p:mine/entered {program}:middle"), format!("p:other {program}:handle")];
    let options: Vec<&str> = probes.iter().flat_map(|probe| ["--probe", probe.as_str()]).collect();
    let mut events = events(&trace(&machine, &options, &[&program]).succeeded())[..3].to_vec();
    // The order of two probes at one address is the kernel's choice.
    events.sort_unstable();
    assert_eq!(events, ["mine:entered()", "mine:entered()", "probe_calls:other()"], "one hit of middle and two of handle");
}

#[test]
fn a_filter_applies_only_to_the_probe_before_it() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("p {program}:handle number=%si:s32");
    let trace = trace(&machine, &["-e", "execve", "--probe", &probe, "--filter", "number > 2"], &[&program]).succeeded();
    assert_eq!(events(&trace).iter().filter(|what| what.starts_with("probe")).count(), 2, "{}", trace.text);
    assert_eq!(trace.count("execve"), 2);
    assert!(trace.stderr.contains("the kernel lets through: number > 2"), "{}", trace.stderr);
}

#[test]
fn printed_and_lost_hits_add_up_to_all_calls() {
    let Some(machine) = Machine::alone() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("p {program}:handle text=+0(%di):ustring number=%si:s32");
    for options in [&[][..], &["-m", "8K"]] {
        let trace = trace(&machine, &[options, &["--probe", &probe]].concat(), &[&program, "20000"]).succeeded();
        let printed = events(&trace).iter().filter(|what| what.starts_with("probe_calls:handle(")).count() as u64;
        let said = trace.stderr.lines().find_map(|line| line.strip_prefix("rtrace: probe_calls:handle: ")).unwrap_or_default();
        let lost = 20_000 - printed;
        assert_eq!(said, format!("20000 issued, {printed} received, {lost} lost"));
        // Whether a small ring buffer loses records depends on when the reader gets a CPU.
        assert!(lost == 0 || !options.is_empty(), "{said}");
        assert_gone(&program, None);
    }
}

/// Asserts that rtrace printed these texts to stderr and exited with this status.
fn assert_reported(run: &Trace, status: i32, words: &[&str]) {
    assert_eq!(run.status, status, "{}", run.stderr);
    for word in words {
        assert!(run.stderr.contains(word), "no {word:?} in\n{}", run.stderr);
    }
}

#[test]
fn refused_probes_are_explained() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let refused = |place: &str| {
        plain(
            &machine,
            &["--probe", &format!("p {program}:handle good=%di"), "--probe", &format!("p {program}:{place}"), "--", "echo", "started"],
        )
    };
    assert_reported(&refused("handle a=%zz"), 125, &["--probe", "register", "%zz", "^"]);
    assert_reported(&refused("handel"), 125, &["handel", "handle"]);
    assert_reported(&refused("handle a=%di:string"), 125, &["string", " error: ", "^"]);
    let many: String = (0..129).map(|n| format!(" a{n}=%di")).collect();
    assert_reported(&refused(&format!("handle{many}")), 125, &["128 arguments at most"]);
    assert_eq!(left(&program), [""; 0], "the probe created before the error is removed");
}

#[test]
fn missing_kernel_features_are_named() {
    let Some(machine) = Machine::shared() else { return };
    let has = |file: &str| std::path::Path::new("/sys/kernel/tracing").join(file).exists();
    let readme = std::fs::read_to_string("/sys/kernel/tracing/README").unwrap_or_default();
    for (there, probe, name) in [
        (has("kprobe_events"), "p vfs_read", "CONFIG_KPROBE_EVENTS"),
        (readme.contains("f[:"), "f vfs_read", "CONFIG_FPROBE_EVENTS"),
        (has("user_events_status"), "u:rtrace_live_test u32 count", "CONFIG_USER_EVENTS"),
    ] {
        let run = plain(&machine, &["--probe", probe, "--", "true"]);
        if there {
            run.succeeded();
        } else {
            assert_reported(&run, 125, &[name]);
        }
    }
}

#[test]
fn no_event_is_left_after_the_end() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probes = [format!("p {program}:handle number=%si:s32"), format!("r {program}:middle $retval")];
    let options: Vec<&str> = probes.iter().flat_map(|probe| ["--probe", probe.as_str()]).collect();

    trace(&machine, &options, &[&program]).succeeded();
    assert_gone(&program, None);

    // Ctrl-C at a terminal, then signals that are sent to rtrace.
    let (mut run, mut terminal) = start_on_a_terminal(&machine, &options, &[&program, "10", "1000"]);
    let pid = run.pid();
    run.wait_for("line of a probe", |lines| !lines.is_empty());
    assert_ne!(left(&program).len(), 0, "the probes are listed while the run lasts");
    terminal.write_all(b"\x03").expect("the terminal is open");
    assert_eq!(run.finish().status, 130);
    assert_gone(&program, Some(pid));
    for (signal, status) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let mut run = start(&machine, &options, &[&program, "10", "1000"]);
        let pid = run.pid();
        run.wait_for("line of a probe", |lines| !lines.is_empty());
        kill_process(pid, signal).expect("it is ours");
        assert_eq!(run.finish().status, status);
        assert_gone(&program, Some(pid));
    }

    // The output is on a full disk.
    let full = plain(&machine, &[&options[..], &["-o", "/dev/full", "--", &program, "10"]].concat());
    assert_reported(&full, 125, &["No space left"]);
    assert_gone(&program, None);

    // stderr cannot be written.
    let words = options.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    shell(&machine, &format!("$rtrace -v -o /dev/null {words} -- {program} 2>/dev/full")).succeeded();
    assert_gone(&program, None);
}

/// No input is known that makes rtrace panic, so the test itself panics while it owns the run's probes.
#[test]
fn no_event_is_left_after_a_panic() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("p {program}:handle number=%si:s32");
    let panicked = std::panic::catch_unwind(|| {
        let words = ["rtrace", "--probe", &probe, "true"].map(std::ffi::OsString::from);
        let Parsed::Request(request) = program::parse(words, &program::environment()) else { panic!("{probe} is valid") };
        let Request::Trace(trace) = request else { panic!("it is a trace") };
        let tracefs = Tracefs::find().expect("tracefs is mounted");
        let made = RunEvents::create(&tracefs, tracing::planned_probes(&trace).map(|wanted| Wanted { by_device: None, ..wanted }))
            .expect("the kernel accepts the probe");
        assert_ne!(made.events().len(), 0);
        assert_ne!(left(&program).len(), 0, "the probe is listed");
        panic!("in the middle of a run");
    });
    assert_eq!(panicked.expect_err("the closure panics").downcast_ref::<&str>(), Some(&"in the middle of a run"));
    assert_eq!(left(&program), [""; 0]);
}

#[test]
fn the_next_run_removes_events_of_a_killed_run() {
    // Any other run on the machine would remove the events first.
    let Some(machine) = Machine::alone() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("p {program}:handle number=%si:s32");
    // Kills one of two runs, and returns whether its event was still there.
    let leaves = |options: &[&str], next: &[&str], signal: Signal| {
        let mut run = start(&machine, options, &[&program, "10", "1000"]);
        let mut other = start(&machine, options, &[&program, "10", "1000"]);
        let pid = run.pid();
        for run in [&mut run, &mut other] {
            run.wait_for("line of a probe", |lines| lines.iter().any(|line| line.text.contains("handle(")));
        }
        kill_process(pid, signal).expect("it is ours");
        run.finish();
        let events_of = |pid: Pid| left(&program).iter().any(|line| line.contains(&format!("rtrace_{}_", pid.as_raw_nonzero())));
        let was_there = events_of(pid);
        let living = other.pid();
        next_run_tidies(&machine, next, pid);
        assert!(events_of(living), "the events of the other run stay");
        kill_process(living, Signal::TERM).expect("it is ours");
        other.finish();
        assert_gone(&program, Some(living));
        was_there
    };
    let (with_probe, without): ([&str; 2], [&str; 2]) = (["--probe", &probe], ["-e", "lseek"]);
    let with_both = [&with_probe[..], &["-e", "execve"]].concat();
    let mut found = false;
    for (options, next) in [(&with_probe[..], &without[..]), (&with_both, &[])] {
        for signal in [Signal::KILL, Signal::ABORT] {
            found |= leaves(options, next, signal);
        }
    }
    // A run of another suite on this machine may remove the event first, so this is tried several times.
    found = found || (0..20).any(|_| leaves(&with_probe, &without, Signal::KILL));
    assert!(found, "a killed run leaves its probe");
}

/// Runs rtrace until the dead run's events are removed. An exiting task may keep them in use for a moment.
fn next_run_tidies(machine: &Machine, options: &[&str], dead: Pid) {
    let owned = format!("rtrace_{}_", dead.as_raw_nonzero());
    for _ in 0..20 {
        trace(machine, options, &[&machine::workload()]);
        if !reads("dynamic_events").contains(&owned) {
            return;
        }
    }
    panic!("events of {owned}... are left");
}
