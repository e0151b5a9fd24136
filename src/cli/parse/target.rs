//! Whom to trace, and the command.

use super::{Stop, wrong};
use crate::cli::args::{Cli, TargetArgs};
use crate::request::{Command, Target, Who};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

pub fn target(cli: Cli) -> Result<Target, Stop> {
    let TargetArgs { pid, tid, uid, cgroup, container, .. } = &cli.target;
    let who = if !pid.is_empty() {
        Some(Who::Pids(numbers("-p", pid)?))
    } else if !tid.is_empty() {
        Some(Who::Tids(numbers("-t", tid)?))
    } else if let Some(user) = uid {
        Some(Who::User(user.clone()))
    } else if let Some(cgroup) = cgroup {
        Some(Who::Cgroup(cgroup.clone()))
    } else if let Some(container) = container {
        Some(Who::Container(container.clone()))
    } else {
        (cli.target.all_cpus || cli.target.cpu.is_some() || cli.command.is_empty()).then_some(Who::All)
    };
    let timer = command(cli)?;
    match (who, timer) {
        (None, Some(command)) => Ok(Target::Command(command)),
        (who, timer) => Ok(Target::There { who: who.unwrap_or(Who::All), timer }),
    }
}

fn command(cli: Cli) -> Result<Option<Command>, Stop> {
    let target = cli.target;
    if cli.command.is_empty() {
        let given = [
            ("--run-as", target.run_as.is_some()),
            ("-E", !target.env.is_empty()),
            ("--chdir", target.chdir.is_some()),
            ("--no-wait", target.no_wait),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(wrong(format!("{option} is about a command, and there is none"))),
            None => Ok(None),
        };
    }
    let env = target.env.into_iter().map(|text| variable(&text)).collect::<Result<_, _>>()?;
    Ok(Some(Command { argv: cli.command, run_as: target.run_as, env, chdir: target.chdir }))
}

/// `VAR=VALUE` or `VAR`.
fn variable(text: &OsStr) -> Result<(OsString, Option<OsString>), Stop> {
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], Some(OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => (bytes, None),
    };
    if name.is_empty() {
        Err(wrong(format!("-E {}: a variable's name is missing", text.display())))
    } else {
        Ok((OsString::from_vec(name.to_vec()), value))
    }
}

/// Positive numbers, separated by commas or blanks (as pidof gives them), each once.
pub fn numbers(option: &str, lists: &[String]) -> Result<Vec<i32>, Stop> {
    let mut numbers = Vec::new();
    for word in lists.iter().flat_map(|list| list.split([',', ' ', '\n', '\t'])).filter(|word| !word.is_empty()) {
        match word.parse::<i32>() {
            Ok(number) if number > 0 => {
                if !numbers.contains(&number) {
                    numbers.push(number);
                }
            }
            _ => return Err(wrong(format!("{option} {word}: that is no process number"))),
        }
    }
    if numbers.is_empty() && !lists.is_empty() {
        Err(wrong(format!("{option} is given no process number; is the program running?")))
    } else {
        Ok(numbers)
    }
}

/// CPUs as `0-3,8`, ascending, each once.
pub fn cpus(text: &str) -> Result<Vec<u32>, Stop> {
    let bad = |part: &str| wrong(format!("-C {text}: `{part}` is neither a CPU's number nor a range of them (0-3,8)"));
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            // More CPUs than Linux can have would only be a way to fill the memory.
            (Ok(first), Ok(last)) if first <= last && last < 8192 => cpus.extend(first..=last),
            _ => return Err(bad(part)),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}
