//! DWARF debug information, as far as probes need it: the variables in scope at an address, their locations, and the
//! addresses of a source line.
//!
//! Location expressions are translated into fetch arguments, not executed. Fetch arguments can express only additions
//! and dereferences, so other operations are not needed.

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
pub use scope::AddressScope;
