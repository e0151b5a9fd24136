//! Tests that printed lines are parsed again, with lines from the documentation, from tracefs, and generated ones.

mod arbitrary;

use super::{parse, parse_file};
use proptest::prelude::*;

/// Lines of rtrace's and of the kernel's documentation, and as tracefs prints them; with the text that rtrace prints
/// for them, if that differs.
const LINES: &[(&str, &str)] = &[
    ("p do_sys_openat2 filename=+0(%si):ustring", ""),
    ("p tcp_sendmsg sk size", ""),
    ("r vfs_read $retval", ""),
    ("f vfs_read%return $retval", ""),
    ("t sched_switch prev->comm:string next_pid=next->pid", ""),
    ("r /bin/bash:readline +0($retval):string", ""),
    ("p ./app:handle req->path:string len", ""),
    ("p ./app:file.c:72", ""),
    ("p getname_flags:72 result->name", ""),
    ("usdt /usr/bin/python3:python:function__entry", ""),
    ("e raw_syscalls.sys_enter nr=$id filename=+8($args):ustring", ""),
    ("u:test u32 count; char[20] msg", ""),
    ("p:myprobe do_sys_open dfd=%ax filename=%dx flags=%cx mode=+4($stack)", ""),
    ("r:myretprobe do_sys_open $retval", ""),
    ("p:kprobes/myprobe do_sys_open dfd=%ax filename=%dx flags=%cx mode=+4($stack)", ""),
    ("r16:kprobes/x vfs_read arg1=$retval", ""),
    ("p:uprobes/p_bash_0x4245c0 /bin/bash:0x00000000004245c0 arg1=%ip", "p:uprobes/p_bash_0x4245c0 /bin/bash:0x4245c0 arg1=%ip"),
    ("p:zfree_entry /bin/zsh:0x46420 %ip %ax", ""),
    ("f:fprobes/myprobe vfs_read count=count pos=pos", ""),
    ("f vfs_read $arg*", ""),
    ("f getname_flags%return $retval->name:string", ""),
    ("e:eprobes/x syscalls.sys_enter_openat file=+0($filename):ustring", ""),
    (
        "e:x syscalls/sys_enter_openat if flags == 0 && filename ~ \"a b\"",
        "e:x syscalls.sys_enter_openat if flags == 0 && filename ~ \"a b\"",
    ),
    ("s:synthetic/name u64 lat; pid_t pid", ""),
    ("s:block_lat pid_t pid; u64 delta; unsigned long[] stack;", "s:block_lat pid_t pid; u64 delta; unsigned long[] stack"),
    ("s:wake char comm[16];u64 lat", "s:wake char[16] comm; u64 lat"),
    (
        "u:user_events/test:persist,multi_format __rel_loc char[] msg; struct mytype myname 20",
        "u:test:persist,multi_format __rel_loc char[] msg; struct mytype myname 20",
    ),
    ("u:empty", ""),
    (
        "p xfs:xfs_trans_alloc+0x10 $stack3:x8 @jiffies:u64 \\5 \\\"text\" -u8(+0(%di)):b4@8/32",
        "p xfs:xfs_trans_alloc+16 $stack3:x8 @jiffies:u64 \\5 \\\"text\" -u8(+0(%di)):b4@8/32",
    ),
    ("p f +-8(%di) +u-0x10(%di)", "p f -8(%di) -u16(%di)"),
    ("p:g/ vfs_open name=+0(+8($arg1)):%pd path=+0($arg1):string[4]", ""),
    ("p vfs_read%return $retval", "r vfs_read $retval"),
    ("p:x do_sys_open a0 +4(sa) s1", "p:x do_sys_open $arg1 +4($stack) $stack1"),
    ("r do_sys_open rv", "r do_sys_open $retval"),
    ("p  0xffffffff81000000\t%ip", "p 0xffffffff81000000 %ip"),
    ("-:kprobes/myprobe", ""),
    ("-:rtrace/", ""),
];

#[test]
fn printed_lines_are_the_parsed_ones() {
    for (line, printed) in LINES {
        let said = parse(line).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(said.to_string(), if printed.is_empty() { *line } else { *printed });
        assert_eq!(parse(&said.to_string()).unwrap(), said, "{line}");
    }
}

#[test]
fn comments_are_skipped_and_lines_are_numbered() {
    let text = "# what I look at\n\np:a vfs_read   # reads\ne:b sched.sched_switch if prev_comm == \"#1\" # one\n-:c\n";
    let lines = parse_file(text).unwrap();
    let lines: Vec<(usize, String)> = lines.into_iter().map(|(number, line)| (number, line.to_string())).collect();
    assert_eq!(lines.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(lines[1].1, "e:b sched.sched_switch if prev_comm == \"#1\"");
    let wrong = parse_file("p:a vfs_read\np:a vfs_read %qx\n").unwrap_err();
    assert_eq!(wrong.line, 2);
    assert!(wrong.to_string().starts_with("line 2: the kernel knows no register `%qx`"), "{wrong}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_printed_tree_is_parsed_back(line in arbitrary::line()) {
        let text = line.to_string();
        prop_assert_eq!(parse(&text), Ok(line.clone()), "{}", text);
        prop_assert_eq!(parse_file(&text), Ok(vec![(1, line)]), "{}", text);
    }

    #[test]
    fn any_parsed_line_is_parsed_back_after_printing(words in prop::collection::vec(arbitrary::word(), 0..8)) {
        let text: String = words.concat();
        if let Ok(line) = parse(&text) {
            prop_assert_eq!(parse(&line.to_string()), Ok(line.clone()), "{:?} was printed as {}", text, line);
        }
        let _ = parse_file(&text);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in any::<String>()) {
        if let Err(wrong) = parse(&text) {
            prop_assert!(text.get(wrong.at.clone()).is_some() && !wrong.to_string().is_empty());
        }
        let _ = parse_file(&text);
    }
}

/// Fragments of which [`arbitrary::word`] builds lines.
fn parts() -> Vec<String> {
    let lines = LINES.iter().flat_map(|(line, _)| line.split_inclusive([' ', ':', '=', '(', ')', '/', '+', '-', '%', '"', '[', ';']));
    lines.map(ToOwned::to_owned).collect()
}
