//! IP addresses and ranges of them.

use std::net::IpAddr;

use super::Errors;
use crate::field::FieldError;
use crate::path::Path;

/// An IP address, as strict as fields are that existed before strictness. Go reads addresses with leading zeros; Rust does
/// not, so those are found by reading again without them.
pub fn ip(value: &str, path: &Path<'_>, errors: &mut Errors) {
    match value.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => {
            errors.push(FieldError::invalid(path, value, "must not be an IPv4-mapped IPv6 address"));
        }
        Ok(_) => {}
        Err(_) if without_leading_zeros(value).is_some() => {
            errors.push(FieldError::invalid(path, value, "must not have leading 0s"));
        }
        Err(_) => {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(FieldError::invalid(path, value, detail));
        }
    }
}

fn without_leading_zeros(value: &str) -> Option<IpAddr> {
    let parts: Vec<&str> = value.split('.').map(|part| part.trim_start_matches('0')).collect();
    let parts: Vec<&str> = parts.into_iter().map(|part| if part.is_empty() { "0" } else { part }).collect();
    (value.contains('.') && !value.contains("..")).then(|| parts.join(".").parse().ok()).flatten()
}

/// An address that endpoints may have: not one that only makes sense on one machine.
pub fn endpoint_ip(value: &str, path: &Path<'_>, errors: &mut Errors) {
    let Ok(address) = value.parse::<IpAddr>() else {
        errors.push(FieldError::invalid(path, value, "must be a valid IP address"));
        return;
    };
    if address.is_unspecified() {
        errors.push(FieldError::invalid(path, value, format!("may not be unspecified ({value})")));
    }
    if address.is_loopback() {
        errors.push(FieldError::invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    let (unicast, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02),
    };
    if unicast {
        errors.push(FieldError::invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// A range of addresses: `10.9.8.0/24`.
pub fn cidr(value: &str, path: &Path<'_>, errors: &mut Errors) {
    let detail = match value.split_once('/').map(|(address, length)| (address.parse::<IpAddr>(), length.parse::<u32>()))
    {
        Some((Ok(address), Ok(length))) if length <= if address.is_ipv4() { 32 } else { 128 } => {
            let host_bits = match address {
                IpAddr::V4(v4) => v4.to_bits().checked_shl(length).is_some_and(|bits| bits != 0),
                IpAddr::V6(v6) => v6.to_bits().checked_shl(length).is_some_and(|bits| bits != 0),
            };
            if !host_bits {
                return;
            }
            "must not have bits set beyond the prefix length"
        }
        _ => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
    };
    errors.push(FieldError::invalid(path, value, detail));
}

/// Whether a text is an IPv6 address.
pub fn is_ipv6(value: &str) -> bool {
    value.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6())
}
