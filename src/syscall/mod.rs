//! From entry and exit records to calls, and the account of what was issued, seen and lost.

pub mod behavior;
pub mod gaps;
pub mod layout;
pub mod ledger;
pub mod memory;
pub mod pairing;
pub mod path_name;
pub mod requests;
pub mod special;
pub mod stateless;
