//! Strategies for all lines of the language.

use super::super::{
    Arg, BasicType, Fetch, Field, FilePlace, KernelPlace, Line, PathStep, Probe, ProbePoint, Removal, SourceLine, Type, When,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

pub fn line() -> impl Strategy<Value = Line> {
    let removal = (of(group()), "[a-zA-Z_][a-zA-Z0-9_.-]{0,20}").prop_map(|(group, event)| Removal { group, event: Some(event) });
    let all = group().prop_map(|group| Removal { group: Some(group), event: None });
    prop_oneof![
        12 => with_args().prop_map(Line::Make),
        2 => with_fields().prop_map(Line::Make),
        1 => prop_oneof![removal, all].prop_map(Line::Remove),
    ]
}

/// Returns a strategy for fragments of lines and for arbitrary text.
pub fn word() -> impl Strategy<Value = String> {
    prop_oneof![8 => select(super::parts()), 1 => "[ -~]{0,3}", 1 => any::<char>().prop_map(String::from)]
}

fn identifier() -> impl Strategy<Value = String> {
    "[a-zA-Z_][a-zA-Z0-9_]{0,12}"
}

fn group() -> impl Strategy<Value = String> {
    "[a-zA-Z_-][a-zA-Z0-9_-]{0,62}"
}

fn symbol() -> impl Strategy<Value = String> {
    "[a-zA-Z_.$@][a-zA-Z0-9_.$@]{0,20}"
}

fn offset() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), -64i64..64, any::<i64>()]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![Just(When::Entry), of(1u32..=4096).prop_map(|maxactive| When::Return { maxactive })]
}

fn with_args() -> impl Strategy<Value = Probe> {
    let probe = (of(group()), of(identifier()), place());
    probe.prop_flat_map(|(group, event, place)| {
        vec(arg(&place), 0..6).prop_map(move |mut args| {
            for (nth, arg) in args.iter_mut().enumerate() {
                arg.name = arg.name.take().map(|name| format!("{name}{nth}"));
            }
            Probe { group: group.clone(), event: event.clone(), place: place.clone(), args }
        })
    })
}

fn place() -> impl Strategy<Value = ProbePoint> {
    prop_oneof![
        4 => (kernel_place(), when()).prop_map(|(at, when)| match &at {
            KernelPlace::Line(_) => ProbePoint::Kernel { at, when: When::Entry },
            KernelPlace::Symbol { offset, .. } if *offset != 0 => ProbePoint::Kernel { at, when: When::Entry },
            _ => ProbePoint::Kernel { at, when },
        }),
        4 => (path(), file_place(), any::<bool>(), of(any::<u64>())).prop_map(|(path, at, returns, reference_counter)| {
            let whole = !matches!(&at, FilePlace::Line(_)) && !matches!(&at, FilePlace::Symbol { offset, .. } if *offset != 0);
            let when = if returns && whole { When::Return { maxactive: None } } else { When::Entry };
            ProbePoint::File { path, at, when, reference_counter }
        }),
        1 => ("[a-zA-Z_*?][a-zA-Z0-9_.*?]{0,20}", when()).prop_map(|(name, when)| ProbePoint::Function { name, when }),
        1 => "[a-zA-Z0-9_]{1,20}".prop_map(|name| ProbePoint::Tracepoint { name }),
        2 => (group(), identifier(), of("[a-z][ -~]{0,20}[a-z0-9\")]")).prop_map(|(subsystem, event, filter)| {
            // In a file, # begins a comment unless it is in quotes, and quotes have to be closed.
            let filter = filter.map(|filter| filter.replace(['#', '"'], ""));
            ProbePoint::Event { subsystem, event, filter }
        }).prop_filter("a condition does not end with a blank", |place| {
            !matches!(place, ProbePoint::Event { filter: Some(filter), .. } if filter.trim() != filter)
        }),
        1 => (path(), identifier(), identifier()).prop_map(|(path, provider, name)| ProbePoint::Usdt { path, provider, name }),
    ]
}

fn kernel_place() -> impl Strategy<Value = KernelPlace> {
    prop_oneof![
        (of("[a-z_][a-z0-9_-]{0,10}"), symbol(), offset()).prop_map(|(module, symbol, offset)| KernelPlace::Symbol {
            module,
            symbol,
            offset
        }),
        any::<u64>().prop_map(KernelPlace::Address),
        ("[a-zA-Z_][a-zA-Z0-9_.-]{0,12}", any::<u32>()).prop_map(|(of, line)| KernelPlace::Line(SourceLine { of, line })),
    ]
}

fn file_place() -> impl Strategy<Value = FilePlace> {
    let name = || {
        prop_oneof![3 => "[a-zA-Z_][a-zA-Z0-9_:./+-]{0,20}", 1 => any::<String>()]
            .prop_filter("a name is not empty", |name| !name.is_empty())
    };
    prop_oneof![
        any::<u64>().prop_map(FilePlace::Offset),
        (name(), offset()).prop_map(|(symbol, offset)| FilePlace::Symbol { symbol, offset }),
        (name(), any::<u32>()).prop_map(|(of, line)| FilePlace::Line(SourceLine { of, line })),
    ]
}

/// Returns a strategy for paths, which may be any bytes.
fn path() -> impl Strategy<Value = PathBuf> {
    let bytes = prop_oneof![
        4 => "[./][a-zA-Z0-9_./:-]{1,20}".prop_map(String::into_bytes),
        1 => vec(1u8.., 1..20),
    ];
    bytes.prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
}

fn arg(place: &ProbePoint) -> impl Strategy<Value = Arg> + use<> {
    let whole = (of("[a-zA-Z][a-zA-Z0-9]{0,20}_"), fetch(place), of(kind())).prop_map(|(name, value, kind)| Arg { name, value, kind });
    let text = (of("[a-zA-Z][a-zA-Z0-9]{0,20}_"), "([!$-9;-~]{0,7}[a-z])?").prop_map(|(name, text)| {
        let text = if name.is_none() { text.replace('=', "") } else { text };
        Arg { name, value: Fetch::ImmediateText(text), kind: None }
    });
    let all = Just(Arg { name: None, value: Fetch::Arguments, kind: None });
    let all = if matches!(place, ProbePoint::Event { .. }) { text.clone().boxed() } else { all.boxed() };
    Union::new_weighted(vec![(8, whole.boxed()), (1, text.boxed()), (1, all)])
}

/// Returns a strategy for the values that can be fetched at a place, also nested in parentheses.
fn fetch(place: &ProbePoint) -> BoxedStrategy<Fetch> {
    let mut leaves = vec![
        Just(Fetch::Comm).boxed(),
        any::<u64>().prop_map(Fetch::At).boxed(),
        (symbol(), offset()).prop_map(|(symbol, offset)| Fetch::AtSymbol { symbol, offset }).boxed(),
        any::<i64>().prop_map(Fetch::Immediate).boxed(),
    ];
    if matches!(place, ProbePoint::Event { .. }) {
        let field = identifier().prop_filter("the name of the command", |name| !name.eq_ignore_ascii_case("comm"));
        leaves.push(field.prop_map(Fetch::Field).boxed());
    } else {
        let registers = if cfg!(target_arch = "aarch64") { ["x0", "sp", "pc"] } else { ["ax", "sp", "ip"] };
        leaves.extend([
            select(registers.to_vec()).prop_map(|name| Fetch::Register(name.into())).boxed(),
            Just(Fetch::StackAddress).boxed(),
            any::<u32>().prop_map(Fetch::Stack).boxed(),
            (1u32..).prop_map(Fetch::Argument).boxed(),
            // The oldest spellings have no underscore.
            (identifier(), vec(step(), 0..4)).prop_map(|(name, path)| Fetch::Variable { name: format!("{name}_"), path }).boxed(),
        ]);
    }
    if place.is_return() {
        leaves.push(vec(step(), 0..4).prop_map(Fetch::Return).boxed());
    }
    if matches!(place, ProbePoint::File { .. } | ProbePoint::Usdt { .. }) {
        leaves.push(any::<u64>().prop_map(Fetch::AtFileOffset).boxed());
    }
    let memory = |inner| (any::<bool>(), offset(), inner).prop_map(|(user, offset, of)| Fetch::Memory { user, offset, of: Box::new(of) });
    Union::new(leaves).prop_recursive(5, 8, 1, memory).boxed()
}

fn step() -> impl Strategy<Value = PathStep> {
    prop_oneof![
        identifier().prop_map(PathStep::Arrow),
        prop_oneof![identifier(), "[0-9]{1,3}"].prop_map(PathStep::Dot),
        any::<i64>().prop_map(PathStep::Index),
    ]
}

fn kind() -> impl Strategy<Value = Type> {
    let bits = (select(vec![8u8, 16, 32, 64]), any::<u8>(), any::<u8>()).prop_map(|(container, width, offset)| {
        let width = width % container + 1;
        BasicType::Bits { width, offset: offset % (container - width + 1), container }
    });
    let base = prop_oneof![4 => select(BasicType::NAMED.map(|(_, base)| base).to_vec()), 1 => bits];
    (base, of(1u32..=64)).prop_map(|(base, array)| Type { base, array })
}

fn with_fields() -> impl Strategy<Value = Probe> {
    let kinds = |kinds: &[&str]| select(kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>());
    let synthetic = kinds(&["u64", "unsigned long", "pid_t", "char[16]", "char[]", "unsigned long[]", "bool"]);
    let user = kinds(&["u32", "unsigned short", "char[20]", "unsigned char[3]", "__rel_loc char[]", "__data_loc u8[]"]);
    let plain = |kind: BoxedStrategy<String>| (kind, identifier()).prop_map(|(kind, name)| Field { kind, name, size: None });
    let structs = (identifier(), identifier(), any::<u32>()).prop_map(|(kind, name, size)| Field {
        kind: format!("struct {kind}"),
        name,
        size: Some(size),
    });
    let named = |fields: Vec<Field>| {
        let fields = fields.into_iter().enumerate();
        fields.map(|(nth, field)| Field { name: format!("{}_{nth}", field.name), ..field }).collect::<Vec<_>>()
    };
    let synthetic = (any::<bool>(), identifier(), vec(plain(synthetic.boxed()), 1..5)).prop_map(move |(group, event, fields)| Probe {
        group: group.then(|| "synthetic".into()),
        event: Some(event),
        place: ProbePoint::Synthetic { fields: named(fields) },
        args: Vec::new(),
    });
    let fields = vec(prop_oneof![3 => plain(user.boxed()), 1 => structs], 0..5);
    let user = ("[a-zA-Z_][a-zA-Z0-9_.-]{0,20}", vec(identifier(), 0..3), fields).prop_map(move |(event, flags, fields)| Probe {
        group: None,
        event: Some(event),
        place: ProbePoint::User { flags, fields: named(fields) },
        args: Vec::new(),
    });
    prop_oneof![synthetic, user]
}
