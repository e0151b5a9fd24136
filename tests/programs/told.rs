//! Calls that the program describes itself: what it passed, what it got back, and the memory behind its pointers.
//!
//! After `workload --tell`, each call of [`syscall`] makes a line on stdout, all of which [`print`] writes when a scene
//! is over:
//!
//! ```text
//! {"told":{"tid":7,"number":0,"begin":1200,"end":1300,"registers":["0x3","0x7ffe0000","0x4"],"return":3,"bits":[64,64,
//!   64],"memory":[{"address":"0x7ffe0000","size":4,"flow":"out","entry":"","exit":"616263"}]}}
//! ```
//!
//! The two times are CLOCK_MONOTONIC just before and just after the call, in nanoseconds; the only call of this number
//! that the task began between them is the one that is described. A failed call returns the negative error. `bits` says
//! how many of the lowest bits of each register the kernel reads. Memory has its bytes as hexadecimal digits, without
//! the zeros at its end. A call that does not return has no `end`, no `return`, and no memory at the exit.
//!
//! Without `--tell`, nothing is read, stored or printed, and the calls are the same.

use crate::raw;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes a system call and tells it: the number, and up to six arguments, each of which is an [`Argument`].
macro_rules! syscall {
    ($number:expr $(, $argument:expr)* $(,)?) => {
        crate::told::call($number, &[$(crate::told::Argument::from($argument)),*])
    };
}
/// Tells a call that may not return, prints what was told so far, and makes the call.
macro_rules! last_syscall {
    ($number:expr $(, $argument:expr)* $(,)?) => {
        crate::told::call_last($number, &[$(crate::told::Argument::from($argument)),*])
    };
}
pub(crate) use {last_syscall, syscall};

/// What the kernel does with memory.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    /// It reads the memory.
    In,
    /// It writes the memory, and does not care what it finds there.
    Out,
    /// It reads and writes the memory.
    Both,
}

/// Memory behind a pointer of a call.
#[derive(Clone)]
struct Memory {
    address: u64,
    size: usize,
    flow: Flow,
    /// The bytes, if the program knows them without reading them: a page that it has not touched is to stay so.
    known: Option<Vec<u8>>,
}

/// The register of an argument, and the memory behind it.
pub struct Argument {
    register: u64,
    memory: Option<Memory>,
    /// How many bits of the register the kernel reads.
    bits: u32,
}

impl Argument {
    fn number(register: u64) -> Argument {
        Argument { register, memory: None, bits: 64 }
    }

    fn memory(address: u64, size: usize, flow: Flow) -> Argument {
        let memory = (address != 0 && size > 0).then_some(Memory { address, size, flow, known: None });
        Argument { register: address, memory, bits: 64 }
    }
}

/// Numbers of 32 bits leave the upper half of their register 0.
macro_rules! numbers {
    ($($kind:ty: $wide:ty),*) => {$(
        impl From<$kind> for Argument {
            fn from(number: $kind) -> Argument {
                Argument::number(number as $wide as u64)
            }
        }
    )*};
}
numbers!(i32: u32, u32: u32, i64: i64, u64: u64, usize: usize);

/// A pointer to bytes says nothing about their number; other pointers have one value behind them.
impl<T> From<*const T> for Argument {
    fn from(at: *const T) -> Argument {
        Argument::memory(at as u64, if size_of::<T>() == 1 { 0 } else { size_of::<T>() }, Flow::In)
    }
}

impl<T> From<*mut T> for Argument {
    fn from(at: *mut T) -> Argument {
        Argument::memory(at as u64, if size_of::<T>() == 1 { 0 } else { size_of::<T>() }, Flow::Both)
    }
}

impl From<&CStr> for Argument {
    fn from(text: &CStr) -> Argument {
        Argument::memory(text.as_ptr() as u64, text.count_bytes() + 1, Flow::In)
    }
}

impl<T> From<&[T]> for Argument {
    fn from(values: &[T]) -> Argument {
        Argument::memory(values.as_ptr() as u64, size_of_val(values), Flow::In)
    }
}

impl<T> From<&mut [T]> for Argument {
    fn from(values: &mut [T]) -> Argument {
        Argument::memory(values.as_mut_ptr() as u64, size_of_val(values), Flow::Both)
    }
}

/// A number of which the kernel reads only the lowest bits.
pub fn narrow(register: u64, bits: u32) -> Argument {
    Argument { bits, ..Argument::number(register) }
}

/// A number that the kernel ignores.
pub fn ignored(register: impl Into<Argument>) -> Argument {
    Argument { memory: None, bits: 0, ..register.into() }
}

/// Memory of values that the kernel writes, and does not read.
pub fn out<T>(values: *mut T, count: usize) -> Argument {
    Argument::memory(values as u64, size_of::<T>() * count, Flow::Out)
}

/// Values that the kernel reads and writes.
pub fn values<T>(values: *mut T, count: usize) -> Argument {
    Argument::memory(values as u64, size_of::<T>() * count, Flow::Both)
}

/// Memory with known bytes, which the program does not read.
pub fn known(address: *const u8, bytes: &[u8]) -> Argument {
    let memory = Memory { address: address as u64, size: bytes.len(), flow: Flow::In, known: Some(bytes.to_vec()) };
    Argument { register: address as u64, memory: Some(memory), bits: 64 }
}

thread_local! {
    /// Memory that the next call of this thread reaches, besides that of its arguments.
    static NOTED: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
    static TASK: Cell<i32> = const { Cell::new(0) };
}
static LINES: Mutex<String> = Mutex::new(String::new());

static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Makes the calls from now on tell themselves.
pub fn ask() {
    IS_ASKED.store(true, Ordering::Relaxed);
}

fn is_asked() -> bool {
    IS_ASKED.load(Ordering::Relaxed)
}

/// Notes memory that the next call reaches by other memory or by the number of its address.
pub fn note(argument: impl Into<Argument>) {
    if let (true, Some(memory)) = (is_asked(), argument.into().memory) {
        NOTED.with_borrow_mut(|noted| noted.push(memory));
    }
}

/// Notes values that the next call reads, and returns their address.
pub fn address<T>(values: &[T]) -> u64 {
    note(values);
    values.as_ptr() as u64
}

/// Notes values that the next call reads and writes, and returns their address.
pub fn place<T>(values: &mut [T]) -> u64 {
    note(&mut *values);
    values.as_mut_ptr() as u64
}

/// Notes values that the next call writes, and returns their address.
pub fn room<T>(values: &mut [T]) -> u64 {
    note(out(values.as_mut_ptr(), values.len()));
    values.as_mut_ptr() as u64
}

/// Makes a call. Returns what libc's `syscall` returns.
///
/// # Safety
/// As for libc's `syscall`; the memory of the arguments and what was noted for this call must be readable.
pub unsafe fn call(number: impl Into<i64>, arguments: &[Argument]) -> i64 {
    let number = number.into();
    if !is_asked() {
        return unsafe { make(number, arguments) };
    }
    let memory = memory_of(arguments);
    let before: Vec<_> = memory.iter().map(|memory| unsafe { bytes_before(memory) }).collect();
    let begin = raw::now();
    let returned = unsafe { make(number, arguments) };
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or_default();
    let end = raw::now();
    let mut parts = Vec::new();
    for (memory, before) in memory.iter().zip(before) {
        // What the kernel only reads is the same as before the call, when its page may have been untouched.
        let after = memory.known.clone().unwrap_or_else(|| unsafe { bytes_of(memory) });
        parts.push(part(memory, &before.unwrap_or_else(|| after.clone()), (memory.flow != Flow::In).then_some(&after)));
    }
    let result = if returned == -1 { -i64::from(error) } else { returned };
    tell(number, arguments, begin, &format!(r#""end":{end},"return":{result},"#), &parts);
    returned
}

/// Makes a call that may not return, of which it prints what is known before.
///
/// # Safety
/// As for [`call`].
pub unsafe fn call_last(number: impl Into<i64>, arguments: &[Argument]) -> i64 {
    let number = number.into();
    if is_asked() {
        let memory = memory_of(arguments);
        let bytes = |memory: &Memory| memory.known.clone().unwrap_or_else(|| unsafe { bytes_of(memory) });
        let parts: Vec<_> = memory.iter().map(|memory| part(memory, &bytes(memory), None)).collect();
        tell(number, arguments, raw::now(), "", &parts);
        print();
    }
    unsafe { make(number, arguments) }
}

unsafe fn make(number: i64, arguments: &[Argument]) -> i64 {
    let mut registers = [0; 6];
    registers.iter_mut().zip(arguments).for_each(|(register, argument)| *register = argument.register);
    let [a, b, c, d, e, f] = registers;
    unsafe { libc::syscall(number, a, b, c, d, e, f) }
}

/// Returns the memory of a call's arguments, and what was noted for it.
fn memory_of(arguments: &[Argument]) -> Vec<Memory> {
    let mut all: Vec<Memory> = arguments.iter().filter_map(|argument| argument.memory.clone()).collect();
    for noted in NOTED.take() {
        if all.iter().all(|memory| memory.address != noted.address) {
            all.push(noted);
        }
    }
    all
}

/// Returns the bytes before a call, unless the kernel only reads them.
unsafe fn bytes_before(memory: &Memory) -> Option<Vec<u8>> {
    match (&memory.known, memory.flow) {
        (Some(known), _) => Some(known.clone()),
        (None, Flow::In) => None,
        (None, _) => Some(unsafe { bytes_of(memory) }),
    }
}

unsafe fn bytes_of(memory: &Memory) -> Vec<u8> {
    unsafe { std::slice::from_raw_parts(memory.address as *const u8, memory.size) }.to_vec()
}

fn part(memory: &Memory, entry: &[u8], exit: Option<&Vec<u8>>) -> String {
    let flow = match memory.flow {
        Flow::In => "in",
        Flow::Out => "out",
        Flow::Both => "both",
    };
    let exit = exit.map_or(String::new(), |bytes| format!(r#","exit":"{}""#, hex(bytes)));
    format!(r#"{{"address":"{:#x}","size":{},"flow":"{flow}","entry":"{}"{exit}}}"#, memory.address, memory.size, hex(entry))
}

fn hex(bytes: &[u8]) -> String {
    let size = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..size].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn tell(number: i64, arguments: &[Argument], begin: u64, end: &str, memory: &[String]) {
    if TASK.get() == 0 {
        TASK.set(raw::gettid());
    }
    let registers: Vec<_> = arguments.iter().map(|argument| format!(r#""{:#x}""#, argument.register)).collect();
    let bits: Vec<_> = arguments.iter().map(|argument| argument.bits.to_string()).collect();
    let line = format!(
        r#"{{"told":{{"tid":{},"number":{number},"begin":{begin},{end}"registers":[{}],"bits":[{}],"memory":[{}]}}}}"#,
        TASK.get(),
        registers.join(","),
        bits.join(","),
        memory.join(",")
    );
    add(&line);
}

/// Tells a line of another kind.
pub fn line(text: impl FnOnce() -> String) {
    if is_asked() {
        add(&text());
    }
}

fn add(line: &str) {
    let mut lines = LINES.lock().expect("nobody panics while it holds the lock");
    lines.push_str(line);
    lines.push('\n');
}

/// Writes what was told since the last time.
pub fn print() {
    let lines = std::mem::take(&mut *LINES.lock().expect("nobody panics while it holds the lock"));
    let mut rest = lines.as_bytes();
    while !rest.is_empty() {
        let written = unsafe { libc::write(1, rest.as_ptr().cast(), rest.len()) };
        rest = &rest[usize::try_from(written).expect("stdout is writable")..];
    }
}

/// Forgets in a child process what its parent told.
pub fn forget() {
    LINES.lock().expect("nobody panics while it holds the lock").clear();
    TASK.set(0);
}
