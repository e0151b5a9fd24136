//! Decodes calls and prints their lines in every style.

use rtrace::events::{Abi, Call, CallId, Event, EventKind, ExitState, Piece, PieceState, PieceTime, TaskId, Time};
use rtrace::output::{Nameless, Output, Style, StyleContext, Summary, create_style};
use rtrace::program::{self, Parsed, Request, Trace};
use rtrace::records::Session;
use std::cell::RefCell;
use std::sync::Arc;

/// The options that choose the styles: perf's lines with the brief form of structs, the same with all members, JSON.
const OPTIONS: [&[&str]; 3] = [&[], &["--full", "--string-limit=256"], &["--json"]];
/// The number of styles.
pub const STYLES: u8 = OPTIONS.len() as u8;
/// The length of a line is at most this, and [`LINE_BYTES_PER_INPUT`] for each byte of memory.
const LINE_BYTES_MAX: usize = 1 << 20;
const LINE_BYTES_PER_INPUT: usize = 64;
const TASK: TaskId = TaskId { pid: 20131, tid: 20131 };
const START: Time = Time(1_000_000_000);
const END: Time = Time(START.0 + 19_000);

thread_local! {
    static ALL: RefCell<Vec<Box<dyn Style>>> = RefCell::new(OPTIONS.iter().map(|options| style(options)).collect());
}

fn style(options: &[&str]) -> Box<dyn Style> {
    style_of(&Session::default(), options)
}

/// Returns the style that these options choose, for events of this session.
pub fn style_of(session: &Session, options: &[&str]) -> Box<dyn Style> {
    create_style(&request(options).show, session, false)
}

/// Returns the summary that these options choose, which is written to /dev/null.
pub fn summary_of(options: &[&str]) -> Summary {
    let trace = request(&[options, &["-o", "/dev/null"]].concat());
    let output = Output::open(&trace.output).expect("/dev/null can be opened");
    Summary::new(&trace.show, output.shared())
}

fn request(options: &[&str]) -> Trace {
    let words = [&["rtrace", "--no-config"], options, &["true"]].concat();
    match program::parse(words.iter().map(Into::into), &program::environment()) {
        Parsed::Request(Request::Trace(trace)) => *trace,
        _ => unreachable!("these are words for a trace"),
    }
}

/// Returns a call without memory that returned `ret`.
pub fn call(abi: Abi, nr: i64, args: [u64; 6], ret: i64) -> Call {
    Call { exit: ExitState::Returned { at: END, ret }, args: Some(args), ..Call::new(CallId { tid: TASK.tid, start: START }, abi, nr) }
}

/// Adds memory that was copied completely.
pub fn add_memory(call: &mut Call, arg: u8, when: PieceTime, address: u64, bytes: &[u8]) {
    let (start, len) = (call.payload.len() as u32, bytes.len() as u32);
    call.payload.extend_from_slice(bytes);
    call.pieces.push(Piece { arg, when, address, wanted: u64::from(len), start, len, state: PieceState::Ok });
}

/// Prints the line of a call in the style of this number.
pub fn print(call: &Call, style: u8) {
    let session = Session::default();
    let context = StyleContext { session: &session, comm: &|_| None, cgroup: &|_| None, names: &Nameless };
    let event = Event { time: END, cpu: 3, task: TASK, comm: Some(Arc::from(&b"sh"[..])), kind: EventKind::Call(Box::new(call.clone())) };
    let mut out = Vec::new();
    ALL.with_borrow_mut(|all| all[usize::from(style % STYLES)].event(&mut out, &event, &context));
    let text = out.strip_suffix(b"\n").expect("a call has a line");
    assert!(!text.iter().any(u8::is_ascii_control), "the line has no control characters: {}", String::from_utf8_lossy(text));
    let most = LINE_BYTES_MAX + LINE_BYTES_PER_INPUT * call.payload.len();
    assert!(out.len() <= most, "a line of {} bytes for {} bytes of memory", out.len(), call.payload.len());
}

/// Prints the lines of a call with one piece of its memory copied to each length, in the style of this number: `exact`
/// if the call names no more than was copied, else as memory that the copy cut.
pub fn print_every_length(call: &mut Call, piece: usize, exact: bool, style: u8) {
    /// The number of lengths at the beginning and at the end of longer memory.
    const FIRST: u32 = 72;
    const LAST: u32 = 8;
    let Some(whole) = call.pieces.get(piece).copied() else { return };
    for len in (0..=whole.len).filter(|len| *len <= FIRST || *len + LAST >= whole.len) {
        let wanted = if exact { u64::from(len) } else { whole.wanted };
        call.pieces[piece] = Piece { len, wanted, ..whole };
        print(call, style);
    }
    call.pieces[piece] = whole;
}
