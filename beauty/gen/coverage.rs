//! Lists how rtrace shows each argument, each command of syscalls that do several things, each member of structs and
//! each netlink attribute, for review (`tests/snapshots/coverage.txt`).

mod class;
mod messages;

use super::argument::Argument;
use super::attributes::Messages;
use super::emit::{EmittedStruct, EmittedTable};
use super::kind::{self, ArgumentKind};
use super::link::Call;
use super::requests::Request;
use super::structs::StructRow;
use super::syscalls::FlowRow;
use super::tables::TableRow;
use super::variants::Variant;
use class::{CLASSES, Class, Counts, Structs};
use std::fmt::Write;

/// The explanation at the top of the list.
const INTRODUCTION: &str = "\
What rtrace knows of each argument. The generator of the tables writes this list, and `cargo test --test tables` fails
when it is not the committed one; the failure says which command updates it.

A line has an argument, its class, and what the row says. The classes are:

decoded  The value is shown by its meaning: constants, text, a path, a descriptor, a process, a size, a time. A struct is
         decoded if at least one of its members is. Its own lines below say which ones are not.
number   The meaning is a plain number (a count, an identifier, a value of the caller), and the row says so.
by type  The row knows only the type. Nobody has looked whether the number has a meaning.
bytes    Memory without a structure, which is shown as bytes.
unknown  Memory that no row describes, which is shown as bytes, too.
address  The value is an address. The row shows no memory there, as with the address of a mapping.
opaque   A pointer to memory that no row describes. The address is shown.
hidden   A key or a password, of which no part is shown. These are not counted.
unused   The call does not use the argument in this case. These arguments are not counted.

An argument whose meaning another argument selects is `by command`. Below its syscall, each value of that other argument
has its own line, and `other` stands for all other values if they have no names. Members of structs are those of x86-64.
";

/// The resolved rows that are listed.
pub struct Tables<'a> {
    pub calls: &'a [Call],
    pub requests: &'a [Request],
    /// The rows of the tables, and the tables with their constants.
    pub rows: &'a [TableRow],
    pub tables: &'a [EmittedTable],
    pub structs: &'a [EmittedStruct],
    pub messages: &'a Messages,
}

/// Returns the list.
pub fn report(tables: &Tables) -> String {
    let mut list = List { tables, structs: Structs::new(tables.structs), out: String::new() };
    let calls = list.calls();
    let requests = list.requests();
    let members = list.structs();
    let attributes = list.messages();
    let groups = [
        ("arguments of syscalls", calls.plain),
        ("arguments by command", calls.commands),
        ("socket options", calls.options),
        ("ioctl commands", calls.ioctl),
        ("requests of io_uring", requests),
        ("members of structs", members),
        ("netlink attributes", attributes),
    ];
    let mut out = format!("{INTRODUCTION}\n{:<22}", "");
    let width = |class: &Class| class.name().len().max(7);
    CLASSES.iter().for_each(|class| out += &format!(" {:>1$}        ", class.name(), width(class)));
    out += "  total\n";
    for (name, counts) in &groups {
        out += &format!("{name:<22}");
        for class in &CLASSES {
            let (of, total) = (counts.of(*class), counts.total().max(1));
            out += &format!(" {of:>0$} {1:>5.1} %", width(class), of as f64 * 100.0 / total as f64);
        }
        out += &format!(" {:>6}\n", counts.total());
    }
    out + "\n" + &list.out
}

/// The list while it is written.
struct List<'a> {
    tables: &'a Tables<'a>,
    structs: Structs<'a>,
    out: String,
}

/// The numbers of arguments: those that mean the same in every call, and those that another argument selects.
#[derive(Default)]
struct CallCounts {
    plain: Counts,
    commands: Counts,
    options: Counts,
    ioctl: Counts,
}

impl CallCounts {
    fn by_command(&mut self, call: &str) -> &mut Counts {
        match call {
            "ioctl" => &mut self.ioctl,
            "getsockopt" | "setsockopt" => &mut self.options,
            _ => &mut self.commands,
        }
    }
}

impl List<'_> {
    fn line(&mut self, place: &str, class: &str, text: &str) {
        let line = format!("    {place:<50} {class:<10} {text}");
        // Writing to a String does not fail.
        let _ = writeln!(self.out, "{}", line.trim_end());
    }

    fn calls(&mut self) -> CallCounts {
        let mut counts = CallCounts::default();
        let tables = self.tables;
        for call in tables.calls {
            self.out += &format!("{}\n", call.name);
            for at in 0..call.args.len() {
                let class = self.structs.of_argument(&call.args, at);
                if selected(&call.args, &call.variants).contains(&at) {
                    self.line(&call.args[at].name, "by command", "");
                } else {
                    counts.plain.add(class);
                    self.line(&call.args[at].name, class.name(), &description(&call.args[at]));
                }
            }
            let counts = counts.by_command(&call.name);
            self.variants("", &call.args, &call.variants, counts);
        }
        counts
    }

    /// Lists the arguments of io_uring's requests.
    fn requests(&mut self) -> Counts {
        let mut counts = Counts::default();
        let tables = self.tables;
        for Request { call, .. } in tables.requests {
            self.out += &format!("{}\n", call.name);
            for (at, argument) in call.args.iter().enumerate() {
                let class = self.structs.of_argument(&call.args, at);
                counts.add(class);
                self.line(&argument.name, class.name(), &description(argument));
            }
        }
        counts
    }

    /// Lists the arguments that the variants of a row select. `path` has the values that select the row.
    fn variants(&mut self, path: &str, args: &[Argument], variants: &[Variant], counts: &mut Counts) {
        let Some(Variant { arg, mask, .. }) = variants.first() else { return };
        let (chooser, selected) = (&args[*arg], selected(args, variants));
        let constants = constants(self.tables, &chooser.kind, *mask);
        let test = |name: &str| format!("{path}{}={name} ", chooser.name);
        for variant in variants {
            for value in &variant.values {
                let path = test(&names(&constants, *value).unwrap_or_else(|| format!("{value:#x}")));
                let deeper = self::selected(&variant.args, &variant.variants);
                for at in selected.iter().copied().filter(|at| !deeper.contains(at)) {
                    self.argument(&path, args, &variant.args, at, counts);
                }
                self.variants(&path, &variant.args, &variant.variants, counts);
            }
        }
        let mut seen: Vec<u64> = variants.iter().flat_map(|variant| variant.values.clone()).collect();
        for (_, value) in &constants {
            if !seen.contains(value) {
                seen.push(*value);
                let path = test(&names(&constants, *value).unwrap_or_default());
                selected.iter().for_each(|at| self.argument(&path, args, args, *at, counts));
            }
        }
        // Without a table of names, the other values are those of most calls.
        if constants.is_empty() {
            let path = test("other");
            selected.iter().for_each(|at| self.argument(&path, args, args, *at, counts));
        }
    }

    /// Lists an argument of a variant with the arguments `own`, which may lack the last ones of its plain row.
    fn argument(&mut self, path: &str, plain: &[Argument], own: &[Argument], at: usize, counts: &mut Counts) {
        let (class, text) = match own.get(at) {
            Some(argument) => (self.structs.of_argument(own, at), description(argument)),
            None => (Class::Unused, String::new()),
        };
        counts.add(class);
        self.line(&format!("{path}{}", plain[at].name), class.name(), if class == Class::Unused { "" } else { &text });
    }

    fn structs(&mut self) -> Counts {
        let mut all = Counts::default();
        let tables = self.tables;
        for of in tables.structs {
            let members = self.structs.members(of);
            let mut own = Counts::default();
            members.iter().for_each(|(_, class)| own.add(*class));
            members.iter().for_each(|(_, class)| all.add(*class));
            let classes = CLASSES.into_iter().filter(|class| own.of(*class) > 0);
            let counted: Vec<String> = classes.map(|class| format!("{} {}", own.of(class), class.name())).collect();
            let StructRow { name, sizes: [size, ..], .. } = &of.row;
            self.out += &format!("struct {name}, {size} bytes: {}\n", counted.join(", "));
            for (name, class) in members.iter().filter(|(name, class)| !name.is_empty() && !matches!(class, Class::Decoded | Class::Number))
            {
                self.line(name, class.name(), "");
            }
        }
        all
    }
}

/// Returns the constants of an argument that selects variants, sorted by their values: those of its table, or of the
/// field of its table that the mask selects, or all ioctl commands.
fn constants<'a>(tables: &'a Tables, of: &ArgumentKind, mask: u64) -> Vec<(&'a str, u64)> {
    let named = |name: &str| table(tables, name);
    let found: Vec<&EmittedTable> = match of {
        ArgumentKind::Custom(function) if function == "ioctl_cmd" => {
            tables.rows.iter().filter(|row| row.commands).filter_map(|row| named(&row.name)).collect()
        }
        ArgumentKind::Table(name) => {
            let field = named(name).and_then(|table| table.base.fields.iter().find(|field| field.mask == mask));
            let whole = (mask >= u32::MAX.into()).then_some(name);
            field.map(|field| &field.table).or(whole).and_then(|name| named(name)).into_iter().collect()
        }
        _ => Vec::new(),
    };
    // A constant that only other ABIs have is a name, too (F_GETLK64).
    let in_any_abi = |table: &&'a EmittedTable| std::iter::once(&table.base).chain(table.twins.iter().map(|(_, twin)| twin));
    let entries = found.iter().flat_map(in_any_abi).flat_map(|table| &table.entries);
    let mut constants: Vec<(&str, u64)> = entries.map(|entry| (entry.name.as_str(), entry.value)).collect();
    constants.sort_by_key(|(_, value)| *value);
    constants
}

fn table<'a>(tables: &'a Tables, name: &str) -> Option<&'a EmittedTable> {
    tables.tables.iter().find(|table| table.name == name)
}

/// Returns the indices of the arguments that some of the variants of a row change.
fn selected(args: &[Argument], variants: &[Variant]) -> Vec<usize> {
    let is_changed = |at: &usize| variants.iter().any(|variant| changes(variant, args, *at));
    (0..args.len()).filter(|at| variants.iter().all(|variant| variant.arg != *at)).filter(is_changed).collect()
}

fn changes(variant: &Variant, plain: &[Argument], at: usize) -> bool {
    let is_same = |own: &Argument, plain: &Argument| own.kind == plain.kind && own.flow == plain.flow && own.used == plain.used;
    match variant.args.get(at) {
        Some(own) => !is_same(own, &plain[at]) || selected(&variant.args, &variant.variants).contains(&at),
        None => true,
    }
}

/// Returns the names of a value, if it has some.
fn names(constants: &[(&str, u64)], value: u64) -> Option<String> {
    let mut names: Vec<&str> = constants.iter().filter(|(_, own)| *own == value).map(|(name, _)| *name).collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join("|"))
}

/// Returns what the row says of an argument, in the words of rows.
fn description(argument: &Argument) -> String {
    let flow = match argument.flow {
        FlowRow::In => "",
        FlowRow::Out => "out ",
        FlowRow::InOut => "inout ",
    };
    format!("{flow}{}", kind::word(&argument.kind))
}
