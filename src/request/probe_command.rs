//! What is asked of `rtrace probe`.

use super::AnswerFormat;
use std::path::PathBuf;

/// A subcommand of `rtrace probe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeCommand {
    /// List dynamic events.
    List {
        /// Patterns of `group:event`, of which an event matches at least one; none for all events.
        patterns: Vec<String>,
        /// The format of the list.
        format: AnswerFormat,
    },
    /// Print what is known of one event.
    Show {
        /// `group:event`.
        event: String,
    },
    /// Create events that stay until they are deleted.
    Add {
        /// The definitions.
        lines: ProbeSource,
        /// Whether lines that delete events may delete those that rtrace did not create.
        force: bool,
    },
    /// Delete events.
    Delete {
        /// Patterns of `group:event`.
        patterns: Vec<String>,
        /// Whether events that rtrace did not create may be deleted.
        force: bool,
    },
    /// Write a user event.
    Emit {
        /// The name of the user event.
        event: String,
        /// The values `NAME=VALUE`, one or more in a word.
        values: Vec<String>,
    },
}

/// The source of definitions of dynamic events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeSource {
    /// A definition on the command line.
    One(String),
    /// A file; `-` is stdin.
    File(PathBuf),
}
