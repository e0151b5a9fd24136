//! Debug information, as far as probes need it: which variables there are at an address, where their values are, and which addresses a source line has.
//!
//! It is read, not executed: a location that takes more than adding and following pointers has no words in the kernel's grammar anyway.

mod debug;
mod die;
mod frame;
mod function;
mod line;
mod location;
mod scope;
mod shape;

pub use debug::Debug;
pub use frame::{Frame, Frames};
pub use scope::Here;
