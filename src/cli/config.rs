//! Defaults from configuration files: rtrace's own `config.toml`, and perf's file if `$PERF_CONFIG` names one.
//!
//! perf's `trace.*` keys have the same names in both files. Options on the command line and in RTRACE_OPTS override
//! these defaults.

use super::args::{ColorArg, SummaryArg, TimeArg};
use crate::request::select;
use crate::text::{near, quantity};
use clap::ValueEnum;
use std::path::Path;

/// The settings of the configuration files; `None` for each that no file sets.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// perf's `trace.show_arg_names`: print the names of arguments.
    pub show_arg_names: Option<bool>,
    /// perf's `trace.show_duration`: print the duration of each call.
    pub show_duration: Option<bool>,
    /// perf's `trace.show_timestamp`: print the time stamp of each line.
    pub show_timestamp: Option<bool>,
    /// perf's `trace.show_prefix`: print the common prefix of constants (`O_`).
    pub show_prefix: Option<bool>,
    /// As `--show-zeros`: print all arguments that are zero.
    pub show_zeros: Option<bool>,
    /// perf's `trace.args_alignment`: the column of a line at which the return value begins.
    pub args_alignment: Option<usize>,
    /// As `--no-inherit`: do not follow children and new threads.
    pub no_inherit: Option<bool>,
    /// A well-formed list in the syntax of `-e`.
    pub add_events: Option<String>,
    /// Print thread names: `true` is `--comm`, `false` is `--no-comm`.
    pub show_comm: Option<bool>,
    /// As `--show-cpu`: print the CPU of each line.
    pub show_cpu: Option<bool>,
    /// Show signals: `true` is `--signals`, `false` is `--no-signals`.
    pub signals: Option<bool>,
    /// As `--fd-paths`: also trace the calls that show which file each descriptor is open on.
    pub fd_paths: Option<bool>,
    /// As `--string-limit`, in bytes.
    pub string_limit: Option<usize>,
    /// As `--struct-limit`, in bytes.
    pub struct_limit: Option<usize>,
    /// As `--time-format`.
    pub time_format: Option<TimeArg>,
    /// As `--summary-mode`.
    pub summary_mode: Option<SummaryArg>,
    /// As `--max-summary`; 0 prints all rows.
    pub max_summary: Option<u64>,
    /// A size in the syntax of `-m`.
    pub mmap_pages: Option<String>,
    /// As `--color`.
    pub color: Option<ColorArg>,
}

/// All keys. The first nine are perf's own.
const KEYS: [&str; 20] = [
    "show_arg_names",
    "show_duration",
    "show_timestamp",
    "show_prefix",
    "show_zeros",
    "args_alignment",
    "no_inherit",
    "add_events",
    "tracepoint_beautifiers",
    "show_comm",
    "show_cpu",
    "signals",
    "fd_paths",
    "string_limit",
    "struct_limit",
    "time_format",
    "summary_mode",
    "max_summary",
    "mmap_pages",
    "color",
];

impl Config {
    /// Parses the text of `config.toml`: keys at the top level or in a table `[trace]`.
    ///
    /// # Errors
    /// One sentence that begins with `file:line:`, for a syntax error, an unknown key or a wrong value.
    pub fn read_toml(&mut self, file: &Path, text: &str) -> Result<(), String> {
        let at = |offset: usize, what: String| format!("{}:{}: {what}", file.display(), line_of(text, offset));
        let table =
            toml::de::DeTable::parse(text).map_err(|error| at(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
        for (key, value) in table.get_ref() {
            match value.get_ref() {
                toml::de::DeValue::Table(inner) if key.get_ref() == "trace" => {
                    for (key, value) in inner {
                        self.set_toml(key.get_ref(), value.get_ref()).map_err(|what| at(key.span().start, what))?;
                    }
                }
                value => self.set_toml(key.get_ref(), value).map_err(|what| at(key.span().start, what))?,
            }
        }
        Ok(())
    }

    fn set_toml(&mut self, key: &str, value: &toml::de::DeValue) -> Result<(), String> {
        if !KEYS.contains(&key) {
            return Err(format!("there is no setting `{key}`{}", near::hint(&near::nearest(key, KEYS, 3))));
        }
        self.set(key, &plain(value).ok_or_else(|| format!("`{key}` cannot be a {}", value.type_str()))?)
    }

    /// Parses the section `[trace]` of perf's configuration file. Unknown keys are ignored, because they may be perf's.
    ///
    /// # Errors
    /// One sentence that begins with `file:line:`, for a wrong value.
    pub fn read_perf(&mut self, file: &Path, text: &str) -> Result<(), String> {
        let mut in_trace = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(section) = line.strip_prefix('[') {
                in_trace = section.split(']').next().is_some_and(|name| name.trim() == "trace");
                continue;
            }
            if !in_trace {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, "true"));
            let value = value.split([';', '#']).next().unwrap_or_default().trim().trim_matches('"');
            if KEYS[..9].contains(&key.trim()) {
                self.set(key.trim(), value).map_err(|what| format!("{}:{}: {what}", file.display(), number + 1))?;
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = |what: String| format!("`{key}`: {what}");
        let switch = || switch(value).map(Some).map_err(wrong);
        let count = || value.parse().map(Some).map_err(|_| wrong(format!("`{value}` is not a number")));
        match key {
            "show_arg_names" => self.show_arg_names = switch()?,
            "show_duration" => self.show_duration = switch()?,
            "show_timestamp" => self.show_timestamp = switch()?,
            "show_prefix" => self.show_prefix = switch()?,
            "show_zeros" => self.show_zeros = switch()?,
            "no_inherit" => self.no_inherit = switch()?,
            "show_comm" => self.show_comm = switch()?,
            "show_cpu" => self.show_cpu = switch()?,
            "signals" => self.signals = switch()?,
            "fd_paths" => self.fd_paths = switch()?,
            "args_alignment" => self.args_alignment = count()?,
            "string_limit" => self.string_limit = count()?,
            "struct_limit" => self.struct_limit = count()?,
            "max_summary" => self.max_summary = count()?.map(|n: usize| n as u64),
            "time_format" => self.time_format = Some(choice(value).map_err(wrong)?),
            "summary_mode" => self.summary_mode = Some(choice(value).map_err(wrong)?),
            "color" => self.color = Some(choice(value).map_err(wrong)?),
            "mmap_pages" => {
                quantity::pages_or_size(value, 1).map_err(wrong)?;
                self.mmap_pages = Some(value.to_owned());
            }
            "add_events" => {
                select::parse_list(value, 0).map_err(|misplaced| wrong(misplaced.to_string()))?;
                self.add_events = Some(value.to_owned());
            }
            // With this key, perf chooses one of two printers for tracepoints. rtrace has only one.
            "tracepoint_beautifiers" if matches!(value, "libbeauty" | "libtraceevent") => {}
            "tracepoint_beautifiers" => return Err(wrong(format!("`{value}` is neither libbeauty nor libtraceevent"))),
            _ => {}
        }
        Ok(())
    }
}

fn plain(value: &toml::de::DeValue) -> Option<String> {
    Some(match value {
        toml::de::DeValue::String(text) => text.to_string(),
        toml::de::DeValue::Integer(number) => number.to_string(),
        toml::de::DeValue::Boolean(yes) => yes.to_string(),
        toml::de::DeValue::Array(items) => items.iter().map(|item| plain(item.get_ref())).collect::<Option<Vec<_>>>()?.join(","),
        _ => return None,
    })
}

/// Parses perf's words for true and false.
fn switch(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" | "" => Ok(false),
        _ => Err(format!("`{value}` is neither true nor false")),
    }
}

fn choice<T: ValueEnum>(value: &str) -> Result<T, String> {
    T::from_str(value, false).map_err(|_| {
        let known: Vec<String> =
            T::value_variants().iter().filter_map(|v| v.to_possible_value()).map(|v| v.get_name().to_owned()).collect();
        format!("`{value}` is none of {}", known.join(", "))
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        config.read_toml(Path::new("/c.toml"), text).map(|()| config)
    }

    fn perf(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        config.read_perf(Path::new("/perfconfig"), text).map(|()| config)
    }

    #[test]
    fn keys_are_read_at_the_top_level_and_in_the_table() {
        let config = toml(
            "string_limit = 64\ncolor = \"never\"\nadd_events = [\"sched:*\", \"close\"]\n[trace]\nshow_zeros = true\nargs_alignment = 0\n",
        )
        .unwrap();
        assert_eq!((config.string_limit, config.show_zeros, config.args_alignment), (Some(64), Some(true), Some(0)));
        assert!(matches!(config.color, Some(ColorArg::Never)));
        assert_eq!(config.add_events.as_deref(), Some("sched:*,close"));
        assert_eq!(config.no_inherit, None);
    }

    #[test]
    fn mistakes_are_reported_with_file_and_line() {
        for (text, sentence) in [
            ("\nshow_zero = true", "/c.toml:2: there is no setting `show_zero`; similar: show_zeros"),
            ("[trace]\n\nshow_zeros = 7", "/c.toml:3: `show_zeros`: `7` is neither true nor false"),
            ("color = \"blue\"", "/c.toml:1: `color`: `blue` is none of auto, always, never"),
            ("string_limit = -1", "/c.toml:1: `string_limit`: `-1` is not a number"),
            ("mmap_pages = \"8T\"", "/c.toml:1: `mmap_pages`: `T` is not a unit of size (use K, M or G)"),
            ("show_cpu = {}", "/c.toml:1: `show_cpu` cannot be a table"),
            ("add_events = \"%fil\"", "/c.toml:1: `add_events`: there is no group %fil; similar: %file\n    %fil\n    ^~~~"),
            ("tracepoint_beautifiers = \"x\"", "/c.toml:1: `tracepoint_beautifiers`: `x` is neither libbeauty nor libtraceevent"),
        ] {
            assert_eq!(toml(text).unwrap_err(), sentence);
        }
        assert!(toml("a\nb = ").unwrap_err().starts_with("/c.toml:1: "));
    }

    #[test]
    fn the_trace_section_of_perfs_file_is_read() {
        let text = "# perf\n[colors]\n top = red\n[trace]\n\tshow_zeros = yes\n show_prefix\n args_alignment = 0 ; none\n add_events = \"sched:*\"\n proc_map = 1\n[ui]\nshow_zeros = no\n";
        let config = perf(text).unwrap();
        assert_eq!((config.show_zeros, config.show_prefix, config.args_alignment), (Some(true), Some(true), Some(0)));
        assert_eq!(config.add_events.as_deref(), Some("sched:*"));
        assert_eq!(perf("[trace]\n no_inherit = perhaps").unwrap_err(), "/perfconfig:2: `no_inherit`: `perhaps` is neither true nor false");
    }
    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in ".{0,40}|([a-z_]{1,9} ?= ?[\"'a-z0-9\\[\\]{},.é\n]{0,9}\n){0,4}") {
            for read in [toml(&text), perf(&format!("[trace]\n{text}"))] {
                if let Err(sentence) = read {
                    proptest::prop_assert!(sentence.starts_with('/'), "{}", sentence);
                }
            }
        }
    }
}
