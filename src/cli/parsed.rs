//! Parses the command line of this process with its environment and files, and prints help and errors at once.

use super::ExitCode;
use super::parse::{Stop, Surroundings, request};
use super::stdout;
use crate::request::Request;
use crate::say;
use crate::text::os_error::without_error_numbers;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

/// The result of parsing the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// The request to carry out.
    Request(Request),
    /// Help was printed on stdout or an error on stderr; rtrace ends with this status.
    Answered(ExitCode),
}

/// Parses the command line, which begins with the program's name. Prints help, the version and errors.
pub fn parse(argv: impl IntoIterator<Item = OsString>, around: &Surroundings) -> Parsed {
    let argv: Vec<OsString> = argv.into_iter().collect();
    match request(&argv, around) {
        Ok(request) => Parsed::Request(request),
        Err(Stop::Text(text)) => {
            let code = stdout::print(text.as_bytes()).unwrap_or_else(|error| {
                say!("rtrace: {}", without_error_numbers(&format!("{error:#}")));
                ExitCode::Failed
            });
            Parsed::Answered(code)
        }
        Err(Stop::WrongForStrace(text)) => {
            say!("strace: {text}");
            Parsed::Answered(ExitCode::WrongForStrace)
        }
        Err(Stop::WrongUsageOfStrace(text)) => {
            say!("strace: {text}");
            say!("Try 'strace -h' for more information.");
            Parsed::Answered(ExitCode::WrongForStrace)
        }
        Err(Stop::Wrong(text)) => {
            say!("rtrace: {}", without_error_numbers(&text));
            Parsed::Answered(ExitCode::Failed)
        }
    }
}

/// Returns the environment variables and files of this process.
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
    fn a_missing_file_is_no_error() {
        assert_eq!(read(Path::new("/nonexistent/config.toml")).unwrap(), None);
        assert_eq!(read(Path::new("/dev/null/config.toml")).unwrap(), None);
        assert_eq!(read(Path::new("/dev/null")).unwrap(), Some(String::new()));
        assert!(read(Path::new("/")).is_err());
    }
}
