//! From a variable and a path into it to a fetch argument, whoever describes the types: DWARF or the kernel's BTF.

mod argument;
mod field_name;
mod place;
mod types;
mod walk;

pub use argument::{Need, Scope, name_in, needs_return_type, resolve_all};
pub use place::{Base, Place};
pub use types::{Member, Shape, Types};
