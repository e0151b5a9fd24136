//! Files on remote file systems, whose data a program (FUSE) or another machine (NFS) serves.
//!
//! If the server does not answer, an access to such a file blocks in the kernel, often uninterruptibly, so that not
//! even SIGKILL ends it. So rtrace does not access these files itself. A child process, the *reader*, opens and reads
//! them, and rtrace abandons it when it takes too long. The reader executes rtrace's program anew: a forked copy would
//! keep the memory of rtrace for as long as it is blocked.
//!
//! ```text
//! guarded.rs ──is it local?──▶ objects.rs
//!     └──no──▶ reader.rs ──protocol.rs: requests and responses──▶ serve.rs, in the reader ──▶ objects.rs
//! ```

mod guarded;
mod protocol;
mod reader;
mod serve;
mod silent;

pub use guarded::Guarded;
pub use serve::serve_if_started_as_reader;
