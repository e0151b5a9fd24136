//! Measures the time and memory for looking up names and source lines of addresses.

use rtrace::symbols::{
    CodeSymbols, ElfFile, Files, Identity, KernelNames, LiveFiles, Name, ObjectId, Options, Origin, ReadAt, Resolver, SymbolTable, Want,
    kallsyms,
};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).filter(|argument| argument != "--bench").map(PathBuf::from).collect();
    let files = if arguments.is_empty() { usual_files() } else { arguments };
    for file in files {
        measure(&file);
    }
    measure_kernel();
}

/// Returns the C library, a large C++ library, and this program with its debug information.
fn usual_files() -> Vec<PathBuf> {
    let candidates = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"];
    let there = candidates.iter().map(PathBuf::from).filter(|path| path.exists());
    there.chain(std::env::current_exe()).collect()
}

/// Returns the same file every time, without a check of its identity.
fn find(want: Want<'_>) -> Option<Box<dyn ReadAt>> {
    match want {
        Want::Again { origin, .. } => LiveFiles.find(Want::Path { path: &origin.path, seen_by: None }),
        want => LiveFiles.find(want),
    }
}

fn measure(path: &Path) {
    println!("{}", path.display());
    let Some(first) = table(path) else { return println!("  it has no symbols") };
    let read = (0..5).map(|_| timed(|| table(path)).0).min();
    println!("  symbols            {:>10}, {} bytes", first.len(), first.footprint());
    println!("  reading them       {:>10.1?}", read.unwrap_or_default());
    let addresses = scattered(&first);
    let mut resolver = Resolver::new(find as fn(Want<'_>) -> Option<Box<dyn ReadAt>>, Options::default());
    let Some(object) = object(&mut resolver, path) else { return };
    let cold = each(&addresses, |svma| resolve(&mut resolver, object, svma));
    let again = each(&addresses, |svma| resolve(&mut resolver, object, svma));
    let few: Vec<u64> = addresses.iter().take(64).cycle().take(64_000).copied().collect();
    let hot = each(&few, |svma| resolve(&mut resolver, object, svma));
    println!("  an address         {cold:>7} ns the first time, {again} again, {hot} of 64 hot ones; {} bytes", resolver.footprint());
    let (first_time, _) = timed(|| resolver.lines(object, addresses[0]).len());
    let few = &addresses[1..addresses.len().min(300)];
    let cold = each(few, |svma| resolver.lines(object, svma).len());
    let near = each(few, |svma| resolver.lines(object, svma + 1).len());
    let again = each(few, |svma| resolver.lines(object, svma).len());
    println!(
        "  its lines          {first_time:.1?} for the first, {cold} ns others, {near} near them, {again} again; {} bytes",
        resolver.footprint()
    );
}

fn measure_kernel() {
    let (read, text) = timed(kallsyms);
    let Ok(text) = text else { return };
    let mut names = KernelNames::default();
    let (parse, _) = timed(|| names.at(u64::MAX, Instant::now(), || Ok(text)).is_some());
    println!("/proc/kallsyms\n  reading it         {read:>10.1?}, and parsing it {parse:.1?}");
}

fn table(path: &Path) -> Option<SymbolTable> {
    let file = ElfFile::read(LiveFiles.find(Want::Path { path, seen_by: None })?).ok()?;
    let mut code = CodeSymbols::default();
    code.add(&file);
    code.add_stubs(&file);
    Some(code.finish()).filter(|table| !table.is_empty())
}

fn object<F: Files>(resolver: &mut Resolver<F>, path: &Path) -> Option<ObjectId> {
    let identity = Identity { device: 0, inode: 1, size: 0, modified: (0, 0), owner: 0 };
    let source = LiveFiles.find(Want::Path { path, seen_by: None })?;
    resolver.object(identity, Origin { pid: 0, path: path.to_owned() }, source).ok()
}

fn resolve<F: Files>(resolver: &mut Resolver<F>, object: ObjectId, svma: u64) -> usize {
    match resolver.resolve(object, svma) {
        Name::Symbol { name, .. } => name.len(),
        Name::Unknown | Name::NotYet => 0,
    }
}

/// Returns the middle of each symbol, in random order.
fn scattered(table: &SymbolTable) -> Vec<u64> {
    let mut addresses: Vec<u64> = table.iter().map(|(start, size, _)| start + size / 2).collect();
    let mut random = 12_345u64;
    for at in (1..addresses.len()).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        addresses.swap(at, (random >> 33) as usize % (at + 1));
    }
    addresses
}

/// Returns the nanoseconds per address.
fn each(addresses: &[u64], mut ask: impl FnMut(u64) -> usize) -> u128 {
    let (time, _) = timed(|| addresses.iter().map(|svma| ask(*svma)).sum::<usize>());
    time.as_nanos() / addresses.len().max(1) as u128
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let value = black_box(work());
    (start.elapsed(), value)
}
