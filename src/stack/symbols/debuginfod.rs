//! Downloads of debug files by debuginfod's client program. A download may take minutes, so a thread runs one after the
//! other, and only [`Debuginfod::wait`] waits for it.

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

/// The client program, which downloads files and caches them (man 1 debuginfod-find).
const PROGRAM: &str = "debuginfod-find";

/// The result of a download: the path of the debug file, or `None` if no server has one.
pub type DownloadResult = (BuildId, Option<PathBuf>);

/// The thread that runs the client program. Dropping this value ends the thread and kills the program.
pub struct Debuginfod {
    requests: Option<Sender<BuildId>>,
    results: Receiver<DownloadResult>,
    running: Arc<Mutex<Running>>,
    outstanding: usize,
}

/// The running client program, shared with the thread so that it can be killed.
#[derive(Default)]
struct Running {
    child: Option<Child>,
    over: bool,
}

impl Debuginfod {
    /// Starts the thread if the user has configured servers (`DEBUGINFOD_URLS`).
    pub fn from_environment() -> Option<Debuginfod> {
        std::env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
        Some(Debuginfod::with_client(PROGRAM.into()))
    }

    /// Starts the thread with another client program, which accepts `debuginfo BUILDID` and prints a path.
    pub fn with_client(program: OsString) -> Debuginfod {
        let (requests, to_download) = channel::<BuildId>();
        let (downloaded, results) = channel();
        let running = Arc::new(Mutex::new(Running::default()));
        let shared = running.clone();
        let run = move || {
            for id in to_download {
                if downloaded.send((id, download(&program, id, &shared))).is_err() {
                    return;
                }
            }
        };
        // If the thread cannot be started, both channels are closed, so nobody waits for a result.
        let _ = std::thread::Builder::new().name("debuginfod".into()).spawn(run);
        Debuginfod { requests: Some(requests), results, running, outstanding: 0 }
    }

    /// Requests a debug file. Returns false if the thread does not run.
    pub fn request(&mut self, id: BuildId) -> bool {
        let is_sent = self.requests.as_ref().is_some_and(|requests| requests.send(id).is_ok());
        self.outstanding += usize::from(is_sent);
        is_sent
    }

    /// Whether there are requests without a result.
    pub fn is_waiting(&self) -> bool {
        self.outstanding > 0
    }

    /// Returns the result of a download, if one has finished.
    pub fn poll(&mut self) -> Option<DownloadResult> {
        if self.outstanding == 0 {
            return None;
        }
        match self.results.try_recv() {
            Ok(result) => self.received(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.thread_ended(),
        }
    }

    /// Waits for the result of a download until `until`. Returns `None` if there is no outstanding request, or none
    /// finished in time.
    pub fn wait(&mut self, until: Instant) -> Option<DownloadResult> {
        if self.outstanding == 0 {
            return None;
        }
        match self.results.recv_timeout(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))) {
            Ok(result) => self.received(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => self.thread_ended(),
        }
    }

    fn received(&mut self, result: DownloadResult) -> Option<DownloadResult> {
        self.outstanding -= 1;
        Some(result)
    }

    fn thread_ended(&mut self) -> Option<DownloadResult> {
        self.outstanding = 0;
        None
    }
}

impl Drop for Debuginfod {
    fn drop(&mut self) {
        self.requests = None;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.over = true;
        if let Some(child) = &mut running.child {
            // It may have ended already. The thread reaps it, or init does if rtrace ends first.
            let _ = child.kill();
        }
    }
}

/// Runs the client program for one build-id.
fn download(program: &OsString, id: BuildId, shared: &Mutex<Running>) -> Option<PathBuf> {
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
    // The client has closed its output, so it is about to end.
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

    /// Returns a client program that is a shell script. Its `$2` is the build-id.
    fn client(name: &str, script: &str) -> (PathBuf, Debuginfod) {
        let path = std::env::temp_dir().join(format!("rtrace-client-{}-{name}", std::process::id()));
        let text = path.with_extension("text");
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o755)).unwrap();
        // A file that is open for writing cannot be executed. If this process wrote the program, a child that another
        // test forks meanwhile would inherit the open file.
        assert!(Command::new("cp").args([&text, &path]).status().unwrap().success());
        std::fs::remove_file(text).unwrap();
        (path.clone(), Debuginfod::with_client(path.into()))
    }

    #[test]
    fn results_of_downloads_arrive_later() {
        let (path, mut client) = client("answers", r#"[ "$1 $2" = "debuginfo ab" ] && echo /found/$2"#);
        assert!(!client.is_waiting() && client.poll().is_none());
        let (known, unknown) = (BuildId::new(&[0xab]).unwrap(), BuildId::new(&[0xcd]).unwrap());
        assert!(client.request(known) && client.request(unknown));
        let until = Instant::now() + Duration::from_secs(60);
        assert_eq!(client.wait(until), Some((known, Some(PathBuf::from("/found/ab")))));
        assert_eq!(client.wait(until), Some((unknown, None)));
        assert!(!client.is_waiting() && client.wait(until).is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_missing_client_program_yields_no_file() {
        let mut client = Debuginfod::with_client("/nonexistent/client".into());
        let id = BuildId::new(&[1]).unwrap();
        assert!(client.request(id));
        assert_eq!(client.wait(Instant::now() + Duration::from_secs(60)), Some((id, None)));
    }

    #[test]
    fn the_client_program_is_killed_when_the_thread_is_dropped() {
        let pid_file = std::env::temp_dir().join(format!("rtrace-client-pid-{}", std::process::id()));
        let (path, mut client) = client("ends", &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000", pid_file.display()));
        assert!(client.request(BuildId::new(&[1]).unwrap()));
        let pid = loop {
            match std::fs::read_to_string(&pid_file) {
                Ok(pid) => break pid.trim().to_owned(),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert!(client.poll().is_none());
        drop(client);
        while PathBuf::from(format!("/proc/{pid}")).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(pid_file).unwrap();
    }
}
