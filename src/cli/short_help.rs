//! The text of `-h`: one screen.

/// At most 24 lines of at most 100 columns.
pub const SHORT_HELP: &str = "\
rtrace [OPTIONS] [--] COMMAND [ARG]...     trace a command, its children and threads
rtrace [OPTIONS] -p PID | -u USER | -a ... trace running tasks; a COMMAND then only sets how long
rtrace record | -i FILE | report | diff    write a recording; show its lines; call paths; compare
rtrace strace ... | list | check | probe   strace's options; what can be traced; what works; probes

  rtrace -e openat,close make              these syscalls only
  rtrace -e '%file,!statx' -o out.txt ls   a group without one of its calls, into a file
  rtrace -s make                           a table of counts and times instead of lines
  sudo rtrace -a --duration 10ms sleep 5   calls of 10 ms or more, machine-wide, for 5 seconds
  rtrace -e openat --filter 'ret < 0 && filename ~ \"/etc/*\"' ls

  -e LIST          names, globs, %groups, /regexes/, subsystem:event; ! removes; several -e add up
  --filter EXPR    a condition for the -e before it     --failure       only calls that failed
  --duration TIME  only calls that took this long       --max-events N  end after N lines
  -p PID  -t TID   processes, threads                   -a  -C CPUS     the machine, these CPUs
  -u USER          a user's processes                   -G CGROUP       a cgroup
  --container ID|NAME    a container of docker, podman, containerd, CRI-O, systemd-nspawn, lxc
  -s  -S           summary; lines and summary           --errno-summary with errnos
  -o FILE          write to FILE, - or '|CMD'           -T              monotonic time stamps
  -m SIZE          ring buffer of each CPU              -F all|min|maj  page faults
  --call-graph fp|dwarf  call stacks                    --flamegraph FILE.svg
  -v               report what rtrace does and why      --strict        status 124 on any loss

All options: rtrace --help. Man pages: rtrace-filter for -e and --filter; rtrace-probe for --probe.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_fits_on_one_screen() {
        assert!(SHORT_HELP.lines().count() <= 24);
        for line in SHORT_HELP.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[test]
    fn the_text_names_subcommands_that_exist() {
        let command = crate::cli::args::command();
        let lines = SHORT_HELP.lines().filter(|line| line.starts_with("rtrace record") || line.starts_with("rtrace strace"));
        let words = lines.filter_map(|line| line.split("  ").next()).flat_map(|line| line.split([' ', '|']).skip(1));
        let names: Vec<&str> = words.filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase())).collect();
        // A command line of strace is not parsed by clap.
        for name in names.iter().filter(|name| **name != "strace") {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
        assert_eq!(names, ["record", "report", "diff", "strace", "list", "check", "probe"]);
    }

    #[test]
    fn the_text_names_only_options_that_exist() {
        let command = crate::cli::args::command();
        let mut seen = 0;
        for word in SHORT_HELP.split_whitespace().map(|word| word.trim_end_matches(['.', ';', ':'])) {
            let exists = match word.strip_prefix("--") {
                Some("") | None if !(word.len() == 2 && word.starts_with('-')) || word == "--" => continue,
                Some(long) => command.get_arguments().any(|arg| arg.get_long() == Some(long)) || long == "version",
                None => command.get_arguments().any(|arg| arg.get_short() == word.chars().nth(1)) || word == "-V",
            };
            assert!(exists, "{word}");
            seen += 1;
        }
        assert!(seen > 25);
    }
}
