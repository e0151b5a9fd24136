//! Decodes bytes in a field of a record, which may be a network address or a UUID.

use crate::beauty::value::{BytesForm, FieldBytes, Value};
use crate::kernel::print_fmt::Hint;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The maximum number of bytes of a field that are kept.
const PLAIN_MAX: usize = 64;

/// Decodes bytes as the hint says. Without a hint, or if the bytes do not fit it, they are plain bytes.
pub fn decode(bytes: &[u8], hint: Option<Hint>) -> Value<'static> {
    let decoded = match (hint, bytes) {
        (Some(Hint::Ip4), &[a, b, c, d]) => Some(Value::Ip(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))),
        (Some(Hint::Ip6), bytes) => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Value::Ip(IpAddr::V6(bytes.into()))),
        (Some(Hint::SocketAddress), bytes) => socket_address(bytes).map(Value::SocketAddress),
        (Some(Hint::Mac), bytes) if bytes.len() == 6 => Some(form(bytes, BytesForm::Mac)),
        (Some(Hint::Uuid), bytes) if bytes.len() == 16 => Some(form(bytes, BytesForm::Uuid)),
        _ => None,
    };
    decoded.unwrap_or_else(|| form(bytes, BytesForm::Plain))
}

fn form(bytes: &[u8], form: BytesForm) -> Value<'static> {
    Value::Bytes(FieldBytes { bytes: bytes[..bytes.len().min(PLAIN_MAX)].to_vec(), form, more: bytes.len() > PLAIN_MAX })
}

/// Decodes a struct sockaddr_in or sockaddr_in6 (man 7 ip, ipv6). The family is in the machine's byte order, port and
/// address are in network byte order.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    const AF_INET: u16 = 2;
    const AF_INET6: u16 = 10;
    let &[low, high, port_high, port_low, ..] = bytes else { return None };
    let port = u16::from_be_bytes([port_high, port_low]);
    match u16::from_le_bytes([low, high]) {
        AF_INET => {
            let address = <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?;
            Some(SocketAddrV4::new(address.into(), port).into())
        }
        AF_INET6 => {
            let address = <[u8; 16]>::try_from(bytes.get(8..24)?).ok()?;
            let scope = bytes.get(24..28).and_then(|scope| scope.try_into().ok()).map_or(0, u32::from_le_bytes);
            Some(SocketAddrV6::new(Ipv6Addr::from(address), port, 0, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of the field in perf style.
    fn text(bytes: &[u8], hint: Option<Hint>) -> String {
        let mut out = Vec::new();
        crate::beauty::perf::value::write(&mut out, &decode(bytes, hint), false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn addresses_and_identifiers_are_decoded_by_their_hint() {
        assert_eq!(text(&[127, 0, 0, 1], Some(Hint::Ip4)), "127.0.0.1");
        assert_eq!(text(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], Some(Hint::Ip6)), "::1");
        assert_eq!(text(&[2, 0, 0x1f, 0x90, 10, 0, 0, 1, 0, 0], Some(Hint::SocketAddress)), "10.0.0.1:8080");
        let mut inet6 = [0u8; 28];
        (inet6[0], inet6[2], inet6[3], inet6[23]) = (10, 0, 80, 1);
        assert_eq!(text(&inet6, Some(Hint::SocketAddress)), "[::1]:80");
        assert_eq!(text(&[1, 2, 3, 4, 5, 0xff], Some(Hint::Mac)), "01:02:03:04:05:ff");
        assert_eq!(text(&[0xab; 16], Some(Hint::Uuid)), "abababab-abab-abab-abab-abababababab");
    }

    #[test]
    fn bytes_that_do_not_fit_the_hint_are_plain() {
        assert_eq!(text(&[1, 2], Some(Hint::Ip4)), "0102");
        assert_eq!(text(&[1, 2, 3, 4], Some(Hint::SocketAddress)), "01020304");
        assert_eq!(text(&[], None), "");
        assert_eq!(text(&[0; 100], None), format!("{}...", "00".repeat(64)));
    }
}
