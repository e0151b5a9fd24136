//! From a call and its row to typed values.
//!
//! A style walks the arguments and prints each before the next is made; registers are told without allocation. What is not known stays unknown; nothing fails.

use super::default::is_default;
use super::lookup;
use super::memory::{Moment, Reader};
use super::resolve::{Signature, Word};
use super::row::{Arg, Flow, Kind, Return, Syscall};
use super::scalar::{constants, id, pid, scalar};
use super::value::{Returned, Value};
use crate::event::{Call, Comm, Exit, FdPlace, ID_RETURNED, Numbers};

/// What decoding asks beside the call.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// A task's name at the time of the call.
    pub comm: &'a dyn Fn(i32) -> Option<Comm>,
    /// Strings other than paths are cut to so many bytes.
    pub string_limit: usize,
    /// Which tasks the call's numbers mean; [`Decoded`] takes the call's own.
    pub(super) numbers: &'a Numbers,
}

impl<'a> Context<'a> {
    pub const fn new(comm: &'a dyn Fn(i32) -> Option<Comm>, string_limit: usize) -> Context<'a> {
        Context { comm, string_limit, numbers: &Numbers::Same }
    }
}

/// A call with the row that tells how to read it.
pub struct Decoded<'a> {
    call: &'a Call,
    context: Context<'a>,
    row: Option<&'static Syscall>,
    signature: Signature,
}

impl<'a> Decoded<'a> {
    /// Looks the row up.
    pub fn new(call: &'a Call, context: Context<'a>) -> Decoded<'a> {
        Decoded::with_row(call, lookup::row(call.abi, call.nr), context)
    }

    /// With a row that is known already; `None` for a call nobody knows.
    pub fn with_row(call: &'a Call, row: Option<&'static Syscall>, context: Context<'a>) -> Decoded<'a> {
        let unknown = Signature { args: &[], returns: Return::Long };
        let signature = row.map_or(unknown, |row| call.args.as_ref().map_or(row.signature(), |registers| row.signature_of(registers)));
        Decoded { call, context: Context { numbers: &call.numbers, ..context }, row, signature }
    }

    /// The call's row.
    pub fn row(&self) -> Option<&'static Syscall> {
        self.row
    }

    /// All arguments, in order, used or not. A call without a row has its six registers, nameless.
    pub fn args(&self) -> impl Iterator<Item = Argument<'_, 'a>> {
        let count = match (self.row, self.call.args) {
            (Some(_), _) => self.signature.args.len(),
            (None, Some(registers)) => registers.len(),
            (None, None) => 0,
        };
        (0..count).map(|index| Argument { decoded: self, index })
    }

    /// What became of it.
    pub fn returned(&self) -> Returned<'a> {
        let ret = match self.call.exit {
            Exit::Returned { ret, .. } => ret,
            Exit::Never => return Returned::Never,
            Exit::Pending => return Returned::Pending,
            Exit::Unseen => return Returned::Unseen,
        };
        match self.call.errno() {
            Some(errno) if super::errno::is_restart(errno) => Returned::Restart(errno),
            Some(errno) => Returned::Error(errno),
            None if ret == 0 && matches!(self.signature.returns, Return::Ready) => Returned::Timeout,
            None => Returned::Value(self.returned_value(ret)),
        }
    }

    fn returned_value(&self, ret: i64) -> Value<'a> {
        match self.signature.returns {
            Return::Int | Return::Long | Return::Offset | Return::Ready | Return::Never => Value::Int(ret),
            Return::Uint => Value::Uint(u64::from(ret as u32)),
            Return::Size => Value::Uint(ret as u64),
            Return::Hex => Value::Hex(ret as u64),
            Return::Address => Value::Address(ret as u64),
            Return::Fd => Value::Fd { fd: ret as i32, file: self.call.file(FdPlace::Return) },
            Return::Pid => pid(ret as i32, self.context),
            Return::Uid | Return::Gid => self.id(ret as u32, ID_RETURNED),
            Return::Mode => Value::Octal(ret as u64),
            Return::Table(table) => constants(table, ret as u64, self.call.abi),
        }
    }

    fn id(&self, number: u32, place: u8) -> Value<'a> {
        self.call.id_here(place).map_or_else(|| id(number), |here| Value::Id { id: number, here })
    }

    /// The value of an argument that is in its register.
    #[inline]
    fn argument(&self, index: usize, word: Word, registers: &[u64; 6]) -> Value<'a> {
        let abi = self.call.abi;
        let kind = &self.signature.args[index].kind;
        let raw = word.raw(registers);
        match kind {
            Kind::Fd => Value::Fd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) },
            Kind::DirFd => Value::DirFd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) },
            // Of another process: the caller's own of that number would be another file.
            Kind::Int | Kind::Uint if !self.call.files.is_empty() && self.call.file(FdPlace::Arg(index as u8)).is_some() => {
                Value::Fd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) }
            }
            Kind::Uid | Kind::Gid => self.id(raw as u32, index as u8),
            Kind::Custom(decode, _) => decode(registers, usize::from(word.register), abi),
            _ => scalar(kind, raw, abi, self.context).unwrap_or(Value::Unread(raw)),
        }
    }
}

/// One argument of a call. Its values are made when they are asked for.
#[derive(Clone, Copy)]
pub struct Argument<'d, 'a> {
    decoded: &'d Decoded<'a>,
    index: usize,
}

impl<'a> Argument<'_, 'a> {
    /// Its row's word for it; `None` for a register of a call without a row.
    #[inline]
    pub fn row(&self) -> Option<&'static Arg> {
        self.decoded.signature.args.get(self.index)
    }

    /// Its place among the arguments, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The kernel's name for it; empty for a register of a call without a row.
    #[inline]
    pub fn name(&self) -> &'static str {
        self.row().map_or("", |arg| arg.name)
    }

    /// In which registers it is, and how much of them.
    #[inline]
    pub fn word(&self) -> Option<Word> {
        self.decoded.signature.word(self.index, self.decoded.call.abi)
    }

    /// Whether the kernel looks at it. Where nobody saw the registers, it may.
    #[inline]
    pub fn is_used(&self) -> bool {
        match (&self.decoded.call.args, self.decoded.row) {
            (Some(registers), Some(_)) => self.decoded.signature.uses(self.index, registers),
            _ => true,
        }
    }

    /// Whether this value of it says nothing (see `default.rs`).
    #[inline]
    pub fn is_default(&self, value: &Value) -> bool {
        let Some(registers) = &self.decoded.call.args else { return false };
        is_default(self.decoded.signature.args, self.index, value, registers)
    }

    /// Its value when the call was entered: that of the register, or what it points to. `None` for memory that the kernel does not
    /// read, or that was not read then, but when the call returned.
    #[inline]
    pub fn entry(&self) -> Option<Value<'a>> {
        let call = self.decoded.call;
        let Some(registers) = &call.args else { return Some(Value::Unknown) };
        let (Some(arg), Some(word)) = (self.row(), self.word()) else {
            return Some(registers.get(self.index).map_or(Value::Unknown, |register| Value::Hex(*register)));
        };
        if arg.kind.is_in_register() {
            return Some(self.decoded.argument(self.index, word, registers));
        }
        let address = word.raw(registers);
        if call.pieces.is_empty() || address == 0 {
            return (arg.flow != Flow::Out).then_some(Value::Unread(address));
        }
        let reader = |moment| Reader::new(call, self.decoded.context, self.index as u8, moment);
        let has = |exit| reader(Moment::Exit).has(address, exit);
        match arg.flow {
            Flow::Out => None,
            Flow::In => Some(self.pointed(reader(Moment::Entry), arg, address)),
            Flow::InOut if !has(true) => Some(self.pointed(reader(Moment::Exit).without_written(), arg, address)),
            Flow::InOut => has(false).then(|| self.pointed(reader(Moment::Entry), arg, address)),
        }
    }

    /// What it points to when the call has returned, for memory that the kernel writes. The address where that is not known or was not
    /// written; `None` where only [`Argument::entry`] says anything.
    #[inline]
    pub fn exit(&self) -> Option<Value<'a>> {
        let call = self.decoded.call;
        let arg = self.row().filter(|arg| arg.flow != Flow::In && !arg.kind.is_in_register())?;
        let (Some(registers), Some(word)) = (&call.args, self.word()) else { return None };
        let address = word.raw(registers);
        let reader = Reader::new(call, self.decoded.context, self.index as u8, Moment::Exit);
        let is_there = !call.pieces.is_empty() && address != 0;
        match arg.flow {
            Flow::Out if !is_there => Some(Value::Unread(address)),
            Flow::InOut if !is_there || !reader.has(address, true) => None,
            _ => Some(self.pointed(reader, arg, address)),
        }
    }

    fn pointed(&self, mut reader: Reader<'a>, arg: &Arg, address: u64) -> Value<'a> {
        let call = self.decoded.call;
        let count = call.args.as_ref().and_then(|registers| self.decoded.signature.length(self.index, call.abi, registers, call.ret()));
        reader.pointed(&arg.kind, address, count)
    }
}

#[cfg(test)]
mod tests;
