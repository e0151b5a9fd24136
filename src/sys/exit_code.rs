//! rtrace's exit status: one place for all its meanings.

/// What the process ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// What was asked for was done; with `-p`, `-t` or `-a`: ended as asked.
    Success,
    /// The command ended by itself, with this status.
    CommandExited(u8),
    /// The command was killed by this signal.
    CommandKilled(u8),
    /// `--strict` only: something was lost; the lines are there, the verdict says how much.
    Lost,
    /// rtrace itself failed; the reason is on stderr.
    Failed,
    /// The command is there but could not be run.
    CannotRun,
    /// The command was not found.
    NotFound,
}

impl ExitCode {
    /// From the status word of wait(2) of a child that ended.
    pub fn from_wait_status(status: i32) -> ExitCode {
        let signal = (status & 0x7f) as u8;
        if signal == 0 { ExitCode::CommandExited((status >> 8) as u8) } else { ExitCode::CommandKilled(signal) }
    }

    /// The number that exit(2) is given.
    pub fn code(self) -> u8 {
        match self {
            ExitCode::Success => 0,
            ExitCode::CommandExited(status) => status,
            ExitCode::CommandKilled(signal) => 128u8.saturating_add(signal),
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

    fn of_shell(script: &str) -> ExitCode {
        let status = Command::new("/bin/sh").args(["-c", script]).status().unwrap();
        ExitCode::from_wait_status(status.into_raw())
    }

    #[test]
    fn of_commands() {
        assert_eq!(of_shell("exit 42"), ExitCode::CommandExited(42));
        assert_eq!(of_shell("exit 0").code(), 0);
        assert_eq!(of_shell("kill -KILL $$"), ExitCode::CommandKilled(9));
        assert_eq!(of_shell("kill -TERM $$").code(), 143);
    }

    #[test]
    fn a_core_dump_is_not_part_of_the_signal() {
        assert_eq!(ExitCode::from_wait_status(0x80 | 11), ExitCode::CommandKilled(11));
    }

    #[test]
    fn rtraces_own() {
        let own = [ExitCode::Success, ExitCode::Lost, ExitCode::Failed, ExitCode::CannotRun, ExitCode::NotFound];
        assert_eq!(own.map(ExitCode::code), [0, 124, 125, 126, 127]);
    }
}
