//! Netlink messages with their attributes, and control messages, as sendto and sendmsg pass them.
//!
//! The first byte is the protocol of the netlink socket; [`CONTROL`] stands for control messages. The second one has
//! style, ABI and direction, and whether the messages are in one buffer or in two. The third one is the number of bytes
//! that were not copied. All other bytes are the messages.

use super::render;
use rtrace::events::{Abi, Call, CallFile, FdPlace, File, PieceTime, Socket, SocketAddresses};
use rtrace::tables::{SYSCALLS, syscall_by_name};
use std::sync::Arc;

/// In the first byte: the bytes are control messages.
const CONTROL: u8 = 0xff;
/// The bits of the second byte, above the number of the style.
const NARROW: u8 = 0x10;
const RECEIVED: u8 = 0x20;
const TWO_BUFFERS: u8 = 0x40;
/// The addresses of the struct msghdr and of the messages.
const HEADER: u64 = 0x1000;
const ADDRESS: u64 = 0x5000;

pub fn run(bytes: &[u8]) {
    let Some(([of, how, missing], bytes)) = bytes.split_first_chunk() else { return };
    let abi = if how & NARROW != 0 { Abi::I386 } else { Abi::X86_64 };
    let wanted = bytes.len() as u64 + u64::from(*missing);
    let is_received = how & RECEIVED != 0;
    let mut call = match *of {
        CONTROL => control(abi, bytes, wanted, is_received),
        protocol => {
            let two = how & TWO_BUFFERS != 0;
            let mut call = if two { two_buffers(abi, bytes, wanted, is_received) } else { one_buffer(abi, bytes, wanted, is_received) };
            let mut socket = Socket::default();
            (socket.family, socket.ends) = (16, SocketAddresses::Netlink { protocol: protocol.into(), port: Default::default() });
            call.files.push(CallFile { place: FdPlace::Arg(0), file: File::Socket(Arc::new(socket)) });
            call
        }
    };
    let last = call.pieces.len() - 1;
    call.pieces[last].wanted += u64::from(*missing);
    render::print(&call, *how);
    // Short messages are cut at every length, too.
    if bytes.len() <= 64 {
        render::print_every_length(&mut call, last, *missing == 0, *how);
    }
}

fn number(name: &str, abi: Abi) -> i64 {
    let row = &SYSCALLS[usize::from(syscall_by_name(name).expect("the call has a row"))];
    i64::from(row.numbers[abi as usize].expect("the ABI has the call"))
}

fn time(is_received: bool) -> PieceTime {
    if is_received { PieceTime::Exit } else { PieceTime::Entry }
}

/// Returns words as the ABI has them in memory.
fn words(abi: Abi, words: &[u64]) -> Vec<u8> {
    let size = if abi == Abi::I386 { 4 } else { 8 };
    words.iter().flat_map(|word| word.to_le_bytes().into_iter().take(size)).collect()
}

/// Returns a sendto or recvfrom.
fn one_buffer(abi: Abi, bytes: &[u8], wanted: u64, is_received: bool) -> Call {
    let name = if is_received { "recvfrom" } else { "sendto" };
    let mut call = render::call(abi, number(name, abi), [3, ADDRESS, wanted, 0, 0, 0], wanted as i64);
    render::add_memory(&mut call, 1, time(is_received), ADDRESS, bytes);
    call
}

/// Returns a sendmsg or recvmsg with an array of two buffers. The first byte says where the second buffer begins.
fn two_buffers(abi: Abi, bytes: &[u8], wanted: u64, is_received: bool) -> Call {
    const BUFFERS: u64 = 0x2000;
    const SECOND: u64 = 0x7000;
    let name = if is_received { "recvmsg" } else { "sendmsg" };
    let mut call = render::call(abi, number(name, abi), [3, HEADER, 0, 0, 0, 0], wanted as i64);
    let (first, second) = bytes.split_at(bytes.first().map_or(0, |at| usize::from(*at) % bytes.len()));
    render::add_memory(&mut call, 1, time(is_received), HEADER, &words(abi, &[0, 0, BUFFERS, 2, 0, 0, 0]));
    let buffers = words(abi, &[ADDRESS, first.len() as u64, SECOND, wanted - first.len() as u64]);
    render::add_memory(&mut call, 1, PieceTime::Entry, BUFFERS, &buffers);
    render::add_memory(&mut call, 1, time(is_received), ADDRESS, first);
    render::add_memory(&mut call, 1, time(is_received), SECOND, second);
    call
}

/// Returns a sendmsg or recvmsg with control messages and without data.
fn control(abi: Abi, bytes: &[u8], wanted: u64, is_received: bool) -> Call {
    let name = if is_received { "recvmsg" } else { "sendmsg" };
    let mut call = render::call(abi, number(name, abi), [3, HEADER, 0, 0, 0, 0], 0);
    // struct msghdr: the address of a name and its length, the array of buffers and their number, the control messages
    // and their length, flags.
    render::add_memory(&mut call, 1, time(is_received), HEADER, &words(abi, &[0, 0, 0, 0, ADDRESS, wanted, 0]));
    render::add_memory(&mut call, 1, time(is_received), ADDRESS, bytes);
    call
}
