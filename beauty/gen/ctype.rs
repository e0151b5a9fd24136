//! C types in casts and sizeof: their sizes and whether they are signed.

use super::int::Names;
use super::lex::Token;

/// The operand of a cast or of sizeof.
pub struct Type {
    pub bytes: u64,
    pub signed: bool,
}

/// Returns the type that the tokens name, or `None` if they name no known type.
pub fn type_of(tokens: &[Token], names: &dyn Names) -> Option<Type> {
    let mut words = Vec::new();
    for token in tokens {
        match token {
            Token::Name(word) if word == "const" || word == "__force" => {}
            Token::Name(word) => words.push(word.as_str()),
            Token::Sign("*") => words.push("*"),
            _ => return None,
        }
    }
    if words.last() == Some(&"*") {
        return Some(Type { bytes: names.word(), signed: false });
    }
    let signed = !words.contains(&"unsigned");
    let plain: Vec<&str> = words.iter().copied().filter(|word| !matches!(*word, "unsigned" | "signed" | "int")).collect();
    let bytes = match &plain[..] {
        [] if !words.is_empty() => 4,
        ["char"] => 1,
        ["short"] => 2,
        ["long"] => names.word(),
        ["long", "long"] => 8,
        ["enum", _] => 4,
        ["struct" | "union", name] => return Some(Type { bytes: names.size(name)?, signed: false }),
        [name] => return named_type(name, names),
        _ => return None,
    };
    Some(Type { bytes, signed })
}

/// Returns the type of a single name. The width is part of names like `__u32`, `uint32_t`, `u32` and `__be16`; other
/// names are those of the kernel's headers or of structs.
fn named_type(name: &str, names: &dyn Names) -> Option<Type> {
    let word = names.word();
    let (bytes, signed) = match name {
        "size_t" | "__kernel_size_t" | "__kernel_ulong_t" | "__sighandler_t" => (word, false),
        "ssize_t" | "__kernel_ssize_t" | "__kernel_long_t" | "__kernel_off_t" | "off_t" => (word, true),
        "loff_t" | "__kernel_loff_t" => (8, true),
        "__kernel_key_t" | "__kernel_pid_t" | "__kernel_clockid_t" | "__kernel_mqd_t" => (4, true),
        "bool" => (1, false),
        "compat_ulong_t" | "__poll_t" | "__kernel_rwf_t" | "dev_t" => (4, false),
        _ => {
            let core = name.trim_start_matches('_').trim_end_matches("_t");
            let digits = core.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let bytes = match digits {
                "8" => 1,
                "16" => 2,
                "32" => 4,
                "64" => 8,
                _ => return Some(Type { bytes: names.size(name)?, signed: false }),
            };
            match &core[..core.len() - digits.len()] {
                "u" | "be" | "le" | "uint" => (bytes, false),
                "s" | "int" => (bytes, true),
                _ => return Some(Type { bytes: names.size(name)?, signed: false }),
            }
        }
    };
    Some(Type { bytes, signed })
}
