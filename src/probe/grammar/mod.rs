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
//! usdt[:[GROUP/]EVENT] PATH:PROVIDER:NAME [ARG]...                       statically defined tracing point
//! -:[GROUP/][EVENT]                                                      takes one away, or all of a group
//! ```

mod ast;

pub use ast::*;
