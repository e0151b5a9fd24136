//! The constants that are printed for the fields of a tracepoint, by their names.

use super::{FieldDecoder, by_format, row};
use crate::beauty::constant::Constants;
use crate::beauty::row::{Return, Syscall};
use crate::beauty::tables::SYSCALLS;
use crate::event::Abi;
use crate::kernel::constant::Constant;
use crate::kernel::format::Format;
use crate::kernel::print_fmt::PrintFormat;

/// Returns the constants that a field of this event is printed with; none if it is printed as a number. `abi` is the
/// machine's own.
pub fn constants(format: &Format, field: &str, abi: Abi) -> Constants {
    if let Some(row) = format.name.strip_prefix("sys_enter_").and_then(row) {
        let argument = row.args.iter().find(|arg| arg.name == field);
        return argument.map(|arg| Constants::of_kind(&arg.kind, abi)).unwrap_or_default();
    }
    if format.name.starts_with("sys_exit_") && field == "ret" {
        return Constants::of_return(Return::Long, abi);
    }
    if matches!(format.name.as_str(), "sys_enter" | "sys_exit") && field == "id" {
        return Constants::printed(numbers(abi));
    }
    let Some(field) = format.field(field) else { return Constants::default() };
    match by_format(field, &PrintFormat::parse(&format.print)) {
        FieldDecoder::Named(naming, _) if field.signed => Constants::printed(naming.constants().into_iter().map(signed).collect()),
        FieldDecoder::Named(naming, _) => Constants::printed(naming.constants()),
        FieldDecoder::Signal => Constants::of_signal(),
        _ => Constants::default(),
    }
}

/// Returns the names and numbers of the syscalls of an ABI.
fn numbers(abi: Abi) -> Vec<(String, Constant)> {
    let named = |row: &Syscall| Some((row.name.to_owned(), Constant { value: row.numbers[abi as usize]?.into(), mask: u64::MAX }));
    SYSCALLS.iter().filter_map(named).collect()
}

/// Returns the constant of a signed field. A print format has the number without its sign.
fn signed((name, constant): (String, Constant)) -> (String, Constant) {
    match constant.mask {
        u64::MAX => (name, Constant { value: i128::from(constant.value as u64 as i64), ..constant }),
        _ => (name, constant),
    }
}
