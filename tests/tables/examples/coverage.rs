//! The list of what is decoded, for small rows.

use super::*;

/// Returns the lines of a block of the list, with single blanks.
fn block(list: &str, name: &str) -> Vec<String> {
    let begin = list.find(&format!("\n{name}\n")).unwrap_or_else(|| panic!("{name} is not in {list}"));
    let lines = list[begin + 1..].lines().skip(1).take_while(|line| line.starts_with(' '));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn each_argument_is_listed_with_what_is_known_of_it() {
    let syscalls = "open name:path flags:open_flags count:uint buf:out bytes[count] plain:number hex -> fd\n\
                    read fd:uint at:address of:pointer zero:optional hex fits:hex?never -> size\n";
    let list = run(&[("syscalls/a.tbl", syscalls)]).expect("good").coverage;
    assert_eq!(
        block(&list, "open"),
        ["name decoded path", "flags decoded open_flags", "count number uint", "buf bytes out bytes", "plain number hex"]
    );
    assert_eq!(block(&list, "read"), ["fd by type uint", "at address address", "of opaque pointer", "zero number hex", "fits unused hex"]);
    let totals = list.lines().find(|line| line.starts_with("arguments of syscalls")).expect("the totals");
    let numbers: Vec<&str> = totals.split_whitespace().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit())).collect();
    assert_eq!(numbers, ["2", "3", "1", "1", "0", "1", "1", "9"]);
}

#[test]
fn each_value_that_selects_arguments_has_a_line() {
    let syscalls = "open name:path flags:open_flags -> fd\nread op:open_access arg:hex -> size\nread op=O_RDONLY arg:path\n";
    let list = run(&[("syscalls/a.tbl", syscalls)]).expect("good").coverage;
    assert_eq!(
        block(&list, "read"),
        ["op decoded open_access", "arg by command", "op=O_RDONLY arg decoded path", "op=O_WRONLY arg by type hex"]
    );
}

#[test]
fn a_struct_is_as_decoded_as_its_best_member() {
    let syscalls = "open name:a flags:open_flags -> fd\nread x:b y:c z:d -> size\n";
    let structs = "a 8 8 8 8 f:u32 g:u32/open_flags\nb 8 8 8 8 f:u32 g:u32\nc 8 8 8 8 numbers f:u32 g:u32\nd 8 8 8 8\n";
    let list = run(&[("syscalls/a.tbl", syscalls), ("structs/a.tbl", structs)]).expect("good").coverage;
    assert_eq!(block(&list, "open")[0], "name decoded a");
    assert_eq!(block(&list, "read"), ["x by type b", "y number c", "z opaque d"]);
    assert_eq!(block(&list, "struct a, 8 bytes: 1 decoded, 1 by type"), ["f by type"]);
    assert_eq!(block(&list, "struct c, 8 bytes: 2 number"), [""; 0]);
}

#[test]
fn a_kind_with_a_meaning_is_no_plain_number() {
    let rows = "open name:number path flags:open_flags -> fd\nread -> size\n";
    faults(&[("syscalls/a.tbl", rows)], &["syscalls/a.tbl:1: open, name: `number` is for kinds that are only types"]);
}
