//! Rows of `arch/numbers.tbl`: the number of a syscall in x86-64, i386, x32 (without bit 30) and aarch64.

use super::fault::{Fault, Location, Row, is_name};

#[derive(Clone, Debug)]
pub struct NumberRow {
    pub location: Location,
    pub name: String,
    pub numbers: [Option<u32>; 4],
}

/// From this number on, syscalls have the same number in all ABIs. Their own rows contain it (`name@N`).
pub const COMMON_FROM: u32 = 424;

pub fn parse(row: &Row) -> Result<NumberRow, Fault> {
    let [name, numbers @ ..] = &row.fields[..] else { return Err(row.location.fault("the name of the syscall is missing")) };
    if !is_name(name) {
        return Err(row.location.fault(format!("`{name}` is not a valid name of a syscall")));
    }
    let parsed: Result<Vec<Option<u32>>, _> =
        numbers.iter().map(|number| if *number == "-" { Ok(None) } else { number.parse().map(Some) }).collect();
    match parsed.map(<[Option<u32>; 4]>::try_from) {
        Ok(Ok(numbers)) if numbers.iter().flatten().all(|&number| number < 4096) => {
            Ok(NumberRow { location: row.location.clone(), name: name.to_string(), numbers })
        }
        _ => Err(row.location.fault(format!("{name} needs four numbers (or `-`): in x86-64, i386, x32 (without bit 30) and aarch64"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    #[test]
    fn a_row_needs_four_numbers() {
        let parsed = |text: &str| parse(&rows("n.tbl", text)[0]).map_err(|fault| fault.to_string());
        assert_eq!(parsed("open 2 5 2 -").expect("good").numbers, [Some(2), Some(5), Some(2), None]);
        for bad in ["open 2 5 2", "open 2 5 x 1", "open 2 5 1073741826 1", "o-p 1 1 1 1"] {
            assert!(parsed(bad).expect_err(bad).starts_with("n.tbl:1: "));
        }
    }
}
