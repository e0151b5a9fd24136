//! Merge by time.
