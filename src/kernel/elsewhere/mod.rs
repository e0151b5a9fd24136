//! Files on file systems that ask somebody else: a program (FUSE), another machine (NFS).
//!
//! If that one does not answer, whoever touches the file waits in the kernel, often where not even SIGKILL ends it. So rtrace does not touch it: it has such files opened and read by a process of its own, which is
//! left behind when it takes too long. That process is rtrace's program, started anew (a copy of the running one would keep its memory for as long as it waits).
//!
//! ```text
//! guarded.rs ──is it local?──▶ objects.rs
//!     └──no──▶ helper.rs ──ask.rs: a message each──▶ serve.rs, in the other process ──▶ objects.rs
//! ```

mod ask;
mod guarded;
mod helper;
mod serve;
mod silent;

pub use guarded::Guarded;
pub use serve::serve_if_asked;
