//! The nodes of the management cluster: how many there are, what they run, and whether they fail together.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::version::KubernetesVersion;

use super::check::{Check, Facts, Subject};

/// What is read of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFact {
    /// Its name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it is of the control plane.
    pub control_plane: bool,
    /// The version of its kubelet.
    pub kubelet: String,
    /// The zone that it is in, where somebody says so.
    pub zone: Option<String>,
}

/// Nodes, and the version of Kubernetes.
pub(super) fn management(facts: &Facts) -> Check {
    let subject = Subject::Management;
    let server = match &facts.server {
        Ok(server) => server,
        Err(why) => return subject.unknown(format!("the version of its API cannot be read: {why}")),
    };
    let nodes = match &facts.nodes {
        Ok(nodes) => nodes,
        Err(why) => return subject.unknown(format!("Kubernetes {server}; its nodes cannot be read: {why}")),
    };
    if nodes.is_empty() {
        return subject.unknown(format!("Kubernetes {server}; it shows no nodes that could be looked at"));
    }
    let unready: Vec<&str> = nodes.iter().filter(|node| !node.ready).map(|node| node.name.as_str()).collect();
    if unready.len() == nodes.len() {
        let said = format!("none of its {} nodes is ready: nobody would make the cluster", nodes.len());
        return subject.failed(said, "kubectl get nodes");
    }
    if !unready.is_empty() {
        return subject.warning(format!("not ready: {}", unready.join(", ")), "kubectl get nodes");
    }
    if let Some(node) = nodes.iter().find(|node| is_newer(&node.kubelet, server)) {
        let said = format!("{} runs {}, and the API only {server}", node.name, node.kubelet);
        return subject.warning(said, "kubectl get nodes");
    }
    if let Some(wanted) = wanted(facts).filter(|wanted| *wanted as usize > nodes.len()) {
        let said = format!("{} of {wanted} nodes are there", nodes.len());
        return subject.warning(said, "kubectl get machines -A");
    }
    subject.well(format!("Kubernetes {server}, {} nodes, all ready", nodes.len()))
}

/// How many nodes the management cluster says that it has.
fn wanted(facts: &Facts) -> Option<u32> {
    let status = facts.management.as_ref().ok()?.as_ref().and_then(|cluster: &Cluster| cluster.status.as_ref())?;
    let desired = |part: &Option<windlass_api::kind::cluster_api::Progress>| part.as_ref()?.desired_replicas;
    Some(desired(&status.control_plane)? + desired(&status.workers).unwrap_or_default())
}

/// Whether a kubelet is of a later minor than the API: it may not be.
fn is_newer(kubelet: &str, server: &str) -> bool {
    let minor = |text: &str| text.parse::<KubernetesVersion>().ok().map(|version| version.minor());
    minor(kubelet).zip(minor(server)).is_some_and(|(kubelet, server)| kubelet > server)
}

/// Whether the machines of the control plane are apart from each other.
pub(super) fn anti_affinity(facts: &Facts) -> Check {
    let subject = Subject::AntiAffinity;
    let nodes = match &facts.nodes {
        Ok(nodes) => nodes,
        Err(why) => return subject.unknown(format!("the nodes cannot be read: {why}")),
    };
    let control_plane: Vec<&NodeFact> = nodes.iter().filter(|node| node.control_plane).collect();
    if control_plane.is_empty() {
        return subject.unknown("no nodes of the management cluster's control plane are to be seen".to_owned());
    }
    if control_plane.len() == 1 {
        return subject.well("one node of the control plane: there is nothing to keep apart".to_owned());
    }
    let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &control_plane {
        let Some(zone) = node.zone.as_deref() else {
            return subject.unknown(format!("nobody says in which zone {} is", node.name));
        };
        *zones.entry(zone).or_default() += 1;
    }
    let known: BTreeSet<&str> = nodes.iter().filter_map(|node| node.zone.as_deref()).collect();
    let free: Vec<&str> = known.into_iter().filter(|zone| !zones.contains_key(zone)).collect();
    // etcd goes on while more than half of its members do.
    let lost = zones.iter().find(|(_, count)| **count * 2 >= control_plane.len());
    match lost.filter(|_| control_plane.len() > 2) {
        None => subject.well(format!("{} nodes of the control plane in {} zones", control_plane.len(), zones.len())),
        Some((zone, count)) => {
            let free = if free.is_empty() { String::new() } else { format!(", while {} has none", free.join(", ")) };
            let said = format!("{count} of {} nodes of the control plane are in {zone}{free}", control_plane.len());
            subject.warning(said, "kubectl get nodes -L topology.kubernetes.io/zone")
        }
    }
}
