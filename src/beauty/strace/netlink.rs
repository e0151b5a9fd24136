//! Prints netlink messages, whose headers strace puts into brackets of their own.

use super::value::{Options, members_of, write};
use crate::beauty::value::{ArrayValue, StructValue, Value};

/// The members of a message that follow its header.
const AFTER_HEADER: [&str; 2] = ["payload", "attributes"];

/// Appends a message: `[{nlmsg_len=20, ...}, {ifa_family=AF_INET, ...}, [[{nla_len=8, nla_type=IFA_LABEL}, "lo"], ...]]`.
pub fn message(out: &mut Vec<u8>, of: &StructValue, options: Options) {
    let (after, header): (Vec<_>, Vec<_>) = of.members.iter().cloned().partition(|(name, _)| AFTER_HEADER.contains(name));
    if after.is_empty() {
        return members_of(out, &header, of.more, options);
    }
    out.push(b'[');
    members_of(out, &header, false, options);
    for (_, value) in &after {
        out.extend_from_slice(b", ");
        write(out, value, options);
    }
    out.extend_from_slice(if of.more { b", ...]" } else { b"]" });
}

/// Appends an attribute: `[{nla_len=8, nla_type=IFA_LABEL}, "lo"]`.
pub fn attribute(out: &mut Vec<u8>, of: &StructValue, options: Options) {
    let (data, header): (Vec<_>, Vec<_>) = of.members.iter().cloned().partition(|(name, _)| *name == "data");
    if data.is_empty() {
        return members_of(out, &header, of.more, options);
    }
    out.push(b'[');
    members_of(out, &header, false, options);
    for (_, value) in &data {
        out.extend_from_slice(b", ");
        write(out, value, options);
    }
    out.push(b']');
}

/// Returns the only message or attribute of an array, which has no brackets.
pub fn single<'v, 'a>(of: &'v ArrayValue<'a>) -> Option<&'v Value<'a>> {
    match &of.items[..] {
        [one @ Value::Struct(StructValue { name: "nlmsghdr" | "nlattr", .. })] if !of.more => Some(one),
        _ => None,
    }
}
