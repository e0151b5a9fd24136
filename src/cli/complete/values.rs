//! What the values of options may be: syscalls and events, processes, users, cgroups, containers, programs.

use super::{Answer, Candidate};
use crate::beauty::tables::{STRUCTS, SYSCALLS, TABLES};
use crate::kernel::tracefs::Tracefs;
use crate::kernel::{self, procfs};
use crate::probe::inventory;
use crate::request::select::GROUPS;
use clap::{Arg, ValueHint};
use std::collections::BTreeSet;
use std::fs;

/// The values of an option that begin as given.
pub fn of(arg: &Arg, given: &str) -> Answer {
    let these = match arg.get_id().as_str() {
        "event" => in_list(given, selected),
        "switch_on" | "switch_off" => selected(given),
        "pid" | "tid" | "filter_pids" => in_list(given, processes),
        "uid" | "run_as" => users(given),
        "cgroup" => cgroups(given),
        "container" => containers(given),
        _ => possible(Some(arg), given),
    };
    match arg.get_value_hint() {
        _ if !these.is_empty() => Answer::These(these),
        ValueHint::FilePath | ValueHint::AnyPath => Answer::Files,
        ValueHint::DirPath => Answer::Directories,
        _ => Answer::These(these),
    }
}

/// What clap knows of an argument's values.
pub fn possible(arg: Option<&Arg>, given: &str) -> Vec<Candidate> {
    let values = arg.map(Arg::get_possible_values).unwrap_or_default();
    let values = values.iter().filter(|value| value.get_name().starts_with(given));
    values.map(|value| Candidate::new(value.get_name(), value.get_help().map(ToString::to_string).unwrap_or_default())).collect()
}

/// Completes the last item of a list; the others stay before it.
fn in_list(given: &str, of_item: fn(&str) -> Vec<Candidate>) -> Vec<Candidate> {
    let start = given.rfind([',', '!', '=']).map_or(0, |at| at + 1);
    let (others, item) = given.split_at(start);
    of_item(item).into_iter().map(|one| Candidate { text: format!("{others}{}", one.text), ..one }).collect()
}

/// Syscalls, groups, and events: their subsystems first, as there are thousands of them.
fn selected(given: &str) -> Vec<Candidate> {
    if let Some((subsystem, name)) = given.split_once(':') {
        return events(subsystem, name);
    }
    let syscalls = SYSCALLS.iter().filter(|row| row.name.starts_with(given)).map(|row| Candidate::new(row.name, ""));
    let groups = GROUPS.iter().map(|(name, _)| format!("%{name}")).filter(|name| name.starts_with(given));
    let all = syscalls.chain(groups.map(|name| Candidate::new(name, "a group of syscalls")));
    let subsystems = if given.is_empty() { BTreeSet::new() } else { subsystems(given) };
    all.chain(subsystems.into_iter().map(|name| Candidate::new(format!("{name}:"), "events"))).collect()
}

fn subsystems(given: &str) -> BTreeSet<String> {
    let all = Tracefs::find().ok().and_then(|tracefs| tracefs.subsystems().ok());
    all.into_iter().flatten().filter(|name| name.starts_with(given)).collect()
}

fn events(subsystem: &str, name: &str) -> Vec<Candidate> {
    let all = Tracefs::find().ok().and_then(|tracefs| tracefs.matching(subsystem, &format!("{name}*")).ok());
    all.into_iter().flatten().map(|event| Candidate::new(event.to_string(), "")).collect()
}

/// Events that rtrace and others made.
pub fn dynamic_events(given: &str) -> Vec<Candidate> {
    let all = Tracefs::find().ok().and_then(|tracefs| inventory::read(&tracefs).ok());
    let names = all.into_iter().flatten().map(|entry| entry.name.to_string()).filter(|name| name.starts_with(given));
    names.map(|name| Candidate::new(name, "")).collect()
}

fn processes(given: &str) -> Vec<Candidate> {
    let pids = procfs::processes().into_iter().filter(|pid| pid.to_string().starts_with(given));
    pids.map(|pid| {
        let comm = procfs::comm(pid).unwrap_or_default();
        Candidate::new(pid.to_string(), String::from_utf8_lossy(&comm).escape_debug().to_string())
    })
    .collect()
}

fn users(given: &str) -> Vec<Candidate> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let known = fields.filter_map(|fields| Some((*fields.first()?, *fields.get(4)?)));
    known.filter(|(name, _)| name.starts_with(given)).map(|(name, who)| Candidate::new(name, who.replace('\t', " "))).collect()
}

/// The cgroups below what is there of a path.
fn cgroups(given: &str) -> Vec<Candidate> {
    let (above, name) = given.rsplit_once('/').map_or(("", given), |(above, name)| (above, name));
    let roots = kernel::cgroups::roots().unwrap_or_default();
    let inside = roots.iter().flat_map(|root| fs::read_dir(root.place.join(above.trim_start_matches('/')))).flatten().flatten();
    let names = inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned()).filter(|found| found.starts_with(name));
    let head = if given.contains('/') { format!("{above}/") } else { String::new() };
    let all: BTreeSet<String> = names.map(|name| format!("{head}{name}")).collect();
    all.into_iter().map(|path| Candidate::new(path, "")).collect()
}

/// Containers that run, by their names; by IDs where they have none, or one is begun.
fn containers(given: &str) -> Vec<Candidate> {
    let mut all = BTreeSet::new();
    for container in kernel::containers::running() {
        let name = container.names.first().cloned().unwrap_or_default();
        match container.id {
            Some(id) if !given.is_empty() => all.extend([(id.clone(), name.clone()), (name, id)]),
            Some(id) if name.is_empty() => _ = all.insert((id, name)),
            id => _ = all.insert((name, id.unwrap_or_default())),
        }
    }
    let begun = all.into_iter().filter(|(text, _)| !text.is_empty() && text.starts_with(given));
    begun.map(|(text, what)| Candidate::new(text, what.escape_debug().to_string())).collect()
}

/// The programs of the PATH.
pub fn programs(given: &str) -> BTreeSet<String> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&path).filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let named = files.filter(|file| file.file_name().to_string_lossy().starts_with(given));
    let runs = named.filter(|file| fs::metadata(file.path()).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0));
    runs.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

/// Behind `rtrace list`: what to list, then names of it.
pub fn of_list(words: &[String], current: &str) -> Answer {
    if let Some(program) = current.strip_prefix("usdt:") {
        return if program.is_empty() { Answer::Files } else { Answer::These(Vec::new()) };
    }
    let named = |kind: &str| -> Vec<String> {
        match kind {
            "syscalls" => SYSCALLS.iter().map(|row| row.name.to_owned()).collect(),
            "groups" => GROUPS.iter().map(|(name, _)| format!("%{name}")).collect(),
            "tables" => TABLES.iter().map(|table| table.name).chain(STRUCTS.iter().map(|of| of.name)).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    };
    let names: Vec<String> = match words {
        [] => ["syscalls", "groups", "events", "tables", "usdt:"].map(str::to_owned).into_iter().chain(named("syscalls")).collect(),
        [kind] if kind == "events" => return Answer::These(selected(current).into_iter().filter(|one| one.text.contains(':')).collect()),
        [kind, ..] => named(kind),
    };
    let begun = names.into_iter().filter(|name| name.starts_with(current));
    Answer::These(begun.map(|name| Candidate::new(name, "")).collect())
}
