//! The table of habits. A row has an example, how the habit is recognized, the answer, and the equivalent in rtrace.

use super::{Habit, When};

/// Returns the row of an option that rtrace does not have, under any of its names.
const fn option(names: &'static [&'static str], typed: &'static str, answer: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Option(names), typed, answer, instead }
}

/// Returns the row of an `-e` list with one of these items.
const fn item(beginnings: &'static [&'static str], typed: &'static str, answer: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Item(beginnings), typed, answer, instead }
}

/// Returns the row of an option of rtrace whose value shows that the option of another tool was meant.
const fn value(option: &'static str, is: fn(&str) -> bool, typed: &'static str, answer: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Value(option, is), typed, answer, instead }
}

/// Returns the row of an option that takes no value in rtrace but one in another tool, and is followed by such a value.
const fn word(option: &'static str, is: fn(&str) -> bool, typed: &'static str, answer: &'static str, instead: &'static str) -> Habit {
    Habit { when: When::Word(option, is), typed, answer, instead }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn begins_without_digit(word: &str) -> bool {
    !word.starts_with(|c: char| c.is_ascii_digit())
}

fn is_not_a_list_of_tids(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_alphabetic() || c == '/')
}

fn is_not_a_kind_of_fault(word: &str) -> bool {
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

/// Whether the value of `-t` shows that `-tt` or `-ttt` was typed: clap takes the letters after `-t` as its value.
fn is_repeated_t(word: &str) -> bool {
    word == "t" || word == "tt"
}

/// All habits, in the order in which they are tried.
pub const HABITS: &[Habit] = &[
    // Short options of strace that rtrace does not have, or has with another meaning.
    option(
        &["-A", "--output-append-mode"],
        "-A -o out ls",
        "strace's -A appends; rtrace renames an old FILE to FILE.old; to append, write -o '|cat >> FILE'",
        "-o |cat ls",
    ),
    option(&["-b", "--detach-on"], "-b execve ls", "strace's -b (detach at an execve) has no equivalent in rtrace: leave it out", "ls"),
    option(&["-c", "--summary-only"], "-c ls", "-c is strace's summary; write -s (with the lines: -S)", "-s ls"),
    option(&["-d", "--debug"], "-d ls", "-d is strace's debugging output; write -v, which reports what rtrace does and why", "-v ls"),
    option(
        &["--instruction-pointer"],
        "--instruction-pointer ls",
        "strace's -i prints the address of each call; write --call-graph dwarf --max-stack 1 (-i FILE shows a recording)",
        "--call-graph dwarf --max-stack 1 ls",
    ),
    option(
        &["-I", "--interruptible"],
        "-I 2 ls",
        "strace's -I (whether Ctrl-C is blocked) has no equivalent in rtrace, which never stops the program: leave it out",
        "ls",
    ),
    option(
        &["-k", "--stack-trace"],
        "-k ls",
        "-k is strace's stack trace; write --call-graph dwarf (with source lines: --lines)",
        "--call-graph dwarf ls",
    ),
    option(&["-n", "--syscall-number"], "-n ls", "strace's -n prints syscall numbers; `rtrace list NAME` shows them", "ls"),
    option(&["-N", "--arg-names"], "-N ls", "strace's -N prints argument names; rtrace always does: leave it out", "ls"),
    option(
        &["-O", "--summary-syscall-overhead"],
        "-O 5 ls",
        "strace's -O subtracts its own overhead from a summary; rtrace's times are measured in the kernel: leave it out",
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
        "strace's -U chooses the columns of the summary; rtrace's -s always has the same columns: leave it out",
        "-s ls",
    ),
    option(
        &["-w", "--summary-wall-clock"],
        "-w ls",
        "strace's -w makes the summary show elapsed time; rtrace's -s always shows it: leave it out",
        "-s ls",
    ),
    option(
        &["-x", "--strings-in-hex"],
        "-x ls",
        "strace's -x prints strings in hexadecimal; rtrace escapes only unprintable bytes, as \\x1b: leave it out",
        "ls",
    ),
    option(
        &["-X", "--const-print-style"],
        "-X raw ls",
        "strace's -X chooses how constants are printed; rtrace prints names, and numbers where there is no name: leave it out",
        "ls",
    ),
    option(&["-Y", "--decode-pids"], "-Y ls", "strace's -Y prints process names; rtrace always does: leave it out", "ls"),
    option(
        &["-z", "--successful-only"],
        "-z ls",
        "strace's -z shows calls that succeeded; write --filter 'ret >= 0'",
        "--filter ret>=0 ls",
    ),
    option(&["-Z", "--failed-only"], "-Z ls", "strace's -Z shows calls that failed; write --failure", "--failure ls"),
    Habit {
        when: When::Twice("-f"),
        typed: "-ff -o out ls",
        answer: "strace's -ff writes a file for each process; write --output-separately (children are always followed)",
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
        "-a is the whole machine here and takes no number; strace's column of results is args_alignment in config.toml",
        "ls",
    ),
    word(
        "-S",
        is_sort_key,
        "-S time ls",
        "-S is lines and summary here and takes no sort key; rtrace's summary is always sorted by time: leave the key out",
        "-s ls",
    ),
    value(
        "-t",
        is_repeated_t,
        "-tt ls",
        "-t traces threads here; strace's -t and -tt are --time-format local, its -ttt is --time-format epoch",
        "--time-format local ls",
    ),
    value("-t", is_not_a_list_of_tids, "-t ls", "-t TID traces threads here; strace's -t is --time-format local", "--time-format local ls"),
    value("-C", begins_without_digit, "-C ls", "-C CPUS traces CPUs here; strace's -C (lines and summary) is -S", "-S ls"),
    value(
        "-D",
        begins_without_digit,
        "-D ls",
        "-D TIME delays the trace here; strace's -D (the tracer as a grandchild) is not needed: leave it out",
        "ls",
    ),
    value(
        "-F",
        is_not_a_kind_of_fault,
        "-F ls",
        "-F KIND traces page faults here (all, maj, min); strace's old -F is not needed: children are always followed",
        "ls",
    ),
    // Long options of strace.
    option(
        &["--abbrev"],
        "--abbrev=all ls",
        "rtrace abbreviates structs unless --full is given; --string-limit N sets how much of a string is shown",
        "ls",
    ),
    option(&["--always-show-pid"], "--always-show-pid ls", "rtrace always shows the thread of a line: leave --always-show-pid out", "ls"),
    option(&["--argv0"], "--argv0=x ls", "--argv0 has no equivalent in rtrace; write bash -c 'exec -a NAME COMMAND'", "ls"),
    option(&["--attach"], "--attach=1", "--attach is strace's; write -p PID", "-p 1"),
    option(&["--columns"], "--columns=40 ls", "strace's --columns is args_alignment in rtrace's config.toml", "ls"),
    option(
        &["--daemonize", "--daemonise", "--daemonized", "--daemonised"],
        "--daemonize ls",
        "--daemonize has no equivalent in rtrace: leave it out",
        "ls",
    ),
    option(
        &["--fault"],
        "--fault=openat ls",
        "--fault is strace's: write --inject SET:error=ENOSYS, or another error",
        "--inject openat:error=ENOSYS ls",
    ),
    option(
        &["--kill-on-exit"],
        "--kill-on-exit ls",
        "--kill-on-exit has no equivalent in rtrace: traced programs run on when it ends",
        "ls",
    ),
    option(&["--kvm"], "--kvm=vcpu ls", "--kvm has no equivalent in rtrace; write -e 'kvm:*'", "ls"),
    option(&["--namespace"], "--namespace=new ls", "--namespace has no equivalent in rtrace: leave it out", "ls"),
    option(
        &["--no-abbrev"],
        "--no-abbrev ls",
        "--no-abbrev is strace's; write --full, and for long strings --string-limit N",
        "--full --string-limit 4096 ls",
    ),
    option(
        &["--raw"],
        "--raw=all ls",
        "--raw has no equivalent in rtrace, which prints names of constants, and numbers where there is no name",
        "ls",
    ),
    option(
        &["--read", "--write"],
        "--read=3 ls",
        "in strace, this dumps the data of a descriptor; write -e read,write --filter 'fd == 3' --string-limit 4096",
        "-e read,write --filter fd==3 --string-limit 4096 ls",
    ),
    option(
        &["--seccomp-bpf"],
        "--seccomp-bpf ls",
        "with rtrace, calls that are not traced cost next to nothing: leave --seccomp-bpf out",
        "ls",
    ),
    option(&["--secontext"], "--secontext ls", "--secontext has no equivalent in rtrace: leave it out", "ls"),
    option(
        &["--signal"],
        "--signal=SIGTERM ls",
        "strace's --signal chooses signals; rtrace shows all of them, or none with --no-signals",
        "--no-signals ls",
    ),
    option(&["--silent", "--silence"], "--silent=all ls", "--silent is strace's; write -q", "-q ls"),
    option(
        &["--stack-trace-frame-limit"],
        "--stack-trace-frame-limit=5 ls",
        "--stack-trace-frame-limit is strace's; write --max-stack N",
        "--max-stack 5 ls",
    ),
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
    option(&["--tips"], "--tips ls", "rtrace has no --tips; see rtrace(1)", "ls"),
    option(&["--trace"], "--trace=openat ls", "--trace is strace's; write -e SET", "-e openat ls"),
    option(&["--trace-fds"], "--trace-fds=3 ls", "--trace-fds is strace's; write --filter 'fd == 3'", "--filter fd==3 ls"),
    option(&["--user"], "--user=nobody ls", "--user starts the command as a user in strace; write --run-as USER", "--run-as nobody ls"),
    // Lists of -e that strace accepts.
    item(&["all", "trace=all"], "-e all ls", "-e all is strace's; all syscalls are traced anyway: leave it out", "ls"),
    item(&["none", "trace=none"], "-e trace=none ls", "-e none is strace's; write --no-syscalls", "--no-syscalls -F all ls"),
    item(
        &["trace=file", "trace=process", "trace=network", "trace=signal", "trace=ipc", "trace=desc", "trace=memory"],
        "-e trace=file ls",
        "groups of calls begin with a % here: -e %file, %process, %network, %signal, %ipc, %desc, %memory",
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
        "strace's -e inject= is --inject: write --inject SET:error=ENOENT; for -e fault=SET, write --inject SET:error=ENOSYS",
        "--inject openat:error=ENOENT ls",
    ),
    item(
        &["read=", "reads=", "r=", "write=", "writes=", "w="],
        "-e read=3 ls",
        "in strace, this dumps the data of a descriptor; write -e read,write --filter 'fd == 3' --string-limit 4096",
        "-e read,write --filter fd==3 --string-limit 4096 ls",
    ),
    item(
        &["abbrev=", "a=", "verbose=", "v=", "raw=", "x="],
        "-e abbrev=none ls",
        "-e abbrev=, verbose= and raw= are strace's; --full shows whole structs, and --string-limit N more of strings",
        "--full --string-limit 4096 ls",
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
        "rtrace always decodes descriptors and process numbers: leave -e decode-fds= and -e decode-pids= out",
        "ls",
    ),
    item(&["trace-fds="], "-e trace-fds=3 ls", "-e trace-fds= is strace's; write --filter 'fd == 3'", "--filter fd==3 ls"),
    item(&["kvm="], "-e kvm=vcpu ls", "-e kvm= has no equivalent in rtrace; write -e 'kvm:*'", "ls"),
    item(&["namespace="], "-e namespace=new ls", "-e namespace= has no equivalent in rtrace: leave it out", "ls"),
    // Options of perf trace.
    option(&["-g"], "-g ls", "-g is perf record's; write --call-graph dwarf", "--call-graph dwarf ls"),
    option(&["--force"], "--force ls", "--force is perf's and not needed here: leave it out", "ls"),
    option(&["--force-btf"], "--force-btf ls", "--force-btf is perf's and not needed here: leave it out", "ls"),
    option(&["--print-sample"], "--print-sample ls", "--print-sample is perf's; write -v, which reports what rtrace does and why", "-v ls"),
    option(&["--proc-map-timeout"], "--proc-map-timeout=500 ls", "--proc-map-timeout is perf's and not needed here: leave it out", "ls"),
    option(&["--map-dump"], "--map-dump=x ls", "--map-dump is perf's; `bpftool map dump` shows maps", "ls"),
    option(
        &["--libtraceevent_print"],
        "--libtraceevent_print ls",
        "--libtraceevent_print is perf's; rtrace prints events by the kernel's own formats: leave it out",
        "ls",
    ),
    option(
        &["--tool_stats"],
        "--tool_stats ls",
        "--tool_stats is perf's; write -v, which reports how many calls were issued, printed and lost",
        "-v ls",
    ),
];
