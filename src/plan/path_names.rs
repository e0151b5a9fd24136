//! How path names are known without BPF: by what this kernel has, the truest first.

use super::events::{Adding, Tracepoint};
use crate::beauty::row::{Arg, Kind, Syscall};
use crate::cli::request::StringsBy;
use crate::kernel::tracefs::Tracefs;
use crate::source::session::Role;
use anyhow::anyhow;
use std::fmt;

/// Where perf's convention has a probe that reads path names: the group, the event, and the field with the name.
const CONVENTION: (&str, &str, &str) = ("probe", "vfs_getname", "pathname");

/// A way, and why it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNames {
    pub way: Way,
    why: String,
}

/// By what path names are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They are addresses.
    None,
    /// By the event `probe:vfs_getname`, which is there.
    VfsGetname,
    /// By what the `syscalls:` events bring along from Linux 6.19 on.
    Events,
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
    tracefs.format(group, event).is_ok_and(|format| format.field(field).is_some_and(|field| field.is_text()))
}

fn names_a_path(call: &Syscall) -> bool {
    let any = |args: &[Arg]| args.iter().any(|arg| matches!(arg.kind, Kind::Path));
    any(call.args) || call.variants.iter().any(|variant| any(variant.args))
}

/// Chooses, or does as asked.
///
/// # Errors
/// What was asked for is not to be had here: why.
pub fn choose(asked: StringsBy, facts: Facts) -> anyhow::Result<PathNames> {
    let made = |way, why: &str| Ok(PathNames { way, why: why.to_owned() });
    match asked {
        _ if !facts.wanted => made(Way::None, "none are shown"),
        StringsBy::None => made(Way::None, "--strings-by none asks for addresses"),
        StringsBy::VfsGetname if facts.vfs_getname => made(Way::VfsGetname, "--strings-by asks for it"),
        StringsBy::VfsGetname => {
            Err(anyhow!("--strings-by vfs_getname: there is no event probe:vfs_getname with a string named pathname; perf probe makes one"))
        }
        StringsBy::Events => match facts.copies {
            Ok(()) => made(Way::Events, "--strings-by asks for it"),
            Err(why) => Err(anyhow!("--strings-by events: no event brings strings along: {why}")),
        },
        StringsBy::Auto if facts.vfs_getname => made(Way::VfsGetname, "that probe is there, and has names of any length"),
        StringsBy::Auto => match facts.copies {
            Ok(()) => made(Way::Events, "they bring them along"),
            Err(why) => made(Way::None, why),
        },
    }
}

impl PathNames {
    /// Adds the events that it takes.
    ///
    /// # Errors
    /// One of them has gone since.
    pub fn add_events(&self, add: &mut Adding) -> anyhow::Result<()> {
        let (group, event, _) = CONVENTION;
        match self.way {
            Way::None => add.without_copied_strings(),
            Way::VfsGetname => _ = add.tracepoint(Tracepoint::helper(group, event, Role::PathName))?,
            Way::Events => {}
        }
        Ok(())
    }
}

impl fmt::Display for PathNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = &self.why;
        match self.way {
            Way::None => write!(f, "path names are not known, only their addresses: {why}"),
            Way::VfsGetname => write!(
                f,
                "path names by the event probe:vfs_getname, because {why}; but none of calls with two paths, since it does not say which of them it read"
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

    #[test]
    fn the_truest_way_is_chosen() {
        let way = |facts| choose(StringsBy::Auto, facts).unwrap().way;
        assert_eq!(way(NOTHING), Way::None);
        assert_eq!(way(Facts { copies: Ok(()), ..NOTHING }), Way::Events);
        assert_eq!(way(Facts { copies: Ok(()), vfs_getname: true, ..NOTHING }), Way::VfsGetname);
        assert_eq!(way(Facts { wanted: false, vfs_getname: true, ..NOTHING }), Way::None);
    }

    #[test]
    fn what_was_asked_for_and_is_not_there_is_an_error() {
        assert!(choose(StringsBy::VfsGetname, NOTHING).is_err());
        assert!(choose(StringsBy::Events, NOTHING).unwrap_err().to_string().ends_with(": no"));
        assert_eq!(choose(StringsBy::None, Facts { vfs_getname: true, ..NOTHING }).unwrap().way, Way::None);
    }

    #[test]
    fn calls_name_paths_by_their_rows_and_variants() {
        let names = |name: &str| SYSCALLS.iter().find(|call| call.name == name).is_some_and(names_a_path);
        assert!(names("openat") && names("rename") && names("fsconfig"));
        assert!(!names("read") && !names("connect"));
    }
}
