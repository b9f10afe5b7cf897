//! Whether a machine of the control plane does its work: it has a node, the node is ready and known as one of the control
//! plane, and the four programs run on it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::is_true;
use windlass_api::label::{NODE_CONTROL_PLANE, NODE_MASTER};

use super::attempt::Attempt;
use super::error::answer;
use super::wait;

/// The condition of machines, nodes and pods that do their work.
pub const READY: &str = "Ready";

/// Where the programs of a control plane run.
pub const KUBE_SYSTEM: &str = "kube-system";

/// The programs of a control plane; each runs as a pod named after it and the node.
const COMPONENTS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// A machine that has become a node.
pub struct Joined {
    node: String,
    provider_id: String,
}

/// The node that a machine has become, if the machine itself says that all is well.
pub fn joined(machine: &Machine) -> Option<Joined> {
    let status = machine.status.as_ref()?;
    if machine.meta().deletion_timestamp.is_some() || !is_true(&status.conditions, READY) {
        return None;
    }
    Some(Joined { node: status.node_ref.as_ref()?.name.clone(), provider_id: machine.spec.provider_id.clone()? })
}

/// Whether a machine really does its work; otherwise what is missing.
pub async fn look(attempt: &Attempt<'_>, joined: &Joined) -> Result<(), String> {
    let silent = |error: kube::Error| format!("the API does not answer: {}", answer(&error));
    let node = nodes(attempt).get_opt(&joined.node).await.map_err(silent)?;
    node_is_ready(joined, node.as_ref())?;
    let listed = pods(attempt).list(&ListParams::default().fields(&on_node(&joined.node))).await.map_err(silent)?;
    let found = listed.items.into_iter().map(|pod| (pod.name_any(), pod)).collect();
    components_run(&joined.node, &found)
}

/// Watches a machine until it does its work, or until the end.
pub async fn until_well(attempt: &Attempt<'_>, joined: &Joined, end: Instant) {
    let is_ready = |found: &BTreeMap<String, Node>| node_is_ready(joined, found.get(&joined.node)).is_ok();
    wait::until(nodes(attempt), wait::named(&joined.node), end, is_ready).await;
    let which = watcher::Config::default().fields(&on_node(&joined.node));
    wait::until(pods(attempt), which, end, |found| components_run(&joined.node, found).is_ok()).await;
}

fn nodes(attempt: &Attempt<'_>) -> Api<Node> {
    Api::all(attempt.workload.client.clone())
}

fn pods(attempt: &Attempt<'_>) -> Api<Pod> {
    Api::namespaced(attempt.workload.client.clone(), KUBE_SYSTEM)
}

fn on_node(node: &str) -> String {
    format!("spec.nodeName={node}")
}

fn node_is_ready(joined: &Joined, found: Option<&Node>) -> Result<(), String> {
    let name = &joined.node;
    let node = found.ok_or_else(|| format!("there is no node {name}"))?;
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    if provider_id != Some(&joined.provider_id) {
        return Err(format!("the node {name} has another providerID"));
    }
    let labels = node.labels();
    if !NODE_CONTROL_PLANE.is_in(labels) && !NODE_MASTER.is_in(labels) {
        return Err(format!("the node {name} is not labelled as one of the control plane"));
    }
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    if !conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True") {
        return Err(format!("the node {name} is not ready"));
    }
    Ok(())
}

fn components_run(node: &str, found: &BTreeMap<String, Pod>) -> Result<(), String> {
    for component in COMPONENTS {
        let name = format!("{component}-{node}");
        let Some(pod) = found.get(&name) else { return Err(format!("there is no pod {name}")) };
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        if !conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True") {
            return Err(format!("the pod {name} is not ready"));
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
        assert_eq!(node_is_ready(&joined, Some(&node(edit))).err().as_deref(), lacking);
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
        assert_eq!(components_run("n", &all("False")).unwrap_err(), "the pod etcd-n is not ready");
        let mut three = all("True");
        three.remove("kube-scheduler-n");
        assert_eq!(components_run("n", &three).unwrap_err(), "there is no pod kube-scheduler-n");
    }
}
