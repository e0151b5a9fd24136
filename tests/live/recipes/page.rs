//! The page `rtrace-recipes(7)`, and how its lines are compared with real ones.

use regex::Regex;
use std::path::Path;
use std::sync::LazyLock;

/// A section with a command.
pub struct Recipe {
    pub heading: String,
    pub command: String,
    /// What is printed then, masked.
    pub shown: Vec<String>,
}

/// The recipes of the page, in its order.
///
/// # Panics
/// A section has two commands, or a line has an escape sequence of roff that [`plain`] does not know.
pub fn recipes() -> Vec<Recipe> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/rtrace-recipes.7");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let sections = page.split("\n.SH ").skip(1).map(|section| section.split_once('\n').expect("a heading has a line"));
    sections.filter_map(|(heading, body)| recipe(heading.trim_matches('"'), body)).collect()
}

fn recipe(heading: &str, body: &str) -> Option<Recipe> {
    let blocks = body.split(".nf\n").skip(1).filter_map(|rest| rest.split_once(".fi\n")).map(|(block, _)| plain(block));
    let mut commands = blocks.filter(|block| block.starts_with("# "));
    let block = commands.next()?;
    assert!(commands.next().is_none(), "{heading} has two commands");
    let (command, shown) = block.split_once('\n').expect("a command has a line");
    Some(Recipe { heading: heading.to_owned(), command: command.trim_start_matches("# ").to_owned(), shown: masked(shown) })
}

/// Roff as it is printed.
fn plain(roff: &str) -> String {
    let pairs = [
        (r"\fB", ""),
        (r"\fR", ""),
        (r"\fI", ""),
        (r"\-", "-"),
        (r"\(aq", "'"),
        (r"\(dq", "\""),
        (r"\(ti", "~"),
        (r"\(ha", "^"),
        (r"\&", ""),
        (r"\e", "\x01"),
    ];
    let text = pairs.iter().fold(roff.to_owned(), |text, (from, to)| text.replace(from, to));
    assert!(!text.contains('\\'), "an escape sequence that is not known here:\n{text}");
    text.replace('\x01', "\\")
}

/// Lines without what differs from run to run. Rows of a table, which stand in the order of their times, come in that
/// of their names.
pub fn masked(text: &str) -> Vec<String> {
    static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            // Stamps, times and shares, with their units.
            (r"<?\d+\.\d+%?", "T"),
            (r"(?-u:\b)T ([num]s)(?-u:\b)", "T"),
            (r"\(([num]s|s)\)", "(UNIT)"),
            (r"^ *(\?|T) \( *", "$1 ("),
            // Tasks.
            (r"^((?:\?|T) \(T?\): [^/]+)/\d+ ", "$1/TID "),
            (r"(?-u:\b)\d+ \(([a-zA-Z])", "PID ($1"),
            (r"^\d+:$", "PID:"),
            (r"0x[0-9a-f]{6,}", "ADDRESS"),
            (r"\[\d+ strings\]", "[N strings]"),
            // Which one is free depends on the version of node and Java.
            (r"fd: \d+<", "fd: N<"),
            // Interpreted, compiled or optimized, which node decides.
            (r"JS:[~^*+]", "JS:"),
            // Columns are as wide as what is in them.
            (r"-{3,}", "---"),
            (r"\s+", " "),
        ]
        .map(|(pattern, to)| (Regex::new(pattern).expect("the pattern is right"), to))
        .into()
    });
    let lines = text.lines().map(|line| MASKS.iter().fold(line.to_owned(), |line, (mask, to)| mask.replace_all(&line, *to).into_owned()));
    // When a child's end is reported depends on who runs when.
    let lines = lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty() && !line.contains("--- SIGCHLD"));
    let mut lines: Vec<String> = lines.map(|line| if is_row(&line) { masked_row(&line) } else { line }).collect();
    lines.chunk_by_mut(|a, b| is_row(a) && is_row(b)).for_each(<[String]>::sort);
    lines
}

/// Behind calls and errors come times, which are whole numbers where the unit is small.
fn masked_row(row: &str) -> String {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let words = row.split(' ').enumerate().map(|(place, word)| if place > 2 && is_number(word) { "T" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// `openat 12 0 T T ...`: a syscall, how often it was called and how often it failed.
fn is_row(line: &str) -> bool {
    static ROW: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[a-z_0-9]+ \d+ \d+ ").expect("the pattern is right"));
    ROW.is_match(line)
}

/// Whether lines are those that the page shows, where `...` and `^C` stand for any.
pub fn looks_like(shown: &[String], lines: &[String]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." || first == "^C" => (0..=lines.len()).any(|skipped| looks_like(rest, &lines[skipped..])),
        Some((first, rest)) => lines.first() == Some(first) && looks_like(rest, &lines[1..]),
    }
}

#[test]
fn lines_that_differ_in_what_matters_do_not_look_alike() {
    let shown = masked("     0.000 ( 0.012 ms): sh/4711 kill(pid: 4712 (sleep), sig: TERM)   = 0\n...\n1.5 last\n");
    let real = |text: &str| looks_like(&shown, &masked(text));
    assert!(real("  1000.123 ( 1.5 ms): sh/5 kill(pid: 6 (sleep), sig: TERM) = 0\n1.7 last\n"));
    assert!(real("  1000.123 ( 1.5 ms): sh/5 kill(pid: 6 (sleep), sig: TERM) = 0\n\nmore\nand more\n1.7 last\n"));
    assert!(!real("  1000.123 ( 1.5 ms): sh/5 kill(pid: 6 (sleep), sig: KILL) = 0\n1.7 last\n"));
    assert!(!real("  1000.123 (       ): sh/5 kill(pid: 6 (sleep), sig: TERM) = 0\n1.7 last\n"));
    assert!(!real("  1000.123 ( 1.5 ms): sh/5 kill(pid: 6 (sleep), sig: TERM) = 0\n"));

    let shown = masked("   close   30   0   21.648   9.0%   0.721\n   write   9   0   33.921   <0.1%   3.769\n");
    assert!(looks_like(&shown, &masked(" write  9 0 3.921 14.1%  412\n close  30 0  1.5  1.1% 9\n")));
    assert!(!looks_like(&shown, &masked(" write  8 0 3.921 14.1%  412\n close  30 0  1.5  1.1% 9\n")));
}
