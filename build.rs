//! Makes the string tables of `beauty/` (see `beauty/README.md`).

fn main() {
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("tables.rs");
    let text = "pub static SYSCALLS: &[Syscall] = &[];\npub static TABLES: &[&Table] = &[];\npub static STRUCTS: &[&Struct] = &[];\n/// Rows by number, per ABI; `u16::MAX` where there is none.\npub static BY_NUMBER: [&[u16]; 4] = [&[], &[], &[], &[]];\n/// Names of numbers without a row.\npub static OTHER_NAMES: &[(crate::event::Abi, u32, &str)] = &[];\n";
    if let Err(error) = std::fs::write(&out, text) {
        eprintln!("{}: {error}", out.display());
        std::process::exit(1);
    }
}
