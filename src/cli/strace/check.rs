//! What options of strace exclude or require each other, in strace's words.

use super::Refused;
use super::expressions::Expressions;
use super::options::Options;

/// Refuses what is wrong together.
///
/// # Errors
/// The first of strace's messages that applies.
pub fn check(options: &Options, expressions: &Expressions) -> Result<(), Refused> {
    let has_command = !options.command.is_empty();
    let is_attached = options.pids().next().is_some();
    let is_daemon = options.daemonize > 0 || options.daemonize_as.is_some();
    let is_to_command = options.output.as_ref().is_some_and(super::is_to_command);
    let count = "(-c/--summary-only or -C/--summary)";
    let usage = |text: &str| Refused::Usage(text.to_owned());
    let both = |one: &str, other: &str| Refused::Wrong(format!("{one} and {other} cannot be provided simultaneously"));
    let many = format!("Too many -D's ({}), maximum supported -D count is 3", options.daemonize);
    let wrong = [
        (options.summary_only && options.summary, usage("-c/--summary-only and -C/--summary are mutually exclusive")),
        (!has_command && !is_attached, usage("must have PROG [ARGS] or -p PID")),
        (!has_command && options.argv0.is_some(), usage("PROG [ARGS] must be specified with --argv0")),
        (options.daemonize > 0 && options.daemonize_as.is_some(), both("-D", "--daemonize")),
        (!has_command && is_daemon, usage("PROG [ARGS] must be specified with -D/--daemonize")),
        (options.daemonize > 3, Refused::Usage(many)),
        (options.stamps > 0 && options.absolute_timestamps.is_some(), both("-t", "--absolute-timestamps")),
        (options.hex > 0 && options.strings_in_hex.is_some(), both("-x", "--strings-in-hex")),
        (options.files > 0 && expressions.has_files, both("-y", "--decode-fds")),
        (options.follow > 0 && options.follow_forks > 0, both("-f", "--follow-forks")),
        (options.follow > 1 && options.output_separately, both("-ff", "--output-separately")),
        (
            options.has_summary() && (options.output_separately || options.follow > 1),
            Refused::Usage(format!("{count} and -ff/--output-separately are mutually exclusive")),
        ),
        (
            options.summary_wall_clock && !options.has_summary(),
            Refused::Usage(format!("-w/--summary-wall-clock must be given with {count}")),
        ),
        (
            options.summary_columns.is_some() && !options.has_summary(),
            Refused::Usage(format!("-U/--summary-columns must be given with {count}")),
        ),
        (options.kill_on_exit && is_attached, Refused::Wrong("--kill-on-exit and -p/--attach are mutually exclusive options".to_owned())),
        (options.is_separate() && is_to_command, usage("piping the output and -ff/--output-separately are mutually exclusive")),
        (options.quieter > 0 && expressions.has_quiet, both("-q", "-e quiet/--quiet")),
        (options.stacks > 2, Refused::Wrong("Too many -k options".to_owned())),
    ];
    wrong.into_iter().find_map(|(holds, refused)| holds.then_some(refused)).map_or(Ok(()), Err)
}

/// Returns the messages about options that have no effect.
pub fn notices(options: &Options, expressions: &Expressions) -> Vec<String> {
    let has_stamps = options.stamps > 0 || options.absolute_timestamps.as_ref().is_some_and(|value| value != "none");
    let has_stacks = options.stacks > 0 || options.stack_trace.is_some();
    let useless = |holds: bool, option: &str| (options.summary_only && holds, format!("{option} has no effect with -c/--summary-only"));
    let no_filter = |holds: bool, why: &str| (options.seccomp_bpf && holds, format!("--seccomp-bpf is not enabled {why}"));
    let follows = options.follow > 0 || options.follow_forks > 0;
    let has_file = options.output.is_some();
    let all = [
        (options.seccomp_bpf && !follows, "--seccomp-bpf cannot be used without -f/--follow-forks, disabling".to_owned()),
        no_filter(follows && options.detach_on.is_some(), "because it is not compatible with -b"),
        no_filter(follows && options.syscall_limit.is_some(), "because it is not compatible with --syscall-limit"),
        no_filter(follows && !options.attach.is_empty(), "for processes attached with -p"),
        (options.old_follow > 0 && follows, "deprecated option -F ignored".to_owned()),
        (options.old_follow > 0 && !follows, "option -F is deprecated, please use -f/--follow-forks instead".to_owned()),
        (
            options.summary_sort_by.is_some() && !options.has_summary(),
            "-S/--summary-sort-by has no effect without (-c/--summary-only or -C/--summary)".to_owned(),
        ),
        useless(options.instruction_pointer, "-i/--instruction-pointer"),
        useless(has_stacks, "-k/--stack-trace"),
        useless(options.numbers, "-n/--syscall-number"),
        useless(options.names, "-N/--arg-names"),
        useless(options.relative || options.relative_timestamps.is_some(), "-r/--relative-timestamps"),
        useless(has_stamps, "-t/--absolute-timestamps"),
        useless(options.durations || options.syscall_times.is_some(), "-T/--syscall-times"),
        useless(!expressions.files.is_empty(), "-y/--decode-fds"),
        (options.output_separately && !has_file && options.follow == 0, "--output-separately has no effect without -o/--output".to_owned()),
        (options.append && !has_file, "-A/--output-append-mode has no effect without -o/--output".to_owned()),
        (
            options.outcomes > 1,
            "Only the last of -z/--successful-only/-Z/--failed-only options will take effect. See status qualifier for more complex filters."
                .to_owned(),
        ),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).collect()
}
