//! The tables that build.rs made of `beauty/` and the UAPI headers.

use super::row::*;
use crate::event::Abi;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
