//! The objects of page faults, signals, ends of tasks, and lost records.

use super::{Clock, Elements, line, object, value, write};
use crate::beauty::style::StyleContext;
use crate::beauty::value::Value;
use crate::event::{Disposition, Event, Fault, Loss, MapRef, Signal, TaskEnd};

/// Adds the function at an address, and the offset of the address in it.
pub(super) fn symbol(o: &mut Elements, named: Option<(Box<[u8]>, u64)>) {
    if let Some((name, offset)) = named {
        o.bytes("symbol", &name);
        o.uint("offset", offset);
    }
}

/// Adds a position in a mapped file.
pub(super) fn map(o: &mut Elements, name: &str, map: Option<&MapRef>) {
    if let Some(map) = map {
        object(o.named(name), |o| {
            o.bytes("path", &map.path);
            o.hex("offset", map.offset);
            o.mark("executable", map.executable);
        });
    }
}

pub(super) fn fault(o: &mut Elements, fault: &Fault) {
    o.word("fault", if fault.major { "major" } else { "minor" });
    o.hex("ip", fault.ip);
    map(o, "ip_file", fault.ip_at.as_ref());
    o.hex("address", fault.address);
    map(o, "address_file", fault.address_at.as_ref());
}

pub(super) fn signal(o: &mut Elements, signal: &Signal, context: &StyleContext) {
    value::write(o.member("signal"), &Value::Signal(signal.number));
    o.word(
        "fate",
        match signal.disposition {
            Disposition::Default => "default",
            Disposition::Kills => "kills",
            Disposition::Handled => "handled",
            Disposition::Ignored => "ignored",
        },
    );
    if let Some(sender) = &signal.sender {
        o.object("sender", |o| {
            o.int("pid", i64::from(sender.pid));
            o.int("tid", i64::from(sender.tid));
            (context.comm)(sender.tid).iter().for_each(|comm| o.bytes("comm", comm));
        });
    }
    // A PID of the receiver's own pid namespace would be the PID of another task in rtrace's.
    if let Some(pid) = signal.info.pid.filter(|_| signal.pids_are_known) {
        o.object("process", |o| {
            o.int("pid", i64::from(pid));
            (context.comm)(pid).iter().for_each(|comm| o.bytes("comm", comm));
        });
    }
    o.object("siginfo", |o| {
        o.int("si_signo", i64::from(signal.number));
        signal.errno.iter().for_each(|errno| o.int("si_errno", i64::from(*errno)));
        if let Some(code) = signal.code {
            value::write(o.member("si_code"), &Value::SignalCode { signal: signal.number, code });
        }
        let of = &signal.info;
        let numbers = [
            ("si_pid", of.pid.map(i64::from)),
            ("si_uid", of.uid.map(i64::from)),
            ("si_utime", of.utime),
            ("si_stime", of.stime),
            ("si_timerid", of.timer.map(i64::from)),
            ("si_overrun", of.overrun.map(i64::from)),
            ("si_band", of.band),
            ("si_fd", of.fd.map(i64::from)),
            ("si_syscall", of.call.map(i64::from)),
            ("si_arch", of.arch.map(i64::from)),
        ];
        if let Some(status) = of.status {
            let value = if signal.code == Some(libc::CLD_EXITED) { Value::Int(status.into()) } else { Value::Signal(status) };
            value::write(o.member("si_status"), &value);
        }
        numbers.iter().for_each(|(name, number)| number.iter().for_each(|number| write::int(o.named(name), *number)));
        for (name, address) in [("si_addr", of.address), ("si_value", of.value), ("si_call_addr", of.call_address)] {
            address.iter().for_each(|address| write::hex(o.named(name), *address));
        }
    });
}

pub(super) fn task_end(o: &mut Elements, end: TaskEnd) {
    match end {
        TaskEnd::Exited(status) => o.int("status", i64::from(status)),
        TaskEnd::Killed { signal, core_dumped } => {
            value::write_signal(o.member("killed"), signal);
            o.mark("core_dumped", core_dumped == Some(true));
        }
        TaskEnd::Unknown => o.mark("unknown", true),
        TaskEnd::NotTraced => o.mark("not_traced", true),
    }
}

/// Writes the object of lost records. A ring buffer lost them, so the object has no task.
pub(super) fn lost(out: &mut Vec<u8>, event: &Event, loss: Loss, clock: &mut Clock) {
    line(out, |o| {
        o.word("type", "lost");
        clock.write(o.member("time"), event.time);
        o.uint("cpu", u64::from(event.cpu));
        loss.records.iter().for_each(|records| o.uint("records", *records));
        loss.after.iter().for_each(|after| clock.write(o.member("after"), *after));
    });
}
