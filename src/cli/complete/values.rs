//! Candidates for the values of options: syscalls and events, processes, users, cgroups, containers, programs.
//!
//! In each function, `typed` is the beginning of the value, up to the cursor.

use super::{Answer, Candidate};
use crate::beauty::lookup::requests;
use crate::beauty::tables::{STRUCTS, SYSCALLS, TABLES};
use crate::kernel::tracefs::Tracefs;
use crate::kernel::{self, procfs};
use crate::probe::inventory;
use crate::request::select::{GROUPS, REQUESTS};
use clap::{Arg, ValueHint};
use std::collections::BTreeSet;
use std::fs;

/// Returns the values of an option that begin with `typed`.
pub fn of(arg: &Arg, typed: &str) -> Answer {
    let candidates = match arg.get_id().as_str() {
        "event" => in_list(typed, selected),
        "switch_on" | "switch_off" => selected(typed),
        "pid" | "tid" | "filter_pids" => in_list(typed, processes),
        "uid" | "run_as" => users(typed),
        "cgroup" => cgroups(typed),
        "container" => containers(typed),
        _ => possible(Some(arg), typed),
    };
    match arg.get_value_hint() {
        _ if !candidates.is_empty() => Answer::Candidates(candidates),
        ValueHint::FilePath | ValueHint::AnyPath => Answer::Files,
        ValueHint::DirPath => Answer::Directories,
        _ => Answer::Candidates(candidates),
    }
}

/// Returns the values that the definition of an argument lists.
pub fn possible(arg: Option<&Arg>, typed: &str) -> Vec<Candidate> {
    let values = arg.map(Arg::get_possible_values).unwrap_or_default();
    let values = values.iter().filter(|value| value.get_name().starts_with(typed));
    values.map(|value| Candidate::new(value.get_name(), value.get_help().map(ToString::to_string).unwrap_or_default())).collect()
}

/// Completes the last item of a list. The candidates include the items before it.
fn in_list(typed: &str, of_item: fn(&str) -> Vec<Candidate>) -> Vec<Candidate> {
    let start = typed.rfind([',', '!', '=']).map_or(0, |at| at + 1);
    let (others, item) = typed.split_at(start);
    of_item(item).into_iter().map(|one| Candidate { text: format!("{others}{}", one.text), ..one }).collect()
}

/// Returns syscalls, groups and events. There are thousands of events, so their subsystems are completed first.
fn selected(typed: &str) -> Vec<Candidate> {
    if let Some((subsystem, name)) = typed.split_once(':') {
        let of_rings = requests::names().filter(|name| name.starts_with(typed)).map(|name| Candidate::new(name, ""));
        return of_rings.chain(events(subsystem, name)).collect();
    }
    let syscalls = SYSCALLS.iter().filter(|row| row.name.starts_with(typed)).map(|row| Candidate::new(row.name, ""));
    let groups = GROUPS.iter().map(|(name, _)| format!("%{name}")).filter(|name| name.starts_with(typed));
    let all_requests = Some(format!("%{REQUESTS}")).filter(|name| name.starts_with(typed));
    let all_requests = all_requests.map(|name| Candidate::new(name, "all requests of io_uring"));
    let all = syscalls.chain(groups.map(|name| Candidate::new(name, "a group of syscalls"))).chain(all_requests);
    let subsystems = if typed.is_empty() { BTreeSet::new() } else { subsystems(typed) };
    all.chain(subsystems.into_iter().map(|name| Candidate::new(format!("{name}:"), "events"))).collect()
}

fn subsystems(typed: &str) -> BTreeSet<String> {
    let all = Tracefs::find().ok().and_then(|tracefs| tracefs.subsystems().ok());
    all.into_iter().flatten().filter(|name| name.starts_with(typed)).collect()
}

fn events(subsystem: &str, name: &str) -> Vec<Candidate> {
    let all = Tracefs::find().ok().and_then(|tracefs| tracefs.matching(subsystem, &format!("{name}*")).ok());
    all.into_iter().flatten().map(|event| Candidate::new(event.to_string(), "")).collect()
}

/// Returns the dynamic events of the kernel, whoever created them.
pub fn dynamic_events(typed: &str) -> Vec<Candidate> {
    let all = Tracefs::find().ok().and_then(|tracefs| inventory::read(&tracefs).ok());
    let names = all.into_iter().flatten().map(|entry| entry.name.to_string()).filter(|name| name.starts_with(typed));
    names.map(|name| Candidate::new(name, "")).collect()
}

fn processes(typed: &str) -> Vec<Candidate> {
    let pids = procfs::processes().into_iter().filter(|pid| pid.to_string().starts_with(typed));
    pids.map(|pid| {
        let comm = procfs::comm(pid).unwrap_or_default();
        Candidate::new(pid.to_string(), String::from_utf8_lossy(&comm).escape_debug().to_string())
    })
    .collect()
}

fn users(typed: &str) -> Vec<Candidate> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let known = fields.filter_map(|fields| Some((*fields.first()?, *fields.get(4)?)));
    known.filter(|(name, _)| name.starts_with(typed)).map(|(name, who)| Candidate::new(name, who.replace('\t', " "))).collect()
}

/// Returns the cgroups of the directory that the typed path has reached.
fn cgroups(typed: &str) -> Vec<Candidate> {
    let (above, name) = typed.rsplit_once('/').map_or(("", typed), |(above, name)| (above, name));
    let roots = kernel::cgroups::roots().unwrap_or_default();
    let inside = roots.iter().flat_map(|root| fs::read_dir(root.mount_point.join(above.trim_start_matches('/')))).flatten().flatten();
    let names = inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned()).filter(|found| found.starts_with(name));
    let head = if typed.contains('/') { format!("{above}/") } else { String::new() };
    let all: BTreeSet<String> = names.map(|name| format!("{head}{name}")).collect();
    all.into_iter().map(|path| Candidate::new(path, "")).collect()
}

/// Returns the running containers: their names, their IDs if they have no name, and both once something has been typed.
fn containers(typed: &str) -> Vec<Candidate> {
    let mut all = BTreeSet::new();
    for container in kernel::containers::running() {
        let name = container.names.first().cloned().unwrap_or_default();
        match container.id {
            Some(id) if !typed.is_empty() => all.extend([(id.clone(), name.clone()), (name, id)]),
            Some(id) if name.is_empty() => _ = all.insert((id, name)),
            id => _ = all.insert((name, id.unwrap_or_default())),
        }
    }
    let matching = all.into_iter().filter(|(text, _)| !text.is_empty() && text.starts_with(typed));
    matching.map(|(text, what)| Candidate::new(text, what.escape_debug().to_string())).collect()
}

/// Returns the names of the executable files in `PATH`.
pub fn programs(typed: &str) -> BTreeSet<String> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&path).filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let named = files.filter(|file| file.file_name().to_string_lossy().starts_with(typed));
    let runs = named.filter(|file| fs::metadata(file.path()).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0));
    runs.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the candidates for a word after `rtrace list`: first the kind of thing to list, then names of that kind.
pub fn of_list(words: &[String], current: &str) -> Answer {
    if let Some(program) = current.strip_prefix("usdt:") {
        return if program.is_empty() { Answer::Files } else { Answer::Candidates(Vec::new()) };
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
        [kind] if kind == "events" => {
            return Answer::Candidates(selected(current).into_iter().filter(|one| one.text.contains(':')).collect());
        }
        [kind, ..] => named(kind),
    };
    let matching = names.into_iter().filter(|name| name.starts_with(current));
    Answer::Candidates(matching.map(|name| Candidate::new(name, "")).collect())
}
