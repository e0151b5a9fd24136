//! The command gets from the caller of rtrace what it would get without rtrace: streams, signals, limits. rtrace leaves
//! no zombie to its parent.

use crate::machine::Machine;
use crate::namespaces::can_unshare;
use crate::trace::{shell, shell_with_engine};

/// A shell line that prints which of its standard streams are open. It redirects its own output last.
const OPEN: &str = r#"sh -c 'open=; for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && open="$open $fd"; done; echo "open$open" >"$dir/open"'"#;

#[test]
fn closed_streams_stay_closed() {
    let Some(machine) = Machine::shared() else { return };
    for (closed, open) in
        [("<&-", "open 1 2\n"), (">&-", "open 0 2\n"), ("2>&-", "open 0 1\n"), ("<&- >&- 2>&-", "open\n"), ("", "open 0 1 2\n")]
    {
        for how in ["", "-s", "-p $$"] {
            let script = format!(r#"("$rtrace" $engine {how} -o "$dir/lines" {OPEN} {closed}); cat "$dir/open""#);
            assert_eq!(shell_with_engine(&machine, &script).stdout, open, "{how} {closed}");
        }
    }
}

#[test]
fn a_stream_that_the_caller_closed_is_no_file_in_the_trace() {
    let Some(machine) = Machine::shared() else { return };
    for whom in ["", "-a"] {
        let script =
            format!(r#"("$rtrace" $engine {whom} -e close,execve -o "$dir/lines" cat <&- 2>"$dir/said"); grep ' cat/' "$dir/lines""#);
        let text = shell_with_engine(&machine, &script).stdout;
        let first = text.lines().next().unwrap_or_default();
        assert!(!whom.is_empty() || first.contains(" execve("), "its set-up is not the command's:\n{text}");
        // The command also opens other files under this number and closes them first; the last close is that of the
        // inherited number.
        let last = text.lines().rfind(|line| line.contains(" close(fd: 0")).unwrap_or_default();
        assert!(last.contains("EBADF") && !text.contains("/dev/null"), "{whom}:\n{text}");
    }
}

/// rtrace opens none of its files as a standard stream, although those numbers are free.
#[test]
fn a_trace_is_written_only_to_its_file() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"("$rtrace" $engine -o "$dir/lines" sh -c 'echo to-stdout; echo to-stderr >&2' <&- >&- 2>&-); cat "$dir/lines""#;
    let text = shell_with_engine(&machine, script).stdout;
    let wrong: Vec<&str> = text.lines().filter(|line| !line.contains("): ") && !line.contains(" +++ ")).collect();
    assert!(text.contains(" execve(") && wrong.is_empty(), "{wrong:?} in\n{text}");
    let closed = shell(&machine, r#""$rtrace" -o - true >&-"#);
    assert_eq!((closed.status, closed.stderr.as_str()), (125, "rtrace: cannot write to stdout: it is closed\n"));
}

#[test]
fn the_command_has_the_callers_signal_dispositions_and_mask() {
    let Some(machine) = Machine::shared() else { return };
    let asks = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let ways = [
        "--default-signal=PIPE",
        "--ignore-signal=PIPE",
        "--ignore-signal=PIPE,XFSZ,USR1,HUP,SEGV,TTOU",
        "--block-signal=USR2,TERM,INT,CHLD,XFSZ,PIPE",
        "--ignore-signal=CHLD",
        "--ignore-signal --block-signal",
    ];
    for way in ways {
        for how in ["", "-s", "-p $$"] {
            let script = format!(r#"env {way} {asks}; env {way} "$rtrace" $engine {how} -o "$dir/lines" -- {asks}"#);
            let said = shell_with_engine(&machine, &script).stdout;
            let lines: Vec<&str> = said.lines().collect();
            assert!(lines.len() == 4 && lines[..2] == lines[2..], "{way} {how}: without rtrace, and with it:\n{said}");
        }
    }
}

/// With the signals blocked that rtrace blocks for itself, no signal could end the output command.
#[test]
fn the_output_command_has_the_callers_signal_dispositions_and_mask() {
    let Some(machine) = Machine::shared() else { return };
    // The shell reads its own mask, because some shells clear the mask of the programs that they start.
    let reader = r#"|while read line; do case $line in SigBlk*) echo "$line" >"$dir/blocked"; esac; done </proc/$$/status; cat >/dev/null"#;
    for way in ["--block-signal=USR2", "--default-signal"] {
        let script = format!(
            r#"env {way} grep SigBlk /proc/self/status; reader='{reader}'; env {way} "$rtrace" $engine -o "$reader" true; cat "$dir/blocked""#
        );
        let said = shell_with_engine(&machine, &script).stdout;
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() == 2 && lines[0] == lines[1], "{way}: without rtrace, and with it:\n{said}");
    }
}

/// In a pipeline to `head`, `tee` ends as the caller's shell decides: by SIGPIPE, or by an error.
#[test]
fn sigpipe_has_the_callers_disposition() {
    let Some(machine) = Machine::shared() else { return };
    for (way, end) in [("--default-signal=PIPE", "141\n"), ("--ignore-signal=PIPE", "1\n")] {
        let script = format!(
            r#"{{ env {way} "$rtrace" $engine -o "$dir/lines" -- sh -c 'until ! echo y; do :; done 2>/dev/null; exit 1'; echo $? >"$dir/end"; }} | true; cat "$dir/end""#
        );
        assert_eq!(shell_with_engine(&machine, &script).stdout, end, "{way}");
    }
}

#[test]
fn no_zombie_is_left_where_the_first_process_reaps_nobody() {
    let Some(machine) = Machine::shared() else { return };
    if !can_unshare() {
        return;
    }
    let script = r#"unshare --pid --fork --mount-proc "$workload" reap-own 5 "$rtrace" $engine -o "$dir/lines" true"#;
    assert_eq!(shell_with_engine(&machine, script).stdout, "left 0\n");
}
