//! Why the kernel may not have taken a function's name.

use crate::cli::near;
use crate::probe::grammar::{KernelPlace, Place, Probe};
use crate::probe::surroundings::Surroundings;

/// What is wrong with the function that a probe is on, if it is its name: to be said after the kernel refused it. Looking that up before would take longer than
/// making the probe.
pub fn doubt(probe: &Probe, surroundings: &mut dyn Surroundings) -> Option<String> {
    let (module, symbol) = match &probe.place {
        Place::Kernel { at: KernelPlace::Symbol { module, symbol, .. }, .. } => (module.as_deref(), symbol),
        Place::Function { name, .. } if !name.contains(['*', '?']) => (None, name),
        _ => return None,
    };
    doubt_of(symbol, module, &surroundings.kallsyms().ok()?)
}

/// By the text of /proc/kallsyms.
fn doubt_of(wanted: &str, module: Option<&str>, kallsyms: &[u8]) -> Option<String> {
    let symbols = || kallsyms.split(|byte| *byte == b'\n').filter_map(Symbol::parse);
    let in_module = |symbol: &Symbol<'_>| module.is_none_or(|module| symbol.module == Some(module));
    let named: Vec<Symbol<'_>> = symbols().filter(|symbol| symbol.name == wanted && in_module(symbol)).collect();
    let shown = wanted.escape_debug();
    let place = module.map_or("the kernel".to_owned(), |module| format!("the module {}", module.escape_debug()));
    match &named[..] {
        [] => {
            let near = near::nearest(wanted, symbols().filter(|symbol| symbol.is_code && in_module(symbol)).map(|symbol| symbol.name), 5);
            Some(format!("{place} has no function {shown}{}", near::hint(&near)).escape_debug().to_string())
        }
        [one] if !one.is_code => Some(format!("{shown} is data of {place}, not code")),
        [_] => None,
        several => {
            let modules: Vec<&str> = several.iter().map(|symbol| symbol.module.unwrap_or("the kernel itself")).collect();
            Some(format!(
                "{place} has {} functions {shown} (in {}), and takes none of them by that name alone; name the module, or an address (/proc/kallsyms has it)",
                several.len(),
                modules.join(", ").escape_debug()
            ))
        }
    }
}

/// `ffffffff81000000 T name\t[module]`
struct Symbol<'a> {
    name: &'a str,
    is_code: bool,
    module: Option<&'a str>,
}

impl<'a> Symbol<'a> {
    fn parse(line: &'a [u8]) -> Option<Symbol<'a>> {
        let mut words = str::from_utf8(line).ok()?.split([' ', '\t']);
        let (_, kind, name) = (words.next()?, words.next()?, words.next()?);
        let module = words.next().and_then(|module| module.strip_prefix('[')?.strip_suffix(']'));
        Some(Symbol { name, is_code: matches!(kind, "t" | "T" | "w" | "W"), module })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"0000000000000000 T vfs_read\n0000000000000000 t helper\n0000000000000000 t helper\t[ext4]\n\
        0000000000000000 D jiffies\n0000000000000000 T vfs_write\n0000000000000000 t only_there\t[ext4]\nodd line\n";

    #[test]
    fn what_is_wrong_with_a_name() {
        let doubt = |name| doubt_of(name, None, TEXT);
        assert_eq!(doubt("vfs_read"), None);
        assert_eq!(doubt("vfs_raed").unwrap(), "the kernel has no function vfs_raed; near: vfs_read");
        assert_eq!(doubt("jiffies").unwrap(), "jiffies is data of the kernel, not code");
        let twice = doubt("helper").unwrap();
        assert!(twice.starts_with("the kernel has 2 functions helper (in the kernel itself, ext4), and takes none"), "{twice}");
        assert_eq!(doubt_of("helper", Some("ext4"), TEXT), None);
        assert_eq!(doubt_of("vfs_read", Some("ext4"), TEXT).unwrap(), "the module ext4 has no function vfs_read");
    }
}
