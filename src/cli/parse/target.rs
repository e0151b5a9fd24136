//! Parses the target and the command.

use super::{Stop, wrong};
use crate::cli::args::{Cli, TargetArgs};
use crate::request::{Command, Target, TaskSelection};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Parses the options for the target, and those for the command.
///
/// # Errors
/// A number is wrong, or an option for a command is given without a command.
pub fn target(cli: Cli) -> Result<Target, Stop> {
    let TargetArgs { pid, tid, uid, cgroup, container, .. } = &cli.target;
    let who = if !pid.is_empty() {
        Some(TaskSelection::Pids(numbers("-p", pid)?))
    } else if !tid.is_empty() {
        Some(TaskSelection::Tids(numbers("-t", tid)?))
    } else if let Some(user) = uid {
        Some(TaskSelection::User(user.clone()))
    } else if let Some(cgroup) = cgroup {
        Some(TaskSelection::Cgroup(cgroup.clone()))
    } else if let Some(container) = container {
        Some(TaskSelection::Container(container.clone()))
    } else {
        (cli.target.all_cpus || cli.target.cpu.is_some() || cli.command.is_empty()).then_some(TaskSelection::All)
    };
    let timer = command(cli)?;
    match (who, timer) {
        (None, Some(command)) => Ok(Target::Command(command)),
        (who, timer) => Ok(Target::Running { tasks: who.unwrap_or(TaskSelection::All), timer }),
    }
}

/// Returns why rtrace does not start what it traces: an option selects other tasks, or there is no command. Returns
/// `None` for a command.
pub fn why_not_started(cli: &Cli) -> Option<String> {
    let named = [("-p", !cli.target.pid.is_empty()), ("-t", !cli.target.tid.is_empty())];
    match named.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Some(format!("{option} selects tasks that rtrace does not start")),
        None => why_not_named(cli),
    }
}

/// Returns why the traced tasks are neither a command nor named by `-p` or `-t`; `None` if they are.
pub fn why_not_named(cli: &Cli) -> Option<String> {
    let TargetArgs { pid, tid, uid, cgroup, container, all_cpus, cpu, .. } = &cli.target;
    let asked =
        [("-u", uid.is_some()), ("-G", cgroup.is_some()), ("--container", container.is_some()), ("-C", cpu.is_some()), ("-a", *all_cpus)];
    match asked.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Some(format!("{option} selects tasks that rtrace does not start")),
        None => (cli.command.is_empty() && pid.is_empty() && tid.is_empty()).then(|| "there is no command".to_owned()),
    }
}

/// Refuses `--lossless` for tasks that rtrace does not start.
///
/// # Errors
/// The target is not a command.
pub fn refuse_not_delayed(cli: &Cli) -> Result<(), Stop> {
    why_not_started(cli).map_or(Ok(()), |why| {
        Err(wrong(format!(
            "--lossless delays a command, and {why}; start the program by rtrace (rtrace --lossless COMMAND), or use larger rings (-m) and --strict"
        )))
    })
}

fn command(cli: Cli) -> Result<Option<Command>, Stop> {
    let target = cli.target;
    if cli.command.is_empty() {
        let options = [
            ("--run-as", target.run_as.is_some()),
            ("-E", !target.env.is_empty()),
            ("--chdir", target.chdir.is_some()),
            ("--no-wait", target.no_wait),
        ];
        return match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(wrong(format!("{option} applies to a command, and there is none on the command line"))),
            None => Ok(None),
        };
    }
    let env = target.env.into_iter().map(|text| variable(&text)).collect::<Result<_, _>>()?;
    Ok(Some(Command { argv: cli.command, argv0: None, run_as: target.run_as, env, chdir: target.chdir }))
}

/// Parses `VAR=VALUE` or `VAR`.
fn variable(text: &OsStr) -> Result<(OsString, Option<OsString>), Stop> {
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => (bytes, None),
    };
    if name.is_empty() {
        Err(wrong(format!("-E {}: the variable's name is missing", text.display())))
    } else {
        Ok((OsString::from_vec(name.to_vec()), value))
    }
}

/// Parses process or thread IDs, separated by commas or blanks (as pidof(1) prints them). Drops repeated ones.
pub fn numbers(option: &str, lists: &[String]) -> Result<Vec<i32>, Stop> {
    let mut numbers = Vec::new();
    for word in lists.iter().flat_map(|list| list.split([',', ' ', '\n', '\t'])).filter(|word| !word.is_empty()) {
        match word.parse::<i32>() {
            Ok(number) if number > 0 => {
                if !numbers.contains(&number) {
                    numbers.push(number);
                }
            }
            _ => return Err(wrong(format!("{option} {word}: this is not a process or thread ID"))),
        }
    }
    if numbers.is_empty() && !lists.is_empty() {
        Err(wrong(format!("{option} has an empty list of IDs; is the program running?")))
    } else {
        Ok(numbers)
    }
}

/// Parses CPUs as `0-3,8`. Returns them in ascending order, each once.
pub fn cpus(text: &str) -> Result<Vec<u32>, Stop> {
    let bad = |part: &str| wrong(format!("-C {text}: `{part}` is neither a CPU's number nor a range of them (0-3,8)"));
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            // Linux has at most 8192 CPUs (CONFIG_NR_CPUS); a larger range would only use up memory.
            (Ok(first), Ok(last)) if first <= last && last < 8192 => cpus.extend(first..=last),
            _ => return Err(bad(part)),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}
