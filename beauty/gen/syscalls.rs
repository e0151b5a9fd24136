//! Rows of `syscalls/*.tbl`: a call's arguments, its return and its groups.

use super::condition::{self, ConditionRow};
use super::fault::{Fault, Place, Row, is_name};

#[derive(Clone, Debug)]
pub struct SyscallRow {
    pub place: Place,
    pub name: String,
    pub event: String,
    /// The number that holds in all ABIs, from `@N`.
    pub number: Option<u32>,
    pub args: Vec<ArgumentRow>,
    /// The argument that chooses this row, and the values it has then.
    pub chosen_by: Option<(usize, Vec<String>)>,
    /// A variant may leave it to the plain row.
    pub returns: Option<String>,
    pub groups: Vec<String>,
    /// What it does to what rtrace follows: a variant of `special::Special`.
    pub does: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentRow {
    pub name: String,
    /// Empty for the argument that chooses a variant: the plain row says it.
    pub kind: String,
    /// `kind*`
    pub pointer: bool,
    pub flow: FlowRow,
    /// How the call ends when the kernel wrote it: constants of `row::Outcomes`.
    pub written: Vec<&'static str>,
    /// Constants of `row::Traits`.
    pub traits: Vec<&'static str>,
    /// It is a descriptor of the process that this argument names.
    pub fd_of: Option<String>,
    pub length: LengthRow,
    /// When the call uses it, if not always.
    pub used: Option<ConditionRow>,
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

/// How a call may end, as rows say it and as `row::Outcomes` calls it.
const OUTCOMES: [(&str, &str); 4] =
    [("succeeded", "SUCCEEDED"), ("positive", "POSITIVE"), ("interrupted", "INTERRUPTED"), ("failed", "FAILED")];

/// What else an argument may be, as rows say it and as `row::Traits` calls it.
const TRAITS: [(&str, &str); 4] = [("optional", "OPTIONAL"), ("shallow", "SHALLOW"), ("sends", "SENDS"), ("counted", "COUNTED")];

/// What a call may do to what rtrace follows, as rows say it and as `special::Special` calls it.
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

pub fn parse(row: &Row) -> Result<SyscallRow, Fault> {
    parse_fields(&row.fields, &row.place).map_err(|text| row.place.fault(text))
}

fn parse_fields(fields: &[&str], place: &Place) -> Result<SyscallRow, String> {
    let (head, mut rest) = fields.split_first().ok_or("a syscall needs a name")?;
    let (name, number) = match head.split_once('@') {
        Some((name, number)) => (name, Some(number.parse().map_err(|_| format!("`{number}` is no syscall number"))?)),
        None => (*head, None),
    };
    let (name, event) = name.split_once('/').unwrap_or((name, name));
    if !is_name(name) || !is_name(event) {
        return Err(format!("`{head}` cannot be a syscall's name"));
    }
    let mut call = SyscallRow {
        place: place.clone(),
        name: name.into(),
        event: event.into(),
        number,
        args: Vec::new(),
        chosen_by: None,
        returns: None,
        groups: Vec::new(),
        does: "Plain",
    };
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if *word == "->" {
            let (returns, after) = rest.split_first().ok_or("`->` without what is returned")?;
            rest = after;
            call.returns = Some(returns.to_string());
        } else if let Some(group) = word.strip_prefix('%') {
            call.groups.push(group.to_string());
        } else if let Some(said) = word.strip_prefix("does=") {
            let known = SPECIAL.iter().find(|(known, _)| *known == said);
            let words = || SPECIAL.map(|(known, _)| known).join(", ");
            call.does = known.map(|(_, rust)| *rust).ok_or_else(|| format!("`{word}`: what a call does is one of {}", words()))?;
        } else if call.returns.is_some() || !call.groups.is_empty() {
            return Err(format!("`{word}` stands after the arguments"));
        } else {
            rest = call.argument(word, rest)?;
        }
    }
    call.check()?;
    Ok(call)
}

impl SyscallRow {
    /// Takes one argument of the first word, and of the next ones if that says `out` and the like.
    fn argument<'a>(&mut self, word: &str, rest: &'a [&'a str]) -> Result<&'a [&'a str], String> {
        if let Some((name, values)) = word.split_once('=')
            && !word.contains(':')
        {
            if self.chosen_by.is_some() {
                return Err("two arguments choose this row: only one can".into());
            }
            self.chosen_by = Some((self.args.len(), values.split('|').map(str::to_string).collect()));
            self.args.push(ArgumentRow::named(name)?);
            return Ok(rest);
        }
        let (name, mut kind) = word.split_once(':').ok_or_else(|| format!("`{word}` should be `argument:kind`"))?;
        let (mut argument, mut rest) = (ArgumentRow::named(name)?, rest);
        while argument.attribute(kind)? {
            let (next, after) = rest.split_first().ok_or_else(|| format!("`{word}` has no kind after it"))?;
            (kind, rest) = (next, after);
        }
        argument.kind(kind)?;
        self.args.push(argument);
        Ok(rest)
    }

    fn check(&self) -> Result<(), String> {
        if self.args.len() > 6 {
            return Err(format!("{} has {} arguments: the kernel takes six", self.name, self.args.len()));
        }
        for (at, argument) in self.args.iter().enumerate() {
            if self.args[..at].iter().any(|earlier| earlier.name == argument.name) {
                return Err(format!("two arguments are called {}", argument.name));
            }
            if let LengthRow::Argument(length) = &argument.length
                && !self.args.iter().any(|other| other.name == *length)
            {
                return Err(format!("the length of {} is {length}, which is no argument of {}", argument.name, self.name));
            }
            if let Some(owner) = argument.fd_of.as_ref().filter(|owner| !self.args.iter().any(|other| other.name == **owner)) {
                return Err(format!("{} is a descriptor of {owner}, which is no argument of {}", argument.name, self.name));
            }
            let tested = argument.used.iter().flat_map(ConditionRow::arguments);
            if let Some(tested) = tested.into_iter().find(|tested| !self.args.iter().any(|other| other.name == **tested)) {
                return Err(format!("the condition of {} tests {tested}, which is no argument of {}", argument.name, self.name));
            }
        }
        match self.chosen_by {
            None if self.returns.is_none() => Err(format!("{} does not say what it returns: `-> kind` is missing", self.name)),
            Some(_) if self.number.is_some() || self.event != self.name => {
                Err(format!("this row of {} is a variant: number and event name stand in the plain row", self.name))
            }
            Some(_) if self.does != "Plain" => Err(format!("this row of {} is a variant: `does=` stands in the plain row", self.name)),
            Some(_) if !self.groups.is_empty() => Err(format!("this row of {} is a variant: groups stand in the plain row", self.name)),
            _ => Ok(()),
        }
    }
}

impl ArgumentRow {
    fn named(name: &str) -> Result<ArgumentRow, String> {
        if !is_name(name) {
            return Err(format!("`{name}` cannot be an argument's name"));
        }
        Ok(ArgumentRow {
            name: name.into(),
            kind: String::new(),
            pointer: false,
            flow: FlowRow::In,
            written: vec!["SUCCEEDED"],
            traits: Vec::new(),
            fd_of: None,
            length: LengthRow::OfType,
            used: None,
        })
    }

    /// What a field of a struct means, in the words for arguments.
    pub fn of_field(name: &str, meaning: &str) -> Result<ArgumentRow, String> {
        let mut field = ArgumentRow::named(name)?;
        field.kind(meaning)?;
        Ok(field)
    }

    /// Takes a word that stands before the kind: `out`, `inout(succeeded|interrupted)`, `optional`, `fd_of(pid1)`.
    /// Whether it is one.
    fn attribute(&mut self, word: &str) -> Result<bool, String> {
        let (word, said) = match word.split_once('(') {
            Some((before, said)) => (before, Some(said.strip_suffix(')').ok_or_else(|| format!("`{word}` has an open bracket"))?)),
            None => (word, None),
        };
        match (word, said) {
            ("out", _) => self.flow = FlowRow::Out,
            ("inout", _) => self.flow = FlowRow::InOut,
            ("fd_of", Some(owner)) => {
                self.fd_of = Some(owner.to_string());
                return Ok(true);
            }
            _ => {
                let known = TRAITS.iter().find(|(known, _)| *known == word && said.is_none());
                self.traits.extend(known.map(|(_, rust)| *rust));
                return Ok(known.is_some());
            }
        }
        let outcome = |said: &str| {
            let known = OUTCOMES.iter().find(|(known, _)| *known == said).map(|(_, rust)| *rust);
            known.ok_or_else(|| format!("`{word}({said})`: memory is written when the call succeeded, positive, interrupted or failed"))
        };
        if let Some(said) = said {
            self.written = said.split('|').map(outcome).collect::<Result<_, _>>()?;
        }
        Ok(true)
    }

    /// `bytes[count]`, `u64*[4]`, `mode?flags&O_CREAT`
    fn kind(&mut self, text: &str) -> Result<(), String> {
        let (kind, used) = text.split_once('?').map_or((text, None), |(kind, used)| (kind, Some(used)));
        if let Some(used) = used {
            self.used = Some(condition::parse(used)?);
        }
        let kind = match kind.split_once('[') {
            None => kind,
            Some((kind, length)) => {
                let length = length.strip_suffix(']').ok_or_else(|| format!("`{text}` has an open bracket"))?;
                self.length = match length.parse() {
                    Ok(number) => LengthRow::Fixed(number),
                    Err(_) if length == "ret" => LengthRow::Ret,
                    Err(_) if is_name(length) => LengthRow::Argument(length.to_string()),
                    Err(_) => return Err(format!("`{length}` is no length: an argument, `ret` or a number")),
                };
                kind
            }
        };
        let plain = kind.strip_suffix('*').unwrap_or(kind);
        if !is_name(plain.strip_prefix("custom.").unwrap_or(plain)) {
            return Err(format!("`{text}` is no kind"));
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
        parse(&rows("s.tbl", text)[0]).map_err(|fault| fault.to_string())
    }

    #[test]
    fn arguments_say_kind_flow_length_and_use() {
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
    fn an_argument_says_when_its_memory_is_written() {
        let row =
            parsed("nap rmtp:out(interrupted) timespec tsp:inout(succeeded|interrupted) timespec a:out int* b:int -> int").expect("good");
        let said = row.args.iter().map(|argument| (argument.flow, argument.written.join(" "))).collect::<Vec<_>>();
        let expected = [
            (FlowRow::Out, "INTERRUPTED"),
            (FlowRow::InOut, "SUCCEEDED INTERRUPTED"),
            (FlowRow::Out, "SUCCEEDED"),
            (FlowRow::In, "SUCCEEDED"),
        ];
        assert_eq!(said, expected.map(|(flow, written)| (flow, written.to_string())));
    }

    #[test]
    fn an_argument_has_words_before_its_kind() {
        let row = parsed("cmp pid:pid idx:fd_of(pid) uint addr:optional address vec:shallow out iovec*[n] n:uint -> int").expect("good");
        assert_eq!((row.args[1].fd_of.as_deref(), row.args[1].kind.as_str()), (Some("pid"), "uint"));
        assert_eq!((&row.args[2].traits[..], &row.args[3].traits[..]), (&["OPTIONAL"][..], &["SHALLOW"][..]));
        assert_eq!((row.args[3].flow, row.args[3].kind.as_str()), (FlowRow::Out, "iovec"));
    }

    #[test]
    fn a_row_says_what_its_call_does() {
        let does = |text: &str| parsed(text).expect("good").does;
        assert_eq!([does("close fd:fd -> int %desc does=close"), does("read fd:fd -> size")], ["Close", "Plain"]);
    }

    #[test]
    fn a_variant_is_chosen_by_one_argument() {
        let row = parsed("fcntl fd:fd cmd=F_SETLK|F_SETLKW arg:flock").expect("good");
        assert_eq!(row.chosen_by, Some((1, vec!["F_SETLK".into(), "F_SETLKW".into()])));
        assert_eq!((row.args.len(), row.args[1].kind.as_str()), (3, ""));
    }

    #[test]
    fn bad_rows_say_where_and_what() {
        for (text, said) in [
            ("\n\nread fd:fd", "s.tbl:3: read does not say what it returns"),
            ("re-ad -> int", "s.tbl:1: `re-ad` cannot be a syscall's name"),
            ("read@x -> int", "s.tbl:1: `x` is no syscall number"),
            ("read fd -> int", "s.tbl:1: `fd` should be `argument:kind`"),
            ("read a:fd_of(pid) uint -> int", "s.tbl:1: a is a descriptor of pid, which is no argument of read"),
            ("read buf:out(always) bytes[4] -> int", "s.tbl:1: `out(always)`: memory is written when the call succeeded"),
            ("read buf:out(failed bytes[4] -> int", "s.tbl:1: `out(failed` has an open bracket"),
            ("read buf:out", "s.tbl:1: `buf:out` has no kind after it"),
            ("read fd:fd ->", "s.tbl:1: `->` without what is returned"),
            ("read -> int fd:fd", "s.tbl:1: `fd:fd` stands after the arguments"),
            ("read buf:bytes[n] -> int", "s.tbl:1: the length of buf is n, which is no argument of read"),
            ("read buf:bytes[4 -> int", "s.tbl:1: `bytes[4` has an open bracket"),
            ("read buf:bytes[a+b] -> int", "s.tbl:1: `a+b` is no length"),
            ("read a:int a:int -> int", "s.tbl:1: two arguments are called a"),
            ("read a:int b:int c:int d:int e:int f:int g:int -> int", "s.tbl:1: read has 7 arguments"),
            ("read buf:mode?creates -> int", "s.tbl:1: `?creates` is no condition"),
            ("read buf:mode?n&A -> int", "s.tbl:1: the condition of buf tests n, which is no argument of read"),
            ("read a=1 b=2", "s.tbl:1: two arguments choose this row"),
            ("read a=1 -> int %file", "s.tbl:1: this row of read is a variant: groups"),
            ("read a:int -> int does=all", "s.tbl:1: `does=all`: what a call does is one of exit, exit_group"),
            ("read a=1 -> int does=close", "s.tbl:1: this row of read is a variant: `does=`"),
            ("read@5 a=1 -> int", "s.tbl:1: this row of read is a variant: number"),
            ("read a:in/t -> int", "s.tbl:1: `in/t` is no kind"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.starts_with(said), "{error}");
        }
    }
}
