//! Rows of `arch/numbers.tbl`: a syscall's number in x86-64, i386, x32 (without bit 30) and aarch64.

use super::fault::{Fault, Place, Row, is_name};

#[derive(Clone, Debug)]
pub struct NumberRow {
    pub place: Place,
    pub name: String,
    pub numbers: [Option<u32>; 4],
}

/// From here on a number is the same in all ABIs, so that the syscall's row carries it.
pub const COMMON_FROM: u32 = 424;

pub fn parse(row: &Row) -> Result<NumberRow, Fault> {
    let [name, numbers @ ..] = &row.fields[..] else { return Err(row.place.fault("a syscall needs a name")) };
    if !is_name(name) {
        return Err(row.place.fault(format!("`{name}` cannot be a syscall's name")));
    }
    let parsed: Result<Vec<Option<u32>>, _> =
        numbers.iter().map(|number| if *number == "-" { Ok(None) } else { number.parse().map(Some) }).collect();
    match parsed.map(<[Option<u32>; 4]>::try_from) {
        Ok(Ok(numbers)) if numbers.iter().flatten().all(|&number| number < 4096) => {
            Ok(NumberRow { place: row.place.clone(), name: name.to_string(), numbers })
        }
        _ => Err(row.place.fault(format!("{name} needs four numbers or `-`: x86-64, i386, x32 without bit 30, and aarch64"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    #[test]
    fn numbers_are_four() {
        let parsed = |text: &str| parse(&rows("n.tbl", text)[0]).map_err(|fault| fault.to_string());
        assert_eq!(parsed("open 2 5 2 -").expect("good").numbers, [Some(2), Some(5), Some(2), None]);
        for bad in ["open 2 5 2", "open 2 5 x 1", "open 2 5 1073741826 1", "o-p 1 1 1 1"] {
            assert!(parsed(bad).expect_err(bad).starts_with("n.tbl:1: "));
        }
    }
}
