//! The feature section with the formats of tracepoints.
//!
//! Its layout is that of the files of trace-cmd, version 0.6 (trace-cmd.dat(5)), up to the saved names of tasks. perf
//! reads formats from there, since the numbers of tracepoints mean nothing on another machine.

/// The first bytes of the section.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// What is wrong with a section that ends too early.
const CUT: &str = "ends before its end";

/// The texts of tracefs that describe records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracingData {
    /// The size of a page of memory in bytes.
    pub page_bytes: u32,
    /// `events/header_page`
    pub header_page: Vec<u8>,
    /// `events/header_event`
    pub header_event: Vec<u8>,
    /// The name of each subsystem with the format files of its events.
    pub systems: Vec<(String, Vec<Vec<u8>>)>,
}

impl TracingData {
    /// Returns the bytes of the section.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [MAGIC, b"0.6\0"].concat();
        // Little-endian, with numbers of 8 bytes for the type long.
        bytes.extend([0, 8]);
        bytes.extend(self.page_bytes.to_le_bytes());
        for (name, text) in [(&b"header_page\0"[..], &self.header_page), (b"header_event\0", &self.header_event)] {
            bytes.extend(name);
            sized(&mut bytes, text);
        }
        // The events of the function tracer, of which there are none.
        bytes.extend(0u32.to_le_bytes());
        bytes.extend((self.systems.len() as u32).to_le_bytes());
        for (system, formats) in &self.systems {
            bytes.extend(system.as_bytes());
            bytes.push(0);
            bytes.extend((formats.len() as u32).to_le_bytes());
            formats.iter().for_each(|format| sized(&mut bytes, format));
        }
        // The kernel's symbols and the formats of printk, of which there are none, have sizes of 4 bytes.
        bytes.extend([0; 8]);
        // The names of tasks.
        sized(&mut bytes, &[]);
        bytes
    }

    /// Reads the section up to the formats of the events. What follows them is about functions of the kernel.
    ///
    /// # Errors
    /// What is wrong with the section, as a clause that follows its name.
    pub fn parse(section: &[u8]) -> Result<TracingData, &'static str> {
        let mut rest = Bytes { rest: section };
        if rest.take(MAGIC.len())? != MAGIC {
            return Err("does not begin as those of perf do");
        }
        // The version, of which there are several with the same layout so far.
        rest.text()?;
        let [is_big_endian, _long_bytes] = rest.array()?;
        if is_big_endian != 0 {
            return Err("is of a machine of the other byte order");
        }
        let mut data = TracingData { page_bytes: rest.u32()?, ..TracingData::default() };
        for (name, text) in [(&b"header_page"[..], &mut data.header_page), (b"header_event", &mut data.header_event)] {
            if rest.text()? != name {
                return Err("lacks the headers of the kernel's records");
            }
            *text = rest.sized()?.to_vec();
        }
        for _ in 0..rest.u32()? {
            rest.sized()?;
        }
        for _ in 0..rest.u32()? {
            let system = String::from_utf8_lossy(rest.text()?).into_owned();
            let count = rest.u32()?;
            let formats: Result<Vec<Vec<u8>>, _> = (0..count).map(|_| rest.sized().map(<[u8]>::to_vec)).collect();
            data.systems.push((system, formats?));
        }
        Ok(data)
    }
}

/// The bytes that are not read yet. Its methods fail where the section ends.
struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        self.take(N)?.try_into().map_err(|_| CUT)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a size in 8 bytes, and that many bytes.
    fn sized(&mut self) -> Result<&'a [u8], &'static str> {
        let size = self.array().map(u64::from_le_bytes)?;
        self.take(usize::try_from(size).map_err(|_| CUT)?)
    }

    /// Reads a text up to its NUL.
    fn text(&mut self) -> Result<&'a [u8], &'static str> {
        let length = memchr::memchr(0, self.rest).ok_or(CUT)?;
        let text = self.take(length)?;
        self.take(1)?;
        Ok(text)
    }
}

fn sized(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data() -> TracingData {
        TracingData {
            page_bytes: 4096,
            header_page: b"page".to_vec(),
            header_event: b"event".to_vec(),
            systems: vec![("raw_syscalls".into(), vec![b"name: sys_enter".to_vec(), b"name: sys_exit".to_vec()]), ("sched".into(), vec![])],
        }
    }

    #[test]
    fn a_section_is_read_as_it_was_written() {
        let bytes = data().to_bytes();
        assert_eq!(TracingData::parse(&bytes), Ok(data()));
        let mut other = bytes.clone();
        other[14] = 1;
        assert_eq!(TracingData::parse(&other).unwrap_err(), "is of a machine of the other byte order");
        assert_eq!(TracingData::parse(b"tracing data of someone else").unwrap_err(), "does not begin as those of perf do");
    }

    #[test]
    fn a_section_that_is_cut_is_an_error_wherever_it_ends() {
        let bytes = data().to_bytes();
        // The kernel's symbols, the formats of printk and the names of tasks follow the events, and are not read.
        for end in 0..bytes.len() - 16 {
            assert!(TracingData::parse(&bytes[..end]).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(at in 0usize..200, with: Vec<u8>) {
            _ = TracingData::parse(&with);
            let mut bytes = data().to_bytes();
            bytes.iter_mut().skip(at).zip(&with).for_each(|(byte, with)| *byte = *with);
            _ = TracingData::parse(&bytes);
        }
    }
}
