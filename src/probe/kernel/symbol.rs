//! Explains why the kernel may have refused the name of a function or of data.

use crate::probe::grammar::{Fetch, KernelPlace, Probe, ProbePoint};
use crate::probe::surroundings::Surroundings;
use crate::stack::symbols::kallsyms::Line;
use crate::text::near;
use std::borrow::Cow;

/// Explains what is wrong with the name of the probed function, or of the data that the probe reads. To be called after
/// the kernel refused the probe: a check before would take longer than creating it.
pub fn doubt(probe: &Probe, surroundings: &mut dyn Surroundings) -> Option<String> {
    let (module, symbol) = match &probe.place {
        ProbePoint::Kernel { at: KernelPlace::Symbol { module, symbol, .. }, .. } => (module.as_deref(), symbol),
        ProbePoint::Function { name, .. } if !name.contains(['*', '?']) => (None, name),
        _ => return None,
    };
    let kallsyms = surroundings.kallsyms().ok()?;
    let data = || probe.args.iter().filter_map(|arg| read_symbol(&arg.value)).find_map(|symbol| explain_data(symbol, &kallsyms));
    explain_function(symbol, module, &kallsyms).or_else(data)
}

/// Returns the symbol in a value such as `+8(@symbol)`.
fn read_symbol(value: &Fetch) -> Option<&str> {
    match value {
        Fetch::AtSymbol { symbol, .. } => Some(symbol),
        Fetch::Memory { of, .. } => read_symbol(of),
        _ => None,
    }
}

fn explain_data(wanted: &str, kallsyms: &[u8]) -> Option<String> {
    let symbols = || kallsyms.split(|byte| *byte == b'\n').filter_map(Line::parse);
    if symbols().any(|symbol| symbol.name() == wanted.as_bytes()) {
        return None;
    }
    let near = near::nearest(wanted, symbols().filter_map(|symbol| str::from_utf8(symbol.name()).ok()), 5);
    Some(format!("the kernel has no symbol {wanted}{}", near::hint(&near)).escape_debug().to_string())
}

/// Explains what is wrong with the name of a function, by the text of /proc/kallsyms.
fn explain_function(wanted: &str, module: Option<&str>, kallsyms: &[u8]) -> Option<String> {
    let in_module = |symbol: &Line<'_>| module.is_none_or(|module| symbol.owner == module.as_bytes());
    let symbols = || kallsyms.split(|byte| *byte == b'\n').filter_map(Line::parse).filter(in_module);
    let named: Vec<Line<'_>> = symbols().filter(|symbol| symbol.name() == wanted.as_bytes()).collect();
    let shown = wanted.escape_debug();
    let place = module.map_or("the kernel".to_owned(), |module| format!("the module {}", module.escape_debug()));
    match &named[..] {
        [] => {
            let functions = symbols().filter(|symbol| symbol.code.is_some()).filter_map(|symbol| str::from_utf8(symbol.name()).ok());
            let near = near::nearest(wanted, functions, 5);
            Some(format!("{place} has no function {shown}{}", near::hint(&near)).escape_debug().to_string())
        }
        [one] if one.code.is_none() => Some(format!("{shown} is data of {place}, not code")),
        [_] => None,
        several => {
            let modules: Vec<Cow<'_, str>> = several.iter().map(owner).collect();
            Some(format!(
                "{place} has {} functions {shown} (in {}), so the name is ambiguous; write MODULE:{shown}, or an address (from /proc/kallsyms)",
                several.len(),
                modules.join(", ").escape_debug()
            ))
        }
    }
}

/// Returns the owner of a symbol (the kernel or a module) for a message.
fn owner<'a>(symbol: &Line<'a>) -> Cow<'a, str> {
    match symbol.owner {
        b"" => "the kernel itself".into(),
        module => String::from_utf8_lossy(module),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"0000000000000000 T vfs_read\n0000000000000000 t helper\n0000000000000000 t helper\t[ext4]\n\
        0000000000000000 D jiffies\n0000000000000000 T vfs_write\n0000000000000000 t only_there\t[ext4]\nodd line\n";

    #[test]
    fn wrong_names_are_explained() {
        let doubt = |name| explain_function(name, None, TEXT);
        assert_eq!(doubt("vfs_read"), None);
        assert_eq!(doubt("vfs_raed").unwrap(), "the kernel has no function vfs_raed; similar: vfs_read");
        assert_eq!(doubt("jiffies").unwrap(), "jiffies is data of the kernel, not code");
        let twice = doubt("helper").unwrap();
        assert!(twice.starts_with("the kernel has 2 functions helper (in the kernel itself, ext4), so the name is ambiguous"), "{twice}");
        assert_eq!(explain_data("jiffies", TEXT), None);
        assert_eq!(explain_data("jiffie", TEXT).unwrap(), "the kernel has no symbol jiffie; similar: jiffies");
        assert_eq!(explain_function("helper", Some("ext4"), TEXT), None);
        assert_eq!(explain_function("vfs_read", Some("ext4"), TEXT).unwrap(), "the module ext4 has no function vfs_read");
    }
}
