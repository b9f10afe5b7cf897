//! Services and what stands behind and before them.

use serde_json::{Value, json};

use super::spec_of;
use crate::builtin::fill::{Fields, child, child_or_new, each, fill, fill_zero, list, text, unset, zero};

/// How long a client stays with the pod that it first reached.
const AFFINITY_SECONDS: i64 = 10_800;

/// Service.
pub(in crate::builtin) fn service(object: &mut Value) {
    let Some(spec) = spec_of(object) else { return };
    fill_zero(spec, "sessionAffinity", "None");
    affinity(spec);
    fill_zero(spec, "type", "ClusterIP");
    each(spec, "ports", |port| {
        fill_zero(port, "protocol", "TCP");
        if zero(port, "targetPort") {
            let number = port.get("port").cloned().unwrap_or_else(|| 0.into());
            port.insert("targetPort".into(), number);
        }
    });
    let external = match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    };
    if external {
        fill_zero(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(text(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    let for_balancer = text(spec, "type") == "LoadBalancer";
    if for_balancer {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
    let status = object.get_mut("status").and_then(Value::as_object_mut);
    let Some(entry) = status.and_then(|status| child_or_new(status, "loadBalancer")) else { return };
    if for_balancer {
        each(entry, "ingress", |ingress| {
            if !zero(ingress, "ip") {
                fill(ingress, "ipMode", "VIP");
            }
        });
    }
}

fn affinity(spec: &mut Fields) {
    if text(spec, "sessionAffinity") == "None" {
        spec.remove("sessionAffinityConfig");
    } else if text(spec, "sessionAffinity") == "ClientIP" {
        let client = child(spec, "sessionAffinityConfig").and_then(|config| child(config, "clientIP"));
        if client.is_none_or(|client| unset(client, "timeoutSeconds")) {
            spec.insert("sessionAffinityConfig".into(), json!({ "clientIP": { "timeoutSeconds": AFFINITY_SECONDS } }));
        }
    }
}

/// Endpoints.
pub(in crate::builtin) fn endpoints(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    each(fields, "subsets", |subset| each(subset, "ports", |port| fill_zero(port, "protocol", "TCP")));
}

/// `EndpointSlice`.
pub(in crate::builtin) fn endpoint_slice(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    fill(fields, "endpoints", Value::Null);
    fill(fields, "ports", Value::Null);
    each(fields, "ports", |port| {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    });
    each(fields, "endpoints", |endpoint| {
        child_or_new(endpoint, "conditions");
    });
}

/// `NetworkPolicy`.
pub(in crate::builtin) fn network_policy(object: &mut Value) {
    let Some(spec) = object.as_object_mut().and_then(|fields| child_or_new(fields, "spec")) else { return };
    child_or_new(spec, "podSelector");
    if zero(spec, "policyTypes") {
        let both = !list(spec, "egress").is_empty();
        spec.insert("policyTypes".into(), if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    }
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| each(rule, "ports", |port| fill(port, "protocol", "TCP")));
    }
}

/// Ingress.
pub(in crate::builtin) fn ingress(object: &mut Value) {
    spec_of(object);
    let status = object.get_mut("status").and_then(Value::as_object_mut);
    status.and_then(|status| child_or_new(status, "loadBalancer"));
}
