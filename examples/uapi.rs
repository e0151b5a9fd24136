//! Compares the tables of `beauty/` with the headers of a kernel (see `beauty/README.md`, "Updating for a new kernel").

#[path = "../beauty/files.rs"]
mod files;
#[path = "../beauty/gen/mod.rs"]
mod generator;
#[path = "../beauty/gen/report.rs"]
mod report;

use anyhow::{Context, Result, bail};
use files::Headers;
use generator::generate::{Input, Rows, generate, parse};
use generator::header::Target;
use generator::library::Load;
use std::path::{Path, PathBuf};
use std::{env, fs};

const USAGE: &str = "expected one of: tables, unselected, commands, constants, headers, outdated, newer OLD_HEADERS, changed OLD_HEADERS, arch ABI ASM_DIRECTORY (RTRACE_UAPI=dir names headers other than the installed ones)";

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let headers = Headers::from_env();
    let load = loader(&headers);
    if words == ["tables"] {
        return tables(&load);
    }
    let rows = rows()?;
    let lines = match words[..] {
        ["unselected"] => report::unselected(&rows, &load),
        ["commands"] => report::unnamed_commands(&rows, &load, &report::header_names(&headers.directories)),
        ["constants"] => report::without_row(&rows, &load, &report::header_names(&headers.directories)),
        ["headers"] => vec![report::identity(&load, &report::header_names(&headers.directories))],
        ["outdated"] => report::outdated(&rows, &load),
        ["newer", old] => report::newer(&rows, &loader(&Headers::below(old.into())), &load),
        ["changed", old] => report::changed(&rows, &loader(&Headers::below(old.into())), &load),
        ["arch", abi, directory] => arch(&rows, &headers, abi, Path::new(directory))?,
        _ => bail!(USAGE),
    };
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Prints the tables that build.rs would generate, or the faults that it would report.
fn tables(load: &Load) -> Result<()> {
    let text = |path: &str| files::text(path).map_err(anyhow::Error::msg);
    let files = files::rows(Path::new("beauty")).map_err(anyhow::Error::msg)?;
    let custom_rs = text("src/beauty/custom.rs")?;
    let decoders_rs = files::rust(Path::new("src/beauty/decoders")).map_err(anyhow::Error::msg)?;
    match generate(&Input { files: &files, custom_rs: &custom_rs, decoders_rs: &decoders_rs, load }) {
        Ok(output) => {
            println!("{}{} bytes of Rust, and {} of the list of what is decoded", output.listing, output.rust.len(), output.coverage.len())
        }
        Err(faults) => {
            faults.iter().for_each(|fault| println!("{fault}"));
            bail!("the rows have {} faults", faults.len());
        }
    }
    Ok(())
}

fn rows() -> Result<Rows> {
    let files = files::rows(Path::new("beauty")).map_err(anyhow::Error::msg)?;
    let mut faults = Vec::new();
    let rows = parse(&files, &mut faults);
    match faults.first() {
        Some(fault) => bail!("{fault}"),
        None => Ok(rows),
    }
}

fn loader(headers: &Headers) -> impl Fn(&str) -> Option<String> {
    |name| headers.load(name).map(|(_, text)| text)
}

fn arch(rows: &Rows, headers: &Headers, abi: &str, directory: &Path) -> Result<Vec<String>> {
    let target = match abi {
        "x86_64" => Target::X86_64,
        "i386" => Target::I386,
        "x32" => Target::X32,
        "aarch64" => Target::Aarch64,
        _ => bail!("{abi} is not an ABI: use x86_64, i386, x32 or aarch64"),
    };
    let listing = fs::read_dir(directory.join("asm")).with_context(|| format!("failed to list {}/asm", directory.display()))?;
    let mut asm: Vec<String> = listing.filter_map(|entry| Some(format!("asm/{}", entry.ok()?.file_name().to_str()?))).collect();
    asm.sort();
    let own = |name: &str| {
        let path: PathBuf = directory.join(name);
        if name.starts_with("asm/") { fs::read_to_string(path).ok() } else { headers.load(name).map(|(_, text)| text) }
    };
    Ok(report::arch(rows, &loader(headers), &own, target, &asm))
}
