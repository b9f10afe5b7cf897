//! The workload cluster: nodes that come with machines, and controllers that look at what add-ons are made of.

use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::name::NodeName;
use windlass_api::version::KubernetesVersion;
use windlass_plan::inventory::{EtcdMember, Machine, MachineState, Node, Workload};

use super::{Fake, text};

impl Fake {
    /// The controllers of workloads look at one object that they have not looked at since something changed.
    pub(super) fn tick_addons(&mut self) -> Option<String> {
        self.see_nodes();
        let Workload::Reachable { nodes, addons, .. } = &mut self.inventory.workload else { return None };
        for found in addons.values_mut().flatten() {
            let status = match text(&found.live, "/kind") {
                "DaemonSet" => daemon_set_status(&found.live, nodes),
                "Deployment" => deployment_status(&found.live, nodes),
                _ => continue,
            };
            if found.live["status"] != status {
                found.live["status"] = status;
                self.writes += 1;
                found.revision.resource_version = self.writes.to_string();
                let (kind, name) = (text(&found.live, "/kind"), text(&found.live, "/metadata/name"));
                return Some(format!("{kind} {name} is {}", shown(&found.live)));
            }
        }
        None
    }

    pub(super) fn see_nodes(&mut self) {
        let distribution = |machine: &Machine| distribution_on(machine.image.as_ref().unwrap().as_str());
        let is_node = |machine: &&Machine| !matches!(machine.state, MachineState::Joining { .. });
        let control_plane: Vec<Node> = self
            .inventory
            .control_plane
            .machines
            .iter()
            .filter(is_node)
            .map(|machine| Node {
                name: NodeName::new(machine.name.as_str()).unwrap(),
                control_plane: true,
                labelled: true,
                kubelet: machine.version.clone(),
                distribution: Some(distribution(machine)),
                ready: true,
            })
            .collect();
        let workers = self.workers.iter().map(|worker| Node {
            name: NodeName::new("worker").unwrap(),
            control_plane: false,
            labelled: false,
            kubelet: worker.kubernetes.clone(),
            distribution: Some(worker.distribution.clone()),
            ready: true,
        });
        let Workload::Reachable { nodes, etcd, .. } = &mut self.inventory.workload else { return };
        *etcd = (1..).zip(&control_plane).map(|(id, node)| member(id, node.name.as_str())).collect();
        *nodes = control_plane.into_iter().chain(workers).collect();
    }
}

fn member(id: u64, name: &str) -> EtcdMember {
    let leader = id == 1;
    EtcdMember { id, name: name.to_owned(), healthy: true, learner: false, leader, version: None, alarms: [].into() }
}

/// The distribution on an image: what its name ends in.
pub(super) fn distribution_on(image: &str) -> KubernetesVersion {
    let (_, version) = image.split_once("-k8sd-").unwrap();
    version.replacen("-vmware", "+vmware", 1).parse().unwrap()
}

/// The numbers of a status.
fn shown(live: &Value) -> String {
    let number = |field: &str| live["status"][field].to_string();
    match text(live, "/kind") {
        "DaemonSet" => format!("on {} nodes", number("desiredNumberScheduled")),
        _ => format!("available {}, updated {}", number("availableReplicas"), number("updatedReplicas")),
    }
}

fn fits(live: &Value, node: &Node) -> bool {
    let selected = live["spec"]["template"]["spec"]["nodeSelector"][label::DISTRIBUTION_VERSION.name].as_str();
    let distribution = node.distribution.as_ref().map(|version| version.tag().to_string());
    let tolerates = text(live, "/kind") == "DaemonSet" || live["spec"]["template"]["spec"]["tolerations"].is_array();
    selected == distribution.as_deref() && (tolerates || !node.control_plane)
}

fn daemon_set_status(live: &Value, nodes: &[Node]) -> Value {
    let count = nodes.iter().filter(|node| fits(live, node)).count();
    json!({
        "observedGeneration": live["metadata"]["generation"],
        "desiredNumberScheduled": count,
        "numberReady": count,
        "updatedNumberScheduled": count,
    })
}

/// New pods wait for nodes that they fit on; until then the old ones stay.
fn deployment_status(live: &Value, nodes: &[Node]) -> Value {
    let replicas = live["spec"]["replicas"].as_u64().unwrap();
    let runs = nodes.iter().any(|node| fits(live, node));
    let before = live["status"]["availableReplicas"].as_u64().unwrap_or_default();
    json!({
        "observedGeneration": live["metadata"]["generation"],
        "availableReplicas": if runs { replicas } else { before },
        "updatedReplicas": if runs { replicas } else { 1 },
    })
}
