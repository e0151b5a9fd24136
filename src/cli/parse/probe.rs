//! `rtrace probe`.

use crate::cli::args::ProbeSub;
use crate::request::{Lines, Probing};

pub fn probing(what: ProbeSub) -> Probing {
    match what {
        ProbeSub::List { events } => Probing::List { patterns: events },
        ProbeSub::Show { event } => Probing::Show { event },
        ProbeSub::Add { spec, file, force } => {
            // clap sees to it that one of the two is there.
            Probing::Add { lines: file.map_or_else(|| Lines::One(spec.unwrap_or_default()), Lines::File), force }
        }
        ProbeSub::Del { events, force } => Probing::Delete { patterns: events, force },
        ProbeSub::Emit { event, values } => Probing::Emit { event, values },
    }
}
