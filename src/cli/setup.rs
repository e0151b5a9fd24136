//! `rtrace check --setup`: prints the shell commands that let the members of a group trace programs of their own
//! without root. `./install --group` runs exactly these commands.

use super::ExitCode;
use super::stdout;
use crate::bpf;
use crate::kernel::machine;
use crate::kernel::privileges::{LEVEL_MAX, Privileges};
use crate::request::Setup;
use anyhow::Context;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The first Linux version on which the BPF programs are attached to tracepoints. rtrace reads the IDs of these in
/// tracefs (`bpf::may_be_interrupted`).
const NEEDS_TRACEFS: (u32, u32) = (7, 2);
/// The capabilities that tracing needs: perf events on any task and CPU, and BPF programs that read kernel memory. They
/// are permitted, not effective: rtrace makes them effective only for the system calls that need them.
const CAPABILITIES: &str = "cap_perfmon,cap_bpf=p";
const TRACING: &str = "/sys/kernel/tracing";
const SYSCTL: &str = "/etc/sysctl.d/60-rtrace.conf";
const UNIT: &str = "/etc/systemd/system/sys-kernel-tracing.mount.d";

/// The installation to set up, and the properties of this machine that the script depends on.
#[derive(Clone, Copy, Debug)]
struct Installation<'a> {
    program: &'a Path,
    group: &'a str,
    /// Whether members must read tracefs to trace on this kernel.
    needs_tracefs: bool,
    /// Whether systemd mounts tracefs on this machine.
    has_systemd: bool,
    /// kernel.perf_event_paranoid, if it is above the highest level at which CAP_PERFMON suffices.
    level_above: Option<i32>,
}

/// Prints the script on stdout.
///
/// # Errors
/// The path of this program cannot be found out, or stdout cannot be written.
pub fn print(setup: &Setup) -> anyhow::Result<ExitCode> {
    let own = || std::env::current_exe().context("cannot find the path of this program; pass it with --program");
    let program = setup.program.clone().map_or_else(own, Ok)?;
    let version = machine::release().ok().and_then(|release| machine::version(&release));
    let installation = Installation {
        program: &program,
        group: &setup.group,
        needs_tracefs: version.is_some_and(|version| version >= NEEDS_TRACEFS) || bpf::may_be_interrupted(),
        has_systemd: Path::new("/run/systemd/system").is_dir(),
        level_above: Privileges::read().paranoid.filter(|level| *level > LEVEL_MAX),
    };
    stdout::print(script(installation).as_bytes())
}

fn script(installation: Installation) -> String {
    let Installation { group, .. } = installation;
    let program = quoted(installation.program.as_os_str());
    let mut text = format!(
        "# Run by root, this script lets members of the group {group} trace programs of their own without root.\n\
         # `man rtrace`, SECURITY, describes what they may trace then. Nobody else may run rtrace's file then.\n\
         set -e\n\
         groupadd --force --system {group}\n\
         chown root:{group} {program}\n\
         chmod 750 {program}\n\
         # These allow perf events and BPF programs. rtrace makes them effective only for the system calls that need\n\
         # them, and never traces programs of others with them.\n\
         setcap {CAPABILITIES} {program}\n"
    );
    let mut undo = vec![format!("setcap -r {program}"), format!("chown root:root {program}"), format!("chmod 755 {program}")];
    if let Some(level) = installation.level_above {
        let _ = writeln!(
            text,
            "# Above level {LEVEL_MAX}, the default of Linux, kernels of Debian and Ubuntu refuse perf events even with CAP_PERFMON.\n\
             printf 'kernel.perf_event_paranoid = {LEVEL_MAX}\\n' > {SYSCTL}\n\
             sysctl -q -w kernel.perf_event_paranoid={LEVEL_MAX}"
        );
        undo.push(format!("rm {SYSCTL}; sysctl -q -w kernel.perf_event_paranoid={level}"));
    }
    if installation.needs_tracefs {
        text += &tracefs(installation);
        undo.extend(undo_tracefs(installation));
    } else {
        text += "# On this kernel members do not need to read tracefs, so only root can read what others record there.\n";
    }
    undo.push(format!("groupdel {group}"));
    let _ =
        writeln!(text, "# This command adds a member; it takes effect at the next login:\n#     usermod --append --groups {group} USER");
    text += "# These commands undo all of this:\n";
    undo.iter().for_each(|line| _ = writeln!(text, "#     {line}"));
    text
}

/// Returns the commands that let the group read tracefs. The mount option takes the group by its number only.
fn tracefs(installation: Installation) -> String {
    let Installation { group, .. } = installation;
    let number = format!("gid=$(getent group {group} | cut -d: -f3)\n");
    let why = "# On this kernel the BPF programs are attached to tracepoints, whose IDs members have to read in tracefs.\n\
               # They can then also read there what others record.\n";
    let lasting = match installation.has_systemd {
        true => format!(
            "mkdir -p {UNIT}\n\
             printf '[Mount]\\nOptions=nosuid,nodev,noexec,mode=750,gid=%s\\n' \"$gid\" > {UNIT}/rtrace.conf\n\
             systemctl daemon-reload\n"
        ),
        false => format!(
            "grep -q '^tracefs {TRACING} .*,gid='\"$gid\" /etc/fstab || \
             printf 'tracefs {TRACING} tracefs nosuid,nodev,noexec,mode=750,gid=%s 0 0\\n' \"$gid\" >> /etc/fstab\n"
        ),
    };
    let now = format!(
        "if mountpoint -q {TRACING}; then mount -o remount,mode=750,gid=\"$gid\" {TRACING}; \
         else mount -t tracefs -o nosuid,nodev,noexec,mode=750,gid=\"$gid\" tracefs {TRACING}; fi\n"
    );
    format!("{why}{number}{lasting}{now}")
}

fn undo_tracefs(installation: Installation) -> Vec<String> {
    let lasting = match installation.has_systemd {
        true => format!("rm {UNIT}/rtrace.conf; systemctl daemon-reload"),
        false => format!("sed -i '\\|^tracefs {TRACING} .*,gid=|d' /etc/fstab"),
    };
    vec![lasting, format!("mount -o remount,mode=700,gid=0 {TRACING}")]
}

/// Quotes a word for the shell.
fn quoted(word: &OsStr) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    let text = word.to_string_lossy();
    if !word.is_empty() && word.as_bytes().iter().all(is_plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(needs_tracefs: bool, has_systemd: bool) -> Vec<String> {
        let program = Path::new("/opt/the tool/rtrace");
        let installation = Installation { program, group: "tracers", needs_tracefs, has_systemd, level_above: None };
        script(installation).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn the_commands_give_a_group_access() {
        let program = "'/opt/the tool/rtrace'";
        let first = [
            "set -e".to_owned(),
            "groupadd --force --system tracers".to_owned(),
            format!("chown root:tracers {program}"),
            format!("chmod 750 {program}"),
            format!("setcap cap_perfmon,cap_bpf=p {program}"),
        ];
        assert_eq!(commands(false, true), first);
        for has_systemd in [true, false] {
            let more = commands(true, has_systemd);
            assert_eq!(more[..first.len()], first);
            assert_eq!(more[5], "gid=$(getent group tracers | cut -d: -f3)");
            assert_eq!(more.iter().any(|line| line.contains("/etc/fstab")), !has_systemd);
            assert!(more[more.len() - 1].contains("mode=750,gid=\"$gid\" tracefs /sys/kernel/tracing"), "{more:?}");
        }
    }

    #[test]
    fn the_undo_commands_revert_each_change() {
        let program = Path::new("/usr/local/bin/rtrace");
        let text = script(Installation { program, group: "rtrace", needs_tracefs: true, has_systemd: true, level_above: Some(3) });
        assert!(text.contains("\nsysctl -q -w kernel.perf_event_paranoid=2\n"), "{text}");
        let (_, undo) = text.split_once("# These commands undo all of this:\n").unwrap();
        let undo: Vec<&str> = undo.lines().map(|line| line.trim_start_matches("#     ")).collect();
        assert_eq!(
            undo,
            [
                "setcap -r /usr/local/bin/rtrace",
                "chown root:root /usr/local/bin/rtrace",
                "chmod 755 /usr/local/bin/rtrace",
                "rm /etc/sysctl.d/60-rtrace.conf; sysctl -q -w kernel.perf_event_paranoid=3",
                "rm /etc/systemd/system/sys-kernel-tracing.mount.d/rtrace.conf; systemctl daemon-reload",
                "mount -o remount,mode=700,gid=0 /sys/kernel/tracing",
                "groupdel rtrace",
            ]
        );
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, text) in [("/a/b-1.2", "/a/b-1.2"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''"), ("$x", "'$x'")] {
            assert_eq!(quoted(OsStr::new(word)), text);
        }
    }
}
