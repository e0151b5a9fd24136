use super::*;
use crate::probe::grammar::Type;
use crate::probe::testing::{Built, Machine};
use std::path::Path;

fn usdt(path: &Path, name: &str, args: &[Arg]) -> Probe {
    let place = ProbePoint::Usdt { path: path.to_owned(), provider: "app".to_owned(), name: name.to_owned() };
    Probe { group: None, event: None, place, args: args.to_vec() }
}

fn resolved(probe: &Probe) -> Result<Resolved, String> {
    resolve(probe, &mut Machine::default()).map_err(|error| format!("{error:#}"))
}

fn named(name: &str, kind: Option<BasicType>) -> Arg {
    let value = Fetch::Variable { name: name.to_owned(), path: Vec::new() };
    Arg { name: None, value, kind: kind.map(|base| Type { base, array: None }) }
}

/// Returns the offset in the file of an address, which `nm` does not print.
fn offset(built: &Built, svma: u64) -> u64 {
    ElfFile::read(Box::new(std::fs::read(&built.path).unwrap())).unwrap().offset_of_svma(svma).unwrap().0
}

#[test]
fn all_arguments_of_a_tracepoint_are_resolved() {
    for flags in [&["-O2", "-pie", "-fPIE"][..], &["-O2", "-static"], &["-O2", "-no-pie", "-s"]] {
        let Some(built) = Built::new("usdt.c", flags) else { return };
        let found = resolved(&usdt(&built.path, "begin", &[])).unwrap();
        let [probe] = &found.probes[..] else { panic!("{found:?}") };
        let ProbePoint::File { at: FilePlace::Offset(at), reference_counter: Some(counter), .. } = probe.place else { panic!("{found:?}") };
        let stripped = flags.contains(&"-s");
        if !stripped {
            assert_eq!(counter, offset(&built, built.svma_of("app_begin_semaphore")));
            let begin = built.svma_of("begin");
            assert!((offset(&built, begin)..offset(&built, begin) + 16).contains(&at));
            assert_eq!(found.notes, [""; 0]);
        } else {
            assert!(found.notes[0].contains("has no symbol last_number; it is left out"), "{:?}", found.notes);
        }
        let texts: Vec<_> = probe.args.iter().map(|arg| (arg.name.clone().unwrap(), arg.kind.unwrap().base)).collect();
        let all = [
            ("arg1", BasicType::Signed(32)),
            ("arg2", BasicType::Hex(64)),
            ("arg3", BasicType::Signed(32)),
            ("arg4", BasicType::Signed(64)),
        ];
        let all = all.map(|(name, base)| (name.to_owned(), base));
        assert_eq!(texts, all[..if stripped { 3 } else { 4 }]);
        assert_eq!(
            probe.args[..3].iter().map(|arg| &arg.value).collect::<Vec<_>>(),
            [&Fetch::Register("di".to_owned()), &Fetch::Register("si".to_owned()), &Fetch::Immediate(5)]
        );
    }
}

#[test]
fn chosen_arguments_are_resolved() {
    let Some(built) = Built::new("usdt.c", &["-O2"]) else { return };
    let inner = Fetch::Memory { user: false, offset: 2, of: Box::new(Fetch::Argument(2)) };
    let args = [named("arg2", Some(BasicType::String)), Arg { name: Some("tail".to_owned()), value: inner, kind: None }];
    let found = resolved(&usdt(&built.path, "begin", &args)).unwrap();
    let memory = |offset| Fetch::Memory { user: false, offset, of: Box::new(Fetch::Register("si".to_owned())) };
    assert_eq!(found.probes[0].args.iter().map(|arg| arg.value.clone()).collect::<Vec<_>>(), [memory(0), memory(2)]);
    assert_eq!(found.probes[0].args[0].name.as_deref(), Some("arg2"));
    let refused = |args: &[Arg]| resolved(&usdt(&built.path, "begin", args)).unwrap_err();
    assert_eq!(refused(&[named("arg9", None)]), "app:begin has 4 arguments, so there is no arg9");
    assert!(refused(&[named("number", None)]).contains("are arg1, arg2 and so on, not number"));
}

#[test]
fn every_site_becomes_a_probe() {
    let Some(built) = Built::new("usdt.c", &["-O1"]) else { return };
    let found = resolved(&usdt(&built.path, "step", &[])).unwrap();
    assert_eq!(found.probes.len(), 2);
    assert_ne!(found.probes[0].place, found.probes[1].place);
    assert!(found.probes.iter().all(|probe| probe.args.len() == 1), "{found:?}");
    assert!(found.notes.iter().all(|note| note.contains("index register") && note.ends_with("it is left out")), "{:?}", found.notes);
    let asked = resolved(&usdt(&built.path, "step", &[named("arg2", None)])).unwrap_err();
    assert!(asked.starts_with("arg2 of app:step, 8@(") && asked.ends_with("an index register is part of its address"), "{asked}");
}

#[test]
fn unknown_tracepoints_are_refused() {
    let Some(built) = Built::new("usdt.c", &["-O1"]) else { return };
    assert!(resolved(&usdt(&built.path, "begun", &[])).unwrap_err().ends_with("has no USDT tracepoint app:begun; similar: app:begin"));
    let Some(other) = Built::new("names_other.c", &["-shared", "-fPIC", "-O1"]) else { return };
    assert!(resolved(&usdt(&other.path, "x", &[])).unwrap_err().contains("has no USDT tracepoints"));
}
