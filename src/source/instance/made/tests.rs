//! What needs no tracefs; `tests/instance.rs` has the rest.

use super::*;

#[test]
fn masks_are_as_the_kernel_reads_them() {
    assert_eq!(mask(&[0, 1]), "00000003");
    assert_eq!(mask(&[31]), "80000000");
    assert_eq!(mask(&[0, 33, 64]), "00000001,00000002,00000001");
    assert_eq!(mask(&[]), "00000000");
}

#[test]
fn pages_are_as_long_as_their_header_says() {
    let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    assert_eq!(layout(text), Some(4096));
    assert_eq!(layout(&text.replace("4080", "65520")), Some(65_536));
    // As kernels of 32 bits have it.
    assert_eq!(layout(&text.replace("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:4").replace("offset:16", "offset:12")), None);
    assert_eq!(layout(""), None);
}
