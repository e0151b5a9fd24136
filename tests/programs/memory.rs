//! Memory that is difficult to read for a tracer: untouched pages, data at the end of a mapping, and unmapped
//! addresses.

use crate::{raw, told};
use std::ffi::c_void;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A distance larger than the range that the kernel maps around a touched page.
pub const STRIDE: usize = 256 << 10;
const PAGE: usize = 4096;

pub fn run(scene: &str, count: u64, dir: &Path) {
    match scene {
        "fresh" => fresh(count as usize, dir),
        "edge" => edge(count as usize),
        "arguments" => arguments(count as usize, dir),
        "nowhere" => (0..count).for_each(|_| open_at(told::known(0x10 as *const u8, &[]))),
        _ => panic!("no scene {scene:?}"),
    }
    println!("issued openat {count}");
}

/// Calls with paths in pages of a file that this process has never touched.
fn fresh(count: usize, dir: &Path) {
    let start = untouched(dir, count, fresh_name);
    (0..count).for_each(|i| open_at(told::known(start.wrapping_add(i * STRIDE), &fresh_name(i))));
}

/// The same paths are the arguments of a program that a child executes; the exec removes this memory.
fn arguments(count: usize, dir: &Path) {
    let start = untouched(dir, count, fresh_name);
    let argv: Vec<*const u8> = (0..count).map(|i| start.wrapping_add(i * STRIDE)).chain([std::ptr::null()]).collect();
    let child = raw::fork(|| {
        argv[..count].iter().enumerate().for_each(|(i, name)| told::note(told::known(*name, &fresh_name(i))));
        unsafe {
            told::last_syscall!(libc::SYS_execve, c"/bin/true", &argv[..], told::known([std::ptr::null::<u8>()].as_ptr().cast(), &[]))
        };
    });
    raw::wait(child);
}

fn fresh_name(i: usize) -> Vec<u8> {
    format!("/nonexistent/fresh-{i}").into_bytes()
}

/// Writes names at a distance of [`STRIDE`] bytes, each on its own page.
pub fn untouched(dir: &Path, count: usize, name: impl Fn(usize) -> Vec<u8>) -> *const u8 {
    let mut file = File::create_new(dir.join("fresh")).expect("the directory is writable");
    let page = |i: usize| {
        let mut page = name(i);
        page.resize(STRIDE, 0);
        page
    };
    (0..count).for_each(|i| file.write_all(&page(i)).expect("there is room"));
    let file = File::open(dir.join("fresh")).expect("it was just written");
    map(STRIDE * count, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd())
}

/// Calls with paths whose NUL is the last byte of a mapping (`/nonexistent/edge-N`), and writes of the last N bytes of
/// a mapping.
fn edge(count: usize) {
    let start = map(2 * PAGE, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
    let end = start.wrapping_add(PAGE);
    assert_eq!(unsafe { libc::munmap(end.cast::<c_void>().cast_mut(), PAGE) }, 0);
    for i in 0..count {
        let text = format!("/nonexistent/edge-{i}\0");
        let at = end.wrapping_sub(text.len());
        unsafe { at.cast_mut().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        open_at(told::known(at, text.as_bytes()));
        let count = i % 30 + 2;
        unsafe {
            told::note(std::slice::from_raw_parts(end.wrapping_sub(count), count));
            told::syscall!(libc::SYS_write, -1, end.wrapping_sub(count), count)
        };
    }
}

fn map(bytes: usize, protection: i32, flags: i32, fd: i32) -> *const u8 {
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
    assert_ne!(start, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    start.cast()
}

fn open_at(path: told::Argument) {
    unsafe { told::syscall!(libc::SYS_openat, libc::AT_FDCWD, path, libc::O_RDONLY, 0) };
}
