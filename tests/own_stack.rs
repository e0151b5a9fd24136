//! A program that unwinds its own stack, with libgcc's unwinder, and prints what it unwound: the frames found here are the same. Needs a C compiler; no privileges.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rtrace::event::frame::{End, Frame};
use rtrace::stack::image::Image;
use rtrace::stack::registers::{Architecture, Registers};
use rtrace::stack::space::AddressSpace;
use rtrace::stack::unwind::{Sampled, Unwinder};

/// What the program printed.
struct OwnStack {
    registers: Registers,
    words: Vec<u64>,
    space: AddressSpace,
    frames: Vec<u64>,
}

#[test]
fn frames_are_those_that_the_program_finds_itself() {
    for (kind, flags) in [
        ("dynamic", "-O2 -pie -fPIE"),
        ("fixed", "-O2 -no-pie -fno-pie"),
        ("static", "-O2 -static"),
        ("static-pie", "-O2 -static-pie"),
        ("unoptimized", "-O0 -fno-omit-frame-pointer"),
        ("aligned", "-O2 -mstackrealign"),
    ] {
        if !cfg!(target_arch = "x86_64") && kind == "aligned" {
            continue;
        }
        let program = compile("cc", kind, flags);
        for way in ["deep", "aligned", "callback", "signal", "thread"] {
            let Some(architecture) = Architecture::host() else { return };
            check(&mut Command::new(&program), way, architecture, &format!("{kind} {way}"));
        }
        if cfg!(target_arch = "x86_64") {
            check(&mut Command::new(&program), "bare-signal", Architecture::X86_64, &format!("{kind} bare-signal"));
        }
    }
}

/// Its own unwinder cannot read these tables, so it is only known how many frames there are.
#[test]
fn a_program_may_have_its_tables_compressed_and_for_debuggers_only() {
    let Some(architecture) = Architecture::host() else { return };
    let plain = compile("cc", "tables", "-O2");
    let packed = compile("cc", "packed-tables", "-O2 -g -gz -fno-asynchronous-unwind-tables -fno-unwind-tables");
    let [(_, plain, _), (_, packed, end)] = [plain, packed].map(|program| unwind(&mut Command::new(program), "deep", architecture));
    assert!(plain.len() > 22);
    assert_eq!((packed.len(), end), (plain.len(), End::Root));
}

/// Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user.
#[test]
fn frames_of_an_aarch64_program_are_those_that_it_finds_itself() {
    for (tool, argument) in [("aarch64-linux-gnu-gcc", "--version"), ("qemu-aarch64", "--version")] {
        if Command::new(tool).arg(argument).output().is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED frames of an aarch64 program: there is no {tool}; nothing was tested");
            return;
        }
    }
    for (kind, flags) in [
        ("aarch64", "-O2 -static"),
        ("aarch64-signed", "-O2 -static -mbranch-protection=pac-ret+leaf -march=armv8.3-a"),
        ("aarch64-plain", "-O2 -static -fomit-frame-pointer"),
    ] {
        let program = compile("aarch64-linux-gnu-gcc", kind, flags);
        for way in ["deep", "aligned", "callback", "signal", "thread"] {
            check(Command::new("qemu-aarch64").args(["-cpu", "max"]).arg(&program), way, Architecture::Aarch64, &format!("{kind} {way}"));
        }
    }
}

fn compile(compiler: &str, kind: &str, flags: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("own_stack-{kind}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/own_stack.c");
    let output = Command::new(compiler).args(flags.split(' ')).arg("-pthread").arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(output.status.success(), "{compiler} {flags}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

fn check(program: &mut Command, way: &str, architecture: Architecture, what: &str) {
    let (stack, frames, end) = unwind(program, way, architecture);
    // The innermost one is in one function, but not at one instruction.
    let ours: Vec<_> = frames.iter().map(|frame| format!("{:x}", frame.avma)).skip(1).collect();
    let own: Vec<_> = stack.frames.iter().map(|frame| format!("{frame:x}")).skip(1).collect();
    assert!(own.len() > 2, "{what} finds only {own:?}");
    assert_eq!(ours, own, "{what}: {end:?}");
    assert_eq!(end, End::Root, "{what}");
}

fn unwind(program: &mut Command, way: &str, architecture: Architecture) -> (OwnStack, Vec<Frame>, End) {
    let output = program.arg(way).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stack = read(&String::from_utf8(output.stdout).unwrap(), architecture);
    let stack_pointer = stack.registers.stack_pointer().unwrap();
    let read_word = |address: u64| stack.words.get((address.checked_sub(stack_pointer)? / 8) as usize).copied();
    let mut frames = Vec::new();
    let unwound = Unwinder::default().unwind(&stack.registers, Sampled::At, &stack.space, read_word, 100, &mut frames);
    (stack, frames, unwound.end)
}

fn read(printed: &str, architecture: Architecture) -> OwnStack {
    let mut stack =
        OwnStack { registers: Registers::new(architecture), words: Vec::new(), space: AddressSpace::default(), frames: Vec::new() };
    let mut images = HashMap::new();
    let hexadecimal = |word: &str| u64::from_str_radix(word, 16).unwrap();
    for line in printed.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["register", number, value] => stack.registers.set(number.parse().unwrap(), hexadecimal(value)),
            ["word", value] => stack.words.push(hexadecimal(value)),
            ["frame", value] => stack.frames.push(hexadecimal(value)),
            ["map", range, permissions, offset, _, _, path] if permissions.contains('x') && path.starts_with('/') => {
                let (start, end) = range.split_once('-').unwrap();
                let image =
                    images.entry(path.to_owned()).or_insert_with(|| Arc::new(Image::read(Box::new(std::fs::read(path).unwrap())).unwrap()));
                stack.space.map_image(hexadecimal(start)..hexadecimal(end), image.clone(), hexadecimal(offset));
            }
            ["map", range, permissions, ..] if permissions.contains('x') => {
                let (start, end) = range.split_once('-').unwrap();
                stack.space.map_code(hexadecimal(start)..hexadecimal(end));
            }
            _ => {}
        }
    }
    stack
}
