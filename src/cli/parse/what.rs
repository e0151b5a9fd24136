//! Parses the options that say what to trace: `-e`, `--probe`, `--filter` and related ones.

use super::target::{cpus, numbers};
use super::{Stop, target, wrong};
use crate::cli::args::{Cli, FaultsArg};
use crate::cli::config::Config;
use crate::probe::grammar::{self, Line};
use crate::request::filter::{self, Expr};
use crate::request::inject::{self, Injection};
use crate::request::{EventSelection, Faults, Item, Selector, select};
use crate::session::Terms;
use clap::ArgMatches;

/// Parses the options that select calls and events.
///
/// # Errors
/// A list, probe, filter or number is wrong, or two options contradict each other.
pub fn what(cli: &Cli, matches: &ArgMatches, config: &Config) -> Result<EventSelection, Stop> {
    let (mut items, filter) = items_and_filter(matches, config.add_events.is_some())?;
    let has_items = !items.is_empty();
    let syscalls_option = if cli.what.syscalls { Some(true) } else { cli.what.no_syscalls.then_some(false) };
    if let Some(item) = items.iter().find(|item| syscalls_option == Some(false) && !item.negated && item.selector.selects_syscalls()) {
        return Err(wrong(format!("--no-syscalls contradicts -e {}: leave one of them out", item.selector)));
    }
    if let Some(text) = &config.add_events {
        items.splice(0..0, select::parse_list(text, 0).map_err(|error| wrong(format!("add_events: {error}")))?);
    }
    let event = |option: &str, text: &Option<String>| {
        text.as_deref().map(|text| select::parse_event(text).map_err(|error| wrong(format!("{option}: {error}")))).transpose()
    };
    // Events of `add_events` are traced beside the syscalls, not instead of them.
    let syscalls = syscalls_option.or((config.add_events.is_some() && !has_items).then_some(true));
    Ok(EventSelection {
        items,
        filter,
        syscalls,
        faults: cli.what.pf.map(|kind| match kind {
            FaultsArg::All => Faults::All,
            FaultsArg::Maj => Faults::Major,
            FaultsArg::Min => Faults::Minor,
        }),
        sched: cli.what.sched,
        signals: if cli.what.no_signals { Some(false) } else { cli.what.signals.then_some(true).or(config.signals) },
        switch_on: event("--switch-on", &cli.what.switch_on)?,
        switch_off: event("--switch-off", &cli.what.switch_off)?,
        show_on_off_events: cli.what.show_on_off_events,
        fd_paths: cli.what.fd_paths || config.fd_paths == Some(true),
        cpus: cli.target.cpu.as_deref().map(cpus).transpose()?,
        without_pids: numbers("--filter-pids", &cli.target.filter_pids)?,
        no_inherit: cli.target.no_inherit || config.no_inherit == Some(true),
        delay: cli.target.delay,
        injections: cli.what.inject.iter().map(|text| injection(cli, text)).collect::<Result<_, _>>()?,
    })
}

/// Parses an `--inject`, which is for named tasks.
fn injection(cli: &Cli, text: &str) -> Result<Injection, Stop> {
    if let Some(why) = target::why_not_named(cli) {
        return Err(wrong(format!(
            "--inject {text}: only calls of a command, or of the processes and threads of -p and -t, can be changed, and {why}"
        )));
    }
    inject::parse(text).map_err(|why| wrong(format!("--inject {text}: {why}")))
}

/// Returns the items of all `-e` and `--probe`, each with the `--filter` that follows it, and the filter that applies
/// to everything.
fn items_and_filter(matches: &ArgMatches, after_added: bool) -> Result<(Vec<Item>, Option<Expr>), Stop> {
    let mut items: Vec<Item> = Vec::new();
    let mut general: Option<Expr> = None;
    let mut list = usize::from(after_added);
    let mut latest = 0..0;
    let mut follows_removal = false;
    for (option, text) in in_order(matches) {
        if option != "filter" {
            let more = if option == "probe" { vec![probe(text, list)?] } else { list_of_event(text, list)? };
            latest = items.len()..items.len() + more.len();
            list += 1;
            items.extend(more);
            continue;
        }
        let expr = filter::parse(text).map_err(|error| wrong(format!("--filter: {error}")))?;
        let mut adding = items[latest.clone()].iter_mut().filter(|item| !item.negated).peekable();
        if adding.peek().is_none() {
            follows_removal |= !latest.is_empty();
            general = Some(Expr::both(general, expr));
            continue;
        }
        for item in adding {
            item.filter = Some(Expr::both(item.filter.take(), expr.clone()));
        }
    }
    // `-e '!futex' --filter ...` filters all other calls. If there are other items, the filter could be meant for any.
    if follows_removal && items.iter().any(|item| !item.negated) {
        return Err(wrong("a --filter follows an -e that only removes items: put it after the -e that it is for, or before all of them"));
    }
    Ok((items, general))
}

fn list_of_event(text: &str, list: usize) -> Result<Vec<Item>, Stop> {
    select::parse_list(text, list).map_err(|error| wrong(format!("-e: {error}")))
}

fn probe(text: &str, list: usize) -> Result<Item, Stop> {
    match grammar::parse(text).map_err(|error| wrong(format!("--probe: {error}")))? {
        Line::Make(probe) => {
            Ok(Item { negated: false, selector: Selector::Probe(Box::new(probe)), terms: Terms::default(), filter: None, list })
        }
        Line::Remove(_) => Err(wrong("--probe cannot delete events (it deletes its own when the trace ends): use `rtrace probe del`")),
    }
}

/// Returns every `-e`, `--probe` and `--filter` in the order of the command line.
fn in_order(matches: &ArgMatches) -> Vec<(&'static str, &String)> {
    let mut all: Vec<(usize, &'static str, &String)> = Vec::new();
    for option in ["event", "probe", "filter"] {
        if let (Some(indices), Some(values)) = (matches.indices_of(option), matches.get_many::<String>(option)) {
            all.extend(indices.zip(values).map(|(index, value)| (index, option, value)));
        }
    }
    all.sort_unstable_by_key(|(index, ..)| *index);
    all.into_iter().map(|(_, option, value)| (option, value)).collect()
}
