//! Tests of the message that is printed when tracepoints trace in place of BPF programs, for several command lines.

use super::traced_by;
use crate::arm::fallback::sentence;
use crate::kernel::privileges::Privileges;
use crate::plan::PathNameSource;

fn said(words: &str, names: Option<&PathNameSource>, capabilities: u64) -> Option<String> {
    let may = Privileges { capabilities, uid: 1000, ..Privileges::default() };
    sentence(&traced_by(words), names, &anyhow::anyhow!("no type information"), &may)
}

#[test]
fn the_reason_is_given_with_a_remedy() {
    assert_eq!(
        said("-C 0,2", Some(&PathNameSource::None), u64::MAX).unwrap(),
        "strings, buffers and structs are printed as addresses, because -C excludes the BPF engine; \
         to trace with BPF, replace -C by -a --filter 'cpu == 0 || cpu == 2'"
    );
    assert_eq!(
        said("ls", Some(&PathNameSource::VfsGetname), 0).unwrap(),
        "buffers and structs are printed as addresses (path names are not), because BPF programs may not be loaded; \
         run rtrace as root, or with the capabilities CAP_BPF and CAP_PERFMON"
    );
    assert_eq!(said("-s ls", None, 0), None, "a summary has no arguments");
}
