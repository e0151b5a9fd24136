//! Record sources, and the merge of their records into one stream in time order.

pub mod chunk;
pub mod dump;
pub mod files;
pub mod frame;
pub mod input;
pub mod instance;
pub mod merge;
pub mod proc_reader;
pub mod queue;
pub mod record;
pub mod record_writer;
pub mod restore;
pub mod rewrite;

pub use chunk::{Chunk, Form, Round};
pub use input::Input;
pub use merge::Merge;
pub use record::{Body, Record, Sample};

/// Returns the bytes of two consecutive numbers of 32 bits, as records have a process and a thread.
fn bytes_of_pair(low: i32, high: i32) -> [u8; 8] {
    (u64::from(low as u32) | u64::from(high as u32) << 32).to_le_bytes()
}
