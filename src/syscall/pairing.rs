//! Entry + exit.
