use super::super::Want;
use super::super::test_files::{Directory, bytes, run};
use super::*;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Returns an opener of files below a directory that stands for the root. If a file is not there, it opens the path
/// itself.
fn files_below(root: &Path) -> impl Files + use<> {
    let root = root.to_owned();
    move |want: Want<'_>| -> Option<Box<dyn ReadAt>> {
        let path = match want {
            Want::Again { origin, .. } => &origin.path,
            Want::Path { path, seen_by: None } => path,
            Want::Path { seen_by: Some(_), .. } => return None,
        };
        let below = root.join(path.strip_prefix("/").ok()?);
        let bytes = std::fs::read(below).or_else(|_| std::fs::read(path)).ok()?;
        Some(Box::new(bytes))
    }
}

fn identity(inode: u64) -> Identity {
    Identity { device: 1, inode, size: 0, modified: (0, 0), owner: 0 }
}

fn add<F: Files>(resolver: &mut Resolver<F>, inode: u64, path: &Path) -> ObjectId {
    resolver.object(identity(inode), Origin { pid: 1, path: path.to_owned() }, bytes(path)).unwrap()
}

fn name<F: Files>(resolver: &mut Resolver<F>, object: ObjectId, svma: u64) -> Option<String> {
    match resolver.resolve(object, svma) {
        Name::Symbol { name, offset } => Some(format!("{}+{offset:#x}", String::from_utf8_lossy(name))),
        Name::Unknown => None,
        Name::NotYet => Some("not yet".into()),
    }
}

const SOURCE: &str = "static __attribute__((noinline)) int not_exported(int n) { __asm__ volatile(\"\"); return n + 1; }\n\
    int main(int n, char **v) { (void)v; return not_exported(n); }\n";

/// Compiles a program. Returns the paths of the program with symbols and of the stripped one, and the address of the
/// local function.
fn program(directory: &Directory, arguments: &[&str]) -> (PathBuf, PathBuf, u64) {
    let whole = directory.compile("program.c", SOURCE, &[&["-g", "-O1", "-Wl,--build-id=sha1"][..], arguments].concat());
    let stripped = directory.path("program");
    run(Command::new("strip").arg("-o").args([&stripped, &whole]));
    let symbols = run(Command::new("nm").arg(&whole));
    let line = symbols.lines().find(|line| line.ends_with(" t not_exported")).unwrap();
    (whole, stripped, u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap())
}

#[test]
fn a_stripped_program_has_no_symbols() {
    let directory = Directory::new();
    let (whole, stripped, address) = program(&directory, &[]);
    let mut resolver = Resolver::new(files_below(&directory.0), Options::default());
    let object = add(&mut resolver, 1, &stripped);
    assert_eq!(name(&mut resolver, object, address), None);
    assert_eq!(resolver.lines(object, address), []);
    let better = add(&mut resolver, 2, &whole);
    assert_ne!(object, better, "it has the same build-id, but more symbols");
    assert_eq!(name(&mut resolver, better, address + 1).unwrap(), "not_exported+0x1");
    assert_eq!(resolver.lines(better, address)[0].function.as_deref(), Some("not_exported"));
    let copy = directory.path("copy");
    std::fs::copy(&stripped, &copy).unwrap();
    assert_eq!(add(&mut resolver, 3, &copy), better, "the same build-id");
    let others = Identity { owner: 1000, ..identity(4) };
    let not_shared = resolver.object(others, Origin { pid: 1, path: copy.clone() }, bytes(&copy)).unwrap();
    assert_ne!(not_shared, better, "another user's file");
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    let directory = Directory::new();
    let (whole, stripped, address) = program(&directory, &[]);
    let id = ElfFile::read(bytes(&whole)).unwrap().build_id().unwrap();
    let place = directory.0.join(super::super::separate::path_by_build_id(id).strip_prefix("/").unwrap());
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &place]));
    let mut resolver = Resolver::new(files_below(&directory.0), Options::default());
    let object = add(&mut resolver, 1, &stripped);
    assert_eq!(name(&mut resolver, object, address).unwrap(), "not_exported+0x0");
    let lines = resolver.lines(object, address);
    assert_eq!((lines[0].function.as_deref(), lines[0].line), (Some("not_exported"), Some(1)));
    let other = directory.compile("other.c", "int main(void) { return 7; }", &["-Wl,--build-id=sha1"]);
    std::fs::copy(other, &place).unwrap();
    let mut resolver = Resolver::new(files_below(&directory.0), Options::default());
    let object = add(&mut resolver, 1, &stripped);
    assert_eq!(name(&mut resolver, object, address), None, "a debug file of another program");
}

#[test]
fn a_debug_file_is_found_by_debuglink() {
    let directory = Directory::new();
    let (whole, stripped, address) = program(&directory, &["-Wl,--build-id=none"]);
    let debug = directory.path("program.debug");
    run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &debug]));
    run(Command::new("objcopy").arg(format!("--add-gnu-debuglink={}", debug.display())).arg(&stripped));
    let mut resolver = Resolver::new(files_below(&directory.0), Options::default());
    let object = add(&mut resolver, 1, &stripped);
    assert_eq!(name(&mut resolver, object, address).unwrap(), "not_exported+0x0");
    assert_eq!(resolver.lines(object, address).len(), 1);
    let mut changed = std::fs::read(&debug).unwrap();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    std::fs::write(&debug, changed).unwrap();
    let mut resolver = Resolver::new(files_below(&directory.0), Options::default());
    let object = add(&mut resolver, 1, &stripped);
    assert_eq!(name(&mut resolver, object, address), None, "its checksum differs");
}

#[test]
fn symbols_in_gnu_debugdata_are_found() {
    let directory = Directory::new();
    let (whole, stripped, address) = program(&directory, &[]);
    let mini = directory.path("mini");
    run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &mini]));
    run(Command::new("objcopy").args(["--strip-debug"]).arg(&mini));
    let Ok(xz) = Command::new("xz").arg(&mini).status() else {
        eprintln!("skipped: xz is not installed");
        return;
    };
    assert!(xz.success());
    let added = format!(".gnu_debugdata={}", directory.path("mini.xz").display());
    run(Command::new("objcopy").args([OsStr::new("--add-section"), OsStr::new(&added)]).arg(&stripped));
    let mut resolver = Resolver::new(files_below(&directory.0), Options::default());
    let object = add(&mut resolver, 1, &stripped);
    assert_eq!(name(&mut resolver, object, address).unwrap(), "not_exported+0x0");
}

#[test]
fn names_are_available_after_the_download() {
    let directory = Directory::new();
    let (whole, stripped, address) = program(&directory, &[]);
    let client = directory.path("client");
    let fifo = directory.path("fifo");
    run(Command::new("mkfifo").arg(&fifo));
    // The client prints the path when a line is written into the FIFO.
    let script =
        format!("printf '#!/bin/sh\\nread go < {0}\\necho {1}\\n' > {2}; chmod +x {2}", fifo.display(), whole.display(), client.display());
    run(Command::new("sh").args(["-c", &script]));
    let options = Options { debuginfod: Some(Debuginfod::with_client(client.into())), ..Options::default() };
    let mut resolver = Resolver::new(files_below(&directory.0), options);
    let object = add(&mut resolver, 1, &stripped);
    assert_eq!(name(&mut resolver, object, address).unwrap(), "not yet");
    assert!(resolver.is_waiting());
    std::fs::write(&fifo, "go\n").unwrap();
    resolver.wait(Instant::now() + Duration::from_secs(60));
    assert!(!resolver.is_waiting());
    assert_eq!(name(&mut resolver, object, address).unwrap(), "not_exported+0x0");
    assert_eq!(resolver.lines(object, address)[0].line, Some(1));
}

#[test]
fn memory_is_bounded_and_evicted_symbols_are_read_again() {
    let directory = Directory::new();
    let (_, _, _) = program(&directory, &[]);
    let libraries: Vec<PathBuf> = (0..8)
        .map(|number| {
            let functions: String = (0..200).map(|i| format!("int function_{number}_{i}(void) {{ return {i}; }}\n")).collect();
            directory.compile(&format!("library{number}.c"), &functions, &["-shared", "-fPIC"])
        })
        .collect();
    let options = Options { memory_max: 30_000, ..Options::default() };
    let mut resolver = Resolver::new(files_below(&directory.0), options);
    let objects: Vec<ObjectId> = libraries.iter().zip(1..).map(|(path, inode)| add(&mut resolver, inode, path)).collect();
    for (number, path) in libraries.iter().enumerate() {
        let symbols = run(Command::new("nm").arg(path));
        let line = symbols.lines().find(|line| line.ends_with("_100")).unwrap();
        let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        assert_eq!(name(&mut resolver, objects[number], address).unwrap(), format!("function_{number}_100+0x0"));
        assert!(resolver.footprint() <= 30_000, "{}", resolver.footprint());
        let counted: usize = resolver.objects.iter().map(Object::footprint).sum();
        assert_eq!(resolver.footprint(), counted);
    }
}

/// A function of the test program, which has DWARF.
#[inline(never)]
fn marked_function(n: u64) -> u64 {
    std::hint::black_box(n) + 1
}

#[test]
fn a_function_of_this_test_program_has_a_symbol_and_lines() {
    let address = marked_function as fn(u64) -> u64 as usize as u64;
    assert_eq!(marked_function(1), 2);
    let path = std::env::current_exe().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let offset = maps.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (start, end) = fields[0].split_once('-').map(|(start, end)| (number(start), number(end)))?;
        (start..end).contains(&address).then(|| address - start + number(fields[2]))
    });
    let svma = ElfFile::read(bytes(&path)).unwrap().svma_of_offset(offset.unwrap()).unwrap();
    let mut resolver = Resolver::new(files_below(Path::new("/")), Options::default());
    let object = add(&mut resolver, 1, &path);
    assert_eq!(name(&mut resolver, object, svma).unwrap(), "rtrace::stack::symbols::resolver::tests::marked_function+0x0");
    let lines = resolver.lines(object, svma);
    let last = lines.last().unwrap();
    assert!(last.function.as_deref().unwrap().ends_with("marked_function"), "{last:?}");
    assert!(last.file.as_deref().unwrap().ends_with("resolver/tests.rs"), "{last:?}");
}

#[test]
fn a_resolver_can_be_sent_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Resolver<fn(Want<'_>) -> Option<Box<dyn ReadAt>>>>();
}
