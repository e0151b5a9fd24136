//! Marks that a program sets in traces of itself: what it is doing, with numbers and text, in order among its system
//! calls.
//!
//! A [`Mark`] is a user event of Linux ([Documentation/trace/user_events.rst]). While nobody traces it, setting it costs
//! one load from memory. `rtrace -e user_events:frame ./program` prints it, and so does every other tool that reads
//! tracepoints.
//!
//! ```
//! use rtrace_mark::{Mark, Text};
//!
//! # fn draw() {}
//! let frame: Mark<(u32, Text)> = Mark::register("frame", ["number", "scene"]).unwrap_or_else(|why| {
//!     eprintln!("frames are not marked: {why}");
//!     Mark::silent()
//! });
//! for number in 0..100 {
//!     draw();
//!     frame.set((number, "menu"))?;
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The event exists from when the first program registers it until the last of them ends. A tracer that is to ask for it
//! before that needs one that stays, which `rtrace probe add 'u:frame u32 number; __rel_loc char[] scene'` makes. A child
//! made by fork keeps its parent's marks; a program that is executed registers its own.
//!
//! Registering takes Linux 6.4 or later, CONFIG_USER_EVENTS and permission to write `user_events_data` of tracefs, which
//! only root has unless somebody changes that. Where one of these is missing, [`Mark::register`] says which.
//!
//! Programs that learn only at run time which fields an event has use [`event`] and [`record`], as rtrace does.
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
