//! Local and remote file systems, and detached mounts of the kernel's own file systems.
//!
//! A remote file system here is one whose data another machine (NFS) or a program (FUSE) serves. An access to its files
//! blocks in the kernel until the server answers. So a file's file system is identified without an access to the file:
//! by the numbers of devices and mounts, and by mountinfo.

use rustix::fs::{AtFlags, MemfdFlags, StatxFlags, makedev, memfd_create, statx};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::LazyLock;

/// File systems whose data are on this machine. All others are considered remote. The file systems of an overlay's
/// layers cannot be determined here.
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
    /// The mount's ID, which /proc/PID/fdinfo has as `mnt_id`. The kernel may use it again when the mount was removed.
    pub id: u32,
    /// The major and minor number.
    pub device: (u32, u32),
    /// The mount point, relative to the root of the process whose mountinfo this is.
    pub mount_point: Vec<u8>,
    /// The type of the file system.
    pub kind: Vec<u8>,
}

impl Mount {
    /// Whether the file system is local.
    pub fn is_local(&self) -> bool {
        // ZFS is not part of the mainline kernel, but local.
        self.kind == b"zfs" || LOCAL.iter().any(|kind| kind.as_bytes() == self.kind)
    }

    fn parse(line: &[u8]) -> Option<Mount> {
        let mut words = line.split(|byte| *byte == b' ');
        let id = number(words.next()?)?;
        let mut device = words.nth(1)?.split(|byte| *byte == b':').map(number);
        let device = (device.next()??, device.next()??);
        let mount_point = unescaped(words.nth(1)?);
        // A dash ends the optional fields.
        let kind = words.skip_while(|word| *word != b"-").nth(1)?.to_vec();
        Some(Mount { id, device, mount_point, kind })
    }
}

/// Returns the first mount in a process's mountinfo for which `is_it` holds.
///
/// # Errors
/// Fails if there is no such process, or its mountinfo may not be read.
pub fn find(process: &str, is_it: impl Fn(&Mount) -> bool) -> io::Result<Option<Mount>> {
    let lines = BufReader::new(File::open(format!("/proc/{process}/mountinfo"))?).split(b'\n');
    for line in lines {
        if let Some(mount) = Mount::parse(&line?).filter(&is_it) {
            return Ok(Some(mount));
        }
    }
    Ok(None)
}

/// Whether a device's file system is local. Besides the mounts of rtrace and the process `pid`, only the kernel's file
/// system for memory is known; others are considered remote.
pub fn is_local_device(device: (u32, u32), pid: i32) -> bool {
    *MEMORY == Some(device) || is_local(pid, |mount| mount.device == device)
}

/// Whether the file of a descriptor, which may be an O_PATH one, is on a local file system. `pid` is a process in whose
/// mount namespace the file is.
pub fn is_local_file(file: impl AsFd, pid: Option<i32>) -> bool {
    let is_it = |id| is_local(pid.unwrap_or_default(), |mount| mount.id == id);
    id_of(&file).is_some_and(is_it) || device_of(&file).is_some_and(|device| *MEMORY == Some(device))
}

/// Reads the ID of the mount that a file is on. The kernel does not access the file system for it.
pub fn id_of(file: impl AsFd) -> Option<u32> {
    let text = fs::read(format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd())).ok()?;
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"mnt_id:"))?;
    number(line.trim_ascii())
}

fn is_local(pid: i32, is_it: impl Fn(&Mount) -> bool) -> bool {
    let found = ["self".to_owned(), pid.to_string()].into_iter().find_map(|process| find(&process, &is_it).ok()?);
    found.is_some_and(|mount| mount.is_local())
}

/// The device of the kernel's internal tmpfs, which has no mount point and holds the files of memfd_create(2) and
/// shmget(2).
static MEMORY: LazyLock<Option<(u32, u32)>> = LazyLock::new(|| device_of(memfd_create("rtrace", MemfdFlags::CLOEXEC).ok()?));

/// Returns the device of a file. AT_STATX_DONT_SYNC keeps the kernel from asking a server.
fn device_of(file: impl AsFd) -> Option<(u32, u32)> {
    let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::empty()).ok()?;
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    Some((rustix::fs::major(device), rustix::fs::minor(device)))
}

fn number(text: &[u8]) -> Option<u32> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Decodes blanks, newlines and backslashes, which are written as octal escapes (`\040`).
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

/// Creates a detached mount of one of the kernel's own file systems (`tracefs`, `securityfs`). Nobody else sees
/// it, and the kernel removes it when its last descriptor is closed.
///
/// # Errors
/// Fails with EPERM without CAP_SYS_ADMIN in the initial user namespace, and with ENOSYS before Linux 5.2.
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
    fn mountinfo_is_parsed_with_and_without_optional_fields() {
        let mount = |line: &str| Mount::parse(line.as_bytes());
        let root = Mount { id: 27, device: (254, 0), mount_point: b"/".to_vec(), kind: b"ext4".to_vec() };
        assert_eq!(mount("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard"), Some(root.clone()));
        assert_eq!(mount("27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw"), Some(root));
        let fuse = mount("36 27 0:45 / /mnt/a\\040b\\134c rw - fuse.sshfs host:/ rw").unwrap();
        assert_eq!((fuse.mount_point.as_slice(), fuse.is_local()), (&b"/mnt/a b\\c"[..], false));
        for cut in ["", "27", "27 1 254:0 / /", "x 1 254:0 / / - ext4", "27 1 254 / / - ext4 x"] {
            assert_eq!(mount(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn network_and_fuse_file_systems_are_not_local() {
        let is_local = |kind: &str| Mount { id: 1, device: (0, 1), mount_point: Vec::new(), kind: kind.into() }.is_local();
        for kind in
            ["fuse", "fuse.bindfs", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "autofs", "virtiofs", "lustre", "new"]
        {
            assert!(!is_local(kind), "{kind}");
        }
        assert!(["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay"].into_iter().all(is_local));
    }

    #[test]
    fn memory_files_and_proc_are_local() {
        let memory = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        assert!(is_local_file(&memory, None));
        assert!(is_local_device(device_of(&memory).unwrap(), 0));
        let proc = File::open("/proc/self/maps").unwrap();
        assert!(is_local_file(&proc, None) && id_of(&proc).is_some());
        assert!(!is_local_device((4095, 1_048_575), 0), "no such device is mounted");
    }
}
