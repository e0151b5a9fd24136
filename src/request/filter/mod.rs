//! The language of `--filter`: conditions on syscalls and events.
//!
//! ```text
//! expr        and {"||" and}
//! and         unary {"&&" unary}
//! unary       "!" unary | "(" expr ")" | comparison
//! comparison  name ("==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~" | "!~") value
//! name        word{step}        an argument, syscall, ret, errno, duration, comm, pid, tid, cpu, or a part of one
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
//! * [`to_kernel`] converts a condition to the kernel's filter language, if the kernel can evaluate all of it.

mod ast;
mod bindings;
mod eval;
mod kernel;
mod parse;
mod print;

pub use ast::{Expr, Name, Op};
pub use bindings::Bindings;
pub use eval::{Bound, Mask, NameId, Operand, Reference, Scope, Subject, ValueType, Verdict};
pub use kernel::{KernelField, KernelScope, to_kernel};
pub use parse::parse;
