//! Names of ioctl commands.
//!
//! A command's number does not determine its driver: several drivers may use one number, and only the file behind the
//! descriptor tells them apart. Where the file does not help, all names are shown, as alternatives.

use super::file;
use super::row::{CommandTable, ConstantTable};
use super::tables::{COMMAND_ALTERNATIVES, COMMAND_TABLES, COMMANDS};
use super::value::Value;
use crate::event::{Abi, File};
use crate::text::glob;

/// The bit of an index in [`COMMANDS`] that says that tables of certain files have the number.
const OF_FILES: u16 = 0x8000;

/// Decodes a command of a file that is not known.
pub fn of_any_file(command: u32, abi: Abi) -> Value<'static> {
    index(command, abi).map_or(Value::Hex(u64::from(command)), |index| symbol(command, index, abi))
}

/// Decodes a command of a file. Some tables have the commands of certain files only; for these files, they precede all
/// others.
pub fn of_file(command: u32, abi: Abi, file: Option<&File>) -> Value<'static> {
    match (index(command, abi), file) {
        (None, _) => Value::Hex(u64::from(command)),
        (Some(index), Some(file)) if index & OF_FILES != 0 => {
            let of_file = table_of(command, abi, file).map(|table| Value::Symbol { table, value: u64::from(command) });
            of_file.unwrap_or_else(|| symbol(command, index, abi))
        }
        (Some(index), _) => symbol(command, index, abi),
    }
}

/// Returns the table of commands of certain files that has the command, if this is one of its files.
fn table_of(command: u32, abi: Abi, file: &File) -> Option<&'static ConstantTable> {
    let name = file::name(file);
    let has_file = |of: &&CommandTable| of.files.iter().any(|pattern| glob::matches(pattern.as_bytes(), &name));
    let has_command = |table: &&ConstantTable| table.entries.binary_search_by_key(&u64::from(command), |entry| entry.value).is_ok();
    COMMAND_TABLES.iter().filter(has_file).map(|of| of.table.in_abi(abi)).find(has_command)
}

/// Returns the index that the list of commands has for a number.
fn index(command: u32, abi: Abi) -> Option<u16> {
    let commands = COMMANDS[abi as usize];
    let place = commands.binary_search_by_key(&command, |(number, _)| *number).ok()?;
    Some(commands[place].1)
}

/// Returns the name of a command, or its alternatives.
fn symbol(command: u32, index: u16, abi: Abi) -> Value<'static> {
    let of = COMMAND_TABLES.get(usize::from(index & !OF_FILES));
    let table = of.map_or(COMMAND_ALTERNATIVES[abi as usize], |of| of.table.in_abi(abi));
    Value::Symbol { table, value: u64::from(command) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(value: &Value) -> String {
        match value {
            Value::Symbol { table, value } => table.name(*value).unwrap_or_default().to_string(),
            Value::Hex(value) => format!("{value:#x}"),
            other => panic!("{other:?}"),
        }
    }

    fn of(command: u32, file: &str) -> String {
        name(&of_file(command, Abi::X86_64, Some(&File::Path(file.as_bytes().into()))))
    }

    #[test]
    fn commands_have_the_names_of_the_headers() {
        let named = |command: u64| name(&of_any_file(command as u32, Abi::X86_64));
        assert_eq!(named(libc::TCGETS), "TCGETS");
        assert_eq!(named(libc::TIOCGPTN), "TIOCGPTN");
        assert_eq!(named(libc::SIOCGIFFLAGS), "SIOCGIFFLAGS");
        assert_eq!(named(libc::FICLONE), "FICLONE");
        assert_eq!(named(libc::BLKSSZGET), "BLKSSZGET");
        assert_eq!(named(0xc0de_4242), "0xc0de4242");
    }

    #[test]
    fn the_file_decides_which_driver_a_command_belongs_to() {
        // TCSETS of terminals, SNDCTL_TMR_START of the Open Sound System.
        assert_eq!(of(0x5402, "/dev/pts/0"), "TCSETS");
        assert_eq!(of(0x5402, "/dev/sequencer"), "SNDCTL_TMR_START");
        assert_eq!(name(&of_file(0x5402, Abi::X86_64, None)), "TCSETS");
        assert_eq!(of(0x89e0, "UNIX-STREAM:[42]"), "SIOCUNIXFILE");
        assert!(of(0x89e0, "/tmp/x").starts_with("SIOCUNIXFILE or SIOCGETVIFCNT or "), "{}", of(0x89e0, "/tmp/x"));
    }

    #[test]
    fn sizes_in_commands_are_those_of_the_abi() {
        // _IOR(0x12, 114, size_t)
        assert_eq!(name(&of_any_file(0x8004_1272, Abi::I386)), "BLKGETSIZE64");
        assert_eq!(name(&of_any_file(0x8008_1272, Abi::X86_64)), "BLKGETSIZE64");
        assert_eq!(name(&of_any_file(0x8004_1272, Abi::X86_64)), "0x80041272");
    }

    #[test]
    fn commands_are_sorted_by_number() {
        assert!(COMMANDS.iter().all(|commands| commands.is_sorted_by(|a, b| a.0 < b.0)));
        assert!(COMMANDS.iter().all(|commands| commands.len() > 2000));
    }
}
