//! How path names are known without BPF: by what this kernel has, the truest first.

use super::events::{Adding, Tracepoint};
use super::names_at_exit::{self, AtExit, Trigger};
use crate::beauty::row::{Kind, Syscall};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::kernel::{features, machine};
use crate::probe::grammar::{self, Line, Probe};
use crate::probe::made::Made;
use crate::request::StringsBy;
use crate::session::{Role, Terms};
use anyhow::{Context, anyhow};
use std::fmt;

/// Where perf's convention has a probe that reads path names: the group, the event, and the field with the name.
const CONVENTION: (&str, &str, &str) = ("probe", "vfs_getname", "pathname");

/// A way, and why it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNames {
    pub way: Way,
    why: String,
    /// The user wants it so and not otherwise.
    pub asked: bool,
}

/// By what path names are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// They are addresses.
    None,
    /// By a return probe of our own in the kernel's function that copies names, which is this event.
    Getname(EventName),
    /// By the event `probe:vfs_getname`, which is there.
    VfsGetname,
    /// By what the `syscalls:` events bring along from Linux 6.19 on.
    Events,
    /// By an event probe that reads them when the calls return.
    AtExit(AtExit),
}

/// The ways that rtrace makes events for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    Getname,
    AtExit,
}

/// Of what the events are made.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub shown: &'a [&'static Syscall],
    /// The threads that are traced, where others cannot come to them.
    pub only: Option<&'a [i32]>,
}

/// What the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Some of the calls that are shown name a path.
    pub wanted: bool,
    /// `probe:vfs_getname` is there and has the name.
    pub vfs_getname: bool,
    /// The events of the calls with paths bring copies of them; otherwise why not.
    pub copies: Result<(), &'static str>,
}

impl Facts {
    /// Looks. `own_events`: calls are seen by `syscalls:` events.
    pub fn find(tracefs: &Tracefs, shown: &[&'static Syscall], everything: bool, own_events: bool) -> Facts {
        let with_paths: Vec<&Syscall> = shown.iter().copied().filter(|call| names_a_path(call)).collect();
        let has_copy = |call: &&Syscall| {
            tracefs.format("syscalls", &format!("sys_enter_{}", call.event)).is_ok_and(|format| !format.user_copies().is_empty())
        };
        Facts {
            wanted: everything || !with_paths.is_empty(),
            vfs_getname: has_vfs_getname(tracefs),
            copies: match own_events {
                false => Err("raw_syscalls has registers alone"),
                true if with_paths.iter().any(has_copy) => Ok(()),
                true => Err("the syscalls: events of this kernel have none (those of 6.19 and later do)"),
            },
        }
    }
}

/// Whether somebody made `probe:vfs_getname`, with the name as perf has it.
pub fn has_vfs_getname(tracefs: &Tracefs) -> bool {
    let (group, event, field) = CONVENTION;
    // Asked for what is not there, tracefs looks through all events for near names.
    tracefs.has(group, event) && tracefs.format(group, event).is_ok_and(|format| format.field(field).is_some_and(|field| field.is_text()))
}

fn names_a_path(call: &Syscall) -> bool {
    call.signatures().any(|signature| signature.args.iter().any(|arg| matches!(arg.kind, Kind::Path)))
}

/// The function that all names from user space come through, the likeliest first. Linux 7.0 gave it a name of its own, of which compilers may make a copy with a constant built in; before,
/// they part it from `getname_flags`, whose callers then call that part.
const FUNCTIONS: [&str; 3] = ["do_getname", "do_getname.constprop.0", "getname_flags"];
const FUNCTIONS_BEFORE: [&str; 2] = ["getname_flags.part.0", "getname_flags"];

/// Where each name was. Return probes know arguments since 6.9; before 7.0, `struct filename` begins with the name and the address.
const ADDRESS: &str = "$arg1";
const ADDRESS_BEFORE: &str = "+8($retval)";

/// Since when there is the first of [`FUNCTIONS`].
const DO_GETNAME: (u32, u32) = (7, 0);

/// How many calls may be copying names at once; each may wait for a page of its caller's. Of more, the names are missed.
const AT_ONCE: u32 = 512;

/// Makes what this way needs.
///
/// # Errors
/// The kernel does not take it: why.
pub fn make(own: Own, tracefs: &Tracefs, made: &mut Made, wanted: Wanted) -> anyhow::Result<Way> {
    match own {
        Own::Getname => getname(tracefs, made).map(Way::Getname),
        Own::AtExit => names_at_exit::make(tracefs, made, wanted.shown, wanted.only).map(Way::AtExit),
    }
}

fn getname(tracefs: &Tracefs, made: &mut Made) -> anyhow::Result<EventName> {
    if !features::has_kprobes(tracefs) {
        return Err(anyhow!("this kernel was built without kprobes (CONFIG_KPROBE_EVENTS)"));
    }
    let version = machine::release().ok().and_then(|release| machine::version(&release));
    made.own(tracefs, &probes(version.is_some_and(|version| version < DO_GETNAME)))
}

/// The probes that may be the right one.
fn probes(before: bool) -> Vec<Probe> {
    let (functions, address) = if before { (&FUNCTIONS_BEFORE[..], ADDRESS_BEFORE) } else { (&FUNCTIONS[..], ADDRESS) };
    functions.iter().filter_map(|function| probe(function, address)).collect()
}

/// A return probe on this function. What it returns tells names from errors.
fn probe(function: &str, address: &str) -> Option<Probe> {
    let line = format!("r{AT_ONCE}:getname {function} name=+0(+0($retval)):string address={address}:x64 result=$retval:x64");
    match grammar::parse(&line) {
        Ok(Line::Make(probe)) => Some(probe),
        _ => None,
    }
}

/// Chooses, or does as asked. `make` makes what a way needs.
///
/// # Errors
/// What was asked for is not to be had here: why.
pub fn choose(asked: StringsBy, facts: Facts, mut make: impl FnMut(Own) -> anyhow::Result<Way>) -> anyhow::Result<PathNames> {
    let taken = |way, why: &str| Ok(PathNames { way, why: why.to_owned(), asked: asked != StringsBy::Auto });
    let as_asked = "--strings-by asks for it";
    match asked {
        _ if !facts.wanted => taken(Way::None, "none are shown"),
        StringsBy::None => taken(Way::None, "--strings-by none asks for addresses"),
        StringsBy::Getname => taken(make(Own::Getname).context("--strings-by getname: no probe can be made")?, as_asked),
        StringsBy::Eprobe => taken(make(Own::AtExit).context("--strings-by eprobe: names cannot be read when calls return")?, as_asked),
        StringsBy::VfsGetname if facts.vfs_getname => taken(Way::VfsGetname, as_asked),
        StringsBy::VfsGetname => {
            Err(anyhow!("--strings-by vfs_getname: there is no event probe:vfs_getname with a string named pathname; perf probe makes one"))
        }
        StringsBy::Events => match facts.copies {
            Ok(()) => taken(Way::Events, as_asked),
            Err(why) => Err(anyhow!("--strings-by events: no event brings strings along: {why}")),
        },
        StringsBy::Auto => match make(Own::Getname) {
            Ok(way) => taken(way, "it has whole names, and tells which argument each is of"),
            Err(_) if facts.vfs_getname => taken(Way::VfsGetname, "that probe is there, and has names of any length"),
            Err(refused) => match facts.copies {
                Ok(()) => taken(Way::Events, &format!("they bring them along, and no probe can be made: {refused:#}")),
                Err(why) => last(make(Own::AtExit), &format!("no probe can be made: {refused:#}; {why}")),
            },
        },
    }
}

/// Where there is no way but the last, or not even that.
fn last(made: anyhow::Result<Way>, why: &str) -> anyhow::Result<PathNames> {
    Ok(match made {
        Ok(way) => PathNames { way, why: why.to_owned(), asked: false },
        Err(refused) => {
            PathNames { way: Way::None, why: format!("{why}; nor can they be read when calls return: {refused:#}"), asked: false }
        }
    })
}

impl PathNames {
    /// Adds the events that it takes.
    ///
    /// # Errors
    /// One of them has gone since.
    pub fn add_events(&self, add: &mut Adding) -> anyhow::Result<()> {
        let (group, event, _) = CONVENTION;
        match &self.way {
            Way::None => add.without_copied_strings(),
            Way::Getname(name) => _ = add.tracepoint(Tracepoint::helper(&name.subsystem, &name.name, Role::PathName))?,
            Way::VfsGetname => _ = add.tracepoint(Tracepoint::helper(group, event, Role::PathName))?,
            Way::AtExit(AtExit { addresses, names, .. }) => {
                for (event, role, name) in [(addresses, Role::Tracepoint, "paths' addresses"), (names, Role::PathName, "path names")] {
                    let terms = Terms { name: Some(name.to_owned()), ..Terms::default() };
                    let helper = Tracepoint::helper(&event.subsystem, &event.name, role);
                    add.tracepoint(Tracepoint { by_instance: true, terms, ..helper })?;
                }
            }
            Way::Events => {}
        }
        Ok(())
    }

    /// What is to be set in the instance.
    pub fn triggers(&self) -> &[Trigger] {
        match &self.way {
            Way::AtExit(AtExit { triggers, .. }) => triggers,
            _ => &[],
        }
    }
}

impl fmt::Display for PathNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = &self.why;
        match &self.way {
            Way::Getname(_) => write!(
                f,
                "path names by a return probe in the kernel, because {why}; every call on this machine that names a path pays for it"
            ),
            Way::None => write!(f, "path names are not known, only their addresses: {why}"),
            Way::VfsGetname => write!(
                f,
                "path names by the event probe:vfs_getname, because {why}; but none of calls with two paths, since it does not say which of them it read"
            ),
            Way::AtExit(AtExit { triggers, .. }) => write!(
                f,
                "path names by an event probe when calls return, because {why}; every {} of this machine's pays for it",
                match triggers.len() / 2 {
                    1 => "such call".to_owned(),
                    calls => format!("call of {calls} kinds"),
                }
            ),
            Way::Events => write!(
                f,
                "path names by the syscalls: events, because {why}; the kernel cuts them, and puts dots for what cannot be printed: such are shown as ~\"name\""
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables::SYSCALLS;

    const NOTHING: Facts = Facts { wanted: true, vfs_getname: false, copies: Err("no") };
    const ALL: Facts = Facts { vfs_getname: true, copies: Ok(()), ..NOTHING };

    fn made(own: Own) -> anyhow::Result<Way> {
        let event = |name: &str| EventName { subsystem: "rtrace_1_2".into(), name: name.into() };
        Ok(match own {
            Own::Getname => Way::Getname(event("getname")),
            Own::AtExit => Way::AtExit(AtExit { addresses: event("path_address"), names: event("path_name"), triggers: Vec::new() }),
        })
    }

    fn none(own: Own) -> anyhow::Result<Way> {
        Err(anyhow!("it may not make {own:?}"))
    }

    /// Whatever needs no probe in the kernel's code.
    fn no_kprobes(own: Own) -> anyhow::Result<Way> {
        if own == Own::AtExit { made(own) } else { none(own) }
    }

    #[test]
    fn the_truest_way_is_chosen() {
        let way = |facts, make: fn(Own) -> anyhow::Result<Way>| choose(StringsBy::Auto, facts, make).unwrap().way;
        assert_eq!(way(NOTHING, none), Way::None);
        assert_eq!(way(NOTHING, no_kprobes), made(Own::AtExit).unwrap());
        assert_eq!(way(Facts { copies: Ok(()), ..NOTHING }, no_kprobes), Way::Events);
        assert_eq!(way(ALL, no_kprobes), Way::VfsGetname);
        assert_eq!(way(ALL, made), made(Own::Getname).unwrap());
        assert_eq!(way(Facts { wanted: false, ..ALL }, made), Way::None);
    }

    #[test]
    fn where_nothing_can_be_made_it_is_said_why() {
        let told = |facts| choose(StringsBy::Auto, facts, none).unwrap().to_string();
        assert!(
            told(Facts { vfs_getname: false, ..ALL })
                .contains("by the syscalls: events, because they bring them along, and no probe can be made: it may not make Getname")
        );
        assert!(told(NOTHING).ends_with("it may not make Getname; no; nor can they be read when calls return: it may not make AtExit"));
    }

    #[test]
    fn what_was_asked_for_and_is_not_there_is_an_error() {
        let error = |asked| choose(asked, NOTHING, none).unwrap_err().to_string();
        assert!(error(StringsBy::VfsGetname).contains("no event probe:vfs_getname"));
        assert!(error(StringsBy::Events).ends_with(": no"));
        assert!(error(StringsBy::Getname).starts_with("--strings-by getname: "));
        assert!(error(StringsBy::Eprobe).starts_with("--strings-by eprobe: "));
        assert_eq!(choose(StringsBy::None, ALL, |_| panic!("it makes one all the same")).unwrap().way, Way::None);
    }

    #[test]
    fn the_probes_are_the_kernels_own_language() {
        let lines = |before| probes(before).iter().map(Probe::to_string).collect::<Vec<String>>();
        assert_eq!(lines(false)[0], "r512:getname do_getname name=+0(+0($retval)):string address=$arg1:x64 result=$retval:x64");
        assert_eq!((lines(false).len(), lines(true).len()), (FUNCTIONS.len(), FUNCTIONS_BEFORE.len()));
        assert!(lines(true)[0].contains(" getname_flags.part.0 name=+0(+0($retval)):string address=+8($retval):x64 "));
    }

    #[test]
    fn calls_name_paths_by_their_rows_and_variants() {
        let names = |name: &str| SYSCALLS.iter().find(|call| call.name == name).is_some_and(names_a_path);
        assert!(names("openat") && names("rename") && names("fsconfig"));
        assert!(!names("read") && !names("connect"));
    }
}
