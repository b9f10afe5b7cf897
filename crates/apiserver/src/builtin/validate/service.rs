//! Services.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Errors, SPEC, address, begin, formed, one_of, port_number, port_number_or_name};
use crate::field::{FieldError, Problem};
use crate::meta::{format, labels};
use crate::path::Path;
use crate::value::Fields;

const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const AFFINITY_TIMEOUT_MAX_SECONDS: i64 = 86400;

/// What is wrong with a Service.
pub fn service(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = begin(new);
    let spec = new.at("spec");
    if let Some(old) = old {
        update(spec, old.at("spec"), &mut errors);
    }
    by_type(spec, &mut errors);
    let mut names = BTreeSet::new();
    let ports = spec.list("ports");
    for (i, port) in ports.iter().enumerate() {
        service_port(port, ports.len() > 1, &mut names, &SPEC.field("ports").index(i), &mut errors);
    }
    labels(spec.at("selector"), &SPEC.field("selector"), &mut errors);
    session_affinity(spec, &mut errors);
    cluster_ips(spec, old.map(|old| old.at("spec")), &mut errors);
    for (i, ip) in spec.texts("externalIPs").enumerate() {
        let path = SPEC.field("externalIPs");
        let path = path.index(i);
        let before = errors.len();
        address::ip(ip, &path, &mut errors);
        if errors.len() == before {
            address::endpoint_ip(ip, &path, &mut errors);
        }
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(spec, "type", &SPEC, &types, &mut errors);
    duplicate_ports(spec, &mut errors);
    load_balancer(new, spec, &mut errors);
    traffic(spec, &mut errors);
    errors
}

fn is_headless(spec: &Value) -> bool {
    matches!(spec.list("clusterIPs"), [Value::String(only)] if only == "None")
}

fn by_type(spec: &Value, errors: &mut Errors) {
    let kind = spec.text("type");
    if spec.list("ports").is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.push(FieldError::required(SPEC.field("ports"), ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(SPEC.field("clusterIPs").index(0), "None", detail));
        }
        "ExternalName" => {
            let detail = "may not be set for ExternalName services";
            for field in ["clusterIPs", "ipFamilies"] {
                if !spec.list(field).is_empty() {
                    errors.push(FieldError::forbidden(SPEC.field(field), detail));
                }
            }
            if spec.has("ipFamilyPolicy") {
                errors.push(FieldError::forbidden(SPEC.field("ipFamilyPolicy"), detail));
            }
            let name = spec.text("externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(FieldError::required(SPEC.field("externalName"), ""));
            } else {
                formed(name, &SPEC.field("externalName"), format::is_dns_subdomain, errors);
            }
        }
        _ => {}
    }
}

fn service_port<'a>(
    port: &'a Value,
    needs_name: bool,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let name = port.text("name");
    if !name.is_empty() {
        formed(name, &path.field("name"), format::is_dns_label, errors);
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
    } else if needs_name {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    port_number(port.int("port").unwrap_or_default(), &path.field("port"), errors);
    one_of(port, "protocol", path, &["SCTP", "TCP", "UDP"], errors);
    port_number_or_name(port.at("targetPort"), &path.field("targetPort"), errors);
    if let Some(protocol) = port.at("appProtocol").as_str() {
        formed(protocol, &path.field("appProtocol"), format::is_qualified_name, errors);
    }
}

fn session_affinity(spec: &Value, errors: &mut Errors) {
    one_of(spec, "sessionAffinity", &SPEC, &["ClientIP", "None"], errors);
    let (config, path) = (spec.at("sessionAffinityConfig"), SPEC.field("sessionAffinityConfig"));
    match spec.text("sessionAffinity") {
        "None" if !config.is_null() => {
            errors.push(FieldError::forbidden(path, "must not be set when session affinity is None"));
        }
        "ClientIP" => {
            let detail = "when session affinity type is ClientIP";
            let client_ip = path.field("clientIP");
            let timeout = client_ip.field("timeoutSeconds");
            if config.is_null() {
                errors.push(FieldError::required(path, detail));
            } else if !config.has("clientIP") {
                errors.push(FieldError::required(client_ip, detail));
            } else if let Some(seconds) = config.at("clientIP").int("timeoutSeconds") {
                if seconds <= 0 || seconds > AFFINITY_TIMEOUT_MAX_SECONDS {
                    let detail = format!("must be greater than 0 and less than {AFFINITY_TIMEOUT_MAX_SECONDS}");
                    errors.push(FieldError::invalid(timeout, seconds, detail));
                }
            } else {
                errors.push(FieldError::required(timeout, detail));
            }
        }
        _ => {}
    }
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` agree with each other.
fn cluster_ips(spec: &Value, old: Option<&Value>, errors: &mut Errors) {
    if spec.text("type") == "ExternalName" {
        return;
    }
    let (path, families_path) = (SPEC.field("clusterIPs"), SPEC.field("ipFamilies"));
    let (ips, families) = (spec.list("clusterIPs"), spec.list("ipFamilies"));
    let primary = spec.text("clusterIP");
    match (primary.is_empty(), ips.first()) {
        (false, None) => errors.push(FieldError::required(path, "")),
        (false, Some(first)) if first != primary => {
            let detail = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(path, spec.at("clusterIPs").clone(), detail));
        }
        (true, Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(path, spec.at("clusterIPs").clone(), detail));
        }
        _ => {}
    }
    for (i, family) in spec.texts("ipFamilies").enumerate() {
        if !matches!(family, "IPv4" | "IPv6") {
            errors.push(FieldError::not_supported(families_path.index(i), family, &["IPv4", "IPv6"]));
        }
        if spec.texts("ipFamilies").take(i).any(|other| other == family) {
            errors.push(FieldError::duplicate(families_path.index(i), family));
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if let Some(policy) = spec.at("ipFamilyPolicy").as_str().filter(|policy| !policies.contains(policy)) {
        errors.push(FieldError::not_supported(SPEC.field("ipFamilyPolicy"), policy, &policies));
    }
    let before = errors.len();
    for (i, ip) in spec.texts("clusterIPs").enumerate() {
        if i == 0 && ip == "None" {
            if ips.len() > 1 {
                let detail = "'None' must be the first and only value";
                errors.push(FieldError::invalid(path, spec.at("clusterIPs").clone(), detail));
            }
        } else if !old.is_some_and(|old| old.texts("clusterIPs").any(|known| known == ip)) {
            address::ip(ip, &path.index(i), errors);
        }
    }
    let sound = errors.len() == before;
    if ips.len() > 2 {
        errors.push(FieldError::invalid(path, spec.at("clusterIPs").clone(), "may only hold up to 2 values"));
    }
    if sound {
        cluster_ip_families(spec, families, &path, errors);
    }
}

fn cluster_ip_families(spec: &Value, families: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let ips: Vec<&str> = spec.texts("clusterIPs").collect();
    if ips.len() > 1 && ips.iter().all(|ip| address::is_ipv6(ip) == address::is_ipv6(ips[0])) {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(path, spec.at("clusterIPs").clone(), detail));
    }
    if is_headless(spec) {
        return;
    }
    for (i, (ip, family)) in ips.iter().zip(families).enumerate() {
        let expected = if address::is_ipv6(ip) { "IPv6" } else { "IPv4" };
        if let Some(family) = family.as_str().filter(|family| matches!(*family, "IPv4" | "IPv6") && *family != expected)
        {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.push(FieldError::invalid(path.index(i), *ip, detail));
        }
    }
}

fn duplicate_ports(spec: &Value, errors: &mut Errors) {
    let path = SPEC.field("ports");
    let ports = spec.list("ports");
    let node_port = |port: &Value| port.int("nodePort").unwrap_or_default();
    if spec.text("type") == "ClusterIP" {
        for (i, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(path.index(i).field("nodePort"), detail));
        }
    }
    let mut seen = BTreeSet::new();
    for (i, port) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
        if !seen.insert((port.text("protocol"), node_port(port))) {
            errors.push(FieldError::duplicate(path.index(i).field("nodePort"), node_port(port)));
        }
    }
    let mut seen = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let (protocol, number) = (port.text("protocol"), port.int("port").unwrap_or_default());
        if !seen.insert((protocol, number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(FieldError::new(Problem::Duplicate, path.index(i), port.clone(), "").showing(shown));
        }
    }
}

fn load_balancer(service: &Value, spec: &Value, errors: &mut Errors) {
    let balanced = spec.text("type") == "LoadBalancer";
    let annotations = METADATA_ANNOTATIONS;
    if spec.list("loadBalancerSourceRanges").is_empty() {
        let key = "service.beta.kubernetes.io/load-balancer-source-ranges";
        if let Some(ranges) = service.at("metadata").at("annotations").at(key).as_str() {
            let path = Path::new(annotations);
            let path = path.key(key);
            if !balanced {
                errors.push(FieldError::forbidden(path, ONLY_LOAD_BALANCER));
            }
            for range in ranges.trim().split(',').map(str::trim).filter(|_| !ranges.trim().is_empty()) {
                address::cidr(range, &path, errors);
            }
        }
    } else {
        let path = SPEC.field("LoadBalancerSourceRanges");
        if !balanced {
            errors.push(FieldError::forbidden(path, ONLY_LOAD_BALANCER));
        }
        for (i, range) in spec.texts("loadBalancerSourceRanges").enumerate() {
            address::cidr(range.trim(), &path.index(i), errors);
        }
    }
    match (balanced, spec.has("allocateLoadBalancerNodePorts")) {
        (false, true) => {
            errors.push(FieldError::forbidden(SPEC.field("allocateLoadBalancerNodePorts"), ONLY_LOAD_BALANCER));
        }
        (true, false) => errors.push(FieldError::required("allocateLoadBalancerNodePorts", "")),
        _ => {}
    }
    load_balancer_class(spec, errors);
}

const METADATA_ANNOTATIONS: &str = "metadata.annotations";

fn load_balancer_class(spec: &Value, errors: &mut Errors) {
    let path = SPEC.field("loadBalancerClass");
    if let Some(class) = spec.at("loadBalancerClass").as_str() {
        if spec.text("type") == "LoadBalancer" {
            formed(class, &path, format::is_qualified_name, errors);
        } else {
            errors.push(FieldError::forbidden(path, ONLY_LOAD_BALANCER));
        }
    }
}

fn needs_health_check(spec: &Value) -> bool {
    spec.text("type") == "LoadBalancer" && spec.text("externalTrafficPolicy") == "Local"
}

fn traffic(spec: &Value, errors: &mut Errors) {
    let kind = spec.text("type");
    let reachable =
        matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && !spec.list("externalIPs").is_empty());
    let policy = spec.text("externalTrafficPolicy");
    if reachable {
        one_of(spec, "externalTrafficPolicy", &SPEC, &["Cluster", "Local"], errors);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(SPEC.field("externalTrafficPolicy"), policy, detail));
    }
    let (port, path) = (spec.int("healthCheckNodePort").unwrap_or_default(), SPEC.field("healthCheckNodePort"));
    match (needs_health_check(spec), port) {
        (false, 0) => {}
        (false, port) => {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(path, port, detail));
        }
        (true, 0) => errors.push(FieldError::required(path, "")),
        (true, port) => port_number(port, &path, errors),
    }
    let internal = SPEC.field("internalTrafficPolicy");
    match spec.at("internalTrafficPolicy").as_str() {
        None if matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") => {
            errors.push(FieldError::required(internal, ""));
        }
        None | Some("Cluster" | "Local") => {}
        Some(other) => errors.push(FieldError::not_supported(internal, other, &["Cluster", "Local"])),
    }
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if let Some(other) = spec.at("trafficDistribution").as_str().filter(|value| !known.contains(value)) {
        errors.push(FieldError::not_supported(SPEC.field("trafficDistribution"), other, &known));
    }
}

/// What an update may not change: the addresses that were given out, and the class of a load balancer.
fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let external = |spec: &Value| spec.text("type") == "ExternalName";
    if !external(new) && !external(old) {
        update_cluster_ips(new, old, errors);
        if !is_headless(new) && !is_headless(old) {
            update_families(new, old, errors);
        }
    }
    let balanced = |spec: &Value| spec.text("type") == "LoadBalancer";
    if balanced(new) && balanced(old) && new.at("loadBalancerClass") != old.at("loadBalancerClass") {
        let class = new.at("loadBalancerClass").clone();
        errors.push(FieldError::invalid(SPEC.field("loadBalancerClass"), class, "may not change once set"));
    }
    load_balancer_class(new, errors);
    let checked = needs_health_check(new) && needs_health_check(old);
    if checked && new.int("healthCheckNodePort") != old.int("healthCheckNodePort") {
        errors.push(FieldError::forbidden(SPEC.field("healthCheckNodePort"), "field is immutable"));
    }
}

fn update_cluster_ips(new: &Value, old: &Value, errors: &mut Errors) {
    if is_headless(new) && is_headless(old) {
        return;
    }
    let (is, was) = (new.list("clusterIPs"), old.list("clusterIPs"));
    let path = SPEC.field("clusterIPs");
    let mut refuse = |at: usize, detail: &str| {
        let value = if is.is_empty() { Value::Null } else { new.at("clusterIPs").clone() };
        errors.push(FieldError::invalid(path.index(at), value, detail));
    };
    if is.len() == was.len() {
        for (i, _) in is.iter().zip(was).enumerate().filter(|(_, (is, was))| is != was) {
            refuse(i, "may not change once set");
        }
        return;
    }
    if is.is_empty() {
        refuse(0, "primary clusterIP can not be unset");
    } else if !was.is_empty() && is.first() != was.first() {
        refuse(0, "may not change once set");
    }
    if is.len() == 1 && was.len() > 1 && new.text("ipFamilyPolicy") != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        let policy = new.at("ipFamilyPolicy").clone();
        errors.push(FieldError::invalid(SPEC.field("ipFamilyPolicy"), policy, detail));
    }
}

fn update_families(new: &Value, old: &Value, errors: &mut Errors) {
    let (is, was) = (new.list("ipFamilies"), old.list("ipFamilies"));
    let path = SPEC.field("ipFamilies");
    let mut refuse = |shown: &str, detail: &str| {
        errors.push(FieldError::invalid(path.index(0), new.at(shown).clone(), detail));
    };
    if is.len() == was.len() {
        for _ in is.iter().zip(was).filter(|(is, was)| is != was) {
            refuse("ipFamilies", "may not change once set");
        }
        return;
    }
    if is.len() < was.len() && new.list("clusterIPs").is_empty() {
        refuse("ipFamilies", "primary ipFamily can not be unset");
    }
    if !is.is_empty() && !was.is_empty() && is.first() != was.first() {
        refuse("clusterIPs", "may not change once set");
    }
    if is.len() == 1 && was.len() > 1 && new.text("ipFamilyPolicy") != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        let policy = new.at("ipFamilyPolicy").clone();
        errors.push(FieldError::invalid(SPEC.field("ipFamilyPolicy"), policy, detail));
    }
}
