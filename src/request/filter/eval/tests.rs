use super::*;
use crate::request::filter::parse;

/// The scope of open: fd, flags and ret are numbers, filename is a string, and flags has constants.
struct Open;

impl Scope for Open {
    fn fixed_text(&self, name: &Name) -> Option<&str> {
        (name.0 == "syscall").then_some("open")
    }

    fn name(&self, name: &Name) -> Option<(NameId, ValueType)> {
        let names = [("fd", ValueType::Number), ("flags", ValueType::Number), ("ret", ValueType::Number), ("filename", ValueType::Text)];
        let at = names.iter().position(|(known, _)| *known == name.0)?;
        Some((at as NameId, names[at].1))
    }

    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant> {
        let known = FLAGS.iter().find(|(word, ..)| name.0 == "flags" && symbol.trim_start_matches("O_") == *word);
        known.map(|(_, value, mask)| Constant { value: *value, mask: *mask })
    }

    fn names(&self) -> Vec<String> {
        ["fd", "flags", "ret", "filename"].map(str::to_owned).to_vec()
    }

    fn constants(&self, name: &Name) -> Vec<String> {
        if name.0 == "syscall" {
            return vec!["open".to_owned()];
        }
        FLAGS.iter().filter(|_| name.0 == "flags").map(|(name, ..)| (*name).to_owned()).collect()
    }
}

/// The names, values and masks of the constants.
const FLAGS: [(&str, i128, u64); 6] = [
    ("RDONLY", 0, 3),
    ("WRONLY", 1, 3),
    ("RDWR", 2, 3),
    ("CREAT", 0o100, 0o100),
    ("DIRECTORY", 0o200_000, 0o200_000),
    ("TMPFILE", 0o20_200_000, 0o20_200_000),
];

/// The scope of a syscall without arguments.
struct Bare;

impl Scope for Bare {
    fn name(&self, name: &Name) -> Option<(NameId, ValueType)> {
        (name.0 == "ret").then_some((2, ValueType::Number))
    }

    fn constant(&self, _: &Name, _: &str) -> Option<Constant> {
        None
    }

    fn names(&self) -> Vec<String> {
        vec!["ret".to_owned()]
    }

    fn constants(&self, _: &Name) -> Vec<String> {
        Vec::new()
    }
}

fn bound(text: &str) -> Bound {
    parse(text).unwrap().bind(&Open, &mut Bindings::default())
}

struct Values([Operand<'static>; 4]);

impl Subject for Values {
    fn value(&self, name: NameId) -> Operand<'_> {
        self.0[usize::from(name)].clone()
    }
}

fn verdict(text: &str, fd: i128, flags: i128) -> Verdict {
    let values = Values([Operand::Number(fd), Operand::Number(flags), Operand::Unknown, Operand::Text(Cow::Borrowed(b"/etc/passwd"))]);
    bound(text).verdict(&values)
}

#[test]
fn growing_numbers_decide_if_growth_cannot_change_the_result() {
    let decided = |op, with| compare_growing(100, op, with);
    assert_eq!([decided(Op::Greater, 99), decided(Op::Greater, 100)], [Verdict::Yes, Verdict::Unknown]);
    assert_eq!([decided(Op::GreaterOrEqual, 100), decided(Op::GreaterOrEqual, 101)], [Verdict::Yes, Verdict::Unknown]);
    assert_eq!([decided(Op::Less, 100), decided(Op::Less, 101)], [Verdict::No, Verdict::Unknown]);
    assert_eq!([decided(Op::LessOrEqual, 99), decided(Op::LessOrEqual, 100)], [Verdict::No, Verdict::Unknown]);
    assert_eq!([decided(Op::Equal, 99), decided(Op::Equal, 100)], [Verdict::No, Verdict::Unknown]);
    assert_eq!([decided(Op::NotEqual, 99), decided(Op::NotEqual, 100)], [Verdict::Yes, Verdict::Unknown]);
}

#[test]
fn numbers_and_strings_are_compared() {
    for (text, expected) in [
        ("fd == -1", true),
        ("fd < 0 && fd >= -1", true),
        ("fd > -1 || fd != -1", false),
        ("filename == \"/etc/passwd\"", true),
        ("filename != \"/etc/passwd\"", false),
        ("filename ~ \"/etc/*\"", true),
        ("filename !~ \"*.so\"", true),
        ("filename ~ \"etc\"", false),
        ("!(filename ~ \"etc\")", true),
    ] {
        assert_eq!(verdict(text, -1, 0), Verdict::of(expected), "{text}");
    }
}

#[test]
fn the_beginning_of_a_text_decides_if_the_rest_cannot_change_the_result() {
    let decided = |op, with: &str| compare_beginning(b"GET /a", op, with.as_bytes());
    for (like, expected) in [
        ("GET *", Verdict::Yes),
        ("*", Verdict::Yes),
        ("POST*", Verdict::No),
        ("GET /b*", Verdict::No),
        ("GET /ab*", Verdict::Unknown),
        ("*x", Verdict::Unknown),
        ("G?T*", Verdict::Yes),
        ("[G]*", Verdict::Unknown),
        ("GET /a\\*", Verdict::Unknown),
    ] {
        assert_eq!((decided(Op::Like, like), decided(Op::Unlike, like)), (expected, expected.not()), "{like}");
    }
    for (with, expected) in [("GET /a", Verdict::No), ("GET /ab", Verdict::Unknown), ("GET", Verdict::No), ("x", Verdict::No)] {
        assert_eq!((decided(Op::Equal, with), decided(Op::NotEqual, with)), (expected, expected.not()), "{with}");
    }
}

#[test]
fn a_symbol_tests_all_its_bits_and_a_number_any_bit() {
    for (text, flags, expected) in [
        ("flags & CREAT", 0o101, true),
        ("flags & O_CREAT", 0o001, false),
        ("flags & TMPFILE", 0o200_000, false),
        ("flags & TMPFILE", 0o20_200_001, true),
        ("flags & 0x3", 2, true),
        ("flags & WRONLY|RDWR", 2, true),
        ("flags & WRONLY|RDWR", 0o100, false),
        ("flags & RDONLY", 0o100, true),
        ("flags & RDONLY", 0o101, false),
        ("flags & WRONLY", 3, false),
        ("flags == RDONLY", 0, true),
        ("flags == WRONLY|CREAT", 0o101, true),
        ("flags == WRONLY|CREAT", 0o103, false),
    ] {
        assert_eq!(verdict(text, 0, flags), Verdict::of(expected), "{text}");
    }
}

#[test]
fn unknown_values_make_the_verdict_unknown() {
    for (text, expected) in [
        ("ret == 0", Verdict::Unknown),
        ("ret != 0", Verdict::Unknown),
        ("!(ret == 0)", Verdict::Unknown),
        ("ret & 1", Verdict::Unknown),
        ("ret == 0 && fd == 3", Verdict::Unknown),
        ("ret == 0 && fd == 4", Verdict::No),
        ("ret == 0 || fd == 3", Verdict::Yes),
        ("ret == 0 || fd == 4", Verdict::Unknown),
        ("!(ret == 0 || fd == 3)", Verdict::No),
    ] {
        assert_eq!(verdict(text, 3, 0), expected, "{text}");
    }
}

#[test]
fn comparisons_with_values_of_another_type_or_none_are_false() {
    let values = Values([Operand::Text(Cow::Borrowed(b"3")), Operand::Number(0), Operand::Unknown, Operand::Number(1)]);
    for text in ["fd == 3", "fd & 3", "filename == \"x\""] {
        assert_eq!(bound(text).verdict(&values), Verdict::No, "{text}");
    }
    let nothing = Values(std::array::from_fn(|_| Operand::Nothing));
    for text in ["fd == 0", "fd != 0", "flags & 1", "filename == \"x\"", "filename != \"x\""] {
        assert_eq!(bound(text).verdict(&nothing), Verdict::No, "{text}");
    }
}

#[test]
fn unresolved_comparisons_are_errors_with_a_reason() {
    for (text, sentence) in [
        ("fdd == 3", "no traced syscall or event has an argument or field `fdd`; similar: fd"),
        ("fd == 3 && flags & CREATE", "`CREATE` is not a known value of flags; similar: CREAT"),
        ("fd == CREAT", "`CREAT` is not a known value of fd"),
        ("fd == \"/etc\"", "fd is a number and cannot be compared with a string"),
        ("filename == 3", "filename is a string and can only be compared with a string, by == != ~ or !~"),
        ("filename & 3", "filename is a string and can only be compared with a string, by == != ~ or !~"),
    ] {
        let (expr, mut bindings) = (parse(text).unwrap(), Bindings::default());
        expr.bind(&Open, &mut bindings);
        expr.bind(&Bare, &mut bindings);
        assert_eq!(bindings.check("--filter", &expr), Err(format!("--filter '{expr}': {sentence}")), "{text}");
    }
}

#[test]
fn a_word_without_quotes_is_a_string_if_the_name_is_text() {
    assert_eq!(verdict("filename == passwd", 0, 0), Verdict::No);
    assert_eq!(verdict("filename != passwd", 0, 0), Verdict::Yes);
}

#[test]
fn a_name_with_one_value_in_a_scope_is_decided_there() {
    let bind = |text: &str, scope: &dyn Scope| parse(text).unwrap().bind(scope, &mut Bindings::default());
    for (text, holds) in [
        ("syscall == \"open\"", true),
        ("syscall == open", true),
        ("syscall != \"open\"", false),
        ("syscall ~ \"op*\"", true),
        ("syscall == \"read\"", false),
        ("syscall != read", true),
        ("syscall !~ \"op*\"", false),
        ("!(syscall == \"read\") && fd == 3 || syscall == open", true),
    ] {
        assert_eq!(bind(text, &Open), Bound::Constant(holds), "{text}");
    }
    let (expr, mut bindings) = (parse("syscall == \"opeen\"").unwrap(), Bindings::default());
    expr.bind(&Open, &mut bindings);
    let sentence = "--filter 'syscall == \"opeen\"': `opeen` is not a known value of syscall; similar: open";
    assert_eq!(bindings.check("--filter", &expr), Err(sentence.to_owned()));
}

#[test]
fn comparisons_with_names_outside_the_scope_are_false() {
    for (text, holds) in [
        ("fd == 3", Some(false)),
        ("fd != 3", Some(false)),
        ("!(fd == 3)", Some(true)),
        ("ret == 0 && fd == 3", Some(false)),
        ("ret == 0 || !(fd == 3)", Some(true)),
        ("ret == 0 || fd == 3", None),
        ("ret == 0 && !(fd == 3 && flags & CREAT)", None),
    ] {
        let bound = parse(text).unwrap().bind(&Bare, &mut Bindings::default());
        match holds {
            Some(holds) => assert_eq!(bound, Bound::Constant(holds), "{text}"),
            None => assert_eq!(bound, parse("ret == 0").unwrap().bind(&Bare, &mut Bindings::default()), "{text}: the rest is left"),
        }
    }
}

#[test]
fn a_condition_is_valid_if_each_name_exists_in_some_scope() {
    let (expr, mut bindings) = (parse("fd == 3 || ret == 0").unwrap(), Bindings::default());
    expr.bind(&Bare, &mut bindings);
    assert_eq!(
        bindings.check("--filter", &expr),
        Err("--filter 'fd == 3 || ret == 0': no traced syscall or event has an argument or field `fd`".to_owned())
    );
    expr.bind(&Open, &mut bindings);
    expr.bind(&Bare, &mut bindings);
    assert_eq!(bindings.check("--filter", &expr), Ok(()));
}
