//! What the author of a built-in object should know, though the object is valid.

use serde_json::Value;

use crate::value::Fields;

/// The warnings about an object of a built-in resource.
pub fn of(resource: &str, object: &Value) -> Vec<String> {
    match resource {
        "services" => service(object),
        "pods" => pod(object.at("spec"), "spec"),
        "daemonsets.apps"
        | "deployments.apps"
        | "jobs.batch"
        | "replicasets.apps"
        | "replicationcontrollers"
        | "statefulsets.apps" => pod(object.at("spec").at("template").at("spec"), "spec.template.spec"),
        "cronjobs.batch" => {
            let template = object.at("spec").at("jobTemplate").at("spec").at("template");
            pod(template.at("spec"), "spec.jobTemplate.spec.template.spec")
        }
        _ => Vec::new(),
    }
}

fn pod(spec: &Value, path: &str) -> Vec<String> {
    let negative = spec.int("terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0);
    let text = "must be >= 0; negative values are invalid and will be treated as 1";
    negative.then(|| format!("{path}.terminationGracePeriodSeconds: {text}")).into_iter().collect()
}

fn service(object: &Value) -> Vec<String> {
    let spec = object.at("spec");
    let mut warnings = Vec::new();
    if !object["metadata"]["annotations"]["service.kubernetes.io/topology-aware-hints"].is_null() {
        warnings.push(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead"
                .to_owned(),
        );
    }
    let named = spec.text("type") == "ExternalName";
    let headless = spec.text("type") == "ClusterIP" && spec.text("clusterIP") == "None";
    let addresses = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    if headless {
        let ignored = [
            ("loadBalancerIP", !spec.text("loadBalancerIP").is_empty()),
            ("externalIPs", addresses),
            ("SessionAffinity", spec.text("sessionAffinity") != "None"),
        ];
        let ignored = ignored.iter().filter(|(_, set)| *set);
        warnings.extend(ignored.map(|(field, _)| format!("spec.{field} is ignored for headless services")));
    }
    if addresses && !headless && !named {
        warnings.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    if addresses && named {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !named && !spec.text("externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.text("trafficDistribution") == "PreferClose" {
        warnings.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[track_caller]
    fn check(spec: &Value, expected: &[&str]) {
        assert_eq!(super::of("services", &json!({"spec": spec})), expected);
    }

    #[test]
    fn a_service_is_told_what_is_ignored() {
        let headless = json!({"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP", "externalIPs": ["8.8.8.8"]});
        check(
            &headless,
            &[
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
        );
        check(
            &json!({"type": "ClusterIP", "externalIPs": ["8.8.8.8"], "externalName": "x"}),
            &[
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
                "spec.externalName is ignored when spec.type is not \"ExternalName\"",
            ],
        );
        check(&json!({"type": "ExternalName", "externalName": "x"}), &[]);
    }
}
