//! The width and sign of a C type's values, by the type's name in a format file.
//!
//! Widths are those of the 64-bit machines that rtrace supports. A typedef that is not listed is [`CType::Other`], for
//! which the field's own size and sign apply.

/// The kind of a C type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CType {
    /// Plain `char`. An array of it is text.
    Char,
    Bool,
    /// A signed integer and its size in bytes.
    Signed(u8),
    /// An unsigned integer and its size in bytes.
    Unsigned(u8),
    Pointer,
    /// A struct, an enum, or an unknown typedef.
    Other,
}

impl CType {
    /// Returns the kind of a type, by its name (`const unsigned int`, `pid_t`, `struct x *`).
    pub fn of(type_name: &str) -> CType {
        if type_name.contains('*') {
            return CType::Pointer;
        }
        let mut words =
            type_name.split_whitespace().filter(|word| !matches!(*word, "const" | "volatile" | "__user" | "__kernel")).peekable();
        match words.peek() {
            Some(&("unsigned" | "signed" | "long" | "short" | "int" | "char")) => arithmetic(words),
            Some(word) => typedef(word),
            None => CType::Other,
        }
    }

    /// Returns the size of a value in bytes, if the type determines it.
    pub fn bytes(self) -> Option<u8> {
        match self {
            CType::Char | CType::Bool => Some(1),
            CType::Signed(bytes) | CType::Unsigned(bytes) => Some(bytes),
            CType::Pointer => Some(8),
            CType::Other => None,
        }
    }
}

/// Returns the kind of a type whose name has C's keywords only.
fn arithmetic<'a>(words: impl Iterator<Item = &'a str>) -> CType {
    let (mut bytes, mut unsigned, mut signed) = (4, false, false);
    for word in words {
        match word {
            "unsigned" => unsigned = true,
            "signed" => signed = true,
            "long" => bytes = 8,
            "short" => bytes = 2,
            "char" => bytes = 1,
            "int" => {}
            _ => return CType::Other,
        }
    }
    match (unsigned, bytes) {
        (true, _) => CType::Unsigned(bytes),
        (false, 1) if !signed => CType::Char,
        (false, _) => CType::Signed(bytes),
    }
}

/// Returns the kind of one of the kernel's typedefs that occur in syscalls' arguments and in tracepoints
/// (include/linux/types.h and others).
fn typedef(word: &str) -> CType {
    match word {
        "bool" | "_Bool" => CType::Bool,
        "u8" | "__u8" | "uint8_t" => CType::Unsigned(1),
        "u16" | "__u16" | "uint16_t" | "umode_t" | "__be16" | "__le16" => CType::Unsigned(2),
        "u32" | "__u32" | "uint32_t" | "uint" | "uid_t" | "gid_t" | "dev_t" | "gfp_t" | "qid_t" | "__be32" | "__le32" => CType::Unsigned(4),
        "u64" | "__u64" | "uint64_t" | "size_t" | "ino_t" | "sector_t" | "aio_context_t" | "cap_user_header_t" | "cap_user_data_t" => {
            CType::Unsigned(8)
        }
        "s8" | "__s8" | "int8_t" => CType::Signed(1),
        "s16" | "__s16" | "int16_t" => CType::Signed(2),
        "s32" | "__s32" | "int32_t" | "pid_t" | "key_t" | "key_serial_t" | "timer_t" | "clockid_t" | "mqd_t" | "rwf_t" => CType::Signed(4),
        "s64" | "__s64" | "int64_t" | "ssize_t" | "loff_t" | "off_t" | "time64_t" | "ktime_t" => CType::Signed(8),
        _ => CType::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_determine_width_and_sign() {
        assert_eq!(CType::of("int"), CType::Signed(4));
        assert_eq!(CType::of("const unsigned int"), CType::Unsigned(4));
        assert_eq!(CType::of("unsigned"), CType::Unsigned(4));
        assert_eq!(CType::of("unsigned long long"), CType::Unsigned(8));
        assert_eq!(CType::of("unsigned char"), CType::Unsigned(1));
        assert_eq!(CType::of("signed char"), CType::Signed(1));
        assert_eq!(CType::of("char"), CType::Char);
        assert_eq!(CType::of("const char *const *"), CType::Pointer);
        assert_eq!(CType::of("pid_t"), CType::Signed(4));
        assert_eq!(CType::of("enum zone_type"), CType::Other);
        assert_eq!(CType::of("xfs_ino_t"), CType::Other);
        assert_eq!(CType::of(""), CType::Other);
    }
}
