//! Compiles the programs of `src/bpf/` with clang: to `OUT_DIR/rtrace.bpf.o`, and for kernels before 6.2 to
//! `OUT_DIR/rtrace-by-helper.bpf.o`. The environment variable CLANG names a compiler other than `clang`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process, thread};

/// The repository, relative to this crate. The C files are next to the Rust code with which they exchange records.
const REPOSITORY: &str = "..";
const FOLDER: &str = "src/bpf";
const PROGRAMS: &str = "src/bpf/rtrace.bpf.c";

const ADVICE: &str = "the BPF engine needs clang (apt-get install clang); --no-default-features builds without it";

fn main() {
    if let Err(text) = declare_inputs().and_then(|()| compile_objects()) {
        eprintln!("{text}");
        process::exit(1);
    }
}

fn declare_inputs() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CLANG");
    for source in fs::read_dir(Path::new(REPOSITORY).join(FOLDER)).map_err(|error| format!("cannot list {FOLDER}: {error}"))?.flatten() {
        let path = source.path();
        if path.extension().is_some_and(|ending| ending == "h" || ending == "c") {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Ok(())
}

fn compile_objects() -> Result<(), String> {
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => return Err(format!("the BPF engine does not support the architecture {other:?}: build with --no-default-features")),
    };
    let libbpf = env::var("DEP_BPF_INCLUDE")
        .map_err(|_| "DEP_BPF_INCLUDE is not set: libbpf-sys did not name the directory of libbpf's headers".to_owned())?;
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: cargo must run this script")?);
    let compile = |object: &str, define: &[&str]| {
        let status = Command::new(&clang)
            .current_dir(REPOSITORY)
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", &format!("-D__TARGET_ARCH_{arch}"), "-I", &libbpf])
            .args(define)
            .args(["-c", PROGRAMS, "-o"])
            .arg(out.join(object))
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{clang} failed on {PROGRAMS}: {status}")),
            Err(error) => Err(format!("cannot run {clang}: {error}; {ADVICE}")),
        }
    };
    // In parallel, because each compilation takes seconds.
    thread::scope(|scope| {
        let plain_loads = scope.spawn(|| compile("rtrace.bpf.o", &["-DPLAIN_LOADS"]));
        compile("rtrace-by-helper.bpf.o", &[])?;
        plain_loads.join().map_err(|_| "the thread that ran clang panicked".to_owned())?
    })
}
