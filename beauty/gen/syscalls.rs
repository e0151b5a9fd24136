//! Rows of `syscalls/*.tbl`: a syscall's arguments, its return value and its groups.

use super::condition::{self, ConditionRow};
use super::fault::{Fault, Location, Row, is_name};

#[derive(Clone, Debug)]
pub struct SyscallRow {
    pub location: Location,
    pub name: String,
    pub event: String,
    /// The number of the syscall in all ABIs, from `@N`.
    pub number: Option<u32>,
    pub args: Vec<ArgumentRow>,
    /// For a variant: the indices of the arguments that select it, each with the values that select it.
    pub chosen_by: Vec<(usize, Vec<String>)>,
    /// The kind of the return value. `None` in a variant means that of the plain row.
    pub returns: Option<String>,
    pub groups: Vec<String>,
    /// Its effect on the state that rtrace tracks (tasks, descriptors, pairing): a variant of `special::Special`.
    pub does: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentRow {
    pub name: String,
    /// Empty for the argument that selects a variant: its kind is in the plain row.
    pub kind: String,
    /// The kind is followed by `*`.
    pub pointer: bool,
    pub flow: FlowRow,
    /// The outcomes of the call with which the kernel has written the memory: constants of `row::Outcomes`.
    pub written: Vec<&'static str>,
    /// Constants of `row::Traits`, or `NUMBER`, which only the list of what is decoded uses.
    pub traits: Vec<&'static str>,
    /// The argument that names the process to which this file descriptor belongs.
    pub fd_of: Option<String>,
    /// The argument that is the socket whose messages the bytes are.
    pub socket: Option<String>,
    pub length: LengthRow,
    /// The constants of which only the bits are compared, if the argument selects a variant (`flags&A|B=A`).
    pub bits: Vec<String>,
    /// The properties that a variant takes from the same argument of the row to which it belongs.
    pub inherited: Inherited,
    /// When the call uses the argument; `None` for always.
    pub used: Option<ConditionRow>,
}

/// The properties that a variant's argument takes from the row to which the variant belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherited {
    Nothing,
    /// `optval:like linger`: all properties except the kind.
    AllButKind,
    /// `optlen`: the whole argument.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRow {
    In,
    Out,
    InOut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LengthRow {
    OfType,
    Argument(String),
    Ret,
    Fixed(u64),
}

/// The maximum number of arguments that select a variant together. The BPF programs have the same limit (`plan.h`).
const CHOICES_MAX: usize = 3;

/// The outcomes of a call: the words of rows, and the constants of `row::Outcomes`.
const OUTCOMES: [(&str, &str); 6] = [
    ("succeeded", "SUCCEEDED"),
    ("positive", "POSITIVE"),
    ("interrupted", "INTERRUPTED"),
    ("failed", "FAILED"),
    ("E2BIG", "TOO_BIG"),
    ("EOVERFLOW", "OVERFLOW"),
];

/// Traits of arguments: the words of rows, and the constants of `row::Traits` (except for `NUMBER`).
const TRAITS: [(&str, &str); 9] = [
    ("number", "NUMBER"),
    ("optional", "OPTIONAL"),
    ("shallow", "SHALLOW"),
    ("sends", "SENDS"),
    ("counted", "COUNTED"),
    ("varies", "VARIES"),
    ("array", "ARRAY"),
    ("encoded", "ENCODED"),
    ("backwards", "BACKWARDS"),
];

/// Effects of calls on the state that rtrace tracks: the words of rows, and the variants of `special::Special`.
const SPECIAL: [(&str, &str); 18] = [
    ("exit", "Exit"),
    ("exit_group", "ExitGroup"),
    ("execve", "Execve"),
    ("execveat", "Execveat"),
    ("sigreturn", "SigReturn"),
    ("clone", "Clone"),
    ("close", "Close"),
    ("close_range", "CloseRange"),
    ("dup", "Dup"),
    ("dup_to", "DupTo"),
    ("fcntl", "Fcntl"),
    ("unshare", "Unshare"),
    ("setns", "Setns"),
    ("io_uring", "IoUring"),
    ("ioctl", "Ioctl"),
    ("rename", "Rename"),
    ("socketcall", "MaybeDescriptor"),
    ("splice", "Splice"),
];

/// Parses a line. A variant may name several syscalls (`getsockopt,setsockopt`), and is then a row of each.
pub fn parse(row: &Row) -> Result<Vec<SyscallRow>, Fault> {
    let names = row.fields.first().map_or("", |head| *head);
    let parsed = names.split(',').map(|name| parse_fields(name, row.fields.get(1..).unwrap_or_default(), &row.location));
    let rows = parsed.collect::<Result<Vec<SyscallRow>, String>>().map_err(|text| row.location.fault(text))?;
    match &rows[..] {
        [first, _, ..] if first.chosen_by.is_empty() => {
            Err(row.location.fault(format!("`{names}`: only a variant may name several syscalls")))
        }
        _ => Ok(rows),
    }
}

fn parse_fields<'a>(head: &str, mut rest: &'a [&'a str], location: &Location) -> Result<SyscallRow, String> {
    let (name, number) = match head.split_once('@') {
        Some((name, number)) => (name, Some(number.parse().map_err(|_| format!("`{number}` is not a syscall number"))?)),
        None => (head, None),
    };
    let (name, event) = name.split_once('/').unwrap_or((name, name));
    if !is_name(name) || !is_name(event) {
        return Err(format!("`{head}` is not a valid name of a syscall"));
    }
    let mut call = SyscallRow {
        location: location.clone(),
        name: name.into(),
        event: event.into(),
        number,
        args: Vec::new(),
        chosen_by: Vec::new(),
        returns: None,
        groups: Vec::new(),
        does: "Plain",
    };
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if *word == "->" {
            let (returns, after) = rest.split_first().ok_or("no kind of return value after `->`")?;
            rest = after;
            call.returns = Some(returns.to_string());
        } else if let Some(group) = word.strip_prefix('%') {
            call.groups.push(group.to_string());
        } else if let Some(effect) = word.strip_prefix("does=") {
            let known = SPECIAL.iter().find(|(known, _)| *known == effect);
            let words = || SPECIAL.map(|(known, _)| known).join(", ");
            call.does = known.map(|(_, rust)| *rust).ok_or_else(|| format!("`{word}` is not known: use one of {}", words()))?;
        } else if call.returns.is_some() || !call.groups.is_empty() {
            return Err(format!("`{word}` must come before `->` and the groups"));
        } else {
            rest = call.argument(word, rest)?;
        }
    }
    call.check()?;
    Ok(call)
}

impl SyscallRow {
    /// Parses one argument: a word, and those after it if it ends in an attribute like `out`. Returns the other words.
    fn argument<'a>(&mut self, word: &str, rest: &'a [&'a str]) -> Result<&'a [&'a str], String> {
        if let Some((name, values)) = word.split_once('=')
            && !word.contains(':')
        {
            let (name, bits) = name.split_once('&').map_or((name, ""), |(name, bits)| (name, bits));
            let words = |list: &str| list.split('|').filter(|word| !word.is_empty()).map(str::to_string).collect::<Vec<String>>();
            self.chosen_by.push((self.args.len(), values.split('|').map(str::to_string).collect()));
            self.args.push(ArgumentRow { inherited: Inherited::All, bits: words(bits), ..ArgumentRow::named(name)? });
            return Ok(rest);
        }
        if is_name(word) {
            self.args.push(ArgumentRow { inherited: Inherited::All, ..ArgumentRow::named(word)? });
            return Ok(rest);
        }
        let (name, mut kind) = word.split_once(':').ok_or_else(|| format!("`{word}` should be `argument:kind`"))?;
        let (mut argument, mut rest) = (ArgumentRow::named(name)?, rest);
        while argument.attribute(kind)? {
            let (next, after) = rest.split_first().ok_or_else(|| format!("no kind after `{word}`"))?;
            (kind, rest) = (next, after);
        }
        argument.kind(kind)?;
        self.args.push(argument);
        Ok(rest)
    }

    fn check(&self) -> Result<(), String> {
        if self.args.len() > 6 {
            return Err(format!("{} has {} arguments, but a syscall has at most six", self.name, self.args.len()));
        }
        if self.chosen_by.len() > CHOICES_MAX {
            return Err(format!("{} arguments select this variant of {}: at most {CHOICES_MAX} may", self.chosen_by.len(), self.name));
        }
        let inherits = |argument: &&ArgumentRow| argument.inherited != Inherited::Nothing;
        if let Some(argument) = self.args.iter().find(inherits).filter(|_| self.chosen_by.is_empty()) {
            return Err(format!("`{}` should be `argument:kind`: only a variant takes arguments from another row", argument.name));
        }
        for (at, argument) in self.args.iter().enumerate() {
            if self.args[..at].iter().any(|earlier| earlier.name == argument.name) {
                return Err(format!("two arguments have the name {}", argument.name));
            }
            if let LengthRow::Argument(length) = &argument.length
                && !self.args.iter().any(|other| other.name == *length)
            {
                return Err(format!("the length of {} is {length}, but {} has no such argument", argument.name, self.name));
            }
            for (word, named) in [("fd_of", &argument.fd_of), ("socket", &argument.socket)] {
                if let Some(owner) = named.as_ref().filter(|owner| !self.args.iter().any(|other| other.name == **owner)) {
                    return Err(format!("{} has {word}({owner}), but {} has no such argument", argument.name, self.name));
                }
            }
            let tested = argument.used.iter().flat_map(ConditionRow::arguments);
            if let Some(tested) = tested.into_iter().find(|tested| !self.args.iter().any(|other| other.name == **tested)) {
                return Err(format!("the condition of {} tests {tested}, but {} has no such argument", argument.name, self.name));
            }
        }
        match self.chosen_by.is_empty() {
            true if self.returns.is_none() => Err(format!("{} has no kind of return value: add `-> kind`", self.name)),
            false if self.number.is_some() || self.event != self.name => {
                Err(format!("this row of {} is a variant: move the number and the name of the event to the plain row", self.name))
            }
            false if self.does != "Plain" => Err(format!("this row of {} is a variant: move `does=` to the plain row", self.name)),
            false if !self.groups.is_empty() => Err(format!("this row of {} is a variant: move the groups to the plain row", self.name)),
            _ => Ok(()),
        }
    }
}

impl ArgumentRow {
    fn named(name: &str) -> Result<ArgumentRow, String> {
        if !is_name(name) {
            return Err(format!("`{name}` is not a valid name of an argument"));
        }
        Ok(ArgumentRow {
            name: name.into(),
            kind: String::new(),
            pointer: false,
            flow: FlowRow::In,
            written: vec!["SUCCEEDED"],
            traits: Vec::new(),
            fd_of: None,
            socket: None,
            length: LengthRow::OfType,
            bits: Vec::new(),
            inherited: Inherited::Nothing,
            used: None,
        })
    }

    /// Parses the meaning of a struct's field, which is written like the kind of an argument.
    pub fn of_field(name: &str, meaning: &str) -> Result<ArgumentRow, String> {
        let mut field = ArgumentRow::named(name)?;
        field.kind(meaning)?;
        Ok(field)
    }

    /// Parses an attribute before the kind, like `out`, `inout(succeeded|interrupted)`, `optional` or `fd_of(pid1)`.
    /// Returns whether the word is one.
    fn attribute(&mut self, word: &str) -> Result<bool, String> {
        let (word, value) = match word.split_once('(') {
            Some((before, value)) => (before, Some(value.strip_suffix(')').ok_or_else(|| format!("`{word}` has no closing parenthesis"))?)),
            None => (word, None),
        };
        match (word, value) {
            ("out", _) => self.flow = FlowRow::Out,
            ("inout", _) => self.flow = FlowRow::InOut,
            ("like", None) => {
                self.inherited = Inherited::AllButKind;
                return Ok(true);
            }
            ("fd_of", Some(owner)) => {
                self.fd_of = Some(owner.to_string());
                return Ok(true);
            }
            ("socket", Some(socket)) => {
                self.socket = Some(socket.to_string());
                return Ok(true);
            }
            _ => {
                let known = TRAITS.iter().find(|(known, _)| *known == word && value.is_none());
                self.traits.extend(known.map(|(_, rust)| *rust));
                return Ok(known.is_some());
            }
        }
        let outcome = |name: &str| {
            let known = OUTCOMES.iter().find(|(known, _)| *known == name).map(|(_, rust)| *rust);
            known.ok_or_else(|| format!("`{word}({name})` is not an outcome: use {}", OUTCOMES.map(|(name, _)| name).join(", ")))
        };
        if let Some(outcomes) = value {
            self.written = outcomes.split('|').map(outcome).collect::<Result<_, _>>()?;
        }
        Ok(true)
    }

    /// Parses a kind with its length and condition, like `bytes[count]`, `u64*[4]` or `mode?flags&O_CREAT`.
    fn kind(&mut self, text: &str) -> Result<(), String> {
        let (kind, used) = text.split_once('?').map_or((text, None), |(kind, used)| (kind, Some(used)));
        if let Some(used) = used {
            self.used = Some(condition::parse(used)?);
        }
        let kind = match kind.split_once('[') {
            None => kind,
            Some((kind, length)) => {
                let length = length.strip_suffix(']').ok_or_else(|| format!("`{text}` has no closing bracket"))?;
                self.length = match length.parse() {
                    Ok(number) => LengthRow::Fixed(number),
                    Err(_) if length == "ret" => LengthRow::Ret,
                    Err(_) if is_name(length) => LengthRow::Argument(length.to_string()),
                    Err(_) => return Err(format!("`{length}` is not a length: use an argument, `ret` or a number")),
                };
                kind
            }
        };
        let plain = kind.strip_suffix('*').unwrap_or(kind);
        if !is_name(plain.strip_prefix("custom.").unwrap_or(plain)) {
            return Err(format!("`{text}` is not a kind"));
        }
        self.pointer = plain.len() < kind.len();
        self.kind = plain.to_string();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::fault::rows;

    fn parsed(text: &str) -> Result<SyscallRow, String> {
        parse(&rows("s.tbl", text)[0]).map(|mut rows| rows.remove(0)).map_err(|fault| fault.to_string())
    }

    #[test]
    fn arguments_have_kind_flow_length_and_condition() {
        let row = parsed(
            "listns/nslist@470 req:ns_id_req ids:out u64*[n] n:size buf:inout bytes[ret] mode:mode?n&A f:custom.f -> int %file %desc",
        )
        .expect("good");
        assert_eq!((row.name.as_str(), row.event.as_str(), row.number), ("listns", "nslist", Some(470)));
        assert_eq!((row.returns.as_deref(), row.groups.len()), (Some("int"), 2));
        let ids = &row.args[1];
        assert_eq!((ids.kind.as_str(), ids.pointer, ids.flow), ("u64", true, FlowRow::Out));
        assert_eq!(ids.length, LengthRow::Argument("n".into()));
        assert_eq!((row.args[3].flow, &row.args[3].length), (FlowRow::InOut, &LengthRow::Ret));
        assert_eq!((row.args[4].kind.as_str(), &row.args[4].used), ("mode", &condition::parse("n&A").ok()));
        assert_eq!(row.args[5].kind, "custom.f");
    }

    #[test]
    fn out_and_inout_have_outcomes() {
        let row =
            parsed("nap rmtp:out(interrupted) timespec tsp:inout(succeeded|interrupted) timespec a:out int* b:int -> int").expect("good");
        let parsed = row.args.iter().map(|argument| (argument.flow, argument.written.join(" "))).collect::<Vec<_>>();
        let expected = [
            (FlowRow::Out, "INTERRUPTED"),
            (FlowRow::InOut, "SUCCEEDED INTERRUPTED"),
            (FlowRow::Out, "SUCCEEDED"),
            (FlowRow::In, "SUCCEEDED"),
        ];
        assert_eq!(parsed, expected.map(|(flow, written)| (flow, written.to_string())));
    }

    #[test]
    fn attributes_come_before_the_kind() {
        let row = parsed("cmp pid:pid idx:fd_of(pid) uint addr:optional address vec:shallow out iovec*[n] n:uint -> int").expect("good");
        assert_eq!((row.args[1].fd_of.as_deref(), row.args[1].kind.as_str()), (Some("pid"), "uint"));
        assert_eq!((&row.args[2].traits[..], &row.args[3].traits[..]), (&["OPTIONAL"][..], &["SHALLOW"][..]));
        assert_eq!((row.args[3].flow, row.args[3].kind.as_str()), (FlowRow::Out, "iovec"));
    }

    #[test]
    fn does_names_the_effect_of_a_call() {
        let does = |text: &str| parsed(text).expect("good").does;
        assert_eq!([does("close fd:fd -> int %desc does=close"), does("read fd:fd -> size")], ["Close", "Plain"]);
    }

    #[test]
    fn a_variant_is_selected_by_values_of_arguments() {
        let row = parsed("fcntl fd:fd cmd=F_SETLK|F_SETLKW arg:flock").expect("good");
        assert_eq!(row.chosen_by, [(1, vec!["F_SETLK".into(), "F_SETLKW".into()])]);
        assert_eq!((row.args.len(), row.args[1].kind.as_str()), (3, ""));
        let row = parsed("io_uring_enter flags&A|B=A|C arg:str").expect("good");
        assert_eq!((&row.chosen_by[..], &row.args[0].bits[..]), (&[(0, vec!["A".into(), "C".into()])][..], &["A".into(), "B".into()][..]));
        let row = parsed("setsockopt fd level=A|B name=C value:like varies linger length").expect("good");
        assert_eq!(row.chosen_by, [(1, vec!["A".into(), "B".into()]), (2, vec!["C".into()])]);
        let inherited = row.args.iter().map(|argument| argument.inherited).collect::<Vec<_>>();
        assert_eq!(inherited, [Inherited::All, Inherited::All, Inherited::All, Inherited::AllButKind, Inherited::All]);
        assert_eq!((row.args[3].kind.as_str(), &row.args[3].traits[..]), ("linger", &["VARIES"][..]));
    }

    #[test]
    fn a_variant_may_name_several_syscalls() {
        let several = parse(&rows("s.tbl", "get,set a=1 b:int")[0]).expect("good");
        assert_eq!(several.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["get", "set"]);
        assert!(several.iter().all(|row| row.chosen_by == [(0, vec!["1".into()])] && row.args.len() == 2));
    }

    #[test]
    fn faults_name_the_line_and_the_problem() {
        for (text, expected) in [
            ("\n\nread fd:fd", "s.tbl:3: read has no kind of return value: add `-> kind`"),
            ("re-ad -> int", "s.tbl:1: `re-ad` is not a valid name of a syscall"),
            ("read@x -> int", "s.tbl:1: `x` is not a syscall number"),
            ("read fd -> int", "s.tbl:1: `fd` should be `argument:kind`: only a variant"),
            ("read fd:like int -> int", "s.tbl:1: `fd` should be `argument:kind`: only a variant"),
            ("read f-d -> int", "s.tbl:1: `f-d` should be `argument:kind`"),
            ("read,write fd:fd -> int", "s.tbl:1: `read,write`: only a variant may name several syscalls"),
            ("read, fd=1", "s.tbl:1: `` is not a valid name of a syscall"),
            ("read a:fd_of(pid) uint -> int", "s.tbl:1: a has fd_of(pid), but read has no such argument"),
            ("read a:socket(fd) bytes[4] -> int", "s.tbl:1: a has socket(fd), but read has no such argument"),
            ("read buf:out(always) bytes[4] -> int", "s.tbl:1: `out(always)` is not an outcome: use succeeded, positive"),
            ("read buf:out(failed bytes[4] -> int", "s.tbl:1: `out(failed` has no closing parenthesis"),
            ("read buf:out", "s.tbl:1: no kind after `buf:out`"),
            ("read fd:fd ->", "s.tbl:1: no kind of return value after `->`"),
            ("read -> int fd:fd", "s.tbl:1: `fd:fd` must come before `->` and the groups"),
            ("read buf:bytes[n] -> int", "s.tbl:1: the length of buf is n, but read has no such argument"),
            ("read buf:bytes[4 -> int", "s.tbl:1: `bytes[4` has no closing bracket"),
            ("read buf:bytes[a+b] -> int", "s.tbl:1: `a+b` is not a length"),
            ("read a:int a:int -> int", "s.tbl:1: two arguments have the name a"),
            ("read a:int b:int c:int d:int e:int f:int g:int -> int", "s.tbl:1: read has 7 arguments"),
            ("read buf:mode?creates -> int", "s.tbl:1: `?creates` is not a condition"),
            ("read buf:mode?n&A -> int", "s.tbl:1: the condition of buf tests n, but read has no such argument"),
            ("read a=1 b=2 c=3 d=4", "s.tbl:1: 4 arguments select this variant of read: at most 3 may"),
            ("read a=1 -> int %file", "s.tbl:1: this row of read is a variant: move the groups"),
            ("read a:int -> int does=all", "s.tbl:1: `does=all` is not known: use one of exit, exit_group"),
            ("read a=1 -> int does=close", "s.tbl:1: this row of read is a variant: move `does=`"),
            ("read@5 a=1 -> int", "s.tbl:1: this row of read is a variant: move the number"),
            ("read a:in/t -> int", "s.tbl:1: `in/t` is not a kind"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
