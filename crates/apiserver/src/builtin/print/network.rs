//! Services and what stands behind and before them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{NONE, SHOWN, UNKNOWN, UNSET, age, count, joined, list, name, selector, text};
use crate::builtin::Column;

/// The columns of [`service`].
pub(in crate::builtin) const SERVICE_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Type"),
    Column::string("Cluster-IP"),
    Column::string("External-IP"),
    Column::string("Port(s)"),
    Column::AGE,
    Column::wide("Selector"),
];

/// `Service`.
pub(in crate::builtin) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let ports = joined_ports(list(&spec["ports"]));
    vec![
        name(object),
        text(&spec["type"]).into(),
        spec["clusterIPs"][0].as_str().unwrap_or(NONE).into(),
        external(object).into(),
        if ports.is_empty() { NONE.into() } else { ports.into() },
        age(object, now),
        selector::labels(&spec["selector"]).into(),
    ]
}

fn joined_ports(ports: &[Value]) -> String {
    let written: Vec<String> = ports
        .iter()
        .map(|port| {
            let (number, protocol) = (count(&port["port"]), text(&port["protocol"]));
            match count(&port["nodePort"]) {
                ..=0 => format!("{number}/{protocol}"),
                node => format!("{number}:{node}/{protocol}"),
            }
        })
        .collect();
    written.join(",")
}

/// The addresses by which a service is reached from outside.
fn external(object: &Value) -> String {
    let spec = &object["spec"];
    let given = joined(list(&spec["externalIPs"]).iter().map(text));
    match text(&spec["type"]) {
        "ClusterIP" | "NodePort" if given.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => given,
        "LoadBalancer" => match (balancers(&object["status"]), given.is_empty()) {
            (balancers, true) if balancers.is_empty() => "<pending>".to_owned(),
            (balancers, true) => balancers,
            (balancers, false) if balancers.is_empty() => given,
            (balancers, false) => format!("{balancers},{given}"),
        },
        "ExternalName" => text(&spec["externalName"]).to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The addresses of a load balancer, each once, in order.
fn balancers(status: &Value) -> String {
    let addresses: BTreeSet<&str> = list(&status["loadBalancer"]["ingress"])
        .iter()
        .map(|ingress| match text(&ingress["ip"]) {
            "" => text(&ingress["hostname"]),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    joined(addresses.into_iter())
}

/// The columns of [`endpoints`].
pub(in crate::builtin) const ENDPOINTS_COLUMNS: &[Column] = &[Column::NAME, Column::string("Endpoints"), Column::AGE];

/// `Endpoints`.
pub(in crate::builtin) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in list(&object["subsets"]) {
        let addresses = || list(&subset["addresses"]).iter().map(|address| text(&address["ip"]));
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports {
            all.extend(addresses().map(|ip| with_port(ip, count(&port["port"]))));
        }
    }
    let shown = if list(&object["subsets"]).is_empty() { NONE.to_owned() } else { first_few(&all) };
    vec![name(object), shown.into(), age(object, now)]
}

fn with_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

/// The first few, and how many more there are.
fn first_few(all: &[String]) -> String {
    let shown = joined(all.iter().take(SHOWN).map(String::as_str));
    match all.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} + {more} more..."),
    }
}

/// The columns of [`endpoint_slice`].
pub(in crate::builtin) const SLICE_COLUMNS: &[Column] =
    &[Column::NAME, Column::string("AddressType"), Column::string("Ports"), Column::string("Endpoints"), Column::AGE];

/// `EndpointSlice`.
pub(in crate::builtin) fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let port = |port: &Value| match (port["port"].as_i64(), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, name) => name.unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = list(&object["ports"]).iter().map(port).collect();
    let addresses: Vec<String> = list(&object["endpoints"])
        .iter()
        .flat_map(|endpoint| list(&endpoint["addresses"]))
        .map(|address| text(address).to_owned())
        .collect();
    let shown = |all: &[String]| match first_few(all) {
        none if none.is_empty() => UNSET.to_owned(),
        some => some,
    };
    vec![
        name(object),
        text(&object["addressType"]).into(),
        shown(&ports).into(),
        shown(&addresses).into(),
        age(object, now),
    ]
}

/// The columns of [`network_policy`].
pub(in crate::builtin) const POLICY_COLUMNS: &[Column] = &[Column::NAME, Column::string("Pod-Selector"), Column::AGE];

/// `NetworkPolicy`.
pub(in crate::builtin) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), selector::selector(&object["spec"]["podSelector"]).into(), age(object, now)]
}

/// The columns of [`ingress`].
pub(in crate::builtin) const INGRESS_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Class"),
    Column::string("Hosts"),
    Column::string("Address"),
    Column::string("Ports"),
    Column::AGE,
];

/// `Ingress`.
pub(in crate::builtin) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    vec![
        name(object),
        spec["ingressClassName"].as_str().unwrap_or(NONE).into(),
        hosts(list(&spec["rules"])).into(),
        balancers(&object["status"]).into(),
        if list(&spec["tls"]).is_empty() { "80".into() } else { "80, 443".into() },
        age(object, now),
    ]
}

/// The first few hosts. Rules without a host count among those that are left out, as they do in Kubernetes.
fn hosts(rules: &[Value]) -> String {
    let mut named = rules.iter().enumerate().filter(|(_, rule)| !text(&rule["host"]).is_empty());
    let shown: Vec<(usize, &str)> =
        named.by_ref().take(SHOWN).map(|(index, rule)| (index, text(&rule["host"]))).collect();
    let Some((last, _)) = shown.last() else { return "*".to_owned() };
    let written = joined(shown.iter().map(|(_, host)| *host));
    if shown.len() == SHOWN && last + 1 < rules.len() {
        format!("{written} + {} more...", rules.len() - SHOWN)
    } else {
        written
    }
}
