//! Runs the whole generator on small files: its output for valid ones, and its faults for invalid ones.

use crate::generator::fault::Fault;
use crate::generator::generate::{Input, Output, Rows, generate, parse};
use crate::generator::header::Target;
use crate::report;

#[path = "examples/coverage.rs"]
mod coverage;
#[path = "examples/structs.rs"]
mod structs;

const NUMBERS: &str = "open 2 5 2 -\nread 0 3 0 63\nold - 9 - -\n";
const TABLES: &str = "open_flags flags fcntl.h O_* !O_ACCMODE !O_RD* !O_WR* field=O_ACCMODE:open_access\n\
                      open_access enum fcntl.h O_RDONLY O_WRONLY\n";
const SYSCALLS: &str =
    "open name:path flags:open_flags mode:mode?flags&8|__SYNC -> fd %file\nread fd:fd buf:out bytes[ret] count:size -> size\n";

fn header(name: &str) -> Option<String> {
    let text = match name {
        "fcntl.h" => {
            "#define O_ACCMODE 3\n#define O_RDONLY 0\n#define O_WRONLY 1\n#define O_DSYNC 0x10\n#define __SYNC 0x20\n#define O_SYNC (__SYNC|O_DSYNC)\n#define O_DIR 0x40\n"
        }
        "newer/fcntl.h" => "#define O_NEW 0x80\n#define O_DIR 0x40\n#define O_OTHER 0x100\n",
        "enum.h" => "enum { E_ONE = 1, E_UNO = 1, E_TWO, E_BAD = NONE };\n",
        _ => return None,
    };
    Some(text.into())
}

/// Runs the generator on the files above, some of them replaced.
fn run(changed: &[(&str, &str)]) -> Result<Output, Vec<Fault>> {
    let files = files(changed);
    generate(&Input { files: &files, custom_rs: "pub fn node_mode(", decoders_rs: "pub fn sigset<'a>(", load: &header })
}

fn files(changed: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut files = vec![("syscalls/a.tbl", SYSCALLS), ("tables/a.tbl", TABLES), ("arch/numbers.tbl", NUMBERS)];
    for (name, text) in changed {
        files.retain(|(known, _)| known != name);
        files.push((name, text));
    }
    files.into_iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

fn rows(changed: &[(&str, &str)]) -> Rows {
    let mut faults = Vec::new();
    let rows = parse(&files(changed), &mut faults);
    assert_eq!(faults, []);
    rows
}

fn listing(changed: &[(&str, &str)]) -> String {
    match run(changed) {
        Ok(output) => output.listing,
        Err(faults) => panic!("{}", faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
    }
}

/// Asserts that the generator reports as many faults as expected, and that each begins with the expected text.
fn faults(changed: &[(&str, &str)], expected: &[&str]) {
    let faults = run(changed).err().unwrap_or_default();
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), expected.len(), "{texts:#?}");
    for (text, expected) in texts.iter().zip(expected) {
        assert!(text.starts_with(expected), "reported: {text}\nexpected: {expected}");
    }
}

#[test]
fn composite_flags_come_first_and_fields_exclude_their_bits() {
    assert_eq!(
        listing(&[]),
        "open_access enum fcntl.h 32 bits, without O_\n    O_RDONLY 0x0\n    O_WRONLY 0x1\n\
         open_flags flags fcntl.h 32 bits, without O_\n    O_SYNC 0x30\n    O_DSYNC 0x10\n    O_DIR 0x40\n    0x3: open_access\n"
    );
}

#[test]
fn an_abi_with_other_values_gets_its_own_table() {
    let arch = [("arch/aarch64.tbl", "O_DSYNC 0x40\nO_DIR -\nO_BTI 0x400 fcntl.h\n")];
    assert!(
        listing(&arch).ends_with("  in Aarch64:\n    O_SYNC 0x60\n    O_DSYNC 0x40\n    O_BTI 0x400\n    O_DIR is not there\n"),
        "{}",
        listing(&arch)
    );
    let rust = run(&arch).expect("good").rust;
    assert!(rust.contains("per_abi: &[(Abi::Aarch64, &OPEN_FLAGS_AARCH64), ]"), "{rust}");
}

#[test]
fn newer_constants_are_added_to_older_headers() {
    let tables = "open_flags flags newer/fcntl.h O_* !O_OTHER\n";
    let syscalls = "open name:path flags:open_flags mode:mode -> fd\nread fd:fd -> size\n";
    let with = |newer: &str| listing(&[("tables/a.tbl", tables), ("syscalls/a.tbl", syscalls), ("newer.tbl", newer)]);
    assert_eq!(with(""), with("O_NEW 0x80 6.5 newer/fcntl.h\n"));
    assert!(with("O_NEWER 0x200 6.5 newer/fcntl.h\n").contains("O_NEWER 0x200"));
    // The build machine does not have the header at all.
    let absent = [("tables/a.tbl", "open_flags flags absent.h O_*"), ("syscalls/a.tbl", syscalls), ("newer.tbl", "O_X 1 6.5 absent.h")];
    assert_eq!(listing(&absent), "open_flags flags absent.h 32 bits, without O_\n    O_X 0x1\n");
}

#[test]
fn the_rust_text_contains_rows_numbers_and_names() {
    let rust = run(&[]).expect("good").rust;
    for part in [
        "Syscall { name: \"open\", event: \"open\", numbers: [Some(2), Some(5), Some(2), None], args: &[",
        "Arg { name: \"flags\", kind: ArgumentKind::Table(&constants::OPEN_FLAGS), flow: Flow::In, written: Outcomes::SUCCEEDED, length: Length::OfType, traits: Traits::empty(), fd_of: None, socket: None, used: Condition::Always },",
        "used: Condition::If { text: \"flags&8|__SYNC\", any: &[BitTest { arg: 1, mask: 0x28, comparison: Comparison::SomeBit }] } },",
        "Arg { name: \"buf\", kind: ArgumentKind::Bytes, flow: Flow::Out, written: Outcomes::SUCCEEDED, length: Length::Ret, traits: Traits::empty(), fd_of: None, socket: None, used: Condition::Always },",
        "returns: Return::Fd, groups: Groups::FILE, does: Special::Plain, variants: &[",
        "&[1, 65535, 0],",
        "(Abi::I386, 9, \"old\"),",
    ] {
        assert!(rust.contains(part), "{part}\n{rust}");
    }
    assert_eq!(rust, run(&[]).expect("good").rust);
}

#[test]
fn values_of_tables_and_of_their_fields_select_variants() {
    let plain = "open name:path flags:open_flags mode:mode -> fd\nread fd:fd -> size\n";
    let with = |variant: &str| run(&[("syscalls/a.tbl", &format!("{plain}{variant}\n"))]).expect("good").rust;
    let rust = with("open name:path flags=O_WRONLY mode:int");
    assert!(rust.contains("Variant { arg: 1, mask: 0x3, values: &[1], args: &["), "{rust}");
    let rust = with("open name:path flags=O_DIR|7 -> int");
    assert!(rust.contains("Variant { arg: 1, mask: 0xffffffff, values: &[64, 7], args: &["), "{rust}");
}

/// Plain rows of two syscalls, and variants by the first argument and by the first two.
const OPTIONS: &str = "get@500 level:int name:int value:out bytes[length] length:inout(succeeded|failed) s32* -> int\n\
                       set@501 level:int name:int value:optional bytes[length] length:int -> int\n\
                       get,set level=1|2 name:open_flags value:like bytes length\n\
                       get,set level=3 name:int value:like str length\n\
                       get,set level=1|2 name=O_DIR value:like varies s32* length\n\
                       set level=1|2 name=O_DIR value:like sized length=8\n";
const SIZED: &str = "sized 8 8 8 8 a:u32 b:u32\n";

#[test]
fn several_arguments_select_a_variant_of_a_variant() {
    let rows = format!("{SYSCALLS}{OPTIONS}");
    let rust = run(&[("syscalls/a.tbl", &rows), ("structs/a.tbl", SIZED)]).expect("good").rust;
    let of = |name: &str| {
        rust.split(&format!("Syscall {{ name: {name:?}")).nth(1).and_then(|rest| rest.split("\nSyscall {").next()).expect(name)
    };
    let selectors = |name: &str| {
        let variants = of(name).split("Variant { ").skip(1).filter_map(|rest| rest.split(", args:").next());
        variants.map(|text| text.replace("mask: 0xffffffff, ", "")).collect::<Vec<_>>()
    };
    let [level, other, name, length] = ["arg: 0, values: &[1, 2]", "arg: 0, values: &[3]", "arg: 1, values: &[64]", "arg: 3, values: &[8]"];
    assert_eq!(selectors("get"), [level, name, other]);
    assert_eq!(selectors("set"), [level, name, length, other]);
    let inherited = "Arg { name: \"value\", kind: ArgumentKind::Number { bytes: 4, signed: true }, flow: Flow::Out, written: Outcomes::SUCCEEDED, \
                     length: Length::Arg(3), traits: Traits::VARIES, fd_of: None, socket: None, used: Condition::Always },";
    assert!(of("get").contains(inherited), "{}", of("get"));
    let length = "Arg { name: \"length\", kind: ArgumentKind::Number { bytes: 4, signed: true }, flow: Flow::InOut, \
                  written: Outcomes::SUCCEEDED.union(Outcomes::FAILED),";
    assert_eq!(of("get").matches(length).count(), 4, "each variant has the plain row's: {}", of("get"));
    assert!(of("set").contains("kind: ArgumentKind::Struct(&structs::SIZED), flow: Flow::In, written: Outcomes::SUCCEEDED, length: Length::Arg(3), traits: Traits::OPTIONAL"));
}

#[test]
fn faults_of_variants_name_the_line_and_the_problem() {
    let with = |rows: &str| format!("{OPTIONS}{rows}\n");
    let plain = "get@500 level:int name:int value:out bytes[length] length:inout s32* -> int\n";
    for (rows, expected) in [
        (
            format!("{plain}get level=1|2 name:int\nget level=2"),
            "syscalls/a.tbl:3: 2 already selects an earlier variant of get: syscalls/a.tbl:2",
        ),
        (
            format!("{plain}get level=1\nget level=0x1 name:uint"),
            "syscalls/a.tbl:3: 0x1 already selects an earlier variant of get: syscalls/a.tbl:2",
        ),
        (format!("{plain}get level=1|0x1"), "syscalls/a.tbl:2: 1 and 0x1 are the same value"),
        (format!("{plain}get level=0x100000000"), "syscalls/a.tbl:2: 0x100000000 has more than 32 bits"),
        (format!("{plain}get level=1 name=2"), "syscalls/a.tbl:2: no row of get before this one has level=1 without name"),
        (
            format!("{plain}get level=1 name:int\nget level name=2"),
            "syscalls/a.tbl:3: other bits or another argument (level) select the variants of get before this one: syscalls/a.tbl:2",
        ),
        (
            format!("{plain}get level=1|2 name:int\nget level=1 name=2"),
            "syscalls/a.tbl:3: name all values of level for which the row at syscalls/a.tbl:2 applies",
        ),
        (format!("{plain}get level=1\nget level=1 name=2"), "syscalls/a.tbl:3: this row is a variant of a row that does not have name"),
        (
            format!("{plain}get level=1 name:int value:like str"),
            "syscalls/a.tbl:2: get, value: the argument with its length is missing in this variant",
        ),
        (format!("{plain}get level=1 name:int value:like int length"), "syscalls/a.tbl:2: get, value: value is a value in a register"),
        (format!("{plain}get level=1 name value:like none length"), "syscalls/a.tbl:2: get, value: `none` is not a basic kind"),
        (with("set level=3|1|2 name=64"), "syscalls/a.tbl:7: 64 already selects an earlier variant of set: syscalls/a.tbl:5"),
        (with("set level=4|1|2 name=65"), "syscalls/a.tbl:7: no row of set before this one has level=4 without name"),
    ] {
        let rows = format!("{rows}\n{SYSCALLS}");
        let files = [("syscalls/a.tbl", rows.as_str()), ("structs/a.tbl", SIZED)];
        let texts: Vec<String> = run(&files).err().unwrap_or_default().iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.starts_with(expected)), "{texts:#?}\nexpected: {expected}");
    }
}

#[test]
fn faults_of_syscall_rows_name_the_line_and_the_problem() {
    let with = |row: &str| format!("{SYSCALLS}{row}\n");
    for (row, expected) in [
        ("open -> fd", "syscalls/a.tbl:3: open already has a row: syscalls/a.tbl:1"),
        ("mine -> fd", "syscalls/a.tbl:3: mine has no number"),
        ("mine@400 -> fd", "syscalls/a.tbl:3: numbers below 424 differ per ABI"),
        ("mine@500 a:none -> fd", "syscalls/a.tbl:3: mine, a: `none` is not a basic kind, a table or a struct"),
        ("mine@500 a:int?none -> fd", "syscalls/a.tbl:3: `?none` is not a condition"),
        ("mine@500 a:int?f&O_NONE f:open_flags -> fd", "syscalls/a.tbl:3: mine, a: O_NONE is not in the table open_flags"),
        ("mine@500 a:int?f&O_RDONLY f:open_flags -> fd", "syscalls/a.tbl:3: mine, a: O_RDONLY is 0 and has no bit to test"),
        ("mine@500 a:int?f==none.O_DIR f:int -> fd", "syscalls/a.tbl:3: mine, a: there is no table none"),
        ("mine@500 a:int?f==O_DIR f:int -> fd", "syscalls/a.tbl:3: mine, a: O_DIR is not a number, and f has no table"),
        ("mine@500 a:int?f&3==open_flags.O_DIR f:int -> fd", "syscalls/a.tbl:3: mine, a: open_flags.O_DIR has bits outside the mask 0x3"),
        ("mine@500 a:int?f==0x100000000 f:int -> fd", "syscalls/a.tbl:3: mine, a: a condition compares 32 bits"),
        ("mine@500 a:custom.none -> fd", "syscalls/a.tbl:3: mine, a: custom.none is not a function of src/beauty/custom.rs"),
        ("mine@500 a:bytes -> fd", "syscalls/a.tbl:3: mine, a: `bytes` needs a [LENGTH]"),
        ("mine@500 a:int[4] -> fd", "syscalls/a.tbl:3: mine, a: a is a value in a register"),
        ("mine@500 a:fd* -> fd", "syscalls/a.tbl:3: mine, a: `fd*`: only a number"),
        ("mine@500 -> none", "syscalls/a.tbl:3: `none` is not a kind of return value, a table, or a function of"),
        ("mine@500 -> int %none", "syscalls/a.tbl:3: %none is not a group"),
        ("open path:path flags=O_DIR", "syscalls/a.tbl:3: the arguments of this variant of open have other names"),
        ("open name:path flags=O_NONE", "syscalls/a.tbl:3: O_NONE is not in the table open_flags"),
        ("read fd=X", "syscalls/a.tbl:3: X is not a number, and fd has no table"),
        ("mine fd=1", "syscalls/a.tbl:3: this variant of mine has no plain row before it"),
    ] {
        faults(&[("syscalls/a.tbl", &with(row))], &[expected]);
    }
    faults(&[("syscalls/a.tbl", &with("read fd=1\nread fd=2|1"))], &["syscalls/a.tbl:4: 1 already selects an earlier variant of read"]);
    faults(&[("syscalls/a.tbl", &with("mine/read@500 -> int"))], &["syscalls/a.tbl:2: read has the same event as another row: read"]);
}

#[test]
fn faults_of_table_rows_name_the_line_and_the_problem() {
    let with = |row: &str| format!("{TABLES}{row}\n");
    for (row, expected) in [
        ("open_flags enum fcntl.h O_DIR", "tables/a.tbl:3: another table or struct has the name open_flags: tables/a.tbl:1"),
        ("alone enum fcntl.h O_DIR", "tables/a.tbl:3: the table alone is unused"),
        ("int enum fcntl.h O_DIR rust", "tables/a.tbl:3: int is the name of a basic kind"),
        ("mine enum none.h O_DIR rust", "tables/a.tbl:3: none.h is not installed"),
        ("mine enum fcntl.h O_DIR X_* rust", "tables/a.tbl:3: X_* matches no constant of fcntl.h"),
        ("mine enum fcntl.h O_DIR !X rust", "tables/a.tbl:3: X is not a constant of fcntl.h"),
        ("mine enum enum.h E_ONE E_UNO rust", "tables/a.tbl:3: E_ONE and E_UNO are both 0x1"),
        ("mine enum enum.h E_BAD rust", "tables/a.tbl:3: E_BAD of enum.h needs NONE, which no header defines"),
        ("mine flags fcntl.h O_RDONLY O_DIR rust", "tables/a.tbl:3: O_RDONLY is 0 and has no bits"),
        ("mine flags fcntl.h O_DIR zero=O_DSYNC rust", "tables/a.tbl:3: O_DSYNC is 16, not 0"),
        ("mine flags fcntl.h O_DIR field=O_ACCMODE:none rust", "tables/a.tbl:3: there is no table none"),
        ("mine flags fcntl.h O_DIR field=NONE:open_access rust", "tables/a.tbl:3: the mask NONE needs NONE"),
    ] {
        faults(&[("tables/a.tbl", &with(row))], &[expected]);
    }
    assert!(listing(&[("tables/a.tbl", &with("mine enum enum.h E_* !E_BAD last rust"))]).contains("E_UNO 0x1\n    E_TWO 0x2\n"));
    assert!(listing(&[("tables/a.tbl", &with("mine flags fcntl.h O_DIR zero=O_RDONLY rust"))]).contains("O_DIR 0x40\n    O_RDONLY 0x0\n"));
}

#[test]
fn a_variant_may_test_some_bits() {
    let rows = format!("{SYSCALLS}mine@500 f:open_flags b:hex -> int\nmine f&O_DIR|0x2=O_DIR b:int\n");
    let rust = run(&[("syscalls/a.tbl", &rows)]).map(|output| output.rust).expect("good");
    assert!(rust.contains("Variant { arg: 0, mask: 0x42, values: &[64]"), "{rust}");
    let outside = format!("{SYSCALLS}mine@500 f:open_flags b:hex -> int\nmine f&O_DIR=0x2 b:int\n");
    let fault = run(&[("syscalls/a.tbl", &outside)]).err().unwrap_or_default();
    assert!(fault.iter().any(|fault| fault.to_string().contains("0x2 has bits outside the mask 0x40")), "{fault:?}");
}

#[test]
fn headers_newer_than_the_rows_do_not_stop_the_build() {
    let tables = format!("{TABLES}mine enum enum.h E_* rust\nzeroes flags fcntl.h O_RDONLY O_DIR rust\n");
    let files = files(&[("tables/a.tbl", &tables)]);
    let listing = |version: &str| {
        let load =
            |name: &str| if name == "linux/version.h" { Some(format!("#define LINUX_VERSION_CODE {version}\n")) } else { header(name) };
        generate(&Input { files: &files, custom_rs: "", decoders_rs: "", load: &load }).map(|output| output.listing)
    };
    assert_eq!(listing("0x702ff").err().map(|faults| faults.len()), Some(3));
    let ahead = listing("0x70300").expect("good");
    assert!(ahead.contains("    E_ONE 0x1\n    E_TWO 0x2\n"), "{ahead}");
    assert!(ahead.ends_with("zeroes flags fcntl.h 32 bits, without O_\n    O_DIR 0x40\n"), "{ahead}");
}

#[test]
fn faults_of_numbers_and_overlays_name_the_line_and_the_problem() {
    let missing = format!("{NUMBERS}mine 9 - - -\n");
    faults(&[("arch/numbers.tbl", &missing)], &["arch/numbers.tbl:4: mine is a syscall of x86-64, but has no row"]);
    let double = format!("{NUMBERS}other - 9 - -\nold - - - 1\n");
    faults(
        &[("arch/numbers.tbl", &double)],
        &["arch/numbers.tbl:4: other has the same number as old", "arch/numbers.tbl:5: old is listed twice"],
    );
    faults(&[("structs/a.tbl", "alone 1 1 1 1")], &["structs/a.tbl:1: the struct alone is unused"]);
    faults(&[("newer.tbl", "O_DIR 0x41 6.5 fcntl.h")], &["newer.tbl:1: O_DIR is 0x41 here, but 0x40 in fcntl.h"]);
    faults(&[("kernel.tbl", "O_DIR 0x41 fs.c")], &["kernel.tbl:1: O_DIR is 0x41 here, but 0x40 in fcntl.h"]);
    faults(&[("arch/i386.tbl", "O_DIR 0x40")], &["arch/i386.tbl:1: O_DIR has the same value in x86-64"]);
    faults(&[("arch/i386.tbl", "X 0x40")], &["arch/i386.tbl:1: no table selects X", "arch/i386.tbl:1: x86-64 does not have X"]);
    faults(&[("arch/vax.tbl", "O_DIR 0x41")], &["arch/vax.tbl:1: this is not the file of an ABI"]);
    faults(&[("else.tbl", "")], &["else.tbl:1: this file name is not known"]);
}

#[test]
fn a_variant_needs_a_value_that_all_abis_share() {
    let rows = format!("{SYSCALLS}open name:path flags=O_DIR\n");
    faults(&[("syscalls/a.tbl", &rows), ("arch/aarch64.tbl", "O_DIR 0x400")], &["syscalls/a.tbl:3: O_DIR has another value in Aarch64"]);
    let rows = format!("{SYSCALLS}open name:path flags=O_DIR@any\n");
    let rust = run(&[("syscalls/a.tbl", &rows), ("arch/aarch64.tbl", "O_DIR 0x400")]).expect("good").rust;
    assert!(rust.contains("Variant { arg: 1, mask: 0xffffffff, values: &[64, 1024], args: &["), "{rust}");
}

#[test]
fn reports_list_differences_between_rows_and_headers() {
    let tables = "open_flags flags fcntl.h O_* !O_ACCMODE zero=O_RDONLY\n";
    let old = rows(&[("tables/a.tbl", tables), ("newer.tbl", "O_DIR 0x40 6.5 fcntl.h\nX 1 6.5 fcntl.h\n")]);
    assert_eq!(report::unselected(&old, &header), ["fcntl.h:5: __SYNC"]);
    assert_eq!(report::outdated(&old, &header), ["newer.tbl:1: O_DIR is now in fcntl.h", "newer.tbl:2: no table mentions X"]);
    let newer = |name: &str| header(&format!("newer/{name}"));
    assert_eq!(report::newer(&old, &header, &newer), ["O_NEW 0x80 fcntl.h", "O_OTHER 0x100 fcntl.h"]);
    assert!(report::changed(&old, &header, &newer).contains(&"O_SYNC of fcntl.h was 0x30 and is no longer defined".to_string()));
    let own =
        |name: &str| (name == "asm/fcntl.h").then(|| "#define O_DIR 0x800\n#define O_MINE 0x1000\n".to_string()).or_else(|| header(name));
    assert_eq!(report::arch(&old, &header, &own, Target::Aarch64, &["asm/fcntl.h".into()]), ["O_DIR 0x800", "O_MINE 0x1000 fcntl.h"]);
}
