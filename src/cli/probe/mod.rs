//! `rtrace probe`: dynamic events that stay, made, listed, shown, deleted; and user events, emitted.

mod add;
mod carry_out;
mod del;
mod emit;
mod list;
mod pattern;
mod show;

pub use carry_out::carry_out;
