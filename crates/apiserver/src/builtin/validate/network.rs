//! Ingresses and `NetworkPolicies`.

use serde_json::Value;

use super::{Errors, SPEC, address, begin, formed, port_number, required};
use crate::field::FieldError;
use crate::meta::{format, selector};
use crate::path::Path;
use crate::value::Fields;

/// What is wrong with an Ingress.
pub fn ingress(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    if spec.list("rules").is_empty() && !spec.has("defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(SPEC, spec.at("rules").clone(), detail));
    }
    if spec.has("defaultBackend") {
        backend(spec.at("defaultBackend"), &SPEC.field("defaultBackend"), &mut errors);
    }
    let path = SPEC.field("rules");
    for (i, rule) in spec.list("rules").iter().enumerate() {
        ingress_rule(rule, &path.index(i), &mut errors);
    }
    let path = SPEC.field("tls");
    for (i, tls) in spec.list("tls").iter().enumerate() {
        let path = path.index(i);
        for (j, name) in tls.texts("hosts").enumerate() {
            host(name, &path.field("hosts").index(j), &mut errors);
        }
        if !tls.text("secretName").is_empty() {
            formed(tls.text("secretName"), &path.field("secretName"), format::is_dns_subdomain, &mut errors);
        }
    }
    let class = spec.at("ingressClassName").as_str();
    if let Some(class) = class {
        formed(class, &SPEC.field("ingressClassName"), format::is_dns_subdomain, &mut errors);
    }
    let annotation = new.at("metadata").at("annotations").at("kubernetes.io/ingress.class").as_str();
    if let (None, Some(class), Some(annotation)) = (old, class, annotation)
        && class != annotation
    {
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid("annotations.kubernetes.io/ingress.class", annotation, detail));
    }
    errors
}

fn host(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let rule = if name.contains('*') { format::is_wildcard_dns_subdomain } else { format::is_dns_subdomain };
    formed(name, path, rule, errors);
}

fn ingress_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = rule.text("host");
    if !name.is_empty() {
        if name.parse::<std::net::IpAddr>().is_ok() {
            errors.push(FieldError::invalid(path.field("host"), name, "must be a DNS name, not an IP address"));
        }
        host(name, &path.field("host"), errors);
    }
    if !rule.has("http") {
        return;
    }
    let (paths, path) = (rule.at("http").list("paths"), path.field("http"));
    let path = path.field("paths");
    if paths.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    for (i, entry) in paths.iter().enumerate() {
        ingress_path(entry, &path.index(i), errors);
    }
}

fn ingress_path(entry: &Value, path: &Path<'_>, errors: &mut Errors) {
    let target = entry.text("path");
    let Some(kind) = entry.at("pathType").as_str() else {
        errors.push(FieldError::required(path.field("pathType"), "pathType must be specified"));
        return;
    };
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path.field("path"), target, detail));
    match kind {
        "Exact" | "Prefix" => {
            if !target.starts_with('/') {
                refuse("must be an absolute path".into());
            }
            for illegal in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|illegal| target.contains(illegal)) {
                refuse(format!("must not contain '{illegal}'"));
            }
            for illegal in ["/..", "/."].into_iter().filter(|illegal| target.ends_with(illegal)) {
                refuse(format!("cannot end with '{illegal}'"));
            }
        }
        "ImplementationSpecific" => {
            if !target.is_empty() && !target.starts_with('/') {
                refuse("must be an absolute path".into());
            }
        }
        other => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(path.field("pathType"), other, &known));
        }
    }
    backend(entry.at("backend"), &path.field("backend"), errors);
}

fn backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (backend.has("resource"), backend.has("service")) {
        (true, true) => {
            errors.push(FieldError::invalid(path, "", "cannot set both resource and service backends"));
        }
        (false, false) => errors.push(FieldError::invalid(path, "", "resource or service backend is required")),
        (true, false) => {
            let path = path.field("resource");
            required(backend.at("resource"), "kind", &path, errors);
            required(backend.at("resource"), "name", &path, errors);
        }
        (false, true) => {
            let (service, at) = (backend.at("service"), path.field("service"));
            match service.text("name") {
                "" => errors.push(FieldError::required(at.field("name"), "")),
                name => formed(name, &at.field("name"), format::is_dns_label, errors),
            }
            let (port, at) = (service.at("port"), at.field("port"));
            match (port.text("name"), port.int("number").unwrap_or_default()) {
                ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
                ("", number) => port_number(number, &at.field("number"), errors),
                (name, 0) => formed(name, &at.field("name"), format::is_port_name, errors),
                _ => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
            }
        }
    }
}

/// What is wrong with a `NetworkPolicy`.
pub fn network_policy(new: &Value, _old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    selector::validate(spec.at("podSelector"), &SPEC.field("podSelector"), &mut errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = SPEC.field(direction);
        for (i, rule) in spec.list(direction).iter().enumerate() {
            let path = path.index(i);
            for (j, port) in rule.list("ports").iter().enumerate() {
                policy_port(port, &path.field("ports").index(j), &mut errors);
            }
            for (j, peer) in rule.list(peers).iter().enumerate() {
                policy_peer(peer, &path.field(peers).index(j), &mut errors);
            }
        }
    }
    let path = SPEC.field("policyTypes");
    if spec.list("policyTypes").len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(path, spec.at("policyTypes").clone(), detail));
        return errors;
    }
    for (i, kind) in spec.texts("policyTypes").enumerate().filter(|(_, kind)| !matches!(*kind, "Ingress" | "Egress")) {
        errors.push(FieldError::not_supported(path.index(i), kind, &["Ingress", "Egress"]));
    }
    errors
}

fn policy_port(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    let protocols = ["TCP", "UDP", "SCTP"];
    if let Some(protocol) = port.at("protocol").as_str().filter(|protocol| !protocols.contains(protocol)) {
        errors.push(FieldError::not_supported(path.field("protocol"), protocol, &protocols));
    }
    let end = port.int("endPort");
    let end_path = path.field("endPort");
    match port.at("port") {
        Value::Null => {
            if let Some(end) = end {
                errors.push(FieldError::invalid(end_path, end, "may not be specified when `port` is not specified"));
            }
        }
        Value::String(name) => {
            if let Some(end) = end {
                errors.push(FieldError::invalid(end_path, end, "may not be specified when `port` is non-numeric"));
            }
            formed(name, &path.field("port"), format::is_port_name, errors);
        }
        number => {
            let number = number.as_i64().unwrap_or_default();
            port_number(number, &path.field("port"), errors);
            if let Some(end) = end {
                if end < number {
                    let detail = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(end_path, number, detail));
                }
                port_number(end, &end_path, errors);
            }
        }
    }
}

fn policy_peer(peer: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.has(field) {
            count += 1;
            selector::validate(peer.at(field), &path.field(field), errors);
        }
    }
    if peer.has("ipBlock") {
        count += 1;
        let (block, path) = (peer.at("ipBlock"), path.field("ipBlock"));
        if block.text("cidr").is_empty() {
            errors.push(FieldError::required(path.field("cidr"), ""));
        } else {
            address::cidr(block.text("cidr"), &path.field("cidr"), errors);
            for (i, range) in block.texts("except").enumerate() {
                address::cidr(range, &path.field("except").index(i), errors);
            }
        }
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if count > 1 && peer.has("ipBlock") {
        errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
    }
}
