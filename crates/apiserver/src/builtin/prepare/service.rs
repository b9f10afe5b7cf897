//! Services: what was allocated once stays. Nothing is allocated here, so a service has an address only if its user gave it
//! one.

use serde_json::{Value, json};

use crate::builtin::fill::{Fields, each, list, text, zero};

/// `Service`.
pub(in crate::builtin) fn service(object: &mut Value, old: Option<&Value>) {
    let old = old.and_then(|old| old["spec"].as_object());
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if text(spec, "type") == "ExternalName" {
        if let Some(old) = old {
            let given_up =
                |name: &String, value: &Value| ADDRESSES.contains(&name.as_str()) && old.get(name) == Some(value);
            spec.retain(|name, value| !given_up(name, value));
        }
        same_address(spec);
        return;
    }
    if let Some(old) = old {
        keep_allocated(spec, old);
    }
    same_address(spec);
    families(spec, old);
}

/// The older, single field and the first of the list are the same thing.
fn same_address(spec: &mut Fields) {
    if zero(spec, "clusterIPs") && !zero(spec, "clusterIP") {
        let address = spec.get("clusterIP").cloned();
        spec.insert("clusterIPs".into(), json!([address]));
    } else if zero(spec, "clusterIP")
        && let Some(first) = list(spec, "clusterIPs").first().cloned()
    {
        spec.insert("clusterIP".into(), first);
    }
}

/// The fields of a service's addresses.
const ADDRESSES: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// Adopts from the stored object what the new one leaves out.
fn keep_allocated(spec: &mut Fields, old: &Fields) {
    if text(old, "type") == "ExternalName" {
        return;
    }
    for name in ["clusterIP", "clusterIPs"] {
        if zero(spec, name)
            && let Some(kept) = old.get(name)
        {
            spec.insert(name.to_owned(), kept.clone());
        }
    }
    let on_nodes = |spec: &Fields| matches!(text(spec, "type"), "NodePort" | "LoadBalancer");
    if !on_nodes(spec) || !on_nodes(old) {
        return;
    }
    let taken: Vec<Value> = list(spec, "ports").iter().map(|port| port["nodePort"].clone()).collect();
    each(spec, "ports", |port| {
        let before = list(old, "ports").iter().find(|before| text_of(before, "name") == text(port, "name"));
        if zero(port, "nodePort")
            && let Some(number) = before.and_then(|before| before.get("nodePort"))
            && !taken.contains(number)
        {
            port.insert("nodePort".into(), number.clone());
        }
    });
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// One family of addresses, IPv4 unless the addresses say otherwise; both for a service that is only a name for addresses
/// that its user manages.
fn families(spec: &mut Fields, old: Option<&Fields>) {
    let only_a_name = text(spec, "clusterIP") == "None" && zero(spec, "selector");
    if zero(spec, "ipFamilyPolicy") {
        let kept = old.and_then(|old| old.get("ipFamilyPolicy")).cloned();
        let usual = if only_a_name { "RequireDualStack" } else { "SingleStack" };
        spec.insert("ipFamilyPolicy".into(), kept.unwrap_or_else(|| usual.into()));
    }
    if zero(spec, "ipFamilies") {
        let kept = old.and_then(|old| old.get("ipFamilies")).cloned();
        let first = if text(spec, "clusterIP").contains(':') { "IPv6" } else { "IPv4" };
        let usual = match (only_a_name && text(spec, "ipFamilyPolicy") != "SingleStack", first) {
            (true, "IPv4") => json!(["IPv4", "IPv6"]),
            (true, _) => json!(["IPv6", "IPv4"]),
            (false, first) => json!([first]),
        };
        spec.insert("ipFamilies".into(), kept.unwrap_or(usual));
    }
}
