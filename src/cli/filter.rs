//! The language of --filter.

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr;
