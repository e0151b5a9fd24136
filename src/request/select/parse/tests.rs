use super::*;
use proptest::prelude::*;

fn selectors(text: &str) -> Vec<(bool, Selector)> {
    parse_list(text, 0).unwrap().into_iter().map(|item| (item.negated, item.selector)).collect()
}

fn syscall(name: &str) -> Selector {
    Selector::Syscall(name.to_owned())
}

fn event(subsystem: &str, name: &str) -> Selector {
    Selector::Event { subsystem: subsystem.to_owned(), name: name.to_owned() }
}

#[test]
fn requests_of_io_uring_are_told_from_the_kernels_events_of_it() {
    let request = |name: &str| (false, Selector::Request(name.to_owned()));
    let list = "%io_uring,io_uring:openat,io_uring:poll_*,io_uring:io_uring_complete,io_uring:*";
    let events = ["io_uring_complete", "*"].map(|name| (false, event("io_uring", name)));
    assert_eq!(selectors(list), [&[request("*"), request("openat"), request("poll_*")][..], &events].concat());
}

#[test]
fn all_kinds_of_selectors_are_parsed() {
    let list = "openat,!close,epoll_*,%file,!%%stat,/^sched_/,sched:sched_process_*,probe_x:my-event";
    let expected = [
        (false, syscall("openat")),
        (true, syscall("close")),
        (false, syscall("epoll_*")),
        (false, Selector::Group("file".to_owned())),
        (true, Selector::Group("%stat".to_owned())),
        (false, Selector::Regex("^sched_".to_owned())),
        (false, event("sched", "sched_process_*")),
        (false, event("probe_x", "my-event")),
    ];
    assert_eq!(selectors(list), expected);
    assert_eq!(selectors(&format!("trace={list}")), expected);
    assert_eq!(selectors("openat, close"), [(false, syscall("openat")), (false, syscall("close"))]);
}

#[test]
fn a_regex_ends_at_its_slash_and_may_contain_commas() {
    assert_eq!(selectors("/^(a|b){1,2}$/,close")[0].1, Selector::Regex("^(a|b){1,2}$".to_owned()));
    assert_eq!(selectors(r"/a\/b/")[0].1, Selector::Regex("a/b".to_owned()));
    assert_eq!(selectors(r"/a\.b/")[0].1, Selector::Regex(r"a\.b".to_owned()));
    let with_terms = &parse_list("/^open/nr=3/,/close/", 0);
    assert_eq!(with_terms.as_ref().unwrap_err().message, "a comma is missing between two items");
    let with_terms = parse_list("/^open//nr=3/,/close/", 0).unwrap();
    assert_eq!(with_terms[0].terms.nr, Some(3));
    assert_eq!(with_terms[1].selector, Selector::Regex("close".to_owned()));
}

#[test]
fn files_of_programs_are_recognized_by_their_extension() {
    let object = |path: &str| Selector::Object(path.into());
    assert_eq!(selectors("x.bpf.c"), [(false, object("x.bpf.c"))]);
    assert_eq!(selectors("/tmp/a b/x.bpf.o,close"), [(false, object("/tmp/a b/x.bpf.o")), (false, syscall("close"))]);
    assert_eq!(selectors("openat, ../x.bpf.c "), [(false, syscall("openat")), (false, object("../x.bpf.c"))]);
    let item = &parse_list("dir/x.bpf.c/max-stack=5,nr=2/", 0).unwrap()[0];
    assert_eq!((&item.selector, item.terms.max_stack, item.terms.nr), (&object("dir/x.bpf.c"), Some(5), Some(2)));
    assert_eq!(selectors("x.bpf.open"), [(false, syscall("x.bpf.open"))]);
    assert_eq!(selectors("/x.bpf.op/"), [(false, Selector::Regex("x.bpf.op".to_owned()))]);
}

#[test]
fn all_terms_are_parsed() {
    let item = &parse_list("openat/nr=2,max-stack=16,call-graph=dwarf:16K,kernel-stack,name=opens,no-inherit/", 7).unwrap()[0];
    let terms = Terms {
        nr: Some(2),
        max_stack: Some(16),
        call_graph: Some(CallGraph::Dwarf { size: Some(16 << 10) }),
        kernel_stack: true,
        name: Some("opens".to_owned()),
        no_inherit: true,
        function: None,
        created_for: None,
    };
    assert_eq!((&item.terms, item.list), (&terms, 7));
}

#[test]
fn syntax_errors_have_a_caret_under_the_error() {
    for (text, shown) in [
        ("", "a name is missing: expected a syscall, a glob, %group, /regex/ or subsystem:event\n    \n    ^"),
        ("openat,", "a name is missing: expected a syscall, a glob, %group, /regex/ or subsystem:event\n    openat,\n           ^"),
        (
            "openat,,close",
            "a name is missing: expected a syscall, a glob, %group, /regex/ or subsystem:event\n    openat,,close\n           ^",
        ),
        ("trace=!", "a name is missing: expected a syscall, a glob, %group, /regex/ or subsystem:event\n    trace=!\n           ^"),
        ("open close", "a comma is missing between two items\n    open close\n         ^"),
        (
            "openat/nrr=2/",
            "`nrr` is not a term (use nr, max-stack, call-graph, kernel-stack, name or no-inherit)\n    openat/nrr=2/\n           ^~~~~",
        ),
        ("openat/nr=0/", "`0` is not a number from 1 to 18446744073709551615\n    openat/nr=0/\n           ^~~~"),
        ("openat/max-stack=65536/", "`65536` is not a number from 1 to 65535\n    openat/max-stack=65536/\n           ^~~~~~~~~~~~~~~"),
        ("openat/nr/", "`nr` needs a value: nr=...\n    openat/nr/\n           ^~"),
        ("openat/kernel-stack=1/", "`kernel-stack` takes no value\n    openat/kernel-stack=1/\n           ^~~~~~~~~~~~~~"),
        (
            "openat/call-graph=lbr/",
            "`lbr` is not a call graph method (use fp, dwarf or dwarf:SIZE)\n    openat/call-graph=lbr/\n           ^~~~~~~~~~~~~~",
        ),
        ("openat/nr=2", "these terms have no closing slash\n    openat/nr=2\n          ^~~~~"),
        ("openat//", "a term is missing (use nr, max-stack, call-graph, kernel-stack, name or no-inherit)\n    openat//\n           ^"),
        ("!openat/nr=2/", "an item with ! cannot have terms\n    !openat/nr=2/\n           ^~~~~~"),
        ("close,/^sched", "this regex has no closing slash\n    close,/^sched\n          ^~~~~~~"),
        ("/(a/", "the regex is not valid: unclosed group\n    /(a/\n    ^~~~"),
        ("//", "this regex is empty\n    //\n    ^~"),
        ("%files", "there is no group %files; similar: %file\n    %files\n    ^~~~~~"),
        ("sched:", "an event has the form subsystem:event\n    sched:\n    ^~~~~~"),
        ("a:b:c", "an event has the form subsystem:event\n    a:b:c\n    ^~~~~"),
        ("!x.bpf.c", "! cannot exclude the programs of a file\n    !x.bpf.c\n     ^~~~~~~"),
        ("open$at", "`$` is not allowed in a name\n    open$at\n        ^"),
    ] {
        assert_eq!(parse_list(text, 0).unwrap_err().to_string(), shown, "{text}");
    }
}

#[test]
fn switches_accept_one_event() {
    assert_eq!(parse_event("sched:sched_switch"), Ok(event("sched", "sched_switch")));
    assert_eq!(parse_event("openat"), Ok(syscall("openat")));
    for text in ["%file", "/x/", "a,b", "openat/nr=1/"] {
        assert!(parse_event(text).unwrap_err().message.starts_with("expected one event"), "{text}");
    }
}

fn any_terms() -> impl Strategy<Value = Terms> {
    let call_graph = prop_oneof![
        Just(CallGraph::FramePointer),
        proptest::option::of(1u32..=8190).prop_map(|words| CallGraph::Dwarf { size: words.map(|words| words * 8) })
    ];
    let counts = (proptest::option::of(1u64..), proptest::option::of(1u16..), proptest::option::of(call_graph));
    (counts, any::<bool>(), proptest::option::of("[^,/]{1,9}"), any::<bool>()).prop_map(
        |((nr, max_stack, call_graph), kernel_stack, name, no_inherit)| Terms {
            nr,
            max_stack,
            call_graph,
            kernel_stack,
            name,
            no_inherit,
            function: None,
            created_for: None,
        },
    )
}

fn any_selector() -> impl Strategy<Value = Selector> {
    prop_oneof![
        "[a-z_*?0-9-]{1,9}".prop_map(Selector::Syscall),
        proptest::sample::select(GROUPS).prop_map(|(name, _)| Selector::Group(name.to_owned())),
        r"[a-z/,.^$ ]{1,9}(\\[dws.])?".prop_map(Selector::Regex),
        "[a-z0-9][a-z_*?0-9-]{0,7}".prop_map(Selector::Request),
        ("[a-z_*0-9]{1,9}", "[a-z_*?0-9-]{1,9}").prop_map(|(subsystem, name)| Selector::Event { subsystem, name }),
        r"[a-z/._-]{0,9}x\.bpf\.[co]".prop_map(|path| Selector::Object(path.into())),
    ]
}

fn any_item() -> impl Strategy<Value = Item> {
    (any::<bool>(), any_selector(), any_terms()).prop_map(|(negated, selector, terms)| {
        let negated = negated && !matches!(selector, Selector::Object(_));
        let terms = if negated { Terms::default() } else { terms };
        Item { negated, selector, terms, filter: None, list: 0 }
    })
}

/// Formats items as a list for `-e`.
fn print_list(items: &[Item]) -> String {
    let items: Vec<String> =
        items.iter().map(|item| format!("{}{}{}", if item.negated { "!" } else { "" }, item.selector, terms(&item.terms))).collect();
    items.join(",")
}

fn terms(terms: &Terms) -> String {
    let mut all = Vec::new();
    all.extend(terms.nr.map(|n| format!("nr={n}")));
    all.extend(terms.max_stack.map(|n| format!("max-stack={n}")));
    all.extend(terms.call_graph.map(|how| match how {
        CallGraph::FramePointer => "call-graph=fp".to_owned(),
        CallGraph::Dwarf { size: None } => "call-graph=dwarf".to_owned(),
        CallGraph::Dwarf { size: Some(bytes) } => format!("call-graph=dwarf:{bytes}"),
    }));
    all.extend(terms.kernel_stack.then(|| "kernel-stack".to_owned()));
    all.extend(terms.name.as_ref().map(|name| format!("name={name}")));
    all.extend(terms.no_inherit.then(|| "no-inherit".to_owned()));
    if all.is_empty() { String::new() } else { format!("/{}/", all.join(",")) }
}

proptest! {
    #[test]
    fn printed_items_are_parsed_back(items in proptest::collection::vec(any_item(), 1..5)) {
        let text = print_list(&items);
        prop_assert_eq!(parse_list(&text, 0).map_err(|e| e.to_string()), Ok(items), "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,20}|[a-z!/,:%=\\\\]{0,20}") {
        if let Err(wrong) = parse_list(&text, 0) {
            prop_assert!(wrong.at.start <= wrong.at.end && wrong.at.end <= text.len());
            prop_assert!(wrong.to_string().contains('^'));
        }
    }
}
