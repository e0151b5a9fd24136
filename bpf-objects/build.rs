//! Has clang compile the programs of `src/bpf/` to `OUT_DIR/rtrace.bpf.o`, and once more for kernels before 6.2. CLANG
//! names another compiler than `clang`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process, thread};

/// The repository, as seen from here. The C files stand beside the Rust code that they exchange records with.
const REPOSITORY: &str = "..";
const FOLDER: &str = "src/bpf";
const PROGRAMS: &str = "src/bpf/rtrace.bpf.c";

const ADVICE: &str = "the BPF engine needs clang (apt-get install clang); --no-default-features builds without it";

fn main() {
    if let Err(text) = inputs().and_then(|()| objects()) {
        eprintln!("{text}");
        process::exit(1);
    }
}

fn inputs() -> Result<(), String> {
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

fn objects() -> Result<(), String> {
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => return Err(format!("the BPF engine is not made for {other:?}: build with --no-default-features")),
    };
    let libbpf = env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys did not say where libbpf's headers are".to_owned())?;
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this by cargo")?);
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
    // Side by side: each takes clang seconds.
    thread::scope(|scope| {
        let plain_loads = scope.spawn(|| compile("rtrace.bpf.o", &["-DPLAIN_LOADS"]));
        compile("rtrace-by-helper.bpf.o", &[])?;
        plain_loads.join().map_err(|_| "the thread that ran clang panicked".to_owned())?
    })
}
