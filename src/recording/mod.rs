//! Recordings: the input of the engine in a file, for a later time and another machine.
//!
//! The file is a perf.data file. It has the records of the rings, each with its time, task and CPU
//! ([`crate::source::rewrite`]), and the facts that rtrace learnt outside the rings ([`fact`]). A recorder decodes
//! nothing: it writes what passes the tap.

mod any_reader;
mod attributes;
mod compression;
mod fact;
mod features;
mod files;
mod for_perf;
mod index;
mod jit;
mod layout;
mod of_perf;
mod packed_records;
mod reader;
mod record_stream;
mod round_builder;
mod sections;
mod tracing_data;
mod writer;

pub use any_reader::AnyReader;
pub use attributes::{EventAttributes, attributes};
pub use fact::Begin;
pub use features::about;
pub use files::{Collector, RecordedFiles, SeenFile};
pub use jit::{JitFile, JitReader};
pub use of_perf::{BuildIdBytes, KernelPlace, Programs, build_id, padded};
pub use reader::{Damage, KernelSymbols, NoIndex, Reader};
pub use record_stream::Regular;
pub use sections::About;
pub use tracing_data::TracingData;
pub use writer::{Totals, Writer};
