//! Mangled names of Rust and C++ as their programmers wrote them.

use cpp_demangle::{DemangleOptions, ParseOptions};
use std::fmt::{self, Write};

/// A name that is longer is shown as it is: taking it apart costs more than anybody reads.
const MANGLED_MAX: usize = 8 << 10;
/// Names may refer to parts of themselves, so a short one can stand for a very long one.
const DEMANGLED_MAX: usize = 64 << 10;
/// Of C++ names within names; each level costs stack.
const DEPTH_MAX: u32 = 96;

/// The name in its language; `None` if it is not mangled, not well-formed or too long. Rust's hashes are left out, C++'s parameters are kept.
pub fn demangle(name: &[u8]) -> Option<String> {
    let name = str::from_utf8(name).ok().filter(|name| is_mangled(name.as_bytes()) && name.len() <= MANGLED_MAX)?;
    rust(name).or_else(|| cpp(name))
}

/// By its beginning.
pub fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    write!(text, "{demangled:#}").ok()?;
    Some(text.0)
}

/// With what a compiler or the linkage table appends to a name: `.cold`, `.isra.0`, `@plt`.
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
    // An empty pack of template arguments leaves its comma behind.
    Some(if text.0.contains(", >") { text.0.replace(", >", ">") } else { text.0 })
}

/// Text that refuses to grow.
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
    fn both_languages() {
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
    fn names_that_grow_without_end() {
        // Each substitution doubles what is before it.
        let doubling = format!("_Z1fI{}EvT_", (0..40).map(|i| format!("1aIS{i}_S{i}_E")).collect::<String>());
        assert!(demangle(doubling.as_bytes()).is_none_or(|text| text.len() <= DEMANGLED_MAX));
        let deep = format!("_Z1f{}i", "P".repeat(5_000));
        assert!(demangle(deep.as_bytes()).is_none_or(|text| text.len() <= DEMANGLED_MAX));
        assert_eq!(demangle(format!("_ZN{}E", "1a".repeat(10_000)).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn any_name(name in "_(Z|R)[A-Za-z0-9_.@]{0,60}") {
            let _ = demangle(name.as_bytes());
        }
    }
}
