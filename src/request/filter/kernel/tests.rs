use super::*;
use crate::request::filter::parse;

/// The fields of a fictitious tracepoint: fd is signed, flags is not, comm is a string, and ret does not exist.
struct Fields;

impl KernelScope for Fields {
    fn field(&self, name: &Name) -> Option<KernelField> {
        let number = |bits, signed| Some(KernelField::Number { name: name.0.clone(), bits, signed });
        match name.0.as_str() {
            "fd" => number(32, true),
            "flags" => number(32, false),
            "addr" => number(64, false),
            "offset" => number(64, true),
            "comm" => Some(KernelField::Text { name: "prev_comm".to_owned() }),
            _ => None,
        }
    }

    fn constant(&self, _: &Name, symbol: &str) -> Option<Constant> {
        let known = [("NONE", 0), ("CREAT", 0o100), ("SYNC", 0x1000_0001)];
        known.iter().find(|(known, _)| *known == symbol).map(|(_, value)| Constant::of_bits(*value))
    }
}

fn kernel_filter(text: &str) -> Option<String> {
    to_kernel(&parse(text).unwrap(), &Fields)
}

#[test]
fn conditions_are_converted_to_kernel_filters() {
    for (text, filter) in [
        ("fd == -1", "fd == -1"),
        ("addr >= 0xffffffffffffffff", "addr >= 18446744073709551615"),
        ("offset < 4K", "offset < 4096"),
        ("flags & CREAT", "flags & 64"),
        ("flags & 3", "flags & 3"),
        ("flags & SYNC", "(flags & 1) && (flags & 268435456)"),
        ("flags & CREAT|3", "(flags & 64) || (flags & 3)"),
        ("flags == CREAT|1", "flags == 65"),
        ("comm == bash", "prev_comm == \"bash\""),
        ("comm ~ \"b*\"", "prev_comm ~ \"b*\""),
        ("comm !~ \"b*\"", "!(prev_comm ~ \"b*\")"),
        ("comm == \"a\\\"b\"", "prev_comm == 'a\"b'"),
        ("fd == 1 || fd == 2 && !(flags & 1)", "(fd == 1) || ((fd == 2) && (!(flags & 1)))"),
    ] {
        assert_eq!(kernel_filter(text).as_deref(), Some(filter), "{text}");
    }
}

#[test]
fn conditions_with_another_meaning_in_the_kernel_are_not_converted() {
    let long = format!("comm == \"{}\"", "x".repeat(256));
    for text in [
        "ret == 0",
        "fd == 1 && ret == 0",
        "fd == 4294967295",
        "flags == -1",
        "flags == 0x100000001",
        "offset == 0xffffffffffffffff",
        "flags & NONE",
        "flags & WHAT",
        "comm ~ \"!b*\"",
        "comm ~ \"\"",
        "comm == \"'\\\"\"",
        "comm == \"\\xff\"",
        "comm == \"a\\n\"",
        "comm == 3",
        "fd ~ \"3\"",
        &long,
    ] {
        assert_eq!(kernel_filter(text), None, "{text}");
    }
}

#[test]
fn filters_are_not_longer_than_a_page() {
    let long: Vec<String> = (0..1000).map(|fd| format!("fd != {fd}")).collect();
    assert_eq!(kernel_filter(&long.join(" && ")), None);
    let fits = kernel_filter(&long[..100].join(" && ")).unwrap();
    assert!(fits.len() <= FILTER_BYTES_MAX);
}

/// The fields of sched:sched_switch that all kernels have.
struct SchedSwitch;

impl KernelScope for SchedSwitch {
    fn field(&self, name: &Name) -> Option<KernelField> {
        let number = |bits, signed| Some(KernelField::Number { name: name.0.clone(), bits, signed });
        match name.0.as_str() {
            "prev_pid" | "next_prio" => number(32, true),
            "prev_state" => number(64, true),
            "common_type" => number(16, false),
            "prev_comm" => Some(KernelField::Text { name: name.0.clone() }),
            _ => None,
        }
    }

    fn constant(&self, _: &Name, symbol: &str) -> Option<Constant> {
        (symbol == "BOTH").then_some(Constant::of_bits(0x81))
    }
}

/// A tracefs instance, in which filters can be tested without a change to other users' events.
struct Instance(std::path::PathBuf);

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn the_running_kernel_accepts_the_filters() {
    let path = std::path::PathBuf::from(format!("/sys/kernel/tracing/instances/rtrace-filter-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir(&path) {
        let required = std::env::var_os("RTRACE_REQUIRE_LIVE").is_some_and(|value| !value.is_empty() && value != "0");
        assert!(!required, "{}: {error}", path.display());
        eprintln!("SKIPPED: this test needs root and tracefs ({}: {error})", path.display());
        return;
    }
    let instance = Instance(path);
    for text in [
        "prev_pid == -1",
        "prev_pid >= -2147483648 && prev_pid <= 2147483647",
        "prev_state != -9223372036854775808 && prev_state < 9223372036854775807",
        "common_type == 65535 || common_type & 0x8000",
        "next_prio & BOTH",
        "next_prio & BOTH|2 && !(prev_pid == 0 || !(prev_pid == 1))",
        "prev_comm == bash || prev_comm != \"\" && prev_comm ~ \"[!a]*?\\\\*\"",
        "prev_comm !~ 'it is \"*\"' && prev_comm == \"it's\"",
    ] {
        let filter = to_kernel(&parse(text).unwrap(), &SchedSwitch).unwrap();
        let result = std::fs::write(instance.0.join("events/sched/sched_switch/filter"), &filter);
        assert!(result.is_ok(), "{filter}: {result:?}");
    }
}
