//! From a call and its row to typed values.
//!
//! Pure and without allocation: a style walks the arguments and prints each before the next is made. What is not known stays unknown; nothing fails.

use super::lookup;
use super::row::{Arg, Kind, Return, Syscall, Table, TableKind};
use super::value::{Returned, Value};
use crate::event::{Abi, Call, Comm, Exit, FdPlace, Piece, PieceState};
use std::borrow::Cow;

/// What decoding asks beside the call.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// A task's name at the time of the call.
    pub comm: &'a dyn Fn(i32) -> Option<Comm>,
    /// Strings other than paths are cut to so many bytes.
    pub string_limit: usize,
}

/// A call with the row that tells how to read it.
pub struct Decoded<'a> {
    call: &'a Call,
    context: Context<'a>,
    row: Option<&'static Syscall>,
    args: &'static [Arg],
    returns: Return,
}

impl<'a> Decoded<'a> {
    /// Looks the row up.
    pub fn new(call: &'a Call, context: Context<'a>) -> Decoded<'a> {
        Decoded::with_row(call, lookup::row(call.abi, call.nr), context)
    }

    /// With a row that is known already; `None` for a call nobody knows.
    pub fn with_row(call: &'a Call, row: Option<&'static Syscall>, context: Context<'a>) -> Decoded<'a> {
        let (args, returns) = row.map_or((&[] as &[Arg], Return::Long), |row| shape(row, call));
        Decoded { call, context, row, args, returns }
    }

    /// The call's row.
    pub fn row(&self) -> Option<&'static Syscall> {
        self.row
    }

    /// The names and values of the arguments that are used, in order. A call without a row has its six registers, nameless.
    pub fn args(&self) -> Args<'_, 'a> {
        Args { decoded: self, index: 0, register: 0 }
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
            None if ret == 0 && matches!(self.returns, Return::Ready) => Returned::Timeout,
            None => Returned::Value(self.returned_value(ret)),
        }
    }

    fn returned_value(&self, ret: i64) -> Value<'a> {
        match self.returns {
            Return::Int | Return::Long | Return::Offset | Return::Ready | Return::Never => Value::Int(ret),
            Return::Uint => Value::Uint(u64::from(ret as u32)),
            Return::Size => Value::Uint(ret as u64),
            Return::Hex => Value::Hex(ret as u64),
            Return::Address => Value::Address(ret as u64),
            Return::Fd => Value::Fd { fd: ret as i32, file: self.call.file(FdPlace::Return) },
            Return::Pid => self.pid(ret as i32),
            Return::Uid | Return::Gid => id(ret as u32),
            Return::Mode => Value::Octal(ret as u64),
            Return::Table(table) => constants(table, ret as u64, self.call.abi),
        }
    }

    fn argument(&self, index: usize, register: usize, registers: &[u64; 6]) -> Value<'a> {
        let kind = self.args[index].kind;
        let abi = self.call.abi;
        let raw = registers.get(register).copied().unwrap_or_default();
        let word = if abi == Abi::I386 { u64::from(raw as u32) } else { raw };
        match kind {
            Kind::Int => Value::Int(i64::from(raw as i32)),
            Kind::Uint => Value::Uint(u64::from(raw as u32)),
            Kind::Long if abi == Abi::I386 => Value::Int(i64::from(raw as i32)),
            Kind::Long => Value::Int(raw as i64),
            Kind::Ulong | Kind::Size => Value::Uint(word),
            Kind::Hex => Value::Hex(word),
            Kind::Offset if abi == Abi::I386 => Value::Int(match self.offset_is_split() {
                true => (u64::from(raw as u32) | registers.get(register + 1).copied().unwrap_or_default() << 32) as i64,
                false => i64::from(raw as i32),
            }),
            Kind::Offset => Value::Int(raw as i64),
            Kind::Fd => Value::Fd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) },
            Kind::DirFd => Value::DirFd { fd: raw as i32, file: self.call.file(FdPlace::Arg(index as u8)) },
            Kind::Pid => self.pid(raw as i32),
            Kind::Uid | Kind::Gid => id(raw as u32),
            Kind::Signal => Value::Signal(raw as i32),
            Kind::Mode => Value::Octal(u64::from(raw as u16)),
            Kind::Dev => device(raw as u32),
            Kind::Address => Value::Address(word),
            Kind::Table(table) => constants(table, raw, abi),
            Kind::Path => self.text(index, word, usize::MAX, true),
            Kind::Str => self.text(index, word, self.context.string_limit, true),
            Kind::Bytes => self.text(index, word, self.context.string_limit, false),
            Kind::StrArray => self.strings(index, word),
            Kind::Struct(_) | Kind::StructArray(_) | Kind::Number { .. } | Kind::Pointer => Value::Unread(word),
            Kind::Custom(decode) => decode(registers, register, abi),
        }
    }

    fn pid(&self, pid: i32) -> Value<'a> {
        Value::Pid { pid, comm: if pid > 0 { (self.context.comm)(pid) } else { None } }
    }

    /// A string or bytes, if a piece of it was copied.
    fn text(&self, index: usize, address: u64, limit: usize, ends_with_nul: bool) -> Value<'a> {
        match self.call.piece(index) {
            Some(piece) if piece.state != PieceState::Fault => self.piece(piece, limit, ends_with_nul),
            _ => Value::Unread(address),
        }
    }

    fn piece(&self, piece: &Piece, limit: usize, ends_with_nul: bool) -> Value<'a> {
        let mut bytes = self.call.bytes(piece);
        if ends_with_nul && let Some(end) = memchr::memchr(0, bytes) {
            bytes = &bytes[..end];
        }
        let (cut, altered) = match piece.state {
            PieceState::Cut => (true, false),
            PieceState::Altered { cut } => (cut, true),
            PieceState::Ok | PieceState::Fault => (false, false),
        };
        let shown = &bytes[..bytes.len().min(limit)];
        Value::Str { bytes: Cow::Borrowed(shown), cut: cut || shown.len() < bytes.len(), altered }
    }

    /// An array of strings: its pieces, one a string, in order. Rare (execve), so it may allocate.
    fn strings(&self, index: usize, address: u64) -> Value<'a> {
        let items: Vec<_> = self
            .call
            .pieces
            .iter()
            .filter(|piece| usize::from(piece.arg) == index)
            .map(|piece| {
                if piece.state == PieceState::Fault {
                    Value::Unread(piece.address)
                } else {
                    self.piece(piece, self.context.string_limit, true)
                }
            })
            .collect();
        if items.is_empty() { Value::Unread(address) } else { Value::Array { items, more: false } }
    }

    /// Whether this call's 64-bit offsets take two registers in i386 (arch/x86/kernel/sys_ia32.c); lseek's and truncate's are 32 bits there.
    fn offset_is_split(&self) -> bool {
        const SPLIT: [&str; 6] = ["pread64", "pwrite64", "readahead", "fallocate", "sync_file_range", "fadvise64"];
        self.row.is_some_and(|row| SPLIT.contains(&row.name))
    }
}

/// Iterator over a call's arguments.
pub struct Args<'d, 'a> {
    decoded: &'d Decoded<'a>,
    index: usize,
    register: usize,
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
            let (index, register) = (self.index, self.register);
            let arg = decoded.args.get(index)?;
            self.index += 1;
            self.register += 1;
            let Some(registers) = registers else { return Some((arg.name, Value::Unknown)) };
            if decoded.call.abi == Abi::I386 && matches!(arg.kind, Kind::Offset) && decoded.offset_is_split() {
                self.register += 1;
            }
            if arg.used.is_none_or(|used| used(registers)) {
                return Some((arg.name, decoded.argument(index, register, registers)));
            }
        }
    }
}

/// The row's arguments and return, or those of the first variant that fits.
fn shape(row: &'static Syscall, call: &Call) -> (&'static [Arg], Return) {
    let variant = call.args.as_ref().and_then(|registers| {
        row.variants.iter().find(|variant| {
            let chosen = registers.get(usize::from(variant.arg)).copied().unwrap_or_default() & variant.mask;
            variant.values.contains(&chosen)
        })
    });
    variant.map_or((row.args, row.returns), |variant| (variant.args, variant.returns))
}

fn constants(table: &'static Table, raw: u64, abi: Abi) -> Value<'static> {
    let table = table.in_abi(abi);
    let value = if table.bits == 32 || abi == Abi::I386 { u64::from(raw as u32) } else { raw };
    match table.kind {
        TableKind::Flags => Value::Flags { table, bits: value },
        TableKind::Enum => Value::Symbol { table, value },
    }
}

/// A user or group; all ones means "leave as it is", or nobody.
fn id(id: u32) -> Value<'static> {
    if id == u32::MAX { Value::Int(-1) } else { Value::Uint(u64::from(id)) }
}

/// The 32 bits that the kernel takes from user space (`new_decode_dev`).
fn device(dev: u32) -> Value<'static> {
    Value::Dev { major: dev >> 8 & 0xfff, minor: dev & 0xff | dev >> 12 & 0xf_ff00 }
}

#[cfg(test)]
mod tests;
