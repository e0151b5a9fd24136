//! Compares the unwinder with libgcc's: a program unwinds its own stack and prints its registers, stack, mappings and
//! frames. The test needs a C compiler, and no privileges.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rtrace::events::{Frame, StackEnd};
use rtrace::unwinding::{AddressSpace, Architecture, Image, Registers, Sampled, Unwinder};

/// The output of the program.
struct OwnStack {
    registers: Registers,
    words: Vec<u64>,
    space: AddressSpace,
    frames: Vec<u64>,
}

#[test]
fn frames_agree_with_those_of_libgcc() {
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
        for scene in ["deep", "aligned", "callback", "signal", "thread"] {
            let Some(architecture) = Architecture::host() else { return };
            check(&mut Command::new(&program), scene, architecture, &format!("{kind} {scene}"));
        }
        if cfg!(target_arch = "x86_64") {
            check(&mut Command::new(&program), "bare-signal", Architecture::X86_64, &format!("{kind} bare-signal"));
        }
    }
}

/// libgcc cannot read these tables, so only the number of frames is compared.
#[test]
fn compressed_debug_frame_tables_are_used() {
    let Some(architecture) = Architecture::host() else { return };
    let plain = compile("cc", "tables", "-O2");
    let compressed = compile("cc", "compressed-tables", "-O2 -g -gz -fno-asynchronous-unwind-tables -fno-unwind-tables");
    let [(_, plain, _), (_, compressed, end)] = [plain, compressed].map(|program| unwind(&mut Command::new(program), "deep", architecture));
    assert!(plain.len() > 22);
    assert_eq!((compressed.len(), end), (plain.len(), StackEnd::Root));
}

/// On Debian, the test needs the packages gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user.
#[test]
fn frames_of_an_aarch64_program_agree_with_those_of_libgcc() {
    for (tool, argument) in [("aarch64-linux-gnu-gcc", "--version"), ("qemu-aarch64", "--version")] {
        if Command::new(tool).arg(argument).output().is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED frames of an aarch64 program: {tool} is not installed; nothing was tested");
            return;
        }
    }
    for (kind, flags) in [
        ("aarch64", "-O2 -static"),
        ("aarch64-signed", "-O2 -static -mbranch-protection=pac-ret+leaf -march=armv8.3-a"),
        ("aarch64-plain", "-O2 -static -fomit-frame-pointer"),
    ] {
        let program = compile("aarch64-linux-gnu-gcc", kind, flags);
        for scene in ["deep", "aligned", "callback", "signal", "thread"] {
            let mut command = Command::new("qemu-aarch64");
            check(command.args(["-cpu", "max"]).arg(&program), scene, Architecture::Aarch64, &format!("{kind} {scene}"));
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

/// Unwinds the stack of one scene and compares the frames.
fn check(program: &mut Command, scene: &str, architecture: Architecture, what: &str) {
    let (stack, frames, end) = unwind(program, scene, architecture);
    // The innermost frames are in the same function, but at different instructions.
    let ours: Vec<_> = frames.iter().map(|frame| format!("{:x}", frame.avma)).skip(1).collect();
    let own: Vec<_> = stack.frames.iter().map(|frame| format!("{frame:x}")).skip(1).collect();
    assert!(own.len() > 2, "{what} finds only {own:?}");
    assert_eq!(ours, own, "{what}: {end:?}");
    assert_eq!(end, StackEnd::Root, "{what}");
}

/// Runs the program, and unwinds the stack that it printed.
fn unwind(program: &mut Command, scene: &str, architecture: Architecture) -> (OwnStack, Vec<Frame>, StackEnd) {
    let output = program.arg(scene).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stack = read(&String::from_utf8(output.stdout).unwrap(), architecture);
    let stack_pointer = stack.registers.stack_pointer().unwrap();
    let read_word = |address: u64| stack.words.get((address.checked_sub(stack_pointer)? / 8) as usize).copied();
    let mut frames = Vec::new();
    let unwound = Unwinder::default().unwind(&stack.registers, Sampled::At, &stack.space, read_word, 100, &mut frames);
    (stack, frames, unwound.end)
}

/// Parses the output of the program.
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
