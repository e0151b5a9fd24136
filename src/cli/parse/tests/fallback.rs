//! What is said where BPF was expected and tracepoints trace, by the words that ask for a trace.

use super::traced_by;
use crate::arm::fallback::sentence;
use crate::kernel::privileges::Privileges;
use crate::plan::Way;

fn said(words: &str, names: Option<&Way>, capabilities: u64) -> Option<String> {
    let may = Privileges { capabilities, uid: 1000, ..Privileges::default() };
    sentence(&traced_by(words), names, &anyhow::anyhow!("no type information"), &may)
}

#[test]
fn the_reason_comes_with_what_helps() {
    assert_eq!(
        said("-C 0,2", Some(&Way::None), u64::MAX).unwrap(),
        "strings, buffers and structs are printed as addresses, because -C traces without BPF; \
         in place of it, -a --filter 'cpu == 0 || cpu == 2' traces with BPF"
    );
    assert_eq!(
        said("ls", Some(&Way::VfsGetname), 0).unwrap(),
        "buffers and structs are printed as addresses (path names are not), because BPF programs may not be loaded; \
         run rtrace as root, or with the capabilities CAP_BPF and CAP_PERFMON"
    );
    assert_eq!(said("-s ls", None, 0), None, "a summary has no arguments");
}
