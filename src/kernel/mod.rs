//! What this kernel offers: tracefs and its events, the machine, what the caller may do, and who runs.

pub mod btf;
pub mod carriers;
pub mod cgroups;
pub mod constant;
pub mod containers;
pub mod ctype;
pub mod descriptors;
pub mod elf;
pub mod elsewhere;
pub mod features;
pub mod fetched;
pub mod field;
pub mod format;
pub mod lockdown;
pub mod machine;
pub mod mounts;
pub mod objects;
pub mod print_fmt;
pub mod privileges;
pub mod probe_device;
pub mod procfs;
pub mod refused;
pub mod syscall_event;
pub mod tracefs;

pub use format::{FieldPlace, Format, FormatError, FormatField};
pub use tracefs::{EventError, EventName, Tracefs, TracefsError};
