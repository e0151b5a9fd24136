//! Prints netlink messages, whose headers strace puts into brackets of their own.

use super::constants::is_called;
use super::forms;
use super::numbers::raw;
use super::part::write_as;
use super::quote;
use super::value::{Options, members_of, write};
use crate::beauty::row::Form;
use crate::beauty::value::{ArrayValue, StructValue, Value};
use crate::show::strace::InHex;
use std::io::Write;
use std::net::IpAddr;

/// The size of the header of an attribute in bytes.
const HEAD: usize = 4;

/// The members of a message that follow its header.
const AFTER_HEADER: [&str; 2] = ["payload", "attributes"];

/// Appends a message: `[{nlmsg_len=20, ...}, {ifa_family=AF_INET, ...}, [{nla_len=7, nla_type=IFA_LABEL}, "lo"]]`.
pub fn message(out: &mut Vec<u8>, of: &StructValue, options: Options) {
    let (after, header): (Vec<_>, Vec<_>) = of.members.iter().cloned().partition(|(name, _)| AFTER_HEADER.contains(name));
    if after.is_empty() {
        return members_of(out, &header, of.more, options);
    }
    out.push(b'[');
    members_of(out, &header, false, options);
    // An error and its attributes have brackets of their own.
    let is_error = after.len() > 1 && header.iter().any(|(_, value)| is_called(value, "NLMSG_ERROR"));
    out.extend_from_slice(if is_error { b", [" } else { b", " });
    for (at, (_, value)) in after.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        write(out, value, options);
    }
    out.extend_from_slice(if is_error { b"]" } else { b"" });
    out.extend_from_slice(if of.more { b", ...]" } else { b"]" });
}

/// Appends an attribute: `[{nla_len=8, nla_type=IFLA_MTU}, 1500]`.
pub fn attribute(out: &mut Vec<u8>, of: &StructValue, options: Options) {
    let value_of = |name: &str| of.members.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let data = value_of("data");
    out.extend_from_slice(if data.is_some() { b"[{" } else { b"{" });
    for (at, (name, value)) in of.members.iter().filter(|(name, _)| *name != "data").enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        // An attribute whose type is a number is an element of a list.
        write_as(out, value, if *name == "nla_type" { Form::Hex } else { Form::Plain }, options);
    }
    out.push(b'}');
    let Some(data) = data else { return };
    out.extend_from_slice(b", ");
    let form = match value_of("nla_type") {
        Some(Value::Symbol { table, value }) => table.name(*value).map_or(Form::Plain, |name| forms::of_attribute(table.name, name)),
        _ => Form::Plain,
    };
    match (form, data, value_of("nla_len")) {
        (Form::HexString, value, Some(Value::Uint(length @ 5..=12))) if raw(value).is_some() => {
            let bytes = raw(value).unwrap_or_default().to_ne_bytes();
            quote::quoted(out, &bytes[..*length as usize - HEAD], InHex::Always);
        }
        // Writing to a Vec does not fail.
        (_, Value::Ip(address @ IpAddr::V6(_)), _) => _ = write!(out, "inet_pton(AF_INET6, \"{address}\")"),
        (form, value, _) => write_as(out, value, form, options),
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
