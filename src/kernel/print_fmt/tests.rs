use super::*;
use crate::kernel::format::Format;

fn named(print: &str, field: &str, value: i128) -> Option<String> {
    let print = PrintFormat::parse(print);
    Some(print.value_names(field)?.named(8, &|name| (name == field).then_some(value))?.to_string())
}

#[test]
fn task_states_have_the_names_of_sched_switch() {
    let format = Format::parse(include_str!("../fixtures/sched_switch.format")).unwrap();
    let state = |value| named(&format.print, "prev_state", value).unwrap_or_else(|| "-".into());
    assert_eq!(state(0), "R");
    assert_eq!(state(1), "S");
    assert_eq!(state(2 | 0x80), "D|I");
    assert_eq!(state(0x100), "R+");
    assert_eq!(state(0x101), "S+");
    // Bits without a name are printed as a number.
    assert_eq!(state(0x1001), "S|0x1000");
    assert_eq!(state(0x1000), "-");
}

#[test]
fn a_name_of_zero_is_used_for_flags() {
    let format = Format::parse(include_str!("../fixtures/kmalloc.format")).unwrap();
    let print = PrintFormat::parse(&format.print);
    let names = print.value_names("gfp_flags").unwrap();
    assert_eq!(names.named(8, &|_| Some(0)).map(|named| named.to_string()).as_deref(), Some("none"));
    assert_eq!(print.hint("call_site"), Some(Hint::Code));
}

#[test]
fn values_have_the_names_of_print_symbolic() {
    let print =
        "\"%s\", __print_symbolic(REC->r, { 0, \"A_\" \"ZERO\" }, { (1 << 4) | 1, \"X\" }, { -1, \"MINUS\" }, { SOMETHING, \"Y\" })";
    assert_eq!(named(print, "r", 0).as_deref(), Some("A_ZERO"));
    assert_eq!(named(print, "r", 17).as_deref(), Some("X"));
    assert_eq!(named(print, "r", -1).as_deref(), Some("MINUS"));
    assert_eq!(named(print, "r", 5), None);
}

#[test]
fn bits_outside_of_the_mask_are_printed() {
    let print = "\"%s\", __print_symbolic((unsigned int)REC->code & 0xffff, { 10, \"CPUID\" })";
    assert_eq!(named(print, "code", 10).as_deref(), Some("CPUID"));
    assert_eq!(named(print, "code", 0x8000_000a).as_deref(), Some("CPUID|0x80000000"));
}

#[test]
fn computed_values_have_no_names() {
    assert!(PrintFormat::parse("\"%s\", __print_symbolic(REC->dm >> 8 & 0x7, {0x0, \"Fixed\"})").value_names("dm").is_none());
    assert!(PrintFormat::parse("\"%s\", __print_symbolic(REC->a[1], {0x0, \"Fixed\"})").value_names("a").is_none());
    // The text may have been chosen by either of two fields.
    let print = PrintFormat::parse("\"%s\", REC->errno < 0 ? \"error\" : __print_symbolic(REC->reason, {0, \"UNKNOWN\"})");
    let names = print.value_names("reason").unwrap();
    assert_eq!(names.named(4, &|name| Some(if name == "errno" { -1 } else { 0 })), None);
    assert_eq!(names.named(4, &|_| Some(0)).map(|named| named.to_string()).as_deref(), Some("UNKNOWN"));
}

#[test]
fn conversions_determine_the_hints_of_fields() {
    let print = PrintFormat::parse(
        "\"%pI4 %#llx (%s) %d %s\", REC->saddr, (unsigned long long)REC->a, __get_str(name), REC->b, __print_hex(REC->c, 4)",
    );
    assert_eq!(print.hint("saddr"), Some(Hint::Ip4));
    assert_eq!(print.hint("a"), Some(Hint::Hex));
    assert_eq!(print.hint("b"), None);
    assert_eq!(print.hint("c"), Some(Hint::HexBytes));
}

#[test]
fn an_argument_that_is_not_understood_does_not_affect_others() {
    let print = "\"%s %s\", ({ int x; x; }), __print_flags(REC->f, \"|\", { 1, \"ONE\" }, { 2, \"TWO\" })";
    assert_eq!(named(print, "f", 3).as_deref(), Some("ONE|TWO"));
    assert_eq!(named(print, "f", 0), None);
}

#[test]
fn hostile_lines_yield_no_names_and_cause_no_panic() {
    let deep = format!("\"%s\", __print_flags({}REC->f{}, \"|\", {{1, \"A\"}})", "(".repeat(100_000), ")".repeat(100_000));
    assert!(PrintFormat::parse(&deep).value_names("f").is_none());
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
        assert!(PrintFormat::parse(bad).value_names.is_empty(), "{bad}");
    }
}

#[test]
#[ignore = "needs root and tracefs"]
fn nine_tenths_of_this_kernels_names_are_understood() {
    let tracefs = crate::kernel::tracefs::Tracefs::find().unwrap();
    let (mut understood, mut printed) = (0, 0);
    for (event, format) in crate::kernel::tracefs::tests::formats(&tracefs) {
        printed += usize::from(format.print.contains("__print_flags") || format.print.contains("__print_symbolic"));
        let print = PrintFormat::parse(&format.print);
        understood += usize::from(!print.value_names.is_empty());
        for names in &print.value_names {
            assert!(format.field(&names.field).is_some(), "{event}: no field {}", names.field);
        }
    }
    assert!(understood * 10 >= printed * 9, "only {understood} of {printed}");
}

proptest::proptest! {
    #[test]
    fn random_lines_cause_no_panic(line in "\"(%s|%pI4|%\\*d|a){0,3}\", (REC->f|__print_flags\\(|\\(int\\)|[a-z0-9(){}<>&|?:,\" -]){0,30}", value: i64) {
        let print = PrintFormat::parse(&line);
        for names in &print.value_names {
            let _ = names.named(4, &|_| Some(i128::from(value)));
        }
    }
}
