//! The capabilities that rtrace gives up after arming, and those that the command keeps. (`lent.rs` has the tests of
//! privileges that the caller does not have.)

use crate::machine::{Machine, engine};
use crate::trace::shell_with_engine;

const SYS_ADMIN: u64 = 1 << 21;
const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;
/// Capabilities that tracing never needs: CAP_SETUID, CAP_NET_ADMIN, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT.
const POWERFUL: u64 = 1 << 7 | 1 << 12 | 1 << 16 | 1 << 17 | 1 << 22;

/// Returns the value of a line of a status file.
fn value<'t>(status: &'t str, name: &str) -> &'t str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    line.unwrap_or_else(|| panic!("no {name} in\n{status}"))
}

fn bits(status: &str, name: &str) -> u64 {
    u64::from_str_radix(value(status, name), 16).unwrap_or_else(|e| panic!("{name}: {e} in\n{status}"))
}

/// The command starts after arming, so the capabilities that it reads of its parent are the remaining ones.
#[test]
fn root_gives_up_capabilities_that_tracing_does_not_need() {
    let Some(machine) = Machine::shared() else { return };
    for options in ["", "-s", "-e sched:sched_process_exec,openat"] {
        // The worker thread gives up its capabilities first, but it may not have run yet when the command reads them.
        let wait = r#"for try in $(seq 100); do
            worker=$(grep -lx rtrace-worker /proc/$PPID/task/*/comm) &&
                [ "$(grep CapPrm ${worker%comm}status)" != "$(grep CapPrm /proc/self/status)" ] && break
            sleep .05
        done"#;
        let script = format!(r#""$rtrace" $engine {options} -o "$dir/lines" -- sh -c '{wait}; cat /proc/$PPID/task/*/status'"#);
        let said = shell_with_engine(&machine, &script).stdout;
        let of = |name: &str| {
            let status = said.split("Name:\t").find(|status| status.starts_with(&format!("{name}\n")));
            status.unwrap_or_else(|| panic!("no thread {name} in\n{said}"))
        };
        let (main, worker) = (of("rtrace"), of("rtrace-worker"));
        for thread in [main, worker] {
            for set in ["CapEff", "CapPrm", "CapBnd"] {
                assert_eq!(bits(thread, set) & POWERFUL, 0, "{options}: {set} in\n{thread}");
            }
            assert_eq!((value(thread, "Seccomp"), value(thread, "NoNewPrivs")), ("2", "1"), "{options}:\n{thread}");
        }
        assert_eq!(bits(worker, "CapPrm") & (SYS_ADMIN | PERFMON_AND_BPF), 0, "{options}:\n{worker}");
        let asks_for_programs = engine() != "bpf" || options.contains("sched");
        assert_eq!(bits(main, "CapPrm") & SYS_ADMIN != 0, asks_for_programs, "{options}:\n{main}");
    }
}

#[test]
fn the_command_and_the_output_command_have_the_callers_capabilities() {
    let Some(machine) = Machine::shared() else { return };
    let asks = "grep -E '^(Cap|Seccomp|NoNewPrivs)' /proc/self/status";
    let script = format!(
        r#"{asks} >"$dir/without"
        "$rtrace" $engine -o "$dir/lines" -- {asks} >"$dir/command"
        asks="{asks}"; export asks dir; "$rtrace" $engine -o '|sh -c "$asks" >"$dir/reader"; cat >/dev/null' true
        cmp "$dir/without" "$dir/command" && cmp "$dir/without" "$dir/reader" && cat "$dir/without""#
    );
    let said = shell_with_engine(&machine, &script).stdout;
    assert!(said.contains("NoNewPrivs:\t0\n"), "{said}");
}
