use super::*;
use crate::probe::testing::{Built, Machine};

fn open(built: &Built) -> ProgramFile {
    ProgramFile::open(built.path.clone(), &mut Machine::default()).unwrap()
}

fn found(built: &Built, name: &str) -> Result<Function, String> {
    find(&mut open(built), name, &mut Machine::default()).map_err(|error| error.to_string())
}

fn names() -> Option<Built> {
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/probes/names_other.c");
    Built::new("names.c", &["-O1", "-g", other])
}

#[test]
fn functions_are_found_by_name() {
    let Some(built) = names() else { return };
    let function = found(&built, "handle_request").unwrap();
    assert_eq!((function.svma, function.note.clone()), (built.svma_of("handle_request"), None));
    assert_eq!(function.at(2, When::Entry).unwrap(), function.svma + 2);
    let outside = function.at(function.size as i64, When::Entry).unwrap_err().to_string();
    assert!(outside.contains(&format!("is not in handle_request, which has {} bytes", function.size)), "{outside}");
    assert!(function.at(-1, When::Entry).is_err());
    let inside = function.at(2, When::Return { maxactive: None }).unwrap_err().to_string();
    assert_eq!(inside, "a return probe is on a whole function: handle_request, without +2");
}

#[test]
fn data_ifuncs_and_ambiguous_names_are_refused() {
    let Some(built) = names() else { return };
    let refused = |name: &str| found(&built, name).unwrap_err();
    let path = built.path.display();
    assert_eq!(refused("shared_counter"), format!("shared_counter of {path} is data, not code"));
    assert_eq!(refused("handle_requset"), format!("{path} has no function handle_requset; similar: handle_request"));
    assert!(refused("chooser").contains("IFUNC"), "{}", refused("chooser"));
    let twins = refused("twin");
    assert!(twins.contains("has 2 functions twin") && twins.contains("(names.c)") && twins.contains("(names_other.c)"), "{twins}");
    for svma in built.svmas_of("twin") {
        assert!(twins.contains(&format!("{:#x} (", open(&built).code_offset(svma).unwrap())), "{twins}");
    }
}

#[test]
fn global_functions_are_preferred_over_local_ones() {
    let Some(built) = names() else { return };
    let function = found(&built, "widely_seen").unwrap();
    assert!(built.svmas_of("widely_seen").contains(&function.svma));
    assert!(function.note.unwrap().contains("(names_other.c)"));
}

#[test]
fn versions_of_symbols_are_distinguished() {
    let map = concat!("-Wl,--version-script=", env!("CARGO_MANIFEST_DIR"), "/tests/programs/probes/versions.map");
    for strip in ["-g", "-s"] {
        let Some(built) = Built::new("versions.c", &["-shared", "-fPIC", map, strip]) else { return };
        let [old, new, either] = ["changed@OLD_1", "changed@NEW_2", "changed"].map(|name| found(&built, name).unwrap().svma);
        assert!(old != new && new == either, "{strip}: {old:#x}, {new:#x}, {either:#x}");
        assert!(found(&built, "changed@ODD_3").is_err());
    }
}

#[test]
fn demangled_names_are_found() {
    let Some(built) = Built::new("mangled.cc", &["-O1"]) else { return };
    let one = found(&built, "space::Class::method").unwrap();
    assert_eq!(one.svma, built.svma_of("_ZN5space5Class6methodEi"));
    assert_eq!(found(&built, "_ZN5space5Class6methodEi").unwrap().svma, one.svma);
    assert!(found(&built, "space::Class::twice").unwrap_err().contains("has 2 functions"));
    assert_eq!(found(&built, "space::Class::twice(char)").unwrap().svma, built.svma_of("_ZN5space5Class5twiceEc"));
}
