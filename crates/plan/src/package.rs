//! How the packages of a cluster are, read from their live objects.
//!
//! "Applied" is not enough to go on: a gate opens on health that was observed, for the generation that was applied.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::name::AddonName;
use windlass_api::version::{KubernetesVersion, facts};

use crate::gate::Blocked;
use crate::inventory::applied::AppliedObject;
use crate::inventory::{AddonObject, Inventory, Reachable};
use crate::release::AddonRelease;
use crate::render;
use crate::target::Target;

/// The add-on that may not be newer than any API server.
pub(crate) const PROXY: &str = "kube-proxy";

/// How a package is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageState {
    /// Some of its objects are not there, or not as they should be.
    Differs {
        /// The first of them, as `Kind/name`.
        object: String,
    },
    /// Its objects are as they should be, and do not work yet.
    NotWell {
        /// What is missing.
        why: String,
    },
    /// It is as it should be. New pods may still wait for new nodes; the old ones run until then.
    Ready,
    /// Somebody else has brought it in. It is left to them, and nobody waits for it.
    Unmanaged {
        /// The first of their objects, as `Kind/name`.
        object: String,
    },
}

impl PackageState {
    /// What keeps it from being ready.
    pub fn complaint(&self) -> Option<String> {
        match self {
            Self::Differs { object } => Some(format!("{object} is not as the release has it")),
            Self::NotWell { why } => Some(why.clone()),
            Self::Ready | Self::Unmanaged { .. } => None,
        }
    }
}

/// How each package of the target is; `None` while the workload cluster cannot be asked.
pub fn states(target: &Target, inventory: &Inventory) -> Option<BTreeMap<AddonName, PackageState>> {
    let workload = inventory.reachable()?;
    let state = |(name, release): (&AddonName, &AddonRelease)| {
        (name.clone(), state(name, release, &target.release.distribution, &workload))
    };
    Some(target.release.addons.iter().map(state).collect())
}

/// The add-ons of the target that are ours to bring in.
pub(crate) fn managed<'a>(
    target: &'a Target,
    workload: &Reachable<'a>,
) -> impl Iterator<Item = (&'a AddonName, &'a AddonRelease)> + use<'a> {
    let foreign = workload.foreign;
    target.release.addons.iter().filter(move |(name, _)| !foreign.contains_key(*name))
}

/// Whether an object is one of those that the target has.
pub(crate) fn is_wanted(target: &Target, live: &Value) -> bool {
    let live = Identity::of(live);
    target.release.addons.values().flat_map(|addon| &addon.objects).any(|desired| live.is_of(desired))
}

/// Whether the target's version of Kubernetes has the kind of an object. Of those that were dropped, this is the only one that
/// has no successor.
pub(crate) fn has_kind(target: &Target, live: &Value) -> bool {
    live["kind"] != "PodSecurityPolicy" || facts::has_pod_security_policy(&target.release.kubernetes)
}

/// Whether an object is on record, and the one that was seen when it was put there.
pub(crate) fn is_on_record(workload: &Reachable<'_>, found: &AddonObject) -> bool {
    let is_it = |entry: &AppliedObject| entry.is(&found.live) && entry.uid.as_ref() == Some(&found.revision.uid);
    workload.applied.is_some_and(|applied| applied.objects.iter().any(is_it))
}

/// An object of ours that has to go before the target's version of Kubernetes comes, which has no such kind.
pub(crate) fn of_removed_kind(target: &Target, workload: &Reachable<'_>) -> Option<Blocked> {
    let mut objects =
        workload.addons.iter().flat_map(|(addon, objects)| objects.iter().map(move |found| (addon, found)));
    let (addon, found) = objects.find(|(_, found)| !has_kind(target, &found.live) && is_on_record(workload, found))?;
    let (object, version) = (object_name(&found.live), &target.release.kubernetes);
    let why = format!("{object} is still there, and {version} has no such kind");
    Some(Blocked::PackageNotReady { addon: addon.clone(), why })
}

fn state(
    name: &AddonName,
    release: &AddonRelease,
    distribution: &KubernetesVersion,
    workload: &Reachable<'_>,
) -> PackageState {
    if let Some(theirs) = workload.foreign.get(name) {
        return PackageState::Unmanaged { object: theirs.first().cloned().unwrap_or_default() };
    }
    let mut not_well = None;
    for desired in &release.objects {
        let Some(found) = find(workload, name, desired).filter(|found| render::covers(desired, &found.live)) else {
            return PackageState::Differs { object: object_name(desired) };
        };
        not_well = not_well.or_else(|| complaint(&found.live, distribution, workload));
    }
    not_well.map_or(PackageState::Ready, |why| PackageState::NotWell { why })
}

/// The live object of a package with this kind, namespace and name.
pub(crate) fn find<'a>(workload: &Reachable<'a>, addon: &AddonName, desired: &Value) -> Option<&'a AddonObject> {
    let desired = Identity::of(desired);
    workload.addons.get(addon)?.iter().find(|found| desired.is_of(&found.live))
}

/// Whether two objects are of the same kind, namespace and name.
pub(crate) fn is_same(desired: &Value, live: &Value) -> bool {
    Identity::of(desired).is_of(live)
}

/// What tells an object from others. Asked for every pair of objects, so that of one of them it is looked up once.
struct Identity<'v> {
    name: Option<&'v Value>,
    kind: Option<&'v Value>,
    namespace: Option<&'v Value>,
}

impl<'v> Identity<'v> {
    fn of(object: &'v Value) -> Self {
        let metadata = object.get("metadata");
        let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
        Self { name: field("name"), kind: object.get("kind"), namespace: field("namespace") }
    }

    /// Whether another object has it. Names are most often different.
    fn is_of(&self, object: &Value) -> bool {
        let metadata = object.get("metadata");
        let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
        field("name") == self.name && object.get("kind") == self.kind && field("namespace") == self.namespace
    }
}

/// `Kind/name` of an object.
pub(crate) fn object_name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// What is wrong with an object that is as it should be. Only what runs pods can be unwell.
fn complaint(live: &Value, distribution: &KubernetesVersion, workload: &Reachable<'_>) -> Option<String> {
    let status = |field: &str| live["status"][field].as_u64().unwrap_or_default();
    let counted = match live["kind"].as_str() {
        Some("DaemonSet") => daemon_set(&status),
        Some("Deployment") => {
            let replicas = live["spec"]["replicas"].as_u64().unwrap_or(1);
            // Its new pods run only on nodes of the target's distribution. Which of those they tolerate is not known here,
            // so until all nodes are new it is enough that as many pods as ever are available.
            let is_new = |node: &crate::inventory::Node| node.distribution.as_ref() == Some(distribution);
            deployment(replicas, workload.nodes.iter().all(is_new), &status)
        }
        Some("StatefulSet") => stateful_set(live["spec"]["replicas"].as_u64().unwrap_or(1), &status),
        _ => return None,
    };
    let generation = live["metadata"]["generation"].as_u64().unwrap_or_default();
    let unobserved =
        (status("observedGeneration") < generation).then(|| "its latest change was not seen yet".to_owned());
    unobserved.or(counted).map(|why| format!("{}: {why}", object_name(live)))
}

fn daemon_set(status: &dyn Fn(&str) -> u64) -> Option<String> {
    let wanted = status("desiredNumberScheduled");
    let (ready, updated) = (status("numberReady"), status("updatedNumberScheduled"));
    (ready != wanted || updated != wanted).then(|| format!("{ready} ready and {updated} updated of {wanted} pods"))
}

fn deployment(replicas: u64, all_nodes_are_new: bool, status: &dyn Fn(&str) -> u64) -> Option<String> {
    let (available, updated) = (status("availableReplicas"), status("updatedReplicas"));
    if available < replicas {
        return Some(format!("{available} of {replicas} pods are available"));
    }
    (all_nodes_are_new && updated != replicas).then(|| format!("{updated} of {replicas} pods are updated"))
}

/// Its pods are replaced when their nodes are, so it is enough that all of them run.
fn stateful_set(replicas: u64, status: &dyn Fn(&str) -> u64) -> Option<String> {
    let ready = status("readyReplicas");
    (ready < replicas).then(|| format!("{ready} of {replicas} pods are ready"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::name::NodeName;

    use super::*;
    use crate::inventory::Node;

    const NEW: &str = "v1.16.7+vmware.1-guest.1";
    const OLD: &str = "v1.15.5+vmware.1-guest.1";

    /// The complaint about an object on nodes of these distributions.
    fn check(nodes: &[&str], live: &Value, wanted: &str) {
        let node = |distribution: &&str| Node {
            name: NodeName::new("node").unwrap(),
            control_plane: true,
            labelled: true,
            kubelet: distribution.parse().unwrap(),
            distribution: Some(distribution.parse().unwrap()),
            ready: true,
        };
        let nodes: Vec<Node> = nodes.iter().map(node).collect();
        let (addons, foreign) = (BTreeMap::new(), BTreeMap::new());
        let workload = Reachable { nodes: &nodes, addons: &addons, etcd: &[], foreign: &foreign, applied: None };
        let found = complaint(live, &NEW.parse().unwrap(), &workload);
        assert_eq!(found.unwrap_or_default(), wanted, "{live}");
    }

    fn deployment(available: u64, updated: u64) -> Value {
        json!({"kind": "Deployment", "metadata": {"name": "d", "generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": 2, "availableReplicas": available, "updatedReplicas": updated}})
    }

    #[test]
    fn the_new_pods_of_a_deployment_may_wait_for_new_nodes_while_the_old_ones_run() {
        check(&[OLD], &deployment(2, 1), "");
        check(&[OLD], &deployment(1, 1), "Deployment/d: 1 of 2 pods are available");
        check(&[OLD, NEW], &deployment(2, 1), "");
        check(&[NEW], &deployment(2, 1), "Deployment/d: 1 of 2 pods are updated");
        check(&[NEW], &deployment(2, 2), "");
    }

    #[test]
    fn a_daemon_set_without_nodes_is_well() {
        let daemon_set = |wanted: u64, ready: u64| {
            json!({"kind": "DaemonSet", "metadata": {"name": "d", "generation": 1}, "status": {"observedGeneration": 1,
                "desiredNumberScheduled": wanted, "numberReady": ready, "updatedNumberScheduled": wanted}})
        };
        check(&[OLD], &daemon_set(0, 0), "");
        check(&[OLD], &daemon_set(1, 1), "");
        check(&[OLD], &daemon_set(1, 0), "DaemonSet/d: 0 ready and 1 updated of 1 pods");
    }

    #[test]
    fn a_stateful_set_is_well_while_all_its_pods_run_whichever_they_are() {
        let stateful_set = |ready: u64| {
            json!({"kind": "StatefulSet", "metadata": {"name": "s", "generation": 2}, "spec": {"replicas": 2},
                "status": {"observedGeneration": 2, "readyReplicas": ready, "updatedReplicas": 0}})
        };
        check(&[OLD], &stateful_set(2), "");
        check(&[OLD, NEW], &stateful_set(1), "StatefulSet/s: 1 of 2 pods are ready");
    }

    #[test]
    fn health_counts_only_for_the_generation_that_was_applied() {
        let mut live = deployment(2, 2);
        live["metadata"]["generation"] = 3.into();
        check(&[NEW], &live, "Deployment/d: its latest change was not seen yet");
    }

    #[test]
    fn what_runs_no_pods_is_well_once_it_is_there() {
        check(&[], &json!({"kind": "ConfigMap", "metadata": {"name": "c"}}), "");
    }
}
