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

pub use chunk::{Chunk, Form, Round};
pub use input::Input;
pub use merge::Merge;
pub use record::{Body, Record, Sample};
