//! Tests of the sentences about words that a subcommand does not know, or lacks.

use super::refused;

#[test]
fn options_that_a_subcommand_does_not_have_are_refused_with_its_name() {
    let shows = |option: &str| {
        format!("`rtrace record` has no option {option}: it shows nothing; give the option to `rtrace -i FILE`, which shows the recording")
    };
    assert_eq!(refused(&["record", "--json", "ls"]), shows("--json"));
    assert_eq!(refused(&["--no-config", "record", "-s", "ls"]), shows("-s"));
    let lacks = [
        ("script", "--json", "`rtrace script` has no option --json (`rtrace script --help` shows all)"),
        ("record", "--nonsense", "`rtrace record` has no option --nonsense (`rtrace record --help` shows all)"),
        (
            "evlist",
            "--trace-field",
            "`rtrace evlist` has no option --trace-field; similar: --trace-fields (`rtrace evlist --help` shows all)",
        ),
        (
            "report",
            "a.data",
            "`rtrace report` does not know what a.data means here; `rtrace report -i a.data` reads a recording of that name",
        ),
        ("check", "word", "`rtrace check` does not know what word means here (`rtrace check --help` shows what may follow)"),
    ];
    for (subcommand, word, sentence) in lacks {
        assert_eq!(refused(&[subcommand, word]), sentence);
    }
}

#[test]
fn missing_arguments_and_subcommands_are_named_with_what_may_be_written() {
    let lacks = [
        (&["diff"][..], "the command line lacks <A> and <B>: write `rtrace diff <A> <B>`"),
        (&["diff", "a.data"], "the command line lacks <B>: write `rtrace diff <A> <B>`"),
        (&["convert", "-i", "a.data"], "the command line lacks --to <FORM>: write `rtrace convert --to <FORM> --input <FILE>`"),
        (&["probe", "add"], "the command line lacks <SPEC>: write `rtrace probe add SPEC` or `rtrace probe add [--force] -f FILE`"),
        (&["probe"], "`rtrace probe` needs a subcommand: list, show, add, del, emit (`rtrace probe --help` explains them)"),
    ];
    for (words, sentence) in lacks {
        assert_eq!(refused(words), sentence);
    }
}
