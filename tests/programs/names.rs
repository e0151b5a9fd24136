//! Opens of missing files by known names: names of every length, with unprintable bytes, on untouched pages, by several
//! threads.
//!
//! Each call has its own number as the directory's descriptor, which is not open. `named NUMBER HEX [HEX]` prints its
//! name or names.

use crate::memory::{STRIDE, untouched};
use crate::told;
use std::ffi::CString;
use std::fmt::Write;
use std::path::Path;
use std::thread;

/// The first number, which is above every open descriptor.
const FIRST: u64 = 1_000_000;
/// The number of kinds of names; two of them are a name on an untouched page and a call with two names.
const KINDS: u64 = 8;
const COLD: u64 = 6;
const TWO: u64 = 7;
/// PATH_MAX, which includes the NUL.
const PATH_MAX: usize = 4_096;

pub fn run(threads: u64, count: u64, dir: &Path) {
    let total = threads * count;
    let cold = untouched(dir, (total / KINDS + 1) as usize, |i| name(i as u64 * KINDS + COLD)) as usize;
    let each = |thread: u64| move || (0..count).map(|i| ask(thread * count + i, cold)).collect::<String>();
    let running: Vec<_> = (0..threads).map(|thread| thread::spawn(each(thread))).collect();
    for thread in running {
        print!("{}", thread.join().expect("it only makes calls"));
    }
    println!("issued openat {}", total);
}

/// Makes one call, and returns the line that describes it.
fn ask(i: u64, cold: usize) -> String {
    let number = FIRST + i;
    let path = |name: &[u8]| CString::new(name).expect("no NUL is put in");
    if i % KINDS == TWO {
        let (old, new) = (format!("/nonexistent/old-{i}").into_bytes(), format!("/nonexistent/new-{i}").into_bytes());
        let (from, to) = (path(&old), path(&new));
        unsafe { told::syscall!(libc::SYS_renameat2, number, &*from, number, &*to, 0) };
        return format!("named {number} {} {}\n", hex(&old), hex(&new));
    }
    let name = name(i);
    match i % KINDS {
        COLD => open(number, told::known((cold + (i / KINDS) as usize * STRIDE) as *const u8, &name)),
        _ => open(number, (&*path(&name)).into()),
    }
    format!("named {number} {}\n", hex(&name))
}

fn open(number: u64, path: told::Argument) {
    unsafe { told::syscall!(libc::SYS_openat, number, path, libc::O_RDONLY, 0) };
}

/// Returns the name of call `i`; the kinds take turns.
fn name(i: u64) -> Vec<u8> {
    let of_length = |bytes: usize| {
        let mut name = format!("/nonexistent/long-{i}/").into_bytes();
        name.resize(bytes, b'x');
        name
    };
    match i % KINDS {
        0 => format!("/nonexistent/name-{i}").into_bytes(),
        1 => format!("nonexistent/relative-{i}").into_bytes(),
        2 => of_length(60 + (i / KINDS % 9) as usize),
        3 => of_length(PATH_MAX - 1 - (i / KINDS % 200) as usize),
        4 => [b"/nonexistent/\x01\xff\n\t\xc3\xa9-", i.to_string().as_bytes()].concat(),
        5 => format!("/nonexistent/lib.so.{i}...").into_bytes(),
        _ => format!("/nonexistent/cold-{i}").into_bytes(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
