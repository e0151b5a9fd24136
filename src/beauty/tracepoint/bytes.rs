//! Bytes of a record that are an address or an identifier, as words.

use crate::kernel::print_fmt::Hint;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// Bytes of a hex text at most: longer arrays end in dots.
const HEX_MAX: usize = 64;

/// The bytes as the hint says, or in hexadecimal where they are not what it says.
pub fn words(bytes: &[u8], hint: Option<Hint>) -> String {
    let known = match (hint, bytes) {
        (Some(Hint::Ip4), &[a, b, c, d]) => Some(Ipv4Addr::new(a, b, c, d).to_string()),
        (Some(Hint::Ip6), bytes) => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).to_string()),
        (Some(Hint::SocketAddress), bytes) => socket_address(bytes),
        (Some(Hint::Mac), &[_, _, _, _, _, _]) => Some(bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")),
        (Some(Hint::Uuid), bytes) if bytes.len() == 16 => Some(uuid(bytes)),
        _ => None,
    };
    known.unwrap_or_else(|| hex(bytes))
}

/// A struct sockaddr_in or sockaddr_in6 (man 7 ip, ipv6): the family in the machine's order, port and address in the network's.
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
    fn addresses_and_identifiers() {
        assert_eq!(words(&[127, 0, 0, 1], Some(Hint::Ip4)), "127.0.0.1");
        assert_eq!(words(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], Some(Hint::Ip6)), "::1");
        assert_eq!(words(&[2, 0, 0x1f, 0x90, 10, 0, 0, 1, 0, 0], Some(Hint::SocketAddress)), "10.0.0.1:8080");
        let mut inet6 = [0u8; 28];
        (inet6[0], inet6[2], inet6[3], inet6[23]) = (10, 0, 80, 1);
        assert_eq!(words(&inet6, Some(Hint::SocketAddress)), "[::1]:80");
        assert_eq!(words(&[1, 2, 3, 4, 5, 0xff], Some(Hint::Mac)), "01:02:03:04:05:ff");
        assert_eq!(words(&[0xab; 16], Some(Hint::Uuid)), "abababab-abab-abab-abab-abababababab");
    }

    #[test]
    fn what_is_not_as_said_is_hexadecimal() {
        assert_eq!(words(&[1, 2], Some(Hint::Ip4)), "0102");
        assert_eq!(words(&[1, 2, 3, 4], Some(Hint::SocketAddress)), "01020304");
        assert_eq!(words(&[], None), "");
        assert_eq!(words(&[0; 100], None), format!("{}...", "00".repeat(64)));
    }
}
