//! Names of ioctl commands.
//!
//! A command's number does not determine its driver: several drivers may use one number, and only the file behind the
//! descriptor tells them apart. Where the file does not help, all names are shown, as alternatives.
//!
//! Some names are calls of macros: the number contains the parameters.

use super::file;
use super::row::{CommandMacro, CommandParameter, CommandTable, ConstantTable};
use super::tables::{COMMAND_ALTERNATIVES, COMMAND_MACROS, COMMAND_TABLES, COMMANDS};
use super::value::Value;
use crate::event::{Abi, File};
use crate::text::glob;

/// The bit of an index in [`COMMANDS`] that says that tables of certain files have the number.
const OF_FILES: u16 = 0x8000;
/// The place of the size of the memory in a command, and its bits (asm-generic/ioctl.h).
const SIZE_SHIFT: u32 = 16;
const SIZE_MASK: u32 = 0x3fff;

/// Decodes a command of a file that is not known.
pub fn of_any_file(command: u32, abi: Abi) -> Value<'static> {
    let by_macro = || COMMAND_MACROS.iter().find_map(|of| call_of(of, command, abi));
    index(command, abi).map(|index| symbol(command, index, abi)).or_else(by_macro).unwrap_or(Value::Hex(u64::from(command)))
}

/// Decodes a command of a file. Some tables have the commands of certain files only; for these files, they precede all
/// others.
pub fn of_file(command: u32, abi: Abi, file: Option<&File>) -> Value<'static> {
    let index = index(command, abi);
    let Some(file) = file.filter(|_| index.is_none_or(|index| index & OF_FILES != 0)) else { return of_any_file(command, abi) };
    let of_file = || {
        let name = file::name(file);
        if index.is_some() {
            table_of(command, abi, &name).or_else(|| macro_of(command, abi, &name))
        } else {
            macro_of(command, abi, &name)
        }
    };
    of_file().unwrap_or_else(|| of_any_file(command, abi))
}

/// Returns whether the table has the commands of certain files, and the file with this name is one of them.
fn has_file(of: &CommandTable, name: &[u8]) -> bool {
    of.files.iter().any(|pattern| glob::matches(pattern.as_bytes(), name))
}

/// Returns the name that a table of commands of certain files has for the command, if the file is one of them.
fn table_of(command: u32, abi: Abi, name: &[u8]) -> Option<Value<'static>> {
    let value = u64::from(command);
    let has_command = |table: &&ConstantTable| table.entries.binary_search_by_key(&value, |entry| entry.value).is_ok();
    let table = COMMAND_TABLES.iter().filter(|of| has_file(of, name)).map(|of| of.table.in_abi(abi)).find(has_command)?;
    Some(Value::Symbol { table, value })
}

/// Returns the macro of a table of commands of certain files that makes the command, if the file is one of them.
fn macro_of(command: u32, abi: Abi, name: &[u8]) -> Option<Value<'static>> {
    let is_of_file = |of: &CommandMacro| COMMAND_TABLES.get(usize::from(of.table)).is_some_and(|table| has_file(table, name));
    COMMAND_MACROS.iter().find_map(|of| call_of(of, command, abi).filter(|_| is_of_file(of)))
}

/// Returns the call of a macro that makes the command, if there is one.
fn call_of(of: &CommandMacro, command: u32, abi: Abi) -> Option<Value<'static>> {
    let first = of.first[abi as usize];
    let size = (command >> SIZE_SHIFT & SIZE_MASK).wrapping_sub(first >> SIZE_SHIFT & SIZE_MASK);
    let number = (command & !(SIZE_MASK << SIZE_SHIFT)).wrapping_sub(first & !(SIZE_MASK << SIZE_SHIFT));
    let (mut is_sized, mut is_numbered) = (size == 0, number == 0);
    for parameter in of.parameters {
        match parameter {
            CommandParameter::Size { unit } => is_sized = size.is_multiple_of(*unit),
            CommandParameter::Added { count, .. } => is_numbered = number < *count,
        }
    }
    // A command without a name is compared with every macro, so nothing is allocated before.
    if !is_sized || !is_numbered {
        return None;
    }
    let value = |parameter: &CommandParameter| match *parameter {
        CommandParameter::Size { unit } => Value::Uint(u64::from(size / unit)),
        CommandParameter::Added { table, .. } => {
            let value = u64::from(number);
            table.filter(|table| table.name(value).is_some()).map_or(Value::Uint(value), |table| Value::Symbol { table, value })
        }
    };
    Some(Value::Macro { name: of.name, parameters: of.parameters.iter().map(value).collect(), value: u64::from(command) })
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
            Value::Macro { name: of, parameters, .. } => format!("{of}({})", parameters.iter().map(name).collect::<Vec<_>>().join(",")),
            Value::Uint(value) => value.to_string(),
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
    fn macros_have_their_parameters() {
        let named = |command: u32| name(&of_any_file(command, Abi::X86_64));
        // _IOC(_IOC_READ, 'E', 0x06, 256), and 0x20 + EV_KEY with 96 bytes.
        assert_eq!(named(0x8100_4506), "EVIOCGNAME(256)");
        assert_eq!(named(0x8060_4521), "EVIOCGBIT(EV_KEY,96)");
        assert_eq!(named(0x8060_453f), "EVIOCGBIT(31,96)", "no type of events has this number");
        assert_eq!(named(0x8018_4541), "EVIOCGABS(ABS_Y)");
        assert_eq!(named(0x8019_4541), "0x80194541", "the size is not that of struct input_absinfo");
        assert_eq!(named(0x4060_6b00), "SPI_IOC_MESSAGE(3)", "3 * sizeof(struct spi_ioc_transfer)");
        assert_eq!(named(0x4061_6b00), "0x40616b00", "no multiple of the struct");
        assert_eq!(named(0xc009_4806), "HIDIOCSFEATURE(9)");
    }

    #[test]
    fn a_constant_precedes_a_macro() {
        // _IOR('M', 13, int): a channel of a sound mixer, and a command of flash memory.
        assert_eq!(of(0x8004_4d0d, "/dev/mixer"), "SOUND_MIXER_READ_OGAIN");
        assert_eq!(of(0x8004_4d0d, "/dev/mtd0"), "OTPSELECT");
        assert_eq!(of(0x8004_4d14, "/dev/mixer"), "MIXER_READ(20)");
    }

    #[test]
    fn commands_are_sorted_by_number() {
        assert!(COMMANDS.iter().all(|commands| commands.is_sorted_by(|a, b| a.0 < b.0)));
        assert!(COMMANDS.iter().all(|commands| commands.len() > 2000));
    }
}
