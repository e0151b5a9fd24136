use super::*;
use crate::beauty::row::{
    Arg, ArgumentKind, Brief, BriefMember, Condition, CopyMethod, Flow, Length, LengthUnit, MemoryNumber, MemoryType, Outcomes, Return,
    Shown, Special, StructLayout, StructMember, TableConstant, TableKind, Traits,
};
use crate::kernel::tracefs::NoMount;
use serde_json::{Value, json};

static FLAGS: ConstantTable = ConstantTable {
    name: "open_flags",
    kind: TableKind::Flags,
    bits: 32,
    header: "asm-generic/fcntl.h",
    prefix: "O_",
    entries: &[TableConstant { value: 0x40, name: "O_CREAT" }, TableConstant { value: 0x80, name: "O_EXCL" }],
    fields: &[],
    per_abi: &[],
};

const fn arg(name: &'static str, kind: ArgumentKind, flow: Flow, length: Length) -> Arg {
    Arg {
        name,
        kind,
        flow,
        written: Outcomes::SUCCEEDED,
        traits: Traits::empty(),
        fd_of: None,
        socket: None,
        length,
        used: Condition::Always,
    }
}

const fn word(bytes: u8, kind: ArgumentKind, length: Length) -> MemoryType {
    MemoryType::Number(MemoryNumber { bytes, signed: false, big_endian: false, kind, length })
}

const fn member(name: &'static str, offset: u32, memory_type: MemoryType) -> StructMember {
    StructMember { name, offset, memory_type, flow: Flow::In, used: Condition::Always }
}

static WIDE: [StructMember; 2] =
    [member("base", 0, word(8, ArgumentKind::Bytes, Length::Arg(1))), member("len", 8, word(8, ArgumentKind::Ulong, Length::OfType))];
static NARROW: [StructMember; 2] =
    [member("base", 0, word(4, ArgumentKind::Bytes, Length::Arg(1))), member("len", 4, word(4, ArgumentKind::Ulong, Length::OfType))];
static SPAN_BRIEF: [BriefMember; 2] =
    [BriefMember { index: 0, shown: Shown::Always }, BriefMember { index: 1, shown: Shown::NotZero { offset: 8, bytes: 8 } }];
static SPAN: Struct = Struct {
    name: "span",
    sizes: [16, 8, 16, 16],
    counted: LengthUnit::Bytes,
    copied: CopyMethod::Plain,
    length_at: None,
    bytes_read: 0,
    source: "linux/span.h",
    layout: StructLayout::Members([&WIDE, &NARROW, &WIDE, &WIDE]),
    brief: Brief { elements: 8, members: Some([&SPAN_BRIEF; 4]) },
    choice: None,
};

static ROWS: &[Syscall] = &[
    Syscall {
        name: "open",
        event: "open",
        numbers: [Some(2), Some(5), Some(2), None],
        args: &[
            arg("filename", ArgumentKind::Path, Flow::In, Length::OfType),
            arg("flags", ArgumentKind::Table(&FLAGS), Flow::In, Length::OfType),
        ],
        returns: Return::Fd,
        groups: Groups::FILE.union(Groups::DESC),
        does: Special::Plain,
        variants: &[],
    },
    Syscall {
        name: "read",
        event: "read",
        numbers: [Some(0), Some(3), Some(0), Some(63)],
        args: &[
            arg("fd", ArgumentKind::Fd, Flow::In, Length::OfType),
            arg("buf", ArgumentKind::Bytes, Flow::Out, Length::Ret),
            arg("count", ArgumentKind::Size, Flow::In, Length::OfType),
        ],
        returns: Return::Size,
        groups: Groups::DESC,
        does: Special::Splice,
        variants: &[],
    },
    Syscall {
        name: "writev",
        event: "writev",
        numbers: [Some(20), Some(146), Some(516), Some(66)],
        args: &[
            arg("fd", ArgumentKind::Fd, Flow::In, Length::OfType),
            arg("vec", ArgumentKind::StructArray(&SPAN), Flow::In, Length::Arg(2)),
            arg("vlen", ArgumentKind::Ulong, Flow::In, Length::OfType),
        ],
        returns: Return::Size,
        groups: Groups::empty(),
        does: Special::Plain,
        variants: &[],
    },
];

fn listed(what: Listing, pattern: Option<&str>) -> Result<String, String> {
    let catalog =
        Catalog { syscalls: ROWS, tables: &[&FLAGS], structs: &[&SPAN], tracefs: Err(TracefsError::NotMounted(NoMount::NotRoot)) };
    let found = find(what, pattern, &catalog).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(text::lines(&found).unwrap()).unwrap())
}

/// Returns the objects of `--json`, without the first one.
fn objects(what: Listing, pattern: &str) -> Vec<Value> {
    let catalog = Catalog { syscalls: ROWS, tables: &[&FLAGS], structs: &[&SPAN], tracefs: Err(TracefsError::NotBuilt) };
    let found = find(what, Some(pattern), &catalog).unwrap();
    let lines = crate::cli::json::lines("list", json::objects(&found, None)).unwrap();
    let objects: Vec<Value> =
        lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!((&objects[0]["type"], &objects[0]["schema"]), (&json!("list"), &json!(1)));
    objects[1..].to_vec()
}

#[test]
fn a_syscall_has_one_line() {
    let text = listed(Listing::Syscalls, None).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    let columns: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(columns[2..], ["?", "%desc", "(fd:", "fd,", "buf:", "out", "bytes[ret],", "count:", "size)", "=", "size"]);
    assert_eq!(listed(Listing::Syscalls, Some("r*")).unwrap().lines().count(), 1);
}

#[test]
fn an_exact_name_shows_all_of_the_row() {
    let text = listed(Listing::Syscalls, Some("open")).unwrap();
    assert!(text.contains("\n    numbers   x86_64 2, i386 5, x32 2, aarch64 -\n"), "{text}");
    assert!(!text.contains("    does "), "{text}");
    let splicing = listed(Listing::Syscalls, Some("read")).unwrap();
    assert!(splicing.contains("\n    does      splice: returns 0 without"), "{splicing}");
    assert!(listed(Listing::Syscalls, Some("writev")).unwrap().contains("\n    argument  2 vec: span*[vlen] (rtrace list tables span)\n"));
    assert!(
        text.contains("\n    argument  2 flags: open_flags (2 names from asm-generic/fcntl.h: rtrace list tables open_flags)\n"),
        "{text}"
    );
}

#[test]
fn groups_are_listed_with_their_members() {
    let text = listed(Listing::Groups, Some("%desc")).unwrap();
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["%desc", "2", "open", "read"]);
    assert_eq!(listed(Listing::Groups, Some("desc")).unwrap(), text);
    let requests = listed(Listing::Groups, Some("%io_uring")).unwrap();
    assert!(requests.starts_with("%io_uring ") && requests.contains(" io_uring:openat ") && requests.lines().count() == 1, "{requests}");
}

#[test]
fn tables_are_found_by_their_names_and_constants() {
    let line = listed(Listing::Tables, Some("open*")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["open_flags", "2", "flags", "asm-generic/fcntl.h"]);
    let whole = listed(Listing::Tables, Some("open_flags")).unwrap();
    assert!(whole.ends_with("    0x40               O_CREAT\n    0x80               O_EXCL\n"), "{whole}");
    let constant = listed(Listing::Tables, Some("O_CREAT")).unwrap();
    assert_eq!(constant.split_whitespace().collect::<Vec<_>>(), ["O_CREAT", "0x40", "open_flags", "asm-generic/fcntl.h"]);
}

#[test]
fn structs_are_listed_with_the_offsets_of_their_members() {
    let line = listed(Listing::Tables, Some("sp*")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["span", "2", "struct", "linux/span.h"]);
    let whole = listed(Listing::Everything, Some("span")).unwrap();
    let expected = "    bytes     x86_64 16, i386 8, x32 16, aarch64 16\n    at 0      base: u64/bytes[len]\n    at 8      len: u64\n    in i386: base 0, len 4\n    \
                    lines     have base, len if it is not 0; with --full, all members\n";
    assert!(whole.contains(&format!("{line}{expected}")), "{whole}");
}

#[test]
fn the_object_of_a_syscall_has_typed_arguments() {
    let expected = json!({
        "type": "syscall",
        "name": "read",
        "event": "syscalls:sys_enter_read",
        "numbers": {"aarch64": 63, "i386": 3, "x32": 0, "x86_64": 0},
        "groups": ["%desc"],
        "arguments": [
            {"name": "fd", "kind": "fd", "flow": "in"},
            {"name": "buf", "kind": "bytes", "length": {"returned": true}, "flow": "out", "written": ["succeeded"]},
            {"name": "count", "kind": "size", "flow": "in"}
        ],
        "returns": {"kind": "size"},
        "does": "splice"
    });
    assert_eq!(objects(Listing::Syscalls, "r*"), [expected]);
    let writev = &objects(Listing::Syscalls, "writev")[0];
    let vec = json!({"name": "vec", "kind": "structs", "struct": "span", "length": {"argument": "vlen"}, "flow": "in"});
    assert_eq!(writev["arguments"][1], vec);
    let flags = json!({"name": "flags", "kind": "table", "table": "open_flags", "flow": "in"});
    assert_eq!(objects(Listing::Syscalls, "open")[0]["arguments"][1], flags);
}

#[test]
fn the_objects_of_groups_tables_and_structs_are_complete() {
    assert_eq!(objects(Listing::Groups, "%desc"), [json!({"type": "group", "name": "%desc", "syscalls": ["open", "read"]})]);
    let constants = json!([{"name": "O_CREAT", "value": 0x40}, {"name": "O_EXCL", "value": 0x80}]);
    let header = "asm-generic/fcntl.h";
    let table = json!({"type": "table", "name": "open_flags", "kind": "flags", "bits": 32, "headers": [header], "constants": constants});
    assert_eq!(objects(Listing::Tables, "open*"), [table]);
    let constant = json!({"type": "constant", "name": "O_CREAT", "value": 0x40, "table": "open_flags", "headers": [header]});
    assert_eq!(objects(Listing::Tables, "O_CR*"), [constant]);
    let span = &objects(Listing::Tables, "span")[0];
    assert_eq!((&span["sizes"]["i386"], &span["source"]), (&json!(8), &json!("linux/span.h")));
    assert_eq!(span["brief"]["x86_64"], json!([{"name": "base"}, {"name": "len", "not_zero": "len"}]));
    let number = |bits: u32| json!({"bits": bits, "signed": false});
    let mut base = number(32);
    (base["meaning"], base["length"]) = (json!({"kind": "bytes"}), json!({"member": "len"}));
    assert_eq!(
        span["members"]["i386"],
        json!([{"name": "base", "offset": 0, "number": base}, {"name": "len", "offset": 4, "number": number(32)}])
    );
    assert_eq!(span["members"]["x86_64"][1], json!({"name": "len", "offset": 8, "number": number(64)}));
}

#[test]
fn a_pattern_without_a_match_gets_similar_names() {
    assert_eq!(listed(Listing::Syscalls, Some("opne")).unwrap_err(), "no syscall matches `opne`; similar: open");
    let error = listed(Listing::Everything, Some("zzzz\n")).unwrap_err();
    assert!(error.starts_with("no syscall, group, table, struct or event matches `zzzz\\n` (events: tracefs is not mounted"), "{error}");
    assert!(listed(Listing::Events, None).unwrap_err().starts_with("tracefs is not mounted"));
    // If something else matches, an unreadable tracefs is a remark and not an error.
    assert!(
        listed(Listing::Everything, Some("open"))
            .unwrap()
            .ends_with("# no events: tracefs is not mounted, and only root can use it without a mount: run rtrace as root\n")
    );
}

#[test]
#[ignore = "needs root and tracefs"]
fn events_of_this_kernel_are_listed() {
    let catalog = Catalog { syscalls: ROWS, tables: &[], structs: &[], tracefs: Tracefs::find() };
    let listed = |what, pattern| find(what, Some(pattern), &catalog).map(|found| String::from_utf8(text::lines(&found).unwrap()).unwrap());
    assert_eq!(listed(Listing::Events, "sched:sched_switch").unwrap(), "sched:sched_switch\n");
    assert!(listed(Listing::Events, "sched").unwrap().lines().count() > 10);
    let wrong = listed(Listing::Events, "sched_swich").unwrap_err().to_string();
    assert!(wrong.starts_with("no event matches `sched_swich`; similar: sched_switch"), "{wrong}");
    // A syscall that has an event but no row is listed too.
    assert!(listed(Listing::Syscalls, "clos*").unwrap().starts_with("close "));
    let read = listed(Listing::Syscalls, "read").unwrap();
    assert!(read.contains("syscalls:sys_enter_read, this kernel has it"), "{read}");
}
