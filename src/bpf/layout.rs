//! Tests that the C structs and enums have the layout and values that the Rust code reads and writes, by the type
//! information of the compiled object.

use super::{aggregate, call_plan, capture, effects, filter, filter_bytes, links, record, request_plan};
use libbpf_rs::HasSize;
use libbpf_rs::btf::{Btf, types};
use rtrace_bpf_objects::PLAIN_LOADS;

fn btf() -> Btf<'static> {
    Btf::from_raw("rtrace", PLAIN_LOADS).unwrap().unwrap()
}

/// Returns a struct's size and its members' offsets in the compiled object.
fn members(name: &str) -> (usize, Vec<(String, u32)>) {
    let btf = btf();
    let of: types::Struct = btf.type_by_name(name).unwrap();
    let offset = |attr| match attr {
        types::MemberAttr::Normal { offset } => offset / 8,
        types::MemberAttr::BitField { .. } => panic!("{name} has no bit fields"),
    };
    (of.size(), of.iter().map(|m| (m.name.unwrap().to_str().unwrap().to_owned(), offset(m.attr))).collect())
}

fn named(members: &[(&str, u32)]) -> Vec<(String, u32)> {
    members.iter().map(|(name, offset)| ((*name).to_owned(), *offset)).collect()
}

#[test]
fn c_structs_have_the_layout_that_rust_reads_and_writes() {
    let call = [("time", 0), ("start", 8), ("ret", 16), ("args", 24), ("nr", 72), ("tid", 76), ("pid", 80), ("lost", 84), ("late", 88)];
    let more = [("payload", 92), ("how", 94), ("bits", 95)];
    assert_eq!(members("call"), (record::CALL_BYTES, named(&[&call[..], &more].concat())));
    let piece = [("address", 0), ("wanted", 8), ("length", 16), ("arg", 20), ("when", 21), ("state", 22), ("continues", 23)];
    assert_eq!(members("piece"), (record::PIECE_BYTES, named(&piece)));
    assert_eq!(members("listed"), (record::LISTED_BYTES, named(&[("time", 0), ("pid", 8), ("tid", 12)])));
    let stack = [("start", 0), ("tid", 8), ("width", 12), ("mask", 16), ("registers", 24), ("bytes", 288)];
    assert_eq!(members("listed_stack"), (record::LISTED_STACK_BYTES, named(&stack)));
    let note = [("inode", 0), ("magic", 8), ("pid", 12), ("kind", 16), ("unlinked", 17), ("type", 18), ("device", 20)];
    assert_eq!(members("file_info"), (record::FILE_INFO_BYTES, named(&note)));
    let ends = [("local", 8), ("remote", 24), ("local_port", 40), ("remote_port", 44), ("peer", 48)];
    let note = [&[("family", 0), ("type", 2), ("protocol", 4)][..], &ends].concat();
    assert_eq!(members("socket_info"), (record::SOCKET_INFO_BYTES, named(&note)));
    assert_eq!(members("socket_names").1, named(&[("protocol", 0), ("address", 32)]));
    let settings =
        [("scope", 0), ("inherit", 4), ("ends", 8), ("pending_after", 12), ("sigreturn", 16), ("string_limit", 20), ("sums", 24)];
    let more = [("hooks", 28), ("failures", 32), ("user", 36), ("filters", 40), ("cpus", 44), ("min_duration", 48)];
    let last = [("nested", 56), ("own_only", 60), ("group", 64), ("struct_limit", 68), ("entries", 72), ("directories", 76)];
    let last = [&last[..], &[("sends_signals", 80), ("injects", 84), ("epoch_bytes", 88), ("matches", 92)]].concat();
    assert_eq!(members("settings"), (96, named(&[&settings[..], &more, &last].concat())));
    let test = [("what", 0), ("op", 1), ("width", 2), ("flags", 3), ("length", 4), ("with", 8)];
    assert_eq!(members("filter_test"), (filter::TEST_BYTES, named(&test)));
    assert_eq!(members("filter"), (filter_bytes::FILTER_BYTES, named(&[("count", 0), ("undecided", 4), ("tests", 8)])));
    let plan = [("flags", 0), ("ops_count", 2), ("fds", 3), ("chooser", 4), ("chooser_arg", 6), ("indirect_fds", 7)];
    let plan = [
        &plan[..],
        &[
            ("chooser_mask", 8),
            ("stack", 12),
            ("stack_last", 13),
            ("stack_usual", 14),
            ("pids", 15),
            ("uids", 16),
            ("gids", 17),
            ("unused", 18),
            ("ops", 20),
        ],
    ]
    .concat();
    assert_eq!(members("plan"), (call_plan::PLAN_BYTES, named(&plan)));
    let op = [("arg", 0), ("kind", 1), ("when", 2), ("count", 3), ("size", 4), ("room", 6), ("test", 7), ("test_arg", 8), ("link", 9)];
    let rest = [("links_count", 10), ("count_offset", 11), ("test_mask", 12), ("limit", 16)];
    assert_eq!(members("op"), (capture::OP_BYTES, named(&[&op[..], &rest].concat())));
    let link = [("offset", 0), ("count_offset", 2), ("bytes", 4), ("count_bytes", 5), ("count", 6), ("when", 7), ("size", 8)];
    let more = [("limit", 12), ("test_mask", 16), ("test_offset", 20), ("test", 22), ("unused", 23)];
    assert_eq!(members("link"), (links::LINK_BYTES, named(&[&link[..], &more].concat())));
    assert_eq!(members("choice"), (16, named(&[("key", 0), ("place", 8)])));
    let request = [("place", 0), ("registered", 2), ("fields", 4), ("wanted", 10), ("opens", 11)];
    assert_eq!(members("request_plan"), (request_plan::PLAN_BYTES, named(&request)));
    let sum = [("key", 0), ("calls", 4), ("total", 8), ("min", 16), ("max", 24), ("squares", 32), ("squares_high", 40)];
    assert_eq!(members("sum"), (aggregate::SUM_BYTES, named(&sum)));
    let (head, body) = (16, 16 + record::CALL_BYTES as u32);
    let spread = body + (aggregate::SUMS_MAX * aggregate::SUM_BYTES) as u32;
    let expected = named(&[("calls", 0), ("used", 8), ("head", head), ("sums", body), ("spread", spread)]);
    assert_eq!(members("aggregate"), (body as usize + aggregate::BODY_BYTES, expected));
    let effect = [("returns", 0), ("first", 8), ("last", 10), ("step", 12), ("answers", 14), ("signal", 15)];
    assert_eq!(members("effect"), (effects::EFFECT_BYTES, named(&effect)));
    assert_eq!(members("injection"), (effects::INJECTION_BYTES, named(&[("effect", 0), ("counter", 2)])));
    let account = [("calls", 0), ("calls_lost", 8), ("ends_lost", 16), ("tasks_lost", 24), ("scratch_lost", 32), ("parts_lost", 40)];
    let more = [("compat", 48), ("left_out", 56), ("withheld", 64), ("unchanged", 72), ("matches", 80), ("written", 88)];
    assert_eq!(members("account"), (96, named(&[&account[..], &more].concat())));
}

const FILTER_OPS: [&str; 12] = [
    "FILTER_EQUAL",
    "FILTER_NOT_EQUAL",
    "FILTER_LESS",
    "FILTER_LESS_OR_EQUAL",
    "FILTER_GREATER",
    "FILTER_GREATER_OR_EQUAL",
    "FILTER_ANY_BIT",
    "FILTER_ALL_BITS",
    "FILTER_IS",
    "FILTER_IS_NOT",
    "FILTER_BEGINS_WITH",
    "FILTER_BEGINS_OTHERWISE",
];

const OP_KINDS: [&str; 14] = [
    "OP_STRING",
    "OP_BYTES",
    "OP_BITS",
    "OP_NODES",
    "OP_FILES",
    "OP_TAIL",
    "OP_PAGES",
    "OP_COMMAND",
    "OP_LINKED",
    "OP_STRINGS",
    "OP_IOVEC",
    "OP_MSGHDR",
    "OP_MMSGHDR",
    "OP_POINTERS",
];

/// The enumerators of C and Rust must have the same values.
#[test]
fn c_enums_have_the_values_that_rust_reads_and_writes() {
    let btf = btf();
    for (name, values) in [
        (
            "how",
            &[
                "HOW_RETURNED",
                "HOW_NEVER",
                "HOW_UNSEEN",
                "HOW_PENDING",
                "HOW_TASK_END",
                "HOW_PART",
                "HOW_AGGREGATE",
                "HOW_STACK",
                "HOW_SIGNAL_SENT",
                "HOW_SIGNAL",
                "HOW_ENTRY",
                "HOW_REQUEST",
                "HOW_REQUEST_END",
            ][..],
        ),
        ("piece_when", &["WHEN_ENTRY", "WHEN_EXIT", "WHEN_RETRY"]),
        ("piece_state", &["PIECE_WHOLE", "PIECE_CUT", "PIECE_FAULT"]),
        ("file_kind", &["FILE_ROOTED", "FILE_CUT", "FILE_PATHLESS", "FILE_SOCKET"]),
        (
            "indirect_fds",
            &[
                "INDIRECT_NONE",
                "INDIRECT_POLLED",
                "INDIRECT_COMPARED",
                "INDIRECT_COMPARED_ONE",
                "INDIRECT_FETCHED",
                "INDIRECT_FIRST",
                "INDIRECT_PIPE",
                "INDIRECT_PAIR",
            ],
        ),
        ("scope", &["SCOPE_TASKS", "SCOPE_EVERYONE", "SCOPE_CGROUP", "SCOPE_USER"]),
        (
            "sqe_field",
            &[
                "SQE_NONE",
                "SQE_FD",
                "SQE_OFF",
                "SQE_ADDR",
                "SQE_LEN",
                "SQE_OP_FLAGS",
                "SQE_ADDR3",
                "SQE_FILE_INDEX",
                "SQE_SPLICE_FD_IN",
                "SQE_BUF_INDEX",
                "SQE_ADDR_LEN",
                "SQE_CMD_OP",
            ],
        ),
        ("kernel_function", &["RDONLY_CAST", "TASK_FROM_PID", "TASK_FROM_VPID", "TASK_RELEASE"]),
        ("hooks", &["HOOKS_ALL", "HOOKS_OWN", "HOOKS_COMPAT"]),
        ("filter_op", &FILTER_OPS),
        ("filter_width", &["WIDTH_S32", "WIDTH_U32", "WIDTH_S64", "WIDTH_U64", "WIDTH_U16", "WIDTH_SPLIT"]),
        ("mode", &["MODE_UNKNOWN", "MODE_TRACED", "MODE_SET_UP", "MODE_EXCLUDED"]),
        ("abi", &["ABI_X86_64", "ABI_I386", "ABI_X32", "ABI_AARCH64", "ABI_COUNT"]),
        ("op_kind", &OP_KINDS),
        ("op_test", &["TEST_NONE", "TEST_ANY", "TEST_NO", "TEST_IS", "TEST_IS_NOT"]),
    ] {
        let of: types::Enum = btf.type_by_name(name).unwrap_or_else(|| panic!("enum {name} is not in the object"));
        let found: Vec<_> = of.iter().map(|v| (v.value, v.name.unwrap().to_str().unwrap())).collect();
        assert_eq!(found, values.iter().enumerate().map(|(i, v)| (i as i64, *v)).collect::<Vec<_>>(), "enum {name}");
    }
}
