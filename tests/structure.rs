//! Checks the dependencies between modules. ARCHITECTURE.md states an order of the folders of `src/`, and one of the
//! generator's modules. A folder or module may use only those before it.

#[path = "structure/documentation.rs"]
mod documentation;
#[path = "structure/limits.rs"]
mod limits;
#[path = "structure/paths.rs"]
mod paths;
#[path = "structure/plan.rs"]
mod plan;
#[path = "structure/tree.rs"]
mod tree;

use paths::{ModulePath, files, paths_to_modules};
use std::fs;
use std::path::Path;

/// Returns the names in the table of a section of ARCHITECTURE.md, in the order of the table.
fn order(section: &str) -> Vec<String> {
    let text = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let (_, rest) = text.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("ARCHITECTURE.md has no section \"{section}\""));
    let section = rest.split("\n## ").next().unwrap();
    let cell = |line: &str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.trim_end_matches('/').to_owned());
    section.lines().filter_map(cell).collect()
}

/// Returns the violations of the order by the files in `root`.
fn faults(root: &str, prefix: &[&str], order: &[String]) -> Vec<String> {
    let rank_of = |name: &str| order.iter().position(|of| of == name);
    let mut faults = Vec::new();
    let mut seen = Vec::new();
    for (path, module) in files(Path::new(root)) {
        let Some(own) = module.first().cloned() else { continue };
        let Some(rank) = rank_of(&own) else {
            faults.push(format!("{}: `{own}` is missing in ARCHITECTURE.md's order of {root}: add a line", path.display()));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        for ModulePath { line, name } in paths_to_modules(&text, module.len(), prefix) {
            if name != own && rank_of(&name).is_some_and(|of| of > rank) {
                faults.push(format!(
                    "{}:{line}: `{own}` uses `{name}`, which comes after it in ARCHITECTURE.md's order: move the code that both need \
                     into `{own}` or a folder before it, or move the code that uses it",
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
fn folders_use_only_folders_before_them() {
    let faults = faults("src", &[], &order("The order of the folders"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn generator_modules_use_only_modules_before_them() {
    let faults = faults("beauty/gen", &["generator"], &order("The order of the generator's modules"));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn paths_are_found_in_all_forms_of_rust_syntax() {
    let text = r##"
        use crate::b::{c, d};
        use crate::{e, f::{g, h}, i as j};
        // crate::comment::x and /* crate::comment::y */
        const TEXT: &str = "crate::string::x"; const RAW: &str = r#"crate::raw::x"#; const QUOTE: char = '"';
        fn of<'a>() { $crate::k::l(); super::super::m::n(); super::near::o(); }
        mod tests { use super::super::super::p; fn f() { super::super::q::r(); } }
        use super::super::s;
    "##;
    let names: Vec<(usize, String)> = paths_to_modules(text, 2, &[]).into_iter().map(|path| (path.line, path.name)).collect();
    let expected = [(2, "b"), (3, "e"), (3, "f"), (3, "i"), (6, "k"), (6, "m"), (7, "p"), (8, "s")];
    assert_eq!(names, expected.map(|(line, name)| (line, name.to_owned())));
}
