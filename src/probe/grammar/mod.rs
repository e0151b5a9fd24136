//! The language of dynamic events: the kernel's (Documentation/trace/{kprobetrace,uprobetracer,fprobetrace,eprobetrace,user_events}.rst), and what rtrace takes beyond it:
//! symbols, source lines and names of variables where the kernel wants offsets and registers.
//!
//! ```text
//! p[:[GROUP/]EVENT] [MODULE:]SYMBOL[+OFFSET]|ADDRESS [ARG]...            kernel function; also FUNCTION:LINE, FILE:LINE
//! r[MAXACTIVE][:[GROUP/]EVENT] [MODULE:]SYMBOL [ARG]...                  its return; also p ... SYMBOL%return
//! p[:[GROUP/]EVENT] PATH:OFFSET[(REFERENCE_COUNTER)] [ARG]...            program; also PATH:SYMBOL[+OFFSET], PATH:FILE:LINE
//! r[:[GROUP/]EVENT] PATH:OFFSET [ARG]...                                 its return; also p ... PATH:OFFSET%return
//! f[MAXACTIVE][:[GROUP/]EVENT] SYMBOL[%return] [ARG]...                  kernel function, by ftrace
//! t[:[GROUP/]EVENT] TRACEPOINT [ARG]...                                  tracepoint without an event
//! e[:[GROUP/]EVENT] SUBSYSTEM.EVENT [ARG]... [if FILTER]                 another event; also SUBSYSTEM/EVENT
//! s:[synthetic/]EVENT TYPE FIELD[; TYPE FIELD]...                        synthetic event
//! u:EVENT[:FLAG] TYPE FIELD[; TYPE FIELD]...                             user event
//! usdt[:[GROUP/]EVENT] PATH:PROVIDER:NAME [ARG]...                       USDT tracepoint
//! -:[GROUP/][EVENT]                                                      takes one away, or all of a group
//! ```
//!
//! [`parse()`] reads a line and [`parse_file`] a text of lines with comments; `Display` writes the line, which is what the kernel takes if nothing in it is rtrace's own
//! (lines of sources, symbols of programs, variables of programs, usdt, quotes). Nothing is looked up: whether there is such a function or field, and how long an
//! argument may be, is for those who make the probe. Where the language is ambiguous:
//!
//! * A place of `p` and `r` that has a slash, or begins with a quote, is in a file; anything else is in the kernel. So `open.c:72` is the kernel's, `./open.c:72` byte 72 of a
//!   file.
//! * `X:NUMBER` is line NUMBER of the function or file X, `X:NAME` is the symbol NAME of the module X. What begins with a digit is an address or an offset.
//! * A path ends at its first colon; if `0x` follows the last colon, at the last, as in the kernel. `PATH:NUMBER` is an offset, `PATH:X:NUMBER` a line.
//!   Paths with other colons, and names with blanks, stand in double quotes, with `\"`, `\\` and `\xNN` in them.
//! * In a program's place `+N` and `-N` at the end are an offset, `(N)` at the end is the address of a reference counter; other signs and parentheses belong to the name.
//!   A colon that is doubled belongs to the name.
//! * Numbers are decimal, hexadecimal with 0x, octal with a leading 0; behind `$arg` and `$stack`, and lines, decimal.
//! * `p PLACE%return` is the same as `r PLACE`, and so it is printed. A return probe is on a whole function. `r0` is `r`.
//! * The oldest spellings are values of `p` and `r` on symbols and addresses of the kernel, where alone they were: `aN` is `$argN+1`, `sN` `$stackN`, `sa` `$stack`, `rv` `$retval`, `ra`
//!   the instruction pointer of a return probe. So an argument that is called `sa` is not to be had there by its name (by `$argN` it is); anywhere else, and with a member
//!   behind it (`sa->family`), it is a variable.
//! * On an event every `$NAME` but `$comm` is a field, `$stack` and `$arg1` too, and there are no registers and variables.
//! * An event's group may be set off by a dot, and an event probe's event by a slash.
//! * `if` ends the arguments of an event probe; all behind it is the condition, as it is.
//! * `NAME TYPE FIELD; ...`, as `synthetic_events` of tracefs has it, is a synthetic event if the second word is a type that those have.

mod ast;
mod file;
mod limits;
mod parse;
mod piece;
mod print;

pub use ast::*;
pub use file::{InFile, parse_file};
pub use limits::*;
pub use parse::{is_on_file, parse};

#[cfg(test)]
mod tests;
