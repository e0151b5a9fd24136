//! Text processing that does not depend on the meaning of the text.

pub mod caret;
pub mod escape;
pub mod glob;
pub mod json;
pub mod near;
pub mod number;
pub mod os_error;
pub mod quantity;
pub mod time_unit;
