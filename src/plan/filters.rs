//! Selects the parts of `--filter` that the BPF programs can decide: comparisons with numbers and texts, and
//! alternatives of these.

use crate::beauty::access::{self, Step};
use crate::beauty::resolve::{Signature, Width, Word};
use crate::beauty::row::{Arg, ArgumentKind, Condition, Flow, Length, Outcomes, Syscall};
use crate::beauty::tables::SYSCALLS;
use crate::bpf::filter::{Clause, OFFSET_MAX, Op, Subject, TESTS_MAX, TEXT_BYTES, Test, With};
use crate::event::Abi;
use crate::gate::{self, CallOperand, CallScope};
use crate::kernel::machine::NATIVE_ABI;
use crate::request::Item;
use crate::request::filter::{Bindings, Bound, Expr, Mask, Op as Written, Reference};
use crate::request::select::Selection;
use crate::syscall::special::Special;
use std::collections::BTreeMap;

/// A clause and its text in the filter.
struct Decidable {
    clause: Clause,
    text: String,
}

/// Returns the clauses that the BPF programs decide for the selected calls, by the index of the row and the ABI. Adds a
/// note on each such condition.
pub fn of_rows(
    selection: &Selection,
    items: &[Item],
    general: Option<&Expr>,
    with_paths: bool,
    notes: &mut Vec<String>,
) -> Vec<(u16, Abi, Vec<Clause>)> {
    let mut found = Vec::new();
    let mut calls_by_text: BTreeMap<String, u32> = BTreeMap::new();
    for (at, row) in SYSCALLS.iter().enumerate().filter(|(at, _)| selection.rows.get(*at).copied().unwrap_or_default()) {
        // If several items select the call, any of them may accept it, so that none of their filters can exclude it.
        let own = match selection.items.get(at).map(|by| by.as_slice()) {
            Some([only]) => items.get(usize::from(*only)).and_then(|item| item.filter.as_ref()),
            _ => None,
        };
        let filters: Vec<&Expr> = general.into_iter().chain(own).collect();
        for abi in Abi::ALL.into_iter().filter(|abi| row.numbers[*abi as usize].is_some()) {
            let decidable = match with_paths && !gate::may_have_paths(row) {
                true => vec![Decidable { clause: vec![Test::NEVER], text: "--path (they have none)".to_owned() }],
                false => of(row, abi, &filters),
            };
            if abi == NATIVE_ABI {
                decidable.iter().for_each(|one| *calls_by_text.entry(one.text.clone()).or_default() += 1);
            }
            if !decidable.is_empty() {
                found.push((at as u16, abi, decidable.into_iter().map(|one| one.clause).collect()));
            }
        }
    }
    notes.extend(calls_by_text.iter().map(|(text, calls)| format!("plan: decided in the kernel, for {calls} syscalls: {text}")));
    found
}

/// Returns the clauses of the conditions on this syscall's calls, as many as the programs accept.
fn of(row: &'static Syscall, abi: Abi, filters: &[&Expr]) -> Vec<Decidable> {
    // These calls change the task's comm or are needed to follow the task, so that none of them may be dropped.
    if row.does.path_argument().is_some() || row.does == Special::Rename {
        return Vec::new();
    }
    let mut room = TESTS_MAX;
    let mut found = Vec::new();
    for part in filters.iter().flat_map(|filter| conjuncts(filter)) {
        let bound = part.bind(&CallScope { abi, row: Some(row), is_request: false }, &mut Bindings::default());
        let Some(clause) = clause(row, abi, &bound) else { continue };
        if clause.len() <= room {
            room -= clause.len();
            found.push(Decidable { clause, text: part.to_string() });
        }
    }
    found
}

fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::And(parts) => parts.iter().flat_map(conjuncts).collect(),
        one => vec![one],
    }
}

/// Returns the clauses that together mean exactly a condition on this syscall's calls, or `None` inside if none of them
/// can satisfy it. `None`: the programs cannot decide all of the condition.
pub fn exact(row: &Syscall, abi: Abi, bound: &Bound) -> Option<Option<Vec<Clause>>> {
    match bound {
        Bound::Constant(true) => Some(Some(Vec::new())),
        Bound::Constant(false) => Some(None),
        Bound::And(parts) => {
            let parts = parts.iter().map(|part| exact(row, abi, part)).collect::<Option<Vec<_>>>()?;
            Some(parts.into_iter().collect::<Option<Vec<_>>>().map(|clauses| clauses.concat()))
        }
        Bound::Not(inner) => match opposite(inner)? {
            Bound::Not(_) => None,
            opposite => exact(row, abi, &opposite),
        },
        other => clause(row, abi, other).map(|clause| Some(vec![clause])),
    }
}

/// Returns the condition that holds where this one does not, if both have an operator.
fn opposite(bound: &Bound) -> Option<Bound> {
    let all = |parts: &[Bound]| parts.iter().map(opposite).collect::<Option<Vec<_>>>();
    Some(match bound {
        Bound::Constant(holds) => Bound::Constant(!holds),
        Bound::Not(inner) => (**inner).clone(),
        Bound::Or(parts) => Bound::And(all(parts)?),
        Bound::And(parts) => Bound::Or(all(parts)?),
        Bound::Compare { name, op, with } => Bound::Compare { name: name.clone(), op: op.opposite()?, with: *with },
        Bound::Text { name, op, with } => Bound::Text { name: name.clone(), op: op.opposite()?, with: with.clone() },
        Bound::Bits { .. } => return None,
    })
}

fn clause(row: &Syscall, abi: Abi, bound: &Bound) -> Option<Clause> {
    match bound {
        Bound::Or(parts) => {
            let tests = parts.iter().map(|part| clause(row, abi, part)).collect::<Option<Vec<_>>>()?.concat();
            // All tests of a clause are evaluated at the same time, at the entry or at the exit.
            let at_both = tests.iter().any(|test| test.subject.is_of_entry()) && tests.iter().any(|test| test.subject.is_of_return());
            (!at_both).then_some(tests)
        }
        Bound::Constant(false) => Some(vec![Test::NEVER]),
        Bound::Constant(true) | Bound::And(_) | Bound::Not(_) => None,
        Bound::Compare { name, op, with } => {
            let subject = subject(row, abi, name)?;
            Some(vec![Test { subject, op: number_op(*op)?, with: With::Number(number(subject.width(), *with)?) }])
        }
        Bound::Bits { name, masks } => {
            let subject = subject(row, abi, name)?;
            let test = |mask: &Mask| {
                let (op, bits) = bits_op(*mask)?;
                Some(Test { subject, op, with: With::Number(bits) })
            };
            masks.iter().map(test).collect()
        }
        Bound::Text { name, op, with } => {
            let subject = match CallOperand::of(name) {
                CallOperand::Comm => Subject::Comm,
                CallOperand::Argument(at) => Subject::Text { register: string_register(row, abi, usize::from(at))? },
                _ => return None,
            };
            let (op, with) = text(*op, with)?;
            Some(vec![Test { subject, op, with: With::Text(with) }])
        }
    }
}

fn subject(row: &Syscall, abi: Abi, named: &Reference) -> Option<Subject> {
    Some(match CallOperand::of(named) {
        CallOperand::Argument(at) => Subject::Argument(number_of_all(row, abi, usize::from(at))?),
        CallOperand::Ret => Subject::Ret,
        CallOperand::Errno => Subject::Errno,
        CallOperand::Duration => Subject::Duration,
        CallOperand::Pid => Subject::Pid,
        CallOperand::Tid => Subject::Tid,
        CallOperand::Inside(at) => number_in_memory(row, abi, usize::from(at), &named.steps)?,
        CallOperand::Comm | CallOperand::Other => return None,
    })
}

/// Returns the place of a number in the struct that an argument points to. It returns one only if every call of the
/// syscall has the number there, and if the kernel either only reads it or writes it in each call that does not fail.
fn number_in_memory(row: &Syscall, abi: Abi, at: usize, steps: &[Step]) -> Option<Subject> {
    let (signature, arg) = (row.signature(), row.args.get(at)?);
    let ArgumentKind::Struct(of) = arg.kind else { return None };
    let is_fixed =
        row.variants.is_empty() && arg.used == Condition::Always && matches!(arg.length, Length::OfType) && of.length_at.is_none();
    let is_written = match arg.flow {
        Flow::In => false,
        Flow::Out if arg.written == Outcomes::SUCCEEDED => true,
        _ => return None,
    };
    let place = access::target(&arg.kind, steps, abi)?.place.filter(|place| is_fixed && place.offset < OFFSET_MAX)?;
    Some(Subject::Memory { register: signature.word(at, abi)?.register, place, is_written })
}

/// Returns the register of an argument that points to a string in the plain row of the syscall.
fn string_register(row: &Syscall, abi: Abi, at: usize) -> Option<u8> {
    let signature = row.signature();
    let ends_with_nul = |arg: &Arg| matches!(arg.kind, ArgumentKind::Path | ArgumentKind::Str);
    signature.args.get(at).filter(|arg| ends_with_nul(arg)).and_then(|_| signature.word(at, abi)).map(|word| word.register)
}

/// Returns the register of an argument if it is the same in all variants where the argument is a number: the programs
/// do not know which variant a call is.
fn number_of_all(row: &Syscall, abi: Abi, at: usize) -> Option<Word> {
    let is_number =
        |signature: &Signature| signature.args.get(at).is_some_and(|arg| !matches!(arg.kind, ArgumentKind::Path | ArgumentKind::Str));
    let mut words = row.signatures().filter(is_number).filter_map(|signature| signature.word(at, abi));
    let first = words.next()?;
    words.all(|word| word == first).then_some(first)
}

/// Returns the operation for a test of bits; `None` for the value of a field among other bits, because the programs
/// cannot mask an argument.
fn bits_op(mask: Mask) -> Option<(Op, u64)> {
    match mask {
        Mask::Any(bits) => Some((Op::AnyBit, bits)),
        Mask::Exactly { bits, of } if bits == of => Some((Op::AllBits, bits)),
        Mask::Exactly { .. } => None,
    }
}

fn number_op(op: Written) -> Option<Op> {
    Some(match op {
        Written::Equal => Op::Equal,
        Written::NotEqual => Op::NotEqual,
        Written::Less => Op::Less,
        Written::LessOrEqual => Op::LessOrEqual,
        Written::Greater => Op::Greater,
        Written::GreaterOrEqual => Op::GreaterOrEqual,
        Written::Bits | Written::Like | Written::Unlike => return None,
    })
}

/// Returns the number in this width, sign-extended for signed widths; `None` if it does not fit, because the comparison
/// would have another meaning then.
fn number(width: Width, with: i128) -> Option<u64> {
    match width {
        Width::Unsigned16 => u16::try_from(with).ok().map(u64::from),
        Width::Signed32 => i32::try_from(with).ok().map(|number| i64::from(number) as u64),
        Width::Unsigned32 => u32::try_from(with).ok().map(u64::from),
        Width::Signed64 | Width::Split => i64::try_from(with).ok().map(|number| number as u64),
        Width::Unsigned64 => u64::try_from(with).ok(),
    }
}

/// Returns the operation and text for equality, or for a pattern that is a prefix followed by `*`.
fn text(op: Written, with: &[u8]) -> Option<(Op, Vec<u8>)> {
    let beginning = || {
        let beginning = with.strip_suffix(b"*")?;
        let is_plain = !beginning.iter().any(|byte| b"*?[]\\".contains(byte));
        is_plain.then(|| beginning.to_vec())
    };
    let (op, text) = match op {
        Written::Equal => (Op::Is, with.to_vec()),
        Written::NotEqual => (Op::IsNot, with.to_vec()),
        Written::Like => (Op::BeginsWith, beginning()?),
        Written::Unlike => (Op::BeginsOtherwise, beginning()?),
        _ => return None,
    };
    (text.len() < TEXT_BYTES && !text.contains(&0)).then_some((op, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::lookup;
    use crate::request::filter::parse;

    fn written(name: &str, filter: &str) -> Vec<String> {
        let row = &SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())];
        of(row, NATIVE_ABI, &[&parse(filter).unwrap()]).into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn clauses_that_the_kernel_can_decide_are_selected() {
        assert_eq!(written("read", "fd == 3 && fd.path ~ \"/etc/*\" && count > 4K"), ["fd == 3", "count > 4096"]);
        assert_eq!(
            written("openat", "filename ~ \"/etc/*\" && (ret < 0 || flags & CREAT)"),
            ["filename ~ \"/etc/*\"", "ret < 0 || flags & CREAT"]
        );
        assert_eq!(written("openat", "filename ~ \"*/etc\" && filename ~ \"/?/*\" && !(ret == 3)"), [""; 0]);
        assert_eq!(written("read", "filename == \"x\""), ["filename == \"x\""], "read has no file name, so that this never holds");
        assert_eq!(written("read", "filename == \"x\" || count > 4K"), ["filename == \"x\" || count > 4096"]);
        assert_eq!(written("read", "!(filename == \"x\")"), [""; 0], "that always holds");
        assert_eq!(written("openat", "flags & RDONLY"), [""; 0], "two bits are one value");
        assert_eq!(written("execve", "comm == \"sh\""), [""; 0], "the caller's comm changes during the call");
        assert_eq!(written("read", "fd == 5G"), [""; 0], "no int is that large");
        assert_eq!(written("newfstatat", "statbuf.st_size > 4K"), ["statbuf.st_size > 4096"]);
        assert_eq!(written("clock_nanosleep", "rqtp.tv_nsec == 5 || ret < 0"), [""; 0], "one is read at entry, one at exit");
        assert_eq!(written("write", "buf ~ \"x*\""), [""; 0], "bytes may contain a NUL");
        assert_eq!(written("execve", "argv[1] == \"x\""), [""; 0]);
    }

    #[test]
    fn numbers_must_fit_into_the_width_of_their_argument() {
        assert_eq!(number(Width::Signed32, -1), Some(u64::MAX));
        assert_eq!(number(Width::Unsigned32, -1), None);
        assert_eq!(number(Width::Unsigned64, 1 << 63), Some(1 << 63));
        assert_eq!(number(Width::Signed64, 1 << 63), None);
    }
}
