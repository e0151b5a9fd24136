//! Chooses how path names are read without BPF. Of the sources that this kernel offers, the most accurate one is taken.

use super::events::{EventAdder, Tracepoint};
use super::names_at_exit::{self, AtExit, Trigger};
use crate::beauty::row::{ArgumentKind, Syscall};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::kernel::{features, machine};
use crate::probe::grammar::{self, Line, Probe};
use crate::probe::run_events::RunEvents;
use crate::request::StringsBy;
use crate::session::{Role, Terms};
use anyhow::{Context, anyhow};
use std::fmt;

/// The probe that reads path names by perf's convention: its group, its event, and the field with the name.
const CONVENTION: (&str, &str, &str) = ("probe", "vfs_getname", "pathname");

/// The source of path names and the reason for its choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNames {
    pub source: PathNameSource,
    why: String,
    /// Whether the user asked for this source (`--strings-by`).
    pub asked: bool,
}

/// The source of path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathNameSource {
    /// No source: path names are printed as addresses.
    None,
    /// The named event, a return probe that rtrace made on the kernel's function that copies names.
    Getname(EventName),
    /// The existing event `probe:vfs_getname`.
    VfsGetname,
    /// The copies of strings that the `syscalls:` events have from Linux 6.19 on.
    Events,
    /// An event probe that reads the names when the calls return.
    AtExit(AtExit),
}

/// The sources for which rtrace creates events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreatedSource {
    Getname,
    AtExit,
}

/// The calls and threads for which the events are created.
#[derive(Clone, Copy, Debug)]
pub struct PathNameScope<'a> {
    pub shown: &'a [&'static Syscall],
    /// The traced threads, where no others can join them.
    pub only: Option<&'a [i32]>,
}

/// The facts that the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct PathNameInputs {
    /// Whether some of the shown calls name a path.
    pub wanted: bool,
    /// Whether `probe:vfs_getname` exists and has the field with the name.
    pub vfs_getname: bool,
    /// `Ok` if the events of the calls with paths have copies of them, otherwise the reason why not.
    pub copies: Result<(), &'static str>,
}

impl PathNameInputs {
    /// Collects the facts from tracefs. `own_events` says that calls are traced by `syscalls:` events.
    pub fn find(tracefs: &Tracefs, shown: &[&'static Syscall], everything: bool, own_events: bool) -> PathNameInputs {
        let with_paths: Vec<&Syscall> = shown.iter().copied().filter(|call| names_a_path(call)).collect();
        let has_copy = |call: &&Syscall| {
            tracefs.format("syscalls", &format!("sys_enter_{}", call.event)).is_ok_and(|format| !format.user_copies().is_empty())
        };
        PathNameInputs {
            wanted: everything || !with_paths.is_empty(),
            vfs_getname: has_vfs_getname(tracefs),
            copies: match own_events {
                false => Err("raw_syscalls has only registers"),
                true if with_paths.iter().any(has_copy) => Ok(()),
                true => Err("the syscalls: events of this kernel have no strings (Linux 6.19 adds them)"),
            },
        }
    }
}

/// Returns whether the event `probe:vfs_getname` exists and has the field that perf's convention names.
pub fn has_vfs_getname(tracefs: &Tracefs) -> bool {
    let (group, event, field) = CONVENTION;
    // Without this check, `Tracefs::format` searches all events for similar names when the event does not exist.
    tracefs.has(group, event) && tracefs.format(group, event).is_ok_and(|format| format.field(field).is_some_and(|field| field.is_text()))
}

fn names_a_path(call: &Syscall) -> bool {
    call.signatures().any(|signature| signature.args.iter().any(|arg| matches!(arg.kind, ArgumentKind::Path)))
}

/// The kernel's function that copies all names from user space, the most likely one first. Linux 7.0 introduced
/// `do_getname`, of which a compiler may make a clone with a constant argument. Before 7.0 the compiler splits a part
/// off `getname_flags`, whose callers then call that part.
const FUNCTIONS: [&str; 3] = ["do_getname", "do_getname.constprop.0", "getname_flags"];
const FUNCTIONS_BEFORE: [&str; 2] = ["getname_flags.part.0", "getname_flags"];

/// The expression for the address of each name. Return probes have arguments from 6.9 on; before 7.0, `struct filename`
/// begins with the name and the address.
const ADDRESS: &str = "$arg1";
const ADDRESS_BEFORE: &str = "+8($retval)";

/// The kernel version that introduced the first of [`FUNCTIONS`].
const DO_GETNAME: (u32, u32) = (7, 0);

/// How many calls may copy names at the same time (maxactive); each may wait for a page of its caller's memory. The
/// names of further calls are missed.
const AT_ONCE: u32 = 512;

/// Creates the events that this source needs.
///
/// # Errors
/// The kernel rejects them.
pub fn make(created: CreatedSource, tracefs: &Tracefs, made: &mut RunEvents, scope: PathNameScope) -> anyhow::Result<PathNameSource> {
    match created {
        CreatedSource::Getname => getname(tracefs, made).map(PathNameSource::Getname),
        CreatedSource::AtExit => names_at_exit::make(tracefs, made, scope.shown, scope.only).map(PathNameSource::AtExit),
    }
}

fn getname(tracefs: &Tracefs, made: &mut RunEvents) -> anyhow::Result<EventName> {
    if !features::has_kprobes(tracefs) {
        return Err(anyhow!("this kernel was built without kprobes (CONFIG_KPROBE_EVENTS)"));
    }
    let version = machine::release().ok().and_then(|release| machine::version(&release));
    made.create_own(tracefs, &probes(version.is_some_and(|version| version < DO_GETNAME)))
}

/// Returns the candidate probes, one for each function.
fn probes(before: bool) -> Vec<Probe> {
    let (functions, address) = if before { (&FUNCTIONS_BEFORE[..], ADDRESS_BEFORE) } else { (&FUNCTIONS[..], ADDRESS) };
    functions.iter().filter_map(|function| probe(function, address)).collect()
}

/// Returns a return probe on this function. Its field `result`, the function's return value, distinguishes names from
/// errors.
fn probe(function: &str, address: &str) -> Option<Probe> {
    let line = format!("r{AT_ONCE}:getname {function} name=+0(+0($retval)):string address={address}:x64 result=$retval:x64");
    match grammar::parse(&line) {
        Ok(Line::Make(probe)) => Some(probe),
        _ => None,
    }
}

/// Chooses the source of path names, or takes the one that the user asked for. `make` creates the events of a source.
///
/// # Errors
/// The source that the user asked for is not available.
pub fn choose(
    asked: StringsBy,
    facts: PathNameInputs,
    mut make: impl FnMut(CreatedSource) -> anyhow::Result<PathNameSource>,
) -> anyhow::Result<PathNames> {
    let taken = |source, why: &str| Ok(PathNames { source, why: why.to_owned(), asked: asked != StringsBy::Auto });
    let as_asked = "--strings-by asks for it";
    match asked {
        _ if !facts.wanted => taken(PathNameSource::None, "none are shown"),
        StringsBy::None => taken(PathNameSource::None, "--strings-by none asks for addresses"),
        StringsBy::Getname => taken(make(CreatedSource::Getname).context("--strings-by getname: no probe can be made")?, as_asked),
        StringsBy::Eprobe => {
            taken(make(CreatedSource::AtExit).context("--strings-by eprobe: rtrace cannot read names when calls return")?, as_asked)
        }
        StringsBy::VfsGetname if facts.vfs_getname => taken(PathNameSource::VfsGetname, as_asked),
        StringsBy::VfsGetname => {
            Err(anyhow!("--strings-by vfs_getname: there is no event probe:vfs_getname with a string named pathname; perf probe makes one"))
        }
        StringsBy::Events => match facts.copies {
            Ok(()) => taken(PathNameSource::Events, as_asked),
            Err(why) => Err(anyhow!("--strings-by events: no event has copies of strings: {why}")),
        },
        StringsBy::Auto => match make(CreatedSource::Getname) {
            Ok(source) => taken(source, "it reads complete names and the argument of each"),
            Err(_) if facts.vfs_getname => taken(PathNameSource::VfsGetname, "that probe exists, and reads names of any length"),
            Err(refused) => match facts.copies {
                Ok(()) => taken(PathNameSource::Events, &format!("they have copies of the names, and no probe can be made: {refused:#}")),
                Err(why) => last(make(CreatedSource::AtExit), &format!("no probe can be made: {refused:#}; {why}")),
            },
        },
    }
}

/// Chooses the last source, or none if its events cannot be created either.
fn last(made: anyhow::Result<PathNameSource>, why: &str) -> anyhow::Result<PathNames> {
    Ok(match made {
        Ok(source) => PathNames { source, why: why.to_owned(), asked: false },
        Err(refused) => PathNames {
            source: PathNameSource::None,
            why: format!("{why}; and they cannot be read when calls return: {refused:#}"),
            asked: false,
        },
    })
}

impl PathNames {
    /// Adds the events that the source needs to the plan.
    ///
    /// # Errors
    /// One of the events no longer exists.
    pub fn add_events(&self, add: &mut EventAdder) -> anyhow::Result<()> {
        let (group, event, _) = CONVENTION;
        match &self.source {
            PathNameSource::None => add.without_copied_strings(),
            PathNameSource::Getname(name) => _ = add.tracepoint(Tracepoint::helper(&name.subsystem, &name.name, Role::PathName))?,
            PathNameSource::VfsGetname => _ = add.tracepoint(Tracepoint::helper(group, event, Role::PathName))?,
            PathNameSource::AtExit(AtExit { addresses, names, .. }) => {
                for (event, role, name) in [(addresses, Role::Tracepoint, "paths' addresses"), (names, Role::PathName, "path names")] {
                    let terms = Terms { name: Some(name.to_owned()), ..Terms::default() };
                    let helper = Tracepoint::helper(&event.subsystem, &event.name, role);
                    add.tracepoint(Tracepoint { by_instance: true, terms, ..helper })?;
                }
            }
            PathNameSource::Events => {}
        }
        Ok(())
    }

    /// Returns the triggers that are to be set in the instance.
    pub fn triggers(&self) -> &[Trigger] {
        match &self.source {
            PathNameSource::AtExit(AtExit { triggers, .. }) => triggers,
            _ => &[],
        }
    }
}

impl fmt::Display for PathNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = &self.why;
        match &self.source {
            PathNameSource::Getname(_) => write!(
                f,
                "path names by a return probe in the kernel, because {why}; it slows down every call on this machine that names a path"
            ),
            PathNameSource::None => write!(f, "path names are not known, only their addresses: {why}"),
            PathNameSource::VfsGetname => write!(
                f,
                "path names by the event probe:vfs_getname, because {why}; the names of calls with two paths are missing, since the event does not say which one it read"
            ),
            PathNameSource::AtExit(AtExit { triggers, .. }) => write!(
                f,
                "path names by an event probe when calls return, because {why}; it slows down {} on this machine",
                match triggers.len() / 2 {
                    1 => "each such call".to_owned(),
                    calls => format!("each call of {calls} syscalls"),
                }
            ),
            PathNameSource::Events => write!(
                f,
                "path names by the syscalls: events, because {why}; the kernel cuts long names and replaces unprintable characters by dots: such names are shown as ~\"name\""
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables::SYSCALLS;

    const NOTHING: PathNameInputs = PathNameInputs { wanted: true, vfs_getname: false, copies: Err("no") };
    const ALL: PathNameInputs = PathNameInputs { vfs_getname: true, copies: Ok(()), ..NOTHING };

    fn made(created: CreatedSource) -> anyhow::Result<PathNameSource> {
        let event = |name: &str| EventName { subsystem: "rtrace_1_2".into(), name: name.into() };
        Ok(match created {
            CreatedSource::Getname => PathNameSource::Getname(event("getname")),
            CreatedSource::AtExit => {
                PathNameSource::AtExit(AtExit { addresses: event("path_address"), names: event("path_name"), triggers: Vec::new() })
            }
        })
    }

    fn none(created: CreatedSource) -> anyhow::Result<PathNameSource> {
        Err(anyhow!("it may not make {created:?}"))
    }

    /// Creates only sources that need no probe in the kernel's code.
    fn no_kprobes(created: CreatedSource) -> anyhow::Result<PathNameSource> {
        if created == CreatedSource::AtExit { made(created) } else { none(created) }
    }

    #[test]
    fn the_most_accurate_source_is_chosen() {
        let source =
            |facts, make: fn(CreatedSource) -> anyhow::Result<PathNameSource>| choose(StringsBy::Auto, facts, make).unwrap().source;
        assert_eq!(source(NOTHING, none), PathNameSource::None);
        assert_eq!(source(NOTHING, no_kprobes), made(CreatedSource::AtExit).unwrap());
        assert_eq!(source(PathNameInputs { copies: Ok(()), ..NOTHING }, no_kprobes), PathNameSource::Events);
        assert_eq!(source(ALL, no_kprobes), PathNameSource::VfsGetname);
        assert_eq!(source(ALL, made), made(CreatedSource::Getname).unwrap());
        assert_eq!(source(PathNameInputs { wanted: false, ..ALL }, made), PathNameSource::None);
    }

    #[test]
    fn the_plan_says_why_no_probe_can_be_made() {
        let text = |facts| choose(StringsBy::Auto, facts, none).unwrap().to_string();
        assert!(
            text(PathNameInputs { vfs_getname: false, ..ALL }).contains(
                "by the syscalls: events, because they have copies of the names, and no probe can be made: it may not make Getname"
            )
        );
        assert!(text(NOTHING).ends_with("it may not make Getname; no; and they cannot be read when calls return: it may not make AtExit"));
    }

    #[test]
    fn a_requested_source_that_is_not_available_is_an_error() {
        let error = |asked| choose(asked, NOTHING, none).unwrap_err().to_string();
        assert!(error(StringsBy::VfsGetname).contains("no event probe:vfs_getname"));
        assert!(error(StringsBy::Events).ends_with(": no"));
        assert!(error(StringsBy::Getname).starts_with("--strings-by getname: "));
        assert!(error(StringsBy::Eprobe).starts_with("--strings-by eprobe: "));
        assert_eq!(choose(StringsBy::None, ALL, |_| panic!("it makes one all the same")).unwrap().source, PathNameSource::None);
    }

    #[test]
    fn probes_are_in_the_language_of_the_kernel() {
        let lines = |before| probes(before).iter().map(Probe::to_string).collect::<Vec<String>>();
        assert_eq!(lines(false)[0], "r512:getname do_getname name=+0(+0($retval)):string address=$arg1:x64 result=$retval:x64");
        assert_eq!((lines(false).len(), lines(true).len()), (FUNCTIONS.len(), FUNCTIONS_BEFORE.len()));
        assert!(lines(true)[0].contains(" getname_flags.part.0 name=+0(+0($retval)):string address=+8($retval):x64 "));
    }

    #[test]
    fn paths_of_calls_are_found_in_rows_and_variants() {
        let names = |name: &str| SYSCALLS.iter().find(|call| call.name == name).is_some_and(names_a_path);
        assert!(names("openat") && names("rename") && names("fsconfig"));
        assert!(!names("read") && !names("connect"));
    }
}
