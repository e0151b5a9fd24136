//! Conditions on parts of an argument's value: members of structs, elements of arrays, and bytes. Only the BPF engine
//! copies the memory that has them.

use crate::machine::Machine;
use crate::trace::{plain, shell, trace};

/// Returns the lines of calls with this name.
fn lines<'a>(text: &'a str, call: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(&format!("{call}("))).collect()
}

fn traced(machine: &Machine, events: &str, filter: &str, script: &str) -> String {
    trace(machine, &["--engine", "bpf", "-e", events, "--filter", filter], &["sh", "-c", script]).succeeded().text
}

/// Checks that one call matches the filter, that its line has this text, and that the negated filter does not show that
/// call.
fn assert_only(machine: &Machine, call: &str, filter: &str, script: &str, text: &str) {
    let shown = traced(machine, call, filter, script);
    let found = lines(&shown, call);
    assert!(matches!(&found[..], [one] if one.contains(text)), "{filter}: {shown}");
    let others = traced(machine, call, &format!("!({filter})"), script);
    assert!(!others.contains(text), "!({filter}): {others}");
}

#[test]
fn a_filter_compares_members_of_structs_that_the_kernel_writes() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = "cd $(mktemp -d); printf 12345 > five; printf 1234567 > seven; stat five seven missing > /dev/null 2>&1; rm -r $PWD";
    assert_only(&machine, "statx", "buffer.stx_size == 5", script, "\"five\"");
    assert_only(&machine, "statx", "filename !~ \"/*\" && buffer.stx_size > 6", script, "\"seven\"");
    // The kernel writes nothing when the call fails, so no comparison with a member is true.
    let failed = traced(&machine, "statx", "!(buffer.stx_size >= 0)", script);
    assert!(matches!(&lines(&failed, "statx")[..], [one] if one.contains("\"missing\"") && one.contains("ENOENT")), "{failed}");
}

#[test]
fn a_filter_compares_members_of_structs_that_the_program_passes() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = "sleep 0.01; sleep 0.03";
    assert_only(&machine, "clock_nanosleep", "rqtp.tv_nsec > 20000000", script, "tv_nsec: 30000000");
    let run =
        trace(&machine, &["--engine", "bpf", "-v", "-e", "clock_nanosleep", "--filter", "rqtp.tv_nsec > 20000000"], &["sh", "-c", script])
            .succeeded();
    let decided = "plan: decided in the kernel, for 1 syscalls: rqtp.tv_nsec > 20000000";
    assert!(run.stderr.contains(decided), "{}", run.stderr);
}

#[test]
fn a_filter_compares_one_element_of_an_array_or_any() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = "/bin/echo one 2; /bin/echo three four; true";
    assert_only(&machine, "execve", "argv[1] == \"three\"", script, "\"three\", \"four\"");
    assert_only(&machine, "execve", "argv[*] == \"2\"", script, "\"one\", \"2\"");
    assert_only(&machine, "execve", "argv[2] ~ \"f*\"", script, "\"three\", \"four\"");
}

/// Lines show at most 32 elements of an array.
#[test]
fn a_filter_compares_elements_that_lines_do_not_show() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let full = machine.path("full");
    std::fs::create_dir(&full).expect("the test's directory is writable");
    (0..60).for_each(|at| std::fs::write(format!("{full}/{at}"), "").expect("the directory is writable"));
    assert_only(&machine, "getdents64", "dirent[61].d_ino > 0", &format!("ls {full} > /dev/null; true"), "62 entries");
}

#[test]
fn a_filter_compares_bytes_with_patterns() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = "echo hay > /dev/null; echo a needle in it > /dev/null; echo hay again > /dev/null";
    assert_only(&machine, "write", "buf ~ \"*needle*\"", script, "a needle in it");
    assert_only(&machine, "write", "buf == \"hay\\n\"", script, "\"hay\\n\"");
}

/// If only the beginning of the bytes was copied, it may decide the comparison.
#[test]
fn the_beginning_of_long_bytes_decides_a_comparison_if_the_rest_cannot_change_it() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = "printf 'abcdefghij%0100000d' 1 > /dev/null";
    let shown = traced(&machine, "write", "buf ~ \"abc*\"", script);
    assert!(lines(&shown, "write").iter().any(|line| line.contains("\"abcdefghij")), "{shown}");
    let run = trace(&machine, &["--engine", "bpf", "-e", "write", "--filter", "buf ~ \"*1\""], &["sh", "-c", script]).succeeded();
    assert_eq!(lines(&run.text, "write").iter().filter(|line| line.contains("abcdefghij")).count(), 0, "{}", run.text);
    assert!(run.stderr.contains("were not shown because values that the filter needs are not known"), "{}", run.stderr);
}

#[test]
fn a_filter_compares_members_of_socket_addresses() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let script = "exec bash -c 'exec 3<> /dev/tcp/127.0.0.1/7; exec 3<> /dev/tcp/127.0.0.2/9' 2> /dev/null";
    let run = shell(&machine, &format!("$rtrace --engine bpf -o - -e connect --filter 'uservaddr.sin_port == 9' sh -c \"{script}\""));
    let found = lines(&run.stdout, "connect");
    assert!(matches!(&found[..], [one] if one.contains("127.0.0.2")), "{} {}", run.stdout, run.stderr);
    let by_address = "uservaddr.sin_addr == \\\"127.0.0.1\\\"";
    let run = shell(&machine, &format!("$rtrace --engine bpf -o - -e connect --filter \"{by_address}\" sh -c \"{script}\""));
    let found = lines(&run.stdout, "connect");
    assert!(matches!(&found[..], [one] if one.contains("127.0.0.1")), "{} {}", run.stdout, run.stderr);
}

#[test]
fn a_mistake_in_a_path_into_a_value_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    for (filter, sentence) in [
        (
            "statbuf.st_sice > 1",
            "rtrace: --filter 'statbuf.st_sice > 1': no traced syscall or event has an argument or field `statbuf.st_sice`; \
             similar: statbuf.st_size",
        ),
        ("flag.x == 1", "rtrace: --filter 'flag.x == 1': no traced syscall or event has an argument or field `flag.x`"),
        ("statbuf.st_size == \"x\"", "rtrace: --filter 'statbuf.st_size == \"x\"': statbuf.st_size is a number and cannot be compared"),
        ("statbuf[x] == 1", "`[x]` is not an element; write [0] for the first one and so on, or [*] for any"),
        ("statbuf[1 == 1", "this bracket is not closed"),
    ] {
        let run = plain(&machine, &["-e", "newfstatat", "--filter", filter, "--", "echo", "started"]);
        assert_eq!((run.status, run.stdout.as_str()), (125, ""), "{filter}: {}", run.stderr);
        assert!(run.stderr.contains(sentence), "{filter}: {}", run.stderr);
    }
}

#[test]
fn where_no_memory_is_copied_calls_whose_filter_cannot_be_decided_are_counted() {
    let Some(machine) = Machine::shared() else { return };
    let run = trace(&machine, &["--engine", "tracepoint", "-e", "write", "--filter", "buf ~ \"*needle*\""], &["sh", "-c", "echo a needle"])
        .succeeded();
    assert_eq!(lines(&run.text, "write").len(), 0, "{}", run.text);
    assert!(run.stderr.contains("1 calls were not shown because values that the filter needs are not known"), "{}", run.stderr);
}
