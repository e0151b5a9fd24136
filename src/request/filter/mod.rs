//! The language of `--filter`: conditions on calls and events.
//!
//! ```text
//! expr        and {"||" and}
//! and         unary {"&&" unary}
//! unary       "!" unary | "(" expr ")" | comparison
//! comparison  name ("==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~" | "!~") value
//! name        word{"."word}                      an argument, a member (addr.port), ret, errno, duration, fd.path, comm, pid, tid, cpu
//! value       part{"|"part}                      part: number[unit], "string", 'string' or a symbol of the argument's table
//! ```
//! The way of a condition: [`parse()`] makes an [`Expr`]; [`Expr::bind`] holds its names and symbols against a [`Scope`] (a syscall's arguments, a
//! tracepoint's fields) and gives a [`Bound`] that is cheap to evaluate, and a [`Fit`] collects whether all of it
//! means something in any scope; [`split_for_kernel`] says which part of it the kernel can decide.

mod ast;
mod eval;
mod fit;
mod kernel;
mod parse;
mod print;

pub use ast::{Comparison, Expr, Name, Op, Value};
pub use eval::{Bound, Kind, Mask, NameId, Operand, Scope, Subject, Unbound, Verdict};
pub use fit::Fit;
pub use kernel::{KernelField, KernelScope, split_for_kernel, to_kernel};
pub use parse::parse;
