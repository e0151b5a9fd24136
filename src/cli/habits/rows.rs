//! The habits, one row each: what is typed, how it is recognized, what is said, and what does here what was meant.

use super::{Habit, When};

/// An option that rtrace does not have, by any of its names.
const fn option(names: &'static [&'static str], typed: &'static str, says: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Option(names), typed, says, instead }
}

/// An item of `-e` that begins like this.
const fn item(beginnings: &'static [&'static str], typed: &'static str, says: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Item(beginnings), typed, says, instead }
}

/// An option of rtrace's whose value shows that another tool's is meant.
const fn value(option: &'static str, is: fn(&str) -> bool, typed: &'static str, says: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Value(option, is), typed, says, instead }
}

/// An option of rtrace's that takes no value, with a word behind it that is one for another tool.
const fn word(option: &'static str, is: fn(&str) -> bool, typed: &'static str, says: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Word(option, is), typed, says, instead }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn begins_without_digit(word: &str) -> bool {
    !word.starts_with(|c: char| c.is_ascii_digit())
}

fn is_no_list_of_pids(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_alphabetic() || c == '/')
}

fn is_no_kind_of_fault(word: &str) -> bool {
    !["all", "maj", "min"].contains(&word)
}

fn is_sort_key(word: &str) -> bool {
    const KEYS: [&str; 16] = [
        "time",
        "time-percent",
        "time-total",
        "total-time",
        "min-time",
        "max-time",
        "avg-time",
        "calls",
        "count",
        "errors",
        "error",
        "name",
        "syscall",
        "syscall-name",
        "none",
        "nothing",
    ];
    KEYS.contains(&word)
}

/// `-tt` and longer, as one letter takes the rest for its value.
fn is_more_t(word: &str) -> bool {
    word == "t" || word == "tt"
}

/// All habits, in the order in which they are tried.
pub const HABITS: &[Habit] = &[
    // strace's letters that rtrace does not have, or has with another meaning.
    option(
        &["-A", "--output-append-mode"],
        "-A -o out ls",
        "-A appends in strace; rtrace keeps an old FILE as FILE.old; to append, write -o '|cat >> FILE'",
        "-o |cat ls",
    ),
    option(&["-b", "--detach-on"], "-b execve ls", "-b (detach at an execve) has no like in rtrace: leave it out", "ls"),
    option(&["-c", "--summary-only"], "-c ls", "-c is strace's summary; write -s (with the lines: -S)", "-s ls"),
    option(&["-d", "--debug"], "-d ls", "-d is strace's debugging output; -v says what rtrace does and why", "-v ls"),
    option(
        &["-i", "--instruction-pointer"],
        "-i ls",
        "-i prints where each call was made in strace; write --call-graph dwarf --max-stack 1 (perf's -i FILE replays; rtrace has no replay)",
        "--call-graph dwarf --max-stack 1 ls",
    ),
    option(
        &["-I", "--interruptible"],
        "-I 2 ls",
        "-I (whether Ctrl-C is blocked) has no like in rtrace, which never stops the program: leave it out",
        "ls",
    ),
    option(
        &["-k", "--stack-trace"],
        "-k ls",
        "-k is strace's stack trace; write --call-graph dwarf (with source lines: --lines)",
        "--call-graph dwarf ls",
    ),
    option(&["-n", "--syscall-number"], "-n ls", "-n prints numbers of syscalls in strace; `rtrace list NAME` shows them", "ls"),
    option(&["-N", "--arg-names"], "-N ls", "-N prints names of arguments in strace; rtrace always does: leave it out", "ls"),
    option(
        &["-O", "--summary-syscall-overhead"],
        "-O 5 ls",
        "-O takes strace's own time off a summary; rtrace's times are the kernel's: leave it out",
        "-s ls",
    ),
    option(
        &["-P", "--trace-path"],
        "-P /etc/passwd ls",
        "-P is strace's; write --path FILE: calls that name it or have a descriptor open on it",
        "--path /etc/passwd ls",
    ),
    option(
        &["-r", "--relative-timestamps"],
        "-r ls",
        "-r is strace's time since the line before; write --time-format delta",
        "--time-format delta ls",
    ),
    option(
        &["-U", "--summary-columns"],
        "-U count ls",
        "-U chooses the columns of strace's summary; rtrace's -s has the same ones always: leave it out",
        "-s ls",
    ),
    option(
        &["-w", "--summary-wall-clock"],
        "-w ls",
        "-w asks strace's summary for elapsed time; rtrace's -s always gives that: leave it out",
        "-s ls",
    ),
    option(
        &["-x", "--strings-in-hex"],
        "-x ls",
        "-x prints strings in hexadecimal in strace; rtrace escapes what is not printable, as \\x1b: leave it out",
        "ls",
    ),
    option(
        &["-X", "--const-print-style"],
        "-X raw ls",
        "-X says how strace prints constants; rtrace prints names, and what has none as a number: leave it out",
        "ls",
    ),
    option(&["-Y", "--decode-pids"], "-Y ls", "-Y prints names of processes in strace; rtrace always does: leave it out", "ls"),
    option(
        &["-z", "--successful-only"],
        "-z ls",
        "-z shows calls that succeeded in strace; write --filter 'ret >= 0'",
        "--filter ret>=0 ls",
    ),
    option(&["-Z", "--failed-only"], "-Z ls", "-Z shows calls that failed in strace; write --failure", "--failure ls"),
    Habit {
        when: When::Twice("-f"),
        typed: "-ff -o out ls",
        says: "-ff writes a file for each process in strace; write --output-separately (children are always followed)",
        instead: "-o out --output-separately ls",
    },
    word(
        "-s",
        is_number,
        "-s 200 ls",
        "-s is the summary here and takes no number; strace's -s N is --string-limit N",
        "--string-limit 200 ls",
    ),
    word(
        "-a",
        is_number,
        "-a 40 ls",
        "-a is the whole machine here and takes no number; strace's column of results is args_alignment in the configuration",
        "ls",
    ),
    word(
        "-S",
        is_sort_key,
        "-S time ls",
        "-S is lines and summary here; rtrace's -s is always sorted by time: leave the word out",
        "-s ls",
    ),
    value(
        "-t",
        is_more_t,
        "-tt ls",
        "-t traces threads here; strace's -t and -tt are --time-format local, its -ttt is --time-format epoch",
        "--time-format local ls",
    ),
    value("-t", is_no_list_of_pids, "-t ls", "-t TID traces threads here; strace's -t is --time-format local", "--time-format local ls"),
    value("-C", begins_without_digit, "-C ls", "-C CPUS traces CPUs here; strace's -C (lines and summary) is -S", "-S ls"),
    value(
        "-D",
        begins_without_digit,
        "-D ls",
        "-D TIME begins later here; strace's -D (the tracer as a grandchild) is not needed: leave it out",
        "ls",
    ),
    value(
        "-F",
        is_no_kind_of_fault,
        "-F ls",
        "-F KIND traces page faults here (all, maj, min); strace's old -F is not needed: children are always followed",
        "ls",
    ),
    // strace's long options.
    option(&["--abbrev"], "--abbrev=all ls", "--abbrev has no like in rtrace: --string-limit N says how much of a string is shown", "ls"),
    option(&["--always-show-pid"], "--always-show-pid ls", "rtrace always shows whose line it is: leave --always-show-pid out", "ls"),
    option(&["--argv0"], "--argv0=x ls", "--argv0 has no like in rtrace; write sh -c 'exec -a NAME COMMAND' with bash", "ls"),
    option(&["--attach"], "--attach=1", "--attach is strace's; write -p PID", "-p 1"),
    option(&["--columns"], "--columns=40 ls", "--columns is args_alignment in rtrace's configuration", "ls"),
    option(
        &["--daemonize", "--daemonise", "--daemonized", "--daemonised"],
        "--daemonize ls",
        "--daemonize has no like in rtrace: leave it out",
        "ls",
    ),
    option(
        &["--fault", "--inject"],
        "--inject=openat:error=ENOENT ls",
        "rtrace changes nothing of what it traces; for injecting errors use strace itself",
        "ls",
    ),
    option(&["--kill-on-exit"], "--kill-on-exit ls", "--kill-on-exit has no like in rtrace: what is traced runs on unharmed", "ls"),
    option(&["--kvm"], "--kvm=vcpu ls", "--kvm has no like in rtrace; write -e 'kvm:*'", "ls"),
    option(&["--namespace"], "--namespace=new ls", "--namespace has no like in rtrace: leave it out", "ls"),
    option(
        &["--no-abbrev"],
        "--no-abbrev ls",
        "rtrace shows all members of a struct anyway; for long strings write --string-limit N",
        "--string-limit 4096 ls",
    ),
    option(&["--raw"], "--raw=all ls", "--raw has no like in rtrace: it prints names, and what has none as a number", "ls"),
    option(
        &["--read", "--write"],
        "--read=3 ls",
        "strace dumps what goes through a descriptor; write -e read,write --filter 'fd == 3' --string-limit 4096",
        "-e read,write --filter fd==3 --string-limit 4096 ls",
    ),
    option(
        &["--seccomp-bpf"],
        "--seccomp-bpf ls",
        "calls that are not traced cost next to nothing in rtrace: leave --seccomp-bpf out",
        "ls",
    ),
    option(&["--secontext"], "--secontext ls", "--secontext has no like in rtrace: leave it out", "ls"),
    option(
        &["--signal"],
        "--signal=SIGTERM ls",
        "strace's --signal chooses signals; rtrace shows them all, and none with --no-signals",
        "--no-signals ls",
    ),
    option(&["--silent", "--silence"], "--silent=all ls", "--silent is strace's; write -q", "-q ls"),
    option(&["--stack-trace-frame-limit"], "--stack-trace-frame-limit=5 ls", "write --max-stack N", "--max-stack 5 ls"),
    option(
        &["--status"],
        "--status=failed ls",
        "--status is strace's; write --failure, or --filter 'ret >= 0' for calls that succeeded",
        "--failure ls",
    ),
    option(
        &["--summary-sort-by"],
        "--summary-sort-by=time ls",
        "rtrace's -s is always sorted by time: leave --summary-sort-by out",
        "-s ls",
    ),
    option(&["--syscall-limit"], "--syscall-limit=5 ls", "--syscall-limit is strace's; write --max-events N", "--max-events 5 ls"),
    option(&["--syscall-times"], "--syscall-times ls", "rtrace always shows how long a call took: leave --syscall-times out", "ls"),
    option(
        &["--timestamps", "--absolute-timestamps"],
        "--timestamps ls",
        "strace's --absolute-timestamps is --time-format local here",
        "--time-format local ls",
    ),
    option(&["--tips"], "--tips ls", "rtrace has no --tips; rtrace(1) has everything", "ls"),
    option(&["--trace"], "--trace=openat ls", "--trace is strace's; write -e SET", "-e openat ls"),
    option(&["--trace-fds"], "--trace-fds=3 ls", "--trace-fds is strace's; write --filter 'fd == 3'", "--filter fd==3 ls"),
    option(&["--user"], "--user=nobody ls", "--user starts the command as a user in strace; write --run-as USER", "--run-as nobody ls"),
    // What strace takes behind -e.
    item(&["all", "trace=all"], "-e all ls", "-e all is strace's; all syscalls are traced anyway: leave it out", "ls"),
    item(&["none", "trace=none"], "-e trace=none ls", "-e none is strace's; write --no-syscalls", "--no-syscalls -F all ls"),
    item(
        &["trace=file", "trace=process", "trace=network", "trace=signal", "trace=ipc", "trace=desc", "trace=memory"],
        "-e trace=file ls",
        "strace's old names for groups of calls want a % here: -e %file, %process, %network, %signal, %ipc, %desc, %memory",
        "-e %file ls",
    ),
    item(&["?", "trace=?"], "-e ?openat ls", "strace's ? (no error if there is no such call) is not needed: leave it out", "-e openat ls"),
    item(&["t="], "-e t=openat ls", "-e t= is strace's; write -e SET or -e trace=SET", "-e openat ls"),
    item(
        &["signal=", "signals=", "s="],
        "-e signal=none ls",
        "strace's -e signal= chooses signals; write --no-signals for none, and -e signal:signal_deliver --filter 'sig == TERM' for some",
        "--signals ls",
    ),
    item(
        &["inject=", "fault="],
        "-e inject=openat:error=ENOENT ls",
        "rtrace changes nothing of what it traces; for injecting errors use strace itself",
        "ls",
    ),
    item(
        &["read=", "reads=", "r=", "write=", "writes=", "w="],
        "-e read=3 ls",
        "strace dumps what goes through a descriptor; write -e read,write --filter 'fd == 3' --string-limit 4096",
        "-e read,write --filter fd==3 --string-limit 4096 ls",
    ),
    item(
        &["abbrev=", "a=", "verbose=", "v=", "raw=", "x="],
        "-e abbrev=none ls",
        "-e abbrev=, verbose= and raw= have no like in rtrace: --string-limit N says how much of a string is shown",
        "--string-limit 4096 ls",
    ),
    item(
        &["status="],
        "-e status=failed ls",
        "-e status= is strace's; write --failure, or --filter 'ret >= 0' for calls that succeeded",
        "--failure ls",
    ),
    item(&["quiet=", "silence=", "silent=", "q="], "-e quiet=exit ls", "-e quiet= is strace's; write -q", "-q ls"),
    item(
        &["decode-fds=", "decode-fd=", "decode-pids=", "decode-pid="],
        "-e decode-fds=all ls",
        "rtrace always says what descriptors and processes are: leave -e decode-fds= and decode-pids= out",
        "ls",
    ),
    item(&["trace-fds="], "-e trace-fds=3 ls", "-e trace-fds= is strace's; write --filter 'fd == 3'", "--filter fd==3 ls"),
    item(&["kvm="], "-e kvm=vcpu ls", "-e kvm= has no like in rtrace; write -e 'kvm:*'", "ls"),
    item(&["namespace="], "-e namespace=new ls", "-e namespace= has no like in rtrace: leave it out", "ls"),
    // perf trace's options.
    option(&["-g"], "-g ls", "-g is perf record's; write --call-graph dwarf", "--call-graph dwarf ls"),
    option(&["--input"], "--input perf.data", "rtrace has no replay of recordings: trace again", "ls"),
    option(&["--force"], "--force ls", "--force is perf's and not needed here: leave it out", "ls"),
    option(&["--force-btf"], "--force-btf ls", "--force-btf is perf's and not needed here: leave it out", "ls"),
    option(&["--print-sample"], "--print-sample ls", "--print-sample is perf's; -v says what rtrace does and why", "-v ls"),
    option(&["--proc-map-timeout"], "--proc-map-timeout=500 ls", "--proc-map-timeout is perf's and not needed here: leave it out", "ls"),
    option(&["--map-dump"], "--map-dump=x ls", "--map-dump is perf's; `bpftool map dump` shows maps", "ls"),
    option(
        &["--libtraceevent_print"],
        "--libtraceevent_print ls",
        "--libtraceevent_print is perf's; rtrace prints events by the kernel's own format: leave it out",
        "ls",
    ),
    option(&["--tool_stats"], "--tool_stats ls", "--tool_stats is perf's; -v says how many calls were issued, printed and lost", "-v ls"),
];
