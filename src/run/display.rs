//! The sinks of a run, in the thread of the engine or in one of their own.
//!
//! A thread of their own gets events in batches. What the sinks ask about tasks is answered by a copy of the engine's
//! tasks, which follows by the changes in each batch: the text is the same in both cases.

use crate::engine::view::View;
use crate::event::{Event, Notice, Time};
use crate::session::Session;
use crate::sink::output::SharedOutput;
use crate::sink::{Sink, TraceResult};
use crate::stack::name::Nameless;
use crate::task::Tasks;
use crate::task::tasks::Change;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

/// How many batches of events wait for the sinks at most.
const WAITING_MAX: usize = 8;

/// The sinks, and what became of their output.
pub struct Sinks {
    sinks: Vec<Box<dyn Sink + Send>>,
    output: SharedOutput,
    /// The error after which the output is no longer written.
    failed: Option<io::Error>,
    /// The number of selected calls since that error.
    unwritten_calls: u64,
}

impl Sinks {
    /// Puts sinks together, with the output that they share.
    pub fn new((sinks, output): (Vec<Box<dyn Sink + Send>>, SharedOutput)) -> Sinks {
        Sinks { sinks, output, failed: None, unwritten_calls: 0 }
    }

    /// Returns whether the output cannot be written any more.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Passes an event to the sinks, unless a write has failed. The last sink may exchange it.
    pub fn event(&mut self, event: &mut Event, view: &View) {
        match self.failed {
            Some(_) => self.unwritten_calls += event.kind.calls(),
            None => {
                let Some((last, others)) = self.sinks.split_last_mut() else { return };
                self.failed = others.iter_mut().try_for_each(|sink| sink.event(event, view)).and_then(|()| last.take(event, view)).err();
            }
        }
    }

    /// Tells the sinks about an event before the span of `--time`, which they do not show.
    pub fn pass_over(&mut self, event: &Event, view: &View) {
        self.sinks.iter_mut().for_each(|sink| sink.pass_over(event, view));
    }

    /// Lets the sinks write what they have.
    pub fn tick(&mut self, view: &View) {
        if self.failed.is_none() {
            self.failed = self.sinks.iter_mut().try_for_each(|sink| sink.tick(view)).err();
        }
    }

    /// Lets the sinks write their final output. If a sink returns a notice about it, all sinks get that notice. A sink
    /// whose output cannot be written does not keep the others from writing theirs. Returns the number of calls that
    /// are not in the output because it could not be written.
    pub fn end(&mut self, result: &TraceResult, view: &View) -> u64 {
        let mut done = self.each(|sink| sink.end(result, view));
        let said: Vec<Notice> = self.sinks.iter_mut().filter_map(|sink| sink.said()).collect();
        for notice in said {
            let event = Event::of_notice(view.now, notice);
            done = done.and(self.each(|sink| sink.event(&event, view)));
        }
        let finished = self.each(|sink| sink.finish(result, view));
        self.failed = self.failed.take().or(done.and(finished).err());
        match self.failed {
            Some(_) => self.unwritten_calls + self.sinks.iter().map(|sink| sink.unwritten()).max().unwrap_or_default(),
            None => 0,
        }
    }

    /// Closes the output. Returns the first error.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn close(&mut self) -> anyhow::Result<()> {
        let closed = self.output.lock().unwrap_or_else(std::sync::PoisonError::into_inner).finish();
        self.failed.take().map_or(closed, |error| Err(error.into()))
    }

    /// Calls a function for every sink, and returns the first error.
    fn each(&mut self, mut call: impl FnMut(&mut dyn Sink) -> io::Result<()>) -> io::Result<()> {
        self.sinks.iter_mut().map(|sink| call(sink.as_mut())).fold(Ok(()), io::Result::and)
    }
}

/// The thread of the sinks.
pub struct Apart {
    batches: SyncSender<Batch>,
    /// Events that were shown, whose memory is reused.
    shown: Receiver<Vec<Event>>,
    has_failed: Arc<AtomicBool>,
    thread: JoinHandle<Sinks>,
}

/// Events for the sinks.
pub struct Batch {
    /// The events that are shown.
    pub events: Vec<Event>,
    /// What has changed of the tasks since the last batch.
    pub changes: Vec<Change>,
    /// The stream's time after these events.
    pub now: Time,
    /// Whether the sinks write what they have.
    pub is_tick: bool,
}

impl Apart {
    /// Starts a thread with these sinks. They can ask about tasks, but not about stacks or cgroups.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(sinks: Sinks, session: Arc<Session>) -> io::Result<Apart> {
        let (batches, received) = mpsc::sync_channel(WAITING_MAX);
        let (used, shown) = mpsc::channel();
        let has_failed = Arc::new(AtomicBool::new(false));
        let failed = Arc::clone(&has_failed);
        let show = move || show(sinks, &session, &received, (&used, &failed));
        let thread = std::thread::Builder::new().name("rtrace-sinks".to_owned()).spawn(show)?;
        Ok(Apart { batches, shown, has_failed, thread })
    }

    /// Returns whether the output cannot be written any more.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Passes a batch to the sinks. Waits while they are behind.
    pub fn pass(&self, batch: Batch) {
        // A thread that panicked takes nothing. `join` passes the panic on.
        let _ = self.batches.send(batch);
    }

    /// Returns events that were shown.
    pub fn shown(&self) -> Option<Vec<Event>> {
        self.shown.try_recv().ok()
    }

    /// Waits until everything is shown, and returns the sinks.
    pub fn join(self) -> Sinks {
        drop(self.batches);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Shows batches until there are no more.
fn show(mut sinks: Sinks, session: &Session, batches: &Receiver<Batch>, (used, failed): (&Sender<Vec<Event>>, &AtomicBool)) -> Sinks {
    let mut tasks = Tasks::default();
    for Batch { mut events, changes, now, is_tick } in batches {
        tasks.repeat(changes);
        let view = View { session, tasks: &tasks, now, names: &Nameless };
        events.iter_mut().for_each(|event| sinks.event(event, &view));
        if is_tick {
            sinks.tick(&view);
        }
        if sinks.has_failed() {
            failed.store(true, Ordering::Relaxed);
        }
        // Nobody reuses them if the engine has ended.
        let _ = used.send(events);
    }
    sinks
}
