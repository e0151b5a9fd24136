use super::*;

/// Creates a directory tree like tracefs's.
fn tree(name: &str) -> (PathBuf, Tracefs) {
    let root = std::env::temp_dir().join(format!("rtrace-tracefs-{name}-{}", std::process::id()));
    for event in ["sched/sched_switch", "sched/sched_wakeup", "signal/signal_deliver", "syscalls/sys_enter_openat", "ftrace/print"] {
        fs::create_dir_all(root.join("events").join(event)).unwrap();
    }
    fs::write(root.join("events/enable"), "").unwrap();
    fs::write(root.join("events/sched/sched_switch/format"), include_str!("../fixtures/sched_switch.format")).unwrap();
    fs::write(root.join("events/sched/sched_switch/id"), "372\n").unwrap();
    fs::write(root.join("events/sched/sched_wakeup/format"), "name: x\n").unwrap();
    (root.clone(), Tracefs::at(&root).unwrap())
}

fn words(events: Vec<EventName>) -> Vec<String> {
    events.iter().map(EventName::to_string).collect()
}

#[test]
fn subsystems_and_events_are_listed_and_matched() {
    let (root, tracefs) = tree("list");
    assert_eq!(tracefs.subsystems().unwrap(), ["ftrace", "sched", "signal", "syscalls"]);
    assert_eq!(words(tracefs.matching("sched", "*").unwrap()), ["sched:sched_switch", "sched:sched_wakeup"]);
    assert_eq!(words(tracefs.matching("s*", "s*_[sd]*[hr]").unwrap()), ["sched:sched_switch", "signal:signal_deliver"]);
    assert!(tracefs.matching("ftrace", "*").unwrap().is_empty());
    assert_eq!(tracefs.syscalls(), ["openat"]);
    assert!(tracefs.has("sched", "sched_switch") && !tracefs.has("sched", "nothing") && !tracefs.has("..", "events"));
    assert_eq!(tracefs.id("sched", "sched_switch").unwrap(), 372);
    assert_eq!(tracefs.format("sched", "sched_switch").unwrap().fields.len(), 11);
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn errors_have_near_names_and_remedies() {
    let (root, tracefs) = tree("errors");
    let error = tracefs.format("sched", "sched_swich").unwrap_err().to_string();
    assert_eq!(error, "no event `sched:sched_swich` in this kernel; similar: sched:sched_switch");
    let error = tracefs.format("signals", "signal_deliver").unwrap_err().to_string();
    assert_eq!(error, "no event `signals:signal_deliver` in this kernel; similar: signal:signal_deliver");
    let error = tracefs.format("../events/sched", "sched_switch").unwrap_err();
    assert!(matches!(error, EventError::Unknown { .. }));
    let error = tracefs.format("sched", "sched_wakeup").unwrap_err().to_string();
    assert!(error.ends_with("sched/sched_wakeup/format: line 1 of the event's format file: the file ends without `ID:`"), "{error}");
    assert!(tracefs.matching("[", "*").unwrap().is_empty());
    let unmounted = |why| TracefsError::NotMounted(why).to_string();
    assert!(unmounted(NoMount::Refused(libc::ENOSYS)).contains("`mount -t tracefs tracefs /sys/kernel/tracing` as root"));
    assert!(unmounted(NoMount::NoCapability).contains("--cap-add SYS_ADMIN"));
    assert!(matches!(Tracefs::at(&root.join("nowhere")).unwrap_err(), TracefsError::Io { .. }));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn lookups_in_an_absent_tracefs_fail_with_the_reason() {
    let tracefs = Tracefs::absent(TracefsError::NotMounted(NoMount::NotRoot));
    assert!(!tracefs.has("sched", "sched_switch") && tracefs.subsystems().unwrap().is_empty());
    let error = tracefs.format("sched", "sched_switch").unwrap_err().to_string();
    assert_eq!(error, "sched:sched_switch: tracefs is not mounted, and only root can use it without a mount: run rtrace as root");
    assert_eq!(tracefs.root().join("events").shown(), Path::new("tracefs/events"));
}

#[test]
fn mount_points_are_read_from_lines_of_proc_mounts() {
    assert_eq!(mount_point("tracefs /mnt/a\\040b tracefs rw 0 0"), Some(PathBuf::from("/mnt/a b")));
    assert_eq!(mount_point("tmpfs /tmp tmpfs rw 0 0"), None);
    assert_eq!(mount_point(""), None);
}

/// Returns all events of this kernel and their formats, without dynamic events that another process removes meanwhile.
pub(crate) fn formats(tracefs: &Tracefs) -> Vec<(EventName, Format)> {
    let events = tracefs.matching("*", "*").unwrap().into_iter();
    let format = |event: EventName| match tracefs.format(&event.subsystem, &event.name) {
        Ok(format) => Some((event, format)),
        Err(error) => {
            assert!(!tracefs.directory(&event.subsystem, &event.name).exists(), "{event}: {error}");
            None
        }
    };
    events.filter_map(format).collect()
}

#[test]
#[ignore = "needs root and tracefs"]
fn all_formats_of_this_kernel_are_parsed() {
    let tracefs = Tracefs::find().unwrap();
    let events = formats(&tracefs);
    assert!(events.len() > 300, "only {} events", events.len());
    for (EventName { subsystem, name }, format) in events {
        let id = tracefs.id(&subsystem, &name);
        let text = tracefs.directory(&subsystem, &name).join("format").read_to_string();
        // Another process may have removed its dynamic event meanwhile.
        if !tracefs.directory(&subsystem, &name).exists() {
            continue;
        }
        assert_eq!((format.id, &format.name), (id.unwrap(), &name));
        assert_eq!(format.fields.len(), text.unwrap().matches("\tfield:").count(), "{subsystem}:{name}");
        for field in &format.fields {
            let whole = u32::from(field.element_bytes()) * field.array.unwrap_or(1);
            assert!(
                field.place != super::super::format::FieldPlace::Here || field.size % u32::from(field.element_bytes()) == 0,
                "{subsystem}:{name} {field:?}"
            );
            assert!(field.array.is_none_or(|count| count == 0 || whole == field.size), "{subsystem}:{name} {field:?}");
        }
    }
}
