//! rtrace's exit status, with all its meanings.

/// The exit status of rtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// The request was carried out; with `-p`, `-t` or `-a`: the trace ended as requested.
    Success,
    /// `rtrace diff`: the recordings differ.
    Differ,
    /// The command exited with this status.
    CommandExited(u8),
    /// The command was killed by this signal.
    CommandKilled(u8),
    /// The command was killed by this signal, by which strace ends itself, too.
    KilledAsCommand(i32),
    /// With `--strict`: something was lost. The rest was printed, and the verdict has the number of lost calls.
    Lost,
    /// rtrace itself failed. The reason is on stderr.
    Failed,
    /// A command line of strace is wrong, for which strace exits with 1.
    WrongForStrace,
    /// The command was found but could not be executed.
    CannotRun,
    /// The command was not found.
    NotFound,
}

impl ExitCode {
    /// Returns the exit code for the status word of a terminated child (wait(2)).
    pub fn from_wait_status(status: i32) -> ExitCode {
        let signal = (status & 0x7f) as u8;
        if signal == 0 { ExitCode::CommandExited((status >> 8) as u8) } else { ExitCode::CommandKilled(signal) }
    }

    /// Returns the number for exit(2).
    pub fn code(self) -> u8 {
        match self {
            ExitCode::Success => 0,
            ExitCode::CommandExited(status) => status,
            ExitCode::CommandKilled(signal) => 128u8.saturating_add(signal),
            ExitCode::KilledAsCommand(signal) => 128u8.saturating_add(signal as u8),
            ExitCode::Differ | ExitCode::WrongForStrace => 1,
            ExitCode::Lost => 124,
            ExitCode::Failed => 125,
            ExitCode::CannotRun => 126,
            ExitCode::NotFound => 127,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        code.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    fn exit_code_of_script(script: &str) -> ExitCode {
        let status = Command::new("/bin/sh").args(["-c", script]).status().unwrap();
        ExitCode::from_wait_status(status.into_raw())
    }

    #[test]
    fn a_command_s_status_and_signal_are_the_exit_code() {
        assert_eq!(exit_code_of_script("exit 42"), ExitCode::CommandExited(42));
        assert_eq!(exit_code_of_script("exit 0").code(), 0);
        assert_eq!(exit_code_of_script("kill -KILL $$"), ExitCode::CommandKilled(9));
        assert_eq!(exit_code_of_script("kill -TERM $$").code(), 143);
    }

    #[test]
    fn the_core_dump_flag_is_not_part_of_the_signal() {
        assert_eq!(ExitCode::from_wait_status(0x80 | 11), ExitCode::CommandKilled(11));
    }

    #[test]
    fn rtrace_s_own_failures_have_fixed_numbers() {
        let own = [ExitCode::Success, ExitCode::Lost, ExitCode::Failed, ExitCode::CannotRun, ExitCode::NotFound];
        assert_eq!(own.map(ExitCode::code), [0, 124, 125, 126, 127]);
    }
}
