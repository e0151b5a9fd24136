//! Rows of `structs/*.tbl`: a name, and its bytes in x86-64, i386, x32 and aarch64.

use super::fault::{Fault, Place, Row, is_name};

#[derive(Clone, Debug)]
pub struct StructRow {
    pub place: Place,
    pub name: String,
    pub sizes: [u32; 4],
}

pub fn parse(row: &Row) -> Result<StructRow, Fault> {
    let [name, sizes @ ..] = &row.fields[..] else { return Err(row.place.fault("a struct needs a name")) };
    if !is_name(name) {
        return Err(row.place.fault(format!("`{name}` cannot be a struct's name")));
    }
    let parsed: Result<Vec<u32>, _> = sizes.iter().map(|size| size.parse()).collect();
    match parsed.map(<[u32; 4]>::try_from) {
        Ok(Ok(sizes)) => Ok(StructRow { place: row.place.clone(), name: name.to_string(), sizes }),
        _ => Err(row.place.fault(format!("{name} needs four sizes: bytes in x86-64, i386, x32 and aarch64"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    #[test]
    fn sizes_are_four() {
        let parsed = |text: &str| parse(&rows("s.tbl", text)[0]).map_err(|fault| fault.to_string());
        assert_eq!(parsed("timespec 16 8 16 16 # x").expect("good").sizes, [16, 8, 16, 16]);
        assert!(parsed("timespec 16 8 16").expect_err("three").starts_with("s.tbl:1: timespec needs four sizes"));
        assert!(parsed("timespec 16 8 x 16").is_err());
        assert!(parsed("1x 1 1 1 1").is_err());
    }
}
