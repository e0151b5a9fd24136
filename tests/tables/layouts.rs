//! Compares the offsets and sizes of struct members with those of the C compiler and the installed headers, in each
//! ABI.

use crate::files::UAPI_VARIABLE;
use crate::reviewed;
use rtrace::tables::{Abi, ArgumentKind, MemoryType, STRUCTS, SYSCALLS, Struct, StructLayout, Syscall};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Structs whose definition in the headers of an ABI is not the kernel's, and the reason.
const DIFFERENT_IN_C: [(&str, Abi, &str); 15] = [
    ("timespec", Abi::X32, "linux/time_types.h has nanoseconds of 32 bits with padding behind them; the kernel writes 64 bits"),
    ("utimespec", Abi::X32, "linux/time_types.h has nanoseconds of 32 bits with padding behind them; the kernel writes 64 bits"),
    (
        "bpf_tracing",
        Abi::I386,
        "linux/bpf.h has 64 bits that need no alignment there, but 32-bit programs use the struct of the 64-bit kernel",
    ),
    ("bpf_link_tracing", Abi::I386, "it contains bpf_tracing"),
    ("prctl_mm_map", Abi::I386, "linux/prctl.h has a pointer, but 32-bit programs use the struct of the 64-bit kernel"),
    ("prctl_mm_map", Abi::X32, "linux/prctl.h has a pointer, but 32-bit programs use the struct of the 64-bit kernel"),
    ("btrfs_ioctl_vol_args_v2", Abi::I386, "linux/btrfs.h has a pointer, but 32-bit programs use the struct of the 64-bit kernel"),
    ("btrfs_ioctl_vol_args_v2", Abi::X32, "linux/btrfs.h has a pointer, but 32-bit programs use the struct of the 64-bit kernel"),
    ("__fat_dirent", Abi::X32, "linux/msdos_fs.h has an offset of 64 bits, but x32 uses the struct of 32-bit programs"),
    ("kvm_guest_debug", Abi::Aarch64, "the row has the registers of x86"),
    ("ptrace_syscall_info", Abi::I386, "headers before Linux 6.16 lack the padding that the kernel's struct has"),
    ("statfs", Abi::X32, "asm-generic/statfs.h has 32-bit words if a long has 32 bits, but x32 uses x86-64's syscall"),
    ("shmid_ds", Abi::X32, "asm/shmbuf.h has a size of 32 bits with padding behind it, but x32 uses x86-64's syscall"),
    ("sigaction", Abi::I386, "asm/signal.h has the struct of the old sigaction"),
    ("sigaction", Abi::X32, "asm/signal.h has a mask of 32 bits, the kernel one of 64"),
];

/// Structs that the headers of Linux 7.2 do not define: the kernel has removed them, or only other ABIs have them.
const REMOVED: [&str; 23] = [
    "kvm_assigned_irq",
    "kvm_assigned_msix_entry",
    "kvm_assigned_msix_nr",
    "kvm_assigned_pci_dev",
    "kvm_breakpoint",
    "kvm_debug_guest",
    "kvm_memory_region",
    "kvm_ppc_one_page_size",
    "kvm_ppc_one_seg_page_size",
    "kvm_ppc_pvinfo",
    "kvm_ppc_resize_hpt",
    "kvm_ppc_smmu_info",
    "kvm_pv_cmd",
    "kvm_s390_cmma_log",
    "kvm_s390_interrupt",
    "kvm_s390_irq",
    "kvm_s390_irq_state",
    "kvm_s390_mem_op",
    "kvm_s390_psw",
    "kvm_s390_skeys",
    "kvm_s390_ucas_mapping",
    "kvm_s390_zpci_op",
    "kvm_user_trace_setup",
];

/// Members that are bit-fields with names of their own in C.
const BIT_FIELDS: [(&str, &str); 6] = [
    ("perf_event_attr", "flags"),
    ("bpf_insn", "regs"),
    ("bpf_prog_info", "gpl_compatible"),
    ("user_desc", "flags"),
    ("tcp_info", "tcpi_wscale"),
    ("tcp_info", "tcpi_limits"),
];

/// Lines before headers that include headers of the C library, which exist for one ABI only: the beginning of the
/// header's name, and definitions of what it uses of them.
const BEFORE: [(&str, &str); 5] = [
    ("linux/sctp.h", BEFORE_SCTP),
    ("linux/videodev2.h", BEFORE_VIDEODEV2),
    ("linux/if.h", BEFORE_IF),
    ("linux/if_arp.h", BEFORE_IF),
    ("linux/phonet.h", BEFORE_IF),
];
const BEFORE_IF: &str = "#define _SYS_SOCKET_H 1\n#include <linux/socket.h>\n\
    struct sockaddr { __kernel_sa_family_t sa_family; char sa_data[14]; };\n";

const BEFORE_VIDEODEV2: &str = "#define _SYS_TIME_H 1\n#include <linux/time_types.h>\n\
    #define timeval __kernel_old_timeval\n#define timespec __kernel_old_timespec\n";

/// Definitions that linux/sctp.h uses without including them. The C library's definitions exist for one ABI only.
const BEFORE_SCTP: &str = "#include <linux/types.h>\n\
    typedef __u8 uint8_t; typedef __u16 uint16_t; typedef __u32 uint32_t; typedef __s32 int32_t; typedef __u64 uint64_t;\n\
    #define sockaddr_storage __kernel_sockaddr_storage\n#define MSG_FIN 0x200\n";

/// Headers that the C library has only for the ABIs whose libraries are installed. They list functions that are not
/// implemented, which no struct needs, so that empty ones do as well.
const STUBS: [&str; 2] = ["gnu/stubs-32.h", "gnu/stubs-x32.h"];

/// The message if a struct is larger than its row, and that if it has another size.
const LARGER: &str = "more than the size of";
const SIZE: &str = "size of";

#[test]
fn members_have_the_offsets_of_the_c_compiler() {
    let directory = tempfile::tempdir().expect("a directory for C files");
    for stub in STUBS {
        let path = directory.path().join(stub);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory for headers");
        fs::write(path, "").expect("an empty header");
    }
    let (mut wrong, mut lacking, mut larger) = (Vec::new(), BTreeSet::new(), HashMap::new());
    for abi in Abi::ALL {
        match check(abi, directory.path()) {
            Ok(compared) => {
                eprintln!("{abi:?}: {} struct members compared", compared.members);
                wrong.extend(compared.wrong.iter().map(|error| format!("{abi:?}: {error}")));
                lacking.extend(compared.lacking.into_iter().map(|name| format!("{name} ({abi:?})")));
                larger.insert(abi, compared.larger);
            }
            Err(text) => reviewed::report(&format!("SKIPPED: struct members in {abi:?}: {text}")),
        }
    }
    reviewed::lacks("structs or members that rows have", &lacking.into_iter().collect::<Vec<_>>());
    // A new member makes a struct larger in each ABI. One that is larger in some has padding that the row lacks.
    let of_x86_64 = larger.get(&Abi::X86_64).cloned().unwrap_or_default();
    let padded =
        larger.iter().flat_map(|(abi, names)| names.iter().map(move |name| (abi, name))).filter(|(_, name)| !of_x86_64.contains(*name));
    wrong.extend(padded.map(|(abi, name)| format!("{abi:?}: {LARGER} {name}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    reviewed::brings(
        "structs that are larger than their rows",
        "add the members",
        &of_x86_64.into_iter().map(Into::into).collect::<Vec<_>>(),
    );
}

/// What the compiler said about the structs of an ABI.
struct Compared {
    /// The number of compared members.
    members: usize,
    /// The structs that the headers lack, or of which they lack members.
    lacking: BTreeSet<&'static str>,
    /// The structs that are larger than their rows.
    larger: BTreeSet<&'static str>,
    /// The errors that contradict rows.
    wrong: Vec<String>,
}

/// Returns the result of the comparison, or the reason why the compiler could not run.
fn check(abi: Abi, directory: &Path) -> Result<Compared, String> {
    let mut compiler = compiler(abi)?;
    compiler.arg("-idirafter").arg(directory);
    let used = used_in(abi);
    let mut members = HashMap::new();
    for of in STRUCTS.iter().filter(|of| used.contains(of.name)) {
        let StructLayout::Members(all) = &of.layout else { continue };
        if let Some((name, _, why)) = DIFFERENT_IN_C.iter().find(|(name, other, _)| (*name, *other) == (of.name, abi)) {
            eprintln!("SKIPPED: {name} in {abi:?}: {why}");
            continue;
        }
        if of.source.is_empty() {
            continue;
        }
        members.insert(of.name, all[abi as usize].len());
        let file = directory.join(format!("{}.c", of.name));
        fs::write(&file, assertions(of, abi)).map_err(|error| error.to_string())?;
        compiler.arg(file);
    }
    let output = compiler.output().map_err(|error| format!("{:?}: {error}", compiler.get_program()))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let errors = errors(&stderr);
    if !output.status.success() && errors.is_empty() {
        return Err(stderr.into_owned());
    }
    let known = |name: &str| members.keys().copied().find(|known| *known == name);
    // Headers older than the rows may lack structs, or members, so that structs are smaller. All else must agree.
    // Newer ones lack those that the kernel has removed.
    let are_newest = reviewed::are_of(7, 2);
    let may_lack = |name: &str, error: &str| !are_newest || REMOVED.contains(&name) || lacks_header_of_abi(error);
    let lacking = errors.iter().filter(|(name, error)| lacks(error) && may_lack(name, error));
    let lacking: BTreeSet<&str> = lacking.filter_map(|(name, _)| known(name)).collect();
    let larger = errors.iter().filter(|(_, error)| error.contains(LARGER)).filter_map(|(name, _)| known(name)).collect();
    let excused = |name: &str, error: &str| {
        let is_of_size = error.contains(&format!("\"{SIZE}"));
        error.contains(LARGER) || lacking.contains(name) && (lacks(error) || is_of_size)
    };
    let wrong = errors.iter().filter(|(name, error)| !excused(name, error)).map(|(_, error)| (*error).to_owned()).collect();
    let members = members.iter().filter(|(name, _)| !lacking.contains(*name)).map(|(_, count)| count).sum();
    Ok(Compared { members, lacking, larger, wrong })
}

/// Returns the errors in the compiler's output, each with the name of its struct, which is the name of the C file. If
/// the error is in a header, the lines before it say which file includes it.
fn errors(output: &str) -> Vec<(&str, &str)> {
    let mut file = "";
    let mut found = Vec::new();
    for line in output.lines() {
        if let Some((path, _)) = line.split_once(".c:") {
            file = path.rsplit(['/', ' ']).next().unwrap_or_default();
        }
        // This error follows from the one about an unknown struct or member.
        let is_consequence = line.contains("is not an integer");
        if line.contains("error:") && !is_consequence {
            found.push((file, line));
        }
    }
    found
}

#[test]
fn errors_in_headers_belong_to_the_file_that_includes_them() {
    let output = "/tmp/x/a.c:3:1: error: static assertion failed: \"size of a\"\n\
                  In file included from /usr/include/features.h:513,\n                 from /tmp/x/b.c:1:\n\
                  /usr/include/gnu/stubs.h:7:11: fatal error: gnu/stubs-32.h: No such file or directory\n";
    assert_eq!(errors(output).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
}

/// Returns whether the error is about a missing header, struct or member.
fn lacks(error: &str) -> bool {
    let words = ["No such file", "file not found", "no member named", "incomplete type", "incomplete definition", "undefined type"];
    words.iter().any(|words| error.contains(words))
}

/// Returns whether the error is about a header that does not exist for all ABIs: one of x86, or one of the C library.
fn lacks_header_of_abi(error: &str) -> bool {
    let is_missing = error.contains("No such file") || error.contains("file not found");
    is_missing && (error.contains("asm/") || error.contains("sys/") || error.contains("bits/"))
}

fn compiler(abi: Abi) -> Result<Command, String> {
    let (program, option) = match abi {
        Abi::X86_64 => ("cc", "-m64"),
        Abi::I386 => ("cc", "-m32"),
        Abi::X32 => ("cc", "-mx32"),
        Abi::Aarch64 => ("clang", "--target=aarch64-linux-gnu"),
    };
    let headers = env::var_os(UAPI_VARIABLE).map(PathBuf::from);
    let of_abi = headers.as_deref().unwrap_or(Path::new("/usr/include")).join(match abi {
        Abi::Aarch64 => "aarch64-linux-gnu",
        _ => "x86_64-linux-gnu",
    });
    if !of_abi.join("asm").is_dir() {
        return Err(format!("{} has no asm/", of_abi.display()));
    }
    let mut compiler = Command::new(program);
    compiler.args([option, "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-I"]).arg(of_abi);
    if let Some(headers) = headers {
        compiler.arg("-I").arg(headers);
    }
    if Command::new(program).arg("--version").output().is_err() {
        return Err(format!("{program} is not installed"));
    }
    Ok(compiler)
}

fn assertions(of: &Struct, abi: Abi) -> String {
    let (header, name) = of.source.split_once(':').unwrap_or((of.source, of.name));
    let (name, is_longer) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let before = BEFORE.iter().find(|(beginning, _)| header.starts_with(beginning)).map_or("", |(_, lines)| lines);
    let mut text = format!("{before}#include <{header}>\n#define SAME(a, b, what) _Static_assert((a) == (b), what)\n");
    let c_type = c_type(name);
    let size = of.sizes[abi as usize];
    text += &format!("_Static_assert(sizeof({c_type}) >= {size}, \"{SIZE} {name}\");\n");
    if !is_longer {
        text += &format!("_Static_assert(sizeof({c_type}) <= {size}, \"{LARGER} {name}\");\n");
    }
    let StructLayout::Members(members) = &of.layout else { return text };
    for member in members[abi as usize] {
        let field = member.name;
        if BIT_FIELDS.contains(&(of.name, field)) {
            continue;
        }
        text += &format!("SAME(__builtin_offsetof({c_type}, {field}), {}, \"offset of {name}.{field}\");\n", member.offset);
        // A flexible array has no size.
        if member.memory_type.size(abi) > 0 {
            text += &format!("SAME(sizeof((({c_type} *)0)->{field}), {}, \"bytes of {name}.{field}\");\n", member.memory_type.size(abi));
        }
    }
    text
}

/// Returns the type in C of the struct that a row names: `stat`, `union.bpf_attr`, or `union.bpf_attr.query`, which is
/// the member of a union.
fn c_type(name: &str) -> String {
    match name.strip_prefix("union.").map(|path| path.split_once('.').ok_or(path)) {
        None => format!("struct {name}"),
        Some(Err(union)) => format!("union {union}"),
        Some(Ok((union, member))) => format!("__typeof__(((union {union} *)0)->{member})"),
    }
}

/// Returns the structs that syscalls of the ABI use, and those that no syscall uses (Rust code does).
fn used_in(abi: Abi) -> BTreeSet<&'static str> {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for call in SYSCALLS.iter().filter(|call| call.numbers[abi as usize].is_some()) {
        kinds(call).for_each(|kind| use_kind(kind, abi, &mut used));
    }
    let anywhere: BTreeSet<&str> = {
        let mut all = BTreeSet::new();
        SYSCALLS.iter().for_each(|call| kinds(call).for_each(|kind| Abi::ALL.into_iter().for_each(|abi| use_kind(kind, abi, &mut all))));
        all
    };
    used.extend(STRUCTS.iter().map(|of| of.name).filter(|name| !anywhere.contains(name)));
    used
}

fn kinds(call: &'static Syscall) -> impl Iterator<Item = &'static ArgumentKind> {
    call.signatures().flat_map(|signature| signature.args).map(|arg| &arg.kind)
}

fn use_kind(kind: &ArgumentKind, abi: Abi, used: &mut BTreeSet<&'static str>) {
    let (ArgumentKind::Struct(of) | ArgumentKind::StructArray(of)) = kind else { return };
    use_struct(of, abi, used);
}

fn use_struct(of: &'static Struct, abi: Abi, used: &mut BTreeSet<&'static str>) {
    let StructLayout::Members(members) = &of.layout else { return };
    if !used.insert(of.name) {
        return;
    }
    for member in members[abi as usize] {
        let mut form = &member.memory_type;
        while let MemoryType::Array { element, .. } = form {
            form = element;
        }
        match form {
            MemoryType::Struct(inner) => use_struct(inner, abi, used),
            MemoryType::Number(number) => use_kind(&number.kind, abi, used),
            _ => {}
        }
    }
}
