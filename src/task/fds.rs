//! Descriptor tables.
