//! Tests that `rtrace probe add -f` accepts the lines of `dynamic_events` as the kernel prints them, and that the
//! kernel then prints the same lines.

use crate::machine::{self, Machine};
use crate::needs::{Need, reads, unsupported};
use crate::probe_command::{Events, write_probe};

/// Lines of one kind of probe, with every kind of argument that it supports. GROUP and NAME stand for the test's
/// prefix, PROGRAM for a place in a program.
struct Kind {
    needs: &'static [Need],
    lines: &'static [&'static str],
}

#[cfg(target_arch = "x86_64")]
const KINDS: [Kind; 8] = [
    Kind {
        needs: &[Need::Kprobes],
        lines: &[
            "p:GROUP/place vfs_read",
            "p:GROUP/inside vfs_read+0",
            "p:GROUP/registers vfs_read first=%di second=%si:x32 third=%dx:s8 where=%ip:symbol ax=%ax:b4@8/32",
            "p:GROUP/memory vfs_read a=+8(%di):u16 b=-8(+16(%dx)):x8 c=+0(%di):x8[4] d=+u0(%si):u32 e=+0(%si):string f=+0(%si):ustring g=+0(%si):string[2]",
            "p:GROUP/others vfs_read stack=$stack word=$stack3:u32 address=@jiffies_64 beside=@jiffies_64+4:u32 comm=$comm number=\\-7:s32 text=\\\"text\" arg=$arg1",
            "r:GROUP/back vfs_read value=$retval less=$retval:s32 comm=$comm",
            "r16:GROUP/few vfs_read value=$retval:x64",
            "p:GROUP/module binfmt_misc:load_misc_binary",
        ],
    },
    Kind {
        needs: &[Need::Kprobes, Need::NamedArguments],
        lines: &[
            "p:GROUP/named vfs_read count pos",
            "p:GROUP/all vfs_read $arg*",
            "p:GROUP/members vfs_read flags=file->f_flags inode=file->f_inode->i_ino:x64",
            "r:GROUP/typed vfs_read $retval",
        ],
    },
    Kind {
        needs: &[Need::Fprobes],
        lines: &[
            "f:GROUP/function vfs_read",
            "f:GROUP/function_back vfs_read%return $retval",
            "f:GROUP/function_args vfs_read count pos first=$arg1 comm=$comm",
            "f:GROUP/function_all vfs_read $arg*",
            "f:GROUP/function_member getname_flags%return name=$retval->name:string",
        ],
    },
    Kind {
        needs: &[Need::Fprobes],
        // Linux 6.12 allows only one probe at a time on a tracepoint.
        lines: &[
            "t:GROUP/tracepoint sched_process_exit",
            "t:GROUP/tracepoint_args sched_switch preempt prev_pid=prev->pid next_pid=next->pid comm=prev->comm:string",
            "t:GROUP/tracepoint_all sched_process_fork $arg*",
        ],
    },
    Kind {
        needs: &[Need::Eprobes],
        lines: &[
            "e:GROUP/event sched.sched_switch prev=$prev_pid:u32 next=$next_pid:u32 name=$prev_comm:string me=$comm",
            "e:GROUP/event_memory syscalls.sys_enter_openat file=+0($filename):ustring flags=$flags:x32",
            "e:GROUP/event_if raw_syscalls.sys_enter nr=$id arg=+8($args):x64 if id == 257 && common_pid != 1",
        ],
    },
    Kind { needs: &[Need::SyntheticEvents], lines: &["s:NAMEwakeup u64 lat; pid_t pid; char comm[16]; char text[]"] },
    Kind {
        needs: &[Need::Uprobes],
        lines: &[
            "p:GROUP/program PROGRAM",
            "p:GROUP/program_args PROGRAM a=%di b=+0(%si):ustring c=@+0x10:x8 d=$stack1 e=\\1 f=$comm g=+8(-16(%sp)):s16[3]",
            "r:GROUP/program_back PROGRAM value=$retval text=+0($retval):string",
        ],
    },
    Kind { needs: &[Need::UserEvents], lines: &["u:NAMEuser u32 count; char[20] msg"] },
];

/// Returns the place of a program's function as the kernel prints it: `PATH:0x...`.
#[cfg(target_arch = "x86_64")]
fn place_in_a_program(machine: &Machine) -> String {
    let events = Events::new(machine);
    events.stdout_of(&["add", &format!("p:{}/main {}:main", events.prefix, machine::workload())]);
    let lines = reads("dynamic_events");
    let line = lines.lines().find(|line| line.contains(&events.prefix)).expect("the probe is listed");
    line.split(' ').nth(1).expect("a place").to_owned()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn lines_printed_by_the_kernel_are_accepted_unchanged() {
    let Some(machine) = Machine::shared() else { return };
    let program = place_in_a_program(&machine);
    for kind in &KINDS {
        if let Some(missing) = kind.needs.iter().find(|need| !need.is_met()) {
            unsupported(&format!("no {missing}"));
            continue;
        }
        let events = Events::new(&machine);
        let printed = |events: &Events| {
            let lines: Vec<String> =
                reads("dynamic_events").lines().filter(|line| line.contains(&events.prefix)).map(str::to_owned).collect();
            lines.join("\n") + "\n"
        };
        for line in kind.lines {
            write_probe(&line.replace("GROUP", &events.prefix).replace("NAME", &events.prefix).replace("PROGRAM", &program));
        }
        let before = printed(&events);
        assert_eq!(before.lines().count(), kind.lines.len(), "{before}");
        // `probe list` shows the same lines.
        let listed = events.stdout_of(&["list"]);
        for line in before.lines() {
            assert!(listed.contains(&line.replace('\t', " ")), "no {line} in\n{listed}");
        }
        let file = events.file(&before);
        let places = [format!("{}*:*", events.prefix), format!("*:{}*", events.prefix)];
        let there: Vec<&str> = places.iter().map(String::as_str).filter(|place| events.probe(&["list", place]).status == 0).collect();
        events.stdout_of(&[&["del", "--force"], &there[..]].concat());
        assert_eq!(printed(&events), "\n");
        events.stdout_of(&["add", "-f", &file]);
        assert_eq!(printed(&events), before);
    }
}
