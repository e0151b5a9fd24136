//! Rows of `tables/*.tbl`: which constants of which headers a table consists of.

use super::fault::{Fault, Location, Row, is_name};
use super::macro_row::{self, MacroRow};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    Flags,
    Enum,
}

/// Which name is chosen if several constants have one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    Fails,
    First,
    Last,
}

/// A name or a glob that selects constants (`FSMOUNT_*`) or excludes them (`!FSMOUNT_OLD`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    pub pattern: String,
    /// It selects constants; otherwise it excludes them.
    pub takes: bool,
}

/// An attribute `field=MASK:table`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow {
    pub mask: String,
    pub table: String,
}

#[derive(Clone, Debug)]
pub struct TableRow {
    pub location: Location,
    pub name: String,
    pub kind: TableKind,
    pub headers: Vec<String>,
    pub selectors: Vec<Selector>,
    pub fields: Vec<FieldRow>,
    pub bits: u8,
    pub prefix: Option<String>,
    pub zero: Option<String>,
    pub clash: Clash,
    /// Rust code uses the table, so that no row has to.
    pub used_by_rust: bool,
    /// The constants are ioctl commands.
    pub commands: bool,
    /// It selects the constants that are made by `_IO()` and the like.
    pub takes_commands: bool,
    /// The macros that make commands of parameters.
    pub macros: Vec<MacroRow>,
    /// The files whose ioctl commands these are: globs of their names. Empty for any file.
    pub files: Vec<String>,
}

pub fn parse(row: &Row) -> Result<TableRow, Fault> {
    let fault = |text: String| Err(row.location.fault(text));
    let [name, kind, headers, options @ ..] = &row.fields[..] else {
        return fault("a table consists of a name, `flags` or `enum`, a header, and selectors".into());
    };
    if !is_name(name) {
        return fault(format!("`{name}` is not a valid name of a table"));
    }
    let kind = match *kind {
        "flags" => TableKind::Flags,
        "enum" => TableKind::Enum,
        other => return fault(format!("`{other}` is neither `flags` nor `enum`")),
    };
    let mut table = TableRow {
        location: row.location.clone(),
        name: name.to_string(),
        kind,
        headers: headers.split(',').map(str::to_string).collect(),
        selectors: Vec::new(),
        fields: Vec::new(),
        bits: 32,
        prefix: None,
        zero: None,
        clash: Clash::Fails,
        used_by_rust: false,
        commands: false,
        takes_commands: false,
        macros: Vec::new(),
        files: Vec::new(),
    };
    if let Some(bad) = table.headers.iter().find(|header| !header.ends_with(".h") && *header != "kernel.tbl") {
        return fault(format!("`{bad}` is neither a header nor kernel.tbl"));
    }
    for word in options {
        table.option(word).map_err(|text| row.location.fault(text))?;
    }
    if !table.takes_commands && !table.selectors.iter().any(|selector| selector.takes) {
        return fault(format!("{name} selects no constants: add names or globs after the header"));
    }
    if kind == TableKind::Enum && !(table.fields.is_empty() && table.zero.is_none()) {
        return fault(format!("{name} is an enum: `field=` and `zero=` are for flags"));
    }
    Ok(table)
}

impl TableRow {
    fn option(&mut self, word: &str) -> Result<(), String> {
        match word.split_once('=') {
            Some(("field", field)) => {
                let Some((mask, table)) = field.split_once(':') else { return Err(format!("`{word}` should be `field=MASK:table`")) };
                self.fields.push(FieldRow { mask: mask.to_string(), table: table.to_string() });
            }
            Some(("bits", "32")) => self.bits = 32,
            Some(("bits", "64")) => self.bits = 64,
            Some(("bits", other)) => return Err(format!("`bits={other}` is not supported: use 32 or 64")),
            Some(("prefix", prefix)) => self.prefix = Some(prefix.to_string()),
            Some(("zero", name)) => self.zero = Some(name.to_string()),
            Some(("of", files)) => self.files = files.split(',').map(str::to_string).collect(),
            Some(_) => return Err(format!("`{word}` is not an option of a table: use field=, bits=, of=, prefix= or zero=")),
            None => match word {
                "first" => self.clash = Clash::First,
                "last" => self.clash = Clash::Last,
                "rust" => self.used_by_rust = true,
                // The names of commands are not shortened, and a number has the name that comes first in the headers.
                "ioctl" => {
                    (self.commands, self.used_by_rust) = (true, true);
                    (self.prefix, self.clash) = (Some(String::new()), Clash::First);
                }
                "_IO()" => self.takes_commands = true,
                _ => match macro_row::parse(word) {
                    Some(parsed) => self.macros.push(parsed?),
                    None => return self.selector(word),
                },
            },
        }
        Ok(())
    }

    fn selector(&mut self, word: &str) -> Result<(), String> {
        let (pattern, takes) = word.strip_prefix('!').map_or((word, true), |rest| (rest, false));
        let plain: String = pattern.chars().map(|c| if matches!(c, '*' | '?') { '_' } else { c }).collect();
        if !is_name(&plain) {
            return Err(format!("`{word}` is neither a name nor a glob"));
        }
        self.selectors.push(Selector { pattern: pattern.to_string(), takes });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    fn parsed(text: &str) -> Result<TableRow, String> {
        parse(&rows("t.tbl", text)[0]).map_err(|fault| fault.to_string())
    }

    #[test]
    fn all_options_of_a_row_are_parsed() {
        let row = parsed("mount_attr flags linux/mount.h,linux/fs.h MOUNT_ATTR_* !MOUNT_ATTR_SIZE_* field=MOUNT_ATTR__ATIME:mount_atime bits=64 prefix=M_ zero=NONE last rust").expect("good");
        assert_eq!(
            (row.name.as_str(), row.kind, row.bits, row.clash, row.used_by_rust),
            ("mount_attr", TableKind::Flags, 64, Clash::Last, true)
        );
        assert_eq!(row.headers, ["linux/mount.h", "linux/fs.h"]);
        assert_eq!(row.selectors[1], Selector { pattern: "MOUNT_ATTR_SIZE_*".into(), takes: false });
        assert_eq!(row.fields, [FieldRow { mask: "MOUNT_ATTR__ATIME".into(), table: "mount_atime".into() }]);
        assert_eq!((row.prefix.as_deref(), row.zero.as_deref()), (Some("M_"), Some("NONE")));
    }

    #[test]
    fn faults_name_the_line_and_the_problem() {
        for (text, expected) in [
            ("\nt flags", "t.tbl:2: a table consists of a name, `flags` or `enum`, a header, and selectors"),
            ("t-x flags a.h X", "t.tbl:1: `t-x` is not a valid name of a table"),
            ("t mask a.h X", "t.tbl:1: `mask` is neither `flags` nor `enum`"),
            ("t flags a X", "t.tbl:1: `a` is neither a header nor kernel.tbl"),
            ("t flags a.h", "t.tbl:1: t selects no constants"),
            ("t flags a.h !X", "t.tbl:1: t selects no constants"),
            ("t flags a.h X bits=16", "t.tbl:1: `bits=16` is not supported: use 32 or 64"),
            ("t flags a.h X field=Y", "t.tbl:1: `field=Y` should be `field=MASK:table`"),
            ("t flags a.h X size=3", "t.tbl:1: `size=3` is not an option of a table"),
            ("t enum a.h X zero=Y", "t.tbl:1: t is an enum"),
            ("t enum a.h X-Y", "t.tbl:1: `X-Y` is neither a name nor a glob"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
