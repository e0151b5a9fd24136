//! Tests that need no tracefs. `tests/instance.rs` has the others.

use super::*;

#[test]
fn cpu_masks_have_the_kernel_s_format() {
    assert_eq!(mask(&[0, 1]), "00000003");
    assert_eq!(mask(&[31]), "80000000");
    assert_eq!(mask(&[0, 33, 64]), "00000001,00000002,00000001");
    assert_eq!(mask(&[]), "00000000");
}

#[test]
fn the_page_size_is_read_from_header_page() {
    let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    assert_eq!(layout(text), Some(4096));
    assert_eq!(layout(&text.replace("4080", "65520")), Some(65_536));
    // The layout of 32-bit kernels.
    assert_eq!(layout(&text.replace("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:4").replace("offset:16", "offset:12")), None);
    assert_eq!(layout(""), None);
}
