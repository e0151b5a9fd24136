//! Finds the function of a name in a file's symbols.

use super::file::{ProgramFile, shown};
use crate::probe::grammar::When;
use crate::probe::surroundings::Surroundings;
use crate::stack::symbols::ElfFile;
use crate::stack::symbols::alias::Binding;
use crate::stack::symbols::demangle::{demangle, is_mangled};
use crate::stack::symbols::listing::{self, DefinedSymbol, SymbolKind};
use crate::text::near;
use anyhow::bail;

/// A function, or a label in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name in the symbol table: mangled, without a version.
    pub name: String,
    /// The address of the first instruction, as the symbol states it.
    pub svma: u64,
    /// The size in bytes; 0 if it is not known.
    pub size: u64,
    /// A remark that other functions have the same name, if this one was preferred.
    pub note: Option<String>,
}

impl Function {
    /// Returns the address `offset` bytes into the function.
    ///
    /// # Errors
    /// The address is outside of the function, or a return probe has an offset other than 0.
    pub fn at(&self, offset: i64, when: When) -> anyhow::Result<u64> {
        let name = self.name.escape_debug();
        if offset != 0 && when != When::Entry {
            bail!("a return probe is on a whole function: {name}, without {offset:+}");
        }
        let is_within = offset == 0 || u64::try_from(offset).is_ok_and(|offset| self.size == 0 || offset < self.size);
        match self.svma.checked_add_signed(offset) {
            Some(svma) if is_within => Ok(svma),
            _ => bail!("{name}{offset:+} is not in {name}, which has {} bytes", self.size),
        }
    }
}

/// A symbol with the wanted name.
#[derive(Clone, Debug)]
struct Candidate {
    name: String,
    svma: u64,
    size: u64,
    binding: Binding,
    kind: SymbolKind,
    /// Whether it is the default version, with which programs are linked, or has no version.
    is_default: bool,
    source: Option<String>,
}

/// Maximum number of functions in a message.
const LISTED_MAX: usize = 8;

/// Finds the function with this name: `open`, `open@GLIBC_2.2.5` if there are several versions, or `ns::Class::method`
/// if only one function has this name.
///
/// # Errors
/// There is no such function, several functions have the name, or the symbol is data or an IFUNC resolver.
pub fn find(file: &mut ProgramFile, wanted: &str, surroundings: &mut dyn Surroundings) -> anyhow::Result<Function> {
    let path = shown(&file.path);
    let packed = file.packed_symbols();
    let files: Vec<&ElfFile> = file.symbol_files(surroundings).into_iter().chain(packed.as_ref()).collect();
    let mut named = gather(&files, |symbol| is_called(symbol, wanted));
    if !named.iter().any(|candidate| candidate.kind.is_code()) {
        named.extend(gather(&files, |symbol| symbol.kind.is_code() && is_demangled(symbol.name, wanted)));
    }
    let is_data = !named.is_empty();
    named.retain(|candidate| candidate.kind.is_code());
    let wanted = wanted.escape_debug().to_string();
    let offset = |svma: u64| files[0].offset_of_svma(svma).map_or(0, |(offset, _)| offset);
    match prefer(named) {
        Preferred { one: None, others } if others.is_empty() && is_data => bail!("{wanted} of {path} is data, not code"),
        Preferred { one: None, others } if others.is_empty() => bail!("{path} has no function {wanted}{}", hint(&files, &wanted)),
        Preferred { one: None, others } => {
            let list: Vec<String> = others.iter().take(LISTED_MAX).map(|one| described(one, offset(one.svma))).collect();
            let more = if others.len() > LISTED_MAX { ", ..." } else { "" };
            bail!(
                "{path} has {} functions {wanted}: {}{more}; give the offset of the one you mean, as in {path}:{:#x}",
                others.len(),
                list.join(", "),
                offset(others[0].svma)
            )
        }
        Preferred { one: Some(one), .. } if one.kind == SymbolKind::Ifunc => {
            bail!(
                "{wanted} of {path} is an IFUNC resolver, which is called once to choose the function; name the chosen function{}",
                hint(&files, &wanted)
            )
        }
        Preferred { one: Some(one), others } => {
            let also: Vec<String> = others.iter().take(LISTED_MAX).map(|other| described(other, offset(other.svma))).collect();
            let note = (!also.is_empty()).then(|| format!("{path} has other functions {wanted}: {}", also.join(", ")));
            Ok(Function { name: one.name, svma: one.svma, size: one.size, note })
        }
    }
}

/// The function that contains an address.
pub struct ContainingFunction {
    /// The name in the symbol table: mangled, without a version.
    pub name: String,
    /// The address of the first instruction, as the symbol states it.
    pub svma: u64,
    /// Whether no other function has this name.
    pub is_alone: bool,
}

/// Finds the function that contains an address. If it has several names, a global one is preferred.
pub fn containing(file: &mut ProgramFile, svma: u64, surroundings: &mut dyn Surroundings) -> Option<ContainingFunction> {
    let files = file.symbol_files(surroundings);
    let holds = |symbol: &DefinedSymbol<'_>| {
        symbol.kind == SymbolKind::Function && svma.checked_sub(symbol.svma).is_some_and(|into| into < symbol.size)
    };
    let best = gather(&files, holds).into_iter().min_by_key(|candidate| (candidate.binding, candidate.name.len()))?;
    let mut named = gather(&files, |symbol| symbol.name == best.name.as_bytes());
    named.sort_by_key(|candidate| candidate.svma);
    named.dedup_by_key(|candidate| candidate.svma);
    Some(ContainingFunction { is_alone: named.len() == 1, name: best.name, svma: best.svma })
}

/// Returns the symbols of static data, sorted by address.
pub fn data(file: &mut ProgramFile, surroundings: &mut dyn Surroundings) -> Vec<(u64, String)> {
    let found = gather(&file.symbol_files(surroundings), |symbol| symbol.kind == SymbolKind::Data);
    let mut symbols: Vec<(u64, String)> = found.into_iter().map(|candidate| (candidate.svma, candidate.name)).collect();
    symbols.sort_unstable();
    symbols
}

/// The symbols of a name: the preferred one, if there is one, and the others.
struct Preferred {
    one: Option<Candidate>,
    others: Vec<Candidate>,
}

/// Selects the function for a name: a default version is preferred over an old version, and a global symbol over a
/// local one.
fn prefer(mut named: Vec<Candidate>) -> Preferred {
    // The symbol tables of several files may have the same symbol.
    named.sort_by_key(|candidate| (candidate.svma, !candidate.is_default, candidate.binding, candidate.source.is_none()));
    named.dedup_by_key(|candidate| candidate.svma);
    if named.iter().any(|candidate| candidate.is_default) {
        named.retain(|candidate| candidate.is_default);
    }
    let seen = |candidate: &Candidate| candidate.binding != Binding::Local;
    let one = match named.len() {
        1 => Some(0),
        _ => named.iter().position(seen).filter(|_| named.iter().filter(|candidate| seen(candidate)).count() == 1),
    };
    Preferred { one: one.map(|at| named.remove(at)), others: named }
}

fn gather(files: &[&ElfFile], mut is_meant: impl FnMut(&DefinedSymbol<'_>) -> bool) -> Vec<Candidate> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut found = Vec::new();
    for file in files {
        listing::each(file, &mut |symbol| {
            if is_meant(&symbol) {
                found.push(Candidate {
                    name: text(symbol.name),
                    svma: symbol.svma,
                    size: symbol.size,
                    binding: symbol.binding,
                    kind: symbol.kind,
                    is_default: symbol.version.is_none_or(|version| version.is_default),
                    source: symbol.source.map(text),
                });
            }
        });
    }
    found
}

/// Compares a symbol with `name`, `name@VERSION` or `name@@VERSION`.
fn is_called(symbol: &DefinedSymbol<'_>, wanted: &str) -> bool {
    let (name, version) = listing::split(wanted.as_bytes());
    symbol.name == name && version.is_none_or(|wanted| symbol.version.is_some_and(|version| version.name == wanted.name))
}

/// Returns whether a symbol's demangled name is the wanted one, with or without parameters.
fn is_demangled(name: &[u8], wanted: &str) -> bool {
    if !is_mangled(name) {
        return false;
    }
    let bare = |name: &str| name.split('(').next().is_some_and(|name| name == wanted);
    demangle(name).is_some_and(|name| name == wanted || bare(&name))
}

/// Formats a function's offset in the file and its source file for a message: `0x1234 (app.c)`.
fn described(candidate: &Candidate, offset: u64) -> String {
    match &candidate.source {
        Some(source) => format!("{offset:#x} ({})", source.escape_debug()),
        None => format!("{offset:#x}"),
    }
}

/// Returns a hint with similar names; names that a compiler derived from the wanted one (`name.isra.0`) are preferred.
fn hint(files: &[&ElfFile], wanted: &str) -> String {
    const NEAR_MAX: usize = 5;
    let mut names = Vec::new();
    for file in files {
        listing::each(file, &mut |symbol| {
            if matches!(symbol.kind, SymbolKind::Function | SymbolKind::Label) {
                names.push(demangle(symbol.name).unwrap_or_else(|| String::from_utf8_lossy(symbol.name).into_owned()));
            }
        });
    }
    names.retain(|name| name != wanted);
    names.sort_unstable();
    names.dedup();
    let made = names.iter().filter(|name| name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.')));
    let mut shown: Vec<String> = made.take(NEAR_MAX).map(|name| name.escape_debug().to_string()).collect();
    if shown.is_empty() {
        let nearest = near::nearest(wanted, names.iter().map(String::as_str), NEAR_MAX);
        shown = nearest.iter().map(|name| name.escape_debug().to_string()).collect();
    }
    near::hint(&shown)
}

#[cfg(test)]
mod tests;
