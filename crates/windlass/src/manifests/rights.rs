//! Accounts and roles, made of the table of rights.

use std::collections::BTreeMap;

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_controller::reconcile::JOB_NAMESPACE;
use windlass_controller::rights::{self, Component, Right};
use windlass_controller::webhooks::NAMESPACE;
use windlass_plan::profile::Profile;

const GROUP: &str = "rbac.authorization.k8s.io";

/// An account for each part, a role for what it may do everywhere, and one in each namespace where it may do more.
pub fn objects() -> Vec<Value> {
    Component::ALL.into_iter().flat_map(of).collect()
}

fn of(component: Component) -> Vec<Value> {
    let (name, [account, namespace]) = (component.as_str(), account(component));
    let mut objects = Vec::new();
    // The one of a namespace is there without us.
    if account != "default" {
        objects.push(json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": account, "namespace": namespace },
        }));
    }
    let mut within: BTreeMap<Option<&str>, Vec<Value>> = BTreeMap::new();
    for right in rights::of(component) {
        within.entry(right.namespace).or_default().push(rule(right));
    }
    for (namespace, rules) in within {
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        objects.extend(bound(&metadata, &json!(rules), component));
    }
    objects
}

/// A role with these rules, and that a part has it: in a namespace, if it says so.
fn bound(metadata: &Value, rules: &Value, component: Component) -> [Value; 2] {
    let (role, binding) = match &metadata["namespace"] {
        Value::Null => ("ClusterRole", "ClusterRoleBinding"),
        _ => ("Role", "RoleBinding"),
    };
    let ([account, namespace], api_version) = (account(component), format!("{GROUP}/v1"));
    [
        json!({ "apiVersion": api_version, "kind": role, "metadata": metadata, "rules": rules }),
        json!({
            "apiVersion": api_version,
            "kind": binding,
            "metadata": metadata,
            "roleRef": { "apiGroup": GROUP, "kind": role, "name": metadata["name"] },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
        }),
    ]
}

/// What the parts may do to the templates of an infrastructure that was added, and nothing else: roles of their own, which are bound
/// beside the others.
pub fn of_profile(profile: &Profile) -> Vec<Value> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&profile.group, &profile.version, &profile.template));
    let of = |component: Component| {
        let verbs = rights::of_templates(component);
        let name = format!("{}-{}", component.as_str(), profile.map_kind());
        let rules = json!([{ "apiGroups": [profile.group], "resources": [resource.plural], "verbs": verbs }]);
        let objects = (!verbs.is_empty()).then(|| bound(&json!({ "name": name }), &rules, component));
        objects.into_iter().flatten()
    };
    Component::ALL.into_iter().flat_map(of).collect()
}

/// Which account a part has, and in which namespace. The pods of Jobs name none, so that they have the one of their namespace,
/// where nothing else runs.
pub fn account(component: Component) -> [&'static str; 2] {
    match component {
        Component::Controllers | Component::Answers => [component.as_str(), NAMESPACE],
        Component::Upgrader => ["default", JOB_NAMESPACE],
    }
}

fn rule(right: &Right) -> Value {
    let mut rule = json!({ "apiGroups": [right.group], "resources": right.resources, "verbs": right.verbs });
    if !right.names.is_empty() {
        rule["resourceNames"] = json!(right.names);
    }
    rule
}
