//! The command line of this process: reads what surrounds it, and says what there is to say at once.

use super::ExitCode;
use super::parse::{Stop, Surroundings, request};
use super::stdout;
use crate::request::Request;
use crate::say;
use crate::text::plain::without_numbers;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

/// What became of the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// Something is to be done.
    Request(Request),
    /// It was answered: help to stdout, or what is wrong to stderr.
    Said(ExitCode),
}

/// Takes the command line apart, with the program's name first. Help, version and mistakes are printed.
pub fn parse(argv: impl IntoIterator<Item = OsString>, around: &Surroundings) -> Parsed {
    let argv: Vec<OsString> = argv.into_iter().collect();
    match request(&argv, around) {
        Ok(request) => Parsed::Request(request),
        Err(Stop::Text(text)) => {
            let code = stdout::print(text.as_bytes()).unwrap_or_else(|error| {
                say!("rtrace: {}", without_numbers(&format!("{error:#}")));
                ExitCode::Failed
            });
            Parsed::Said(code)
        }
        Err(Stop::Wrong(text)) => {
            say!("rtrace: {}", without_numbers(&text));
            Parsed::Said(ExitCode::Failed)
        }
    }
}

/// This process' environment and files.
pub fn environment() -> Surroundings<'static> {
    Surroundings { var: &variable, read: &read, page_bytes: rustix::param::page_size() as u64 }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_no_mistake() {
        assert_eq!(read(Path::new("/nonexistent/config.toml")).unwrap(), None);
        assert_eq!(read(Path::new("/dev/null/config.toml")).unwrap(), None);
        assert_eq!(read(Path::new("/dev/null")).unwrap(), Some(String::new()));
        assert!(read(Path::new("/")).is_err());
    }
}
