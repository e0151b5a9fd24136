//! The traced machine's state as the stream tells it: tasks and their names, descriptors, memory maps.
//!
//! Pure: fed with records in time order, asked at a record's time. It looks nothing up by itself; what it wants to know of the live machine it asks for
//! through [`Look`], and the answer comes back as a [`crate::event::Note`] in the stream.

pub mod children;
pub mod ends;
pub mod fds;
pub mod look;
pub mod maps;
pub mod numbers;
pub mod signals;
pub mod stays;
pub mod tasks;

pub use look::Look;
pub use tasks::Tasks;
