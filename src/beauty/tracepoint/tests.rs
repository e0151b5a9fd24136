use super::*;
use crate::kernel::syscall_event::tests::{OPENAT_WITH_COPY, openat_record};
use std::sync::Arc;

fn decode(format: &str, raw: &[u8]) -> Vec<(String, Value<'static>)> {
    let format = Format::parse(format).unwrap();
    let decoder = TracepointDecoder::new(&format, None, Abi::X86_64, 8);
    let comm = |pid| (pid == 42).then(|| Arc::from(&b"cat"[..]));
    decoder.decode(raw, &comm).into_iter().map(|(name, value)| (name.to_owned(), owned(value))).collect()
}

fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Str(text) => Value::Str(Text { bytes: text.bytes.into_owned().into(), ..text }),
        Value::Array(list) => Value::Array(ArrayValue { items: list.items.into_iter().map(owned).collect(), ..list }),
        Value::Pid { pid, translated, comm } => Value::Pid { pid, translated, comm },
        Value::Named(named) => Value::Named(named),
        Value::Char(byte) => Value::Char(byte),
        Value::Ip(address) => Value::Ip(address),
        Value::UnreadText => Value::UnreadText,
        Value::Int(n) => Value::Int(n),
        Value::Uint(n) => Value::Uint(n),
        Value::Hex(n) => Value::Hex(n),
        Value::Octal(n) => Value::Octal(n),
        Value::Address(n) => Value::Address(n),
        Value::Unread(n) => Value::Unread(n),
        Value::Code(n) => Value::Code(n),
        Value::Signal(n) => Value::Signal(n),
        Value::Dev { major, minor } => Value::Dev { major, minor },
        Value::Fd { fd, .. } => Value::Fd { fd, file: None },
        Value::DirFd { fd, .. } => Value::DirFd { fd, file: None },
        Value::Flags { table, bits } => Value::Flags { table, bits },
        Value::Symbol { table, value } => Value::Symbol { table, value },
        Value::Unknown => Value::Unknown,
        other => panic!("a tracepoint has no {other:?}"),
    }
}

fn string(text: &str) -> Value<'static> {
    Value::Str(Text { bytes: text.as_bytes().to_vec().into(), ..Text::default() })
}

fn one<'v>(values: &'v [(String, Value<'static>)], name: &str) -> &'v Value<'static> {
    &values.iter().find(|(field, _)| field == name).unwrap().1
}

#[test]
fn sched_switch_has_comms_pids_and_the_state_as_text() {
    let mut raw = vec![0u8; 64];
    raw[8..11].copy_from_slice(b"cat");
    raw[24..28].copy_from_slice(&42i32.to_le_bytes());
    raw[28..32].copy_from_slice(&120i32.to_le_bytes());
    raw[32] = 2;
    raw[40..44].copy_from_slice(b"dog\0");
    let values = decode(include_str!("../../kernel/fixtures/sched_switch.format"), &raw);
    assert_eq!(values.len(), 7);
    assert_eq!(*one(&values, "prev_comm"), string("cat"));
    assert_eq!(*one(&values, "prev_pid"), Value::Pid { pid: 42, translated: None, comm: Some(Arc::from(&b"cat"[..])) });
    assert_eq!(*one(&values, "prev_prio"), Value::Int(120));
    let Value::Named(state) = one(&values, "prev_state") else { panic!("{values:?}") };
    assert_eq!((state.to_string().as_str(), state.number, state.rest), ("D", 2, 0));
    assert_eq!(*one(&values, "next_pid"), Value::Pid { pid: 0, translated: None, comm: None });
}

#[test]
fn a_dynamic_string_beyond_the_record_is_unknown() {
    let mut raw = vec![0u8; 20];
    raw[8..12].copy_from_slice(&((8u32 << 16) | 20).to_le_bytes());
    raw[12] = 42;
    raw.extend_from_slice(b"/bin/ls\0");
    let values = decode(include_str!("../../kernel/fixtures/sched_process_exec.format"), &raw);
    assert_eq!(*one(&values, "filename"), string("/bin/ls"));
    raw.truncate(24);
    let values = decode(include_str!("../../kernel/fixtures/sched_process_exec.format"), &raw);
    assert_eq!(*one(&values, "filename"), Value::Unknown);
}

#[test]
fn raw_sys_enter_has_an_array_of_registers() {
    let mut raw = vec![0u8; 64];
    raw[8] = 1;
    raw[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    let values = decode(include_str!("../../kernel/fixtures/sys_enter.format"), &raw);
    assert_eq!(*one(&values, "id"), Value::Int(1));
    let Value::Array(ArrayValue { items, more: false, .. }) = one(&values, "args") else { panic!("{values:?}") };
    assert_eq!((items.len(), &items[0]), (6, &Value::Hex(u64::MAX)));
}

#[test]
fn sys_enter_openat_has_the_string_that_the_kernel_copied() {
    let raw = openat_record(b"/etc/x\0");
    let old = decode(include_str!("../../kernel/fixtures/sys_enter_openat.format"), &raw);
    assert_eq!(old.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["dfd", "filename", "flags", "mode"]);
    assert_eq!(*one(&old, "dfd"), Value::DirFd { fd: -100, file: None });
    assert_eq!(*one(&old, "filename"), Value::Address(0x7ffc_1234_5678));
    assert_eq!(*one(&old, "mode"), Value::Octal(0o644));
    let new = decode(OPENAT_WITH_COPY, &raw);
    assert_eq!(new.len(), 4);
    assert_eq!(*one(&new, "filename"), string("/etc/x"));
    assert_eq!(*one(&decode(OPENAT_WITH_COPY, &openat_record(b"")), "filename"), Value::Unread(0x7ffc_1234_5678));
    let cut = decode(OPENAT_WITH_COPY, &openat_record(b"/etc/pas...\0"));
    assert_eq!(*one(&cut, "filename"), Value::Str(Text { bytes: b"/etc/pas".to_vec().into(), cut: true, ..Text::default() }));
}

#[test]
fn sys_exit_has_a_signed_return_value() {
    let mut raw = vec![0u8; 24];
    raw[16..24].copy_from_slice(&(-2i64).to_le_bytes());
    assert_eq!(decode(include_str!("../../kernel/fixtures/sys_exit_openat.format"), &raw), [("ret".to_owned(), Value::Int(-2))]);
}

#[test]
fn numbers_are_decoded_by_type_and_print_format() {
    let format = "name: x\nID: 1\n\tfield:dev_t dev;offset:0;size:4;signed:0;\n\tfield:u8 addr[4];offset:4;size:4;signed:0;\n\
                  \tfield:void * p;offset:8;size:8;signed:0;\n\tfield:u32 mask;offset:16;size:4;signed:0;\n\tfield:int sig;offset:20;size:4;signed:1;\n\
                  \nprint fmt: \"%d,%d %pI4 %p %x\", REC->dev >> 20, REC->dev & ((1U << 20) - 1), REC->addr, REC->p, REC->mask\n";
    let mut raw = vec![0u8; 24];
    raw[0..4].copy_from_slice(&((8u32 << 20) | 3).to_le_bytes());
    raw[4..8].copy_from_slice(&[10, 0, 0, 1]);
    raw[16] = 255;
    raw[20] = 9;
    let values = decode(format, &raw);
    assert_eq!(*one(&values, "dev"), Value::Dev { major: 8, minor: 3 });
    assert_eq!(*one(&values, "addr"), Value::Ip([10, 0, 0, 1].into()));
    assert_eq!(*one(&values, "p"), Value::Address(0));
    assert_eq!(*one(&values, "mask"), Value::Hex(255));
    assert_eq!(*one(&values, "sig"), Value::Signal(9));
}

#[test]
#[ignore = "needs root and tracefs"]
fn any_bytes_are_decoded_as_any_event_of_this_kernel() {
    let tracefs = crate::kernel::tracefs::Tracefs::find().unwrap();
    let noise: Vec<u8> = (0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (event, format) in crate::kernel::tracefs::tests::formats(&tracefs) {
        let decoder = TracepointDecoder::new(&format, None, Abi::X86_64, 63);
        let shown = format.own_fields().filter(|field| !field.is_internal()).count();
        for length in [0, 7, 8, 16, 33, 64, 4096] {
            assert_eq!(decoder.decode(&noise[..length], &|_| None).len(), shown, "{event}");
        }
        // All fields of a record of zeros that is long enough are known.
        let zeros = vec![0u8; 4096];
        assert!(!decoder.decode(&zeros, &|_| None).iter().any(|(_, value)| *value == Value::Unknown), "{event}");
    }
}

/// The format file of a uprobe with every kind of argument (Linux 6.18).
const PROBE: &str = "name: handle\nID: 2326\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc char[] s;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:s32 n;\toffset:20;\tsize:4;\tsigned:1;\n\
    \tfield:u64 a;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:u8 arr[];\toffset:32;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc char[][2] sa;\toffset:36;\tsize:8;\tsigned:1;\n\
    \tfield:u8 c;\toffset:44;\tsize:1;\tsigned:0;\n\
    \tfield:u8 ca[];\toffset:45;\tsize:3;\tsigned:0;\n\
    \tfield:u32 flags;\toffset:48;\tsize:4;\tsigned:0;\n\
    \tfield:u32 x[];\toffset:52;\tsize:8;\tsigned:0;\n\
    \tfield:u64 at;\toffset:60;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"(%lx) s=\\\"%s\\\" n=%d a=0x%Lx arr={%u,%u,%u,%u} sa={\\\"%s\\\",\\\"%s\\\"} c='%c' ca={'%c','%c','%c'} flags=0x%x x={0x%x,0x%x} at=%pS\", \
    REC->__probe_ip, __get_str(s), REC->n, REC->a, REC->arr[0], REC->arr[1], REC->arr[2], REC->arr[3], __get_str(sa[0]), __get_str(sa[1]), REC->c, \
    REC->ca[0], REC->ca[1], REC->ca[2], REC->flags, REC->x[0], REC->x[1], (void *)REC->at\n";

#[test]
fn the_arguments_of_a_probe_have_the_types_of_its_definition() {
    let mut raw = vec![0u8; 72];
    // The kernel could not read `s` and the second string of `sa`.
    raw[16..20].copy_from_slice(&68u32.to_le_bytes());
    raw[20..24].copy_from_slice(&(-3i32).to_le_bytes());
    raw[24] = 0x7f;
    raw[32..36].copy_from_slice(&[1, 2, 3, 4]);
    raw[36..40].copy_from_slice(&(68u32 | 3 << 16).to_le_bytes());
    raw[40..44].copy_from_slice(&70u32.to_le_bytes());
    raw[44..47].copy_from_slice(b"xab");
    (raw[47], raw[48], raw[52], raw[56]) = (0, 0x42, 0x10, 0xff);
    raw[60..68].copy_from_slice(&u64::MAX.to_le_bytes());
    raw[68..72].copy_from_slice(b"hi\0\0");
    let format = Format::parse(PROBE).unwrap();
    let decoder = TracepointDecoder::new(&format, Some("openat"), Abi::X86_64, 63);
    let values: Vec<(String, Value<'static>)> =
        decoder.decode(&raw, &|_| None).into_iter().map(|(name, value)| (name.to_owned(), owned(value))).collect();
    let unread = Value::UnreadText;
    assert_eq!(one(&values, "s"), &unread);
    assert_eq!(one(&values, "sa"), &Value::Array(ArrayValue { items: vec![string("hi"), unread], ..ArrayValue::default() }));
    assert_eq!((one(&values, "n"), one(&values, "a")), (&Value::Int(-3), &Value::Hex(0x7f)));
    assert_eq!(one(&values, "arr"), &Value::Array(ArrayValue { items: (1..=4).map(Value::Uint).collect(), ..ArrayValue::default() }));
    assert_eq!(one(&values, "c"), &Value::Char(b'x'));
    assert_eq!(one(&values, "ca"), &string("ab"));
    assert_eq!(one(&values, "x"), &Value::Array(ArrayValue { items: vec![Value::Hex(0x10), Value::Hex(0xff)], ..ArrayValue::default() }));
    assert_eq!(one(&values, "at"), &Value::Code(u64::MAX));
    let Value::Flags { bits: 0x42, table } = one(&values, "flags") else { panic!("openat's flags are known") };
    assert_eq!(table.name, "open_flags");
    assert_eq!(values.len(), 10, "the address of the probe is not an argument");
}
