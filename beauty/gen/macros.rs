//! Ioctl commands that a macro of a header makes of parameters (`EVIOCGNAME(len)`): a row of a table of commands states
//! what each parameter is.

use super::constant::ConstantValue;
use super::emit::EmittedTable;
use super::fault::Fault;
use super::header::Target;
use super::library::Library;
use super::macro_row::{MacroRow, Parameter};
use super::tables::TableRow;

/// A macro with its commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Macro {
    pub name: String,
    /// The name of the table of commands that the macro belongs to.
    pub table: String,
    pub parameters: Vec<Parameter>,
    /// The command of which all parameters are 0, in each ABI.
    pub first: [u32; 4],
    /// The number of bytes by which the parameter `Size` is multiplied.
    pub unit: u32,
}

/// The bits of a command that contain the size of the memory, and the number of the first of them
/// (asm-generic/ioctl.h).
const SIZE_BITS: u32 = 0x3fff << SIZE_SHIFT;
const SIZE_SHIFT: u32 = 16;

/// Returns the macros of the tables. `libraries` are those of x86-64 and of the other ABIs. The macros of headers that
/// are not installed are left out.
pub fn resolve(rows: &[TableRow], libraries: &[(usize, &Library)], faults: &mut Vec<Fault>) -> Vec<Macro> {
    let mut found = Vec::new();
    for row in rows {
        for of in &row.macros {
            let has_all = || libraries.iter().all(|(_, library)| row.headers.iter().all(|header| library.header(header).is_some()));
            match resolve_one(row, of, libraries) {
                Ok(resolved) => found.push(resolved),
                Err(text) if has_all() => faults.push(row.location.fault(format!("{}() {text}", of.name))),
                Err(_) => {}
            }
        }
    }
    found
}

fn resolve_one(row: &TableRow, of: &MacroRow, libraries: &[(usize, &Library)]) -> Result<Macro, String> {
    let header = row.headers.first().ok_or("belongs to a table without a header")?;
    let command = |library: &Library, size: u32| {
        let arguments = of.parameters.iter().map(|parameter| if *parameter == Parameter::Size { size } else { 0 }.to_string());
        let text = format!("{}({})", of.name, arguments.collect::<Vec<_>>().join(","));
        library.evaluate(&text, header, &row.headers).map(|number| number.value as u32)
    };
    let mut resolved = Macro { name: of.name.clone(), table: row.name.clone(), parameters: of.parameters.clone(), first: [0; 4], unit: 0 };
    for (abi, library) in libraries {
        resolved.first[*abi] = command(library, 0)?;
        let unit = command(library, 1)?.wrapping_sub(resolved.first[*abi]) >> SIZE_SHIFT;
        if resolved.unit != unit && library.target != Target::X86_64 {
            return Err("has a parameter whose unit differs between the ABIs".to_string());
        }
        resolved.unit = unit;
    }
    if of.parameters.contains(&Parameter::Size) != (resolved.unit != 0) {
        return Err("has other parameters in its header: `size` is the size of the memory".to_string());
    }
    Ok(resolved)
}

/// Returns the commands of a macro by the name of its table and a word: `EVIOCGNAME` for all of its commands, or
/// `EVIOCGBIT(EV_KEY)` for those of one value of the first parameter. `None` if there is no such macro or value.
pub fn constant(macros: &[Macro], tables: &[EmittedTable], table: &str, word: &str) -> Option<ConstantValue> {
    let (name, argument) = word.split_once('(').map_or((word, None), |(name, rest)| (name, rest.strip_suffix(')')));
    let of = macros.iter().find(|of| of.table == table && of.name == name)?;
    let added = of.parameters.iter().find_map(|parameter| match parameter {
        Parameter::Added { table, count } => Some((table.as_ref(), *count)),
        Parameter::Size => None,
    });
    let values: Vec<u32> = match (argument, added) {
        (None, None) => vec![0],
        (None, Some((_, count))) => (0..count).collect(),
        (Some(argument), Some((named, count))) => {
            let constants = named.and_then(|named| tables.iter().find(|known| known.name == *named));
            let entry = constants.and_then(|known| known.base.entries.iter().find(|entry| entry.name == argument));
            let value = entry.map_or_else(|| argument.parse().ok(), |entry| u32::try_from(entry.value).ok());
            vec![value.filter(|value| *value < count)?]
        }
        (Some(_), None) => return None,
    };
    let mask = if of.unit == 0 { u32::MAX } else { !SIZE_BITS };
    let mut commands: Vec<u64> = Vec::new();
    for command in of.first.iter().flat_map(|first| values.iter().map(move |value| u64::from(first + value))) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    let value = match &commands[..] {
        [only] => Ok(*only),
        _ => Err(format!("{word} has several values: add @any")),
    };
    Some(ConstantValue { value, in_any_abi: commands, mask: mask.into() })
}
