use super::*;
use crate::beauty::row::{Groups, Return, Special};
use crate::request::select::parse_list;

const fn row(name: &'static str, event: &'static str, nr: u32, groups: Groups) -> Syscall {
    Syscall {
        name,
        event,
        numbers: [Some(nr), None, None, None],
        args: &[],
        returns: Return::Int,
        groups,
        does: Special::Plain,
        variants: &[],
    }
}

static ROWS: [Syscall; 9] = [
    row("read", "read", 0, Groups::DESC),
    row("open", "open", 2, Groups::FILE),
    row("close", "close", 3, Groups::DESC),
    row("stat", "newstat", 4, Groups::FILE.union(Groups::STAT)),
    row("pread64", "pread64", 17, Groups::DESC),
    row("umount2", "umount", 166, Groups::FILE),
    row("epoll_wait", "epoll_wait", 232, Groups::DESC),
    row("openat", "openat", 257, Groups::FILE.union(Groups::DESC)),
    row("newfstatat", "newfstatat", 262, Groups::FILE),
];
static OTHERS: [(Abi, u32, &str); 2] = [(Abi::I386, 102, "socketcall"), (Abi::I386, 22, "oldumount")];

fn resolved(lists: &[&str], syscalls: Option<bool>) -> Result<Selection, String> {
    let items: Vec<Item> = lists.iter().enumerate().flat_map(|(list, text)| parse_list(text, list).unwrap()).collect();
    resolve(&items, syscalls, &ROWS, &OTHERS)
}

fn names(lists: &[&str]) -> Vec<&'static str> {
    let selection = resolved(lists, None).unwrap();
    (0..ROWS.len()).filter(|row| selection.rows[*row]).map(|row| ROWS[row].name).collect()
}

#[test]
fn names_globs_groups_and_regexes_are_combined() {
    assert_eq!(names(&["open*"]), ["open", "openat"]);
    assert_eq!(names(&["%file,!open"]), ["stat", "umount2", "openat", "newfstatat"]);
    assert_eq!(names(&["close", "/^e.*t$/"]), ["close", "epoll_wait"]);
    assert_eq!(names(&["newstat"]), ["stat"]);
}

#[test]
fn a_list_that_begins_with_an_exclusion_starts_with_all_syscalls() {
    assert_eq!(names(&["!%file", "!read"]), ["close", "pread64", "epoll_wait"]);
    let selection = resolved(&["!read,!socketcall"], None).unwrap();
    assert!(selection.unknown);
    assert_eq!(selection.others, [(Abi::I386, 22)]);
}

#[test]
fn exclusions_apply_to_earlier_lists() {
    assert_eq!(names(&["%desc", "!read,!close"]), ["pread64", "epoll_wait", "openat"]);
    assert_eq!(names(&["open,!open*,open"]), ["open"]);
}

#[test]
fn items_for_events_only_deselect_all_syscalls() {
    assert!(resolved(&["sched:*"], None).unwrap().is_empty());
    assert_eq!(resolved(&["sched:*"], Some(true)).unwrap().count(), ROWS.len());
    assert_eq!(resolved(&["sched:*,close"], None).unwrap().count(), 1);
    assert_eq!(resolved(&["sched:*,!close"], None).unwrap().count(), ROWS.len() - 1);
    assert_eq!(resolved(&["!sched:sched_switch"], None).unwrap().count(), ROWS.len());
}

#[test]
fn all_syscalls_are_selected_without_items() {
    let all = resolved(&[], None).unwrap();
    assert_eq!((all.count(), all.unknown, all.others.len()), (ROWS.len(), true, 2));
    assert!(resolved(&[], Some(false)).unwrap().is_empty());
}

#[test]
fn rows_list_the_items_that_select_them() {
    let selection = resolved(&["sched:*,openat/nr=2/", "%desc"], None).unwrap();
    assert_eq!(selection.items[7].as_slice(), [1, 2]);
    assert_eq!(selection.items[0].as_slice(), [2]);
    assert!(selection.items[1].is_empty());
    assert_eq!(resolved(&["openat,!openat,openat"], None).unwrap().items[7].as_slice(), [2]);
}

#[test]
fn c_library_names_are_mapped_with_a_notice() {
    assert_eq!(names(&["stat"]), ["stat", "newfstatat"]);
    assert_eq!(names(&["pread,umount"]), ["pread64", "umount2"]);
    let notices = resolved(&["pread"], None).unwrap().notices;
    assert_eq!(notices, ["pread is traced as pread64: the C library's pread() uses the syscall pread64"]);
    assert_eq!(names(&["open"]), ["open"]);
    let told = "stat is traced as newfstatat, stat: the C library's stat() uses the syscall newfstatat or stat; /^stat$/ selects only the \
                syscall stat";
    let notice = &resolved(&["stat"], None).unwrap().notices[0];
    assert_eq!(*notice, told.replace("newfstatat, stat:", &format!("{}:", names(&["stat"]).join(", "))));
    assert_eq!(names(&["/^stat$/"]), ["stat"]);
}

#[test]
fn syscalls_of_other_abis_are_selected_by_name() {
    let selection = resolved(&["socketcall"], None).unwrap();
    assert_eq!((selection.count(), selection.others), (0, vec![(Abi::I386, 102)]));
}

#[test]
fn errors_suggest_similar_names() {
    assert_eq!(resolved(&["opnat"], None).unwrap_err(), "there is no syscall opnat; similar: openat");
    assert_eq!(resolved(&["file"], None).unwrap_err(), "there is no syscall file; for the group, write %file");
    assert_eq!(resolved(&["!clsoe,xyzzy"], None).unwrap_err(), "there is no syscall clsoe; similar: close\nthere is no syscall xyzzy");
    assert_eq!(resolved(&["foo*"], None).unwrap_err(), "no syscall matches foo* (`rtrace list syscalls` shows all syscalls)");
    assert_eq!(resolved(&["%ipc"], None).unwrap_err(), "no syscall matches %ipc (`rtrace list syscalls` shows all syscalls)");
}
