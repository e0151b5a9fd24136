//! Formats bytes of a record that are an address or an identifier.

use crate::kernel::print_fmt::Hint;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// The maximum number of bytes that are printed in hexadecimal; longer arrays end in dots.
const HEX_MAX: usize = 64;

/// Formats bytes according to the hint, or in hexadecimal if there is no hint or they do not fit it.
pub fn format(bytes: &[u8], hint: Option<Hint>) -> String {
    let formatted = match (hint, bytes) {
        (Some(Hint::Ip4), &[a, b, c, d]) => Some(Ipv4Addr::new(a, b, c, d).to_string()),
        (Some(Hint::Ip6), bytes) => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).to_string()),
        (Some(Hint::SocketAddress), bytes) => socket_address(bytes),
        (Some(Hint::Mac), &[_, _, _, _, _, _]) => Some(bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")),
        (Some(Hint::Uuid), bytes) if bytes.len() == 16 => Some(uuid(bytes)),
        _ => None,
    };
    formatted.unwrap_or_else(|| hex(bytes))
}

/// Formats a struct sockaddr_in or sockaddr_in6 (man 7 ip, ipv6). The family is in the machine's byte order, port and
/// address are in network byte order.
fn socket_address(bytes: &[u8]) -> Option<String> {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let &[low, high, port_high, port_low, ..] = bytes else { return None };
    let port = u16::from_be_bytes([port_high, port_low]);
    match u16::from_le_bytes([low, high]) {
        AF_INET => {
            let address = <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?;
            Some(SocketAddrV4::new(address.into(), port).to_string())
        }
        AF_INET6 => {
            let address = <[u8; 16]>::try_from(bytes.get(8..24)?).ok()?;
            let scope = bytes.get(24..28).and_then(|scope| scope.try_into().ok()).map_or(0, u32::from_le_bytes);
            Some(SocketAddrV6::new(address.into(), port, 0, scope).to_string())
        }
        _ => None,
    }
}

fn uuid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len().min(HEX_MAX) + 3);
    for byte in bytes.iter().take(HEX_MAX) {
        let _ = write!(text, "{byte:02x}");
    }
    if bytes.len() > HEX_MAX {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_identifiers_are_formatted_by_their_hint() {
        assert_eq!(format(&[127, 0, 0, 1], Some(Hint::Ip4)), "127.0.0.1");
        assert_eq!(format(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], Some(Hint::Ip6)), "::1");
        assert_eq!(format(&[2, 0, 0x1f, 0x90, 10, 0, 0, 1, 0, 0], Some(Hint::SocketAddress)), "10.0.0.1:8080");
        let mut inet6 = [0u8; 28];
        (inet6[0], inet6[2], inet6[3], inet6[23]) = (10, 0, 80, 1);
        assert_eq!(format(&inet6, Some(Hint::SocketAddress)), "[::1]:80");
        assert_eq!(format(&[1, 2, 3, 4, 5, 0xff], Some(Hint::Mac)), "01:02:03:04:05:ff");
        assert_eq!(format(&[0xab; 16], Some(Hint::Uuid)), "abababab-abab-abab-abab-abababababab");
    }

    #[test]
    fn bytes_that_do_not_fit_the_hint_are_hexadecimal() {
        assert_eq!(format(&[1, 2], Some(Hint::Ip4)), "0102");
        assert_eq!(format(&[1, 2, 3, 4], Some(Hint::SocketAddress)), "01020304");
        assert_eq!(format(&[], None), "");
        assert_eq!(format(&[0; 100], None), format!("{}...", "00".repeat(64)));
    }
}
