//! Chooses how path names are read without BPF. It lists the sources that this kernel may offer, the most accurate one
//! first, and creates nothing. Arming uses the first source whose events the kernel accepts (`arm/path_names.rs`).

use super::names_at_exit::{AtExit, Trigger};
use crate::beauty::row::{ArgumentKind, Syscall};
use crate::kernel::tracefs::Tracefs;
use crate::kernel::{features, machine};
use crate::probe::grammar::{self, Line, Probe};
use crate::request::StringsBy;
use anyhow::anyhow;
use std::collections::VecDeque;
use std::fmt;

/// The probe that reads path names by perf's convention: its group, its event, and the field with the name.
pub(super) const CONVENTION: (&str, &str, &str) = ("probe", "vfs_getname", "pathname");

/// The sources of path names that arming has not tried yet, and the reasons why earlier ones are not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNames {
    /// The source that is used if the kernel accepts its events.
    first: Candidate,
    /// The sources to which rtrace falls back, in this order.
    others: VecDeque<Candidate>,
    /// The reasons why better sources are not used.
    refusals: Vec<String>,
    /// Why the `syscalls:` events have no copies of strings, if that source is skipped when the return probe cannot be
    /// used.
    no_copies: Option<&'static str>,
    /// Whether the user asked for this source (`--strings-by`).
    pub asked: bool,
    /// The triggers that are to be set in the tracefs instance, once the source's events exist.
    pub triggers: Vec<Trigger>,
}

/// A source of path names and the reason for its choice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    source: PathNameSource,
    because: Because,
}

/// The reason why a source is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Because {
    /// The choice needs no comparison with other sources; this text says why.
    Known(&'static str),
    /// Better sources are not available. These words introduce the reasons.
    Refusals(&'static str),
}

/// A source of path names, with the descriptions of the events that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathNameSource {
    /// No source: path names are printed as addresses.
    None,
    /// A return probe on the kernel's function that copies names: the first of these probes that the kernel accepts.
    Getname(Vec<Probe>),
    /// The existing event `probe:vfs_getname`.
    VfsGetname,
    /// The copies of strings that the `syscalls:` events have from Linux 6.19 on.
    Events,
    /// An event probe that reads the names when the calls return.
    AtExit(AtExit),
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

/// Returns the source that reads names by a return probe.
///
/// # Errors
/// This kernel has no kprobes.
pub fn getname(tracefs: &Tracefs) -> anyhow::Result<PathNameSource> {
    if !features::has_kprobes(tracefs) {
        return Err(anyhow!("this kernel was built without kprobes (CONFIG_KPROBE_EVENTS)"));
    }
    let version = machine::release().ok().and_then(|release| machine::version(&release));
    Ok(PathNameSource::Getname(probes(version.is_some_and(|version| version < DO_GETNAME))))
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

/// Lists the sources of path names, or only the one that the user requires. `getname` and `at_exit` return the sources
/// for which events are created, or the reason why there can be none.
///
/// # Errors
/// The source that the user asked for is not available.
pub fn choose(
    asked: StringsBy,
    facts: PathNameInputs,
    getname: impl FnOnce() -> anyhow::Result<PathNameSource>,
    at_exit: impl FnOnce() -> PathNameSource,
) -> anyhow::Result<PathNames> {
    let by =
        |source, why| Ok(PathNames { asked: asked != StringsBy::Auto, ..PathNames::from(Candidate::new(source, Because::Known(why))) });
    let as_asked = "--strings-by asks for it";
    match asked {
        _ if !facts.wanted => by(PathNameSource::None, "none are shown"),
        StringsBy::None => by(PathNameSource::None, "--strings-by none asks for addresses"),
        StringsBy::Getname => by(getname().map_err(|refused| refused.context(NO_PROBE_AS_ASKED))?, as_asked),
        StringsBy::Eprobe => by(at_exit(), as_asked),
        StringsBy::VfsGetname if facts.vfs_getname => by(PathNameSource::VfsGetname, as_asked),
        StringsBy::VfsGetname => {
            Err(anyhow!("--strings-by vfs_getname: there is no event probe:vfs_getname with a string named pathname; perf probe makes one"))
        }
        StringsBy::Events => match facts.copies {
            Ok(()) => by(PathNameSource::Events, as_asked),
            Err(why) => Err(anyhow!("--strings-by events: no event has copies of strings: {why}")),
        },
        StringsBy::Auto => Ok(available(facts, getname(), at_exit)),
    }
}

/// Lists the sources that this kernel may offer, the most accurate one first. `getname` is the return probe, or the
/// reason why there can be none.
fn available(facts: PathNameInputs, getname: anyhow::Result<PathNameSource>, at_exit: impl FnOnce() -> PathNameSource) -> PathNames {
    let others: VecDeque<Candidate> = match facts.copies {
        _ if facts.vfs_getname => {
            [Candidate::new(PathNameSource::VfsGetname, Because::Known("that probe exists, and reads names of any length"))].into()
        }
        Ok(()) => [Candidate::new(PathNameSource::Events, Because::Refusals("they have copies of the names, and "))].into(),
        Err(_) => [at_exit(), PathNameSource::None].map(|source| Candidate::new(source, Because::Refusals(""))).into(),
    };
    let no_copies = facts.copies.err().filter(|_| !facts.vfs_getname);
    let (probe, refused) = match getname {
        Ok(probe) => (probe, None),
        Err(refused) => (PathNameSource::Getname(Vec::new()), Some(refused)),
    };
    let first = Candidate::new(probe, Because::Known("it reads complete names and the argument of each"));
    let mut names = PathNames { others, no_copies, ..PathNames::from(first) };
    if let Some(refused) = refused {
        names.fall_back(&refused);
    }
    names
}

/// The message if the kernel rejects the events of the source that the user requires.
const NO_PROBE_AS_ASKED: &str = "--strings-by getname: no probe can be made";
const NOT_AT_EXIT_AS_ASKED: &str = "--strings-by eprobe: rtrace cannot read names when calls return";

impl Candidate {
    fn new(source: PathNameSource, because: Because) -> Candidate {
        Candidate { source, because }
    }
}

impl PathNames {
    /// Returns a source without alternatives.
    fn from(first: Candidate) -> PathNames {
        PathNames { first, others: VecDeque::new(), refusals: Vec::new(), no_copies: None, asked: false, triggers: Vec::new() }
    }

    /// Returns the source that is used if the kernel accepts its events.
    pub fn source(&self) -> &PathNameSource {
        &self.first.source
    }

    /// Falls back to the next source, because the events of the current one cannot be created.
    ///
    /// # Errors
    /// The user requires this source, so there is no other.
    pub fn refuse(&mut self, refused: anyhow::Error) -> anyhow::Result<()> {
        let as_asked = if self.is_at_exit() { NOT_AT_EXIT_AS_ASKED } else { NO_PROBE_AS_ASKED };
        if self.fall_back(&refused) { Ok(()) } else { Err(refused.context(as_asked)) }
    }

    /// Falls back to the next source. Returns false if there is none.
    fn fall_back(&mut self, refused: &anyhow::Error) -> bool {
        let what = if self.is_at_exit() { "and they cannot be read when calls return" } else { "no probe can be made" };
        let Some(next) = self.others.pop_front() else { return false };
        self.first = next;
        self.refusals.push(format!("{what}: {refused:#}"));
        self.refusals.extend(self.no_copies.take().map(str::to_owned));
        true
    }

    fn is_at_exit(&self) -> bool {
        matches!(self.first.source, PathNameSource::AtExit(_))
    }

    fn why(&self) -> String {
        match self.first.because {
            Because::Known(why) => why.to_owned(),
            Because::Refusals(before) => format!("{before}{}", self.refusals.join("; ")),
        }
    }
}

impl fmt::Display for PathNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why();
        match self.source() {
            PathNameSource::Getname(_) => write!(
                f,
                "path names by a return probe in the kernel, because {why}; it slows down every call on this machine that names a path"
            ),
            PathNameSource::None => write!(f, "path names are not known, only their addresses: {why}"),
            PathNameSource::VfsGetname => write!(
                f,
                "path names by the event probe:vfs_getname, because {why}; the names of calls with two paths are missing, since the event does not say which one it read"
            ),
            PathNameSource::AtExit(at_exit) => write!(
                f,
                "path names by an event probe when calls return, because {why}; it slows down {} on this machine",
                match at_exit.calls(&self.triggers) {
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

    const NOTHING: PathNameInputs = PathNameInputs { wanted: true, vfs_getname: false, copies: Err("no copies") };
    const ALL: PathNameInputs = PathNameInputs { vfs_getname: true, copies: Ok(()), ..NOTHING };

    fn at_exit() -> PathNameSource {
        PathNameSource::AtExit(AtExit::new(&SYSCALLS.iter().filter(|call| call.name == "openat").collect::<Vec<_>>(), None))
    }

    /// Lists the sources on a kernel with kprobes.
    fn with_kprobes(facts: PathNameInputs) -> PathNames {
        choose(StringsBy::Auto, facts, || Ok(PathNameSource::Getname(probes(false))), at_exit).unwrap()
    }

    /// Refuses one source after the other, and returns how the plan describes each.
    fn descriptions(mut names: PathNames) -> Vec<String> {
        let mut said = vec![names.to_string()];
        while names.refuse(anyhow!("refusal {}", said.len())).is_ok() {
            said.push(names.to_string());
        }
        said
    }

    /// Returns each sentence up to its semicolon. The part behind the semicolon says what the source costs.
    fn beginnings(said: &[String]) -> Vec<&str> {
        let costs = ["; it slows down", "; the names of calls", "; the kernel cuts"];
        said.iter().map(|said| costs.iter().fold(said.as_str(), |said, cost| said.split(cost).next().unwrap())).collect()
    }

    #[test]
    fn sources_are_tried_in_the_order_of_their_accuracy_and_the_plan_says_why() {
        let probe = "path names by a return probe in the kernel, because it reads complete names and the argument of each";
        assert_eq!(
            beginnings(&descriptions(with_kprobes(NOTHING))),
            [
                probe,
                "path names by an event probe when calls return, because no probe can be made: refusal 1; no copies",
                "path names are not known, only their addresses: no probe can be made: refusal 1; no copies; \
                 and they cannot be read when calls return: refusal 2",
            ]
        );
        assert_eq!(
            beginnings(&descriptions(with_kprobes(PathNameInputs { vfs_getname: false, ..ALL }))),
            [probe, "path names by the syscalls: events, because they have copies of the names, and no probe can be made: refusal 1"]
        );
        assert_eq!(
            beginnings(&descriptions(with_kprobes(ALL))),
            [probe, "path names by the event probe:vfs_getname, because that probe exists, and reads names of any length"]
        );
    }

    #[test]
    fn a_kernel_without_kprobes_begins_with_the_next_source() {
        let sources = |facts| choose(StringsBy::Auto, facts, || Err(anyhow!("no kprobes")), at_exit).unwrap();
        assert_eq!(*sources(NOTHING).source(), at_exit());
        assert!(sources(NOTHING).to_string().contains("because no probe can be made: no kprobes; no copies; it slows down each such call"));
        assert_eq!(*sources(PathNameInputs { copies: Ok(()), ..NOTHING }).source(), PathNameSource::Events);
        assert_eq!(*sources(ALL).source(), PathNameSource::VfsGetname);
    }

    #[test]
    fn a_requested_source_that_is_not_available_is_an_error() {
        let error = |asked| format!("{:#}", choose(asked, NOTHING, || Err(anyhow!("no kprobes")), at_exit).unwrap_err());
        assert!(error(StringsBy::VfsGetname).contains("no event probe:vfs_getname"));
        assert!(error(StringsBy::Events).ends_with(": no copies"));
        assert_eq!(error(StringsBy::Getname), "--strings-by getname: no probe can be made: no kprobes");
        let refused = |asked| {
            let mut names = choose(asked, NOTHING, || Ok(PathNameSource::Getname(probes(false))), at_exit).unwrap();
            format!("{:#}", names.refuse(anyhow!("not accepted")).unwrap_err())
        };
        assert_eq!(refused(StringsBy::Getname), "--strings-by getname: no probe can be made: not accepted");
        assert_eq!(refused(StringsBy::Eprobe), "--strings-by eprobe: rtrace cannot read names when calls return: not accepted");
    }

    #[test]
    fn no_source_is_looked_up_for_names_that_are_not_shown() {
        let none = |asked, facts| choose(asked, facts, || panic!("it looks up a probe"), || panic!("it looks up events")).unwrap();
        assert_eq!(*none(StringsBy::None, ALL).source(), PathNameSource::None);
        assert_eq!(*none(StringsBy::Auto, PathNameInputs { wanted: false, ..ALL }).source(), PathNameSource::None);
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
