//! Marks that a program writes to traces of itself. A mark says what the program is doing, with numbers and text, and
//! appears in order among the program's system calls.
//!
//! A [`Mark`] is a user event of Linux ([Documentation/trace/user_events.rst]). If no tracer records it, setting it
//! costs one load from memory. `rtrace -e user_events:frame ./program` prints it, and so does every other tool that
//! reads tracepoints.
//!
//! ```
//! use rtrace_mark::{Mark, Text};
//!
//! # fn draw() {}
//! let frame: Mark<(u32, Text)> = Mark::register("frame", ["number", "scene"]).unwrap_or_else(|error| {
//!     eprintln!("frames are not marked: {error}");
//!     Mark::silent()
//! });
//! for number in 0..100 {
//!     draw();
//!     frame.set((number, "menu"))?;
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The event exists from its first registration until the last program that registered it ends. A tracer that attaches
//! before that needs a persistent event, which `rtrace probe add 'u:frame u32 number; __rel_loc char[] scene'` creates.
//! A child created by fork keeps its parent's marks; after execve, a program must register its own.
//!
//! Registration requires Linux 6.4 or later, CONFIG_USER_EVENTS, and permission to write `user_events_data` of tracefs,
//! which only root has by default. The error of [`Mark::register`] says which of these is missing.
//!
//! Programs that know the fields of an event only at run time use [`event`] and [`record`], as rtrace does.
//!
//! [Documentation/trace/user_events.rst]: https://docs.kernel.org/trace/user_events.html
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod data;
mod error;
pub mod event;
mod fields;
mod mark;
pub mod record;
mod sys;

pub use error::Error;
pub use fields::{Field, Fields, Text};
pub use mark::Mark;
