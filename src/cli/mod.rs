//! The command line: from argv to a [`request::Request`].

pub mod filter;
pub mod request;
