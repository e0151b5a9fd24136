use super::*;
use crate::beauty::access::Step;
use proptest::prelude::*;

fn test(name: &str, op: Op, value: Value) -> Expr {
    Expr::Test(Comparison { name: Name(name.to_owned()), op, value })
}

fn symbol(name: &str) -> Value {
    Value::Symbol(name.to_owned())
}

fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

#[test]
fn all_kinds_of_comparisons_are_parsed() {
    for (written, name, op, value) in [
        ("ret == 0", "ret", Op::Equal, Value::Number(0)),
        ("ret!=-1", "ret", Op::NotEqual, Value::Number(-1)),
        ("count<4K", "count", Op::Less, Value::Number(4096)),
        ("count <= 1M", "count", Op::LessOrEqual, Value::Number(1 << 20)),
        ("mode > 0644", "mode", Op::Greater, Value::Number(0o644)),
        ("addr >= 0xffffffffffffffff", "addr", Op::GreaterOrEqual, Value::Number(i128::from(u64::MAX))),
        ("flags & CREAT", "flags", Op::Bits, symbol("CREAT")),
        ("flags & WRONLY|O_RDWR | 0x20", "flags", Op::Bits, Value::AnyOf(vec![symbol("WRONLY"), symbol("O_RDWR"), Value::Number(32)])),
        ("errno == ENOENT", "errno", Op::Equal, symbol("ENOENT")),
        ("ret == -ENOENT", "ret", Op::Equal, symbol("-ENOENT")),
        ("addr.port == 443", "addr.port", Op::Equal, Value::Number(443)),
        ("filename ~ \"/etc/*\"", "filename", Op::Like, text("/etc/*")),
        ("fd.path !~ '*.so'", "fd.path", Op::Unlike, text("*.so")),
        ("comm == \"a\\\"b\\\\\\x41\\t\"", "comm", Op::Equal, text("a\"b\\A\t")),
        (r#"comm ~ "\*""#, "comm", Op::Like, text("\\*")),
        ("delay > 10us", "delay", Op::Greater, Value::Number(10_000)),
    ] {
        assert_eq!(parse(written), Ok(test(name, op, value)), "{written}");
    }
}

#[test]
fn a_duration_without_a_unit_is_milliseconds() {
    let nanoseconds = |ns| Ok(test("duration", Op::Greater, Value::Number(ns)));
    assert_eq!(parse("duration > 10"), nanoseconds(10_000_000));
    assert_eq!(parse("duration > 10ms"), nanoseconds(10_000_000));
    assert_eq!(parse("duration > 0.5"), nanoseconds(500_000));
    assert_eq!(parse("duration > 0"), nanoseconds(0));
}

#[test]
fn not_binds_tighter_than_and_which_binds_tighter_than_or() {
    let a = || test("a", Op::Equal, Value::Number(1));
    let b = || test("b", Op::Equal, Value::Number(2));
    let c = || test("c", Op::Bits, Value::Number(3));
    assert_eq!(parse("a==1||b==2&&c&3"), Ok(Expr::Or(vec![a(), Expr::And(vec![b(), c()])])));
    assert_eq!(parse("(a==1||b==2)&&!c&3"), Ok(Expr::And(vec![Expr::Or(vec![a(), b()]), Expr::Not(Box::new(c()))])));
    assert_eq!(parse("!!((a == 1))"), Ok(Expr::Not(Box::new(Expr::Not(Box::new(a()))))));
    assert_eq!(parse("a==1 && b==2 && c&3"), Ok(Expr::And(vec![a(), b(), c()])));
}

#[test]
fn syntax_errors_have_a_caret_under_the_error() {
    for (written, shown) in [
        ("", "a name is missing at the end\n    \n    ^"),
        ("ret = 0", "use == to test for equality\n    ret = 0\n        ^"),
        ("ret", "`ret` has no operator and no value; to test for a number other than 0, write ret != 0\n    ret\n       ^"),
        (
            "ret && fd == 3",
            "`ret` has no operator and no value; to test for a number other than 0, write ret != 0\n    ret && fd == 3\n        ^",
        ),
        ("ret 0", "an operator is missing (== != < <= > >= & ~ !~)\n    ret 0\n        ^"),
        ("ret <", "a value is missing at the end\n    ret <\n         ^"),
        ("ret < && fd == 3", "a value is missing before `&`\n    ret < && fd == 3\n          ^"),
        ("0 < ret", "`0` is not a name; a condition consists of a name, an operator and a value, like fd == 3\n    0 < ret\n    ^"),
        (
            "a..b == 1",
            "`a..b` is not a name; a condition consists of a name, an operator and a value, like fd == 3\n    a..b == 1\n    ^~~~",
        ),
        ("argv[1 == 1", "this bracket is not closed\n    argv[1 == 1\n        ^"),
        ("argv[x] == 1", "`[x]` is not an element; write [0] for the first one and so on, or [*] for any\n    argv[x] == 1\n        ^~~"),
        (
            "argv[0]x == 1",
            "`argv[0]x` is not a name; a condition consists of a name, an operator and a value, like fd == 3\n    argv[0]x == 1\n    ^~~~~~~~",
        ),
        ("fd == 3 ret == 0", "&& or || is missing between two conditions\n    fd == 3 ret == 0\n            ^"),
        ("flags & A & B", "use A|B to test several bits, and && to join conditions\n    flags & A & B\n              ^"),
        ("(fd == 3", "this parenthesis is not closed\n    (fd == 3\n    ^"),
        ("(fd == 3]", "&& or || is missing between two conditions\n    (fd == 3]\n            ^"),
        ("fd == 3)", "this closing parenthesis has no opening one\n    fd == 3)\n           ^"),
        ("comm == \"ba", "this string has no closing quote\n    comm == \"ba\n            ^~~"),
        ("comm == \"\\xg0\"", "\\x needs two hexadecimal digits\n    comm == \"\\xg0\"\n             ^~"),
        ("comm ~ bash", "a pattern must be a string in quotes: comm ~ \"bash\"\n    comm ~ bash\n           ^~~~"),
        ("fd ~ 3", "a pattern must be a string in quotes\n    fd ~ 3\n         ^"),
        ("comm < \"a\"", "strings can only be compared with == != ~ !~\n    comm < \"a\"\n           ^~~"),
        (
            "comm == \"a\"|\"b\"",
            "strings cannot be combined with |; write two conditions and join them with ||\n    comm == \"a\"|\"b\"\n            ^~~~~~~",
        ),
        ("filename == /etc", "a value is missing before `/`\n    filename == /etc\n                ^"),
        ("fd == 10x", "`x` is not a unit (of time: ns us ms s m h; of size: K M G)\n    fd == 10x\n          ^~~"),
        ("fd == 0x1g", "`0x1g` is not a hexadecimal number of at most 64 bits\n    fd == 0x1g\n          ^~~~"),
        ("mode == 0888", "`0888` is not an octal number (a leading 0 means octal)\n    mode == 0888\n            ^~~~"),
        (
            "fd == 99999999999999999999",
            "`99999999999999999999` is too large\n    fd == 99999999999999999999\n          ^~~~~~~~~~~~~~~~~~~~",
        ),
        ("fd == -+", "a value is missing before `-`\n    fd == -+\n          ^"),
    ] {
        assert_eq!(parse(written).unwrap_err().to_string(), shown, "{written}");
    }
}

#[test]
fn a_name_has_a_path_into_its_value() {
    let member = |name: &str| Step::Member(name.into());
    for (name, head, steps) in [
        ("fd", "fd", vec![]),
        ("fd.path", "fd", vec![member("path")]),
        ("argv[1]", "argv", vec![Step::Element(1)]),
        ("fds[*].fd.path", "fds", vec![Step::AnyElement, member("fd"), member("path")]),
        ("msg.msg_iov[0].iov_base", "msg", vec![member("msg_iov"), Step::Element(0), member("iov_base")]),
    ] {
        let Expr::Test(comparison) = parse(&format!("{name} == 1")).unwrap() else { panic!("{name} is one comparison") };
        assert_eq!((comparison.name.head(), comparison.name.steps()), (head, steps), "{name}");
        assert_eq!(comparison.to_string(), format!("{name} == 1"));
    }
}

#[test]
fn the_depth_of_nesting_is_limited() {
    let deep = |depth: usize| format!("{}a == 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&deep(90)).is_ok());
    assert_eq!(parse(&deep(100_000)).unwrap_err().message, "the condition is nested too deeply");
    assert_eq!(parse(&"!".repeat(100_000)).unwrap_err().message, "the condition is nested too deeply");
    let long = vec!["a == 1"; 10_000].join(" && ");
    assert!(parse(&long).is_ok());
}

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![any::<u64>().prop_map(i128::from), any::<i32>().prop_map(i128::from)].prop_map(Value::Number)
}

fn any_symbol() -> impl Strategy<Value = Value> {
    "[A-Z_][A-Z0-9_]{0,9}".prop_map(Value::Symbol)
}

fn any_comparison() -> impl Strategy<Value = Expr> {
    let number = prop_oneof![
        any_number(),
        any_symbol(),
        proptest::collection::vec(prop_oneof![any_number(), any_symbol()], 2..4).prop_map(Value::AnyOf)
    ];
    let text = prop_oneof![".{0,9}".prop_map(String::into_bytes), proptest::collection::vec(any::<u8>(), 0..9)].prop_map(Value::Text);
    let numeric =
        proptest::sample::select(vec![Op::Equal, Op::NotEqual, Op::Less, Op::LessOrEqual, Op::Greater, Op::GreaterOrEqual, Op::Bits]);
    let textual = proptest::sample::select(vec![Op::Equal, Op::NotEqual, Op::Like, Op::Unlike]);
    let name = prop_oneof!["[a-z_][a-z0-9_]{0,5}(\\.[a-z_]{1,5})?", Just("duration".to_owned())];
    (name, prop_oneof![(numeric, number), (textual, text)])
        .prop_map(|(name, (op, value))| Expr::Test(Comparison { name: Name(name), op, value }))
}

fn any_expr() -> impl Strategy<Value = Expr> {
    any_comparison().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Expr::Or),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Expr::And),
            inner.prop_map(|inner| Expr::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #[test]
    fn printed_conditions_are_parsed_back(expr in any_expr()) {
        let printed = expr.to_string();
        prop_assert_eq!(parse(&printed).map_err(|wrong| wrong.to_string()), Ok(expr), "{}", printed);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,20}|[a-z0-9&|!=<>~()\"'\\\\. ]{0,20}") {
        if let Err(wrong) = parse(&text) {
            prop_assert!(wrong.at.start <= wrong.at.end && wrong.at.end <= text.len(), "{:?}", wrong);
        }
    }
}
