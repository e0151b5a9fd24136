//! Which file systems answer by themselves, and which ask somebody else: a program, another machine. And mounts of the
//! kernel's own file systems that nobody else sees.
//!
//! Whoever touches a file of the latter waits in the kernel for as long as that takes, so this is found out without touching it: by numbers of devices and mounts, and by what /proc says of these.

use rustix::fs::{AtFlags, MemfdFlags, StatxFlags, makedev, memfd_create, statx};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::LazyLock;

/// File systems that have their data on this machine. All others are taken for such that ask somebody else. What the layers of an overlay are on cannot be seen from here.
const LOCAL: [&str; 34] = [
    "bcachefs",
    "btrfs",
    "cramfs",
    "devtmpfs",
    "erofs",
    "exfat",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "hfs",
    "hfsplus",
    "hugetlbfs",
    "iso9660",
    "jffs2",
    "jfs",
    "minix",
    "msdos",
    "nilfs2",
    "ntfs",
    "ntfs3",
    "overlay",
    "proc",
    "ramfs",
    "reiserfs",
    "romfs",
    "rootfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "ubifs",
    "udf",
    "vfat",
    "xfs",
];

/// A line of mountinfo (man 5 proc_pid_mountinfo).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub id: u32,
    /// Major and minor number.
    pub device: (u32, u32),
    /// Where it is mounted, as seen from the root of whoever's mountinfo this is.
    pub place: Vec<u8>,
    pub kind: Vec<u8>,
}

impl Mount {
    /// It needs nobody to answer.
    pub fn is_local(&self) -> bool {
        // ZFS has no place in the kernel's own list, and is local all the same.
        self.kind == b"zfs" || LOCAL.iter().any(|kind| kind.as_bytes() == self.kind)
    }

    fn parse(line: &[u8]) -> Option<Mount> {
        let mut words = line.split(|byte| *byte == b' ');
        let id = number(words.next()?)?;
        let mut device = words.nth(1)?.split(|byte| *byte == b':').map(number);
        let device = (device.next()??, device.next()??);
        let place = unescaped(words.nth(1)?);
        // Any number of optional fields ends with a dash.
        let kind = words.skip_while(|word| *word != b"-").nth(1)?.to_vec();
        Some(Mount { id, device, place, kind })
    }
}

/// The first of the mounts that a process sees of which `is_it` holds.
///
/// # Errors
/// There is no such process, or it may not be looked at.
pub fn find(process: &str, is_it: impl Fn(&Mount) -> bool) -> io::Result<Option<Mount>> {
    let lines = BufReader::new(File::open(format!("/proc/{process}/mountinfo"))?).split(b'\n');
    for line in lines {
        if let Some(mount) = Mount::parse(&line?).filter(&is_it) {
            return Ok(Some(mount));
        }
    }
    Ok(None)
}

/// Whether the file system of this device answers by itself. One that neither rtrace nor this process has mounted, nor is the kernel's own for memory, is not known to.
pub fn is_local_device(device: (u32, u32), pid: i32) -> bool {
    *MEMORY == Some(device) || is_local(pid, |mount| mount.device == device)
}

/// The same of what is open without being opened for anything (O_PATH). `pid`: a process that sees it.
pub fn is_local_place(place: impl AsFd, pid: Option<i32>) -> bool {
    let is_it = |id| is_local(pid.unwrap_or_default(), |mount| mount.id == id);
    id_of(&place).is_some_and(is_it) || device_of(&place).is_some_and(|device| *MEMORY == Some(device))
}

/// The number of the mount that something is on. The kernel asks no file system for it.
pub fn id_of(place: impl AsFd) -> Option<u32> {
    let text = fs::read(format!("/proc/self/fdinfo/{}", place.as_fd().as_raw_fd())).ok()?;
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"mnt_id:"))?;
    number(line.trim_ascii())
}

fn is_local(pid: i32, is_it: impl Fn(&Mount) -> bool) -> bool {
    let found = ["self".to_owned(), pid.to_string()].into_iter().find_map(|process| find(&process, &is_it).ok()?);
    found.is_some_and(|mount| mount.is_local())
}

/// The device of the file system that is mounted nowhere: memfd_create(2) and shmget(2) have their files there.
static MEMORY: LazyLock<Option<(u32, u32)>> = LazyLock::new(|| device_of(memfd_create("rtrace", MemfdFlags::CLOEXEC).ok()?));

/// Without asking anybody whether it still is so.
fn device_of(file: impl AsFd) -> Option<(u32, u32)> {
    let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::empty()).ok()?;
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    Some((rustix::fs::major(device), rustix::fs::minor(device)))
}

fn number(text: &[u8]) -> Option<u32> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Blanks, newlines and backslashes stand as `\040` and the like.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = (byte == b'\\').then(|| behind.get(..3)).flatten();
        match digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()) {
            Some(escaped) => (plain.push(escaped), rest = &behind[3..]).1,
            None => (plain.push(byte), rest = behind).1,
        }
    }
    plain
}

/// Makes a mount of a file system of the kernel's own (`tracefs`, `securityfs`) that is attached nowhere: nobody else sees
/// it, and the kernel takes it away when its last descriptor is closed.
///
/// # Errors
/// The kernel's: EPERM without CAP_SYS_ADMIN in the initial user namespace, ENOSYS before Linux 5.2.
pub fn detached(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_and_without_optional_fields() {
        let mount = |line: &str| Mount::parse(line.as_bytes());
        let root = Mount { id: 27, device: (254, 0), place: b"/".to_vec(), kind: b"ext4".to_vec() };
        assert_eq!(mount("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard"), Some(root.clone()));
        assert_eq!(mount("27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw"), Some(root));
        let fuse = mount("36 27 0:45 / /mnt/a\\040b\\134c rw - fuse.sshfs host:/ rw").unwrap();
        assert_eq!((fuse.place.as_slice(), fuse.is_local()), (&b"/mnt/a b\\c"[..], false));
        for cut in ["", "27", "27 1 254:0 / /", "x 1 254:0 / / - ext4", "27 1 254 / / - ext4 x"] {
            assert_eq!(mount(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn what_asks_somebody_else_is_not_local() {
        let is_local = |kind: &str| Mount { id: 1, device: (0, 1), place: Vec::new(), kind: kind.into() }.is_local();
        for kind in
            ["fuse", "fuse.bindfs", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "autofs", "virtiofs", "lustre", "new"]
        {
            assert!(!is_local(kind), "{kind}");
        }
        assert!(["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay"].into_iter().all(is_local));
    }

    #[test]
    fn this_machines_own_files_are_known() {
        let memory = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        assert!(is_local_place(&memory, None));
        assert!(is_local_device(device_of(&memory).unwrap(), 0));
        let proc = File::open("/proc/self/maps").unwrap();
        assert!(is_local_place(&proc, None) && id_of(&proc).is_some());
        assert!(!is_local_device((4095, 1_048_575), 0), "no such device is mounted");
    }
}
