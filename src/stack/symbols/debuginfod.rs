//! Debug files from elsewhere, by debuginfod's client program. It may take minutes, so a thread asks for one after the other, and nobody waits unless he
//! says so.

use super::build_id::BuildId;
use crate::sys::caller;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The program that asks and keeps what it got (man 1 debuginfod-find).
const PROGRAM: &str = "debuginfod-find";

/// What came of a question: where the debug file now is, if there is one.
pub type Answer = (BuildId, Option<PathBuf>);

/// The asking thread. When this is dropped, it ends, and so does its program.
pub struct Debuginfod {
    questions: Option<Sender<BuildId>>,
    answers: Receiver<Answer>,
    running: Arc<Mutex<Running>>,
    outstanding: usize,
}

/// What has to be ended at the end.
#[derive(Default)]
struct Running {
    child: Option<Child>,
    over: bool,
}

impl Debuginfod {
    /// If the user has configured servers (`DEBUGINFOD_URLS`).
    pub fn from_environment() -> Option<Debuginfod> {
        std::env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
        Some(Debuginfod::asking(PROGRAM.into()))
    }

    /// With a client program of one's own, which takes `debuginfo BUILDID` and prints a path.
    pub fn asking(program: OsString) -> Debuginfod {
        let (questions, to_ask) = channel::<BuildId>();
        let (to_answer, answers) = channel();
        let running = Arc::new(Mutex::new(Running::default()));
        let shared = running.clone();
        let asking = move || {
            for id in to_ask {
                if to_answer.send((id, ask(&program, id, &shared))).is_err() {
                    return;
                }
            }
        };
        // Without a thread there are no answers, and whoever waits for one learns that at once.
        let _ = std::thread::Builder::new().name("debuginfod".into()).spawn(asking);
        Debuginfod { questions: Some(questions), answers, running, outstanding: 0 }
    }

    /// Asks for a debug file; false if that is in vain.
    pub fn ask(&mut self, id: BuildId) -> bool {
        let asked = self.questions.as_ref().is_some_and(|questions| questions.send(id).is_ok());
        self.outstanding += usize::from(asked);
        asked
    }

    /// Answers are still to come.
    pub fn is_waiting(&self) -> bool {
        self.outstanding > 0
    }

    /// An answer, if one has come.
    pub fn answer(&mut self) -> Option<Answer> {
        if self.outstanding == 0 {
            return None;
        }
        match self.answers.try_recv() {
            Ok(answer) => self.received(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.gone(),
        }
    }

    /// An answer, waited for; `None` when none is to come any more, or it is too late.
    pub fn wait(&mut self, until: Instant) -> Option<Answer> {
        if self.outstanding == 0 {
            return None;
        }
        match self.answers.recv_timeout(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))) {
            Ok(answer) => self.received(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => self.gone(),
        }
    }

    fn received(&mut self, answer: Answer) -> Option<Answer> {
        self.outstanding -= 1;
        Some(answer)
    }

    fn gone(&mut self) -> Option<Answer> {
        self.outstanding = 0;
        None
    }
}

impl Drop for Debuginfod {
    fn drop(&mut self) {
        self.questions = None;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.over = true;
        if let Some(child) = &mut running.child {
            // It may have ended by itself; it is reaped by its thread, or is init's.
            let _ = child.kill();
        }
    }
}

/// Runs the program for one build-id.
fn ask(program: &OsString, id: BuildId, shared: &Mutex<Running>) -> Option<PathBuf> {
    let locked = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let mut output = {
        let mut running = locked();
        if running.over {
            return None;
        }
        let mut command = Command::new(program);
        command.arg("debuginfo").arg(id.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = running.child.insert(caller::with_callers_signals(&mut command).spawn().ok()?);
        child.stdout.take()?
    };
    const PATH_MAX: u64 = 4096;
    let mut path = Vec::new();
    let read = output.by_ref().take(PATH_MAX).read_to_end(&mut path);
    // It has closed its output, so it is about to end.
    let mut child = locked().child.take()?;
    drop(output);
    let status = child.wait().ok()?;
    while path.last().is_some_and(u8::is_ascii_whitespace) {
        path.pop();
    }
    (read.is_ok() && status.success() && path.first() == Some(&b'/')).then(|| PathBuf::from(OsString::from_vec(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A client that says what the script makes of `$2`, the build-id.
    fn client(name: &str, script: &str) -> (PathBuf, Debuginfod) {
        let path = std::env::temp_dir().join(format!("rtrace-client-{}-{name}", std::process::id()));
        let text = path.with_extension("text");
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o755)).unwrap();
        // A file that is open for writing cannot be executed, and what another test forks meanwhile has it open too if we do.
        assert!(Command::new("cp").args([&text, &path]).status().unwrap().success());
        std::fs::remove_file(text).unwrap();
        (path.clone(), Debuginfod::asking(path.into()))
    }

    #[test]
    fn answers_come_later() {
        let (path, mut client) = client("answers", r#"[ "$1 $2" = "debuginfo ab" ] && echo /found/$2"#);
        assert!(!client.is_waiting() && client.answer().is_none());
        let (known, unknown) = (BuildId::new(&[0xab]).unwrap(), BuildId::new(&[0xcd]).unwrap());
        assert!(client.ask(known) && client.ask(unknown));
        let until = Instant::now() + Duration::from_secs(60);
        assert_eq!(client.wait(until), Some((known, Some(PathBuf::from("/found/ab")))));
        assert_eq!(client.wait(until), Some((unknown, None)));
        assert!(!client.is_waiting() && client.wait(until).is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_missing_program_is_an_answer_too() {
        let mut client = Debuginfod::asking("/nonexistent/client".into());
        let id = BuildId::new(&[1]).unwrap();
        assert!(client.ask(id));
        assert_eq!(client.wait(Instant::now() + Duration::from_secs(60)), Some((id, None)));
    }

    #[test]
    fn the_program_ends_with_whoever_asked() {
        let pid_file = std::env::temp_dir().join(format!("rtrace-client-pid-{}", std::process::id()));
        let (path, mut client) = client("ends", &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", pid_file.display()));
        assert!(client.ask(BuildId::new(&[1]).unwrap()));
        let pid = loop {
            match std::fs::read_to_string(&pid_file) {
                Ok(pid) => break pid.trim().to_owned(),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert!(client.answer().is_none());
        drop(client);
        while PathBuf::from(format!("/proc/{pid}")).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(pid_file).unwrap();
    }
}
