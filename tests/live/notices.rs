//! Each message that rtrace prints on stderr while it traces is also an object of its JSON output. The verdict is the
//! last object.

use crate::json::objects;
use crate::machine::Machine;
use crate::trace::{Trace, overrun, trace, workload};
use serde_json::{Value, json};

/// Returns an object's time in nanoseconds of CLOCK_MONOTONIC; the first and the last object have none.
fn time(object: &Value) -> Option<u64> {
    object["time"]["monotonic"].as_str()?.parse().ok()
}

/// Checks that there is one notice with this severity, code and sentence, that stderr has the sentence, and that the
/// notice is in its place among the objects. Returns that place.
fn notice(run: &Trace, severity: &str, code: &str, said: &str) -> usize {
    let objects = objects(&run.text);
    let is_it = |object: &Value| object["code"] == code && object["text"].as_str().is_some_and(|text| text.contains(said));
    let places: Vec<usize> = (0..objects.len()).filter(|at| is_it(&objects[*at])).collect();
    let [at] = places[..] else { panic!("{} times {code}\n{}\n{}", places.len(), run.text, run.stderr) };
    let notice = &objects[at];
    assert_eq!((&notice["type"], &notice["severity"]), (&json!("notice"), &json!(severity)), "{notice}");
    let text = notice["text"].as_str().expect("a notice has a sentence");
    assert!(run.stderr.lines().any(|line| line == format!("rtrace: {text}")), "{text}: {}", run.stderr);
    let now = time(notice);
    assert!(objects[1..at].iter().all(|earlier| time(earlier) <= now), "{}", run.text);
    assert!(objects[at..objects.len() - 1].iter().all(|later| time(later) >= now), "{}", run.text);
    at
}

fn end(run: &Trace) -> Value {
    objects(&run.text).pop().expect("there is a last object")
}

#[test]
fn a_remark_on_the_command_line_comes_before_the_first_event() {
    let Some(machine) = Machine::shared() else { return };
    let run = trace(&machine, &["--json", "-e", "umount,execve"], &["true"]).succeeded();
    let at = notice(&run, "note", "remark", "umount is traced as umount2: the C library's umount() uses the syscall umount2");
    assert!(objects(&run.text)[1..at].iter().all(|object| object["type"] == "notice"), "{}", run.text);
    let quiet = trace(&machine, &["--json", "-q", "-e", "umount,execve"], &["true"]).succeeded();
    assert!(!quiet.text.contains("is traced as") && !quiet.stderr.contains("is traced as"), "{}\n{}", quiet.text, quiet.stderr);
}

#[test]
fn a_notice_is_an_object_of_json_and_no_line_of_text() {
    let Some(machine) = Machine::shared() else { return };
    let said = "the command has ended; waiting for the processes that it left running (Ctrl-C ends the trace, --no-wait does not wait)";
    let command = ["sh", "-c", "sleep .5 &"];
    notice(&trace(&machine, &["--json", "-e", "execve"], &command).succeeded(), "note", "waiting_for_processes", said);
    let lines = trace(&machine, &["-e", "execve"], &command).succeeded();
    assert!(lines.stderr.contains(&format!("rtrace: {said}\n")) && !lines.text.contains("waiting"), "{}\n{}", lines.text, lines.stderr);
}

#[test]
fn a_notice_is_shown_when_a_limit_or_a_switch_hides_all_events() {
    let Some(machine) = Machine::shared() else { return };
    let run = trace(&machine, &["--json", "--max-events", "1", "-e", "execve"], &["sleep", "1"]).succeeded();
    notice(&run, "note", "trace_complete", "the trace is complete; the command continues untraced");
    let off = trace(&machine, &["--json", "-e", "umount,getpgid", "--switch-on", "getpgid"], &["true"]).succeeded();
    notice(&off, "note", "remark", "umount is traced as umount2");
    assert_eq!(end(&off)["calls"]["shown"], 0, "{}", off.text);
}

#[test]
fn the_files_of_a_graph_are_named_before_the_last_object() {
    let Some(machine) = Machine::shared() else { return };
    let folded = machine.path("noticed.folded");
    let run = workload(&machine, &["--json", "-e", "lseek", "--folded", &folded], "calls lseek 1 10").succeeded();
    let at = notice(&run, "note", "graphs_written", &format!("the call paths of 10 calls are in {folded} (folded stacks)"));
    assert_eq!(at, objects(&run.text).len() - 2, "{}", run.text);
}

#[test]
fn a_trace_without_real_time_priority_has_a_warning() {
    let Some(machine) = Machine::shared() else { return };
    let run = overrun(&machine, &["--json", "-e", "lseek"], "calls lseek 1 10").succeeded();
    notice(&run, "warning", "no_realtime_priority", "the rings are drained without real-time priority (");
}

#[test]
fn a_command_that_cannot_be_executed_is_an_error_in_the_stream() {
    let Some(machine) = Machine::shared() else { return };
    let run = trace(&machine, &["--json", "--chdir", "/no/such/place"], &["true"]);
    notice(&run, "error", "command_not_executed", "true: cannot change to the directory: No such file or directory");
    assert_eq!(run.status, 126, "{}", run.stderr);
}

#[test]
fn the_last_object_says_why_nothing_was_shown() {
    let Some(machine) = Machine::shared() else { return };
    let held_back = workload(&machine, &["--json", "-e", "lseek", "--filter", "offset > 1000"], "calls lseek 1 10").succeeded();
    let why = json!({"selected": ["lseek"], "held_back": 10, "held_back_by": ["--filter 'offset > 1000'"], "similar": []});
    assert_eq!(end(&held_back)["nothing_shown"], why, "{}", held_back.stderr);
    let similar = workload(&machine, &["--json", "-e", "getpgid"], "calls lseek 1 10").succeeded();
    let nothing = &end(&similar)["nothing_shown"];
    assert!(nothing["similar"].as_array().is_some_and(|names| names.contains(&json!("getpid"))), "{nothing}");
    let something = end(&workload(&machine, &["--json", "-e", "lseek"], "calls lseek 1 10").succeeded());
    assert!(something.get("nothing_shown").is_none(), "{something}");
    let empty = json!([]);
    assert_eq!([&something["disagreements"], &something["shortages"], &something["unanswered_files"]], [&empty; 3], "{something}");
    for name in ["lost_records", "unplaced_losses", "unwritten_losses", "undecided", "not_permitted"] {
        assert_eq!(something[name], 0, "{name}: {something}");
    }
}

/// On an idle CPU, an interrupt may hit an event without a record. The timers of sleep and timeout do so here.
#[test]
fn hits_in_interrupts_of_idle_cpus_are_recorded_or_lost() {
    let Some(machine) = Machine::alone() else { return };
    let script = "for i in 1 2 3 4 5 6 7 8; do timeout .05 sleep 1; done; true";
    let timers = "timer:hrtimer_expire_entry";
    for options in [&["-a", "--no-syscalls", "-m", "4M", "-e", timers][..], &["-e", "execve"]] {
        let options = [&["--json", "--engine", "tracepoint"], options].concat();
        let run = trace(&machine, &options, &["sh", "-c", script]).succeeded();
        let end = end(&run);
        assert_eq!(end["disagreements"], json!([]), "{end}");
        let Some(event) = end["events"].as_array().and_then(|events| events.first()) else { continue };
        let number = |name: &str| event[name].as_u64().expect("a number");
        assert_eq!(number("received") + number("lost"), number("issued"), "{event}");
        assert!(number("received") > 0 && end["lost_records"] == event["lost"], "{end}");
        // Interrupts of rtrace itself are received and not shown.
        let shown = objects(&run.text).iter().filter(|object| object["name"] == timers).count() as u64;
        assert!(shown > 0 && shown <= number("received"), "{shown} {event}");
    }
}

#[test]
fn the_last_object_has_the_losses_that_stderr_reports() {
    let Some(machine) = Machine::alone() else { return };
    let run = overrun(&machine, &["--json", "-m", "8K", "-e", "lseek"], "calls lseek 4 50000").succeeded();
    let (verdict, end) = (run.verdict(), end(&run));
    let of = |name: &str| end["calls"][name].as_u64().unwrap_or_else(|| panic!("{name}: {end}"));
    assert_eq!((of("issued"), of("shown"), of("lost")), (verdict.issued, verdict.printed, verdict.lost), "{}", run.stderr);
    assert!(verdict.lost > 0 && end["lost_records"].as_u64() >= Some(verdict.lost), "{end}");
}

#[test]
fn the_last_object_has_the_account_of_each_event_by_both_of_its_names() {
    let Some(machine) = Machine::shared() else { return };
    let event = "sched:sched_process_exec/name=started/";
    let run = trace(&machine, &["--json", "-e", event, "--no-syscalls"], &["sh", "-c", "true; exec true"]).succeeded();
    let end = end(&run);
    let account = &end["events"][0];
    assert_eq!((&account["name"], &account["called"]), (&json!("sched:sched_process_exec"), &json!("started")), "{end}");
    let shown = objects(&run.text).iter().filter(|object| object["type"] == "event").count() as u64;
    assert_eq!((account["received"].as_u64(), account["lost"].as_u64()), (Some(shown), Some(0)), "{end}\n{}", run.text);
    assert!(run.stderr.lines().any(|line| line == format!("rtrace: started: {0} issued, {0} received, 0 lost", shown)), "{}", run.stderr);
}
