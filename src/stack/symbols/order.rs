//! The byte order of a file.

use gimli::RunTimeEndian;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte is first.
    #[default]
    Little,
    /// The most significant byte is first.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// Returns the number in two bytes from `at` on, or `None` if they are beyond the end.
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// Returns the number in four bytes from `at` on, or `None` if they are beyond the end.
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Returns the number in eight bytes from `at` on, or `None` if they are beyond the end.
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }
}

impl From<ByteOrder> for RunTimeEndian {
    fn from(order: ByteOrder) -> RunTimeEndian {
        match order {
            ByteOrder::Little => RunTimeEndian::Little,
            ByteOrder::Big => RunTimeEndian::Big,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_either_byte_order() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let (little, big) = (ByteOrder::Little, ByteOrder::Big);
        assert_eq!((little.u16(&bytes, 1), big.u16(&bytes, 1)), (Some(0x0302), Some(0x0203)));
        assert_eq!((little.u32(&bytes, 0), big.u32(&bytes, 0)), (Some(0x0403_0201), Some(0x0102_0304)));
        assert_eq!((little.u64(&bytes, 1), big.u64(&bytes, 1)), (Some(0x0908_0706_0504_0302), Some(0x0203_0405_0607_0809)));
        assert_eq!((little.u64(&bytes, 2), big.u32(&bytes, 6), big.u16(&bytes, usize::MAX)), (None, None, None));
        assert_eq!(ByteOrder::NATIVE.u32(&7u32.to_ne_bytes(), 0), Some(7));
    }
}
