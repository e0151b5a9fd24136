//! Decoders of structs that rows of `beauty/structs/` cannot describe. A row names its function with `decoder.NAME`.
//!
//! The build script regards every `pub fn` in these files as such a function.

mod command;
mod control;
mod entry;
mod netlink;
mod object;
mod registers;
mod set;
mod siginfo;
mod socket;

pub use command::{ioctl_data, ioctl_text};
pub use control::{control_message, control_messages};
pub use entry::{dirents, dirents64};
pub use netlink::{interface_address, net_address, netlink_message, netlink_messages, nexthops};
pub use object::{bpf_info, capabilities, capability_set};
pub use registers::{user_fpregs, user_regs};
pub use set::{cpumask, fd_set, nodemask, page_bytes, sigset};
pub use set::{input_absolute_axes, input_effects, input_event_types, input_keys, input_leds, input_miscellaneous};
pub use set::{input_properties, input_relative_axes, input_sounds, input_switches};
pub use siginfo::siginfo;
pub use socket::{in6_addr, sun_path};
