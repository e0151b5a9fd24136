//! `rtrace diff`: what a second run did otherwise.
//!
//! A recording or a trace becomes an outline ([`Outliner`]), two outlines become differences ([`compare()`]), and these
//! are printed.

mod align;
mod calls;
mod compare;
mod described;
mod difference;
mod file_state;
mod fold;
mod json;
mod noise;
mod outline;
mod outliner;
mod random_names;
mod renamed;
mod slower;
mod streams;
mod text;
mod words;

pub use compare::compare;
pub use json::objects;
pub use outline::Outline;
pub use outliner::Outliner;
pub use text::text;
pub use words::Words;
