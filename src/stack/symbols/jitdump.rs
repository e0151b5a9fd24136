//! `jit-PID.dump`: the functions of a just-in-time compiler with their code, to which the compiler appends. Only their
//! names are read.
//!
//! Format: linux/tools/perf/Documentation/jitdump-specification.txt. A later record replaces earlier ones of the same
//! addresses.

use super::order::ByteOrder;
use super::perf_map::JitFunctions;
use super::read_at::{self, ReadAt};
use std::io;
use thiserror::Error;

/// The reason why the rest of a dump is not read.
#[derive(Debug, Error)]
pub enum DumpError {
    #[error("not a jitdump file")]
    NotJitdump,
    #[error("a record at byte {0} is damaged")]
    Damaged(u64),
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// A dump that is read while it grows.
#[derive(Debug, Default)]
pub struct Jitdump {
    functions: JitFunctions,
    order: ByteOrder,
    /// The offset of the next record, or 0 before the header was read.
    next: u64,
}

/// The number of bytes of a function's record that are read, which bounds the name. (The fields before it take 56
/// bytes.)
const READ_MAX: u64 = 4096;
/// The size of a record's header.
const PREFIX: u64 = 16;
/// The greatest number of records that one call reads, so that it does not delay the worker for long.
const RECORDS_MAX: usize = 1 << 16;

impl Jitdump {
    /// Reads the complete records that were appended since the previous call, 65,536 at most.
    ///
    /// # Errors
    /// Fails if this is not a jitdump file, or at a damaged record. The functions before that record are kept.
    pub fn read_on(&mut self, file: &dyn ReadAt) -> Result<(), DumpError> {
        if self.next == 0 {
            self.read_header(file)?;
        }
        for _ in 0..RECORDS_MAX {
            if self.next.saturating_add(PREFIX) > file.size() {
                break;
            }
            let at = self.next;
            let bytes = read_at::range(file, at, (file.size() - at).min(READ_MAX), READ_MAX)?;
            let (Some(kind), Some(size)) = (self.order.u32(&bytes, 0), self.order.u32(&bytes, 4)) else {
                return Err(DumpError::Damaged(at));
            };
            let size = u64::from(size);
            if size < PREFIX {
                return Err(DumpError::Damaged(at));
            }
            if size > file.size() - at {
                return Ok(());
            }
            let record = &bytes[..bytes.len().min(size as usize)];
            self.record(kind, record).ok_or(DumpError::Damaged(at))?;
            self.next += size;
        }
        Ok(())
    }

    /// Returns the functions that were read.
    pub fn functions(&self) -> &JitFunctions {
        &self.functions
    }

    fn read_header(&mut self, file: &dyn ReadAt) -> Result<(), DumpError> {
        const HEADER: u64 = 40;
        let header = read_at::range(file, 0, HEADER, HEADER)?;
        self.order = match &header[..4] {
            b"DTiJ" => ByteOrder::Little,
            b"JiTD" => ByteOrder::Big,
            _ => return Err(DumpError::NotJitdump),
        };
        match self.order.u32(&header, 8).map(u64::from) {
            Some(size) if size >= HEADER => self.next = size,
            _ => return Err(DumpError::Damaged(0)),
        }
        Ok(())
    }

    /// Applies a record. Returns `None` if it is damaged.
    fn record(&mut self, kind: u32, record: &[u8]) -> Option<()> {
        const CODE_LOAD: u32 = 0;
        const CODE_MOVE: u32 = 1;
        match kind {
            CODE_LOAD => {
                let (start, size) = (self.order.u64(record, 32)?, self.order.u64(record, 40)?);
                let rest = record.get(56..)?;
                let name = rest.get(..memchr::memchr(0, rest).unwrap_or(rest.len()))?;
                self.functions.add(start, size, name);
            }
            CODE_MOVE => self.functions.relocate(self.order.u64(record, 32)?, self.order.u64(record, 40)?, self.order.u64(record, 48)?),
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Vec<u8> {
        let mut header = 0x4a69_5444u32.to_le_bytes().to_vec();
        for field in [1u32, 40, 62, 0, 1234] {
            header.extend(field.to_le_bytes());
        }
        header.resize(40, 0);
        header
    }

    fn record(kind: u32, fields: &[u64], rest: &[u8]) -> Vec<u8> {
        let mut record = kind.to_le_bytes().to_vec();
        record.extend((16 + 8 * fields.len() as u32 + rest.len() as u32).to_le_bytes());
        record.extend(1u64.to_le_bytes());
        fields.iter().for_each(|field| record.extend(field.to_le_bytes()));
        record.extend(rest);
        record
    }

    /// Returns a JIT_CODE_LOAD record. Its first word is pid and tid.
    fn load(start: u64, name: &str, code: &[u8]) -> Vec<u8> {
        record(0, &[7, start, start, code.len() as u64, 0], &[name.as_bytes(), b"\0", code].concat())
    }

    fn whole() -> Vec<u8> {
        [header(), load(0x1000, "first", &[0x90; 5000]), record(2, &[1, 2], b""), load(0x5000, "second", &[0x90; 16])].concat()
    }

    fn name_at(dump: &Jitdump, address: u64) -> Option<&str> {
        dump.functions().at(address).map(|found| str::from_utf8(found.name).unwrap())
    }

    #[test]
    fn loaded_and_moved_functions_have_names() {
        let mut bytes = whole();
        let mut dump = Jitdump::default();
        dump.read_on(&bytes).unwrap();
        assert_eq!(
            (name_at(&dump, 0x1000 + 4999), name_at(&dump, 0x1000 + 5000), name_at(&dump, 0x500f)),
            (Some("first"), None, Some("second"))
        );
        bytes.extend(record(1, &[7, 0, 0x5000, 0x6000, 16, 1], b""));
        dump.read_on(&bytes).unwrap();
        assert_eq!((name_at(&dump, 0x5000), name_at(&dump, 0x6000)), (None, Some("second")));
    }

    #[test]
    fn a_dump_is_read_while_it_grows_byte_by_byte() {
        let bytes = whole();
        let mut dump = Jitdump::default();
        for end in 40..=bytes.len() {
            dump.read_on(&&bytes[..end]).unwrap();
        }
        assert_eq!((name_at(&dump, 0x1000), name_at(&dump, 0x5000)), (Some("first"), Some("second")));
        for end in 0..40 {
            assert!(Jitdump::default().read_on(&&bytes[..end]).is_err());
        }
        let endless = [header(), record(0, &[], b"")].concat();
        assert!(matches!(Jitdump::default().read_on(&endless), Err(DumpError::Damaged(40))));
        assert!(matches!(Jitdump::default().read_on(&[0u8; 64]), Err(DumpError::NotJitdump)));
    }

    proptest! {
        #[test]
        fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Jitdump::default().read_on(&[header(), bytes.clone()].concat());
            let _ = Jitdump::default().read_on(&bytes);
        }
    }
}
