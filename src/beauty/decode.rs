//! From a call and its row to typed values.
//!
//! A style walks the arguments and prints each before the next is made; registers are told without allocation. What is not known stays unknown; nothing fails.

use super::change::change;
use super::default::is_default;
use super::lookup;
use super::memory::{Moment, Reader};
use super::resolve::Signature;
use super::row::{Flow, Kind, Return, Syscall};
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

    /// The names and values of the arguments that are used, in order. A call without a row has its six registers, nameless.
    pub fn args(&self) -> Args<'_, 'a> {
        Args { decoded: self, index: 0, defaults: true }
    }

    /// The same without arguments that are zero where zero says nothing (see `default.rs`).
    pub fn args_without_defaults(&self) -> Args<'_, 'a> {
        Args { defaults: false, ..self.args() }
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

    fn argument(&self, index: usize, registers: &[u64; 6]) -> Value<'a> {
        let abi = self.call.abi;
        let kind = &self.signature.args[index].kind;
        let Some(word) = self.signature.word(index, abi) else { return Value::Unknown };
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
            _ => scalar(kind, raw, abi, self.context).unwrap_or_else(|| self.pointed(index, raw, registers)),
        }
    }

    /// What an argument points to, if it was copied; else its address.
    fn pointed(&self, index: usize, address: u64, registers: &[u64; 6]) -> Value<'a> {
        if self.call.pieces.is_empty() || address == 0 {
            return Value::Unread(address);
        }
        let arg = &self.signature.args[index];
        let count = self.signature.length(index, self.call.abi, registers, self.call.ret());
        let reader = |moment| Reader::new(self.call, self.context, index as u8, moment);
        match arg.flow {
            Flow::In => reader(Moment::Entry).pointed(&arg.kind, address, count),
            Flow::InOut if reader(Moment::Exit).has(address, true) && reader(Moment::Entry).has(address, false) => {
                let old = reader(Moment::Entry).pointed(&arg.kind, address, count);
                change(old, reader(Moment::Exit).pointed(&arg.kind, address, count))
            }
            Flow::InOut if !reader(Moment::Exit).has(address, true) => {
                reader(Moment::Exit).without_written().pointed(&arg.kind, address, count)
            }
            Flow::Out | Flow::InOut => reader(Moment::Exit).pointed(&arg.kind, address, count),
        }
    }
}

/// Iterator over a call's arguments.
pub struct Args<'d, 'a> {
    decoded: &'d Decoded<'a>,
    index: usize,
    /// Zeros that say nothing are given as well.
    defaults: bool,
}

impl<'a> Iterator for Args<'_, 'a> {
    type Item = (&'static str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let decoded = self.decoded;
        let registers = decoded.call.args.as_ref();
        if decoded.row.is_none() {
            let value = *registers?.get(self.index)?;
            self.index += 1;
            return Some(("", Value::Hex(value)));
        }
        loop {
            let index = self.index;
            let arg = decoded.signature.args.get(index)?;
            self.index += 1;
            let Some(registers) = registers else { return Some((arg.name, Value::Unknown)) };
            if !decoded.signature.uses(index, registers) {
                continue;
            }
            let value = decoded.argument(index, registers);
            if self.defaults || !is_default(decoded.signature.args, index, &value, registers) {
                return Some((arg.name, value));
            }
        }
    }
}

#[cfg(test)]
mod tests;
