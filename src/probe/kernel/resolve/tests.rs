use super::*;
use crate::probe::grammar::{Line, parse};
use crate::probe::testing::{Built, Machine};
use std::path::PathBuf;

fn probe(line: &str) -> Probe {
    match parse(line) {
        Ok(Line::Make(probe)) => probe,
        other => panic!("{line}: {other:?}"),
    }
}

/// Returns the resolved lines, which rtrace writes to tracefs.
fn lines(line: &str, machine: &mut Machine) -> Result<Vec<String>, String> {
    let found = crate::probe::resolve(&probe(line), machine).map_err(|error| format!("{error:#}"))?;
    Ok(found.probes.iter().map(Probe::to_string).collect())
}

fn with_types() -> Machine {
    Machine { types: Some(types()), ..Machine::default() }
}

fn only(line: &str) -> String {
    lines(line, &mut with_types()).unwrap_or_else(|error| panic!("{line}: {error}")).concat()
}

fn refused(line: &str) -> String {
    lines(line, &mut with_types()).expect_err(line)
}

/// Builds BTF (Documentation/bpf/btf.rst).
#[derive(Default)]
struct BtfBuilder {
    strings: Vec<u8>,
    types: Vec<u8>,
    count: u32,
}

impl BtfBuilder {
    fn text(&mut self, text: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        at
    }

    fn add(&mut self, name: &str, kind: u32, count: u32, word: u32, rest: &[u32]) -> u32 {
        let name = self.text(name);
        [&[name, kind << 24 | count, word], rest].concat().iter().for_each(|word| self.types.extend(word.to_ne_bytes()));
        self.count += 1;
        self.count
    }

    /// Adds a type with members (name, type and offset) or parameters (name and type).
    fn of_parts(&mut self, name: &str, kind: u32, word: u32, parts: &[(&str, &[u32])]) -> u32 {
        let rest: Vec<u32> = parts.iter().flat_map(|(name, words)| [&[self.text(name)], *words].concat()).collect();
        self.add(name, kind, parts.len() as u32, word, &rest)
    }

    fn finish(self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = [&0xeb9fu16.to_ne_bytes()[..], &[1, 0]].concat();
        [24, 0, types, types, strings].iter().for_each(|word: &u32| bytes.extend(word.to_ne_bytes()));
        [bytes, self.types, self.strings].concat()
    }
}

fn types() -> Vec<u8> {
    const SIGNED: u32 = 1 << 24;
    const WITH_BIT_FIELDS: u32 = 0x84;
    let mut builder = BtfBuilder::default();
    let int = builder.add("int", 1, 0, 4, &[SIGNED | 32]);
    let long = builder.add("long unsigned int", 1, 0, 8, &[64]);
    let char = builder.add("char", 1, 0, 1, &[SIGNED | 8]);
    let of_user = builder.add("user", 18, 0, char, &[]);
    let user_text = builder.add("", 2, 0, of_user, &[]);
    let constant = builder.add("", 10, 0, char, &[]);
    let text = builder.add("", 2, 0, constant, &[]);
    let letters = builder.add("", 3, 0, 0, &[char, int, 16]);
    let size = builder.add("size_t", 8, 0, long, &[]);
    let declared = builder.add("inode", 7, 0, 0, &[]);
    let to_inode = builder.add("", 2, 0, declared, &[]);
    let nameless = builder.of_parts("", 5, 8, &[("i_count", &[int, 0]), ("i_long", &[long, 0])]);
    builder.of_parts(
        "inode",
        WITH_BIT_FIELDS,
        32,
        &[("i_ino", &[size, 0]), ("i_few", &[int, 3 << 24 | 66]), ("", &[nameless, 128]), ("i_name", &[text, 192])],
    );
    let file = builder.of_parts("file", 4, 32, &[("f_inode", &[to_inode, 0]), ("f_name", &[letters, 64]), ("f_user", &[user_text, 192])]);
    let to_file = builder.add("", 2, 0, file, &[]);
    let read = builder.of_parts("", 13, long, &[("file", &[to_file]), ("buf", &[user_text]), ("count", &[size])]);
    builder.add("vfs_read", 12, 0, read, &[]);
    let opened = builder.of_parts("", 13, to_file, &[("how", &[file]), ("flags", &[int])]);
    builder.add("file_open", 12, 0, opened, &[]);
    let nothing = builder.of_parts("", 13, 0, &[("number", &[int])]);
    builder.add("nothing", 12, 0, nothing, &[]);
    let to_nothing = builder.add("", 2, 0, 0, &[]);
    let traced = builder.of_parts("", 13, 0, &[("__data", &[to_nothing]), ("preempt", &[int]), ("from", &[to_file])]);
    builder.add("__traceiter_switched", 12, 0, traced, &[]);
    builder.finish()
}

#[test]
fn arguments_are_numbered_and_typed() {
    assert_eq!(only("p vfs_read file count"), "p vfs_read file=$arg1:x64 count=$arg3:u64");
    assert_eq!(only("f vfs_read count:x8"), "f vfs_read count=$arg3:x8");
    assert_eq!(only("p vfs_read $arg*"), "p vfs_read file=$arg1:x64 buf=$arg2:x64 count=$arg3:u64");
    assert_eq!(only("t switched preempt from->f_name"), "t switched preempt=$arg1:s32 from_f_name=+8($arg2):string");
    assert_eq!(only("p vfs_read plain=%di"), "p vfs_read plain=%di");
}

#[test]
fn members_and_strings_are_resolved() {
    for (asked, fetched) in [
        ("file->f_name", "file_f_name=+8($arg1):string"),
        ("file->f_inode->i_ino", "file_f_inode_i_ino=+0(+0($arg1)):u64"),
        ("file->f_inode->i_few", "file_f_inode_i_few=+8(+0($arg1)):b3@2/8"),
        ("file->f_inode->i_count", "file_f_inode_i_count=+16(+0($arg1)):s32"),
        ("file->f_inode->i_name:string", "file_f_inode_i_name=+0(+24(+0($arg1))):string"),
        // Memory that the sources mark by `__user` is read as user memory.
        ("buf:string", "buf=+u0($arg2):string"),
        ("file->f_user:string", "file_f_user=+u0(+24($arg1)):string"),
    ] {
        assert_eq!(only(&format!("p vfs_read {asked}")), format!("p vfs_read {fetched}"));
    }
}

#[test]
fn return_values_are_typed() {
    assert_eq!(only("r vfs_read $retval"), "r vfs_read $retval:u64");
    assert_eq!(only("f file_open%return $retval->f_inode"), "f file_open%return retval_f_inode=+0($retval):x64");
    assert_eq!(only("r nothing $retval"), "r nothing $retval");
    assert_eq!(only("r unheard_of $retval"), "r unheard_of $retval");
    assert!(refused("r nothing $retval->x").contains("the function's return type is not known"));
    let early = refused("r vfs_read count");
    assert_eq!(early, "this kernel (6.1.0-test, before 6.9) can fetch a function's arguments only at its entry, not at its return");
}

#[test]
fn errors_list_similar_or_existing_names() {
    for (asked, why) in [
        ("p vfs_read fiel", "vfs_read has no argument fiel; similar: file"),
        ("p vfs_read zzz", "vfs_read has no argument zzz; its arguments are file, buf, count"),
        ("p vfs_raed file", "the kernel's type information has no function vfs_raed; similar: vfs_read"),
        ("t switchd preempt", "the kernel's type information has no tracepoint switchd; similar: switched"),
        ("p vfs_read file.f_name", "file is a pointer: write file->f_name"),
        ("p vfs_read file->f_nme", "struct file has no member f_nme; similar: f_name"),
        (
            "p file_open flags",
            "the argument flags of file_open cannot be located, because how is neither a number nor a pointer; fetch registers instead",
        ),
    ] {
        assert_eq!(refused(asked), why);
    }
    let without = lines("p vfs_read file", &mut Machine::default()).unwrap_err();
    assert!(without.starts_with("this kernel has no type information (CONFIG_DEBUG_INFO_BTF)"), "{without}");
    assert!(refused("f vfs_* file").starts_with("vfs_* may match several functions"));
}

#[test]
fn probes_without_names_stay_unchanged() {
    for line in
        ["p vfs_read", "p:g/e ext4:f+8 %di @jiffies", "p 0xffffffff81000000", "f vfs_read%return", "t switched", "r8 vfs_read a=$retval:x8"]
    {
        let unchanged = crate::probe::resolve(&probe(line), &mut Machine::default()).unwrap();
        assert_eq!(unchanged, Resolved::unchanged(&probe(line)));
    }
}

#[test]
fn the_running_kernels_btf_is_read() {
    let Ok(bytes) = crate::kernel::btf::of_the_kernel() else {
        eprintln!("SKIPPED: this kernel has no BTF; nothing was tested");
        return;
    };
    let mut machine = Machine { types: Some(bytes.to_vec()), ..Machine::default() };
    assert_eq!(lines("p tcp_sendmsg sk size", &mut machine).unwrap(), ["p tcp_sendmsg sk=$arg1:x64 size=$arg3:u64"]);
    let path = lines("p vfs_read file->f_flags file->f_inode->i_ino", &mut machine).unwrap().concat();
    assert!(path.contains("file_f_flags=+") && path.ends_with(")):u64"), "{path}");
    assert_eq!(lines("t sched_process_exit p", &mut machine).unwrap(), ["t sched_process_exit p=$arg1:x64"]);
}

/// Compiles a file that takes the role of the kernel's `vmlinux`.
#[cfg(target_arch = "x86_64")]
fn kernel_file() -> Option<(Built, Machine)> {
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/probes/names_other.c");
    let kind = ["-O2", "-g", "-mcmodel=kernel", "-ffreestanding", "-fno-pie", "-fcf-protection=none", "-fno-stack-protector"];
    let linked = ["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext-segment=0xffffffff81000000", other];
    let built = Built::new("kernel.c", &[&kind[..], &linked].concat())?;
    let instead = vec![(PathBuf::from("/usr/lib/debug/boot/vmlinux-6.1.0-test"), built.path.clone())];
    Some((built, Machine { instead, ..Machine::default() }))
}

#[cfg(target_arch = "x86_64")]
#[test]
fn lines_of_the_kernel_are_resolved() {
    let Some((built, mut machine)) = kernel_file() else { return };
    let source = include_str!("../../../../tests/programs/probes/kernel.c");
    let at = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() + 1;
    let (first, line) = (at("*getname_flags("), at("the line \"result\""));
    let by_function = lines(&format!("p getname_flags:{} result->name:string count", line - first), &mut machine).unwrap();
    let by_file = lines(&format!("p kernel.c:{line} result->name:string count"), &mut machine).unwrap();
    assert_eq!(by_function, by_file);
    let [probe] = &by_file[..] else { panic!("{by_file:?}") };
    let (place, args) = probe.strip_prefix("p getname_flags+").unwrap().split_once(' ').unwrap();
    assert!(place.parse::<u64>().unwrap() > 0, "{probe}");
    assert!(args.starts_with("result_name=+0(+0(%") && args.contains(")):string count=%") && args.ends_with(":s32"), "{probe}");
    // Two functions have this name, so the place is counted from _text.
    let twin = lines(&format!("p kernel.c:{} number", at("the line \"twin\"")), &mut machine).unwrap().concat();
    let distance = built.svmas_of("twin").into_iter().filter_map(|svma| svma.checked_sub(built.svma_of("_text")));
    assert!(
        twin.starts_with("p _text+") && distance.into_iter().any(|distance| twin.starts_with(&format!("p _text+{distance} "))),
        "{twin}"
    );
    // An address inside a function, and static data.
    let inside = lines("p getname_flags+1 shared_name.refcnt", &mut machine).unwrap().concat();
    assert!(inside.starts_with("p getname_flags+1 shared_name_refcnt=@shared_name+8:s32"), "{inside}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn only_the_running_kernels_file_is_used() {
    let nowhere = lines("p getname_flags:3 result", &mut Machine::default()).unwrap_err();
    for part in ["getname_flags:3 cannot be resolved", "/usr/lib/debug/boot/vmlinux-6.1.0-test", "package linux-image-6.1.0-test-dbg"] {
        assert!(nowhere.contains(part), "{nowhere}");
    }
    let Some((_built, mut machine)) = kernel_file() else { return };
    machine.build_id = crate::stack::symbols::BuildId::new(&[1, 2, 3]);
    let other = lines("p getname_flags:3 result", &mut machine).unwrap_err();
    assert!(other.contains("vmlinux-6.1.0-test is of another build"), "{other}");
}
