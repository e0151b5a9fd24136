use super::*;

fn names(header: &Header) -> Vec<&str> {
    header.constants.iter().map(|constant| constant.name.as_str()).collect()
}

fn expression<'a>(header: &'a Header, name: &str) -> &'a str {
    match &header.constant(name).expect(name).body {
        Body::Expression(text) => text,
        Body::Enumerator { .. } => panic!("{name} is an enumerator"),
    }
}

fn enumerator(header: &Header, name: &str) -> (Option<String>, i64) {
    match &header.constant(name).expect(name).body {
        Body::Enumerator { base, offset } => (base.clone(), *offset),
        Body::Expression(text) => panic!("{name} is a macro: {text}"),
    }
}

#[test]
fn defines_are_read_with_comments_and_continuations() {
    let header = read(
        "/* top\n of it */\n#define A 1 /* one */\n # define\tB\t(A | \\\n\t2) // two\n#define S \"/* no comment\"\n#define GUARD\n#define F(x, y) ((x) + y)\n",
        Target::X86_64,
    );
    assert_eq!(names(&header), ["A", "B"]);
    assert_eq!((expression(&header, "A"), expression(&header, "B")), ("1", "(A | \t2)"));
    assert_eq!(header.constant("B").map(|constant| constant.line), Some(4));
    assert_eq!(header.function("F"), Some(&(vec!["x".into(), "y".into()], "((x) + y)".into())));
}

#[test]
fn conditions_are_evaluated_for_the_target() {
    let text = "#ifndef _G\n#define _G\n#ifdef __KERNEL__\n#define K 1\n#else\n#define U 1\n#endif\n\
                #if __BITS_PER_LONG == 32 || defined(__KERNEL__)\n#define N 1\n#elif U\n#define W 1\n#else\n#define Z 1\n#endif\n\
                #if __UAPI_DEF_IN_ADDR\n#define I 1\n#endif\n#if 0\n#if 1\n#define X 1\n#else\n#define Y 1\n#endif\n#endif\n#endif\n";
    assert_eq!(names(&read(text, Target::X86_64)), ["U", "W", "I"]);
    assert_eq!(names(&read(text, Target::I386)), ["U", "N", "I"]);
}

#[test]
fn the_last_definition_holds_and_undef_removes_it() {
    let header = read("#define A 1\n#define B 2\n#undef A\n#define B 3\n#define C 4\n", Target::X86_64);
    assert_eq!(names(&header), ["B", "C"]);
    assert_eq!((expression(&header, "B"), expression(&header, "C")), ("3", "4"));
}

#[test]
fn enumerators_count_from_the_last_explicit_value() {
    let header = read(
        "enum x {\n  A, /* a */\n#define A A\n  B = (1 << 4), C,\n  D\n};\nenum x y;\ntypedef enum { E = 'x' } e; struct s { enum { G } g; };\n",
        Target::X86_64,
    );
    assert_eq!(names(&header), ["A", "B", "C", "D", "E", "G"]);
    assert_eq!(enumerator(&header, "A"), (None, 0));
    assert_eq!(enumerator(&header, "D"), (Some("(1 << 4)".into()), 2));
    assert_eq!(enumerator(&header, "G"), (None, 0));
    assert_eq!(header.constant("C").map(|constant| constant.line), Some(4));
}

#[test]
fn enumerators_after_a_macro_are_unknown() {
    let header = read("enum { MAPPER(FN) AFTER, LATER, KNOWN = 7, NEXT };", Target::X86_64);
    assert_eq!(names(&header), ["KNOWN", "NEXT"]);
}

#[test]
fn includes_are_recorded() {
    assert_eq!(read("#include <linux/a.h>\n#include \"b.h\"\n#if 0\n#include <c.h>\n#endif\n", Target::X86_64).includes, ["linux/a.h"]);
}

#[test]
fn unterminated_text_does_not_panic() {
    for text in
        ["/* open", "enum {", "enum { A = (", "#define", "#define A \\", "#if", "#else\n#endif\n#endif", "\"open", "#define F(", "enum"]
    {
        read(text, Target::X86_64);
    }
}
