//! Endpoints and `EndpointSlices`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Errors, address, begin, formed, immutable, one_of, port_number};
use crate::field::{FieldError, Problem};
use crate::meta::{complain, format};
use crate::path::Path;
use crate::value::{Fields, same};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const SLICE_ENDPOINTS_MAX: usize = 1000;
const SLICE_PORTS_MAX: usize = 20_000;
const ADDRESSES_MAX: usize = 100;

/// What is wrong with Endpoints.
pub fn endpoints(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    if old.is_some_and(|old| same(new.at("subsets"), old.at("subsets"))) {
        return errors;
    }
    let path = Path::new("subsets");
    for (i, subset) in new.list("subsets").iter().enumerate() {
        let path = path.index(i);
        let (ready, not_ready) = (subset.list("addresses"), subset.list("notReadyAddresses"));
        if ready.is_empty() && not_ready.is_empty() {
            errors.push(FieldError::required(path, "must specify `addresses` or `notReadyAddresses`"));
        }
        for (field, list) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            let path = path.field(field);
            for (j, address) in list.iter().enumerate() {
                endpoint_address(address, &path.index(j), &mut errors);
            }
        }
        let ports = subset.list("ports");
        let list = path.field("ports");
        for (j, port) in ports.iter().enumerate() {
            let path = list.index(j);
            let name = port.text("name");
            if !name.is_empty() {
                formed(name, &path.field("name"), format::is_dns_label, &mut errors);
            } else if ports.len() > 1 {
                errors.push(FieldError::required(path.field("name"), ""));
            }
            port_number(port.int("port").unwrap_or_default(), &path.field("port"), &mut errors);
            one_of(port, "protocol", &path, &PROTOCOLS, &mut errors);
            if let Some(protocol) = port.at("appProtocol").as_str() {
                formed(protocol, &path.field("appProtocol"), format::is_qualified_name, &mut errors);
            }
        }
    }
    errors
}

fn endpoint_address(endpoint: &Value, path: &Path<'_>, errors: &mut Errors) {
    let ip = endpoint.text("ip");
    address::ip(ip, &path.field("ip"), errors);
    if !endpoint.text("hostname").is_empty() {
        formed(endpoint.text("hostname"), &path.field("hostname"), format::is_dns_label, errors);
    }
    if let Some(node) = endpoint.at("nodeName").as_str() {
        formed(node, &path.field("nodeName"), format::is_dns_subdomain, errors);
    }
    address::endpoint_ip(ip, &path.field("ip"), errors);
}

fn too_many(path: &Path<'_>, count: usize, max: usize) -> FieldError {
    FieldError::new(Problem::TooMany, path, count.into(), format!("must have at most {max} items"))
}

/// What is wrong with an `EndpointSlice`.
pub fn endpoint_slice(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let kind = new.text("addressType");
    match kind {
        "" => errors.push(FieldError::required("addressType", "")),
        "IPv4" | "IPv6" | "FQDN" => {}
        other => errors.push(FieldError::not_supported("addressType", other, &["FQDN", "IPv4", "IPv6"])),
    }
    slice_ports(new, &mut errors);
    if !old.is_some_and(|old| same(new.at("endpoints"), old.at("endpoints"))) {
        let (path, endpoints) = (Path::new("endpoints"), new.list("endpoints"));
        if endpoints.len() > SLICE_ENDPOINTS_MAX {
            errors.push(too_many(&path, endpoints.len(), SLICE_ENDPOINTS_MAX));
        } else {
            for (i, endpoint) in endpoints.iter().enumerate() {
                slice_endpoint(endpoint, kind, &path.index(i), &mut errors);
            }
        }
    }
    if let Some(old) = old {
        immutable(new.at("addressType"), old.at("addressType"), &Path::new("addressType"), &mut errors);
    }
    errors
}

fn slice_ports(slice: &Value, errors: &mut Errors) {
    let (path, ports) = (Path::new("ports"), slice.list("ports"));
    if ports.len() > SLICE_PORTS_MAX {
        errors.push(too_many(&path, ports.len(), SLICE_PORTS_MAX));
        return;
    }
    let mut names = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = port.text("name");
        if !name.is_empty() {
            formed(name, &path.field("name"), format::is_dns_label, errors);
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        match port.at("protocol").as_str() {
            None => errors.push(FieldError::required(path.field("protocol"), "")),
            Some(protocol) if PROTOCOLS.contains(&protocol) => {}
            Some(other) => errors.push(FieldError::not_supported(path.field("protocol"), other, &PROTOCOLS)),
        }
        if let Some(protocol) = port.at("appProtocol").as_str() {
            formed(protocol, &path.field("appProtocol"), format::is_qualified_name, errors);
        }
    }
}

fn slice_endpoint(endpoint: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let (list, addresses) = (path.field("addresses"), endpoint.list("addresses"));
    if addresses.is_empty() {
        errors.push(FieldError::required(list, "must contain at least 1 address"));
    } else if addresses.len() > ADDRESSES_MAX {
        errors.push(too_many(&list, addresses.len(), ADDRESSES_MAX));
    }
    for (i, value) in endpoint.texts("addresses").enumerate() {
        let at = list.index(i);
        match kind {
            "IPv4" | "IPv6" => {
                let before = errors.len();
                address::ip(value, &at, errors);
                if errors.len() > before {
                    continue;
                }
                if address::is_ipv6(value) != (kind == "IPv6") {
                    errors.push(FieldError::invalid(list, value, format!("must be an {kind} address")));
                }
                address::endpoint_ip(value, &at, errors);
            }
            "FQDN" => domain_name(value, &at, errors),
            _ => {}
        }
    }
    if let Some(node) = endpoint.at("nodeName").as_str() {
        formed(node, &path.field("nodeName"), format::is_dns_subdomain, errors);
    }
    if let Some(hostname) = endpoint.at("hostname").as_str() {
        formed(hostname, &path.field("hostname"), format::is_dns_label, errors);
    }
}

fn domain_name(value: &str, path: &Path<'_>, errors: &mut Errors) {
    let name = value.strip_suffix('.').unwrap_or(value);
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let wrong = format::is_dns_subdomain(name);
    if !wrong.is_empty() {
        complain(errors, path, name, vec![wrong.join(",")]);
    } else if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
    }
}
