//! The names that a `--filter` can use: the arguments of a syscall, the fields of a tracepoint, and the properties that
//! every event has.

use crate::beauty::constant::Constants;
use crate::beauty::row::{Arg, ArgumentKind, Return, Syscall};
use crate::beauty::{file, tracepoint};
use crate::event::{Abi, Call, EntryState, Event, ExitState, FdPlace, File, Piece, PieceState};
use crate::kernel::constant::Constant;
use crate::kernel::fetched::FetchResult;
use crate::kernel::format::Format;
use crate::request::filter::{Name, NameId, Operand, Scope, Subject, ValueType};
use std::borrow::Cow;

// Ids of the names that any event has. Arguments and fields count from 0, paths of descriptors from PATHS.
const PATHS: NameId = 1000;
const RETURN_PATH: NameId = 1999;
const RET: NameId = 2000;
const ERRNO: NameId = 2001;
const DURATION: NameId = 2002;
const COMM: NameId = 2003;
const PID: NameId = 2004;
const TID: NameId = 2005;
const CPU: NameId = 2006;

/// Names that every event has.
const COMMON: [&str; 4] = ["comm", "pid", "tid", "cpu"];
/// Names that every call has in addition.
const OF_CALLS: [&str; 3] = ["ret", "errno", "duration"];

/// Resolves a name that every event has.
fn common_name(name: &str) -> Option<(NameId, ValueType)> {
    Some(match name {
        "comm" => (COMM, ValueType::Text),
        "pid" => (PID, ValueType::Number),
        "tid" => (TID, ValueType::Number),
        "cpu" => (CPU, ValueType::Number),
        _ => return None,
    })
}

fn common_value(event: &Event, name: NameId) -> Operand<'_> {
    match name {
        COMM => event.comm.as_deref().map_or(Operand::Unknown, |comm| Operand::Text(Cow::Borrowed(comm))),
        PID => Operand::Number(event.task.pid.into()),
        TID => Operand::Number(event.task.tid.into()),
        CPU => Operand::Number(event.cpu.into()),
        _ => Operand::Unknown,
    }
}

/// The operand that a name in a syscall's filter refers to, for the BPF programs, which evaluate filters in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOperand {
    Argument(u8),
    Ret,
    Errno,
    Duration,
    Comm,
    Pid,
    Tid,
    /// The path of a descriptor, or the CPU.
    Other,
}

impl CallOperand {
    /// Returns the operand that [`CallScope`] assigned this id to.
    pub fn of(name: NameId) -> CallOperand {
        match name {
            RET => CallOperand::Ret,
            ERRNO => CallOperand::Errno,
            DURATION => CallOperand::Duration,
            COMM => CallOperand::Comm,
            PID => CallOperand::Pid,
            TID => CallOperand::Tid,
            index if index < PATHS => CallOperand::Argument(index as u8),
            _ => CallOperand::Other,
        }
    }
}

/// The names for calls of one syscall in one ABI. Without a row, these are only the names that every call has.
#[derive(Clone, Copy, Debug)]
pub struct CallScope {
    pub abi: Abi,
    pub row: Option<&'static Syscall>,
}

impl CallScope {
    /// Returns the arguments of this name with their positions: one for the row itself, and one for each variant of the
    /// row.
    fn arguments(&self, name: &str) -> impl Iterator<Item = (usize, &'static Arg)> {
        let signatures = self.row.into_iter().flat_map(|row| row.signatures());
        signatures.filter_map(move |signature| signature.args.iter().enumerate().find(|(_, arg)| arg.name == name))
    }

    /// Returns the constants that the name accepts, whichever variant of its row a call has.
    fn constants(&self, name: &Name) -> Option<Constants> {
        match (name.head(), name.member()) {
            (head, None) if self.arguments(head).next().is_some() => {
                let arguments = self.arguments(head).map(|(_, arg)| Constants::of_kind(&arg.kind, self.abi));
                arguments.reduce(Constants::and)
            }
            ("errno", None) => Some(Constants::of_errno()),
            ("ret", None) => {
                let returns = self
                    .row
                    .into_iter()
                    .flat_map(|row| row.signatures())
                    .map(|signature| Constants::of_return(signature.returns, self.abi));
                Some(returns.reduce(Constants::and).unwrap_or_else(|| Constants::of_return(Return::Long, self.abi)))
            }
            _ => None,
        }
    }
}

impl Scope for CallScope {
    fn name(&self, name: &Name) -> Option<(NameId, ValueType)> {
        let is_text = |(_, arg): (usize, &Arg)| matches!(arg.kind, ArgumentKind::Path | ArgumentKind::Str);
        let is_descriptor = |(_, arg): (usize, &Arg)| matches!(arg.kind, ArgumentKind::Fd | ArgumentKind::DirFd);
        if let Some((index, _)) = self.arguments(name.head()).next() {
            let index = index as NameId;
            let texts = self.arguments(name.head()).filter(|argument| is_text(*argument)).count();
            return match name.member() {
                None if texts == 0 => Some((index, ValueType::Number)),
                None if texts == self.arguments(name.head()).count() => Some((index, ValueType::Text)),
                None => Some((index, ValueType::Either)),
                Some("path") if self.arguments(name.head()).any(is_descriptor) => Some((PATHS + index, ValueType::Text)),
                Some(_) => None,
            };
        }
        match (name.head(), name.member()) {
            ("ret", None) => Some((RET, ValueType::Number)),
            ("ret", Some("path")) => Some((RETURN_PATH, ValueType::Text)),
            ("errno", None) => Some((ERRNO, ValueType::Number)),
            ("duration", None) => Some((DURATION, ValueType::Number)),
            (head, None) => common_name(head),
            _ => None,
        }
    }

    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant> {
        self.constants(name)?.find(symbol)
    }

    fn names(&self) -> Vec<String> {
        let arguments = self.row.map_or(&[] as &[Arg], |row| row.args).iter().map(|arg| arg.name);
        arguments.chain(OF_CALLS).chain(COMMON).map(str::to_owned).collect()
    }

    fn constants(&self, name: &Name) -> Vec<String> {
        CallScope::constants(self, name).map(|constants| constants.names()).unwrap_or_default()
    }
}

/// One call, as the subject of a filter.
pub struct CallSubject<'a> {
    pub event: &'a Event,
    pub call: &'a Call,
    pub row: Option<&'static Syscall>,
}

impl Subject for CallSubject<'_> {
    fn value(&self, name: NameId) -> Operand<'_> {
        let number = |value: Option<i128>| value.map_or(Operand::Unknown, Operand::Number);
        match name {
            RET => number(self.call.ret().map(i128::from)),
            ERRNO => number(self.call.ret().map(|_| i128::from(self.call.errno().unwrap_or_default()))),
            DURATION => match self.call.exit {
                ExitState::Pending if self.call.entry == EntryState::Seen => {
                    Operand::AtLeast(i128::from(self.event.time.since(self.call.id.start)))
                }
                _ => number(self.call.duration().map(i128::from)),
            },
            RETURN_PATH => path(self.call.file(FdPlace::Return)),
            index if index < PATHS => self.argument(usize::from(index)),
            index if index < RETURN_PATH => path(self.call.file(FdPlace::Arg((index - PATHS) as u8))),
            _ => common_value(self.event, name),
        }
    }
}

impl CallSubject<'_> {
    fn argument(&self, index: usize) -> Operand<'_> {
        let (Some(row), Some(registers)) = (self.row, self.call.args.as_ref()) else { return Operand::Unknown };
        let signature = row.signature_of(registers);
        let Some(arg) = signature.args.get(index).filter(|_| signature.uses(index, registers)) else { return Operand::Nothing };
        match (arg.kind, signature.word(index, self.call.abi)) {
            // A NULL pointer is not a text.
            (ArgumentKind::Path | ArgumentKind::Str, Some(word)) if word.raw(registers) == 0 => Operand::Nothing,
            (ArgumentKind::Path | ArgumentKind::Str, _) => self.call.piece(index).map_or(Operand::Unknown, |piece| self.text(piece)),
            (_, Some(word)) => Operand::Number(word.number(registers)),
            (_, None) => Operand::Unknown,
        }
    }

    /// A string can be compared only if it was copied completely and unchanged.
    fn text(&self, piece: &Piece) -> Operand<'_> {
        match piece.state {
            PieceState::Ok => Operand::Text(Cow::Borrowed(self.call.bytes(piece))),
            PieceState::Cut | PieceState::Altered { .. } | PieceState::Fault => Operand::Unknown,
        }
    }
}

fn path(file: Option<&File>) -> Operand<'_> {
    match file {
        Some(file) => Operand::Text(file::name(file)),
        None => Operand::Unknown,
    }
}

/// The names for records of one tracepoint.
#[derive(Clone, Copy, Debug)]
pub struct TracepointScope<'a> {
    pub format: &'a Format,
}

impl Scope for TracepointScope<'_> {
    fn name(&self, name: &Name) -> Option<(NameId, ValueType)> {
        let found = self.format.fields.iter().position(|f| f.name == name.0);
        match found {
            Some(index) => Some((index as NameId, if self.format.fields[index].is_text() { ValueType::Text } else { ValueType::Number })),
            None => common_name(&name.0),
        }
    }

    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant> {
        tracepoint::constants(self.format, &name.0).find(symbol)
    }

    fn names(&self) -> Vec<String> {
        self.format.own_fields().map(|field| field.name.as_str()).chain(COMMON).map(str::to_owned).collect()
    }

    fn constants(&self, name: &Name) -> Vec<String> {
        tracepoint::constants(self.format, &name.0).names()
    }
}

/// One tracepoint record, as the subject of a filter.
pub struct TracepointSubject<'a> {
    pub event: &'a Event,
    pub format: &'a Format,
    pub raw: &'a [u8],
}

impl Subject for TracepointSubject<'_> {
    fn value(&self, name: NameId) -> Operand<'_> {
        let Some(field) = self.format.fields.get(usize::from(name)) else { return common_value(self.event, name) };
        let fetched = self.format.fetched(usize::from(name)).and_then(|fetched| fetched.result(self.raw, field.size));
        if let Some(FetchResult::Failed(_)) = fetched {
            return Operand::Unknown;
        }
        if field.is_text() {
            return field.text(self.raw).map_or(Operand::Unknown, |text| Operand::Text(Cow::Borrowed(text)));
        }
        field.number(self.raw).map_or(Operand::Unknown, |number| Operand::Number(number.into()))
    }
}
