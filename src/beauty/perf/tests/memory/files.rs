//! Structs of files and directories.

use super::*;

const STAT: &str = "{.st_dev: 8:1, .st_ino: 7, .st_nlink: 1, .st_mode: IFREG|0644, .st_uid: 1000, .st_gid: 100, .st_rdev: 0:0, .st_size: 4096, \
                    .st_blksize: 512, .st_blocks: 8, .st_atime: 1, .st_atime_nsec: 2, .st_mtime: 3, .st_mtime_nsec: 4, .st_ctime: 5, .st_ctime_nsec: 6}";

#[test]
fn stat_structs_are_printed_in_each_layout() {
    let stat = bytes![
        0x801u64,
        7u64,
        1u64,
        0o100_644u32,
        1000u32,
        100u32,
        0u32,
        0u64,
        4096u64,
        512u64,
        8u64,
        1u64,
        2u64,
        3u64,
        4u64,
        5u64,
        6u64,
        0u64,
        0u64,
        0u64
    ];
    native("fstat", &[3, 0x1000], 0).exit(1, &stat).prints(&format!("fd: 3, statbuf: {STAT}"));
    let compat_stat = bytes![
        0x801u32,
        7u32,
        0o100_644u16,
        1u16,
        1000u16,
        100u16,
        0u32,
        4096u32,
        512u32,
        8u32,
        1u32,
        2u32,
        3u32,
        4u32,
        5u32,
        6u32,
        0u32,
        0u32
    ];
    let reordered = STAT.replace(".st_nlink: 1, .st_mode: IFREG|0644", ".st_mode: IFREG|0644, .st_nlink: 1");
    compat("fstat", &[3, 0x1000], 0).exit(1, &compat_stat).prints(&format!("fd: 3, statbuf: {reordered}"));
    let stat64 = bytes![
        0x801u64,
        0u32,
        7u32,
        0o040_755u32,
        2u32,
        0u32,
        0u32,
        0u64,
        0u32,
        1u64 << 33,
        512u32,
        8u64,
        1u32,
        2u32,
        3u32,
        4u32,
        5u32,
        6u32,
        7u64
    ];
    compat("fstat64", &[3, 0x1000], 0).exit(1, &stat64).prints(
        "fd: 3, statbuf: {.st_dev: 8:1, .st_mode: IFDIR|0755, .st_nlink: 2, .st_uid: 0, .st_gid: 0, .st_rdev: 0:0, .st_size: 8589934592, \
         .st_blksize: 512, .st_blocks: 8, .st_atime: 1, .st_atime_nsec: 2, .st_mtime: 3, .st_mtime_nsec: 4, .st_ctime: 5, .st_ctime_nsec: 6, .st_ino: 7}",
    );
}

#[test]
fn open_how_locks_and_statfs_are_printed() {
    native("openat2", &[CWD, 0, 0x1000, 24], 3)
        .entry(2, &bytes![0o2000001u64 | 1 << 40, 0o644u64, 0x8u64])
        .prints("dfd: CWD, filename: NULL, how: {.flags: WRONLY|CLOEXEC|0x10000000000, .mode: 0644, .resolve: BENEATH}, usize: 24");
    native("fcntl", &[3, 6, 0x1000], 0)
        .entry(2, &bytes![1u16, 0u16, 0u32, 10u64, 20u64, 7u32, 0u32])
        .prints("fd: 3, cmd: SETLK, arg: {.l_type: WRLCK, .l_whence: SET, .l_start: 10, .l_len: 20, .l_pid: 7 (x)}");
    compat("fcntl64", &[3, 13, 0x1000], 0)
        .entry(2, &bytes![0u16, 2u16, -10i64, 20u64, 0u32])
        .prints("fd: 3, cmd: SETLK64, arg: {.l_type: RDLCK, .l_whence: END, .l_start: -10, .l_len: 20, .l_pid: 0}");
    native("ioctl", &[3, 0xc018_5879, 0x1000], 0)
        .entry(2, &bytes![0u64, 1u64 << 40, 4096u64])
        .exit(2, &bytes![0u64, 8192u64, 4096u64])
        .prints("fd: 3, cmd: FITRIM, arg: {.start: 0, .len: 1099511627776 => 8192, .minlen: 4096}");
    native("statfs", &[0, 0x1000], 0)
        .exit(1, &bytes![0xef53u64, 4096u64, 10u64, 9u64, 8u64, 7u64, 6u64, 1u32, -2i32, 255u64, 4096u64, 0x1020u64, 0u64, 0u64, 0u64, 0u64])
        .prints(
            "pathname: NULL, buf: {.f_type: EXT4_SUPER_MAGIC, .f_bsize: 4096, .f_blocks: 10, .f_bfree: 9, .f_bavail: 8, .f_files: 7, .f_ffree: 6, .f_fsid: [1, -2], \
             .f_namelen: 255, .f_frsize: 4096, .f_flags: VALID|RELATIME}",
        );
}

#[test]
fn statx_statfs64_and_file_handles_are_printed() {
    let stamp = |seconds: i64| bytes![seconds, 5u32, 0u32];
    let statx = [
        bytes![0x7ffu32, 4096u32, 0x10u64, 1u32, 1000u32, 100u32, 0o100_755u16, 0u16, 7u64, 10u64, 8u64, 0x30u64],
        stamp(1),
        stamp(2),
        stamp(-3),
        stamp(4),
        bytes![0u32, 0u32, 8u32, 1u32, 9u64, 0u32, 0u32, 0u64, 0u32, 0u32, 0u32, 0u32, 0u32, 0u32],
        vec![0; 64],
    ]
    .concat();
    let expected = "{.stx_mask: BASIC_STATS, .stx_blksize: 4096, .stx_attributes: IMMUTABLE, \
                .stx_nlink: 1, .stx_uid: 1000, .stx_gid: 100, .stx_mode: IFREG|0755, .stx_ino: 7, .stx_size: 10, .stx_blocks: 8, \
                .stx_attributes_mask: IMMUTABLE|APPEND, .stx_atime: {.tv_sec: 1, .tv_nsec: 5}, .stx_btime: {.tv_sec: 2, .tv_nsec: 5}, \
                .stx_ctime: {.tv_sec: -3, .tv_nsec: 5}, .stx_mtime: {.tv_sec: 4, .tv_nsec: 5}, .stx_rdev_major: 0, .stx_rdev_minor: 0, \
                .stx_dev_major: 8, .stx_dev_minor: 1, .stx_mnt_id: 9, .stx_dio_mem_align: 0, .stx_dio_offset_align: 0, .stx_subvol: 0, \
                .stx_atomic_write_unit_min: 0, .stx_atomic_write_unit_max: 0, .stx_atomic_write_segments_max: 0, .stx_dio_read_offset_align: 0, \
                .stx_atomic_write_unit_max_opt: 0}";
    for abi in [Abi::X86_64, Abi::I386] {
        sample_call(abi, "statx", &[3, 0, 0, 1, 0x1000], 0)
            .exit(4, &statx)
            .prints(&format!("dfd: 3, filename: NULL, mask: TYPE, buffer: {expected}"));
    }
    compat("statfs64", &[0, 84, 0x1000], 0)
        .exit(
            2,
            &bytes![0x0102_1994u32, 4096u32, 10u64, 9u64, 8u64, 7u64, 6u64, 0u32, 0u32, 255u32, 4096u32, 0x21u32, 0u32, 0u32, 0u32, 0u32],
        )
        .prints(
            "pathname: NULL, sz: 84, buf: {.f_type: TMPFS_MAGIC, .f_bsize: 4096, .f_blocks: 10, .f_bfree: 9, .f_bavail: 8, .f_files: 7, .f_ffree: 6, \
             .f_fsid: [0, 0], .f_namelen: 255, .f_frsize: 4096, .f_flags: RDONLY|VALID}",
        );
    native("name_to_handle_at", &[3, 0, 0x1000, 0x2000, 0], 0)
        .entry(2, &bytes![8u32, 0u32])
        .exit(2, &bytes![8u32, 1u32, 0x1122_3344_5566_7788u64])
        .exit(3, &bytes![30u32])
        .prints("dfd: 3, name: NULL, handle: {.handle_bytes: 8, .handle_type: 0 => 1, .f_handle: \"\" => \"\\x88wfUD3\\\"\\x11\"}, mnt_id: [30]");
}

#[test]
fn directory_entries_are_printed_up_to_the_copied_length() {
    let entry = |ino: u64, kind: u8, name: &str| {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut bytes = [&bytes![ino, 9u64, length as u16, kind][..], name.as_bytes()].concat();
        bytes.resize(length, 0);
        bytes
    };
    let both = [entry(1, 4, "."), entry(2, 8, "a\nb")].concat();
    let read = |bytes: &[u8]| native("getdents64", &[3, 0x1000, 32768], bytes.len() as i64).exit(1, bytes);
    let first = "{.d_ino: 1, .d_off: 9, .d_reclen: 24, .d_type: DIR, .d_name: \".\"}";
    let second = "{.d_ino: 2, .d_off: 9, .d_reclen: 24, .d_type: REG, .d_name: \"a\\nb\"}";
    read(&both).prints(&format!("fd: 3, dirent: [{first}, {second}], count: 32768"));
    read(&both[..40]).with_length(48).prints(&format!("fd: 3, dirent: [{first}, ...], count: 32768"));
    let no_entry = "\\x00".repeat(24);
    read(&[0; 24]).prints(&format!("fd: 3, dirent: \"{no_entry}\", count: 32768"));
    read(&[&entry(1, 4, ".")[..], &[0; 24]].concat()).prints(&format!("fd: 3, dirent: [{first}, \"{no_entry}\"], count: 32768"));
    let old = [&bytes![1u32, 9u32, 16u16][..], b"x\0\0\0\0\x08"].concat();
    compat("getdents", &[3, 0x1000, 32768], 16)
        .exit(1, &old)
        .prints("fd: 3, dirent: [{.d_ino: 1, .d_off: 9, .d_reclen: 16, .d_name: \"x\", .d_type: REG}], count: 32768");
}
