//! `rtrace probe`: adds, lists, shows and deletes dynamic events, and writes records of user events.

mod add;
mod carry_out;
mod del;
mod emit;
mod list;
mod object;
mod pattern;
mod show;

pub use carry_out::carry_out;
