use super::*;
use crate::kernel::Format;

fn named(print: &str, field: &str, value: i128) -> Option<String> {
    PrintFormat::parse(print).naming(field)?.text(8, &|name| (name == field).then_some(value))
}

#[test]
fn task_states_as_sched_switch_names_them() {
    let format = Format::parse(include_str!("../fixtures/sched_switch.format")).unwrap();
    let state = |value| named(&format.print, "prev_state", value).unwrap_or_else(|| "-".into());
    assert_eq!(state(0), "R");
    assert_eq!(state(1), "S");
    assert_eq!(state(2 | 0x80), "D|I");
    assert_eq!(state(0x100), "R+");
    assert_eq!(state(0x101), "S+");
    // Bits that no name explains stay visible.
    assert_eq!(state(0x1001), "S|0x1000");
    assert_eq!(state(0x1000), "-");
}

#[test]
fn allocation_flags() {
    let format = Format::parse(include_str!("../fixtures/kmalloc.format")).unwrap();
    let print = PrintFormat::parse(&format.print);
    let names = print.naming("gfp_flags").unwrap();
    assert_eq!(names.text(8, &|_| Some(0)).as_deref(), Some("none"));
    assert_eq!(print.hint("call_site"), Some(Hint::Code));
}

#[test]
fn values_with_names() {
    let print =
        "\"%s\", __print_symbolic(REC->r, { 0, \"A_\" \"ZERO\" }, { (1 << 4) | 1, \"X\" }, { -1, \"MINUS\" }, { SOMETHING, \"Y\" })";
    assert_eq!(named(print, "r", 0).as_deref(), Some("A_ZERO"));
    assert_eq!(named(print, "r", 17).as_deref(), Some("X"));
    assert_eq!(named(print, "r", -1).as_deref(), Some("MINUS"));
    assert_eq!(named(print, "r", 5), None);
}

#[test]
fn masked_values_keep_the_rest() {
    let print = "\"%s\", __print_symbolic((unsigned int)REC->code & 0xffff, { 10, \"CPUID\" })";
    assert_eq!(named(print, "code", 10).as_deref(), Some("CPUID"));
    assert_eq!(named(print, "code", 0x8000_000a).as_deref(), Some("CPUID|0x80000000"));
}

#[test]
fn what_is_computed_is_not_named() {
    assert!(PrintFormat::parse("\"%s\", __print_symbolic(REC->dm >> 8 & 0x7, {0x0, \"Fixed\"})").naming("dm").is_none());
    assert!(PrintFormat::parse("\"%s\", __print_symbolic(REC->a[1], {0x0, \"Fixed\"})").naming("a").is_none());
    // Which of two fields chose the text is not said.
    let print = PrintFormat::parse("\"%s\", REC->errno < 0 ? \"error\" : __print_symbolic(REC->reason, {0, \"UNKNOWN\"})");
    let names = print.naming("reason").unwrap();
    assert_eq!(names.text(4, &|name| Some(if name == "errno" { -1 } else { 0 })), None);
    assert_eq!(names.text(4, &|_| Some(0)).as_deref(), Some("UNKNOWN"));
}

#[test]
fn hints_follow_conversions() {
    let print = PrintFormat::parse(
        "\"%pI4 %#llx (%s) %d %s\", REC->saddr, (unsigned long long)REC->a, __get_str(name), REC->b, __print_hex(REC->c, 4)",
    );
    assert_eq!(print.hint("saddr"), Some(Hint::Ip4));
    assert_eq!(print.hint("a"), Some(Hint::Hex));
    assert_eq!(print.hint("b"), None);
    assert_eq!(print.hint("c"), Some(Hint::HexBytes));
}

#[test]
fn one_bad_argument_does_not_spoil_the_others() {
    let print = "\"%s %s\", ({ int x; x; }), __print_flags(REC->f, \"|\", { 1, \"ONE\" }, { 2, \"TWO\" })";
    assert_eq!(named(print, "f", 3).as_deref(), Some("ONE|TWO"));
    assert_eq!(named(print, "f", 0), None);
}

#[test]
fn hostile_lines_explain_nothing_and_do_not_panic() {
    let deep = format!("\"%s\", __print_flags({}REC->f{}, \"|\", {{1, \"A\"}})", "(".repeat(100_000), ")".repeat(100_000));
    assert!(PrintFormat::parse(&deep).naming("f").is_none());
    let calls = format!("\"%s\", {}1{}", "__builtin_expect(".repeat(5_000), ", 1)".repeat(5_000));
    assert_eq!(PrintFormat::parse(&calls), PrintFormat::default());
    let long = format!("\"%d\", REC->f{}", " | REC->f".repeat(100_000));
    assert_eq!(PrintFormat::parse(&long), PrintFormat::default());
    let minus = format!("\"%d\", {}REC->f", "-".repeat(100_000).replace("--", "- -"));
    assert_eq!(PrintFormat::parse(&minus), PrintFormat::default());
    for bad in [
        "",
        "\"",
        "\"%s\"",
        "\"%s\",",
        "\"%s\", (",
        "\"%s\", )",
        "\"%s\", REC->",
        "\"%d\", 1 / 0",
        "\"%d\", 1 << 99",
        "\"%s\", __print_flags(",
    ] {
        assert!(PrintFormat::parse(bad).namings.is_empty(), "{bad}");
    }
}

#[test]
#[ignore = "needs root and tracefs"]
fn the_names_of_this_kernels_events() {
    let tracefs = crate::kernel::Tracefs::find().unwrap();
    let (mut understood, mut printed) = (0, 0);
    for (event, format) in crate::kernel::tracefs::tests::formats(&tracefs) {
        printed += usize::from(format.print.contains("__print_flags") || format.print.contains("__print_symbolic"));
        let print = PrintFormat::parse(&format.print);
        understood += usize::from(!print.namings.is_empty());
        for naming in &print.namings {
            assert!(format.field(&naming.field).is_some(), "{event}: no field {}", naming.field);
        }
    }
    assert!(understood * 10 >= printed * 9, "only {understood} of {printed}");
}

proptest::proptest! {
    #[test]
    fn any_line_is_taken(line in "\"(%s|%pI4|%\\*d|a){0,3}\", (REC->f|__print_flags\\(|\\(int\\)|[a-z0-9(){}<>&|?:,\" -]){0,30}", value: i64) {
        let print = PrintFormat::parse(&line);
        for naming in &print.namings {
            let _ = naming.text(4, &|_| Some(i128::from(value)));
        }
    }
}
