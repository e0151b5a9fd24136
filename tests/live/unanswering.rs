//! A file system that does not answer keeps those who use it, and not rtrace.

use crate::machine::Machine;
use crate::needs::unsupported;
use crate::trace::shell_with_engine;

/// A program on a FUSE file system whose server was stopped, in a mount namespace of its own.
const STOPPED: &str = r#"
    mkdir $dir/real $dir/mount && cp $(command -v sleep) $dir/real/sleeper
    bindfs -f $dir/real $dir/mount & server=$!
    until [ -x $dir/mount/sleeper ]; do sleep .05; done
    $dir/mount/sleeper 1000 & sleeper=$!
    until grep -q sleeper /proc/$sleeper/comm; do sleep .05; done
    kill -STOP $server
    "#;

#[test]
fn a_program_on_a_mount_that_does_not_answer_keeps_nobody() {
    let Some(machine) = Machine::shared() else { return };
    if std::process::Command::new("bindfs").arg("--version").output().is_err() || !std::path::Path::new("/dev/fuse").exists() {
        return unsupported("no FUSE, or no bindfs");
    }
    for (target, status) in [("-a", 0), ("-u root", 0), ("-p $sleeper", 0)] {
        let script = format!(
            "{STOPPED} timeout -s KILL 60 $rtrace $engine {target} -e lseek -o $dir/lines true; status=$?
             kill -CONT $server; kill $sleeper; wait $sleeper 2>/dev/null; umount -l $dir/mount; kill -KILL $server; wait; rm -r $dir/real $dir/mount; echo status $status"
        );
        std::fs::write(machine.path("script"), script).expect("the test's directory is writable");
        let run = shell_with_engine(&machine, "unshare -m sh $dir/script 2>$dir/said; cat $dir/said >&2");
        assert_eq!(run.stdout, format!("status {status}\n"), "{target}: {}", run.stderr);
    }
}
