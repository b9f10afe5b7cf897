//! What the changes of a workload cluster's API server say, and those of the records beside its API.

use std::sync::Arc;

use serde::de::IgnoredAny;
use windlass_api::label;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::store::{Change, ChangeKind};

use super::{AddonObject, Kubeadm, Member, Node, Trouble, Workload};
use crate::truth::{Budget, Cluster, Fact, read};
use crate::workload::TROUBLES;
use crate::workload::record;

pub(super) type Told = Result<Vec<Fact>, serde_json::Error>;

impl Cluster {
    pub(in crate::truth) fn fold_workload(&mut self, resource: &Arc<str>, change: &Change) -> Told {
        let workload = &mut self.workload;
        if &**resource == "podsecuritypolicies.policy" {
            workload.count_security_policy(change.kind);
        }
        match &**resource {
            "nodes" => self.fold_node(change),
            "pods" => workload.fold_pod(change),
            "poddisruptionbudgets.policy" => workload.fold_budget(change),
            "volumeattachments.storage.k8s.io" => workload.fold_attachment(change),
            "customresourcedefinitions.apiextensions.k8s.io" => fold_definition(change),
            "configmaps" if is_kubeadm_config(change) => workload.fold_kubeadm_config(change),
            record::MEMBERS => workload.fold_member(change),
            record::MACHINES => workload.fold_power(change),
            TROUBLES => workload.fold_trouble(change),
            _ => match change.object.label(label::ADDON.name) {
                // What others derive from an add-on's objects carries its labels too.
                Some(addon) if change.object.owners.is_empty() && &**resource != "endpoints" => {
                    workload.fold_addon(resource, addon, change)
                }
                _ => Ok(Vec::new()),
            },
        }
    }

    fn fold_node(&mut self, change: &Change) -> Told {
        let node = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            let provider_id = self.workload.nodes.remove(&node).and_then(|node| node.provider_id);
            return Ok(vec![Fact::NodeGone { node, provider_id }]);
        }
        let read: read::Node = serde_json::from_slice(&change.object.json)?;
        let status = read.status.unwrap_or_default();
        let kubelet = status.node_info.map(|info| info.kubelet_version).unwrap_or_default();
        let has = |key: &str| change.object.label(key).is_some();
        let spec = read.spec.unwrap_or_default();
        let now = Node {
            kubelet: kubelet.parse().ok(),
            control_plane: has(label::NODE_CONTROL_PLANE.name) || has(label::NODE_MASTER.name),
            ready: read::is_true(status.conditions.as_ref(), "Ready"),
            cordoned: spec.unschedulable.unwrap_or_default(),
            distribution: change.object.label(label::DISTRIBUTION_VERSION.name).map(canonical),
            provider_id: spec.provider_id,
        };
        if now.ready
            && let Some(machine) = self.machines.get_mut(&node)
        {
            machine.settled = true;
        }
        let before = self.workload.nodes.insert(node.clone(), now.clone());
        Ok(node_facts(&node, before.as_ref(), &now, &kubelet, status.conditions.as_ref()))
    }
}

fn node_facts(
    node: &str,
    before: Option<&Node>,
    now: &Node,
    kubelet: &str,
    conditions: Option<&Vec<read::Condition>>,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    let name = || Box::<str>::from(node);
    match before {
        None => facts.push(Fact::NodeRegistered { node: name(), kubelet: kubelet.into() }),
        Some(before) if before.is_other_component(now) => facts.push(Fact::ComponentsChanged),
        Some(_) => {}
    }
    match (before.is_some_and(|before| before.cordoned), now.cordoned) {
        (false, true) => facts.push(Fact::NodeCordoned { node: name() }),
        (true, false) => facts.push(Fact::NodeUncordoned { node: name() }),
        (true, true) | (false, false) => {}
    }
    let why = || read::reason(conditions, "Ready");
    match (before.is_some_and(|before| before.ready), now.ready) {
        (false, true) => facts.push(Fact::NodeReady { node: name() }),
        (true, false) => facts.push(Fact::NodeNotReady { node: name(), why: why() }),
        (true, true) | (false, false) => {}
    }
    facts
}

impl Node {
    fn is_other_component(&self, now: &Self) -> bool {
        (&self.kubelet, self.control_plane, &self.distribution) != (&now.kubelet, now.control_plane, &now.distribution)
    }
}

impl Workload {
    fn fold_budget(&mut self, change: &Change) -> Told {
        let key = change.object.key.to_string().into_boxed_str();
        if change.kind == ChangeKind::Deleted {
            self.budgets.remove(&key);
        } else {
            let read: read::Budget = serde_json::from_slice(&change.object.json)?;
            self.budgets.insert(key, Budget::new(read));
        }
        Ok(Vec::new())
    }

    fn fold_attachment(&mut self, change: &Change) -> Told {
        let name = &change.object.key.name;
        if change.kind == ChangeKind::Deleted {
            self.attachments.remove(name);
        } else {
            let read: read::Attachment = serde_json::from_slice(&change.object.json)?;
            self.attachments.insert(name.clone(), read.spec.node_name);
        }
        Ok(Vec::new())
    }

    fn count_security_policy(&mut self, kind: ChangeKind) {
        match kind {
            ChangeKind::Added => self.security_policies += 1,
            ChangeKind::Deleted => self.security_policies = self.security_policies.saturating_sub(1),
            ChangeKind::Modified => {}
        }
    }

    /// Takes note of the version, the kind of etcd, and the API servers that kubeadm would tell to those who join.
    fn fold_kubeadm_config(&mut self, change: &Change) -> Told {
        let mut now = Kubeadm::default();
        if change.kind != ChangeKind::Deleted {
            let read: read::ConfigMap = serde_json::from_slice(&change.object.json)?;
            let text = |key: &str| read.data.as_ref().and_then(|data| data.get(key)).map_or("", String::as_str);
            // Who cannot read it cannot join, and says so; there is nothing to learn from it here.
            let cluster: read::ClusterConfiguration =
                serde_saphyr::from_str(text("ClusterConfiguration")).unwrap_or_default();
            let status: read::ClusterStatus<IgnoredAny> =
                serde_saphyr::from_str(text("ClusterStatus")).unwrap_or_default();
            now.version = cluster.kubernetes_version.and_then(|version| version.parse().ok());
            now.external_etcd = Some(cluster.etcd.is_some_and(|etcd| etcd.external.is_some()));
            now.endpoints = status.api_endpoints.unwrap_or_default().into_keys().map(String::into_boxed_str).collect();
        }
        if self.kubeadm == now {
            return Ok(Vec::new());
        }
        let (was, is) = (self.kubeadm.external_etcd, now.external_etcd);
        let flipped = was.is_some() && is.is_some() && was != is;
        self.kubeadm = now;
        Ok(vec![Fact::KubeadmConfigured { flipped }])
    }

    fn fold_member(&mut self, change: &Change) -> Told {
        let node = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            let Some(member) = self.members.remove(&node) else { return Ok(Vec::new()) };
            let healthy = self.is_healthy(&node, &member);
            return Ok(vec![Fact::MemberRemoved { node, member, healthy }]);
        }
        let read: read::Record<read::Member> = serde_json::from_slice(&change.object.json)?;
        let read::Member { learner, started, leader, version } = read.record;
        let now = Member { learner, started, leader, version };
        let Some(was) = self.members.insert(node.clone(), now.clone()) else {
            let mut facts = vec![Fact::MemberAdded { node: node.clone(), learner }];
            facts.extend(self.version_fact(&node, &now));
            return Ok(facts);
        };
        let mut facts = Vec::new();
        if started && !was.started {
            facts.push(Fact::MemberStarted { node: node.clone() });
        }
        if was.learner && !learner {
            facts.push(Fact::MemberPromoted { node: node.clone() });
        }
        if was.version != now.version {
            facts.extend(self.version_fact(&node, &now));
        }
        if leader && !was.leader {
            facts.push(Fact::LeaderMoved { node });
        }
        Ok(facts)
    }

    fn fold_trouble(&mut self, change: &Change) -> Told {
        let node = change.object.key.name.clone();
        let mut now = Trouble::default();
        if change.kind != ChangeKind::Deleted {
            let read: read::Record<read::Trouble> = serde_json::from_slice(&change.object.json)?;
            now = Trouble { cut_off: read.record.cut_off, alarms: read.record.alarms };
        }
        let was = self.troubles.insert(node.clone(), now.clone()).unwrap_or_default();
        let mut facts = Vec::new();
        if was.cut_off != now.cut_off {
            facts.push(Fact::ComponentsChanged);
        }
        if was.alarms != now.alarms {
            let alarms = now.alarms.iter().map(|alarm| String::from(&**alarm)).collect();
            facts.push(Fact::MemberAlarmed { node, alarms });
        }
        Ok(facts)
    }

    /// A member has a version: what was the newest minor before?
    fn version_fact(&mut self, node: &str, member: &Member) -> Option<Fact> {
        let minor = member.version.as_ref()?.minor();
        let newest = self.etcd_newest;
        self.etcd_newest = newest.max(Some(minor));
        Some(Fact::MemberVersion { node: node.into(), newest })
    }

    fn fold_power(&mut self, change: &Change) -> Told {
        let node = change.object.key.name.clone();
        let read: read::Record<read::Power> = serde_json::from_slice(&change.object.json)?;
        if read.record.on && change.kind != ChangeKind::Deleted {
            let mut facts = Vec::new();
            if let Some(why) = read.record.failure
                && self.given_up.insert(node.clone())
            {
                facts.push(Fact::KubeadmFailed { node: node.clone(), why });
            }
            if self.running.insert(node.clone(), read.record.kubelet).is_none() {
                facts.push(Fact::PoweredOn { node });
            }
            Ok(facts)
        } else {
            self.given_up.remove(&node);
            let before = self.running.remove(&node);
            Ok(if before.is_some() { vec![Fact::PoweredOff { node }] } else { Vec::new() })
        }
    }

    fn fold_addon(&mut self, resource: &Arc<str>, addon: &str, change: &Change) -> Told {
        let key = (resource.clone(), change.object.key.to_string().into_boxed_str());
        let object = format!("{}/{}", kind(resource), change.object.key.name);
        let addon: Box<str> = addon.into();
        if change.kind == ChangeKind::Deleted {
            self.addons.remove(&key);
            return Ok(vec![Fact::AddonRemoved { addon, object }]);
        }
        let mut careless = false;
        let now = match &**resource {
            "daemonsets.apps" | "deployments.apps" | "statefulsets.apps" => {
                let read: read::Templated = serde_json::from_slice(&change.object.json)?;
                let spec = read.spec.unwrap_or_default();
                careless = is_careless(resource, &spec);
                let pods = spec.template.and_then(|template| template.spec);
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
        Ok(vec![Fact::AddonApplied { addon, object, distribution, careless }])
    }
}

/// Whether pods that run may be stopped before others run in their place: on old nodes those would find no image.
fn is_careless(resource: &str, spec: &read::TemplatedSpec) -> bool {
    let on_delete = |strategy: Option<&read::Strategy>| strategy.is_some_and(|strategy| strategy.is("OnDelete"));
    match resource {
        "daemonsets.apps" | "statefulsets.apps" => !on_delete(spec.update_strategy.as_ref()),
        "deployments.apps" => !spec.strategy.as_ref().is_some_and(read::Strategy::keeps_all),
        _ => false,
    }
}

/// A definition says in which versions its objects are stored; each must be served.
fn fold_definition(change: &Change) -> Told {
    if change.kind == ChangeKind::Deleted {
        return Ok(Vec::new());
    }
    let read: read::Definition = serde_json::from_slice(&change.object.json)?;
    let is_served =
        |stored: &String| read.spec.versions.iter().any(|version| version.served && version.name == *stored);
    let stored = read.status.and_then(|status| status.stored_versions).unwrap_or_default();
    let unserved: Vec<String> = stored.into_iter().filter(|stored| !is_served(stored)).collect();
    let definition = change.object.key.name.clone();
    Ok(if unserved.is_empty() { Vec::new() } else { vec![Fact::StoredUnserved { definition, unserved }] })
}

fn is_kubeadm_config(change: &Change) -> bool {
    &*change.object.key.name == "kubeadm-config" && &*change.object.key.namespace == "kube-system"
}

/// A version as fields have it, from the way in which nodes are labelled.
pub(super) fn canonical(label: &str) -> Box<str> {
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
        "namespaces" => "Namespace",
        "csidrivers.storage.k8s.io" => "CSIDriver",
        "storageclasses.storage.k8s.io" => "StorageClass",
        "podsecuritypolicies.policy" => "PodSecurityPolicy",
        "clusterroles.rbac.authorization.k8s.io" => "ClusterRole",
        "clusterrolebindings.rbac.authorization.k8s.io" => "ClusterRoleBinding",
        other => other,
    }
}
