//! Tests that the frames of rtrace's stacks are those that gdb finds in the same process at the same call, for 400
//! calls in each of six builds of three programs.
//!
//! rtrace traces gdb, which stops the program at the return of each marked call (`gdb.py`). Both unwind the same
//! stacks, so all frames must be the same. rtrace names a frame by its function, or by file and address if no symbol
//! contains the address; the former is compared with gdb's name, the latter with gdb's address.

use crate::compiled::compiled;
use crate::machine::Machine;
use crate::needs::unsupported;
use crate::stacks::{self, Frame};
use crate::trace::{Trace, trace};
use goblin::elf::{Elf, program_header::PT_LOAD};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

const STOPS: &str = "400";

/// A frame that gdb found.
#[derive(Debug)]
struct GdbFrame {
    pc: u64,
    mapping: u64,
    offset: u64,
    file: String,
    name: Option<String>,
}

/// The stacks by the number (tag) that each marked call has as its offset.
type Stops<F> = BTreeMap<u64, Vec<F>>;

#[test]
fn frames_in_c_are_those_of_gdb() {
    let Some(machine) = machine_with_gdb() else { return };
    let Some(library) = compiled(&machine, "cc", &["-O2", "-shared", "-fPIC"], "stacks/library.c", "library.so") else { return };
    for options in [&["-O2"][..], &["-O2", "-s"]] {
        let Some(program) = compiled(&machine, "cc", options, "stacks/walk.c", "walk") else { return };
        compare(&machine, &[&program, STOPS, &library]);
    }
    // gdb does not see libraries that a static program loads.
    let Some(program) = compiled(&machine, "cc", &["-O2", "-s", "-static"], "stacks/walk.c", "walk-static") else { return };
    compare(&machine, &[&program, STOPS]);
}

#[test]
fn frames_in_cpp_are_those_of_gdb() {
    let Some(machine) = machine_with_gdb() else { return };
    for options in [&["-O2", "-std=c++17"][..], &["-O2", "-std=c++17", "-s"]] {
        let Some(program) = compiled(&machine, "c++", options, "stacks/walk.cc", "walk") else { return };
        compare(&machine, &[&program, STOPS]);
    }
}

#[test]
fn frames_in_python_are_those_of_gdb() {
    let Some(machine) = machine_with_gdb() else { return };
    // gdb needs the executable itself, but `python3` may be a script that starts it.
    let program = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let Some(program) = program.ok().filter(|run| run.status.success()) else { return unsupported("no python3") };
    let program = String::from_utf8_lossy(&program.stdout);
    compare(&machine, &[program.trim(), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/stacks/walk.py"), STOPS]);
}

/// Returns the machine if it has a gdb with Python.
fn machine_with_gdb() -> Option<Machine> {
    let machine = Machine::shared()?;
    let found = Command::new("gdb").args(["-nx", "-batch", "-ex", "python print('there')"]).output();
    if found.is_ok_and(|run| run.stdout.starts_with(b"there")) {
        return Some(machine);
    }
    unsupported("no gdb with Python");
    None
}

fn compare(machine: &Machine, program: &[&str]) {
    let output = machine.path("stacks");
    let variable = format!("python STACKS = {output:?}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/gdb.py");
    let command = [&["gdb", "-nx", "-batch", "-ex", &variable, "-x", script, "--args"], program].concat();
    let trace = trace(machine, &["-e", "lseek", "--filter", "whence == 9", "--call-graph", "dwarf,60K"], &command).succeeded();
    assert_eq!(trace.verdict().lost, 0);
    let output = std::fs::read_to_string(&output).unwrap_or_else(|error| panic!("{output}: {error}\n{}", trace.stdout));
    let (theirs, ours) = (theirs(&output), ours(&trace));
    assert_eq!((theirs.len().to_string().as_str(), ours.len()), (STOPS, theirs.len()), "{}\n{}", trace.stdout, trace.stderr);
    let mut files = Files::default();
    for (tag, theirs) in &theirs {
        let ours = ours.get(tag).map(Vec::as_slice).unwrap_or_default();
        let equal = ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| files.are_same(ours, theirs));
        assert!(equal, "call {tag} of {program:?}\n{}", files.side_by_side(ours, theirs));
    }
}

/// Parses the output of `gdb.py`.
fn theirs(output: &str) -> Stops<GdbFrame> {
    let mut stops = Stops::new();
    let mut tag = 0;
    for line in output.lines() {
        if let Some(number) = line.strip_prefix("stop ") {
            tag = number.parse().expect("a number follows");
            assert!(stops.insert(tag, Vec::new()).is_none(), "two calls have the number {tag}");
            continue;
        }
        let (place, name) = line.split_once('\t').expect("the name comes last");
        let words: Vec<&str> = place.splitn(5, ' ').collect();
        let number = |at: usize| words[at].parse().expect("the addresses are numbers");
        let frame = GdbFrame {
            pc: number(1),
            mapping: number(2),
            offset: number(3),
            file: words[4].to_owned(),
            name: Some(name.to_owned()).filter(|name| name != "-"),
        };
        stops.entry(tag).or_default().push(frame);
    }
    stops
}

fn ours(trace: &Trace) -> Stops<Frame> {
    let mut stops = Stops::new();
    let mut lines = trace.text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((_, offset)) = line.split_once(" lseek(fd: -1, offset: ") else { continue };
        let tag = offset.split(',').next().and_then(|number| number.parse().ok()).expect("the offset is a number");
        let mut frames = Vec::new();
        while let Some(frame) = lines.peek().and_then(|line| stacks::frame(line)) {
            frames.push(frame);
            lines.next();
        }
        assert!(stops.insert(tag, frames).is_none(), "call {tag} has two lines");
    }
    stops
}

/// The segments and symbols of the ELF files in the stacks.
#[derive(Default)]
struct Files(HashMap<String, File>);

#[derive(Default)]
struct File {
    /// The start and end of each segment in the file, and its address.
    segments: Vec<(u64, u64, u64)>,
    /// The address ranges of functions, by their symbol names.
    functions: HashMap<String, Vec<std::ops::Range<u64>>>,
}

impl Files {
    fn are_same(&mut self, ours: &Frame, theirs: &GdbFrame) -> bool {
        let file = self.0.entry(theirs.file.clone()).or_insert_with(|| File::read(&theirs.file));
        let svma = file.svma(theirs);
        match (&theirs.name, ours.file.as_str()) {
            (None, "") => ours.name == format!("{}+{svma:#x}", theirs.file),
            (Some(name), path) => {
                path == theirs.file && (of_source(&ours.name) == of_source(name) || file.is_one_function(&ours.name, name, svma))
            }
            (None, _) => false,
        }
    }

    fn side_by_side(&mut self, ours: &[Frame], theirs: &[GdbFrame]) -> String {
        let mut text = String::new();
        for at in 0..ours.len().max(theirs.len()) {
            let same = ours.get(at).zip(theirs.get(at)).is_some_and(|(ours, theirs)| self.are_same(ours, theirs));
            let ours = ours.get(at).map(|frame| format!("{} ({})", frame.name, frame.file)).unwrap_or_default();
            let theirs = theirs.get(at).map(|theirs| format!("{:x} {:?} {}", theirs.pc, theirs.name, theirs.file)).unwrap_or_default();
            text += &format!("{} {ours:60} {theirs}\n", if same { ' ' } else { '!' });
        }
        text
    }
}

/// Returns the name that a function has in its source, without the suffix of a copy that the compiler created: for
/// `sort.part.0`, GNU's demangler prints `sort [clone .part.0]`, and gdb prints `sort` if it has debug information.
fn of_source(name: &str) -> &str {
    let end = [" [clone .", ".cold", ".part.", ".isra.", ".constprop."].iter().filter_map(|mark| name.find(mark)).min();
    &name[..end.unwrap_or(name.len())]
}

impl File {
    fn read(path: &str) -> File {
        let mut file = File::default();
        let Ok(bytes) = std::fs::read(path) else { return file };
        let elf = Elf::parse(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        let segments = elf.program_headers.iter().filter(|segment| segment.p_type == PT_LOAD);
        file.segments = segments.map(|segment| (segment.p_offset, segment.p_offset + segment.p_filesz, segment.p_vaddr)).collect();
        file.add_functions(&elf);
        let notes = elf.iter_note_sections(&bytes, Some(".note.gnu.build-id"));
        let identity = notes.and_then(|mut notes| notes.next()?.ok()).map(|note| note.desc.to_owned()).unwrap_or_default();
        let digits: String = identity.iter().map(|byte| format!("{byte:02x}")).collect();
        // gdb reads names from the separate debug file as well.
        let debug_file = digits.split_at_checked(2).map(|(first, rest)| format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
        if let Some(bytes) = debug_file.filter(|path| Path::new(path).exists()).and_then(|path| std::fs::read(path).ok())
            && let Ok(elf) = Elf::parse(&bytes)
        {
            file.add_functions(&elf);
        }
        file
    }

    fn add_functions(&mut self, elf: &Elf) {
        for (symbols, names) in [(&elf.syms, &elf.strtab), (&elf.dynsyms, &elf.dynstrtab)] {
            for symbol in symbols.iter().filter(|symbol| symbol.st_shndx != 0) {
                let name = names.get_at(symbol.st_name).unwrap_or_default().to_owned();
                self.functions.entry(name).or_default().push(symbol.st_value..symbol.st_value + symbol.st_size);
            }
        }
    }

    fn svma(&self, frame: &GdbFrame) -> u64 {
        let offset = frame.pc - frame.mapping + frame.offset;
        let segment = self.segments.iter().find(|(start, end, _)| (*start..*end).contains(&offset));
        segment.map_or(frame.pc, |(start, _, address)| offset - start + address)
    }

    /// Returns whether two names are symbols of the same function.
    fn is_one_function(&self, one: &str, other: &str, svma: u64) -> bool {
        let at =
            |name: &str| self.functions.get(name)?.iter().find(|range| (range.start..=range.end).contains(&svma)).map(|range| range.start);
        at(one).is_some() && at(one) == at(other)
    }
}
