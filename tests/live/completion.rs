//! Completion by the tab key, in a real bash.

use crate::machine::{self, Machine};
use crate::trace::{plain, shell};

/// Returns the completions that bash offers for the last word of a line.
pub fn offered(machine: &Machine, line: &str) -> Vec<String> {
    let script = format!(
        r#"cat > $dir/complete.bash <<'END'
COMP_LINE=$1 COMP_POINT=${{#1}}
# bash breaks words at blanks and at these.
words=$(sed 's/[:=]/ & /g' <<< "$1"); read -ra COMP_WORDS <<< "$words"; [[ $1 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
compopt() {{ :; }}
rtrace() {{ "$rtrace" "$@"; }}
source <("$rtrace" completions bash)
_rtrace
printf '%s\n' "${{COMPREPLY[@]}}"
END
bash $dir/complete.bash '{line}'"#
    );
    shell(machine, &script).succeeded().stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_events_and_targets() {
    let Some(machine) = Machine::shared() else { return };
    assert_eq!(offered(&machine, "rtrace -e openat"), ["openat", "openat2"]);
    assert_eq!(offered(&machine, "rtrace -e close,openat2"), ["close,openat2"]);
    assert_eq!(offered(&machine, "rtrace -e %fil"), ["%file"]);
    assert_eq!(offered(&machine, "rtrace --event=openat2"), ["openat2"], "bash has the word behind the = only");
    assert_eq!(offered(&machine, "rtrace -e sched:sched_process_ex"), ["sched_process_exec", "sched_process_exit"]);
    assert_eq!(offered(&machine, "rtrace -u roo"), ["root"]);
    assert!(offered(&machine, "rtrace -p ").contains(&"1".to_owned()));
    assert_eq!(offered(&machine, "rtrace --summary-m"), ["--summary-mode"]);
    assert_eq!(offered(&machine, "rtrace probe de"), ["del"]);
}

#[test]
fn usdt_tracepoints_of_a_program_are_listed() {
    let Some(machine) = Machine::shared() else { return };
    let none = plain(&machine, &["list", &format!("usdt:{}", machine::workload())]);
    assert!(none.status == 125 && none.stderr.contains("has no USDT tracepoints"), "{}", none.stderr);
    let script = "cc -g -o $dir/app tests/programs/probes/usdt.c && $rtrace list usdt:$dir/app";
    let run = shell(&machine, script);
    if run.status == 0 {
        assert!(run.stdout.lines().any(|line| line.starts_with("app:begin ")), "{}", run.stdout);
    }
}
