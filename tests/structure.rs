//! ARCHITECTURE.md states an order of the folders of `src/`, and one of the generator's modules. Each uses only what
//! comes before it.

#[path = "structure/paths.rs"]
mod paths;

use paths::{Used, files, used};
use std::fs;
use std::path::Path;

/// The names in the table of a section of ARCHITECTURE.md, in its order.
fn order(section: &str) -> Vec<String> {
    let text = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let (_, rest) = text.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("ARCHITECTURE.md has no section \"{section}\""));
    let section = rest.split("\n## ").next().unwrap();
    let cell = |line: &str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.trim_end_matches('/').to_owned());
    section.lines().filter_map(cell).collect()
}

/// What is wrong with the files in `root`, whose modules are to stand in this order.
fn faults(root: &str, prefix: &[&str], order: &[String]) -> Vec<String> {
    let place = |name: &str| order.iter().position(|of| of == name);
    let mut faults = Vec::new();
    let mut seen = Vec::new();
    for (path, module) in files(Path::new(root)) {
        let Some(own) = module.first().cloned() else { continue };
        let Some(rank) = place(&own) else {
            faults.push(format!("{}: ARCHITECTURE.md has no line for `{own}` in the order of {root}", path.display()));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        for Used { line, name } in used(&text, module.len(), prefix) {
            if name != own && place(&name).is_some_and(|of| of > rank) {
                faults.push(format!(
                    "{}:{line}: `{own}` uses `{name}`, which comes after it in ARCHITECTURE.md's order: move what both need into `{own}` \
                     or a folder before it, or move what uses it",
                    path.display()
                ));
            }
        }
        seen.push(own);
    }
    let gone = order.iter().filter(|name| !seen.contains(name));
    faults.extend(gone.map(|name| format!("ARCHITECTURE.md: there is no `{name}` in {root}")));
    faults
}

#[test]
fn folders_use_only_what_comes_before_them() {
    let faults = faults("src", &[], &order("The order of the folders"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn modules_of_the_generator_use_only_what_comes_before_them() {
    let faults = faults("beauty/gen", &["generator"], &order("The order of the generator's modules"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_path_is_found_wherever_it_is_written() {
    let text = r##"
        use crate::b::{c, d};
        use crate::{e, f::{g, h}, i as j};
        // crate::comment::x and /* crate::comment::y */
        const TEXT: &str = "crate::string::x"; const RAW: &str = r#"crate::raw::x"#; const QUOTE: char = '"';
        fn of<'a>() { $crate::k::l(); super::super::m::n(); super::near::o(); }
        mod tests { use super::super::super::p; fn f() { super::super::q::r(); } }
        use super::super::s;
    "##;
    let names: Vec<(usize, String)> = used(text, 2, &[]).into_iter().map(|used| (used.line, used.name)).collect();
    let expected = [(2, "b"), (3, "e"), (3, "f"), (3, "i"), (6, "k"), (6, "m"), (7, "p"), (8, "s")];
    assert_eq!(names, expected.map(|(line, name)| (line, name.to_owned())));
}
