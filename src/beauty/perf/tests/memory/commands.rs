//! The data of ioctl commands whose number says less than the headers do, or that a macro makes.

use super::*;

fn ioctl(command: u64, ret: i64) -> SampleCall {
    native("ioctl", &[3, command, 0x1000], ret)
}

#[test]
fn commands_that_macros_make_have_their_parameters_and_data() {
    ioctl(0x8010_4506, 5).exit(2, b"Mouse\0\0\0\0\0\0\0\0\0\0\0").prints("fd: 3, cmd: EVIOCGNAME(16), arg: \"Mouse\"");
    ioctl(0x8008_4520, 4).exit(2, &bytes![7u64]).prints("fd: 3, cmd: EVIOCGBIT(SYN, 8), arg: [SYN, KEY, REL]");
    ioctl(0x8008_4521, 8).exit(2, &bytes![0x6u64]).prints("fd: 3, cmd: EVIOCGBIT(KEY, 8), arg: [KEY_ESC, KEY_1]");
    ioctl(0x8004_4509, 4).exit(2, &bytes![1u32]).prints("fd: 3, cmd: EVIOCGPROP(4), arg: [POINTER]");
    ioctl(0x8018_4541, 0)
        .exit(2, &bytes![5u32, 0u32, 255u32, 1u32, 2u32, 3u32])
        .prints("fd: 3, cmd: EVIOCGABS(Y), arg: {.value: 5, .minimum: 0, .maximum: 255, .fuzz: 1, .flat: 2, .resolution: 3}");
    let transfer = bytes![0x7000u64, 0x8000u64, 4u32, 500_000u32, 10u16, 8u8, 1u8, 0u32];
    ioctl(0x4020_6b00, 4).entry(2, &transfer).prints(
        "fd: 3, cmd: SPI_IOC_MESSAGE(1), arg: {.messages: [{.tx_buf: 0x7000, .rx_buf: 0x8000, .len: 4, .speed_hz: 500000, \
         .delay_usecs: 10, .bits_per_word: 8, .cs_change: 1, .tx_nbits: 0, .rx_nbits: 0, .word_delay_usecs: 0}]}",
    );
}

#[test]
fn a_value_instead_of_an_address_is_a_constant() {
    native("ioctl", &[3, 0x540b, 2], 0).prints("fd: 3, cmd: TCFLSH, arg: TCIOFLUSH");
    native("ioctl", &[3, 0x4b3a, 1], 0).prints("fd: 3, cmd: KDSETMODE, arg: GRAPHICS");
    native("ioctl", &[3, 0x4004_9421, 2], 0).prints("fd: 3, cmd: BTRFS_IOC_BALANCE_CTL, arg: CANCEL");
}

#[test]
fn the_data_of_commands_that_state_no_direction_is_decoded() {
    ioctl(0x5418, 0).entry(2, &bytes![6u32]).prints("fd: 3, cmd: TIOCMSET, arg: [DTR|RTS]");
    ioctl(0x4008_6602, 0).entry(2, &bytes![0x30u32]).prints("fd: 3, cmd: FS_IOC_SETFLAGS, arg: [IMMUTABLE_FL|APPEND_FL]");
    let termio = bytes![0x500u16, 5u16, 0xbfu16, 0x8a3bu16, 0u8, 3u8, 28u8, 127u8, 21u8, 4u8, 0u8, 1u8, 0u8, 0u8];
    ioctl(0x5406, 0).entry(2, &termio).prints(
        "fd: 3, cmd: TCSETA, arg: {.c_iflag: ICRNL|IXON, .c_oflag: NL0|CR0|TAB0|BS0|VT0|FF0|OPOST|ONLCR, .c_cflag: B38400|CS8|CREAD, \
         .c_lflag: ISIG|ICANON|ECHO|ECHOE|ECHOK|ECHOCTL|ECHOKE|IEXTEN, .c_line: TTY, .c_cc: {.VINTR: 3, .VQUIT: 28, .VERASE: 127, \
         .VKILL: 21, .VEOF: 4, .VTIME: 0, .VMIN: 1, .VSWTC: 0}}",
    );
}

#[test]
fn an_array_at_the_end_has_the_elements_that_the_kernel_wrote() {
    let head = |mapped: u32| bytes![0u64, 4096u64, 0u32, mapped, 2u32, 0u32];
    let extent = |at: u64| [bytes![at, 0x8000u64, 4096u64, 0u64, 0u64, 1u32], vec![0; 12]].concat();
    let written = [head(1), extent(0), extent(9)].concat();
    ioctl(0xc020_660b, 0).exit(2, &written).prints(
        "fd: 3, cmd: FS_IOC_FIEMAP, arg: {.fm_start: 0, .fm_length: 4096, .fm_flags: 0, .fm_mapped_extents: 1, .fm_extent_count: 2, \
         .fm_extents: [{.fe_logical: 0, .fe_physical: 32768, .fe_length: 4096, .fe_flags: LAST}]}",
    );
    let refused = bytes![0u64, 4096u64, 0u32, 0u32, 2u32, 0u32];
    ioctl(0xc020_660b, -95).entry(2, &refused).prints(
        "fd: 3, cmd: FS_IOC_FIEMAP, arg: {.fm_start: 0, .fm_length: 4096, .fm_flags: 0, .fm_mapped_extents: 0, .fm_extent_count: 2}",
    );
}

#[test]
fn the_command_of_ethtool_says_what_its_data_is() {
    let request = [&b"eth0\0\0\0\0\0\0\0\0\0\0\0\0"[..], &bytes![0x2000u64, 0u64, 0u64]].concat();
    let data = |command: u32, value: u32| [bytes![command, value], vec![0; 192]].concat();
    let flags = |before: u32, after: u32| {
        let entry = ioctl(0x8946, 0).entry(2, &request).at(2, PieceTime::Entry, 0x2000, &data(0x25, before));
        entry.exit(2, &request).at(2, PieceTime::Exit, 0x2000, &data(0x25, after))
    };
    flags(9, 0x8080).prints("fd: 3, cmd: SIOCETHTOOL, arg: {.ifr_name: \"eth0\", .ifr_data: {.cmd: GFLAGS, .data: TXVLAN|LRO}}");
    ioctl(0x8946, -95).entry(2, &request).at(2, PieceTime::Entry, 0x2000, &data(0x13, 1)).prints(
        "fd: 3, cmd: SIOCETHTOOL, arg: {.ifr_name: \"eth0\", .ifr_data: {.cmd: SPAUSEPARAM, .autoneg: ENABLE, .rx_pause: 0, \
         .tx_pause: 0}}",
    );
}

#[test]
fn the_controls_of_a_camera_follow_their_list() {
    let list = bytes![0x98_0000u32, 1u32, 0u32, 0u32, 0u32, 0u32, 0x2000u64];
    let control = |value: u32| bytes![0x98_0900u32, 0u32, 0u32, value, 0u32];
    let entry = ioctl(0xc020_5648, 0).entry(2, &list).at(2, PieceTime::Entry, 0x2000, &control(300));
    entry.exit(2, &list).at(2, PieceTime::Exit, 0x2000, &control(255)).prints(
        "fd: 3, cmd: VIDIOC_S_EXT_CTRLS, arg: {.ctrl_class: CLASS_USER, .count: 1, .error_idx: 0, .request_fd: 0, \
         .controls: [{.id: BRIGHTNESS, .size: 0, .value: 300 => 255}]}",
    );
}

#[test]
fn the_command_of_a_dvb_property_says_what_its_value_is() {
    let list = bytes![2u32, 0u32, 0x2000u64];
    let property = |command: u32, value: u32| [bytes![command, 0u32, 0u32, 0u32, value], vec![0; 56]].concat();
    let properties = [property(17, 5), property(3, 11_953_000)].concat();
    ioctl(0x4010_6f52, 0).entry(2, &list).at(2, PieceTime::Entry, 0x2000, &properties).prints(
        "fd: 3, cmd: FE_SET_PROPERTY, arg: {.num: 2, .props: [{.cmd: DELIVERY_SYSTEM, .data: DVBS, .result: 0}, \
         {.cmd: FREQUENCY, .data: 11953000, .result: 0}]}",
    );
}
