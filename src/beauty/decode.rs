//! Decodes a call to typed values, by its row.
//!
//! A style iterates over the arguments and prints each value before the next is decoded. Decoding a register does not
//! allocate. Decoding never fails: what was not recorded becomes [`Value::Unknown`] or an address.

use super::command;
use super::custom_constants::IOCTL_CMD;
use super::default::is_default;
use super::lookup;
use super::lookup::requests::OWN_ARGUMENTS;
use super::memory::{ELEMENTS_MAX, MemoryReader, Moment};
use super::netlink;
use super::resolve::{Signature, Word};
use super::row::{Arg, ArgumentKind, Flow, Length, Return, Syscall};
use super::scalar::{id, pid, register_constants, scalar};
use super::value::{Returned, Value};
use crate::event::{Call, Comm, ExitState, FdPlace, ID_RETURNED, PidTranslation};

/// The data, besides the call, that decoding needs.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Returns the comm of a task at the time of the call.
    pub comm: &'a dyn Fn(i32) -> Option<Comm>,
    /// Maximum number of bytes of a string that is not a path.
    pub string_limit: usize,
    /// Maximum number of array elements, set members and directory entries.
    pub elements_max: usize,
    /// Whether only the brief form of structs and arrays is decoded: the members and the number of elements that their
    /// rows state with `brief=` and `elements=`.
    pub is_brief: bool,
    /// The numbers of generic netlink families that are known.
    pub(super) families: Option<&'a netlink::Families>,
    /// The memory for messages that are in several parts of the caller's memory.
    pub(super) joined: Option<&'a netlink::Joined>,
    /// The translation of the call's pids to those of rtrace's pid namespace; [`Decoded`] sets it from the call.
    pub(super) pids: &'a PidTranslation,
}

impl<'a> Context<'a> {
    pub const fn new(comm: &'a dyn Fn(i32) -> Option<Comm>, string_limit: usize) -> Context<'a> {
        Context {
            comm,
            string_limit,
            elements_max: ELEMENTS_MAX,
            is_brief: false,
            families: None,
            joined: None,
            pids: &PidTranslation::Same,
        }
    }

    /// Sets the maximum number of array elements, set members and directory entries. The default is 32.
    pub const fn elements(self, elements_max: usize) -> Context<'a> {
        Context { elements_max, ..self }
    }

    /// Sets the numbers of generic netlink families that are known.
    pub const fn families(self, families: &'a netlink::Families) -> Context<'a> {
        Context { families: Some(families), ..self }
    }

    /// Provides memory for netlink messages that are in several parts of the caller's memory. Without it, such messages
    /// are shown as bytes.
    pub const fn joined(self, joined: &'a netlink::Joined) -> Context<'a> {
        Context { joined: Some(joined), ..self }
    }

    /// Sets whether only the brief form of structs and arrays is decoded.
    pub const fn brief(self, is_brief: bool) -> Context<'a> {
        Context { is_brief, ..self }
    }
}

/// A call and the row by which it is decoded.
pub struct Decoded<'a> {
    call: &'a Call,
    context: Context<'a>,
    row: Option<&'static Syscall>,
    signature: Signature,
}

impl<'a> Decoded<'a> {
    /// Looks up the call's row.
    pub fn new(call: &'a Call, context: Context<'a>) -> Decoded<'a> {
        Decoded::with_row(call, lookup::row(call.abi, call.nr), context)
    }

    /// Uses a row that the caller has looked up; `None` for a call that has no row.
    pub fn with_row(call: &'a Call, row: Option<&'static Syscall>, context: Context<'a>) -> Decoded<'a> {
        let unknown = Signature { args: &[], returns: Return::Long };
        let signature = match (row, &call.args) {
            (Some(row), Some(registers)) => row.signature_of(registers),
            // A request whose own arguments are not known has only those that every request has.
            (Some(row), None) if call.request.is_some() => Signature { args: &[], ..row.signature() },
            (Some(row), None) => row.signature(),
            (None, _) => unknown,
        };
        Decoded { call, context: Context { pids: &call.pids, ..context }, row, signature }
    }

    /// Returns the call's row.
    pub fn row(&self) -> Option<&'static Syscall> {
        self.row
    }

    /// Returns all arguments in order, used or not. The arguments of a call without a row are its six registers,
    /// without names.
    pub fn args(&self) -> impl Iterator<Item = Argument<'_, 'a>> {
        let count = match (self.row, self.call.args) {
            (Some(_), _) => self.signature.args.len(),
            (None, Some(registers)) => registers.len(),
            (None, None) => 0,
        };
        let of_request = if self.call.request.is_some() { OWN_ARGUMENTS.len() } else { 0 };
        (0..count + of_request).map(|index| Argument { decoded: self, index })
    }

    /// Returns the result of the call.
    pub fn returned(&self) -> Returned<'a> {
        let ret = match self.call.exit {
            ExitState::Returned { ret, .. } => ret,
            ExitState::Never => return Returned::Never,
            ExitState::Pending => return Returned::Pending,
            ExitState::Unseen => return Returned::Unseen,
        };
        match self.call.errno() {
            Some(errno) if super::errno::is_restart(errno) => Returned::Restart(errno),
            Some(errno) => Returned::Error(errno),
            None if ret == 0 && matches!(self.signature.returns, Return::Ready) => Returned::Timeout,
            None => Returned::Value(self.returned_value(ret)),
        }
    }

    /// Returns the returned value as that of a call that succeeded, whatever it is; `None` if the call did not return.
    pub fn returned_as_value(&self) -> Option<Returned<'a>> {
        self.call.ret().map(|ret| match self.returned_value(ret) {
            Value::Fd { fd, .. } if i64::from(fd) != ret => Returned::Value(Value::Int(ret)),
            value => Returned::Value(value),
        })
    }

    fn returned_value(&self, ret: i64) -> Value<'a> {
        match self.signature.returns {
            Return::Int | Return::Int32 | Return::Long | Return::Offset | Return::Ready | Return::Never => Value::Int(ret),
            Return::Uint => Value::Uint(u64::from(ret as u32)),
            Return::Size => Value::Uint(ret as u64),
            Return::Hex => Value::Hex(ret as u64),
            Return::Address => Value::Address(ret as u64),
            Return::Fd => Value::Fd { fd: ret as i32, file: self.call.file(FdPlace::Return) },
            Return::Pid => pid(ret as i32, self.context),
            Return::Uid | Return::Gid => self.id(ret as u32, ID_RETURNED),
            Return::Mode => Value::Octal(ret as u64),
            Return::Table(table) => register_constants(table, ret as u64, self.call.abi),
            Return::Custom(decode, _) => decode(&[ret as u64; 6], 0, self.call.abi),
        }
    }

    /// Decodes a user or group ID of the argument with the index `index`, or of the return (`ID_RETURNED`).
    fn id(&self, number: u32, index: u8) -> Value<'a> {
        self.call.initial_id(index).map_or_else(|| id(number), |initial| Value::Id { id: number, initial })
    }

    /// Decodes an argument whose value is in its register.
    #[inline]
    fn argument(&self, kind: &ArgumentKind, index: usize, word: Word, registers: &[u64; 6]) -> Value<'a> {
        let abi = self.call.abi;
        let raw = word.raw(registers);
        match kind {
            ArgumentKind::Fd => Value::Fd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) },
            ArgumentKind::DirFd => Value::DirFd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) },
            // A descriptor of another process, which is a plain number in the row (`fd_of`): the caller's descriptor of
            // that number would be a different file.
            ArgumentKind::Int | ArgumentKind::Uint
                if !self.call.files.is_empty() && self.call.file(FdPlace::Arg(index as u8)).is_some() =>
            {
                Value::Fd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) }
            }
            ArgumentKind::Uid | ArgumentKind::Gid => self.id(raw as u32, index as u8),
            // The file behind the descriptor may tell apart commands of the same number.
            ArgumentKind::Custom(_, constants) if std::ptr::eq(*constants, IOCTL_CMD) => {
                command::of_file(raw as u32, abi, self.call.file(FdPlace::Arg(0)))
            }
            ArgumentKind::Custom(decode, _) => decode(registers, usize::from(word.register), abi),
            _ => scalar(kind, raw, abi, self.context).unwrap_or(Value::Unread(raw)),
        }
    }
}

/// The values of an argument at the entry and at the exit of its call.
#[derive(Debug, PartialEq)]
pub enum Values<'a> {
    Entry(Value<'a>),
    Exit(Value<'a>),
    /// At entry, and at exit: the kernel reads and writes this memory. Few arguments have both, so they are boxed.
    Both(Box<[Value<'a>; 2]>),
}

impl<'a> Values<'a> {
    /// Returns the value at entry, if there is one.
    #[inline]
    pub fn entry(&self) -> Option<&Value<'a>> {
        match self {
            Values::Entry(value) => Some(value),
            Values::Exit(_) => None,
            Values::Both(both) => Some(&both[0]),
        }
    }

    /// Returns the value at exit, if there is one.
    #[inline]
    pub fn exit(&self) -> Option<&Value<'a>> {
        match self {
            Values::Entry(_) => None,
            Values::Exit(value) => Some(value),
            Values::Both(both) => Some(&both[1]),
        }
    }
}

/// An argument of a call. Its values are decoded on demand.
#[derive(Clone, Copy)]
pub struct Argument<'d, 'a> {
    decoded: &'d Decoded<'a>,
    index: usize,
}

impl<'d, 'a> Argument<'d, 'a> {
    /// Returns the signature that the argument belongs to, its index there, and the registers with its value. The last
    /// arguments of a request are those that every request has.
    #[inline]
    fn place(&self) -> (&'d Signature, usize, Option<&'a [u64; 6]>) {
        static OF_REQUESTS: Signature = Signature { args: &OWN_ARGUMENTS, returns: Return::Int };
        let Decoded { call, signature, .. } = self.decoded;
        match self.index.checked_sub(signature.args.len()).zip(call.request.as_deref()) {
            Some((index, registers)) => (&OF_REQUESTS, index, Some(registers)),
            None => (signature, self.index, call.args.as_ref()),
        }
    }

    /// Returns the row of the argument; `None` for a register of a call without a row.
    #[inline]
    pub fn row(&self) -> Option<&'static Arg> {
        let (signature, index, _) = self.place();
        signature.args.get(index)
    }

    /// Returns the registers with the value of the argument; none if they were not recorded.
    pub fn registers(&self) -> &'a [u64] {
        let (signature, index, registers) = self.place();
        let word = signature.word(index, self.decoded.call.abi);
        let (first, count) = word.map_or((index, 1), |word| (usize::from(word.register), word.registers()));
        registers.and_then(|registers| registers.get(first..(first + count).min(registers.len()))).unwrap_or_default()
    }

    /// Returns the index of the argument, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the kernel's name for the argument; empty for a register of a call without a row.
    #[inline]
    pub fn name(&self) -> &'static str {
        self.row().map_or("", |arg| arg.name)
    }

    /// Returns the registers and the width of the argument; `None` for a register of a call without a row.
    #[inline]
    pub fn word(&self) -> Option<Word> {
        let (signature, index, _) = self.place();
        signature.word(index, self.decoded.call.abi)
    }

    /// Returns whether the kernel uses the argument; true if the registers were not recorded.
    #[inline]
    pub fn is_used(&self) -> bool {
        let (signature, index, registers) = self.place();
        match (registers, self.decoded.row) {
            (Some(registers), Some(_)) => signature.uses(index, registers),
            _ => true,
        }
    }

    /// Returns whether this value of the argument is a default (see `default.rs`).
    #[inline]
    pub fn is_default(&self, value: &Value) -> bool {
        let (signature, index, Some(registers)) = self.place() else { return false };
        is_default(signature.args, index, value, registers)
    }

    /// Returns the value at entry, the value at exit, or both. An argument in a register has a value at entry. Memory
    /// that the kernel writes has one at exit: its content, or its address if it was not copied or not written.
    #[inline]
    pub fn values(&self) -> Values<'a> {
        let call = self.decoded.call;
        let (signature, index, Some(registers)) = self.place() else { return Values::Entry(Value::Unknown) };
        let (Some(arg), Some(word)) = (signature.args.get(index), signature.word(index, call.abi)) else {
            return Values::Entry(registers.get(index).map_or(Value::Unknown, |register| Value::Hex(*register)));
        };
        if arg.kind.is_in_register() {
            return Values::Entry(self.decoded.argument(&arg.kind, index, word, registers));
        }
        let address = word.raw(registers);
        let has_copies = !call.pieces.is_empty() && address != 0;
        match arg.flow {
            Flow::Out if !has_copies => Values::Exit(Value::Unread(address)),
            _ if !has_copies => Values::Entry(Value::Unread(address)),
            _ => self.values_in_memory(arg, address),
        }
    }

    /// Returns the memory that the argument points to as bytes, whatever it means; its address if it was not copied.
    pub fn bytes(&self) -> Value<'a> {
        let call = self.decoded.call;
        let (signature, index, Some(registers)) = self.place() else { return Value::Unknown };
        let (Some(arg), Some(word)) = (signature.args.get(index), signature.word(index, call.abi)) else { return Value::Unknown };
        let moment = if arg.flow == Flow::Out { Moment::Exit } else { Moment::Entry };
        let mut reader = MemoryReader::new(call, self.decoded.context, index as u8, moment);
        reader.pointed(&ArgumentKind::Bytes, word.raw(registers), None)
    }

    fn values_in_memory(&self, arg: &Arg, address: u64) -> Values<'a> {
        let protocol = arg.socket.and_then(|socket| netlink::protocol(self.decoded.call, socket));
        let reader = |moment| MemoryReader::new(self.decoded.call, self.decoded.context, self.index as u8, moment).of_protocol(protocol);
        let was_copied = |exit| reader(Moment::Exit).was_copied(address, exit);
        let value_at = |moment| self.pointed(reader(moment), arg, address);
        match arg.flow {
            Flow::In => Values::Entry(value_at(Moment::Entry)),
            Flow::Out => Values::Exit(value_at(Moment::Exit)),
            Flow::InOut if !was_copied(true) => Values::Entry(self.pointed(reader(Moment::Exit).without_written(), arg, address)),
            Flow::InOut if was_copied(false) => Values::Both(Box::new([Moment::Entry, Moment::Exit].map(value_at))),
            Flow::InOut => Values::Exit(value_at(Moment::Exit)),
        }
    }

    fn pointed(&self, mut reader: MemoryReader<'a>, arg: &Arg, address: u64) -> Value<'a> {
        let call = self.decoded.call;
        let count = call.args.as_ref().and_then(|registers| self.decoded.signature.length(self.index, call.abi, registers, call.ret()));
        match arg.kind {
            ArgumentKind::Struct(of) if arg.length != Length::OfType => reader.sized_struct(of, arg.traits, address, count),
            _ => reader.pointed(&arg.kind, address, count),
        }
    }
}

#[cfg(test)]
mod tests;
