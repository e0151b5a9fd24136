//! The language of `--filter`: conditions on syscalls and events.
//!
//! ```text
//! expr        and {"||" and}
//! and         unary {"&&" unary}
//! unary       "!" unary | "(" expr ")" | comparison
//! comparison  name ("==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~" | "!~") value
//! name        word{step}        an argument, ret, errno, duration, comm, pid, tid, cpu, or a part of an argument
//! step        "."word | "["(number | "*")"]"      a member (statbuf.st_size, fd.path), an element (argv[1]), or any
//! value       part{"|"part}
//! part        number[unit] | "string" | 'string' | a symbol of the argument's table
//! ```
//! A condition is processed in these steps:
//!
//! * [`parse()`] returns an [`Expr`].
//! * [`Expr::bind`] resolves the names and symbols in a [`Scope`] (the arguments of a syscall, the fields of a
//!   tracepoint). It returns a [`Bound`] condition, which is cheap to evaluate, and records in [`Bindings`] whether
//!   each comparison could be resolved in at least one scope.
//! * [`split_for_kernel`] separates the part that the kernel can evaluate.

mod ast;
mod bindings;
mod eval;
mod kernel;
mod parse;
mod print;

pub use ast::{Comparison, Expr, Name, Op, Value};
pub use bindings::Bindings;
pub use eval::{Bound, Mask, NameId, Operand, Reference, Scope, Subject, Unbound, ValueType, Verdict};
pub use kernel::{KernelField, KernelScope, split_for_kernel, to_kernel};
pub use parse::parse;
