//! Parses the subcommands of `rtrace probe`.

use super::answer_format;
use crate::cli::args::ProbeSub;
use crate::request::{ProbeCommand, ProbeSource};

/// Converts a parsed subcommand of `rtrace probe`.
pub fn probing(what: ProbeSub) -> ProbeCommand {
    match what {
        ProbeSub::List { events, json } => ProbeCommand::List { patterns: events, format: answer_format(json) },
        ProbeSub::Show { event } => ProbeCommand::Show { event },
        ProbeSub::Add { spec, file, force } => {
            // clap makes sure that one of the two is present.
            ProbeCommand::Add { lines: file.map_or_else(|| ProbeSource::One(spec.unwrap_or_default()), ProbeSource::File), force }
        }
        ProbeSub::Del { events, force } => ProbeCommand::Delete { patterns: events, force },
        ProbeSub::Emit { event, values } => ProbeCommand::Emit { event, values },
    }
}
