//! Makes the tables of `beauty/` (see `beauty/README.md`): reads files, lets `beauty/gen/` work, writes `OUT_DIR/tables.rs`. With the feature `bpf`, it also lets clang compile
//! the programs of `src/bpf/` to `OUT_DIR/rtrace.bpf.o`, and once more for kernels before 6.2.

#[path = "beauty/files.rs"]
mod files;
#[path = "beauty/gen/mod.rs"]
mod generator;

use generator::generate::{Input, generate};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

fn main() {
    if let Err(text) = tables().and_then(|()| if env::var_os("CARGO_FEATURE_BPF").is_some() { programs() } else { Ok(()) }) {
        eprintln!("{text}");
        process::exit(1);
    }
}

fn tables() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed={}", files::UAPI_VARIABLE);
    for input in ["build.rs", "beauty", "src/beauty/custom.rs", "src/beauty/decoders"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let headers = files::Headers::from_env();
    let load = |name: &str| {
        let (path, text) = headers.load(name)?;
        println!("cargo::rerun-if-changed={}", path.display());
        Some(text)
    };
    let rows = files::rows(Path::new("beauty"))?;
    let output = generate(&Input {
        files: &rows,
        custom_rs: &files::text("src/beauty/custom.rs")?,
        decoders_rs: &files::rust(Path::new("src/beauty/decoders"))?,
        load: &load,
    })
    .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let out = out_dir()?;
    for (name, text) in [("tables.rs", output.rust), ("tables.txt", output.listing)] {
        fs::write(out.join(name), text).map_err(|error| format!("failed to write {}/{name}: {error}", out.display()))?;
    }
    Ok(())
}

fn out_dir() -> Result<PathBuf, String> {
    Ok(PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this by cargo")?))
}

/// Compiles the BPF programs. CLANG names another compiler than `clang`.
fn programs() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed=CLANG");
    for source in fs::read_dir("src/bpf").map_err(|error| format!("cannot list src/bpf: {error}"))?.flatten() {
        let path = source.path();
        if path.extension().is_some_and(|ending| ending == "h" || ending == "c") {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => return Err(format!("the BPF engine is not made for {other:?}: build with --no-default-features")),
    };
    let libbpf = env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys did not say where libbpf's headers are".to_owned())?;
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let compile = |object: &str, define: &[&str]| {
        let status = Command::new(&clang)
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", &format!("-D__TARGET_ARCH_{arch}"), "-I", &libbpf])
            .args(define)
            .args(["-c", "src/bpf/rtrace.bpf.c", "-o"])
            .arg(out_dir()?.join(object))
            .status();
        let advice = "the BPF engine needs clang (apt-get install clang); --no-default-features builds without it";
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{clang} failed on src/bpf/rtrace.bpf.c: {status}")),
            Err(error) => Err(format!("cannot run {clang}: {error}; {advice}")),
        }
    };
    compile("rtrace.bpf.o", &["-DPLAIN_LOADS"])?;
    compile("rtrace-by-helper.bpf.o", &[])
}
