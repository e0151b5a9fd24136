//! Turns a variable and a path into it (`req->path[1]`) into a fetch argument, whether DWARF or the kernel's BTF
//! describes the types.

mod argument;
mod field_name;
mod location;
mod types;
mod walk;

pub use argument::{Scope, TypeNeed, name_in, needs_return_type, resolve_all};
pub use location::{LocationBase, ValueLocation};
pub use types::{Member, Shape, Types};
