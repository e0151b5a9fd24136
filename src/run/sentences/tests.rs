use super::*;

fn run(verbose: u8, quiet: bool) -> request::Run {
    request::Run {
        as_strace: false,
        ring_bytes: None,
        strict: false,
        lossless: false,
        wait: true,
        quiet,
        verbose,
        engine: request::Engine::Auto,
        strings_by: request::StringsBy::default(),
        inject_by: request::inject::InjectBy::default(),
    }
}

fn calls(issued: u64, shown: u64, lost: u64, held_back: u64) -> Verdict {
    Verdict { calls: Some(CallsVerdict { issued, shown, lost, held_back, given_up: 0 }), ..Verdict::default() }
}

/// Returns the sentences without -v and -q if the output could be written.
fn said(verdict: &Verdict) -> Vec<String> {
    account(verdict, &run(0, false), false)
}

#[test]
fn a_complete_trace_needs_no_sentence_unless_the_user_asks_for_the_numbers() {
    let verdict = calls(12, 8, 0, 4);
    assert_eq!(said(&verdict), [""; 0]);
    assert_eq!(account(&verdict, &run(1, false), false), ["12 calls issued, 8 printed, 0 lost, 4 held back as asked"]);
}

#[test]
fn lost_calls_are_reported_with_a_remedy() {
    assert_eq!(said(&calls(12, 10, 2, 0)), ["12 calls issued, 10 printed, 2 lost (larger rings, -m, or fewer events, -e, lose less)"]);
}

#[test]
fn calls_that_could_not_be_written_are_not_printed_ones() {
    let mut verdict = calls(12, 12, 0, 0);
    verdict.give_up(5);
    assert_eq!(said(&verdict), ["12 calls issued, 7 printed, 0 lost, 5 given up because the output could not be written"]);
    assert_eq!(account(&verdict, &run(0, false), true), [""; 0], "a reader that has ended has read enough");
}

#[test]
fn losses_are_reported_where_nobody_counted_the_calls() {
    let lost = |lost_records| said(&Verdict { lost_records, ..Verdict::default() });
    assert_eq!(lost(7), ["7 records were lost; nobody counted the calls that were made"]);
    assert!(lost(0).is_empty());
}

#[test]
fn events_are_reported_by_the_user_s_names_and_losses_without_v() {
    let event = |name: &str, called: Option<&str>, lost| EventVerdict {
        name: name.to_owned(),
        called: called.map(str::to_owned),
        issued: 9,
        received: 9 - lost,
        lost,
    };
    let verdict = Verdict { events: vec![event("probe:p", Some("mine"), 0), event("sched:sched_switch", None, 2)], ..Verdict::default() };
    let others = "2 records of other events were lost";
    assert_eq!(said(&verdict), [others]);
    let lines = account(&verdict, &run(1, false), false);
    assert_eq!(lines, ["mine: 9 issued, 9 received, 0 lost", "sched:sched_switch: 9 issued, 7 received, 2 lost", others]);
}

#[test]
fn an_account_that_does_not_add_up_is_reported_by_the_kernel_s_name() {
    let event = EventVerdict { name: "probe:p".into(), called: Some("mine".into()), issued: 9, received: 7, lost: 1 };
    let instance = InstanceVerdict { events: vec!["a".into(), "b".into()], issued: 5, received: 1, lost: 2, disagrees: true };
    let verdict = Verdict { disagreements: vec![event], instance: Some(instance), ..Verdict::default() };
    assert_eq!(
        said(&verdict),
        [
            "the account of probe:p does not add up: 9 issued, 7 received, 1 lost; please report this",
            "the account of a, b, which a tracefs instance records, does not add up: 5 issued, 1 received, 2 lost; please report this",
            "2 records of a, b were lost (the kernel counts all events of a tracefs instance together; larger rings, -m, lose less)",
        ]
    );
}

#[test]
fn the_reason_why_nothing_was_shown_names_options_or_similar_names() {
    let of = |nothing: NothingShown| said(&Verdict { nothing_shown: Some(nothing), ..Verdict::default() });
    let names = || vec!["getpgid".to_owned(), "%file".to_owned()];
    assert_eq!(
        of(NothingShown { selected: names(), similar: vec!["setpgid"], ..NothingShown::default() }),
        ["nothing matched getpgid,%file; similar: setpgid"]
    );
    let limits = vec!["--failure".to_owned(), "--filter 'fd == 3'".to_owned()];
    assert_eq!(
        of(NothingShown { held_back: 7, limits, signals: true, ..NothingShown::default() }),
        ["nothing but signals matched; 7 calls were traced but not shown, held back by --failure and --filter 'fd == 3'"]
    );
    let verdict = Verdict { nothing_shown: Some(NothingShown::default()), ..Verdict::default() };
    assert_eq!(account(&verdict, &run(0, true), false), [""; 0], "-q");
}

#[test]
fn requests_that_were_not_traced_are_counted_by_kind() {
    let made = |name: &str, count| RequestCount { name: format!("io_uring:{name}"), count };
    let verdict = Verdict { untraced_requests: vec![made("openat", 3), made("read", 17)], ..Verdict::default() };
    assert_eq!(said(&verdict), ["the programs also made requests of io_uring: 3 openat, 17 read (-e %io_uring shows requests)"]);
    assert_eq!(account(&verdict, &run(0, true), false), [""; 0], "-q");
}

#[test]
fn unknown_values_and_unwritten_records_are_reported() {
    let verdict = Verdict { undecided: 3, unwritten: 2, ..Verdict::default() };
    assert_eq!(
        said(&verdict),
        [
            "3 calls were not shown because values that the filter needs are not known",
            "2 of the lost records were counted but not written by the kernel, because their tasks were moved to another cgroup at that moment, \
             or because interrupts of idle CPUs made them",
        ]
    );
}

#[test]
fn signals_without_a_record_are_reported_if_asked() {
    let verdict = Verdict { unwritten_signals: 2, ..Verdict::default() };
    assert_eq!(account(&verdict, &run(0, false), false), [""; 0]);
    let sentence = "the kernel did not record 2 signals that interrupts of idle CPUs sent to any processes; if a traced process ignores such \
                    a signal, it is not shown";
    assert_eq!(account(&verdict, &run(1, false), false), [sentence]);
}

#[test]
fn each_shortage_has_a_sentence_with_its_number() {
    for kind in ShortageKind::ALL {
        let verdict = Verdict { shortages: kind.counted(41).into_iter().collect(), ..Verdict::default() };
        let sentences = missing_data(&verdict);
        assert_eq!(sentences.len(), 1, "{kind:?}");
        assert!(kind == ShortageKind::Threads || sentences[0].contains("41 "), "{kind:?}: {sentences:?}");
    }
    let short = Verdict { shortages: ShortageKind::NamesOfCalls.counted(5).into_iter().collect(), not_permitted: 2, ..Verdict::default() };
    let sentences = missing_data(&short);
    assert_eq!(sentences[0], "up to 5 path names are not known: more calls used path names at once than the kernel had room for");
    assert!(sentences[1].starts_with("2 calls are neither shown nor counted, because you may not trace the programs"), "{sentences:?}");
}

#[test]
fn records_that_a_trace_without_losses_lost_are_an_error() {
    let lossless = request::Run { lossless: true, ..run(0, false) };
    let error = |lost_records| {
        let verdict = Verdict { lost_records, ..calls(12, 12 - lost_records, lost_records, 0) };
        account(&verdict, &lossless, false).into_iter().filter(|said| said.starts_with("error: ")).collect::<Vec<_>>()
    };
    assert_eq!(error(3), ["error: 3 records were lost in spite of --lossless"]);
    assert_eq!(error(0), [""; 0]);
}

#[test]
fn files_of_silent_file_systems_are_named_up_to_a_limit() {
    let of = |count: usize| {
        let unanswered_files = (0..count).map(|number| format!("/mnt/{number}").into_bytes()).collect();
        missing_data(&Verdict { unanswered_files, ..Verdict::default() })
    };
    let sentence = "stacks lack names and callers, because the file systems of these files do not answer: ";
    assert_eq!(of(0), [""; 0]);
    assert_eq!(of(2), [format!("{sentence}/mnt/0, /mnt/1")]);
    assert!(of(10)[0].ends_with("/mnt/6, /mnt/7 and 2 more"), "{:?}", of(10));
}
