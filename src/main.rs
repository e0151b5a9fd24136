//! The program rtrace: parses the command line, carries out the request, and returns the exit status.
#![deny(clippy::print_stderr)]

#[path = "sys/before_main.rs"]
mod before_main;

use rtrace::program::{
    ExitCode, Parsed, carry_out, clear_effective, end_by_signal, environment, parse, say_line, serve_if_started_as_reader,
    serve_if_started_as_supervisor, serve_if_started_as_watcher, set_up_signals,
};

fn main() -> std::process::ExitCode {
    if let Some(code) = serve_if_started_as_reader().or_else(serve_if_started_as_supervisor).or_else(serve_if_started_as_watcher) {
        return code;
    }
    set_up_signals();
    if let Err(refused) = clear_effective() {
        say_line(format_args!("rtrace: {refused}"));
        return ExitCode::Failed.into();
    }
    let code = match parse(std::env::args_os(), &environment()) {
        Parsed::Request(request) => carry_out(&request),
        Parsed::Answered(code) => code,
    };
    if let ExitCode::KilledAsCommand(signal) = code {
        end_by_signal(signal);
    }
    code.into()
}
