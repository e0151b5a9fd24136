//! Request + kernel facts → what is armed, and how.
