//! An object of a call as a call: its registers, the files behind its descriptors, and the strings of its arguments.

use super::file::file;
use super::object::{self, Bytes, Entry, Exit, Task};
use super::value;
use crate::beauty::lookup::{self, requests};
use crate::beauty::resolve::Signature;
use crate::beauty::row::Syscall;
use crate::beauty::value::Text;
use crate::event::{Abi, Call, CallFile, CallId, EntryState, ExitState, FdPlace, Piece, PieceState, PieceTime, Time};
use serde_json::Value;

/// How deep descriptors are searched for in structs and arrays.
const DEPTH_MAX: u32 = 8;

/// Returns the ABI of this name.
pub fn abi(name: &str) -> Option<Abi> {
    Abi::ALL.into_iter().find(|abi| abi.name() == name)
}

/// Makes a call of its object. `native` is the ABI of the machine.
///
/// # Errors
/// The object does not say which call it is.
pub fn call(task: &Task, object: &object::Call, native: Abi) -> Result<Call, String> {
    let number = object.number.signed();
    let (abi, nr) = match (abi(&object.abi), u16::try_from(number)) {
        (Some(abi), _) => (abi, number),
        (None, Ok(opcode)) if object.abi == "io_uring" && opcode <= requests::COMPLETION => (native, requests::number(opcode)),
        _ => return Err(format!("no call has the ABI {:?} and the number {number}", object.abi)),
    };
    let at = Time(task.time.monotonic.unsigned());
    let start = object.start.map_or(at, |start| Time(start.monotonic.unsigned()));
    let mut call = Call {
        entry: match object.entry {
            Entry::Seen => EntryState::Seen,
            Entry::None => EntryState::Unseen,
            Entry::Lost => EntryState::Lost,
        },
        exit: match (object.exit, &object.returned) {
            (Exit::Returned, Some(returned)) => ExitState::Returned { at, ret: returned.raw.signed() },
            (Exit::Returned, None) => return Err("the call returned, and has no `return`".to_owned()),
            (Exit::Never, _) => ExitState::Never,
            (Exit::Pending, _) => ExitState::Pending,
            (Exit::Unseen, _) => ExitState::Unseen,
        },
        ..Call::new(CallId { tid: task.tid, start }, abi, nr)
    };
    let arguments = object.arguments.as_deref().unwrap_or_default();
    registers(&mut call, object, arguments);
    for (at, argument) in arguments.iter().enumerate() {
        let address = argument.registers.first().map_or(0, |register| register.0);
        for (when, of) in [(PieceTime::Entry, &argument.entry), (PieceTime::Exit, &argument.exit)] {
            let Some(of) = of else { continue };
            descriptors(&mut call, at as u8, of, 0);
            if let Some(object) = of.as_object()
                && let Some(bytes) = object.get("text").and_then(Bytes::of)
            {
                string(&mut call, (at as u8, when, address), value::text(bytes, object));
            }
        }
    }
    if let Some(file) = object.returned.as_ref().and_then(|returned| file(returned.value.as_ref()?.as_object()?)) {
        call.files.push(CallFile { place: FdPlace::Return, file });
    }
    Ok(call)
}

/// Puts the registers of the arguments to their places.
fn registers(call: &mut Call, object: &object::Call, arguments: &[object::Argument]) {
    let row = lookup::row(call.abi, call.nr);
    let is_request = requests::opcode(call.nr).is_some();
    let own = if is_request { requests::OWN_ARGUMENTS.len() } else { 0 };
    let (arguments, of_request) = arguments.split_at(arguments.len().saturating_sub(own));
    let signature = row.and_then(|row| signature(row, arguments));
    let mut args = [0; 6];
    for (at, argument) in arguments.iter().enumerate() {
        let first = signature.and_then(|signature| signature.word(at, call.abi)).map_or(at, |word| usize::from(word.register));
        for (place, register) in args.iter_mut().skip(first).zip(&argument.registers) {
            *place = register.0;
        }
    }
    let is_known = object.arguments.is_some() && arguments.iter().all(|argument| !argument.registers.is_empty());
    call.args = (is_known && !(is_request && arguments.is_empty())).then_some(args);
    call.request = is_request.then(|| {
        let of = |at: usize| of_request.get(at).and_then(|argument| argument.registers.first()).map_or(0, |register| register.0);
        Box::new(requests::registers(of(0), of(1), of(2)))
    });
}

/// Returns the signature with arguments of these names: that of the row, or of one of its variants.
fn signature(row: &Syscall, arguments: &[object::Argument]) -> Option<Signature> {
    let has_names = |signature: &Signature| {
        signature.args.len() == arguments.len() && signature.args.iter().zip(arguments).all(|(arg, argument)| arg.name == argument.name)
    };
    row.signatures().find(has_names)
}

/// Adds the files of the descriptors in a value.
fn descriptors(call: &mut Call, argument: u8, value: &Value, depth: u32) {
    match value {
        Value::Array(items) if depth < DEPTH_MAX => items.iter().for_each(|item| descriptors(call, argument, item, depth + 1)),
        Value::Object(object) if object.contains_key("fd") => {
            let fd = object.get("fd").and_then(Value::as_i64).and_then(|fd| i32::try_from(fd).ok());
            if let (Some(fd), Some(file)) = (fd, file(object)) {
                let place = if depth == 0 { FdPlace::Arg(argument) } else { FdPlace::Inside { arg: argument, fd } };
                call.files.push(CallFile { place, file });
            }
        }
        Value::Object(object) if depth < DEPTH_MAX => object.values().for_each(|value| descriptors(call, argument, value, depth + 1)),
        _ => {}
    }
}

/// Adds a string that an argument points to.
fn string(call: &mut Call, (arg, when, address): (u8, PieceTime, u64), text: Text) {
    let (start, len) = (call.payload.len() as u32, text.bytes.len());
    call.payload.extend_from_slice(&text.bytes);
    let state = match (text.altered, text.cut) {
        (true, cut) => PieceState::Altered { cut },
        (false, true) => PieceState::Cut,
        (false, false) => PieceState::Ok,
    };
    let wanted = text.wanted.unwrap_or(len as u64 + u64::from(text.cut));
    call.pieces.push(Piece { arg, when, address, wanted, start, len: len as u32, state });
}
