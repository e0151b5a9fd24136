//! The language of `-e`, which selects syscalls and events.
//!
//! ```text
//! LIST      item{,item}; `trace=LIST` is the same
//! item      [!]selector[/term{,term}/]
//! selector  syscall or glob | %group | /regex/ | subsystem:event-glob | io_uring:request-glob | FILE.bpf.[co]
//! term      nr=N  max-stack=N  call-graph=fp|dwarf[:SIZE]  kernel-stack  name=X  no-inherit
//! ```
//! Parsing and printing know the names of groups only; [`resolve()`] looks up the other names in a table of syscalls.

mod groups;
mod libc_names;
mod parse;
mod print;
mod resolve;

pub use groups::{GROUPS, group};
pub use parse::{REQUESTS, call_graph, parse_event, parse_list};
pub use resolve::{Selection, resolve};
