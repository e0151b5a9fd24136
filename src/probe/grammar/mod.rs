//! The language of dynamic events: the kernel's grammar
//! (Documentation/trace/{kprobetrace,uprobetracer,fprobetrace,eprobetrace,user_events}.rst), extended by symbols,
//! source lines and names of variables where the kernel expects offsets and registers.
//!
//! ```text
//! p[:[GROUP/]EVENT] [MODULE:]SYMBOL[+OFFSET]|ADDRESS [ARG]...    kernel function; also FUNCTION:LINE, FILE:LINE
//! r[MAXACTIVE][:[GROUP/]EVENT] [MODULE:]SYMBOL [ARG]...          its return; also p ... SYMBOL%return
//! p[:[GROUP/]EVENT] PATH:OFFSET[(REFERENCE_COUNTER)] [ARG]...    program; also PATH:SYMBOL[+OFFSET], PATH:FILE:LINE
//! r[:[GROUP/]EVENT] PATH:OFFSET [ARG]...                         its return; also p ... PATH:OFFSET%return
//! f[MAXACTIVE][:[GROUP/]EVENT] SYMBOL[%return] [ARG]...          kernel function, by ftrace
//! t[:[GROUP/]EVENT] TRACEPOINT [ARG]...                          tracepoint without an event
//! e[:[GROUP/]EVENT] SUBSYSTEM.EVENT [ARG]... [if FILTER]         another event; also SUBSYSTEM/EVENT
//! s:[synthetic/]EVENT TYPE FIELD[; TYPE FIELD]...                synthetic event
//! u:EVENT[:FLAG] TYPE FIELD[; TYPE FIELD]...                     user event
//! usdt[:[GROUP/]EVENT] PATH:PROVIDER:NAME [ARG]...               USDT tracepoint
//! -:[GROUP/][EVENT]                                              removes an event, or all events of a group
//! ```
//!
//! [`parse()`] parses a line and [`parse_file`] a text of lines with comments. `Display` prints the line; the kernel
//! accepts it if it has no extension of rtrace (source lines, symbols and variables of programs, `usdt`, quotes).
//! Nothing is looked up: whether a function or field exists, and how long an argument may be, is checked by the code
//! that creates the probe. Where the language is ambiguous, these rules apply:
//!
//! * If the place of `p` or `r` has a slash, or begins with a quote, it is in a file; anything else is in the kernel.
//!   So `open.c:72` is a line of the kernel, `./open.c:72` is byte 72 of a file.
//! * `X:NUMBER` is line NUMBER of the function or file X; `X:NAME` is the symbol NAME of the module X. A place that
//!   begins with a digit is an address or an offset.
//! * A path ends at its first colon; if `0x` follows the last colon, it ends at the last one, as in the kernel.
//!   `PATH:NUMBER` is an offset, `PATH:X:NUMBER` a line. Paths with other colons, and names with blanks, are written in
//!   double quotes, in which `\"`, `\\` and `\xNN` are escapes.
//! * In a program's place, `+N` or `-N` at the end is an offset, and `(N)` at the end is the address of a reference
//!   counter; other signs and parentheses belong to the name. A double colon belongs to the name.
//! * Numbers are decimal, hexadecimal with 0x, or octal with a leading 0. Numbers behind `$arg` and `$stack`, and of
//!   lines, are always decimal.
//! * `p PLACE%return` is the same as `r PLACE`, and is printed as such. A return probe is on a whole function. `r0` is
//!   the same as `r`.
//! * The oldest spellings of values are accepted for `p` and `r` on symbols and addresses of the kernel, the only
//!   probes that existed when they were introduced: `aN` is `$argN+1`, `sN` is `$stackN`, `sa` is `$stack`, `rv` is
//!   `$retval`, and `ra` is the instruction pointer of a return probe. So an argument called `sa` cannot be fetched by
//!   its name there, only by `$argN`. In other probes, and with a member behind it (`sa->family`), it is a variable.
//! * In an event probe, every `$NAME` except `$comm` is a field, even `$stack` and `$arg1`; there are no registers or
//!   variables.
//! * The group and name of an event may be separated by a dot, and the subsystem and event of an event probe by a
//!   slash.
//! * `if` ends the arguments of an event probe; the rest of the line is the condition, unparsed.
//! * `NAME TYPE FIELD; ...`, as in tracefs's `synthetic_events`, is a synthetic event if the second word is a type that
//!   synthetic events have.

mod ast;
mod file;
mod limits;
mod parse;
mod piece;
mod print;

pub use ast::*;
pub use file::parse_file;
pub use limits::*;
pub use parse::{is_on_file, parse};

#[cfg(test)]
mod tests;
