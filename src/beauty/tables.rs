//! The tables that build.rs generates from `beauty/` and the UAPI headers.

use super::row::*;
use crate::event::Abi;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));
