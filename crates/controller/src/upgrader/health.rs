//! Whether a machine of the control plane does its work: it has a node, the node is ready and known as one of the control
//! plane, and the four programs run on it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::is_true;
use windlass_api::label::{NODE_CONTROL_PLANE, NODE_MASTER};

use super::Error;
use super::attempt::Attempt;
use super::wait::{Patience, Seen, missing, named};

/// The condition of machines, nodes and pods that do their work.
pub const READY: &str = "Ready";

/// Where the programs of a control plane run.
pub const KUBE_SYSTEM: &str = "kube-system";

/// The programs of a control plane; each runs as a pod named after it and the node.
const COMPONENTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// A machine that has become a node.
struct Joined {
    node: String,
    provider_id: String,
}

/// Waits until a machine is healthy. Returns the name of its node.
pub async fn wait(attempt: &Attempt<'_>, machine: &str, patience: &Patience) -> Result<String, Error> {
    let joined = patience.until(attempt.machines(), named(machine), |found| joined(machine, found)).await?;
    let nodes: Api<Node> = Api::all(attempt.workload.client.clone());
    let ready = |found: &BTreeMap<String, Node>| node_is_ready(&joined, found);
    patience.until(nodes, named(&joined.node), ready).await?;
    let pods: Api<Pod> = Api::namespaced(attempt.workload.client.clone(), KUBE_SYSTEM);
    let which = watcher::Config::default().fields(&format!("spec.nodeName={}", joined.node));
    patience.until(pods, which, |found| components_run(&joined.node, found)).await?;
    Ok(joined.node)
}

/// The node that a machine has become.
pub fn node_name(machine: &Machine) -> Option<String> {
    machine.status.as_ref()?.node_ref.as_ref().map(|node| node.name.clone())
}

fn joined(name: &str, found: &BTreeMap<String, Machine>) -> Seen<Joined> {
    let Some(machine) = found.get(name) else { return missing("it is gone") };
    if machine.meta().deletion_timestamp.is_some() {
        return missing("it is being deleted");
    }
    let Some(provider_id) = machine.spec.provider_id.clone() else { return missing("it has no providerID") };
    let Some(node) = node_name(machine) else { return missing("it has no node") };
    match &machine.status {
        Some(status) if is_true(&status.conditions, READY) => Ok(Joined { node, provider_id }),
        _ => missing("it is not ready"),
    }
}

fn node_is_ready(joined: &Joined, found: &BTreeMap<String, Node>) -> Seen<()> {
    let name = &joined.node;
    let Some(node) = found.get(name) else { return missing(format!("there is no node {name}")) };
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    if provider_id != Some(&joined.provider_id) {
        return missing(format!("the node {name} has another providerID"));
    }
    let labels = node.labels();
    if !NODE_CONTROL_PLANE.is_in(labels) && !NODE_MASTER.is_in(labels) {
        return missing(format!("the node {name} is not labelled as one of the control plane"));
    }
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    if !conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True") {
        return missing(format!("the node {name} is not ready"));
    }
    Ok(())
}

fn components_run(node: &str, found: &BTreeMap<String, Pod>) -> Seen<()> {
    for component in COMPONENTS {
        let name = format!("{component}-{node}");
        let Some(pod) = found.get(&name) else { return missing(format!("there is no pod {name}")) };
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        if !conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True") {
            return missing(format!("the pod {name} is not ready"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(edit: impl FnOnce(&mut Value)) -> Node {
        let mut node = json!({
            "metadata": { "name": "n", "labels": { NODE_MASTER.name: "" } },
            "spec": { "providerID": "wcp://1" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        edit(&mut node);
        serde_json::from_value(node).unwrap()
    }

    fn check_node(edit: impl FnOnce(&mut Value), lacking: Option<&str>) {
        let joined = Joined { node: "n".to_owned(), provider_id: "wcp://1".to_owned() };
        let seen = node_is_ready(&joined, &BTreeMap::from([("n".to_owned(), node(edit))]));
        assert_eq!(seen.err().map(|lacking| lacking.0).as_deref(), lacking);
    }

    #[test]
    fn a_node_is_ready_labelled_and_of_that_machine() {
        check_node(|_| (), None);
        check_node(|node| node["metadata"]["labels"] = json!({ NODE_CONTROL_PLANE.name: "" }), None);
        check_node(
            |node| node["metadata"]["labels"] = json!({}),
            Some("the node n is not labelled as one of the control plane"),
        );
        check_node(|node| node["spec"]["providerID"] = json!("wcp://2"), Some("the node n has another providerID"));
        check_node(
            |node| node["status"]["conditions"][0]["status"] = json!("Unknown"),
            Some("the node n is not ready"),
        );
    }

    #[test]
    fn all_four_programs_must_run() {
        let pod = |name: String, ready: &str| -> (String, Pod) {
            let pod = json!({
                "metadata": { "name": name },
                "status": { "conditions": [{ "type": "Ready", "status": ready }] },
            });
            (name, serde_json::from_value(pod).unwrap())
        };
        let all = |ready: &str| -> BTreeMap<String, Pod> {
            COMPONENTS.iter().map(|component| pod(format!("{component}-n"), ready)).collect()
        };
        assert!(components_run("n", &all("True")).is_ok());
        assert_eq!(components_run("n", &all("False")).unwrap_err().0, "the pod etcd-n is not ready");
        let mut three = all("True");
        three.remove("kube-scheduler-n");
        assert_eq!(components_run("n", &three).unwrap_err().0, "there is no pod kube-scheduler-n");
    }
}
