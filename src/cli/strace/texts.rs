//! The help and the version that the command line of strace prints.

/// The version of strace whose options and lines these are.
const STRACE: &str = "7.2";

/// Returns what `-V` prints. Scripts read the version from the first line, which has the form of strace's.
pub fn version() -> String {
    format!(
        "strace -- version {STRACE}\n\
         This is rtrace {}, which takes the command line of strace {STRACE} and prints its lines.\n\n\
         Optional features enabled: stack-trace=rtrace stack-demangle m32-mpers mx32-mpers\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// What `-h` prints.
pub const HELP: &str = "\
Usage: strace [-AcCdfikknNqrtTvVwxyYzZ] [-e EXPR]... [-a COLUMN] [-b execve] [-I N] [-o FILE] [-O OVERHEAD] [-P PATH]...
              [-s STRSIZE] [-S SORTBY] [-U COLUMNS] [-X FORMAT] { -p PID | [-E VAR=VAL]... [-u USER] PROG [ARGS] }

rtrace prints the lines of strace, and does not stop the program. rtrace(1) explains what differs, under FROM STRACE.

What is traced:
  -e trace=SET           the system calls: names, %classes, /regular expressions, all or none, after ! all others;
                         ?NAME may not exist, NAME@64, @32 or @x32 is about one personality
  -e signal=SET          the signals
  -e status=SET          the ends of calls: successful, failed, unfinished, unavailable, detached (-z: successful, -Z: failed)
  -e trace-fds=SET       the descriptors
  -P, --trace-path=PATH  calls that name this file, or have a descriptor of it
  -f, --follow-forks     new processes and threads as well; -ff: each into a file of its own
  -p, --attach=PID       a process that runs already
  -b, --detach-on=execve each process until it executes a program
  -u, --user=USER        run the program as this user (UID:GID: with these numbers)
  -E, --env=VAR[=VAL]    set or remove a variable of the program's environment
  --argv0=NAME           the first argument of the program
  --syscall-limit=N      end the trace after so many calls

Lines:
  -o, --output=FILE      write them to a file, or to a command after |; -A: append
  -e abbrev=SET, verbose=SET, raw=SET, read=SET, write=SET, decode-fds=SET, decode-pids=SET, quiet=SET
  -v, --no-abbrev        all members of structs
  -s, --string-limit=N   so many bytes of strings (32)
  -x, -xx, -X FORMAT     strings in hexadecimal; constants as raw, abbrev or verbose
  -y, -yy, -Y            paths of descriptors; all about descriptors; comms of processes
  -t, -tt, -ttt, -r, -T  time stamps; the time since the line before; the durations of calls
  -n, -N, -i, -k, -kk    numbers of calls; names of arguments; instruction pointers; stacks; stacks with source lines
  -a, --columns=N        the column of results (40)
  -q, -qq, -qqq          fewer messages
  --always-show-pid, --color=WHEN

Tables:
  -c, -C                 counts, times and errors of calls, in place of lines or after them
  -S SORTBY, -U COLUMNS, -O OVERHEAD, -w

Changes of calls:
  -e inject=SET:error=ERRNO|retval=N|signal=SIG|delay_enter=TIME[:when=WHEN], -e fault=SET[:error=ERRNO][:when=WHEN]

Options of rtrace:
  --engine=bpf|tracepoint, --lossless
";
