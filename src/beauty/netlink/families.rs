//! The numbers of generic families, which the kernel assigns when a family is registered (net/netlink/genetlink.c).
//!
//! A program asks for the number of a family before it sends messages to it (`CTRL_CMD_GETFAMILY`), and the kernel
//! tells it, or tells everybody who listens (`CTRL_CMD_NEWFAMILY`). rtrace reads these answers as they pass; it asks
//! for nothing itself. A family has the same number in all network namespaces. It may have another number when its
//! module was removed and loaded again: the newest answer counts.

use super::{CONTROLLER, GENERIC, HEAD};
use crate::beauty::memory::Memory;
use crate::beauty::sized_records::{ATTRIBUTE, NETLINK_MESSAGE};
use crate::event::{Abi, Call, FdPlace, File, PieceTime, SocketAddresses};
use std::collections::BTreeMap;

/// `GENL_HDRLEN`, and the header of an attribute
const COMMAND_HEAD: usize = 4;
const ATTRIBUTE_HEAD: usize = 4;
/// `CTRL_ATTR_FAMILY_ID` and `CTRL_ATTR_FAMILY_NAME` (linux/genetlink.h)
const ID: u64 = 1;
const NAME: u64 = 2;
/// `GENL_NAMSIZ`, with the NUL at the end
const NAME_BYTES_MAX: usize = 16;
/// The largest number of families that are kept; a kernel with all modules has about 50.
const FAMILIES_MAX: usize = 1024;

/// The names of the families by their numbers, as far as the kernel told them to traced tasks.
#[derive(Debug, Default)]
pub struct Families {
    names: BTreeMap<u16, String>,
}

impl Families {
    /// Returns the name of the family with a number.
    pub fn name(&self, number: u16) -> Option<&str> {
        self.names.get(&number).map(String::as_str)
    }

    /// Reads the answers of the kernel that a call received.
    #[inline]
    pub fn learn(&mut self, call: &Call) {
        if !call.files.is_empty() && is_generic(call) {
            self.learn_from_pieces(call);
        }
    }

    fn learn_from_pieces(&mut self, call: &Call) {
        for piece in call.pieces.iter().filter(|piece| piece.when == PieceTime::Exit) {
            let bytes = call.bytes(piece);
            let memory = Memory { bytes, address: piece.address, wanted: bytes.len() as u64, state: piece.state, count: None };
            let answers =
                NETLINK_MESSAGE.records(memory, call.abi).filter(|message| message.number(4, 2, false) == Some(CONTROLLER.into()));
            for attributes in answers.filter_map(|message| message.part(HEAD + COMMAND_HEAD, usize::MAX)) {
                self.learn_from_attributes(attributes, call.abi);
            }
        }
    }

    fn learn_from_attributes(&mut self, attributes: Memory<'_>, abi: Abi) {
        let content = |number: u64| {
            let mut all = ATTRIBUTE.records(attributes, abi);
            all.find(|attribute| attribute.number(2, 2, false) == Some(number))?.bytes.get(ATTRIBUTE_HEAD..)
        };
        let number = content(ID).and_then(|bytes| bytes.try_into().ok()).map(u16::from_le_bytes);
        let name = content(NAME).and_then(|bytes| bytes.split(|byte| *byte == 0).next()).and_then(|bytes| str::from_utf8(bytes).ok());
        if let (Some(number), Some(name)) = (number, name.filter(|name| !name.is_empty() && name.len() < NAME_BYTES_MAX))
            && (self.names.len() < FAMILIES_MAX || self.names.contains_key(&number))
        {
            self.names.insert(number, name.to_owned());
        }
    }
}

/// Returns whether the first argument of a call is a socket of generic netlink.
fn is_generic(call: &Call) -> bool {
    let Some(File::Socket(socket)) = call.file(FdPlace::Arg(0)) else { return false };
    matches!(socket.ends, SocketAddresses::Netlink { protocol: GENERIC, .. })
}
