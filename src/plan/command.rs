//! Finds the command and prepares its execve(2).

use crate::request::Command;
use crate::sys::exit_code::ExitCode;
use crate::sys::spawn::{self, Program};
use crate::sys::users;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;

/// The reasons why the command cannot be run. They have exit statuses of their own.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("{0}: command not found")]
    NotFound(String),
    #[error("{0}: {1}")]
    CannotRun(String, String),
    #[error("--run-as {0}: there is no user with this name or number")]
    NoUser(String),
}

/// The variables of an environment, in the order in which the command gets them.
type Environment = Vec<(OsString, OsString)>;

impl CommandError {
    /// Returns what strace says about it.
    pub fn for_strace(&self) -> String {
        match self {
            CommandError::NotFound(name) if name.contains('/') => format!("Cannot stat '{name}': No such file or directory"),
            CommandError::NotFound(name) => format!("Cannot find executable '{name}'"),
            CommandError::CannotRun(name, why) => format!("Cannot run '{name}': {why}"),
            CommandError::NoUser(name) if name.contains(':') => format!("Invalid UID:GID pair '{name}'"),
            CommandError::NoUser(name) => format!("Cannot find user '{name}'"),
        }
    }

    /// Returns the exit status for this reason, which is the one that shells have for it (127 or 126).
    pub fn exit_code(&self) -> ExitCode {
        match self {
            CommandError::NotFound(_) => ExitCode::NotFound,
            CommandError::CannotRun(..) | CommandError::NoUser(_) => ExitCode::CannotRun,
        }
    }
}

/// Finds the command in the PATH that it will get, and prepares everything that its execve(2) needs.
///
/// # Errors
/// The command does not exist, it may not be executed, its user does not exist, or one of its words holds a NUL byte.
pub fn program(command: &Command) -> Result<Program, CommandError> {
    let name = command.argv.first().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
    let cannot = |why: &dyn std::fmt::Display| CommandError::CannotRun(name.clone(), why.to_string());
    let run_as = |name: &str| match users::user(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(CommandError::NoUser(name.to_owned())),
        found => found.map_err(|error| cannot(&format!("--run-as {name}: {error}"))),
    };
    let user = command.run_as.as_deref().map(run_as).transpose()?;
    let environment = environment(command, user.as_ref());
    let c_string = |word: &OsString| CString::new(word.as_bytes()).map_err(|_| cannot(&"a word of the command holds a NUL byte"));
    let mut argv = command.argv.iter().map(c_string).collect::<Result<Vec<_>, _>>()?;
    let search_path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let search_path = search_path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let first = argv.first().ok_or_else(|| cannot(&"there is no command"))?;
    let path = spawn::search(first, &search_path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => CommandError::NotFound(name.clone()),
        std::io::ErrorKind::PermissionDenied => cannot(&"found, but it may not be executed (its mode lacks x)"),
        _ => cannot(&e),
    })?;
    if let Some(name) = &command.argv0 {
        argv[0] = c_string(name)?;
    }
    let envp = environment.iter().map(|(k, v)| CString::new([k.as_bytes(), b"=", v.as_bytes()].concat())).collect::<Result<Vec<_>, _>>();
    let directory = command.chdir.as_ref().map(|d| CString::new(d.as_os_str().as_bytes())).transpose();
    Ok(Program {
        path,
        argv,
        envp: envp.map_err(|_| cannot(&"a variable of its environment holds a NUL byte"))?,
        directory: directory.map_err(|_| cannot(&"the directory's name holds a NUL byte"))?,
        user,
        by_shell: true,
        filter: None,
    })
}

/// Returns the environment of rtrace with the changes that the user asked for. New variables come last.
fn environment(command: &Command, user: Option<&users::User>) -> Environment {
    let mut environment: Environment = std::env::vars_os().collect();
    let mut set = |name: &OsString, value: Option<&OsString>| match (environment.iter().position(|(known, _)| known == name), value) {
        (Some(at), Some(value)) => environment[at].1.clone_from(value),
        (Some(at), None) => drop(environment.remove(at)),
        (None, Some(value)) => environment.push((name.clone(), value.clone())),
        (None, None) => {}
    };
    if let Some(user) = user {
        for (name, value) in [("HOME", &user.home), ("USER", &user.name), ("LOGNAME", &user.name), ("SHELL", &user.shell)] {
            set(&name.into(), Some(value));
        }
    }
    command.env.iter().for_each(|(name, value)| set(name, value.as_ref()));
    environment
}
