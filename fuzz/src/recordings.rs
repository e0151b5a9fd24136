//! Recordings: whole files, and records behind a beginning that is right.
//!
//! The first byte chooses which, and whether records are passed over by the index. What the file has passes the engine,
//! is printed and added up as `rtrace -i` does it, and becomes an outline as for `rtrace diff`.

use super::records::table;
use super::render;
use rtrace::differences::{Outliner, Words};
use rtrace::events::{Event, Time, Verdict};
use rtrace::output::{Nameless, Sink, StyleContext, TraceResult, View};
use rtrace::recordings::{About, AttrNumbers, Begin, Reader, Writer};
use rtrace::records::Session;
use rtrace::tracing::{Closed, Engine};
use std::sync::OnceLock;

/// What a recording begins with: the header, the attributes of four events, and the fact that describes them.
fn beginning() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("rtrace-fuzz.{}", std::process::id()));
        let file = std::fs::File::create(&path).expect("the directory of temporary files is writable");
        let session = Session { events: table(), signals: true, ..Session::default() };
        let begin = Begin { session, ..Begin::default() };
        drop(Writer::new(file, begin, &[AttrNumbers::default(); 4], About::default()).expect("the file is writable"));
        let bytes = std::fs::read(&path).expect("it was written");
        let _ = std::fs::remove_file(path);
        bytes
    })
}

pub fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let file = if kind % 2 == 0 { bytes.to_vec() } else { [beginning(), bytes].concat() };
    let Ok(mut reader) = Reader::new(Box::new(file)) else { return };
    let session = reader.begin().session.clone();
    let mut engine = Engine::new(&session, None, Box::new(Closed));
    let mut styles: Vec<_> =
        [&["--full"][..], &["--style", "strace"], &["--json"]].map(|options| render::style_of(&session, options)).into();
    let mut events = Vec::new();
    let mut summaries = [&["-s", "--errno-summary"][..], &["-s", "--json"]].map(render::summary_of);
    let outliner = Outliner::new(Words::default());
    let mut show = |events: &mut Vec<Event>, engine: &Engine| {
        let known = StyleContext { session: &session, comm: &|_| None, cgroup: &|_| None, names: &Nameless };
        let view = View { session: &session, tasks: engine.tasks(), now: engine.now(), names: &Nameless };
        for event in events.drain(..) {
            let mut out = Vec::new();
            styles.iter_mut().for_each(|style| style.event(&mut out, &event, &known));
            summaries.iter_mut().for_each(|summary| summary.event(&event, &view).expect("nothing is written yet"));
            outliner.take(&event, &[], &session, false);
        }
    };
    if kind & 2 != 0 {
        let _ = (reader.lasts(), reader.pass_over(Time(u64::MAX)));
    }
    while let Some(input) = reader.next_input() {
        engine.input(&session, input, &mut events);
        show(&mut events, &engine);
    }
    engine.end(&session, &mut events);
    show(&mut events, &engine);
    let view = View { session: &session, tasks: engine.tasks(), now: engine.now(), names: &Nameless };
    let result = TraceResult { ledger: engine.ledger(), verdict: &Verdict::default() };
    summaries.iter_mut().for_each(|summary| summary.end(&result, &view).expect("/dev/null can be written"));
    let _ = (reader.damages(), outliner.finish());
}
