//! Decoding of events that the running kernel records.

use crate::beauty::tracepoint::TracepointDecoder;
use crate::beauty::value::{Text, Value};
use crate::event::{Abi, EventIndex};
use crate::kernel::format::Format;
use crate::kernel::tracefs::Tracefs;
use crate::session::{EventSpec, EventTable, Role, Terms};
use crate::source::record::{Body, Records};
use crate::sys::perf::{Attr, Counts, Delivery, On, PerfEvent, SAMPLE_TRACEPOINT, StackFields};
use crate::sys::ring::Ring;
use std::os::fd::AsFd;
use std::process::Command;

/// Records an event in this thread and the children that it starts while `act` runs. Returns the event's format and the
/// raw bytes of its records.
fn recorded(subsystem: &str, name: &str, act: impl FnOnce()) -> (Format, Vec<Vec<u8>>) {
    let format = Tracefs::find().unwrap().format(subsystem, name).unwrap();
    let attr = Attr {
        counts: Counts::Tracepoint(format.id),
        inherit: true,
        watermark: 4096,
        stack: StackFields::default(),
        delivery: Delivery::Kept,
    };
    let cpus = crate::kernel::machine::online_cpus().unwrap();
    let events: Vec<PerfEvent> = cpus.iter().map(|cpu| PerfEvent::open(&attr, On::Task(0), *cpu).unwrap()).collect();
    let mut rings: Vec<Ring> = events.iter().map(|event| Ring::map(event.as_fd(), 64 << 10).unwrap()).collect();
    events.iter().for_each(|event| event.enable().unwrap());
    act();
    events.iter().for_each(|event| event.disable().unwrap());
    let spec = EventSpec {
        name: format!("{subsystem}:{name}"),
        role: Role::Tracepoint,
        sample_type: SAMPLE_TRACEPOINT,
        format: Some(format.clone()),
        shown: true,
        terms: Terms::default(),
    };
    let ids = events.iter().map(|event| (event.id(), EventIndex(0))).collect();
    let table = EventTable { events: vec![spec], ids, ..EventTable::default() };
    let mut records = Vec::new();
    for ring in &mut rings {
        let mut bytes = Vec::new();
        ring.drain(&mut bytes).unwrap();
        records.extend(Records::new(&table, 0, &bytes).filter_map(|record| match record.unwrap().body {
            Body::Sample(sample) => Some(sample.raw.to_vec()),
            _ => None,
        }));
    }
    (format, records)
}

#[test]
#[ignore = "needs root and tracefs"]
fn records_of_this_kernel_are_decoded() {
    let mut pid = 0;
    let (format, records) = recorded("sched", "sched_process_exec", || {
        let mut child = Command::new("/bin/true").spawn().unwrap();
        pid = child.id() as i32;
        child.wait().unwrap();
    });
    assert_eq!(records.len(), 1);
    let decoder = TracepointDecoder::new(&format, None, Abi::X86_64, 63);
    let values = decoder.decode(&records[0], &|_| None);
    assert_eq!(
        values,
        [
            ("filename", Value::Str(Text { bytes: b"/bin/true".into(), ..Text::default() })),
            ("pid", Value::Pid { pid, translated: None, comm: None }),
            ("old_pid", Value::Pid { pid, translated: None, comm: None })
        ]
    );

    let path = std::env::temp_dir().join(format!("rtrace-tracepoint-{pid}"));
    let (format, records) = recorded("syscalls", "sys_enter_openat", || drop(std::fs::File::create(&path).unwrap()));
    std::fs::remove_file(&path).unwrap();
    let decoder = TracepointDecoder::new(&format, None, Abi::X86_64, 63);
    let opened: Vec<_> = records.iter().map(|raw| decoder.decode(raw, &|_| None)).collect();
    let created = opened.iter().find(|values| values[3] == ("mode", Value::Octal(0o666))).unwrap();
    assert_eq!(created.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["dfd", "filename", "flags", "mode"]);
    assert_eq!(created[0].1, Value::DirFd { fd: -100, file: None });
    // The string if the kernel copies it, or else its address.
    assert!(matches!(&created[1].1, Value::Address(1..) | Value::Str { .. }), "{created:?}");
}
