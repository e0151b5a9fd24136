use super::*;

/// One constant, one macro, and a macro that calls itself.
struct FewNames;

impl Names for FewNames {
    fn value(&self, name: &str) -> Result<Int, String> {
        match name {
            "TWO" => Ok(Int::signed(2)),
            "ROUND" => evaluate("SELF(1)", self),
            _ => Err(format!("needs {name}, which no header defines")),
        }
    }

    fn function(&self, name: &str) -> Option<(Vec<String>, String)> {
        match name {
            "TWICE" => Some((vec!["x".into()], "((x) * TWO)".into())),
            "SELF" => Some((vec!["x".into()], "SELF(x)".into())),
            _ => None,
        }
    }

    fn defined(&self, name: &str) -> bool {
        name == "TWO"
    }

    fn size(&self, name: &str) -> Option<u64> {
        (name == "termios2").then_some(44)
    }

    fn word(&self) -> u64 {
        8
    }
}

fn value(text: &str) -> i128 {
    evaluate(text, &FewNames).unwrap_or_else(|error| panic!("{text} {error}")).value
}

fn error_of(text: &str) -> String {
    evaluate(text, &FewNames).expect_err(text)
}

#[test]
fn operators_have_the_precedence_of_c() {
    assert_eq!(value("1 + 2 * 3"), 7);
    assert_eq!(value("1 << 2 + 1"), 8);
    assert_eq!(value("1 | 2 & 6 ^ 4"), 7);
    assert_eq!(value("(1 + 2) * 3 - 10 / 2 % 3"), 7);
    assert_eq!(value("-TWO"), -2);
    assert_eq!(value("!0 && !TWO || 0"), 0);
    assert_eq!(value("TWO > 1 ? 5 : 6"), 5);
    assert_eq!(value("7 - 2 - 1"), 4);
}

#[test]
fn values_wrap_around_as_in_c() {
    assert_eq!(value("1 << 31"), -0x8000_0000);
    assert_eq!(value("1U << 31"), 0x8000_0000);
    assert_eq!(value("~0U"), 0xffff_ffff);
    assert_eq!(value("~0"), -1);
    assert_eq!(value("~0UL"), u64::MAX.into());
    assert_eq!(value("(__u32)-1"), 0xffff_ffff);
    assert_eq!(value("(__u16) ~0"), 0xffff);
    assert_eq!(value("(unsigned long)1 << 40"), 1 << 40);
    assert_eq!(value("-1 > 0U"), 1);
    assert_eq!(value("(TWO)+1"), 3);
}

#[test]
fn common_macros_of_the_headers_are_evaluated() {
    assert_eq!(value("_BITUL(3)"), 8);
    assert_eq!(value("_BITULL(63)"), 1 << 63);
    assert_eq!(value("_AC(5,UL)"), 5);
    assert_eq!(value("BIT(TWO)"), 4);
    assert_eq!(value("TWICE(1 + 2)"), 6);
    assert_eq!(value("sizeof(int) * sizeof(struct termios2)"), 176);
    assert_eq!(value("defined(TWO) && !defined NONE"), 1);
}

#[test]
fn ioctl_commands_contain_sizes() {
    assert_eq!(value("_IO('T', 0x41)"), 0x5441);
    assert_eq!(value("_IOR('T', 0x30, unsigned int)"), 0x8004_5430);
    assert_eq!(value("_IOR('T', 0x2A, struct termios2)"), 0x802c_542a);
    assert_eq!(value("_IOWR('f', 11, char[TWO * 4])"), 0xc008_660b);
    assert_eq!(value("_IOW('f', 2, long)"), 0x4008_6602);
}

#[test]
fn errors_say_what_is_wrong_with_the_expression() {
    assert_eq!(error_of("1 +"), "ends where a value is expected");
    assert_eq!(error_of("1 2"), "has `2` after the end of its expression");
    assert_eq!(error_of("(1"), "has its end where `)` is expected");
    assert_eq!(error_of("1 << 32"), "shifts by 32");
    assert_eq!(error_of("1 / 0"), "divides by 0");
    assert_eq!(error_of("NONE | 1"), "needs NONE, which no header defines");
    assert_eq!(error_of("NONE(1)"), "calls NONE(), which no header defines");
    assert_eq!(error_of("TWICE(1, 2)"), "calls TWICE() with 2 arguments, but the macro takes 1");
    assert_eq!(error_of("ROUND"), "calls macros in a circle");
    assert!(error_of("_IOR('T', 1, struct none)").starts_with("needs the size of `struct none`"));
}

#[test]
fn strings_statements_and_empty_text_are_not_numeric() {
    assert!(is_numeric("(1 << FOO)"));
    assert!(!is_numeric(""));
    assert!(!is_numeric("\"text\""));
    assert!(!is_numeric("do { } while (0)"));
}
