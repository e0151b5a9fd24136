//! rtrace: parse, plan, run, exit code.
#![deny(clippy::print_stderr)]

#[path = "sys/before_main.rs"]
mod before_main;

use rtrace::cli::{self, Parsed};
use rtrace::kernel::elsewhere;
use rtrace::request::Request;
use rtrace::sys::exit_code::ExitCode;
use rtrace::sys::{caller, lent};
use rtrace::text::plain::without_numbers;
use rtrace::{run, say};

fn main() -> std::process::ExitCode {
    if let Some(code) = elsewhere::serve_if_asked() {
        return code;
    }
    caller::make_signals_ours();
    if let Err(refused) = lent::put_aside() {
        say!("rtrace: {refused}");
        return ExitCode::Failed.into();
    }
    let code = match cli::parse(std::env::args_os(), &cli::environment()) {
        Parsed::Request(request) => carry_out(&request).unwrap_or_else(|error| {
            say!("rtrace: {}", without_numbers(&format!("{error:#}")));
            ExitCode::Failed
        }),
        Parsed::Said(code) => code,
    };
    code.into()
}

fn carry_out(request: &Request) -> anyhow::Result<ExitCode> {
    match request {
        Request::Trace(trace) => run::trace(trace),
        Request::List { what, glob } => cli::list::list(*what, glob.as_deref()),
        Request::Probe(what) => cli::probe::carry_out(what),
        Request::Check => cli::check::check(),
        Request::Setup(setup) => cli::setup::print(setup),
        Request::ListUsdt(program) => cli::list::usdt::list(program),
        Request::Complete(words) => cli::complete::print(words),
        Request::Completions(shell) => cli::completions::print(*shell),
    }
}
