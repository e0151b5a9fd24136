//! The program rtrace: parses the command line, carries out the request, and returns the exit status.
#![deny(clippy::print_stderr)]

#[path = "sys/before_main.rs"]
mod before_main;

use rtrace::cli::{self, Parsed};
use rtrace::kernel::remote_files;
use rtrace::request::Request;
use rtrace::sys::exit_code::ExitCode;
use rtrace::sys::{caller, file_capabilities};
use rtrace::text::os_error::without_error_numbers;
use rtrace::{run, say};

fn main() -> std::process::ExitCode {
    if let Some(code) = remote_files::serve_if_started_as_reader() {
        return code;
    }
    caller::set_up_signals();
    if let Err(refused) = file_capabilities::clear_effective() {
        say!("rtrace: {refused}");
        return ExitCode::Failed.into();
    }
    let code = match cli::parse(std::env::args_os(), &cli::environment()) {
        Parsed::Request(request) => carry_out(&request).unwrap_or_else(|error| {
            say!("rtrace: {}", without_error_numbers(&format!("{error:#}")));
            ExitCode::Failed
        }),
        Parsed::Answered(code) => code,
    };
    code.into()
}

fn carry_out(request: &Request) -> anyhow::Result<ExitCode> {
    match request {
        Request::Trace(trace) => run::trace(trace),
        Request::List { what, glob, format } => cli::list::list(*what, glob.as_deref(), *format),
        Request::Probe(what) => cli::probe::carry_out(what),
        Request::Check(format) => cli::check::check(*format),
        Request::Setup(setup) => cli::setup::print(setup),
        Request::ListUsdt { program, format } => cli::list::usdt::list(program, *format),
        Request::Complete(words) => cli::complete::print(words),
        Request::Completions(shell) => cli::completions::print(*shell),
    }
}
