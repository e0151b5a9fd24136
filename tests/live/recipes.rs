//! Each command of `rtrace-recipes(7)` prints what the page shows.
//!
//! A recipe is a section of the page with one block of lines: the command after `# `, and the output on a terminal. In
//! a block, `...` stands for any number of lines, and `^C` for Ctrl-C. Blank lines, times, numbers of tasks, addresses
//! and the widths of columns are not compared.

mod page;
mod rows;

use crate::machine::{self, Machine};
use crate::trace::start_shell;
use page::{Recipe, looks_like, masked, recipes};
use rows::{ROWS, Row};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::path::Path;

/// The name that the page uses for the directory of its commands.
const PAGE_DIR: &str = "/srv/shop";
/// The PATH of the commands, so that a shell searches the same directories on every machine.
const PATH: &str = "/usr/bin:/bin";

#[test]
fn recipes_and_rows_correspond() {
    let recipes = recipes();
    let headings: Vec<&str> = recipes.iter().map(|recipe| recipe.heading.as_str()).collect();
    assert_eq!(headings, ROWS.map(|row| row.heading));
}

#[test]
fn each_recipe_prints_what_the_page_shows() {
    let Some(machine) = Machine::shared() else { return };
    let failures: Vec<String> = recipes()
        .iter()
        .zip(&ROWS)
        .filter(|(recipe, row)| can_be_followed(recipe, row))
        .enumerate()
        .filter_map(|(number, (recipe, row))| follow(&machine, number, recipe, row).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Reports it if the machine lacks something that the recipe needs.
fn can_be_followed(recipe: &Recipe, row: &Row) -> bool {
    let is_there = |name: &&str| PATH.split(':').any(|dir| Path::new(dir).join(name).exists());
    let why = match row.needs.iter().find(|name| !is_there(name)) {
        Some(missing) => format!("there is no {missing}"),
        None if row.is_of_bpf && machine::engine() != "bpf" => "the page shows what the BPF engine reads".to_owned(),
        None => return true,
    };
    // The test harness hides the output of eprintln! if a test passes.
    let _ = writeln!(std::io::stderr(), "unsupported here: the recipe {:?} was not followed: {why}", recipe.heading);
    false
}

/// Runs the command of the recipe as the page shows it.
///
/// # Errors
/// The output differs from the page.
fn follow(machine: &Machine, number: usize, recipe: &Recipe, row: &Row) -> Result<(), String> {
    let dir = machine.path(&format!("recipe{number}"));
    let bin = format!("{dir}/bin");
    let shop = format!("{dir}/shop");
    for dir in [&bin, &shop] {
        std::fs::create_dir_all(dir).expect("the test's directory is writable");
    }
    std::os::unix::fs::symlink(machine::rtrace(), format!("{bin}/rtrace")).expect("the test's directory is writable");
    // The page shows the output on a terminal, which includes calls in flight.
    let engine = machine::engine_asked_for().map(|engine| format!(" --engine {engine}")).unwrap_or_default();
    // Cargo's own search path for libraries would make every program search more directories.
    let script = format!(
        "unset LD_LIBRARY_PATH\nexport PATH={bin}:{PATH} LC_ALL=C RTRACE_OPTS='--pending{engine}'\ncd {shop} || exit\n{{ {}\n}} > ../setup.log 2>&1\ntrap : INT\n{} 2>&1\n",
        row.setup.replace(PAGE_DIR, &shop),
        grouped(&recipe.command.replace(PAGE_DIR, &shop)),
    );
    let mut run = start_shell(machine, &script);
    if let Some(until) = recipe.shown.iter().position(|line| line == "^C") {
        run.wait_for_stdout(|text| looks_like(&recipe.shown[..until], &masked(&text.replace(&shop, PAGE_DIR))));
        interrupt(run.pid());
    }
    let text = run.finish().stdout.replace(&shop, PAGE_DIR);
    if looks_like(&recipe.shown, &masked(&text)) {
        return Ok(());
    }
    let setup = std::fs::read_to_string(format!("{dir}/setup.log")).unwrap_or_default();
    Err(format!(
        "{}\n# {}\n{text}\nand what was set up before said: {setup}\nwhich compares as\n{}\nbut the page shows\n{}\n",
        recipe.heading,
        recipe.command,
        masked(&text).join("\n"),
        recipe.shown.join("\n"),
    ))
}

/// Sends SIGINT to the rtrace of this shell, and not to the programs that it started before.
fn interrupt(shell: Pid) {
    let shell = shell.as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap_or_default();
    for pid in children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
        if comm == "rtrace\n" {
            kill_process(pid, Signal::INT).expect("it runs");
        }
    }
}

/// All programs write to one file, as they would write to one terminal.
fn grouped(command: &str) -> String {
    format!("{{ {command}\n}}")
}
