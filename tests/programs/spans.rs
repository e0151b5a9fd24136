//! Calls with clock readings before and after each of them.

use crate::raw;
use std::io::Write;

pub fn run(kind: &str, threads: u64, count: u64) {
    let spans = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || thread_spans(kind, thread, threads, count))).collect();
        workers.into_iter().flat_map(|w| w.join().expect("a worker ends well")).collect::<Vec<String>>()
    });
    let mut out = std::io::stdout().lock();
    out.write_all(spans.concat().as_bytes()).expect("stdout takes the spans");
}

/// Makes the calls of one thread; tags are unique over all threads.
fn thread_spans(kind: &str, thread: u64, threads: u64, count: u64) -> Vec<String> {
    let tid = raw::gettid();
    let (name, call): (&str, fn(u64)) = match kind {
        "quick" => ("lseek", raw::tag),
        "sleep" => ("poll", raw::poll_nothing),
        _ => panic!("no kind {kind:?}"),
    };
    let tags = (0..count).map(|i| i * threads + thread + 1);
    tags.map(|tag| {
        let before = raw::now();
        call(tag);
        let after = raw::now();
        format!("span {tid} {name} {tag} {before} {after}\n")
    })
    .collect()
}
