//! One run: arm, start, drain, print, clean up.
