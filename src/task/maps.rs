//! Memory maps.
