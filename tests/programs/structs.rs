//! Calls that fill the structs that people see most: stat, statx, and the entries of a directory.

use super::{raw, told};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The user who owns `DIR/seven`, if this program may change that.
const OWNER: u32 = 1234;

/// Creates `DIR/seven`, a file of seven bytes, and `DIR/entries`, a directory of eight files. Asks for the status of
/// the file and of a device, and reads the directory twice. Prints what the first read returned: `entries BYTES
/// NAME...`.
pub fn run(dir: &Path) {
    let file = dir.join("seven");
    std::fs::write(&file, "7 bytes").expect("the directory is writable");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("the file is ours");
    // Only root may do this; the tests compare lines with the owner that the file has.
    _ = std::os::unix::fs::chown(&file, Some(OWNER), Some(0));
    for path in [&file, Path::new("/dev/full")] {
        stat(path);
        statx(path, libc::STATX_MODE | libc::STATX_SIZE);
        statx(path, libc::STATX_TYPE | libc::STATX_NLINK | libc::STATX_UID | libc::STATX_MTIME);
    }
    read_directory(&dir.join("entries"));
}

fn name(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path has no NUL")
}

fn stat(path: &Path) {
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    let returned = unsafe { told::syscall!(libc::SYS_newfstatat, libc::AT_FDCWD, &*name(path), &raw mut stat, 0) };
    assert_eq!(returned, 0, "{}: {}", path.display(), std::io::Error::last_os_error());
}

fn statx(path: &Path, mask: u32) {
    let mut statx: libc::statx = unsafe { std::mem::zeroed() };
    let returned = unsafe { told::syscall!(libc::SYS_statx, libc::AT_FDCWD, &*name(path), 0, mask, &raw mut statx) };
    assert_eq!(returned, 0, "{}: {}", path.display(), std::io::Error::last_os_error());
}

fn read_directory(path: &Path) {
    const NAME_AT: usize = 19;
    std::fs::create_dir(path).expect("the directory is writable");
    (0..8).for_each(|file| std::fs::write(path.join(format!("file-{file}")), "").expect("the directory is writable"));
    let fd = raw::open(path, libc::O_DIRECTORY);
    let mut entries = [0u8; 4096];
    let bytes = read_entries(fd, &mut entries);
    assert_eq!(read_entries(fd, &mut [0; 4096]), 0, "{}", std::io::Error::last_os_error());
    let mut names = Vec::new();
    let mut at = 0;
    while at < bytes {
        let length = usize::from(u16::from_ne_bytes([entries[at + 16], entries[at + 17]]));
        let name = entries[at + NAME_AT..at + length].split(|byte| *byte == 0).next().unwrap_or_default();
        names.push(String::from_utf8_lossy(name).into_owned());
        at += length;
    }
    println!("entries {bytes} {}", names.join(" "));
}

/// Reads as many entries of a directory as there is room for, and returns their number of bytes.
fn read_entries(fd: i32, buffer: &mut [u8; 4096]) -> usize {
    let bytes = unsafe { told::syscall!(libc::SYS_getdents64, fd, &mut buffer[..], 4096) };
    usize::try_from(bytes).unwrap_or_else(|_| panic!("{}", std::io::Error::last_os_error()))
}
