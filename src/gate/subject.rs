//! The names that a `--filter` can use: the arguments of a syscall, the fields of a tracepoint, and the properties that
//! every event has.

use crate::beauty::access::{self, Found, Step, Target};
use crate::beauty::constant::Constants;
use crate::beauty::decode::{Context, Decoded};
use crate::beauty::lookup;
use crate::beauty::lookup::requests::OWN_ARGUMENTS;
use crate::beauty::row::{Arg, ArgumentKind, Flow, Length, Outcomes, Return, Syscall};
use crate::beauty::value::Value;
use crate::beauty::{file, tracepoint};
use crate::event::{Abi, Call, EntryState, Event, ExitState, FdPlace, File, Piece, PieceState};
use crate::kernel::constant::Constant;
use crate::kernel::fetched::FetchResult;
use crate::kernel::format::Format;
use crate::request::filter::{Name, NameId, Operand, Reference, Scope, Subject, ValueType, Verdict};
use std::borrow::Cow;

// Ids of the names that any event has. Arguments and fields count from 0, paths of descriptors from PATHS.
/// The arguments that every request of io_uring has count from here.
const OF_REQUESTS: NameId = 500;
const PATHS: NameId = 1000;
const RETURN_PATH: NameId = 1999;
const RET: NameId = 2000;
const ERRNO: NameId = 2001;
const DURATION: NameId = 2002;
const COMM: NameId = 2003;
const PID: NameId = 2004;
const TID: NameId = 2005;
const CPU: NameId = 2006;
const SYSCALL: NameId = 2007;

/// Names that every event has.
const COMMON: [&str; 4] = ["comm", "pid", "tid", "cpu"];
/// Names that every call has in addition.
const OF_CALLS: [&str; 4] = ["syscall", "ret", "errno", "duration"];

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
    /// A part of the value of an argument.
    Inside(u8),
    /// The path of a descriptor, or the CPU.
    Other,
}

impl CallOperand {
    /// Returns the operand that [`CallScope`] resolved a name to.
    pub fn of(reference: &Reference) -> CallOperand {
        match reference.name {
            index if index < PATHS && !reference.steps.is_empty() => CallOperand::Inside(index as u8),
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
    /// The ABI of the calls. The layout of structs and the values of constants depend on it.
    pub abi: Abi,
    /// The row of the syscall, or of the request of io_uring; `None` if there is no row.
    pub row: Option<&'static Syscall>,
    /// The row is that of a request of io_uring.
    pub is_request: bool,
}

impl CallScope {
    /// Returns the arguments of this name with their ids: one for the row itself, and one for each variant of the row.
    fn arguments(&self, name: &str) -> impl Iterator<Item = (NameId, &'static Arg)> {
        let signatures = self.row.into_iter().flat_map(|row| row.signatures().map(|signature| (0, signature.args)));
        let of_requests = self.is_request.then_some((OF_REQUESTS, &OWN_ARGUMENTS[..]));
        let all = signatures.chain(of_requests);
        all.filter_map(move |(first, args)| (first..).zip(args).find(|(_, arg)| arg.name == name))
    }

    /// Returns the target of a name that begins with an argument's name, for all variants of the row together.
    fn target(&self, name: &Name) -> Option<Target> {
        let steps = name.steps();
        self.arguments(name.head()).filter_map(|(_, arg)| access::argument_target(arg, &steps, self.abi)).reduce(Target::or)
    }

    /// Returns the constants that the name accepts, whichever variant of its row a call has.
    fn constants(&self, name: &Name) -> Option<Constants> {
        if self.arguments(name.head()).next().is_some() {
            return self.target(name).map(|target| target.constants);
        }
        match name.0.as_str() {
            "errno" => Some(Constants::of_errno()),
            "ret" => {
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
        if let Some((id, _)) = self.arguments(name.head()).next() {
            let target = self.target(name)?;
            let is_descriptor = |(_, arg): (NameId, &Arg)| matches!(arg.kind, ArgumentKind::Fd | ArgumentKind::DirFd);
            let is_path = name.steps() == [Step::Member("path".into())] && self.arguments(name.head()).any(is_descriptor);
            let id = if is_path { PATHS } else { 0 } + id;
            let value_type = match (target.is_number, target.is_text) {
                (_, false) => ValueType::Number,
                (false, true) => ValueType::Text,
                (true, true) => ValueType::Either,
            };
            return Some((id, value_type));
        }
        match name.0.as_str() {
            "ret" => Some((RET, ValueType::Number)),
            "syscall" => Some((SYSCALL, ValueType::Text)),
            "ret.path" => Some((RETURN_PATH, ValueType::Text)),
            "errno" => Some((ERRNO, ValueType::Number)),
            "duration" => Some((DURATION, ValueType::Number)),
            name => common_name(name),
        }
    }

    fn fixed_text(&self, name: &Name) -> Option<&str> {
        self.row.filter(|_| name.0 == "syscall" && self.arguments("syscall").next().is_none()).map(|row| row.name)
    }

    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant> {
        self.constants(name)?.find(symbol)
    }

    fn names(&self) -> Vec<String> {
        let of_requests = if self.is_request { &OWN_ARGUMENTS[..] } else { &[] };
        let arguments = self.row.map_or(&[] as &[Arg], |row| row.args).iter().chain(of_requests);
        let parts = arguments.clone().flat_map(|arg| {
            let members = access::member_names(&arg.kind, self.abi);
            members.into_iter().map(|member| format!("{}.{member}", arg.name)).collect::<Vec<_>>()
        });
        arguments.map(|arg| arg.name).chain(OF_CALLS).chain(COMMON).map(str::to_owned).chain(parts).collect()
    }

    fn constants(&self, name: &Name) -> Vec<String> {
        if let Some(fixed) = self.fixed_text(name) {
            return vec![fixed.to_owned()];
        }
        CallScope::constants(self, name).map(|constants| constants.names()).unwrap_or_default()
    }
}

/// One call, as the subject of a filter.
pub struct CallSubject<'a> {
    /// The event that has the call: its task, comm, CPU and time.
    pub event: &'a Event,
    /// The call, which may be in flight.
    pub call: &'a Call,
    /// The call's row; `None` if it has no row, so that its arguments have no names.
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
            SYSCALL => {
                let name = lookup::name(self.row, self.call.abi, self.call.nr);
                Operand::Text(name.map_or_else(|| format!("syscall_{}", self.call.nr).into_bytes().into(), |name| name.as_bytes().into()))
            }
            index if index < PATHS => self.argument(usize::from(index)),
            index if index < RETURN_PATH => path(self.call.file(FdPlace::Arg((index - PATHS) as u8))),
            _ => common_value(self.event, name),
        }
    }

    fn test(&self, reference: &Reference, as_text: bool, test: &dyn Fn(Operand<'_>) -> Verdict) -> Verdict {
        let index = usize::from(reference.name);
        match reference.name < PATHS && (!reference.steps.is_empty() || (as_text && self.is_bytes(index))) {
            true => self.test_inside(index, &reference.steps, as_text, test),
            false => test(self.value(reference.name)),
        }
    }
}

impl CallSubject<'_> {
    fn argument(&self, index: usize) -> Operand<'_> {
        if let Some(own) = index.checked_sub(usize::from(OF_REQUESTS)) {
            let value = self.call.request.as_ref().and_then(|registers| registers.get(own));
            return value.map_or(Operand::Unknown, |value| Operand::Number((*value).into()));
        }
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

    /// Returns whether the argument points to bytes, or to a string whose length the call specifies.
    fn is_bytes(&self, index: usize) -> bool {
        let (Some(row), Some(registers)) = (self.row, self.call.args.as_ref()) else { return false };
        row.signature_of(registers).args.get(index).is_some_and(|arg| match arg.kind {
            ArgumentKind::Bytes => true,
            ArgumentKind::Str => matches!(arg.length, Length::Arg(_)),
            _ => false,
        })
    }

    /// Tests a part of the value of an argument. If the call has written the value, the test is on the value after the
    /// call. With [`Step::AnyElement`] there may be several parts, and one of them must pass.
    fn test_inside(&self, index: usize, steps: &[Step], as_text: bool, test: &dyn Fn(Operand<'_>) -> Verdict) -> Verdict {
        let decoded = Decoded::with_row(self.call, self.row, Context::new(&|_| None, usize::MAX).elements(usize::MAX));
        let Some(argument) = decoded.args().nth(index).filter(|argument| argument.is_used()) else { return test(Operand::Nothing) };
        let outcome = self.call.ret().map(Outcomes::of);
        let is_unwritten = |arg: &Arg| arg.flow == Flow::Out && outcome.is_some_and(|outcome| !arg.written.contains(outcome));
        if argument.row().is_some_and(is_unwritten) {
            return test(Operand::Nothing);
        }
        let values = argument.values();
        let Some(value) = values.exit().or(values.entry()) else { return test(Operand::Unknown) };
        let mut verdict = Verdict::No;
        access::each(value, steps, &mut |found| {
            let one = match found {
                Found::Value(value) if as_text => test(text_of(value)),
                Found::Value(value) => test(number_of(value)),
                Found::Number(number) => test(Operand::Number(number)),
                Found::File(file) => test(path(file)),
                Found::Absent => test(Operand::Nothing),
                Found::Unknown => test(Operand::Unknown),
            };
            verdict = verdict.or(one);
        });
        verdict
    }

    /// A string can be compared only if it was copied completely and unchanged.
    fn text(&self, piece: &Piece) -> Operand<'_> {
        match piece.state {
            PieceState::Ok => Operand::Text(Cow::Borrowed(self.call.bytes(piece))),
            PieceState::Cut | PieceState::Altered { .. } | PieceState::Fault => Operand::Unknown,
        }
    }
}

/// Returns the operand for a comparison with text.
fn text_of<'v>(value: &'v Value<'_>) -> Operand<'v> {
    match value {
        Value::Str(text) if text.altered => Operand::Unknown,
        Value::Str(text) if text.cut => Operand::Beginning(&text.bytes),
        Value::Str(text) => Operand::Text(Cow::Borrowed(&text.bytes)),
        Value::Ip(address) => Operand::Text(Cow::Owned(address.to_string().into_bytes())),
        Value::Unread(1..) | Value::Unknown | Value::Uncopied { .. } => Operand::Unknown,
        _ => Operand::Nothing,
    }
}

/// Returns the operand for a comparison with a number. For a value in memory, it is the address.
fn number_of(value: &Value<'_>) -> Operand<'static> {
    Operand::Number(match value {
        Value::Int(number) => (*number).into(),
        Value::Uint(number) | Value::Hex(number) | Value::Octal(number) | Value::Address(number) | Value::Code(number) => (*number).into(),
        Value::Flags { bits, .. } => (*bits).into(),
        Value::Symbol { value, .. } | Value::Macro { value, .. } => (*value).into(),
        Value::Fd { fd, .. } | Value::DirFd { fd, .. } => (*fd).into(),
        Value::Pid { pid, .. } => (*pid).into(),
        Value::Id { id, .. } => (*id).into(),
        Value::Signal(signal) => (*signal).into(),
        Value::SignalCode { code, .. } => (*code).into(),
        Value::WaitStatus(status) => status.raw.into(),
        Value::FileMode(mode) => (*mode).into(),
        Value::Port(port) => port.0.into(),
        Value::Packed { raw, .. } => (*raw).into(),
        // The encoding of user space (new_encode_dev in include/linux/kdev_t.h).
        Value::Dev { major, minor } => (u64::from(minor & 0xff) | u64::from(*major) << 8 | u64::from(minor & !0xff) << 12).into(),
        Value::Str(text) => text.address.into(),
        Value::Struct(of) => of.address.into(),
        Value::Array(of) | Value::AllBut(of) => of.address.into(),
        Value::Unread(address) | Value::Uncopied { address, .. } => (*address).into(),
        Value::Unknown => return Operand::Unknown,
        // An Internet address is compared as text. The other values occur only in fields of tracepoints, which have a
        // scope of their own.
        _ => return Operand::Nothing,
    })
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
    /// The format of the records, which names their fields.
    pub format: &'a Format,
    /// The machine's ABI.
    pub abi: Abi,
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
        tracepoint::constants(self.format, &name.0, self.abi).find(symbol)
    }

    fn names(&self) -> Vec<String> {
        self.format.own_fields().map(|field| field.name.as_str()).chain(COMMON).map(str::to_owned).collect()
    }

    fn constants(&self, name: &Name) -> Vec<String> {
        tracepoint::constants(self.format, &name.0, self.abi).names()
    }
}

/// One tracepoint record, as the subject of a filter.
pub struct TracepointSubject<'a> {
    /// The event that has the record: its task, comm and CPU.
    pub event: &'a Event,
    /// The format of the record. The ids of its fields are their indices in it.
    pub format: &'a Format,
    /// The record's bytes, at the offsets that the format states.
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
