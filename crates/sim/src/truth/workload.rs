//! What the changes of a workload cluster's API server say, and those of the records beside its API.

use std::sync::Arc;

use windlass_api::label;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::store::{Change, ChangeKind};

use super::{AddonObject, Cluster, Fact, Member, Node, Proxy, Workload, read};
use crate::workload::record;

type Told = Result<Vec<Fact>, serde_json::Error>;

impl Cluster {
    pub(super) fn fold_workload(&mut self, resource: &Arc<str>, change: &Change) -> Told {
        match &**resource {
            "nodes" => self.fold_node(change),
            "pods" => self.workload.fold_pod(change),
            record::MEMBERS => self.workload.fold_member(change),
            record::MACHINES => self.workload.fold_power(change),
            _ => match change.object.label(label::ADDON.name) {
                // What others derive from an add-on's objects carries its labels too.
                Some(addon) if change.object.owners.is_empty() && &**resource != "endpoints" => {
                    self.workload.fold_addon(resource, addon, change)
                }
                _ => Ok(Vec::new()),
            },
        }
    }

    fn fold_node(&mut self, change: &Change) -> Told {
        let node = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            self.workload.nodes.remove(&node);
            return Ok(vec![Fact::NodeGone { node }]);
        }
        let read: read::Node = serde_json::from_slice(&change.object.json)?;
        let status = read.status.unwrap_or_default();
        let kubelet = status.node_info.map(|info| info.kubelet_version).unwrap_or_default();
        let has = |key: &str| change.object.label(key).is_some();
        let now = Node {
            kubelet: kubelet.parse().ok(),
            control_plane: has(label::NODE_CONTROL_PLANE.name) || has(label::NODE_MASTER.name),
            ready: read::is_true(status.conditions.as_ref(), "Ready"),
        };
        if now.ready
            && let Some(machine) = self.machines.get_mut(&node)
        {
            machine.settled = true;
        }
        let ready = now.ready;
        let before = self.workload.nodes.insert(node.clone(), now.clone());
        let mut facts = Vec::new();
        match &before {
            None => facts.push(Fact::NodeRegistered { node: node.clone(), kubelet: kubelet.into() }),
            Some(before) if (&before.kubelet, before.control_plane) != (&now.kubelet, now.control_plane) => {
                facts.push(Fact::ComponentsChanged);
            }
            Some(_) => {}
        }
        match (before.is_some_and(|before| before.ready), ready) {
            (false, true) => facts.push(Fact::NodeReady { node }),
            (true, false) => facts.push(Fact::NodeNotReady { node }),
            (true, true) | (false, false) => {}
        }
        Ok(facts)
    }
}

impl Workload {
    /// Takes note of API servers and kube-proxies, which are told by their names before anything is read.
    fn fold_pod(&mut self, change: &Change) -> Told {
        let key = &change.object.key;
        if &*key.namespace != "kube-system" {
            return Ok(Vec::new());
        }
        let changed = if let Some(node) = key.name.strip_prefix("kube-apiserver-") {
            self.fold_api_server(node, change)?
        } else if key.name.starts_with("kube-proxy-") {
            self.fold_proxy(change)?
        } else {
            false
        };
        Ok(if changed { vec![Fact::ComponentsChanged] } else { Vec::new() })
    }

    fn fold_api_server(&mut self, node: &str, change: &Change) -> Result<bool, serde_json::Error> {
        if change.kind == ChangeKind::Deleted {
            return Ok(self.api_servers.remove(node).is_some());
        }
        let read: read::Pod = serde_json::from_slice(&change.object.json)?;
        let Some(version) = image_version(&read.spec) else { return Ok(false) };
        self.minors_served.insert(version.minor());
        let before = self.api_servers.insert(node.into(), version.clone());
        Ok(before != Some(version))
    }

    fn fold_proxy(&mut self, change: &Change) -> Result<bool, serde_json::Error> {
        let name = &change.object.key.name;
        if change.kind == ChangeKind::Deleted {
            return Ok(self.proxies.remove(name).is_some());
        }
        let read: read::Pod = serde_json::from_slice(&change.object.json)?;
        let Some(version) = image_version(&read.spec) else { return Ok(false) };
        // A pod without a node runs nowhere.
        let Some(node) = read.spec.node_name else { return Ok(false) };
        let now = Proxy { node, version };
        let before = self.proxies.insert(name.clone(), now.clone());
        Ok(before != Some(now))
    }

    fn fold_member(&mut self, change: &Change) -> Told {
        let node = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            let Some(member) = self.members.remove(&node) else { return Ok(Vec::new()) };
            let healthy = self.is_healthy(&node, &member);
            return Ok(vec![Fact::MemberRemoved { node, member, healthy }]);
        }
        let read: read::Record<read::Member> = serde_json::from_slice(&change.object.json)?;
        let read::Member { learner, started, leader } = read.record;
        let now = Member { learner, started, leader };
        let Some(was) = self.members.insert(node.clone(), now) else {
            return Ok(vec![Fact::MemberAdded { node, learner }]);
        };
        let mut facts = Vec::new();
        if started && !was.started {
            facts.push(Fact::MemberStarted { node: node.clone() });
        }
        if was.learner && !learner {
            facts.push(Fact::MemberPromoted { node: node.clone() });
        }
        if leader && !was.leader {
            facts.push(Fact::LeaderMoved { node });
        }
        Ok(facts)
    }

    fn fold_power(&mut self, change: &Change) -> Told {
        let node = &change.object.key.name;
        let read: read::Record<read::Power> = serde_json::from_slice(&change.object.json)?;
        let changed = if read.record.on && change.kind != ChangeKind::Deleted {
            self.running.insert(node.clone(), read.record.kubelet).is_none()
        } else {
            self.running.remove(node).is_some()
        };
        Ok(if changed { vec![Fact::ComponentsChanged] } else { Vec::new() })
    }

    fn fold_addon(&mut self, resource: &Arc<str>, addon: &str, change: &Change) -> Told {
        let key = (resource.clone(), change.object.key.to_string().into_boxed_str());
        let object = format!("{}/{}", kind(resource), change.object.key.name);
        let addon: Box<str> = addon.into();
        if change.kind == ChangeKind::Deleted {
            self.addons.remove(&key);
            return Ok(vec![Fact::AddonRemoved { addon, object }]);
        }
        let now = match &**resource {
            "daemonsets.apps" | "deployments.apps" | "statefulsets.apps" => {
                let read: read::Templated = serde_json::from_slice(&change.object.json)?;
                let pods = read.spec.and_then(|spec| spec.template).and_then(|template| template.spec);
                let selector = pods.and_then(|pods| pods.node_selector).unwrap_or_default();
                let bound = selector.get(label::DISTRIBUTION_VERSION.name).map(|distribution| canonical(distribution));
                let generation = read.metadata.generation;
                let observed = read.status.and_then(|status| status.observed_generation) >= generation;
                AddonObject { addon: addon.clone(), distribution: bound, generation, observed }
            }
            _ => {
                let read: read::Owned = serde_json::from_slice(&change.object.json)?;
                let generation = read.metadata.generation;
                AddonObject { addon: addon.clone(), distribution: None, generation, observed: true }
            }
        };
        let (distribution, generation) = (now.distribution.clone(), now.generation);
        let before = self.addons.insert(key, now);
        // A change of status is not an application; kinds without a status have no generation.
        if generation.is_some() && before.is_some_and(|before| before.generation == generation) {
            return Ok(Vec::new());
        }
        Ok(vec![Fact::AddonApplied { addon, object, distribution }])
    }
}

/// The version in the tag of a pod's first image.
fn image_version(pod: &read::PodSpec) -> Option<KubernetesVersion> {
    let image = &pod.containers.first()?.image;
    image.rsplit_once(':')?.1.parse().ok()
}

/// A version as fields have it, from the way in which nodes are labelled.
fn canonical(label: &str) -> Box<str> {
    label.parse::<KubernetesVersion>().map_or_else(|_| label.into(), |version| version.as_str().into())
}

/// The kind of the objects of a resource, where people know it better.
fn kind(resource: &str) -> &str {
    match resource {
        "daemonsets.apps" => "DaemonSet",
        "deployments.apps" => "Deployment",
        "statefulsets.apps" => "StatefulSet",
        "configmaps" => "ConfigMap",
        "services" => "Service",
        "serviceaccounts" => "ServiceAccount",
        "clusterroles.rbac.authorization.k8s.io" => "ClusterRole",
        "clusterrolebindings.rbac.authorization.k8s.io" => "ClusterRoleBinding",
        other => other,
    }
}
