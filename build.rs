//! Generates the Rust tables of syscalls, constants and structs from `beauty/` (see `beauty/README.md`).
//!
//! The script reads the rows and the UAPI headers, runs the generator in `beauty/gen/`, and writes `OUT_DIR/tables.rs`.
//! A separate crate (`bpf-objects/`) compiles the BPF programs, so that a change of the tables does not recompile the
//! programs, and a change of the programs does not regenerate the tables.

#[path = "beauty/files.rs"]
mod files;
#[path = "beauty/gen/mod.rs"]
mod generator;

use generator::generate::{Input, generate};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

fn main() {
    if let Err(text) = write_tables() {
        eprintln!("{text}");
        process::exit(1);
    }
}

fn write_tables() -> Result<(), String> {
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
    for (name, text) in [("tables.rs", output.rust), ("tables.txt", output.listing), ("coverage.txt", output.coverage)] {
        fs::write(out.join(name), text).map_err(|error| format!("failed to write {}/{name}: {error}", out.display()))?;
    }
    Ok(())
}

fn out_dir() -> Result<PathBuf, String> {
    Ok(PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: cargo must run this script")?))
}
