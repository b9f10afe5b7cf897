//! What a node has from its Machine: the labels of some domains, and annotations that lead back to the Machine.
//!
//! Which labels and annotations came from the Machine is written on the node, so that they go when the Machine no longer has
//! them, and all others stay. All of it is one write when the node is first seen, and none as long as nothing changes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Error as ClientError};
use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::{Cluster, Machine};

use super::node::{Seen, unreachable};
use crate::management::context::{Error, Turn, workload_name};
use crate::management::ownership::owners;
use crate::management::write::failed;

type Texts = BTreeMap<String, String>;

/// The label that says what a node is for: `node-role.kubernetes.io/<role>`.
const ROLE: &str = "node-role.kubernetes.io";
/// The domains, with those below them, whose labels a node has from its Machine: one that kubelets may not set, and one of
/// Cluster API.
const DOMAINS: [&str; 2] = ["node-restriction.kubernetes.io", NODE_DOMAIN];
/// The domain that annotations are handed on of.
const NODE_DOMAIN: &str = "node.cluster.x-k8s.io";

const LABELS_FROM_MACHINE: &str = "cluster.x-k8s.io/labels-from-machine";
const ANNOTATIONS_FROM_MACHINE: &str = "cluster.x-k8s.io/annotations-from-machine";
const OWNER_KIND: &str = "cluster.x-k8s.io/owner-kind";
const OWNER_NAME: &str = "cluster.x-k8s.io/owner-name";

/// Puts on the node what it should have from its Machine. `false` if nobody answered.
pub(super) async fn put(turn: &Turn, machine: &Machine, cluster: &Cluster, node: &Seen) -> Result<bool, Error> {
    let Some(change) = change(machine, &node.labels, &node.annotations) else { return Ok(true) };
    let Some(workload) = turn.workloads.get(&workload_name(cluster)?) else { return Ok(false) };
    let api: Api<Node> = Api::all(workload.client());
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    match api.patch(name, &PatchParams::default(), &Patch::Merge(json!({ "metadata": change }))).await {
        Ok(_) => Ok(true),
        // It went while it was looked at, and that will be heard of.
        Err(ClientError::Api(status)) if status.code == 404 => Ok(true),
        Err(error) if unreachable(&error) => Ok(false),
        Err(source) => Err(failed("label the node of", machine, source)),
    }
}

/// What the metadata of the node has to be changed by; `None` if by nothing.
fn change(machine: &Machine, known_labels: &Texts, known_annotations: &Texts) -> Option<Map<String, Value>> {
    let labels = chosen(machine.metadata.labels.as_ref(), |domain| {
        domain == ROLE || DOMAINS.iter().any(|wanted| is_within(domain, wanted))
    });
    let given = chosen(machine.metadata.annotations.as_ref(), |domain| is_within(domain, NODE_DOMAIN));
    let mut annotations = given.clone();
    annotations.insert(LABELS_FROM_MACHINE.to_owned(), keys(&labels));
    annotations.insert(ANNOTATIONS_FROM_MACHINE.to_owned(), keys(&given));
    annotations.extend(back_to(machine));

    let before = |list: &str| known_annotations.get(list).map(String::as_str).unwrap_or_default().split(',');
    let own = [OWNER_KIND, OWNER_NAME].into_iter().filter(|key| known_annotations.contains_key(*key));
    let parts = [
        ("labels", difference(known_labels, &labels, before(LABELS_FROM_MACHINE))),
        ("annotations", difference(known_annotations, &annotations, before(ANNOTATIONS_FROM_MACHINE).chain(own))),
    ];
    let parts = parts.into_iter().filter(|(_, texts)| !texts.is_empty());
    let change: Map<String, Value> = parts.map(|(part, texts)| (part.to_owned(), Value::Object(texts))).collect();
    (!change.is_empty()).then_some(change)
}

/// The annotations that lead from a node to its Machine.
fn back_to(machine: &Machine) -> Texts {
    let meta = &machine.metadata;
    let mut annotations = Texts::from([
        ("cluster.x-k8s.io/cluster-name".to_owned(), machine.spec.cluster_name.clone()),
        ("cluster.x-k8s.io/cluster-namespace".to_owned(), meta.namespace.clone().unwrap_or_default()),
        ("cluster.x-k8s.io/machine".to_owned(), meta.name.clone().unwrap_or_default()),
    ]);
    if let Some(owner) = owners(meta).iter().find(|owner| owner.controller == Some(true)) {
        annotations.insert(OWNER_KIND.to_owned(), owner.kind.clone());
        annotations.insert(OWNER_NAME.to_owned(), owner.name.clone());
    }
    annotations
}

/// The texts whose keys are of a domain that is wanted.
fn chosen(texts: Option<&Texts>, wanted: impl Fn(&str) -> bool) -> Texts {
    let domain = |key: &str| key.split_once('/').is_some_and(|(domain, _)| wanted(domain));
    texts.into_iter().flatten().filter(|(key, _)| domain(key)).map(|(key, text)| (key.clone(), text.clone())).collect()
}

fn is_within(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

fn keys(texts: &Texts) -> String {
    texts.keys().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// What is missing or different, and of what was there before what is not wanted any more.
fn difference<'a>(known: &Texts, wanted: &Texts, before: impl Iterator<Item = &'a str>) -> Map<String, Value> {
    let differs = wanted.iter().filter(|(key, text)| known.get(*key) != Some(text));
    let mut change: Map<String, Value> = differs.map(|(key, text)| (key.clone(), json!(text))).collect();
    let gone = before.filter(|key| known.contains_key(*key) && !wanted.contains_key(*key));
    change.extend(gone.map(|key| (key.to_owned(), Value::Null)));
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node that has these labels, and these annotations besides those that lead back, gets from such a Machine.
    #[track_caller]
    fn check(labels: &Value, annotations: &Value, [known_labels, known]: [Value; 2], expected: Option<&Value>) {
        let machine: Machine = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": "m", "namespace": "ns", "labels": labels, "annotations": annotations},
            "spec": {"clusterName": "c", "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "m"}},
        }))
        .unwrap();
        let read = |texts: Value| serde_json::from_value::<Texts>(texts).unwrap();
        let mut all = read(json!({
            "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/cluster-namespace": "ns",
            "cluster.x-k8s.io/machine": "m", LABELS_FROM_MACHINE: "", ANNOTATIONS_FROM_MACHINE: "",
        }));
        all.extend(read(known));
        assert_eq!(change(&machine, &read(known_labels), &all).map(Value::Object).as_ref(), expected);
    }

    #[test]
    fn labels_of_some_domains_reach_the_node() {
        check(&json!({"tier": "front", "example.com/tier": "x"}), &json!({}), [json!({}), json!({})], None);
        for key in [
            "node-role.kubernetes.io/gpu",
            "node-restriction.kubernetes.io/zone",
            "a.node-restriction.kubernetes.io/zone",
            "node.cluster.x-k8s.io/tier",
            "a.node.cluster.x-k8s.io/tier",
        ] {
            let expected = json!({"labels": {key: "x"}, "annotations": {LABELS_FROM_MACHINE: key}});
            check(&json!({key: "x"}), &json!({}), [json!({}), json!({})], Some(&expected));
        }
        for key in ["a.node-role.kubernetes.io/gpu", "mynode.cluster.x-k8s.io/tier", "node.cluster.x-k8s.io"] {
            check(&json!({key: "x"}), &json!({}), [json!({}), json!({})], None);
        }
    }

    #[test]
    fn what_a_machine_does_not_have_any_more_goes_and_what_others_wrote_stays() {
        let known = json!({LABELS_FROM_MACHINE: "node.cluster.x-k8s.io/a"});
        check(
            &json!({}),
            &json!({}),
            [json!({"node.cluster.x-k8s.io/a": "1", "node.cluster.x-k8s.io/b": "2"}), known],
            Some(&json!({"labels": {"node.cluster.x-k8s.io/a": null}, "annotations": {LABELS_FROM_MACHINE: ""}})),
        );
        check(
            &json!({}),
            &json!({"node.cluster.x-k8s.io/note": "n", "note": "n"}),
            [json!({}), json!({OWNER_KIND: "MachineSet"})],
            Some(&json!({"annotations": {
                "node.cluster.x-k8s.io/note": "n", ANNOTATIONS_FROM_MACHINE: "node.cluster.x-k8s.io/note", OWNER_KIND: null,
            }})),
        );
    }
}
