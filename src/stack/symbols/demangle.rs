//! Demangles symbol names of Rust and C++.

use cpp_demangle::{DemangleOptions, ParseOptions};
use std::fmt::{self, Write};

/// The greatest length of a name that is demangled. Longer ones take too much time.
const MANGLED_MAX: usize = 8 << 10;
/// The greatest length of a demangled name. A name may refer to parts of itself, so a short mangled name can stand for
/// a very long one.
const DEMANGLED_MAX: usize = 64 << 10;
/// The greatest nesting of C++ names. Each level takes stack space.
const DEPTH_MAX: u32 = 96;

/// Demangles a name. Returns `None` if it is not mangled, malformed or too long. Rust's hashes are left out, C++'s
/// parameters are kept.
pub fn demangle(name: &[u8]) -> Option<String> {
    let name = str::from_utf8(name).ok().filter(|name| is_mangled(name.as_bytes()) && name.len() <= MANGLED_MAX)?;
    rust(name).or_else(|| cpp(name))
}

/// Whether a name has the prefix of mangled names.
pub fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    write!(text, "{demangled:#}").ok()?;
    Some(text.0)
}

/// Demangles a C++ name, and keeps a suffix that the compiler or the PLT appended: `.cold`, `.isra.0`, `@plt`.
fn cpp(name: &str) -> Option<String> {
    let (mangled, suffix) = match name.find(['.', '@']) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    let options = ParseOptions::default().recursion_limit(DEPTH_MAX);
    let symbol = cpp_demangle::Symbol::new_with_options(mangled, &options).ok()?;
    let mut text = Bounded::default();
    symbol.structured_demangle(&mut text, &DemangleOptions::default().recursion_limit(DEPTH_MAX)).ok()?;
    text.write_str(suffix).ok()?;
    // The demangler prints a comma before an empty pack of template arguments.
    Some(if text.0.contains(", >") { text.0.replace(", >", ">") } else { text.0 })
}

/// Text of [`DEMANGLED_MAX`] bytes at most.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > DEMANGLED_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_rust_and_cpp_are_demangled() {
        let shown = |name: &str| demangle(name.as_bytes());
        assert_eq!(shown("_ZN3std2io5stdio6_print17h0123456789abcdefE").unwrap(), "std::io::stdio::_print");
        assert_eq!(shown("_RNvC6_123foo3bar").unwrap(), "123foo::bar");
        assert_eq!(shown("_ZNSt6vectorIiSaIiEE9push_backEOi").unwrap(), "std::vector<int, std::allocator<int> >::push_back(int&&)");
        assert_eq!(shown("_Z3foov.cold").unwrap(), "foo().cold");
        assert_eq!(shown("_Znwm@plt").unwrap(), "operator new(unsigned long)@plt");
        let empty_pack = shown("_ZN4llvm15AnalysisManagerINS_6ModuleEJEE5clearEv").unwrap();
        assert_eq!(empty_pack, "llvm::AnalysisManager<llvm::Module>::clear()");
        for plain in ["main", "_start", "_Z", "_ZZZZ", "", "__libc_start_main", "ZNot"] {
            assert_eq!(shown(plain), None, "{plain}");
        }
    }

    #[test]
    fn names_that_demangle_to_very_long_ones_are_bounded() {
        // Each substitution doubles the length.
        let doubling = format!("_Z1fI{}EvT_", (0..40).map(|i| format!("1aIS{i}_S{i}_E")).collect::<String>());
        assert!(demangle(doubling.as_bytes()).is_none_or(|text| text.len() <= DEMANGLED_MAX));
        let deep = format!("_Z1f{}i", "P".repeat(5_000));
        assert!(demangle(deep.as_bytes()).is_none_or(|text| text.len() <= DEMANGLED_MAX));
        assert_eq!(demangle(format!("_ZN{}E", "1a".repeat(10_000)).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn random_names_cause_no_panic(name in "_(Z|R)[A-Za-z0-9_.@]{0,60}") {
            let _ = demangle(name.as_bytes());
        }
    }
}
