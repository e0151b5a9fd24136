//! The command line: parses argv, the environment and the configuration files into a [`crate::request::Request`], and
//! carries out the subcommands.

pub mod args;
mod carry_out;
pub mod check;
mod choices;
pub mod complete;
pub mod completions;
pub mod config;
mod diff;
mod evlist;
pub mod habits;
mod json;
pub mod list;
pub mod parse;
pub mod parsed;
pub mod probe;
mod script;
pub mod setup;
pub mod short_help;
pub mod stdout;
mod strace;
pub mod words;

pub use crate::sys::exit_code::ExitCode;
pub use carry_out::carry_out;
pub use parsed::{Parsed, environment, parse};
