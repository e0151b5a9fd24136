//! Tests of variables on x86-64.

use crate::probe::grammar::{Fetch, FilePlace, Line, Probe, ProbePoint, parse};
use crate::probe::resolve::{Resolved, resolve};
use crate::probe::testing::{Built, Machine};

fn probe(line: &str) -> Probe {
    match parse(line) {
        Ok(Line::Make(probe)) => probe,
        other => panic!("{line}: {other:?}"),
    }
}

fn resolved(built: &Built, line: &str) -> Result<Resolved, String> {
    let line = line.replace("APP", built.path.to_str().unwrap());
    resolve(&probe(&line), &mut Machine::default()).map_err(|error| format!("{error:#}"))
}

/// Returns the resolved arguments of a probe that has one address.
fn args(built: &Built, line: &str) -> String {
    let found = resolved(built, line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let [probe] = &found.probes[..] else { panic!("{line}: {found:?}") };
    let line = probe.to_string();
    line.split_once(' ').unwrap().1.split_once(' ').map_or(String::new(), |(_, args)| args.to_owned())
}

fn refused(built: &Built, line: &str) -> String {
    resolved(built, line).expect_err(line)
}

fn optimized() -> Option<Built> {
    Built::new("app.c", &["-O2", "-g"])
}

#[test]
fn arguments_in_registers_are_fetched() {
    let Some(app) = optimized() else { return };
    assert_eq!(args(&app, "p APP:handle req->path:string len"), "req_path=+0(+0(%di)):string len=%si:s32");
    assert_eq!(args(&app, "p APP:handle req len:x8 tag"), "req=%di:x64 len=%si:x8 tag=%dx:u8");
    assert_eq!(args(&app, "p APP:handle where=req->next->path:string"), "where=+0(+0(+96(%di))):string");
    assert_eq!(args(&app, "p APP:handle $arg*"), "req=%di:x64 len=%si:s32 tag=%dx:u8");
    assert_eq!(args(&app, "p APP:many a f g h"), "a=%di:s64 f=%r9:s64 g=+8(%sp):s64 h=+16(%sp):s16");
    assert_eq!(args(&app, "p APP:handle deep=+8(req):u32 plain=%di"), "deep=+8(%di):u32 plain=%di");
}

#[test]
fn members_are_fetched_by_their_types() {
    let Some(app) = optimized() else { return };
    for (asked, fetched) in [
        ("req->len", "req_len=+8(%di):s32"),
        ("req->urgent", "req_urgent=+12(%di):b1@0/8"),
        ("req->level", "req_level=+12(%di):b5@1/8"),
        ("req->wide", "req_wide=+13(%di):b12@0/16"),
        ("req->name", "req_name=+15(%di):string"),
        ("req->name:string", "req_name=+15(%di):string"),
        ("req->name[2]", "req_name_2=+17(%di):s8"),
        ("req->corner.y", "req_corner_y=+34(%di):s16"),
        ("req->number", "req_number=+40(%di):s64"),
        ("req->bytes", "req_bytes=+40(%di):u8[8]"),
        ("req->list", "req_list=+48(%di):s64[4]"),
        ("req->list:x64[2]", "req_list=+48(%di):x64[2]"),
        ("req->points[2].x", "req_points_2_x=+88(%di):s16"),
        ("req->next->next->mood", "req_next_next_mood=+112(+96(+96(%di))):u32"),
        ("req[1].len", "req_1_len=+144(%di):s32"),
        ("req->ratio:x64", "req_ratio=+104(%di):x64"),
        ("req->is_last", "req_is_last=+128(%di):u8"),
        ("req->path[1]", "req_path_1=+1(+0(%di)):s8"),
    ] {
        assert_eq!(args(&app, &format!("p APP:handle {asked}")), fetched, "{asked}");
    }
}

#[test]
fn global_variables_are_fetched() {
    for flags in [&["-O2", "-g", "-no-pie"][..], &["-O2", "-g", "-pie", "-fPIE"]] {
        let Some(app) = Built::new("app.c", flags) else { return };
        let found = resolved(&app, "p APP:handle served_total origin.y").unwrap();
        let ProbePoint::File { at: FilePlace::Offset(offset), .. } = found.probes[0].place else { panic!("{found:?}") };
        // The offset counts as if the whole file were mapped in the same way as the probed page.
        let bias = offset.wrapping_sub(app.svma_of("handle"));
        let [total, origin] = ["served_total", "origin"].map(|name| app.svma_of(name).wrapping_add(bias));
        let values: Vec<&Fetch> = found.probes[0].args.iter().map(|arg| &arg.value).collect();
        assert_eq!(values, [&Fetch::AtFileOffset(total), &Fetch::AtFileOffset(origin + 2)]);
    }
}

/// Unoptimized code keeps its arguments on the stack, where the prologue stores them.
#[test]
fn arguments_on_the_stack_move_the_probe_behind_the_prologue() {
    let Some(app) = Built::new("app.c", &["-O0", "-g"]) else { return };
    let found = resolved(&app, "p APP:handle req->len").unwrap();
    let ProbePoint::File { at: FilePlace::Offset(offset), .. } = found.probes[0].place else { panic!("{found:?}") };
    let begins = resolved(&app, "p APP:handle").unwrap();
    let ProbePoint::File { at: FilePlace::Offset(first), .. } = begins.probes[0].place else { panic!("{begins:?}") };
    assert!((first + 8..first + 64).contains(&offset), "{first:#x}, {offset:#x}");
    assert!(found.notes[0].ends_with("bytes behind the entry of handle, where its arguments are stored"), "{:?}", found.notes);
    let fetched = args(&app, "p APP:handle req->len");
    assert!(fetched.starts_with("req_len=+8(-") && fetched.ends_with("(%bp)):s32"), "{fetched}");
    // The caller stored this argument.
    assert_eq!(args(&app, "p APP:many g"), "g=+8(%sp):s64");
    let local = refused(&app, "p APP:handle sum");
    assert!(
        local.ends_with(
            "sum is a local variable of handle, which has no value at the function's entry; probe a line of the function, as in handle:3"
        ),
        "{local}"
    );
}

#[test]
fn variables_in_scope_at_a_line_are_fetched() {
    let line = source_line("the line \"steps\"");
    for level in ["-O0", "-O2"] {
        let Some(app) = Built::new("app.c", &[level, "-g"]) else { return };
        let by_file = resolved(&app, &format!("p APP:app.c:{line} steps start half")).unwrap();
        let declared = source_line("NOINLINE int wander");
        let by_function = resolved(&app, &format!("p APP:wander:{} steps start half", line - declared)).unwrap();
        assert_eq!(by_file, by_function);
        assert!(by_file.probes.iter().all(|probe| probe.args.len() == 3), "{by_file:?}");
        let types: Vec<String> = by_file.probes[0].args.iter().map(|arg| arg.kind.as_ref().unwrap().to_string()).collect();
        assert_eq!(types, ["s32"; 3], "{level}");
    }
}

#[test]
fn every_inlined_copy_is_probed() {
    let line = source_line("the line \"scaled\"");
    let Some(app) = optimized() else { return };
    let found = resolved(&app, &format!("p APP:app.c:{line} product factor")).unwrap();
    assert_eq!(found.probes.len(), 2, "{found:?}");
    let factors: Vec<&Fetch> = found.probes.iter().map(|probe| &probe.args[1].value).collect();
    assert!(factors.contains(&&Fetch::Immediate(3)) && factors.contains(&&Fetch::Immediate(4)), "{found:?}");
    let declared = source_line("long scaled(");
    assert_eq!(resolved(&app, &format!("p APP:scaled:{} product factor", line - declared)).unwrap(), found);
}

#[test]
fn return_values_have_a_type() {
    let Some(app) = optimized() else { return };
    assert_eq!(args(&app, "r APP:handle $retval"), "$retval:s32");
    assert_eq!(args(&app, "r APP:named name=$retval:string"), "name=+0($retval):string");
    assert_eq!(
        args(&app, "r APP:following $retval->len $retval->path:string"),
        "retval_len=+8($retval):s32 retval_path=+0(+0($retval)):string"
    );
    let gone = refused(&app, "r APP:handle req");
    assert!(gone.contains("variables cannot be fetched at a function's return, only $retval"), "{gone}");
}

#[test]
fn unfetchable_values_are_explained() {
    let Some(app) = optimized() else { return };
    for (asked, why) in [
        ("handle rec", "handle has no variable rec; similar: req"),
        ("handle req.len", "req is a pointer: write req->len"),
        ("handle req->corner->x", "req->corner is not a pointer: write req->corner.x"),
        ("handle req->lenn", "struct req has no member lenn; similar: len"),
        ("handle req->corner", "req->corner is struct point as a whole; name one of its members: x, y"),
        ("handle req->hidden->x", "the members of req->hidden are not known: struct opaque is only declared"),
        ("handle len[0]", "len is neither an array nor a pointer, so it has no elements"),
        ("handle len.x", "len is a number, so it has no member x"),
        ("handle req->list[4]", "req->list has 4 elements, so [4] is out of range"),
        ("handle len:string", "len is a number, not text"),
        ("handle req->ratio", "req->ratio is a floating-point number, which the kernel cannot show; write :x64 or :x32 to fetch its bits"),
        ("handle req->points", "req->points is an array whose elements are struct point; name one element, as in req->points[0]"),
        ("handle own_number", "own_number cannot be fetched: it is thread-local"),
        ("ratio by", "by cannot be fetched: it is in a floating-point register, which the kernel cannot fetch"),
    ] {
        let said = refused(&app, &format!("p APP:{asked}"));
        assert!(said.ends_with(why), "{asked}: {said}");
    }
}

#[test]
fn lines_near_a_line_without_code_are_suggested() {
    let Some(app) = optimized() else { return };
    let comment = source_line("// Functions whose variables");
    assert!(refused(&app, &format!("p APP:app.c:{comment}")).contains(&format!("app.c:{comment} has no code; line ")));
    assert!(refused(&app, "p APP:apq.c:50").ends_with("the debug information has no source file apq.c with code; similar: app.c"));
    assert!(refused(&app, "p APP:handel:2").ends_with("there is no function handel"));
    // This line is behind the function's last one; code behind that belongs to another function.
    let behind = refused(&app, "p APP:handle:400");
    let last = behind.split_once("has no code in handle; line ").and_then(|(_, line)| line.strip_suffix(" has code")?.parse::<u32>().ok());
    assert!(last.is_some_and(|line| (5..9).contains(&line)), "{behind}");
}

#[test]
fn separate_debug_information_is_found() {
    let Some(bare) = Built::new("app.c", &["-O2"]) else { return };
    let said = refused(&bare, "p APP:handle req");
    assert!(said.contains("has no debug information") && said.contains("build it with -g"), "{said}");
    assert_eq!(args(&bare, "r APP:handle $retval"), "$retval");
    let Some(app) = optimized() else { return };
    app.move_debug_information_away();
    assert_eq!(args(&app, "p APP:handle req->path:string len"), "req_path=+0(+0(%di)):string len=%si:s32");
}

#[test]
fn all_versions_of_dwarf_are_read() {
    for flags in [&["-gdwarf-2", "-gstrict-dwarf"][..], &["-gdwarf-3"], &["-gdwarf-4"], &["-gdwarf-5"], &["-gdwarf-5", "-gz"]] {
        let Some(app) = Built::new("app.c", &[&["-O1"], flags].concat()) else { return };
        assert_eq!(
            args(&app, "p APP:handle req->path:string req->level len"),
            "req_path=+0(+0(%di)):string req_level=+12(%di):b5@1/8 len=%si:s32",
            "{flags:?}"
        );
    }
}

#[test]
fn damaged_files_cause_no_panic() {
    let Some(app) = Built::new("app.c", &["-O2", "-g", "-no-pie"]) else { return };
    let whole = std::fs::read(&app.path).unwrap();
    let asked = [
        "p APP:handle req->next->points[1].x served_total $arg*",
        "p APP:app.c:57 product",
        "p APP:scaled:2 factor",
        "r APP:following $retval->mood",
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut answers = [0, 0];
    for round in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..=round % 40 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // The first third has headers and code; damage to those is tested elsewhere.
            let at = bytes.len() / 3 + (random >> 33) as usize % (bytes.len() * 2 / 3);
            bytes[at] ^= 1 << (random >> 24 & 7);
        }
        std::fs::write(&app.path, &bytes).unwrap();
        answers[usize::from(resolved(&app, asked[round % asked.len()]).is_ok())] += 1;
    }
    assert!(answers[0] > 0 && answers[1] > 0, "{answers:?}");
}

fn source_line(text: &str) -> u32 {
    let source = include_str!("../../../../tests/programs/probes/app.c");
    source.lines().position(|line| line.contains(text)).unwrap() as u32 + 1
}
