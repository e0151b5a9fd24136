//! The feature section with the formats of tracepoints.
//!
//! Its layout is that of the files of trace-cmd, version 0.6 (trace-cmd.dat(5)), up to the saved names of tasks. perf
//! reads formats from there, since the numbers of tracepoints mean nothing on another machine.

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
        let mut bytes = b"\x17\x08\x44tracing0.6\0".to_vec();
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
}

fn sized(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text);
}
