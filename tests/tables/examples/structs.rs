//! Rows of structs: offsets, brief members, unions, choices, and their faults.

use super::*;

/// Returns the Rust text with these rows of structs. A syscall uses the struct `outer`.
fn structs(rows: &str) -> String {
    let with = format!("{SYSCALLS}mine@500 a:outer -> int\n");
    run(&[("syscalls/a.tbl", &with), ("structs/a.tbl", rows)]).map(|output| output.rust).expect("good")
}

#[test]
fn members_have_the_offsets_of_c() {
    let rust = structs(
        "outer 56 40 48 56 a.h:b  tag:u8  of:inner  flags:u16[3]/open_flags\n  wide:u64  _:u16\n  mask:sigset\n\
         inner 16 8 8 16  base:pointer/bytes[len]  len:word\nsigset 8 8 8 8 align=4 count=bits decoder.sigset\n",
    );
    assert!(
        rust.contains(
            "sizes: [56, 40, 48, 56], counted: LengthUnit::Bytes, copied: CopyMethod::Plain, length_at: None, bytes_read: 0, source: \"a.h:b\""
        ),
        "{rust}"
    );
    let offsets = |name: &str| {
        let begins = format!("StructMember {{ name: {name:?}, offset: ");
        let after = rust.split(&begins).skip(1).map(|rest| rest.split(',').next().unwrap_or_default());
        after.collect::<Vec<_>>().join(" ")
    };
    // In the order of the ABIs; aarch64 uses x86-64's list.
    assert_eq!(
        (offsets("of"), offsets("flags"), offsets("wide"), offsets("mask")),
        ("8 4 4".into(), "24 12 12".into(), "32 20 24".into(), "44 32 36".into())
    );
    let problem = "equal lists are emitted once, and reserved members are not";
    assert_eq!((offsets("len"), offsets("_")), ("8 4".into(), String::new()), "{problem}");
    assert!(rust.contains("StructLayout::Members([&OUTER_IN_X86_64, &OUTER_IN_I386, &OUTER_IN_X32, &OUTER_IN_X86_64])"), "{rust}");
    assert!(rust.contains("big_endian: false, kind: ArgumentKind::Bytes, length: Length::Arg(1) })"), "{rust}");
    assert!(rust.contains("counted: LengthUnit::Bits, copied: CopyMethod::Plain, length_at: None, bytes_read: 0, source: \"\", layout: StructLayout::Decoder(crate::beauty::decoders::sigset)"), "{rust}");
}

#[test]
fn brief_members_have_the_indices_and_places_of_each_abi() {
    let calls = format!("{SYSCALLS}mine@500 a:outer f:open_flags b:other -> int\n");
    let rows = "outer 24 16 24 24 elements=3 brief=c?f&O_DIR,d?a\n brief=b?\n a:u32 b:long c:u32/hex d:u32\nother 4 4 4 4 a:u32\n";
    let rust = run(&[("syscalls/a.tbl", &calls), ("structs/a.tbl", rows)]).map(|output| output.rust).expect("good");
    let list = |abi: &str, wide: &str| {
        format!(
            "static OUTER_BRIEF_IN_{abi}: [BriefMember; 3] = [\n    BriefMember {{ index: 1, shown: Shown::NotZero {{ {wide} }} }},\n    \
             BriefMember {{ index: 2, shown: Shown::If(Condition::If {{ text: \"f&O_DIR\", any: &[BitTest {{ arg: 1, mask: 0x40, \
             comparison: Comparison::SomeBit }}] }}) }},\n    BriefMember {{ index: 3, shown: Shown::NotZero {{ offset: 0, bytes: 4 }} }},\n];\n"
        )
    };
    assert!(rust.contains(&list("X86_64", "offset: 8, bytes: 8")), "{rust}");
    assert!(rust.contains(&list("I386", "offset: 4, bytes: 4")), "{rust}");
    let lists = "&OUTER_BRIEF_IN_X86_64, &OUTER_BRIEF_IN_I386, &OUTER_BRIEF_IN_X86_64, &OUTER_BRIEF_IN_X86_64";
    assert!(rust.contains(&format!("brief: Brief {{ elements: 3, members: Some([{lists}]) }}, choice: None }};")), "{rust}");
    assert!(rust.contains("&OTHER_IN_X86_64]), brief: Brief { elements: 8, members: None }, choice: None };"), "{rust}");
}

#[test]
fn faults_of_brief_name_the_line_and_the_problem() {
    let begin = "structs/a.tbl:1: outer, brief=: ";
    for (row, expected) in [
        ("outer 8 8 8 8 brief=h f:u32 g:u32", "there is no field h in x86_64"),
        ("outer 8 8 8 8 brief=f?h f:u32 g:u32", "there is no field h in x86_64"),
        ("outer 8 8 8 8 brief=f f:u32 g:u32\nouter@i386 e:u32 g:u32", "there is no field f in i386"),
        ("outer 8 8 8 8 brief=f,f? f:u32 g:u32", "f is named twice"),
        ("outer 8 8 8 8 brief=f,g f:u32 g:u32", "all fields are named, which is the default: leave it out"),
        ("outer 4 4 4 4 brief=g? f:u32 g:byte[]", "g has no fixed size, so that it cannot be compared with 0"),
        ("outer 8 8 8 8 brief=f decoder.sigset", "the struct has no fields"),
        ("outer 8 8 8 8 brief=f?x&1 f:u32 g:u32", "there is no argument or field x"),
        ("outer 8 8 8 8 brief=f?at&1 f:u32 g:u32", "the calls that have this struct have the tested argument in different places"),
        ("outer 8 8 8 8 f:inner\ninner 8 8 8 8 brief=f?at&1 f:u32 g:u32", "structs/a.tbl:2: inner, brief=: no call has this struct"),
    ] {
        let calls = format!("{SYSCALLS}mine@500 a:outer at:int -> int\nother@501 at:int a:outer -> int\n");
        let expected = if expected.starts_with("structs/") { expected.to_string() } else { format!("{begin}{expected}") };
        faults(&[("syscalls/a.tbl", &calls), ("structs/a.tbl", row)], &[&expected]);
    }
}

#[test]
fn the_fields_of_a_union_begin_at_one_place() {
    let rust = structs(
        "outer 24 24 24 24 length=size kind:u32 size:u32 a:u64/hex?kind==1 |a:inout u64/ulong?kind==2 |b:inner?kind==3 end:u32 _:u32\n\
         inner 8 8 8 8 of:u32 more:u32\n",
    );
    let offset = |name: &str, rest: &str| rust.contains(&format!("StructMember {{ name: {name:?}, offset: {rest}"));
    assert!(offset(
        "a",
        "8, memory_type: MemoryType::Number(MemoryNumber { bytes: 8, signed: false, big_endian: false, kind: ArgumentKind::Hex"
    ));
    assert!(offset(
        "a",
        "8, memory_type: MemoryType::Number(MemoryNumber { bytes: 8, signed: false, big_endian: false, kind: ArgumentKind::Ulong"
    ));
    assert!(offset("b", "8, memory_type: MemoryType::Struct(&INNER), flow: Flow::In, used: Condition::If { text: \"kind==3\""), "{rust}");
    assert!(offset("end", "16,") && rust.contains("flow: Flow::InOut, used: Condition::If { text: \"kind==2\""), "{rust}");
    assert!(rust.contains("length_at: Some(LengthMember { offset: 4, "), "{rust}");
}

#[test]
fn a_member_may_select_another_struct() {
    let rust = structs("outer 16 16 16 16 of:u16/open_access _:byte[14]\nouter of=O_WRONLY|7 inner\ninner 8 8 8 8 a:u64\n");
    assert!(rust.contains("choice: Some(StructChoice { member: 0, structs: &[(0x1, &INNER), (0x7, &INNER)] }) };"), "{rust}");
    assert!(rust.contains("choice: None };"), "{rust}");
}

#[test]
fn faults_of_struct_rows_name_the_line_and_the_problem() {
    let with = |row: &str| format!("inner 16 8 8 16 base:pointer/bytes[len] len:word\n{row}\n");
    for (row, expected) in [
        ("outer 16 16 16 16 f:u64 g:u8 h:u16", "structs/a.tbl:2: the fields of outer have 12 bytes in i386, not 16"),
        ("outer 24 16 16 24 f:none", "structs/a.tbl:2: outer, f: `none` is neither a type nor a struct"),
        ("outer 24 16 16 24 f:outer", "structs/a.tbl:2: outer, f: outer contains itself"),
        ("outer 8 4 4 8 f:pointer/bytes", "structs/a.tbl:2: outer, f: `bytes` needs a [LENGTH]"),
        ("outer 8 4 4 8 f:pointer/bytes[n]", "structs/a.tbl:2: outer, f: there is no field n"),
        ("outer 8 4 4 8 f:pointer/bytes[ret]", "structs/a.tbl:2: outer, f: the length of a field cannot be the return value of the call"),
        ("outer 8 4 4 8 f:word/none", "structs/a.tbl:2: outer, f: `none` is not a basic kind, a table or a struct"),
        ("outer 8 8 8 8 f:u32 f:u32", "structs/a.tbl:2: outer, f: another field has the same name"),
        ("outer 8 8 8 8 length=g f:u32 g:u16", "structs/a.tbl:2: length=g: outer has no such field of 32 bits in its first 256 bytes"),
        (
            "outer 16 12 16 16 a:u32 f:u32 |g:u64",
            "structs/a.tbl:2: outer, g: the fields of its union begin at 4, which is not a multiple of 8",
        ),
        ("outer 8 8 8 8 f:u32 |g:u32 f:u32", "structs/a.tbl:2: outer, f: another field has the same name"),
        ("outer 8 8 8 8 asks=g f:u64", "structs/a.tbl:2: asks=g: outer has no field of this name"),
        ("outer 8 8 8 8 f:out u32/hex?h&1 g:u32", "structs/a.tbl:2: outer, f: there is no argument or field h"),
        ("outer 8 8 8 8 f:u64\nouter g=1 inner", "structs/a.tbl:3: outer: there is no field g that is a number"),
        ("outer 8 8 8 8 f:u64\nouter f=1 none", "structs/a.tbl:3: outer: there is no struct none"),
        ("outer 8 8 8 8 f:u64\nouter f=1 inner", "structs/a.tbl:3: outer: inner is larger than outer in x86_64"),
        ("outer 16 16 16 16 f:u64 g:u64\nouter f=1|X inner", "structs/a.tbl:3: outer: X is not a number, and f has no table"),
        ("outer 16 16 16 16 f:u64 g:u64\nouter f=1 inner\nouter f=1 inner", "structs/a.tbl:4: outer: 1 already selects inner"),
        ("outer 16 16 16 16 f:u64 g:u64\nouter f=1 inner\nouter g=2 inner", "structs/a.tbl:4: outer: another field than g selects"),
        ("outer 8 8 8 8 decoder.none", "structs/a.tbl:2: decoder.none is not a function of src/beauty/decoders/"),
        ("outer 4 4 4 4 u16/hex", "structs/a.tbl:2: outer has 2 bytes in x86_64, not 4"),
    ] {
        let call = format!("{SYSCALLS}mine@500 a:outer b:inner -> int\n");
        let faults = run(&[("syscalls/a.tbl", &call), ("structs/a.tbl", &with(row))]).err().unwrap_or_default();
        assert!(faults.iter().any(|fault| fault.to_string().starts_with(expected)), "{faults:#?}\nexpected: {expected}");
    }
}
