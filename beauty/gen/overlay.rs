//! Rows of the overlays: `newer.tbl`, `kernel.tbl` and `arch/ABI.tbl`.

use super::fault::{Fault, Location, Row, is_name};
use super::header::Target;

/// A constant that an overlay defines: a line of `newer.tbl` or `kernel.tbl`.
#[derive(Clone, Debug)]
pub struct ConstantRow {
    pub location: Location,
    pub name: String,
    /// An expression without blanks.
    pub value: String,
    /// The UAPI header that defines it in newer kernels, or the file in the kernel's source.
    pub header: String,
}

/// A constant whose value in one ABI is not that of x86-64: a line of `arch/ABI.tbl`.
#[derive(Clone, Debug)]
pub struct ArchRow {
    pub location: Location,
    pub target: Target,
    pub name: String,
    /// `None` where the ABI does not have the constant.
    pub value: Option<String>,
    /// The header that the constant belongs to, if x86-64 does not have the constant.
    pub header: Option<String>,
}

/// Parses a line of `newer.tbl`: `NAME value since header`.
pub fn parse_newer(row: &Row) -> Result<ConstantRow, Fault> {
    match row.fields[..] {
        [name, value, since, header] if since.contains('.') && header.ends_with(".h") => constant(row, name, value, header),
        _ => Err(row.location.fault("a line of newer.tbl consists of a name, a value, the first kernel version, and the header")),
    }
}

/// Parses a line of `kernel.tbl`: `NAME value file`.
pub fn parse_kernel(row: &Row) -> Result<ConstantRow, Fault> {
    match row.fields[..] {
        [name, value, file] => constant(row, name, value, file),
        _ => Err(row.location.fault("a line of kernel.tbl consists of a name, a value, and the file in the kernel's source")),
    }
}

/// Parses a line of `arch/ABI.tbl`: `NAME value`, `NAME -`, or `NAME value header`.
pub fn parse_arch(row: &Row, target: Target) -> Result<ArchRow, Fault> {
    let (name, value, header) = match row.fields[..] {
        [name, value] => (name, value, None),
        [name, value, header] if value != "-" && (header.ends_with(".h") || header == "kernel.tbl") => {
            (name, value, Some(header.to_string()))
        }
        _ => {
            let text = "a line consists of a name, a value (or `-`), and the header if x86-64 does not have the constant";
            return Err(row.location.fault(text));
        }
    };
    if !is_name(name) {
        return Err(row.location.fault(format!("`{name}` is not a valid name of a constant")));
    }
    let value = (value != "-").then(|| value.to_string());
    Ok(ArchRow { location: row.location.clone(), target, name: name.to_string(), value, header })
}

fn constant(row: &Row, name: &str, value: &str, header: &str) -> Result<ConstantRow, Fault> {
    if !is_name(name) {
        return Err(row.location.fault(format!("`{name}` is not a valid name of a constant")));
    }
    Ok(ConstantRow { location: row.location.clone(), name: name.into(), value: value.into(), header: header.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    #[test]
    fn valid_lines_are_parsed() {
        let newer = parse_newer(&rows("n", "MAP_DROPPABLE 0x08 6.11 linux/mman.h")[0]).expect("good");
        assert_eq!((newer.name.as_str(), newer.value.as_str(), newer.header.as_str()), ("MAP_DROPPABLE", "0x08", "linux/mman.h"));
        let kernel = parse_kernel(&rows("k", "AF_INET 2 include/linux/socket.h")[0]).expect("good");
        assert_eq!((kernel.name.as_str(), kernel.header.as_str()), ("AF_INET", "include/linux/socket.h"));
        let arch = |text: &str| parse_arch(&rows("a", text)[0], Target::Aarch64).expect(text);
        assert_eq!(arch("O_DIRECT 0x10000").value.as_deref(), Some("0x10000"));
        assert_eq!(arch("MAP_32BIT -").value, None);
        assert_eq!(arch("PROT_BTI 0x10 kernel.tbl").header.as_deref(), Some("kernel.tbl"));
    }

    #[test]
    fn invalid_lines_are_errors() {
        for bad in ["A 1 6.2", "A 1 linux/a.h 6.2", "1A 1 6.2 a.h"] {
            assert!(parse_newer(&rows("n", bad)[0]).expect_err(bad).to_string().starts_with("n:1: "));
        }
        assert!(parse_kernel(&rows("k", "AF_INET 2")[0]).is_err());
        for bad in ["A", "A - a.h", "A 1 x", "A-B 1"] {
            assert!(parse_arch(&rows("a", bad)[0], Target::I386).is_err(), "{bad}");
        }
    }
}
