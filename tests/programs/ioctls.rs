//! Makes ioctls with known values: on a network interface of its own network namespace, and on descriptors for which
//! the kernel refuses the command after it was called with its data.

use crate::told;
use std::ffi::CString;

/// Commands as in the kernel's headers; the C library has no constants for them.
const SIOCSIFHWADDR: u64 = 0x8924;
const BLKPG: u64 = 0x1269;
const TCSETS2: u64 = 0x402c_542b;
const FS_IOC_FIEMAP: u64 = 0xc020_660b;
const LOOP_SET_STATUS64: u64 = 0x4c04;
const RTC_SET_TIME: u64 = 0x4024_700a;
const DRM_IOCTL_VERSION: u64 = 0xc040_6400;
const SNDCTL_TMR_START: u64 = 0x5402;
const TUNSETIFF: u64 = 0x4004_54ca;
const VIDIOC_REQBUFS: u64 = 0xc014_5608;
const USBDEVFS_CONTROL: u64 = 0xc018_5500;
/// SPI_IOC_MESSAGE(1) and EVIOCSABS(ABS_Y): macros make these commands.
const SPI_MESSAGE: u64 = 0x4020_6b00;
const SET_AXIS: u64 = 0x4018_45c1;
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FIDEDUPERANGE: u64 = 0xc018_9436;

pub fn run() {
    of_an_interface();
    refused();
}

/// A struct ifreq for `lo` with these bytes in its union.
fn ifreq(union: &[u8]) -> [u8; 40] {
    let mut request = [0; 40];
    request[..2].copy_from_slice(b"lo");
    request[16..16 + union.len()].copy_from_slice(union);
    request
}

fn address(last: u8) -> [u8; 8] {
    [libc::AF_INET as u8, 0, 0, 0, 10, 1, 2, last]
}

fn of_an_interface() {
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "this needs CAP_SYS_ADMIN");
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) };
    for (command, union) in [
        (libc::SIOCGIFMTU, &[][..]),
        (libc::SIOCSIFMTU, &1600u32.to_ne_bytes()),
        (libc::SIOCGIFMTU, &[]),
        (libc::SIOCGIFINDEX, &[]),
        (libc::SIOCSIFTXQLEN, &77u32.to_ne_bytes()),
        (libc::SIOCGIFTXQLEN, &[]),
        (libc::SIOCGIFHWADDR, &[]),
        (SIOCSIFHWADDR, &[1, 0, 2, 3, 4, 5, 6, 7]),
        (libc::SIOCSIFADDR, &address(3)),
        (libc::SIOCGIFADDR, &[]),
        (libc::SIOCSIFNETMASK, &[libc::AF_INET as u8, 0, 0, 0, 255, 255, 255, 0]),
        (libc::SIOCGIFNETMASK, &[]),
        (libc::SIOCSIFBRDADDR, &address(255)),
        (libc::SIOCGIFBRDADDR, &[]),
        (libc::SIOCGIFDSTADDR, &[]),
        (libc::SIOCSIFFLAGS, &(libc::IFF_UP as u16).to_ne_bytes()),
        (libc::SIOCGIFFLAGS, &[]),
    ] {
        call(socket, command, &ifreq(union));
    }
    unsafe { libc::close(socket) };
}

/// Makes calls that fail, whose data is still that of their commands.
fn refused() {
    let null = CString::new("/dev/null").expect("no NUL");
    let fd = unsafe { libc::open(null.as_ptr(), libc::O_RDWR) };
    // struct termios2: flags, the line discipline, the special characters, the speeds.
    let mut termios = [0u8; 44];
    termios[8..12].copy_from_slice(&0x1cb2u32.to_ne_bytes());
    termios[17..19].copy_from_slice(&[3, 28]);
    termios[36..].copy_from_slice(&words(&[1200, 250_000]));
    call(fd, TCSETS2, &termios);
    call(fd, FS_IOC_FIEMAP, &words(&[1, 0, 4096, 0, 1, 0, 0, 0]));
    let partition = [3u64, 512].map(u64::to_ne_bytes).concat();
    let partition = [partition, words(&[7]), vec![0; 132]].concat();
    let argument = [words(&[2, 9, 152, 0]), told::address(&partition).to_ne_bytes().to_vec()].concat();
    call(fd, BLKPG, &argument);
    let mut status = [0u8; 232];
    status[24..32].copy_from_slice(&4096u64.to_ne_bytes());
    status[52..56].copy_from_slice(&5u32.to_ne_bytes());
    status[56..61].copy_from_slice(b"/disk");
    call(fd, LOOP_SET_STATUS64, &status);
    call(fd, RTC_SET_TIME, &words(&[1, 2, 3, 4, 5, 126, 6, 7, 0]));
    call(fd, DRM_IOCTL_VERSION, &[0; 64]);
    call(fd, VIDIOC_REQBUFS, &words(&[4, 1, 1, 0, 0]));
    // The struct is smaller than the number of bytes that the command has for a pointer that is not one.
    call(fd, TUNSETIFF, &[b"tap0\0\0\0\0\0\0\0\0\0\0\0\0", &[2, 0x10][..], &[0; 22]].concat());
    call(fd, USBDEVFS_CONTROL, &[&[0x80, 6, 0, 1, 0, 0, 18, 0][..], &words(&[1000, 0]), &0u64.to_ne_bytes()].concat());
    let transfer = [0x7000u64, 0x8000].map(u64::to_ne_bytes).concat();
    call(fd, SPI_MESSAGE, &[transfer, words(&[4, 500_000, 0x0108_000a, 0])].concat());
    call(fd, SET_AXIS, &words(&[5, 0, 255, 1, 2, 3]));
    call(fd, FS_IOC_SETFLAGS, &words(&[0x30]));
    // One range of another file follows the struct.
    let range = [1u64, 2, 1, 77, 4096, 0, 0].map(u64::to_ne_bytes).concat();
    call(fd, FIDEDUPERANGE, &range);
    unsafe { told::syscall!(libc::SYS_ioctl, fd, libc::TCFLSH, libc::TCIOFLUSH) };
    // Several drivers have these numbers: a terminal's, the sound system's, and none of a file's.
    call(fd, SNDCTL_TMR_START, &[0; 36]);
    call(fd, 0x89e1, &[0; 8]);
    call(fd, 0xc0de_4242, &[b"unknown".as_slice(), &[0; 0xde - 7]].concat());
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn call(fd: i32, command: u64, data: &[u8]) {
    let mut data = data.to_vec();
    unsafe { told::syscall!(libc::SYS_ioctl, fd, command, data.as_mut_slice()) };
}
